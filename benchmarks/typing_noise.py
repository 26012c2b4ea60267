"""Measures how well runs translate sources as people type them: BLEU of a test split after each kind of change.

    tfm train --config multi30k-en-de.yaml --set data.root=PATH --set name=plain
    tfm train --config multi30k-en-de.yaml --set data.root=PATH --set name=noise --set training.noise.capitals=0.05 ...
    python benchmarks/typing_noise.py --run plain --run noise --data-root PATH

Every source is changed, in the way of `training.noise`, with a fixed seed. The references stay as they are. BLEU is
lower-cased, because a source in capital letters may rightly get a translation in capital letters.
"""

import argparse
import logging
import sys
from random import Random

from sacrebleu.metrics.bleu import BLEU

from transformer_cli import Translator, load_config, load_translator
from transformer_cli.checkpoint.trained_files import find_run
from transformer_cli.config import DecodingConfig, FilesData, NoiseConfig
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.text.sampling import with_noise

SEED = 1
ALWAYS = 1.0 - 2**-40
CHANGES = {
    "as it is": None,
    "capital letters": NoiseConfig(capitals=ALWAYS),
    "small letters": NoiseConfig(small_letters=ALWAYS),
    "no accents": NoiseConfig(missing_accents=ALWAYS),
    "typographic marks": NoiseConfig(typographic_marks=ALWAYS),
    "no mark at the end": NoiseConfig(missing_end=ALWAYS),
    "typing errors, 10 % of the words": NoiseConfig(typos=0.1),
}


def main() -> None:
    """Print a table: one row for each change of the sources, one column for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--run", action="append", required=True, help="name or folder of a run")
    parser.add_argument("--data-root", help="the folder of the corpus")
    parser.add_argument("--num-sentences", type=int, help="the first sentences of the test split")
    parser.add_argument("--beam-size", type=int, default=5)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    decoding = DecodingConfig(beam_size=arguments.beam_size)
    translators = {run: load_translator(run, decoding=decoding) for run in arguments.run}
    pairs = _test_pairs(arguments.run[0], arguments.data_root)[: arguments.num_sentences]
    width, metric = max(map(len, CHANGES)), BLEU(lowercase=True)
    columns = [max(16, len(run) + 2) for run in translators]
    heading = "".join(f"{run:>{column}}" for run, column in zip(translators, columns, strict=True))
    _print(f"{'source':{width}}  changed{heading}")
    for name, noise in CHANGES.items():
        sources = [pair.source if noise is None else _changed(pair, noise) for pair in pairs]
        num_changed = sum(source != pair.source for source, pair in zip(sources, pairs, strict=True))
        scores = [_bleu(metric, one, sources, pairs) for one in translators.values()]
        row = "".join(f"{score:{column}.1f}" for score, column in zip(scores, columns, strict=True))
        _print(f"{name:{width}}  {num_changed / len(pairs):7.0%}{row}")
    _print(f"BLEU of {len(pairs):,} sentences: {metric.get_signature()}")


def _test_pairs(run: str, root: str | None) -> list[SentencePair]:
    config = load_config(find_run(run) / "config.yaml")
    data = config.data
    if root is not None and isinstance(data, FilesData):
        data = data.model_copy(update={"root": root})
    return list(read_pairs(data, "test", seed=config.seed, report=ReadingReport()))


def _changed(pair: SentencePair, noise: NoiseConfig) -> str:
    # The same random numbers for a sentence, wherever it stands in the split.
    return with_noise(pair.source, pair.target, noise, Random(f"{SEED} {pair.source}"))[0]


def _bleu(metric: BLEU, translator: Translator, sources: list[str], pairs: list[SentencePair]) -> float:
    texts = [translation.text for translation in translator.translate(sources)]
    references = [[pair.target for pair in pairs]]
    return float(metric.corpus_score(texts, references).score)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
