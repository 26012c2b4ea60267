"""Shows whether the promise of `tfm calibrate` is kept: calibrations on one half of a text, counted on the other half.

    python benchmarks/promise_of_green.py --run RUN --source dev.en --reference dev.it
    python benchmarks/promise_of_green.py --run RUN --source dev.en --reference dev.it --below 40 --share 0.1 \\
        --other news.en news.it                          # and a text of another kind, with a test for drift

The run must not have seen the text, and its checkpoint should not have been chosen with it. The text is translated once; then
`--splits` random halves follow. Printed are:

- in how many splits the share of bad translations among the green ones is larger than the promise, and in how many of them by
  more than chance (a binomial test, 5 %);
- the share of green translations, and that of a threshold on the mean log-probability alone, which is chosen by the same
  tests on the whole first half;
- planted errors: in good translations of the second half a number, a negation, a name, or a month or day of the week is
  changed by rules, or the translation is that of the source without one of its words, so that it has nothing for it. The model
  reads the changed text (no search), and the same estimate says whether it is green.

The rules for errors are for Italian, French and German targets.
"""

import argparse
import math
import random
import re
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from transformer_cli.decoding import ExplainingEngine, LineDetails, Request, Translation, Translator
from transformer_cli.decoding.checks.doubts import doubts_about
from transformer_cli.decoding.checks.omissions import with_omissions
from transformer_cli.decoding.checks.quality import (
    STATISTICS,
    Drift,
    Quality,
    QualityPromise,
    can_be_green,
    features_of,
)
from transformer_cli.decoding.checks.reverse_reading import read_in_reverse
from transformer_cli.decoding.loading import load_run
from transformer_cli.decoding.minimum_bayes_risk import agreements as agreements_of_texts
from transformer_cli.decoding.translation import PartDetails
from transformer_cli.evaluation.green import calibrated, chosen_threshold
from transformer_cli.evaluation.metrics import measure_corpus

NUM_ERRORS = 200
NUM_LOST_WORDS = 100


class Errors(NamedTuple):
    """How translations into a language are made wrong."""

    numbers: Sequence[str]
    names: Sequence[str]
    """Groups of words, as those of the numbers; a word of a text becomes another one of its group."""
    new_names: str
    """Words that may take the place of any name; if empty, those of its group do."""
    negation: str
    """Matches a negation; without it the sentence says the opposite. Its group is the first letter behind it."""
    negated: tuple[str, str]
    """A pattern, and what makes a negative sentence of it."""
    dates: Sequence[str] = ()
    """Groups of months and days of the week, as those of the numbers."""


ERRORS = {
    "it": Errors(
        ["due tre quattro cinque sei sette otto nove dieci venti trenta cento"],
        ["Tom Mary John Maria Boston Paris Italy Japan Ken Bob Jim Alice"],
        "Tom Mary John Maria Luca Anna Sara Marco Berlino Londra",
        r"\b[Nn]on (\w)",
        (r"\b(è|sono|ha|ho) ", r"non \1 "),
        [
            "gennaio febbraio marzo maggio giugno luglio settembre novembre dicembre",
            "lunedì martedì mercoledì giovedì venerdì sabato",
        ],
    ),
    "fr": Errors(
        ["deux trois quatre cinq six sept huit dix vingt trente cent"],
        ["Tom Mary John Marie Boston Paris Italie Japon Ken Bob Jim Alice"],
        "Tom Mary John Marie Luc Anne Sara Marc Berlin Londres",
        r"\bne (\w)",
        (r"\b(est|sont|ai|a|suis) ", r"n'\1 pas "),
        [
            "janvier février mars mai juin juillet septembre novembre décembre",
            "lundi mardi mercredi jeudi vendredi samedi dimanche",
        ],
    ),
    # Captions of pictures name nobody: one person becomes another one with the same article.
    "de": Errors(
        ["zwei drei vier fünf sechs sieben acht neun zehn zwölf", "Zwei Drei Vier Fünf Sechs"],
        [
            "Mann Junge Hund",
            "Frau Katze",
            "Männer Frauen Kinder Hunde",
        ],
        "",
        r"\bnicht (\w)|\bk(?=eine?n?\b)",
        (r"\b(ist|sind|steht|stehen|sitzt|sitzen|trägt|hat|spielt|spielen) ", r"\1 nicht "),
    ),
}
"""For each target language."""


