/* The page of `tfm explain --over-time`: a film strip for each sentence that the validations have kept. */
"use strict";
(() => {
  const { run, films } = JSON.parse(document.getElementById("data").textContent);
  const made = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const page = document.getElementById("page");
  const numValidations = Math.max(...films.map((film) => film.length));
  const facts = `${numValidations} validations; each picture shows the cross-attention: rows are the tokens of the translation, columns those of the source.`;
  page.prepend(made("h1", {}, `How ${run} learned`), made("p", { className: "facts" }, facts));
  for (const film of films) {
    const holder = made("div", {});
    page.append(made("h2", { dir: "auto" }, film[0].source), made("p", { className: "reference", dir: "auto" }, `Reference: ${film[0].target}`), holder);
    tfmViews.film(holder, film);
  }
})();
