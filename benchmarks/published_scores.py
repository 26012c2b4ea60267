"""Scores a run as papers on Multi30k do, beside the scores of `tfm validate`.

    pip install sacremoses
    python benchmarks/published_scores.py --run multi30k-en-de
    python benchmarks/published_scores.py --run multi30k-en-de --source test.en --reference test.de

The papers lower-case translations and references, split them into tokens with the Moses tokenizer, and
compute BLEU on these tokens (Wu et al. 2021 and the repositories that they build on). Such a BLEU is higher than
the cased BLEU of sacreBLEU, so the two must never be compared. The German references of test_2016_flickr have
12,102 tokens here; the papers count 12,103.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF
from sacremoses import MosesTokenizer

from transformer_cli.commands.streams.input_lines import opened_lines
from transformer_cli.data.selection import held_out_pairs
from transformer_cli.inference import load_run


def main() -> None:
    arguments = _parse_arguments()
    loaded = load_run(arguments.run, arguments.overrides or [], command="validate")
    if arguments.source:
        sources, references = _lines(arguments.source), _lines(arguments.reference)
    else:
        pairs = held_out_pairs(loaded.config, arguments.split)
        sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    translations = [found.text for found in loaded.translator.translate(sources)]
    language = loaded.config.data.target_language
    cased, chrf = BLEU(), CHRF()
    rows = {
        "BLEU, lower-cased, Moses tokens": _bleu_of_papers(translations, references, language),
        f"BLEU, cased, sacreBLEU ({_signature(cased, translations, references)})": cased.corpus_score(
            translations, [references]
        ).score,
        "chrF, sacreBLEU": chrf.corpus_score(translations, [references]).score,
    }
    sys.stdout.write("".join(f"{score:5.1f}  {name}\n" for name, score in rows.items()))


def _bleu_of_papers(translations: Sequence[str], references: Sequence[str], language: str) -> float:
    moses = MosesTokenizer(language)
    sides = [
        [moses.tokenize(line, return_str=True).lower() for line in lines]
        for lines in (translations, references)
    ]
    bleu = BLEU(tokenize="none", force=True)  # force: the text is split into tokens on purpose
    return bleu.corpus_score(sides[0], [sides[1]]).score


def _signature(bleu: BLEU, translations: Sequence[str], references: Sequence[str]) -> str:
    bleu.corpus_score(list(translations), [list(references)])
    return str(bleu.get_signature())


def _lines(path: Path) -> list[str]:
    with opened_lines(path) as batches:
        return [line for batch in batches for line in batch]


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Scores as in papers on Multi30k.")
    parser.add_argument("--run", help="name or folder of a run")
    parser.add_argument("--split", default="test", choices=["validation", "test"])
    parser.add_argument("--source", type=Path, help="a source text to score instead of a split")
    parser.add_argument("--reference", type=Path, help="the references of --source")
    parser.add_argument("--set", dest="overrides", action="append", metavar="FIELD=VALUE")
    return parser.parse_args()


if __name__ == "__main__":
    main()