class Scored(NamedTuple):
    """A translation with details, and its score against the reference."""

    translation: Translation
    score: float


class Half(NamedTuple):
    """What a calibration says about the other half of the text."""

    num: int
    num_green: int
    num_bad: int

    def breaks(self, share: float) -> bool:
        return self.num_bad > share * self.num_green

    def breaks_beyond_chance(self, share: float) -> bool:
        return self.breaks(share) and _upper_tail(self.num_green, self.num_bad, share) < 0.05


def _upper_tail(size: int, num_bad: int, share: float) -> float:
    """P(at least `num_bad` of `size`), each with the probability `share`."""
    return sum(math.comb(size, k) * share**k * (1 - share) ** (size - k) for k in range(num_bad, size + 1))


class Planted(NamedTuple):
    """A translation with an error, and the number of its line."""

    kind: str
    line: int
    text: str


def planted(rows: Sequence[Scored], below: float, language: str, dice: random.Random) -> list[Planted]:
    """Errors in good translations, as many of each kind as there are, at most `NUM_ERRORS` together."""
    found: dict[str, list[Planted]] = {"number": [], "negation": [], "name": [], "date": []}
    for line, (translation, score) in enumerate(rows):
        details = translation.details
        if score < below or details is None or len(details.parts) != 1:
            continue
        for kind, text in _changed(translation.text, ERRORS[language], dice):
            found[kind].append(Planted(kind, line, text))
    for each in found.values():
        dice.shuffle(each)
    in_turns = [one for turn in range(NUM_ERRORS) for each in found.values() for one in each[turn : turn + 1]]
    return in_turns[:NUM_ERRORS]


def with_lost_words(translator: Translator, rows: Sequence[Scored], below: float, dice: random.Random) -> list[Planted]:
    """Good translations that have nothing for one word of their sources: those of the sources without it, as far as they are others."""
    shorter = []
    for line, (translation, score) in enumerate(rows):
        words = translation.source.split()
        places = [number for number, word in enumerate(words[:-1]) if number and word.isalpha() and len(word) >= 5]
        details = translation.details
        if score >= below and details is not None and len(details.parts) == 1 and places:
            place = dice.choice(places)
            shorter.append((line, " ".join([*words[:place], *words[place + 1 :]])))
    chosen = dice.sample(shorter, min(len(shorter), NUM_LOST_WORDS))
    plain = replace(translator, estimates=False, reports_lines=False)
    found = zip(chosen, plain.translate([source for _, source in chosen]), strict=True)
    return [Planted("lost word", line, one.text) for (line, _), one in found if one.text != rows[line].translation.text]


def _changed(text: str, errors: Errors, dice: random.Random) -> list[tuple[str, str]]:
    """The text with one error of each kind that it has a place for."""
    changes = []
    groups = [("number", group, group) for group in errors.numbers]
    groups += [("name", group, errors.new_names or group) for group in errors.names]
    groups += [("date", group, group) for group in errors.dates]
    for kind, known, others in groups:
        places = [match for match in re.finditer(r"\w+", text) if match[0] in known.split()]
        if places:
            place = dice.choice(places)
            other = dice.choice([each for each in others.split() if each != place[0]])
            changes.append((kind, text[: place.start()] + other + text[place.end() :]))
    digits = list(re.finditer(r"\d+", text))
    if digits:
        place = dice.choice(digits)
        other = str(int(place[0]) + dice.choice([1, 2, 10]))
        changes.append(("number", text[: place.start()] + other + text[place.end() :]))
    without = re.sub(errors.negation, _without_negation, text, count=1)
    if without != text:
        changes.append(("negation", without))
    elif (negated := re.sub(*errors.negated, text, count=1)) != text:
        changes.append(("negation", negated))
    return changes


def _without_negation(found: re.Match[str]) -> str:
    behind = found[1] or ""
    return behind.upper() if found.start() == 0 else behind


