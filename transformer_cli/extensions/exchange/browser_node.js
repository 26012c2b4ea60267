/* Translates with the scripts of a folder in Node, as the page does in a browser: a JSON list of texts in, one of translations out. */
const { readFileSync, existsSync } = require("node:fs"), { gunzipSync } = require("node:zlib"), { join } = require("node:path");
const folder = process.argv[1], texts = JSON.parse(readFileSync(0, "utf-8"));
const files = {};
global.require = require;
global.tfmTake = (name, content) => { files[name] = gunzipSync(Buffer.from(content, "base64")); };
for (const name of ["program", "wasm", "model", "vocabulary", "target_vocabulary", "shortlist"]) {
  const path = join(folder, `${name}.js`);
  if (existsSync(path)) (0, eval)(readFileSync(path, "utf-8"));
}
(0, eval)(files.program.toString("utf-8"));
const { program, wasm, model: weights, vocabulary, target_vocabulary: ofTarget, shortlist = new Uint8Array() } = files;
/* A text of many lines would be one text for the engine; each line is one sentence or several. */
tfmEngine.open({ wasm, weights, vocabularies: ofTarget ? [vocabulary, ofTarget] : [vocabulary], shortlist }).then(() => {
  const written = [];
  for (let at = 0; at < texts.length; at += 16)
    for (const sentences of tfmEngine.translate(texts.slice(at, at + 16))) written.push(sentences.map((one) => one.before + one.target).join(""));
  process.stdout.write(JSON.stringify(written), () => process.exit(0));
}).catch((error) => { console.error("Error: " + (error.message ?? error)); process.exit(1); });
