/* The page of one line: its beam sizes, its sentences, and all views of the sentence that is chosen. */
"use strict";
(() => {
  const { explanations, first } = JSON.parse(document.getElementById("data").textContent);
  const chosen = { beam: first, sentence: 0 };
  const made = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const heading = made("h1", { id: "source", dir: "auto" });
  const translation = made("p", { id: "translation", dir: "auto" });
  const facts = made("p", { id: "facts", className: "facts" });
  const views = made("div", { id: "views" });

  const choice = (id, title, options, isChecked, choose) => {
    const group = made("fieldset", { id }, made("legend", {}, title));
    for (const [value, text] of options) {
      const input = made("input", { type: "radio", name: id, checked: isChecked(value) });
      input.addEventListener("change", () => {
        choose(value);
        draw();
      });
      group.append(made("label", {}, input, ` ${text}`));
    }
    return group;
  };

  const draw = () => {
    const { source, translation: text, model, search, languages, temperatures, sentences } = explanations[chosen.beam];
    heading.dir = translation.dir = "auto";
    heading.textContent = source;
    translation.textContent = text;
    const names = languages.filter(Boolean).join(" to ");
    facts.textContent =
      `${names}${names && "; "}${model.encoder_layers} encoder and ${model.decoder_layers} decoder layers, ${model.num_heads} heads, ` +
      `d_model ${model.d_model}; length penalty ${search.length_penalty} (${search.length_normalization})`;
    tfmViews.all(views, sentences[chosen.sentence], temperatures);
  };

  const sizes = Object.keys(explanations).map((size) => [size, size]);
  const controls = made("div", { className: "controls" }, choice("beams", "Beam size", sizes, (value) => value === first, (value) => (chosen.beam = value)));
  const { sentences } = explanations[first];
  if (sentences.length > 1) {
    const numbers = sentences.map((_, number) => [number, String(number + 1)]);
    controls.append(choice("sentences", "Sentence", numbers, (value) => value === 0, (value) => (chosen.sentence = value)));
  }
  document.getElementById("theme").before(...controls.children);
  document.getElementById("page").prepend(heading, translation, facts);
  document.getElementById("page").append(views);
  draw();
})();