def read_again(translator: Translator, rows: Sequence[Scored], errors: Sequence[Planted]) -> list[Translation]:
    """The texts with errors as translations with details: the model reads them, without a search."""
    engine, pipeline = translator.engine, translator.pipeline
    assert isinstance(engine, ExplainingEngine)
    sources, targets = [], []
    for error in errors:
        details = rows[error.line].translation.details
        assert details is not None
        sources.append(Request(details.parts[0].source_ids))
        targets.append(pipeline.target_ids(pipeline.normalize_target(error.text)))
    explanations = engine.explain(sources, targets, batch_tokens=translator.decoding.batch_tokens)
    agreements: Sequence[float | None] = [None] * len(errors)
    if translator.num_samples:
        texts = [error.text for error in errors]
        agreements = agreements_of_texts(translator, sources, texts, translator.num_samples)
    again = [
        replace(
            rows[error.line].translation,
            text=error.text,
            details=LineDetails((PartDetails(request.ids, target, explanation, agreement),), ()),
            doubts=doubts_about(rows[error.line].translation.source, error.text, pipeline.languages),
            estimate=None,
        )
        for error, request, target, explanation, agreement in zip(
            errors, sources, targets, explanations, agreements, strict=True
        )
    ]
    return with_omissions(translator, read_in_reverse(translator, again))


def is_green(quality: Quality, translation: Translation) -> bool:
    estimate = quality.estimate(translation)
    return estimate is not None and estimate.is_green


def counted(rows: Sequence[Scored], green: Sequence[bool], below: float) -> Half:
    bad = sum(row.score < below for row, is_marked in zip(rows, green, strict=True) if is_marked)
    return Half(len(rows), sum(green), bad)


def mean_log_probability(translation: Translation) -> float:
    features = features_of(translation)
    return float("-inf") if features is None else features["mean_log_prob"]


def threshold_alone(rows: Sequence[Scored], promise: QualityPromise) -> float:
    """The threshold on the mean log-probability alone, from the first half; infinite if none keeps the promise."""
    found = chosen_threshold(
        [mean_log_probability(row.translation) for row in rows],
        [row.score < promise.below for row in rows],
        promise,
    )
    return float("inf") if found is None else found


def translated(translator: Translator, source: Path, reference: Path, metric: str) -> list[Scored]:
    sources, references = (
        path.read_text(encoding="utf-8").removesuffix("\n").split("\n") for path in (source, reference)
    )
    translations = list(translator.translate(sources))
    texts = [each.text for each in translations]
    languages = translator.pipeline.languages
    [measured] = measure_corpus(texts, references, [metric], target_language=languages.target)
    return [Scored(each, measured.value([place])) for place, each in enumerate(translations)]


def calibrate(rows: Sequence[Scored], promise: QualityPromise, beam_size: int, num_samples: int) -> Quality | None:
    found = calibrated(
        [row.translation for row in rows],
        [row.score for row in rows],
        promise,
        conditions={"beam_size": beam_size, "sentences": len(rows)},
        num_samples=num_samples,
    )
    return None if found is None else found.quality


def summary(name: str, halves: Sequence[Half], share: float) -> str:
    green = [half.num_green / half.num for half in halves]
    bad = sum(half.num_bad for half in halves) / max(1, sum(half.num_green for half in halves))
    return (
        f"{name}: broken in {sum(half.breaks(share) for half in halves)} of {len(halves)} splits "
        f"({sum(half.breaks_beyond_chance(share) for half in halves)} beyond chance); green {statistics.mean(green):.1%} "
        f"({min(green):.1%} to {max(green):.1%}); nothing green in {sum(not half.num_green for half in halves)}; "
        f"bad among all green ones {bad:.1%}"
    )


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--other", type=Path, nargs=2, action="append", default=[], metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--metric", default="chrf")
    parser.add_argument("--below", type=float, nargs="+", default=[60.0])
    parser.add_argument("--share", type=float, nargs="+", default=[0.05])
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--certainty", type=float, default=0.95)
    parser.add_argument("--reverse", help="a run of the reverse direction, as of tfm calibrate --reverse")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    translator = load_run(options.run, options.set).translator
    pipeline = replace(translator.pipeline, qualities={})
    translator = replace(
        translator,
        pipeline=pipeline,
        estimates=True,
        num_samples=options.samples,
        reverse=options.reverse,
        reports_lines=False,
    )
    rows = translated(translator, options.source, options.reference, options.metric)
    others = [(path[0], translated(translator, path[0], path[1], options.metric)) for path in options.other]
    for below, share in zip(options.below, options.share, strict=True):
        promise = QualityPromise(options.metric, below, share, options.certainty)
        report(translator, rows, others, promise, options.splits)


