/* Draws the JSON of docs/explaining.md into elements of a page; no library, no address, no network.

   tfmViews.links(element, sentence, {onToken})            words of both sides, lines between them on hover
   tfmViews.probabilities(element, sentence, temperatures) the most probable tokens of each step, with a temperature
   tfmViews.attention(element, sentence)                   heat maps: all layers and heads, then one enlarged
   tfmViews.beam(element, sentence, {onNode})              the beam search as a tree
   tfmViews.tokens(element, sentence), .positions, .masks, .tensors
   tfmViews.all(element, sentence, temperatures, {onToken, onNode}), all of them with headings
   tfmViews.film(element, frames)                          one sentence at each validation of a run

   onToken(index of the target token, alternative) is called when a person chooses another token for a place;
   onNode(node, path of nodes from the root) when a branch of the tree is chosen.
   Colours are CSS variables (--tfm-...) that a page may set. */
"use strict";
(() => {
  const STYLE = `
.tfm-view{--fg:var(--tfm-fg,#1a1d21);--bg:var(--tfm-bg,#fff);--soft:var(--tfm-soft,#eef1f5);--muted:var(--tfm-muted,#566069);
 --line:var(--tfm-line,#c3cad2);--ink:var(--tfm-ink,47 124 246);--good:var(--tfm-good,#0b6b3a);--end:var(--tfm-end,#7a4a00);
 color:var(--fg);font:14px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
@media (prefers-color-scheme:dark){:root:not([data-theme=light]) .tfm-view{--fg:var(--tfm-fg,#e8eaed);--bg:var(--tfm-bg,#15181c);
 --soft:var(--tfm-soft,#23282f);--muted:var(--tfm-muted,#a3adb8);--line:var(--tfm-line,#48515b);--good:var(--tfm-good,#6fdc9d);
 --end:var(--tfm-end,#f0b866)}}
:root[data-theme=dark] .tfm-view{--fg:var(--tfm-fg,#e8eaed);--bg:var(--tfm-bg,#15181c);--soft:var(--tfm-soft,#23282f);
 --muted:var(--tfm-muted,#a3adb8);--line:var(--tfm-line,#48515b);--good:var(--tfm-good,#6fdc9d);--end:var(--tfm-end,#f0b866)}
.tfm-view *{box-sizing:border-box}
.tfm-view button,.tfm-view select,.tfm-view input{font:inherit;color:inherit}
.tfm-view button{background:var(--soft);border:1px solid transparent;border-radius:6px;padding:2px 6px;cursor:pointer}
.tfm-view select{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:2px 4px}
.tfm-view :focus-visible{outline:2px solid rgb(var(--ink));outline-offset:1px}
.tfm-view button[aria-pressed=true],.tfm-view button.tfm-lit{border-color:rgb(var(--ink));background:rgb(var(--ink)/.22)}
.tfm-view .tfm-note{color:var(--muted);margin:4px 0}
.tfm-view .tfm-bar-row{display:flex;gap:12px;flex-wrap:wrap;align-items:center;margin:4px 0 8px}
.tfm-view .tfm-scroll{overflow:auto;max-width:100%;position:relative}
.tfm-view .tfm-high{max-height:720px}
.tfm-view table{border-collapse:collapse;font-variant-numeric:tabular-nums;overflow-wrap:normal}
.tfm-view th{white-space:nowrap}
.tfm-view th,.tfm-view td{padding:2px 6px;text-align:left;vertical-align:top}
.tfm-view thead th,.tfm-view tbody tr+tr>*{border-top:1px solid var(--line)}
.tfm-view thead th{border-top:0;color:var(--muted);font-weight:600}
.tfm-view td.tfm-number{text-align:right}
.tfm-view .tfm-two{position:relative;display:grid;gap:56px;padding:4px 0}
.tfm-view .tfm-two>div{display:flex;flex-wrap:wrap;gap:4px 4px;position:relative;z-index:1}
.tfm-view .tfm-two svg{position:absolute;inset:0;width:100%;height:100%;pointer-events:none}
.tfm-view .tfm-two line{stroke:rgb(var(--ink));stroke-linecap:round}
.tfm-view .tfm-two button.tfm-apart{margin-inline-end:10px}
.tfm-view .tfm-steps{display:grid;grid-template-columns:repeat(auto-fill,minmax(210px,1fr));gap:10px}
.tfm-view .tfm-step{border:1px solid var(--line);border-radius:8px;padding:6px 8px;background:var(--bg)}
.tfm-view .tfm-step h4{margin:0 0 4px;font-size:13px;font-weight:600}
.tfm-view .tfm-option{display:grid;grid-template-columns:minmax(0,1fr) 64px 48px;gap:6px;align-items:center;width:100%;
 text-align:left;background:none;border-radius:4px;padding:1px 2px}
.tfm-view .tfm-option:not(button){cursor:default}
.tfm-view .tfm-option .tfm-meter{background:var(--soft);height:10px;border-radius:3px;overflow:hidden}
.tfm-view .tfm-option .tfm-meter>i{display:block;height:100%;background:rgb(var(--ink))}
.tfm-view .tfm-option .tfm-share{text-align:right;font-variant-numeric:tabular-nums;font-size:12px}
.tfm-view .tfm-taken{font-weight:700;color:var(--good)}
.tfm-view .tfm-maps{display:grid;gap:6px;width:max-content;max-width:none;align-items:end}
.tfm-view .tfm-maps .tfm-label{color:var(--muted);font-size:12px}
.tfm-view .tfm-maps .tfm-row{align-self:center}
.tfm-view .tfm-maps button{padding:2px;background:var(--bg);border:1px solid var(--line);border-radius:4px;line-height:0}
.tfm-view canvas{image-rendering:pixelated;width:100%;height:100%;display:block}
.tfm-view table.tfm-heat{font-size:12px;margin-top:8px;border-collapse:separate;border-spacing:0}
.tfm-view table.tfm-heat td{text-align:center;min-width:34px;padding:3px 2px;border:1px solid var(--soft)}
.tfm-view table.tfm-heat tbody th{position:sticky;left:0;background:var(--bg);vertical-align:middle;max-width:120px;overflow:hidden;text-overflow:ellipsis}
.tfm-view table.tfm-heat thead th{writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:2px;color:var(--fg)}
.tfm-view table.tfm-heat thead th:first-child{writing-mode:horizontal-tb;transform:none;vertical-align:bottom}
@media (max-width:480px){.tfm-view th,.tfm-view td{padding:2px 4px;font-size:13px}.tfm-view table.tfm-heat td{min-width:28px;font-size:11px}}
.tfm-view .tfm-tree{position:relative}
.tfm-view .tfm-tree svg{position:absolute;left:0;top:0;pointer-events:none}
.tfm-view .tfm-tree path{fill:none;stroke:var(--line);stroke-width:1.5}
.tfm-view .tfm-tree path.tfm-chosen{stroke:var(--good);stroke-width:3}
.tfm-view .tfm-tree button{position:absolute;white-space:nowrap;overflow:hidden;text-overflow:ellipsis;font-size:12px;height:22px;
 line-height:16px;text-align:left}
.tfm-view .tfm-legend .tfm-key{border:1px solid transparent;border-radius:6px;background:var(--soft);padding:0 6px}
.tfm-view .tfm-tree button.tfm-chosen,.tfm-view .tfm-key.tfm-chosen{border-color:var(--good);color:var(--good);font-weight:700}
.tfm-view .tfm-tree button.tfm-finished,.tfm-view .tfm-key.tfm-finished{border-color:var(--end);color:var(--end)}
.tfm-view .tfm-tree button.tfm-dropped,.tfm-view .tfm-key.tfm-dropped{background:none;border:1px dashed var(--line);color:var(--muted)}
.tfm-view .tfm-legend{display:flex;gap:12px;flex-wrap:wrap;font-size:12px;align-items:center}
.tfm-view .tfm-panel{border-left:4px solid rgb(var(--ink));background:var(--soft);padding:8px 10px;margin:8px 0;border-radius:0 8px 8px 0;
 min-height:64px}
.tfm-view .tfm-mask{display:inline-grid;gap:1px;margin:2px 0 10px}
.tfm-view .tfm-mask i{width:11px;height:11px;background:var(--soft)}
.tfm-view .tfm-mask i.tfm-on{background:rgb(var(--ink)/.75)}
.tfm-view .tfm-film{display:flex;gap:8px;align-items:flex-end;padding:4px 2px 10px}
.tfm-view .tfm-film button{flex:none;background:var(--bg);border:1px solid var(--line);padding:4px;text-align:left}
.tfm-view .tfm-film .tfm-frame{display:block;width:128px;height:104px;margin-bottom:4px}
.tfm-view .tfm-film .tfm-label{font-size:12px;line-height:1.3}
.tfm-view .tfm-said{font-size:16px;margin:4px 0}
.tfm-view .tfm-tokens{display:flex;flex-wrap:wrap;gap:4px}
.tfm-view .tfm-tokens span{border-radius:4px;padding:1px 5px;border:1px solid var(--soft)}
.tfm-view h3{font-size:17px;margin:28px 0 6px}
.tfm-view section:first-child h3{margin-top:0}
`;
  // The namespace of SVG, as the parser of the browser knows it.
  const parser = document.createElement("template");
  parser.innerHTML = "<svg></svg>";
  const SVG = parser.content.firstChild.namespaceURI;
  let hasStyle = false;

  function addStyle() {
    if (hasStyle) return;
    hasStyle = true;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      // A content security policy may forbid the attribute; it never forbids the property.
      else if (key === "style") element.style.cssText = value;
      else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  function drawn(name, attributes) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  function begin(element) {
    addStyle();
    element.classList.add("tfm-view");
    element.replaceChildren();
    return element;
  }

  /* The numbers of a packed array: {shape, at(i, j, ...)}. */
  function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed.data), (character) => character.charCodeAt(0));
    const { shape, low, high } = packed;
    const at = (...places) => {
      let index = 0;
      places.forEach((place, axis) => (index = index * shape[axis] + place));
      return low + ((high - low) * bytes[index]) / 255;
    };
    return { shape, at };
  }

  const percent = (share) => (share >= 0.0995 ? `${(100 * share).toFixed(0)} %` : `${(100 * share).toFixed(1)} %`);
  const range = (count) => [...Array(count).keys()];
  const best = (sentence) => sentence.hypotheses[0];
  const heat = (share) => `rgb(var(--ink) / ${(0.75 * share).toFixed(3)})`;

  /* Whether the first letter of a text belongs to a script that runs from right to left. */
  const isRightToLeft = (text) => /^\P{L}*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(text);

  /* Whether white space stands before a token, or at its beginning. Offsets count code points. */
  function isApart(characters, token) {
    if (!token.start && token.start !== 0) return true;
    const isSpace = (character) => character !== undefined && /\s/.test(character);
    return token.start > 0 && (isSpace(characters[token.start]) || isSpace(characters[token.start - 1]));
  }

  /* ------------------------------------------------------------------ tokens, positions, masks, tensors */

  /* Calls a function when an element that had no size, as in a closed drawer, gets one. */
  function whenShown(element, redraw) {
    let before = element.clientWidth;
    new ResizeObserver(() => {
      if (before === 0 && element.clientWidth > 0) redraw();
      before = element.clientWidth;
    }).observe(element);
  }

  function table(heads, rows, caption) {
    const head = make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text))));
    const body = make("tbody", {});
    for (const row of rows) {
      body.append(
        make("tr", {}, ...row.map((cell) => make("td", { class: typeof cell === "number" ? "tfm-number" : null }, String(cell)))),
      );
    }
    return make("div", { class: "tfm-scroll", tabindex: 0, role: "region", "aria-label": caption }, make("table", { "aria-label": caption }, head, body));
  }

  function tokens(element, sentence) {
    begin(element);
    const rows = sentence.source.tokens.map((token, place) => [
      place, token.piece, token.entry, token.id, token.kind, token.start === null ? "" : `${token.start}–${token.end}`,
    ]);
    element.append(table(["position", "piece", "entry", "id", "kind", "characters"], rows, "Tokens that the encoder reads"));
  }

  function positions(element, sentence) {
    begin(element);
    const { kind, meaning, source } = sentence.positions;
    const meanings = {
      added: "Each row is a vector that is added to the embedding of the token in this place.",
      angles: "Each row holds the sines and the cosines of the angles by which queries and keys in this place are rotated.",
      none: "This model gets no positions: only the causal mask tells it something about the order.",
    };
    element.append(make("p", { class: "tfm-note" }, `${kind}: ${meanings[meaning]}`));
    if (source === null) return;
    const numbers = unpack(source);
    const [rows, all_] = numbers.shape;
    const stride = Math.ceil(all_ / 96);
    const columns = Math.ceil(all_ / stride);
    const canvas = heatCanvas(rows, columns, (row, column) => (numbers.at(row, column * stride) - source.low) / (source.high - source.low));
    const holder = make("div", { class: "tfm-scroll", tabindex: 0, role: "region", "aria-label": "Positions" });
    const grid = make("div", { style: `display:grid;grid-template-columns:max-content minmax(160px,1fr);gap:0 8px;max-width:720px` });
    const names = make("div", {}, ...sentence.source.tokens.map((token) => make("div", { style: "height:18px;line-height:18px;font-size:12px" }, token.piece)));
    grid.append(names, make("div", { style: `height:${18 * rows}px`, role: "img", "aria-label": `${rows} positions with ${all_} numbers each` }, canvas));
    holder.append(grid);
    const [low, high] = [source.low.toPrecision(2), source.high.toPrecision(2)];
    const shown = stride === 1 ? "" : `; one column of ${stride} is shown`;
    element.append(holder, make("p", { class: "tfm-note" }, `${all_} columns, from ${low} (background) to ${high} (full colour)${shown}`));
  }

  function masks(element, sentence) {
    begin(element);
    const titles = { encoder: "encoder", decoder: "decoder", cross: "cross-attention" };
    for (const [kind, title] of Object.entries(titles)) {
      if (!sentence.masks[kind]) {
        element.append(make("div", {}, `${title}: an SSRU in place of self-attention; its state carries the earlier positions, so there is no mask`));
        continue;
      }
      const mask = unpack(sentence.masks[kind]);
      const [rows, columns] = mask.shape;
      const grid = make("div", { class: "tfm-mask", role: "img" });
      grid.style.gridTemplateColumns = `repeat(${columns}, 11px)`;
      let visible = 0;
      for (const row of range(rows))
        for (const column of range(columns)) {
          const isVisible = mask.at(row, column) > 0.5;
          visible += isVisible;
          grid.append(make("i", { class: isVisible ? "tfm-on" : null }));
        }
      const text = `${title}: ${visible} of ${rows * columns} pairs may be read${kind === "decoder" ? "; no position reads a later one" : ""}`;
      grid.setAttribute("aria-label", text);
      element.append(make("div", {}, text), make("div", { class: "tfm-scroll", tabindex: 0, role: "region", "aria-label": `Mask of the ${title}` }, grid));
    }
  }

  const shapeText = (shape) => shape.join(" × ");

  function tensors(element, sentence) {
    begin(element);
    const note = "Batch × positions × width; inside attention batch × heads × positions × width of a head. Found by hooks on the forward pass.";
    const rows = sentence.tensors.map((one) => [
      one.name || "(the model)", one.module, one.operation, one.inputs.map(shapeText).join(", "), shapeText(one.output),
      Object.entries(one.parameters).map(([name, shape]) => `${name} ${shapeText(shape)}`).join(", "),
    ]);
    const details = make("details", {}, make("summary", {}, `${rows.length} uses of modules`));
    details.append(table(["name", "module", "operation", "in", "out", "parameters"], rows, "Shapes of tensors"));
    element.append(make("p", { class: "tfm-note" }, note), details);
  }

  /* ------------------------------------------------------------------ heat maps */

  function heatCanvas(rows, columns, share) {
    const canvas = make("canvas", { width: columns, height: rows });
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    for (const row of range(rows))
      for (const column of range(columns)) {
        // One blue that is readable on white and on black; its opacity is the number.
        image.data.set([47, 124, 246, Math.round(255 * share(row, column))], 4 * (row * columns + column));
      }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  const KINDS = [
    ["cross", "cross-attention: target reads source"],
    ["encoder", "encoder: source reads source"],
    ["decoder", "decoder: target reads target"],
  ];

  /* Labels of the rows and columns of a kind of attention. */
  function labels(sentence, kind) {
    const source = sentence.source.tokens.map((token) => token.piece);
    const read = sentence.decoder_input.map((token) => token.piece);
    const predicted = best(sentence).tokens.map((token) => token.piece);
    return { encoder: [source, source], decoder: [read, read], cross: [predicted, source] }[kind];
  }

  function meanOverHeads(weights, layer) {
    const heads = weights.shape[1];
    return (row, column) => range(heads).reduce((sum, head) => sum + weights.at(layer, head, row, column), 0) / heads;
  }

  function attention(element, sentence) {
    begin(element);
    const kinds = KINDS.filter(([kind]) => sentence.attention[kind]);
    const select = make("select", {}, ...kinds.map(([kind, title]) => make("option", { value: kind }, title)));
    const maps = make("div", { class: "tfm-scroll", tabindex: 0, role: "region", "aria-label": "Heat maps by layer and head" });
    const zoomed = make("div", { "aria-live": "polite" });
    const note = make("p", { class: "tfm-note" }, "A row reads the columns: the stronger the colour, the more. Each row sums to 1. Choose a picture to enlarge it.");
    element.append(make("div", { class: "tfm-bar-row" }, make("label", {}, "Attention ", select)), note, maps, zoomed);
    const draw = () => drawMaps(sentence, select.value, maps, zoomed);
    select.addEventListener("change", draw);
    draw();
    whenShown(maps, draw);
  }

  function drawMaps(sentence, kind, maps, zoomed) {
    const weights = unpack(sentence.attention[kind]);
    const [layers, heads, rows, columns] = weights.shape;
    // Small enough that all heads stand side by side, if that leaves something to see.
    const room = ((maps.clientWidth || 900) - 64) / (heads + 1) - 12;
    const cell = Math.max(2, Math.min(14, 144 / rows, room / columns));
    const grid = make("div", { class: "tfm-maps" });
    grid.style.gridTemplateColumns = `max-content repeat(${heads + 1}, max-content)`;
    grid.append(make("span", {}), ...range(heads).map((head) => make("span", { class: "tfm-label" }, `head ${head}`)), make("span", { class: "tfm-label" }, "mean"));
    const choose = (button, layer, head) => {
      for (const other of grid.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
      drawZoom(sentence, kind, weights, layer, head, zoomed);
    };
    let first = null;
    for (const layer of range(layers)) {
      grid.append(make("span", { class: "tfm-label tfm-row" }, `layer ${layer}`));
      for (const head of [...range(heads), null]) {
        const share = head === null ? meanOverHeads(weights, layer) : (row, column) => weights.at(layer, head, row, column);
        const name = `layer ${layer}, ${head === null ? "mean over heads" : `head ${head}`}`;
        const button = make("button", { type: "button", "aria-label": name, title: name, "aria-pressed": "false" }, heatCanvas(rows, columns, share));
        button.style.width = `${columns * cell + 6}px`;
        button.style.height = `${rows * cell + 6}px`;
        button.addEventListener("click", () => choose(button, layer, head));
        grid.append(button);
        const isAligning = kind === "cross" && layer === sentence.attention.aligning_layer;
        if (head === null && (isAligning || (kind !== "cross" && layer === layers - 1))) first = [button, layer, head];
      }
    }
    maps.replaceChildren(grid);
    if (first) choose(...first);
  }

  function drawZoom(sentence, kind, weights, layer, head, holder) {
    const [rowNames, columnNames] = labels(sentence, kind);
    const share = head === null ? meanOverHeads(weights, layer) : (row, column) => weights.at(layer, head, row, column);
    const title = `${KINDS.find(([name]) => name === kind)[1]}, layer ${layer}, ${head === null ? "mean over heads" : `head ${head}`}`;
    const head_ = make("tr", {}, make("th", { scope: "col" }, "reads →"), ...columnNames.map((name) => make("th", { scope: "col" }, name)));
    const body = make("tbody", {});
    rowNames.forEach((name, row) => {
      const cells = columnNames.map((other, column) => {
        const value = share(row, column);
        const cell = make("td", { title: `${name} reads ${other}: ${value.toFixed(2)}` }, value < 0.005 ? "0" : value.toFixed(2).replace(/^0/, ""));
        cell.style.background = heat(value);
        return cell;
      });
      body.append(make("tr", {}, make("th", { scope: "row" }, name), ...cells));
    });
    const shown = make("table", { class: "tfm-heat", "aria-label": title }, make("thead", {}, head_), body);
    holder.replaceChildren(make("p", { class: "tfm-note" }, title), make("div", { class: "tfm-scroll", tabindex: 0, role: "region", "aria-label": title }, shown));
  }

  /* ------------------------------------------------------------------ lines between words */

  function links(element, sentence, { onToken = null } = {}) {
    begin(element);
    const weights = unpack(sentence.attention.cross);
    const [layers, heads] = weights.shape;
    const layerSelect = make("select", {}, ...range(layers).map((layer) => make("option", { value: layer, selected: layer === sentence.attention.aligning_layer }, `layer ${layer}`)));
    const headSelect = make("select", {}, make("option", { value: "" }, "mean over heads"), ...range(heads).map((head) => make("option", { value: head }, `head ${head}`)));
    const two = make("div", { class: "tfm-two" });
    const lines = drawn("svg", { "aria-hidden": "true" });
    const said = make("p", { class: "tfm-note", "aria-live": "polite" }, "Point at a word, or move to it with the Tab key, to see what it reads.");
    const source = tokenRow(sentence.source.text, sentence.source.tokens, "Source");
    const target = tokenRow(best(sentence).text, best(sentence).tokens, "Translation");
    two.append(lines, source.row, target.row);
    const weightOf = (row, column) =>
      headSelect.value === "" ? meanOverHeads(weights, Number(layerSelect.value))(row, column) : weights.at(Number(layerSelect.value), Number(headSelect.value), row, column);
    const clear = () => {
      lines.replaceChildren();
      for (const button of two.querySelectorAll(".tfm-lit")) button.classList.remove("tfm-lit");
    };
    const show = (side, place) => {
      clear();
      const [own, others] = side === "target" ? [target, source] : [source, target];
      const shares = others.buttons.map((_, other) => (side === "target" ? weightOf(place, other) : weightOf(other, place)));
      own.buttons[place].classList.add("tfm-lit");
      shares.forEach((share, other) => {
        if (share < 0.03) return;
        if (share >= 0.2) others.buttons[other].classList.add("tfm-lit");
        lines.append(line(two, own.buttons[place], others.buttons[other], share, side));
      });
      const order = shares.map((share, other) => [share, other]).sort((a, b) => b[0] - a[0]).slice(0, 3);
      const list = order.map(([share, other]) => `${others.names[other]} ${percent(share)}`).join(", ");
      said.textContent = side === "target" ? `${own.names[place]} reads: ${list}` : `${own.names[place]} is read by: ${list}`;
    };
    /* Without a word that is pointed at: for each target token, the source token that it reads most. */
    const rest = () => {
      clear();
      target.buttons.forEach((button, place) => {
        if (best(sentence).tokens[place].start === best(sentence).tokens[place].end) return;
        const shares = source.buttons.map((_, other) => weightOf(place, other));
        const most = shares.indexOf(Math.max(...shares));
        lines.append(line(two, button, source.buttons[most], 0.35 * shares[most], "target"));
      });
    };
    for (const [side, row] of [["source", source], ["target", target]])
      row.buttons.forEach((button, place) => {
        button.addEventListener("mouseenter", () => show(side, place));
        button.addEventListener("focus", () => show(side, place));
        button.addEventListener("click", () => (side === "target" && onToken ? onToken(place, null) : show(side, place)));
      });
    element.append(
      make("div", { class: "tfm-bar-row" }, make("label", {}, "Lines from ", layerSelect), make("label", {}, "and ", headSelect)), two, said, linkTable(sentence),
    );
    two.addEventListener("mouseleave", rest);
    layerSelect.addEventListener("change", rest);
    headSelect.addEventListener("change", rest);
    new ResizeObserver(rest).observe(two);
  }

  function tokenRow(text, tokens_, title) {
    const characters = Array.from(text);
    const row = make("div", { role: "group", "aria-label": title, dir: isRightToLeft(text) ? "rtl" : "ltr" });
    const buttons = tokens_.map((token, place) => {
      // The space stands behind the token before, where it does not indent a new line.
      if (place > 0 && isApart(characters, token)) row.lastChild.classList.add("tfm-apart");
      const button = make("button", { type: "button" }, token.piece);
      if (token.probability !== undefined) button.title = percent(token.probability);
      else if (token.kind === "text") button.title = characters.slice(token.start, token.end).join("").trim(); // the word behind [UNK]
      row.append(button);
      return button;
    });
    return { row, buttons, names: tokens_.map((token) => token.piece) };
  }

  function line(holder, from, to, share, side) {
    const frame = holder.getBoundingClientRect();
    const [upper, lower] = side === "source" ? [from, to] : [to, from];
    const [above, below] = [upper.getBoundingClientRect(), lower.getBoundingClientRect()];
    return drawn("line", {
      x1: above.left + above.width / 2 - frame.left, y1: above.bottom - frame.top,
      x2: below.left + below.width / 2 - frame.left, y2: below.top - frame.top,
      "stroke-width": 1 + 4 * share, "stroke-opacity": 0.15 + 0.85 * share,
    });
  }

  function linkTable(sentence) {
    const word = (text, [start, end]) => Array.from(text).slice(start, end).join("");
    const hypothesis = best(sentence);
    const rows = hypothesis.links.map(([from, to]) => [word(sentence.source.text, sentence.source.words[from]), word(hypothesis.text, hypothesis.words[to])]);
    return make("details", {}, make("summary", {}, "Word alignment as a table"), table(["source", "translation"], rows, "Word alignment"));
  }

  /* ------------------------------------------------------------------ probabilities of each step */

  function probabilities(element, sentence, temperatures, { onToken = null } = {}) {
    begin(element);
    const hypothesis = best(sentence);
    const start = Math.max(0, temperatures.indexOf(1));
    const slider = make("input", { type: "range", min: 0, max: temperatures.length - 1, value: start, "aria-label": "Temperature" });
    const value = make("output", {});
    const steps = make("div", { class: "tfm-steps" });
    const redraw = () => {
      const number = Number(slider.value);
      value.textContent = temperatures[number].toFixed(1);
      slider.setAttribute("aria-valuetext", value.textContent);
      steps.replaceChildren(...hypothesis.tokens.map((token, place) => step(sentence, token, place, temperatures[number], number, onToken)));
    };
    slider.addEventListener("input", redraw);
    const note = "Each box is a step of the decoder. Temperature 1 is what the model says; towards 0 the most probable token takes all, above 1 the others gain.";
    element.append(make("div", { class: "tfm-bar-row" }, make("label", {}, "Temperature ", slider, " ", value)), make("p", { class: "tfm-note" }, note), steps);
    redraw();
  }

  function step(sentence, token, place, temperature, number, onToken) {
    const shareOf = (logProbability) => Math.exp(logProbability / temperature - token.log_partitions[number]);
    const shown = [...token.alternatives];
    if (!shown.some((one) => one.id === token.id)) shown.push(token);
    const rest = Math.max(0, 1 - shown.reduce((sum, one) => sum + shareOf(one.log_probability), 0));
    const options = shown.map((one) => option(one.piece, shareOf(one.log_probability), one.id === token.id, onToken && (() => onToken(place, one))));
    const title = `${place + 1}. reads ${sentence.decoder_input[place].piece}`;
    return make("div", { class: "tfm-step", role: "group", "aria-label": title }, make("h4", {}, title), ...options, option("all others", rest, false, null));
  }

  function option(name, share, isTaken, onclick) {
    const meter = make("i", {});
    meter.style.width = `${100 * share}%`;
    return make(
      onclick ? "button" : "div",
      { class: `tfm-option${isTaken ? " tfm-taken" : ""}`, ...(onclick ? { type: "button", onclick } : {}) },
      make("span", {}, isTaken ? `${name} ✓` : name), make("span", { class: "tfm-meter" }, meter), make("span", { class: "tfm-share" }, percent(share)),
    );
  }

  /* ------------------------------------------------------------------ the beam as a tree */

  const WIDEST = 150;
  const GAP = 30;
  const ROW = 26;
  const SHOWN = [["0", "none"], ["2", "the best two of each step"], ["all", "all"]];

  function beam(element, sentence, { onNode = null } = {}) {
    begin(element);
    const { nodes } = sentence.beam;
    const select = make("select", {}, ...SHOWN.map(([value, title]) => make("option", { value, selected: value === "2" }, title)));
    const scroll = make("div", { class: "tfm-scroll tfm-high", tabindex: 0, role: "region", "aria-label": "Beam search as a tree" });
    const panel = make("div", { class: "tfm-panel", "aria-live": "polite" }, "Choose a branch to see what it would have said.");
    const choose = (node, button) => {
      for (const other of scroll.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
      describe(sentence, node, panel);
      if (onNode) onNode(node, pathOf(nodes, node));
    };
    const draw = () => drawTree(sentence, select.value, scroll, choose);
    select.addEventListener("change", draw);
    const legend = make("div", { class: "tfm-legend" });
    for (const [state, text] of [["chosen", "on the best path"], ["kept", "kept in the beam"], ["finished", "finished"], ["dropped", "dropped"]])
      legend.append(make("span", { class: `tfm-key tfm-${state}` }, text));
    element.append(make("div", { class: "tfm-bar-row" }, make("label", {}, "Dropped branches ", select), legend), scroll, panel, treeTable(sentence));
    draw();
    whenShown(scroll, draw);
  }

  const pathOf = (nodes, node) => (node.parent === null ? [node] : [...pathOf(nodes, nodes[node.parent]), node]);

  function drawTree(sentence, dropped, holder, choose) {
    const { nodes } = sentence.beam;
    const limit = dropped === "all" ? Infinity : Number(dropped);
    const counts = new Map();
    const isShown = nodes.map(() => true);
    for (const node of [...nodes].sort((a, b) => b.score - a.score)) {
      if (node.state !== "dropped") continue;
      counts.set(node.step, (counts.get(node.step) || 0) + 1);
      isShown[node.node] = counts.get(node.step) <= limit;
    }
    const children = nodes.map(() => []);
    for (const node of nodes) if (node.parent !== null && isShown[node.node]) children[node.parent].push(node);
    const order = { chosen: 0, kept: 1, finished: 1, dropped: 2 };
    for (const list of children) list.sort((a, b) => order[a.state] - order[b.state] || b.score - a.score);
    const row = [];
    const lowest = []; // the last row that a step has used
    /* A node and its first child, the first child of that and so on stand in one row, so all their steps must be free there. */
    const freeRow = (node) => {
      const own = (lowest[node.step] ?? -1) + 1;
      return children[node.node].length ? Math.max(own, freeRow(children[node.node][0])) : own;
    };
    const place = (node, at) => {
      row[node.node] = lowest[node.step] = at;
      children[node.node].forEach((child, index) => place(child, index === 0 ? at : Math.max(at + 1, freeRow(child))));
    };
    place(nodes[0], 0);
    const tree = make("div", { class: "tfm-tree" });
    const buttons = new Map();
    for (const node of nodes) {
      if (!isShown[node.node]) continue;
      const score = node.parent === null ? "" : ` ${node.score.toFixed(2)}`;
      const name = `${node.piece}${score}, ${node.state}`;
      const button = make("button", { type: "button", class: `tfm-${node.state}`, title: name, "aria-label": name, "aria-pressed": "false" }, node.piece, make("small", {}, score));
      button.style.maxWidth = `${WIDEST}px`;
      button.addEventListener("click", () => choose(node, button));
      buttons.set(node, button);
      tree.append(button);
    }
    holder.replaceChildren(tree);
    placeTree(nodes, buttons, row, tree);
  }

  /* Puts each step into a column as wide as its widest token, and draws the branches. */
  function placeTree(nodes, buttons, row, tree) {
    const widths = [];
    for (const [node, button] of buttons) widths[node.step] = Math.max(widths[node.step] || 0, button.offsetWidth || WIDEST);
    const lefts = widths.map((_, step) => widths.slice(0, step).reduce((sum, width) => sum + width + GAP, 0));
    const [width, height] = [lefts.at(-1) + widths.at(-1) + 4, (Math.max(...[...buttons.keys()].map((node) => row[node.node])) + 1) * ROW];
    tree.style.width = `${width}px`;
    tree.style.height = `${height + 4}px`;
    const svg = drawn("svg", { width, height, "aria-hidden": "true" });
    for (const [node, button] of buttons) {
      const [x, y] = [lefts[node.step], row[node.node] * ROW];
      button.style.left = `${x}px`;
      button.style.top = `${y + 1}px`;
      if (node.parent === null) continue;
      const parent = nodes[node.parent];
      const [fromX, fromY] = [lefts[parent.step] + (buttons.get(parent).offsetWidth || WIDEST), row[node.parent] * ROW + 12];
      const path = drawn("path", { d: `M${fromX} ${fromY}H${x - GAP + 4}C${x - GAP / 3} ${fromY} ${x - GAP + 4} ${y + 12} ${x} ${y + 12}` });
      if (node.state === "chosen") path.setAttribute("class", "tfm-chosen");
      svg.append(path);
    }
    svg.append(...svg.querySelectorAll(".tfm-chosen")); // the best path lies on top
    tree.prepend(svg);
  }

  /* What becomes of a branch: the best end below it that the search knows, else what greedy search made of it. */
  function ending(nodes, node) {
    const below = nodes.filter((one) => one.continuation !== null && pathOf(nodes, one).includes(node));
    const rank = (one) => (one.state === "chosen" ? 2 : one.state === "finished" ? 1 : 0);
    return below.sort((a, b) => rank(b) - rank(a) || b.score - a.score)[0] || null;
  }

  function describe(sentence, node, panel) {
    const { nodes } = sentence.beam;
    const states = {
      chosen: "on the path of the translation", kept: "kept in the beam", finished: "finished in the beam", dropped: "dropped: others had better scores",
    };
    const end = ending(nodes, node);
    const pieces = pathOf(nodes, node).slice(1).map((one) => one.piece).join(" ");
    const parts = [make("div", {}, make("b", { dir: "auto" }, pieces || "the beginning"), ` — ${states[node.state]}`)];
    if (node.parent !== null) {
      const sum = `score ${node.score.toFixed(3)} = log-probability ${node.total.toFixed(3)} / length penalty ${node.length_penalty.toFixed(3)}`;
      parts.push(make("div", {}, `${sum}; this token ${percent(Math.exp(node.log_probability))}`));
    }
    if (end) {
      const isKnown = end.state === "chosen" || end.state === "finished";
      parts.push(make("div", {}, isKnown ? "It says: " : "It would have said (greedy search goes on): ", make("b", { dir: "auto" }, end.continuation || "nothing")));
    } else if (!nodes.some((one) => one.parent === node.node)) {
      parts.push(make("div", { class: "tfm-note" }, "Nobody has asked how it would go on: too many branches were better."));
    }
    panel.replaceChildren(...parts);
  }

  function treeTable(sentence) {
    const rows = sentence.beam.nodes.slice(1).map((node) => [
      node.step, pathOf(sentence.beam.nodes, node).slice(1).map((one) => one.piece).join(" "), Number(node.score.toFixed(3)), Number(node.total.toFixed(3)),
      Number(node.length_penalty.toFixed(3)), node.state,
    ]);
    const details = make("details", {}, make("summary", {}, "The search as a table"));
    // Filled when it is opened: a large table would make the page slow.
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1)
        details.append(table(["step", "tokens", "score", "log-probability", "length penalty", "state"], rows, "The beam search, step by step"));
    });
    return details;
  }

  /* ------------------------------------------------------------------ how a model learns */

  /* A film strip: the same sentence at each validation, {step, translation, confidence, source_pieces, tokens, attention}. */
  function film(element, frames) {
    begin(element);
    const strip = make("div", { class: "tfm-scroll tfm-film" });
    const slider = make("input", { type: "range", min: 0, max: frames.length - 1, value: frames.length - 1, "aria-label": "Validation" });
    const play = make("button", { type: "button" }, "Play");
    const shown = make("div", { "aria-live": "polite" });
    const buttons = frames.map((frame, number) => make("button", { type: "button", onclick: () => choose(number) }, ...frameParts(frame)));
    strip.append(...buttons);
    const choose = (number) => {
      slider.value = number;
      slider.setAttribute("aria-valuetext", `step ${frames[number].step}`);
      buttons.forEach((button, other) => button.setAttribute("aria-pressed", other === number));
      // Only the strip moves, not the page.
      strip.scrollLeft = buttons[number].offsetLeft - strip.clientWidth / 2;
      shown.replaceChildren(...frameDetails(frames[number]));
    };
    let timer = null;
    const stop = () => {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
    };
    play.addEventListener("click", () => {
      if (timer) return stop();
      choose(0);
      play.textContent = "Stop";
      timer = setInterval(() => (Number(slider.value) + 1 < frames.length ? choose(Number(slider.value) + 1) : stop()), 700);
    });
    slider.addEventListener("input", () => choose(Number(slider.value)));
    element.append(make("div", { class: "tfm-bar-row" }, play, make("label", {}, "Validation ", slider)), strip, shown);
    choose(frames.length - 1);
  }

  function frameParts(frame) {
    const label = make("span", { class: "tfm-label" }, `step ${frame.step}`, make("br", {}), `confidence ${percent(frame.confidence)}`);
    if (!frame.attention) return [label];
    const weights = unpack(frame.attention);
    const [rows, columns] = weights.shape;
    const holder = make("span", { class: "tfm-frame" }, heatCanvas(rows, columns, (row, column) => weights.at(row, column)));
    return [holder, label];
  }

  function frameDetails(frame) {
    const said = make("span", { dir: "auto" }, frame.translation || "(nothing)");
    const words = make("p", { class: "tfm-said" }, make("b", {}, `step ${frame.step}: `), said);
    const tokens_ = make("div", { class: "tfm-tokens", dir: isRightToLeft(frame.translation) ? "rtl" : "ltr" });
    for (const [piece, probability] of frame.tokens) {
      const chip = make("span", { title: percent(probability) }, piece, make("small", {}, ` ${percent(probability)}`));
      chip.style.background = heat(probability);
      tokens_.append(chip);
    }
    return [words, tokens_];
  }

  /* ------------------------------------------------------------------ all views */

  function all(element, sentence, temperatures, options = {}) {
    begin(element);
    const sections = [
      ["Which word comes from which", (to) => links(to, sentence, options)],
      ["The next token, step by step", (to) => probabilities(to, sentence, temperatures, options)],
      ["The beam search", (to) => beam(to, sentence, options)],
      ["Attention by layer and head", (to) => attention(to, sentence)],
      ["Pieces and ids", (to) => tokens(to, sentence)],
      ["Positions", (to) => positions(to, sentence)],
      ["Masks", (to) => masks(to, sentence)],
      ["Shapes of tensors", (to) => tensors(to, sentence)],
    ];
    for (const [title, draw] of sections) {
      const holder = make("div", {});
      element.append(make("section", {}, make("h3", {}, title), holder));
      draw(holder);
    }
  }

  globalThis.tfmViews = { all, attention, beam, film, links, masks, positions, probabilities, tensors, tokens, unpack };
})();
