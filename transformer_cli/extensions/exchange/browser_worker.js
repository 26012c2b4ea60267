/* The translator in a worker of a browser, or in Node: texts in, sentences with their places out. This file stands before
   bergamot-translator-worker.js of the package @browsermt/bergamot-translator, which reads `Module`. */
var Module = {};
var tfmEngine = (() => {
"use strict";
/* Products of matrices in int8: their names outside the engine, and those of the engine's own functions. */
const PRODUCTS = {
  int8_prepare_a: "int8PrepareAFallback",
  int8_prepare_b: "int8PrepareBFallback",
  int8_prepare_b_from_transposed: "int8PrepareBFromTransposedFallback",
  int8_prepare_b_from_quantized_transposed: "int8PrepareBFromQuantizedTransposedFallback",
  int8_prepare_bias: "int8PrepareBiasFallback",
  int8_multiply_and_add_bias: "int8MultiplyAndAddBiasFallback",
  int8_select_columns_of_b: "int8SelectColumnsOfBFallback",
};
/* The longest piece of a sentence, in tokens: a longer sentence is cut, because the model has not learned such ones. */
const SETTINGS = `beam-size: 1
normalize: 1.0
word-penalty: 0
cpu-threads: 0
gemm-precision: int8shiftAlphaAll
skip-cost: true
quiet: true
quiet-translation: true
max-length-break: 128
mini-batch-words: 1024
workspace: 64
max-length-factor: 2.0
`;
let instantiate = null, service = null, model = null;
Module.print = Module.printErr = () => {};
Module.instantiateWasm = (info, accept) => {
  const products = Object.entries(PRODUCTS).map(([name, own]) => [name, (...numbers) => Module.asm[own](...numbers)]);
  instantiate = (wasm) => WebAssembly.instantiate(wasm, { ...info, wasm_gemm: Object.fromEntries(products) }).then(({ instance }) => accept(instance));
  return {};
};
const running = new Promise((resolve, reject) => {
  Module.onRuntimeInitialized = resolve;
  Module.onAbort = (reason) => reject(new Error(String(reason)));
});

/** A copy of bytes in the memory of the engine. */
function inEngine(bytes, alignment) {
  const memory = new Module.AlignedMemory(bytes.length, alignment);
  memory.getByteArrayView().set(bytes);
  return memory;
}

/** Start the engine with a model. All values are Uint8Arrays, `vocabularies` is a list of one or two; `shortlist` may be empty. */
async function open({ wasm, weights, vocabularies, shortlist }) {
  await Promise.all([instantiate(wasm), running]);
  service = new Module.BlockingService({ cacheSize: 0 });
  const list = new Module.AlignedMemoryList();
  for (const one of vocabularies) list.push_back(inEngine(one, 64));
  model = new Module.TranslationModel(SETTINGS, inEngine(weights, 256), inEngine(shortlist, 64), list, null);
}

/** For each text its sentences: where each stands in the text (start, end), its translation (target), and what stands before
    it in the translation of the text (before). Places are those of JavaScript strings. */
function translate(texts) {
  // Half of a surrogate pair is no character, and has no bytes in UTF-8.
  const whole = texts.map((text) => text.replace(/[\ud800-\udfff]/gu, "\ufffd"));
  const input = new Module.VectorString(), options = new Module.VectorResponseOptions();
  for (const text of whole) {
    input.push_back(text);
    options.push_back({ alignment: false, html: false, qualityScores: false });
  }
  const responses = service.translate(model, input, options);
  const found = whole.map((text, number) => sentencesOf(responses.get(number), text));
  for (const one of [responses, input, options]) one.delete();
  return found;
}

function sentencesOf(response, text) {
  const [original, translated] = [text, response.getTranslatedText()].map((one) => new TextEncoder().encode(one));
  const piece = (bytes, start, end) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(start, end));
  const sentences = [];
  let start = 0, startInBytes = 0, endBefore = 0;
  for (let number = 0; number < response.size(); number++) {
    const place = response.getSourceSentence(number), placeThere = response.getTranslatedSentence(number);
    start += piece(original, startInBytes, place.begin).length;
    const end = start + piece(original, place.begin, place.end).length;
    const before = piece(translated, endBefore, placeThere.begin), target = piece(translated, placeThere.begin, placeThere.end);
    sentences.push({ start, end, before, target });
    start = end;
    startInBytes = place.end;
    endBefore = placeThere.end;
  }
  return sentences;
}

const answers = { open, translate };
if (typeof WorkerGlobalScope !== "undefined") {
  self.onmessage = async ({ data: { name, value } }) => {
    try { self.postMessage({ result: await answers[name](value) }); }
    catch (error) { self.postMessage({ error: error.message ?? String(error) }); }
  };
}
return answers;
})();