def report(
    translator: Translator,
    rows: Sequence[Scored],
    others: Sequence[tuple[Path, Sequence[Scored]]],
    promise: QualityPromise,
    num_splits: int,
) -> None:
    below, beam_size = promise.below, translator.decoding.beam_size
    num_samples = translator.num_samples or 0
    say(
        f"\n{promise}; {len(rows)} sentences, of which {sum(row.score < below for row in rows) / len(rows):.1%} are bad"
    )
    errors = planted(rows, below, translator.languages.target, random.Random(1))
    errors += with_lost_words(translator, rows, below, random.Random(2))
    changed = read_again(translator, rows, errors)
    ours, baseline = [], []
    asked: Counter[str] = Counter()
    green_before: Counter[str] = Counter()
    green_after: Counter[str] = Counter()
    green_alone: Counter[str] = Counter()
    doubted: Counter[str] = Counter()
    for seed in range(num_splits):
        order = list(range(len(rows)))
        random.Random(1000 + seed).shuffle(order)
        first, second = order[: len(rows) // 2], order[len(rows) // 2 :]
        one, two = [rows[line] for line in first], [rows[line] for line in second]
        quality = calibrate(one, promise, beam_size, num_samples)
        if quality is None:
            sys.exit("too few sentences")
        ours.append(counted(two, [is_green(quality, row.translation) for row in two], below))
        least = threshold_alone(one, promise)
        alone = [mean_log_probability(row.translation) >= least for row in two]
        baseline.append(counted(two, alone, below))
        held_out = set(second)
        for error, translation in zip(errors, changed, strict=True):
            if error.line in held_out:
                asked[error.kind] += 1
                green_before[error.kind] += is_green(quality, rows[error.line].translation)
                green_after[error.kind] += is_green(quality, translation)
                green_alone[error.kind] += mean_log_probability(translation) >= least
                doubted[error.kind] += not can_be_green(translation)
    say(summary("estimate", ours, promise.share))
    say(summary("mean log-probability alone", baseline, promise.share))
    say(
        f"planted errors: {len(errors)} ({dict(Counter(error.kind for error in errors))}), each in about half of the splits"
    )
    for kind in (*asked, None):
        of_kind = [kind] if kind is not None else list(asked)
        num, before, after, by_alone, by_doubt = (
            sum(counts[each] for each in of_kind) for counts in (asked, green_before, green_after, green_alone, doubted)
        )
        say(
            f"  {kind or 'all'}: green {after / max(1, num):.1%} (without the error {before / max(1, num):.1%}; of those that were "
            f"green {after / max(1, before):.1%} still are); green by the log-probability alone {by_alone / max(1, num):.1%}; "
            f"a doubt about {by_doubt / max(1, num):.1%}"
        )
    quality = calibrate(rows, promise, beam_size, num_samples)
    assert quality is not None
    for path, of_path in (*others, (Path("the text itself"), rows)):
        drift = Drift(quality)
        drift.add(row.translation for row in of_path)
        green = counted(of_path, [is_green(quality, row.translation) for row in of_path], below)
        differences = {STATISTICS[name]: round(one, 2) for name, one in drift.differences().items()}
        of_green = green.num_bad / max(1, green.num_green)
        say(
            f"{path.name} with the calibration of the whole text: green {green.num_green / green.num:.1%}, of which {of_green:.1%} "
            f"are bad; drift: {differences or 'none'}"
        )


if __name__ == "__main__":
    main()
