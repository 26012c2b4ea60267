"""Counts the words that a run loses when it translates long, listed, headed and marked text, without and with the guard and repairs.

    tfm train --config en-it.yaml
    python benchmarks/lost_text.py --run en-it

Short sentences of the validation split that the run translates as their references are put together to longer texts: eight
clauses with commas, conjunctions or semicolons, lists, headings with a dash, marks at the beginning, sentences in brackets. A
word of a reference that is missing in the translation of the whole is lost, because the run translates it right alone. The
count stands before (decoding.keep_text=false, decoding.repair=false) and after. For ordinary sentences, the last rows tell how often the guard
acts, and how much CPU time it takes: the two settings take turns, and each has its fastest turn.
"""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from transformer_cli.decoding import Translation, Translator
from transformer_cli.decoding.loading import load_run
from transformer_cli.evaluation.metrics import score_corpus
from transformer_cli.text.sentences import SeenLengths

NUM_TEXTS = 50
LONGEST_CLAUSE = 9  # words
Pair = tuple[str, str]


def inner(clause: str) -> str:
    """A sentence as a clause behind another one."""
    bare = clause.rstrip(".")
    return bare if bare.startswith(("I ", "I'")) else bare[0].lower() + bare[1:]


def joined(by: str) -> Callable[[Sequence[str]], str]:
    return lambda clauses: by.join([clauses[0].rstrip("."), *map(inner, clauses[1:])]) + "."


KINDS: dict[str, tuple[int, Callable[[Sequence[str]], str]]] = {
    "8 clauses, commas": (8, joined(", ")),
    "8 clauses, and": (8, joined(" and ")),
    "8 clauses, semicolons": (8, joined("; ")),
    "4 clauses, commas": (4, joined(", ")),
    "2 clauses, comma": (2, joined(", ")),
    "heading with a dash": (2, lambda two: f"{two[0].rstrip('.')} - {two[1].rstrip('.')}"),
    "... before the words": (1, lambda one: f"...{inner(one[0])}."),
    "! before the words": (1, lambda one: f"! {one[0]}"),
    "sentence in brackets": (2, lambda two: f"({two[0]}) {two[1]}"),
    "sentence with ellipsis": (2, lambda two: f"{two[0].rstrip('.')}… {two[1]}"),
}


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def texts_of(translator: Translator, sources: Sequence[str]) -> list[Translation]:
    return list(translator.translate(sources))


def known_clauses(translator: Translator, pairs: Sequence[Pair]) -> list[Pair]:
    """Short statements that the model translates as their references."""
    short = [
        pair for pair in dict.fromkeys(pairs) if pair[0].endswith(".") and 3 <= len(pair[0].split()) <= LONGEST_CLAUSE
    ]
    translations = texts_of(translator, [source for source, _ in short])
    return [pair for pair, found in zip(short, translations, strict=True) if found.text == pair[1]]


def row(translator: Translator, clauses: Sequence[Pair], kind: str) -> list[str]:
    """The share of words that are lost, and of texts that are divided or stay as they are."""
    number, join = KINDS[kind]
    groups = [clauses[first : first + number] for first in range(0, len(clauses), number)]
    groups = [group for group in groups if len(group) == number][:NUM_TEXTS]
    translations = texts_of(translator, [join([pair[0] for pair in group]) for group in groups])
    num_words = num_lost = 0
    for group, translation in zip(groups, translations, strict=True):
        wanted = words(" ".join(pair[1] for pair in group))
        num_words += wanted.total()
        # Words that stand in the source language are not lost, but they are not translated either.
        num_lost += (wanted - words(translation.text)).total()
    divided = sum(each.is_divided for each in translations)
    untranslated = sum(each.is_untranslated for each in translations)
    return [f"{num_lost / num_words:.1%}", str(divided), str(untranslated), str(len(groups))]


