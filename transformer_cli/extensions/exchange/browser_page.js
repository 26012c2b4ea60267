"use strict";
/* In place of a server: this answers what the page asks, with an engine in a worker of this browser. */
window.tfmLocal = (() => {
const FACTS = JSON.parse(document.getElementById("facts").textContent);
const SIZES = [1, 2, 4], SIZE = 8;  // the first line is answered soon; later ones are translated together, which takes less time for each

/* ---- Files: scripts that call tfmTake, because a page that was opened from a disk may read nothing else ---- */
const takers = new Map();
window.tfmTake = (name, content) => takers.get(name)?.(content);

const damaged = (name, problem) => new Error(`The file files/${name}.js ${problem}: copy the whole folder again.`);

/** The content of a file, as base64 of gzip. */
function scripted(name) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    let content = null;
    takers.set(name, (found) => { content = found; });
    script.onload = () => {
      script.remove();
      if (content === null) reject(damaged(name, "is damaged")); else resolve(content);
      content = null;
    };
    script.onerror = () => { script.remove(); reject(damaged(name, "is missing")); };
    script.src = `files/${name}.js?${FACTS.files[name]}`;
    document.head.append(script);
  });
}

async function read(name) {
  const packed = await scripted(name);
  try {
    const text = atob(packed), bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(unpacked).arrayBuffer());
  } catch { throw damaged(name, "is damaged"); }
}

/* ---- The engine ---- */
let files = null, engine = null, queue = Promise.resolve();

async function readAll() {
  const names = Object.keys(FACTS.files), contents = await Promise.all(names.map(read));
  return Object.fromEntries(names.map((name, number) => [name, contents[number]]));
}

/** A worker with the model. `call` gives the promise of an answer. */
async function started() {
  if (!window.WebAssembly || !window.DecompressionStream) throw new Error("This browser is too old for this page: it must be of 2023 or newer.");
  files ??= readAll();
  files.catch(() => { files = null; });
  const { program, wasm, model: weights, vocabulary, target_vocabulary: ofTarget, shortlist = new Uint8Array() } = await files;
  const address = URL.createObjectURL(new Blob([program], { type: "text/javascript" })), worker = new Worker(address);
  const call = (name, value) => new Promise((resolve, reject) => {
    const failed = (message) => { stop(); reject(new Error(`The translator in this page has stopped: ${message}`)); };
    worker.onmessage = ({ data }) => { if (data.error === undefined) resolve(data.result); else failed(data.error); };
    worker.onerror = (event) => { event.preventDefault(); failed(event.message ?? "no worker can be started"); };
    worker.postMessage({ name, value });
  });
  const stop = () => { worker.terminate(); engine = null; };
  await call("open", { wasm, weights, vocabularies: ofTarget ? [vocabulary, ofTarget] : [vocabulary], shortlist });
  URL.revokeObjectURL(address);
  return call;
}
function theEngine() {
  engine ??= started();
  engine.catch(() => { engine = null; });
  return engine;
}

/** The sentences of each line; one request after the other. */
function translated(lines) {
  const found = queue.then(async () => (await theEngine())("translate", lines));
  queue = found.catch(() => {});
  return found;
}

/* ---- Answers ---- */
const json = (value, status = 200) => new Response(JSON.stringify(value), { status });
const characters = (string) => { let number = 0; for (const _ of string) number++; return number; };
/** Where the words of a text stand, in characters. */
function words(string) {
  let at = 0, place = 0;
  const to = (end) => { place += characters(string.slice(at, end)); at = end; return place; };
  return [...string.matchAll(/\S+/g)].map((one) => [to(one.index), to(one.index + one[0].length)]);
}

/** What a server would send for a text: the beginning, each sentence with its places, the end. */
async function* events(text, signal) {
  yield { type: "start", source: FACTS.source.code, target: FACTS.target.code };
  const lines = text.split("\n");
  let whole = "", gap = "", start = 0, startThere = 0, index = 0;
  for (let at = 0, turn = 0; at < lines.length; turn++) {
    const size = SIZES[turn] ?? SIZE, some = lines.slice(at, at + size), full = some.filter((line) => line.trim());
    const found = full.length ? await translated(full) : [];
    if (signal?.aborted) return;
    for (const line of some) {
      if (at++) { gap += "\n"; start++; }
      const sentences = line.trim() ? found.shift() : [];
      let place = 0;
      for (const sentence of sentences) {
        const own = line.slice(sentence.start, sentence.end), before = gap + sentence.before;
        start += characters(line.slice(place, sentence.start));
        startThere += characters(before);
        const end = start + characters(own), endThere = startThere + characters(sentence.target);
        yield { type: "sentence", index: index++, before, links: [],
          source: { text: own, start, end, words: words(own) }, target: { text: sentence.target, start: startThere, end: endThere, words: words(sentence.target) } };
        [start, startThere, place, gap] = [end, endThere, sentence.end, ""];
        whole += before + sentence.target;
      }
      start += characters(line.slice(place));
    }
  }
  yield { type: "end", after: gap, translatedText: whole + gap };
}

function streamed(text, signal) {
  const found = events(text, signal), encoder = new TextEncoder();
  const send = (to, value) => to.enqueue(encoder.encode(JSON.stringify(value) + "\n"));
  return new Response(new ReadableStream({
    async pull(to) {
      try {
        const { done, value } = await found.next();
        if (done) to.close(); else send(to, value);
      } catch (error) {
        send(to, { type: "error", error: error.message, status: 500 });
        to.close();
      }
    },
  }));
}

const ANSWERS = {
  async languages() {
    await theEngine();
    return json([{ ...FACTS.source, targets: [FACTS.target.code] }, { ...FACTS.target, targets: [] }]);
  },
  "frontend/settings": () => json({ charLimit: -1, filesTranslation: false, supportedFilesFormat: [], language: { source: FACTS.source, target: FACTS.target } }),
  translate_stream: ({ q }, signal) => streamed(q, signal),
};

/* ---- The page: what only a server can do is not offered ---- */
for (const element of document.querySelectorAll("[data-served]")) element.hidden = true;
document.querySelector("footer").textContent = "Texts do not leave this browser, and neither does the history. No network is needed.";
document.querySelector("#help p").textContent = "The text is translated while you write, by a small model inside this page.";

return {
  /** The answer to a request of the page, as of a server. */
  async answer(path, body, signal) {
    try { return await ANSWERS[path](body, signal); }
    catch (error) { return json({ error: error.message }, 500); }
  },
};
})();
