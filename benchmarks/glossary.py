"""Measures a glossary: how often its terms are in translations with and without it, BLEU, and seconds.

    tfm train --config multi30k-en-de.yaml --set data.root=PATH
    python benchmarks/glossary.py --run multi30k-en-de --data-root PATH

The glossary is made from the run's own corpus: frequent words of the test split, each with the word of the training
split that stands most often in the same pairs (the Dice coefficient). It is printed, with the figures. The reference
translations are right with other words, too, so BLEU shows what forced words cost, not whether they are good.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from transformer_cli import Translator, load_config, load_translator
from transformer_cli.checkpoint.trained_files import find_run
from transformer_cli.config import Config, DecodingConfig, FilesData, SplitName
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.decoding import Glossary, Translation
from transformer_cli.decoding.glossary import RequiredTerm, applied_terms, word_sequence
from transformer_cli.evaluation import score_corpus

# Words that stand in more than this share of the training pairs are articles and prepositions.
MAX_SHARE = 0.1
MIN_DICE = 0.5


def main() -> None:
    """Print a glossary and the figures of translating the test split with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--run", required=True, help="name or folder of a run")
    parser.add_argument("--data-root", help="the folder of the corpus")
    parser.add_argument("--num-terms", type=int, default=50)
    parser.add_argument("--num-sentences", type=int, help="the first sentences of the test split only")
    parser.add_argument("--beam-size", type=int)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    config = load_config(find_run(arguments.run) / "config.yaml")
    train = _pairs(config, arguments.data_root, "train")
    test = _pairs(config, arguments.data_root, "test")[: arguments.num_sentences]
    terms = glossary_of(train, test, arguments.num_terms)
    sys.stdout.write("".join(f"{source}\t{target}\n" for source, target in terms.items()))
    decoding = config.decoding
    if arguments.beam_size:
        decoding = DecodingConfig(**decoding.model_dump() | {"beam_size": arguments.beam_size})
    report(load_translator(arguments.run, decoding=decoding), terms, test)


def _pairs(config: Config, root: str | None, split: SplitName) -> list[SentencePair]:
    data = config.data
    if root is not None and isinstance(data, FilesData):
        data = data.model_copy(update={"root": root})
    return list(read_pairs(data, split, seed=config.seed, report=ReadingReport()))


def glossary_of(train: Sequence[SentencePair], test: Sequence[SentencePair], num_terms: int) -> dict[str, str]:
    """The words of the test split with most occurrences that have a clear translation."""
    sources, targets, both = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    frequent = {word for word, _ in _counts(test).most_common(10 * num_terms)}
    for pair in train:
        source_words, target_words = _words(pair.source), _words(pair.target)
        sources.update(source_words)
        targets.update(target_words)
        both.update((word, other) for word in source_words & frequent for other in target_words)
    best: dict[str, tuple[float, str]] = {}
    for (word, other), count in both.items():
        dice = 2 * count / (sources[word] + targets[other])
        best[word] = max(best.get(word, (0.0, "")), (dice, other))
    limit = MAX_SHARE * len(train)
    chosen = [
        word
        for word, _ in _counts(test).most_common()
        if word in best and best[word][0] >= MIN_DICE and sources[word] <= limit
    ]
    return {word: best[word][1] for word in chosen[:num_terms]}


def _counts(pairs: Sequence[SentencePair]) -> Counter[str]:
    return Counter(chain.from_iterable(_words(pair.source) for pair in pairs))


def _words(text: str) -> set[str]:
    """The different words of a sentence without its first, whose capital letter may mean nothing."""
    return {word for word in word_sequence(text)[1:] if len(word) > 2 and word.isalpha()}


def report(translator: Translator, terms: dict[str, str], test: Sequence[SentencePair]) -> None:
    """Print the figures with and without the glossary."""
    with_glossary = translator.with_glossary(Glossary.of(terms))
    lines = [pair.source for pair in test]
    references = [pair.target for pair in test]
    required = [_required(with_glossary, line) for line in lines]
    num_lines, num_terms = sum(map(bool, required)), sum(map(len, required))
    sys.stdout.write(f"{num_lines} of {len(lines)} sentences have terms, {num_terms} in all\n")
    list(translator.translate(lines[:100]))  # warms up
    for name, each in (("without", translator), ("with", with_glossary)):
        for what, some in (("", range(len(lines))), (" (terms)", _places(required))):
            started_at = time.perf_counter()
            translations = list(each.translate(lines[place] for place in some))
            seconds = time.perf_counter() - started_at
            _show(
                f"{name}{what}",
                translations,
                [required[place] for place in some],
                [references[place] for place in some],
                seconds,
            )


def _places(required: Sequence[Sequence[RequiredTerm]]) -> list[int]:
    return [place for place, of_line in enumerate(required) if of_line]


def _show(
    name: str,
    translations: Sequence[Translation],
    required: Sequence[Sequence[RequiredTerm]],
    references: Sequence[str],
    seconds: float,
) -> None:
    applied = [
        applied_terms(translation.text, of_line) for translation, of_line in zip(translations, required, strict=True)
    ]
    num_terms = sum(term.is_applied for of_line in applied for term in of_line)
    num_lines = sum(bool(of_line) and all(term.is_applied for term in of_line) for of_line in applied)
    texts = [translation.text for translation in translations]
    [bleu] = score_corpus(texts, references, ["bleu"])
    sys.stdout.write(
        f"{name:16} {num_terms} terms kept, in {num_lines} sentences all; "
        f"BLEU {bleu.value:.2f}; {seconds:.1f} s, {1e3 * seconds / len(texts):.0f} ms per sentence\n"
    )


def _required(translator: Translator, line: str) -> list[RequiredTerm]:
    return list(chain.from_iterable(translator.pipeline.prepare(line).terms))


if __name__ == "__main__":
    main()