def list_row(translator: Translator, alone: Translator, pairs: Sequence[Pair]) -> list[str]:
    """The same for lists of English nouns, of which each is translated alone first: "We want the letter."."""
    found = re.findall(r"\bthe ([a-z]+)\b", " ".join(source for source, _ in pairs))
    items = [item for item, _ in Counter(found).most_common(20 * NUM_TEXTS)]
    answers = [words(each.text) for each in texts_of(alone, [f"We want the {item}." for item in items])]
    in_many = Counter(word for answer in answers for word in answer)
    # The verb and the articles stand in many answers; the one other word is the noun.
    own = [[word for word in answer if in_many[word] < len(items) / 20] for answer in answers]
    nouns = [(item, word[0]) for item, word in zip(items, own, strict=True) if len(word) == 1]
    groups = [nouns[first : first + 20] for first in range(0, len(nouns) - 19, 20)]
    texts = ["We want " + ", ".join(f"the {item}" for item, _ in group) + "." for group in groups]
    translations = texts_of(translator, texts)
    num_lost = sum(
        noun not in words(translation.text)
        for group, translation in zip(groups, translations, strict=True)
        for _, noun in group
    )
    divided = sum(each.is_divided for each in translations)
    untranslated = sum(each.is_untranslated for each in translations)
    share = num_lost / max(1, 20 * len(groups))
    return [f"{share:.1%}", str(divided), str(untranslated), str(len(groups))]


def seconds(translator: Translator, sources: Sequence[str]) -> float:
    started_at = time.process_time()
    texts_of(translator, sources)
    return time.process_time() - started_at


def main() -> None:
    parser = argparse.ArgumentParser(description="Count lost words.")
    parser.add_argument("--run", default="runs/en-it", help="name or folder of a run")
    parser.add_argument("--source", type=Path, help="ordinary sentences, instead of the validation split")
    parser.add_argument("--target", type=Path, help="their references")
    parser.add_argument("--set", action="append", default=[], help="a setting, such as decoding.engine=ctranslate2")
    parser.add_argument("--longest", type=int, help="tokens, instead of the length that the run has recorded")
    parser.add_argument("--smallest-ratio", type=float, help="likewise")
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    loaded = load_run(given.run, given.set)
    guarded = replace(loaded.translator, reports_lines=False)
    seen = guarded.pipeline.seen
    seen = SeenLengths(given.longest or seen.longest, given.smallest_ratio or seen.smallest_ratio)
    guarded = replace(guarded, pipeline=replace(guarded.pipeline, seen=seen))
    plain = load_run(given.run, [*given.set, "decoding.keep_text=false", "decoding.repair=false"]).translator
    plain = replace(plain, reports_lines=False)
    if given.source:
        sides = (path.read_text(encoding="utf-8").splitlines() for path in (given.source, given.target))
        pairs = list(zip(*sides, strict=True))
    else:
        from transformer_cli.data.pairs import ReadingReport
        from transformer_cli.data.sources.corpus import read_pairs

        found = read_pairs(loaded.config.data, "validation", seed=loaded.config.seed, report=ReadingReport())
        pairs = [(pair.source, pair.target) for pair in islice(found, 4000)]
    clauses = known_clauses(plain, pairs)
    sys.stdout.write(f"{seen}; {len(clauses)} clauses\n\n")
    sys.stdout.write(f"{'text':<24}{'lost before':>12}{'lost after':>12}{'divided':>9}{'kept':>6}{'texts':>7}\n")
    rows = {kind: (row(plain, clauses, kind), row(guarded, clauses, kind)) for kind in KINDS}
    rows["list of 20 nouns"] = list_row(plain, plain, pairs), list_row(guarded, plain, pairs)
    for kind, ([before, *_], after) in rows.items():
        lost, divided, kept, number = after
        sys.stdout.write(f"{kind:<24}{before:>12}{lost:>12}{divided:>9}{kept:>6}{number:>7}\n")
    sources = [source for source, _ in pairs]
    translations, originals = texts_of(guarded, sources), texts_of(plain, sources)
    references = [target for _, target in pairs]
    bleu = [
        score_corpus([each.text for each in side], references, ["bleu"])[0].value for side in (originals, translations)
    ]
    sys.stdout.write(
        f"\nordinary sentences: {len(sources)}, of which divided {sum(each.is_divided for each in translations)}, "
        f"kept {sum(each.is_untranslated for each in translations)}\n"
    )
    sys.stdout.write(f"BLEU: {bleu[0]:.2f} before, {bleu[1]:.2f} after\n")
    turns = [(seconds(plain, sources), seconds(guarded, sources)) for _ in range(given.turns)]
    without, with_guard = (min(side) for side in zip(*turns, strict=True))
    sys.stdout.write(f"CPU seconds: {without:.2f} before, {with_guard:.2f} after ({with_guard / without - 1:+.1%})\n")


if __name__ == "__main__":
    main()
