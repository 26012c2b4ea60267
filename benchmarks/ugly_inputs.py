"""Counts what a run does to two thousand ugly inputs, without and with `decoding.repair`, and what the repair costs clean text.

    tfm train --config en-it.yaml
    python benchmarks/ugly_inputs.py --run en-it
    python benchmarks/ugly_inputs.py --run en-it --set decoding.engine=ctranslate2     # the same weights in CTranslate2's search
    python benchmarks/ugly_inputs.py --run en-it --beside                              # how many fail, beside plain searches of both engines
    python benchmarks/ugly_inputs.py --run en-it --beside --write in.txt               # ... and the inputs, one on a line, for another program
    python benchmarks/ugly_inputs.py --run en-it --beside --read marian=out.txt        # ... and what that program has made of them
    python benchmarks/ugly_inputs.py --run en-it --inputs more.jsonl                   # inputs that somebody else wrote
    python benchmarks/ugly_inputs.py --run en-it --clean --turns 9                    # only what the repair costs clean text
    python benchmarks/ugly_inputs.py --run en-it --only benchmarks/ugly_inputs_more.jsonl.gz --green   # these alone, and which are green

Rules with a written seed make the inputs from sentences of the validation split that the run translates as their references:
so it is known which words must stand in the translation of the ugly form. A judge of its own for each kind, not the checks of
`decoding.doubts`, says whether a translation fails. These are the first thousand. The second thousand, in ugly_inputs.jsonl.gz, for English to
Italian, was made by rules of somebody who had not seen those of `decoding.doubts`, nor anybody the other way round. So were the 1,100
of ugly_inputs_more.jsonl.gz, later; the last hundred are what people say in one or two words, with its translation. A line of --inputs is an object with `kind`, `source` and what must hold:
`words` (most of them stand in the translation), `keeps` (texts that stand in it unchanged), `most_words`, `fewest_words`.

A failure is repaired if the translation with repair does not fail; it is flagged if the translation has doubts or says that
text was left as it is. For clean text, the last rows say how many translations are flagged and changed, and the CPU time in turns.
"""

import argparse
import gc
import gzip
import json
import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from transformer_cli.data.pairs import ReadingReport
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.decoding import Translation, Translator
from transformer_cli.decoding.loading import load_run
from transformer_cli.evaluation.metrics import score_corpus

SEED = 5
NUM_OF_KIND = 50
ENOUGH = 0.6  # the share of the words of a reference that a translation must have
PLAIN = [
    f"decoding.{name}=false" for name in ("repair", "keep_text", "keep_layout", "split_sentences", "known_spellings")
]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Ugly:
    """An input, and what its translation must be like."""

    kind: str
    source: str
    words: str = ""
    """The words of this text stand in the translation, most of them."""
    keeps: tuple[str, ...] = ()
    """These texts stand in the translation as they are."""
    fewest_words: int = 0
    most_words: int = 10_000

    def fails(self, translation: str) -> bool:
        """Whether a translation breaks what must hold."""
        found = words(translation)
        wanted = words(self.words)
        lost = (wanted - found).total()
        return (
            lost > (1 - ENOUGH) * wanted.total()
            or not self.fewest_words <= found.total() <= self.most_words
            or any(text not in translation for text in self.keeps)
        )


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def at_most(text: str, factor: float = 1.5) -> int:
    return round(factor * words(text).total()) + 2


Rule = Callable[[random.Random, Sequence[Pair]], Ugly]
RULES: dict[str, Rule] = {}


def rule(kind: str) -> Callable[[Callable[[random.Random, Sequence[Pair]], Ugly]], Rule]:
    def register(make: Rule) -> Rule:
        RULES[kind] = make
        return make

    return register


def like(kind: str, source: str, target: str, **more: object) -> Ugly:
    """An input whose translation has the words of a known one, and few others."""
    return Ugly(kind, source, words=target, most_words=at_most(target), **more)  # type: ignore[arg-type]


@rule("capitals")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    source, target = dice.choice(pairs)
    return like("capitals", source.rstrip(".").upper(), target)


@rule("typing error")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    source, target = dice.choice(pairs)
    place = dice.randrange(1, len(source) - 2)
    swapped = source[:place] + source[place + 1] + source[place] + source[place + 2 :]
    return like("typing error", swapped, target)


@rule("no spaces after marks")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    (one, first), (two, second) = dice.sample(pairs, 2)
    return like("no spaces after marks", one.rstrip(".") + "," + two, f"{first} {second}")


@rule("marks in rows")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    source, target = dice.choice(pairs)
    return like(
        "marks in rows",
        source.rstrip(".") + dice.choice(("!!!!!!!!", "?!?!?!", "......", " ;-) :-)")),
        target,
    )


@rule("empty brackets")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    source, target = dice.choice(pairs)
    cut = source.split()
    cut.insert(dice.randrange(1, len(cut)), dice.choice(("()", "[]", "( )", '""', "«»")))
    return like("empty brackets", " ".join(cut), target)


@rule("one word many times")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    word = dice.choice(re.findall(r"[a-z]{3,}", dice.choice(pairs)[0].lower()) or ["red"])
    return Ugly("one word many times", " ".join([word] * 20), fewest_words=10, most_words=45)


@rule("a sentence said three times")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    source, target = dice.choice(pairs)
    return like("a sentence said three times", " ".join([source] * 3), " ".join([target] * 3))


@rule("words said twice")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    source, target = dice.choice(pairs)
    doubled = " ".join(f"{word} {word}" for word in source.rstrip(".").split())
    return Ugly("words said twice", doubled, words=target, most_words=at_most(target, 2.5))


@rule("300 words")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    some = dice.sample(pairs, min(45, len(pairs)))
    source = ", ".join(one.rstrip(".") for one, _ in some) + "."
    return like("300 words", source, " ".join(two for _, two in some))


@rule("no marks at all")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    some = dice.sample(pairs, 3)
    source = " ".join(one.rstrip(".").lower() for one, _ in some)
    return like("no marks at all", source, " ".join(two for _, two in some))


@rule("number")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    number = dice.choice(("17", "1234", "99", "3.75", "2,500", "2026", "0041", "1/2", "-12", "50%", "14:35", "1e6"))
    noun = dice.choice(("apples", "cars", "houses", "people", "tickets"))
    text = dice.choice(("I see {n} {w}.", "There are {n} {w}.", "We have {n} {w}.", "{n} {w} are here."))
    return Ugly("number", text.format(n=number, w=noun), keeps=(number,), most_words=12)


@rule("number alone")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    number = dice.choice(("42", "1,000,000", "+39 055 123", "12/11/2026", "§ 7", "N° 5", "3 x 4", "1.2.3"))
    return Ugly("number alone", number, keeps=tuple(re.findall(r"\d+", number)), most_words=6)


@rule("random characters")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    letters = [
        "".join(dice.choice("bcdfghjklmnpqrstvwxz") for _ in range(dice.randrange(3, 9)))
        for _ in range(dice.randrange(1, 6))
    ]
    return Ugly("random characters", " ".join(letters), keeps=tuple(letters))


@rule("another script")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    text = dice.choice(
        (
            "Где находится вокзал?",
            "駅はどこですか。",
            "Πού είναι τα τρένα;",
            "أين المحطة؟",
            "역이 어디에 있어요?",
            "स्टेशन कहाँ है?",
        )
    )
    return Ugly("another script", text, keeps=(text[:5],))


@rule("a word of another script")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    source, target = dice.choice(pairs)
    word = dice.choice(("вокзал", "東京", "σταθμός", "שלום"))
    return like("a word of another script", f"{source.rstrip('.')} {word}.", target, keeps=(word,))


@rule("another language")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    text = dice.choice(
        (
            "Der Bahnhof ist heute geschlossen.",
            "Wo ist der nächste Supermarkt?",
            "La estación está cerrada hoy.",
            "¿Dónde está el supermercado?",
            "Gdzie jest najbliższy sklep?",
            "Lorem ipsum dolor sit amet, consectetur adipiscing elit.",
        )
    )
    return Ugly("another language", text, keeps=(text.split()[2],))


@rule("code")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    text = dice.choice(
        (
            "if (x > 0) { return y; }",
            "for i in range(10): print(i)",
            "SELECT name FROM users;",
            "git commit -m fix",
            "<div class='a'></div>",
        )
    )
    return Ugly("code", text, keeps=tuple(re.findall(r"\w{2,}", text)[:3]))


@rule("negation")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    known = [pair for pair in pairs if re.search(r"\bnot\b|n't\b", pair[0]) and "non" in words(pair[1])]
    source, target = dice.choice(known or list(pairs))
    source = source.replace("n't", " not")
    return like(
        "negation",
        f"Well, {source[0].lower()}{source[1:]}",
        target,
        keeps=("non",) if known else (),
    )


@rule("one word")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    word = dice.choice(re.findall(r"[a-z]{3,}", dice.choice(pairs)[0].lower()) or ["red"])
    return Ugly("one word", word, fewest_words=1, most_words=4)


@rule("list of words")
def _(dice: random.Random, pairs: Sequence[Pair]) -> Ugly:
    found = re.findall(r"[a-z]{4,}", " ".join(source for source, _ in dice.sample(pairs, 12)).lower())
    some = dice.sample(found, 8)
    return Ugly("list of words", ", ".join(some), fewest_words=6, most_words=24)


def ugly_inputs(pairs: Sequence[Pair]) -> list[Ugly]:
    """`NUM_OF_KIND` inputs of each kind."""
    dice = random.Random(SEED)
    return [make(dice, pairs) for make in RULES.values() for _ in range(NUM_OF_KIND)]


def known_pairs(translator: Translator, pairs: Sequence[Pair]) -> list[Pair]:
    """Statements of five to nine words that the model translates as their references."""
    short = [p for p in dict.fromkeys(pairs) if p[0].endswith(".") and 4 <= len(p[0].split()) <= 9]
    found = translator.translate([source for source, _ in short])
    return [pair for pair, each in zip(short, found, strict=True) if each.text == pair[1]]


def is_flagged(translation: Translation) -> bool:
    return bool(translation.doubts) or translation.is_untranslated


def table(inputs: Sequence[Ugly], before: Sequence[Translation], after: Sequence[Translation]) -> list[str]:
    lines = [
        f"{'kind':<30}{'inputs':>7}{'fail before':>13}{'fail after':>12}{'repaired':>10}{'or flagged':>12}{'broken':>8}"
    ]
    kinds = [*dict.fromkeys(each.kind for each in inputs)]
    for kind in [*kinds, None]:
        rows = [row for row in zip(inputs, before, after, strict=True) if kind in (row[0].kind, None)]
        failed = [row for row in rows if row[0].fails(row[1].text)]
        left = [row for row in rows if row[0].fails(row[2].text)]
        repaired = [row for row in failed if not row[0].fails(row[2].text)]
        answered = [row for row in failed if not row[0].fails(row[2].text) or is_flagged(row[2])]
        broken = len(left) - len(failed) + len(repaired)
        shares = [f"{len(part) / len(failed):.0%}" if failed else "-" for part in (repaired, answered)]
        lines.append(
            f"{kind or 'all':<30}{len(rows):>7}{len(failed):>13}{len(left):>12}{shares[0]:>10}{shares[1]:>12}{broken:>8}"
        )
    return lines


def green_rows(inputs: Sequence[Ugly], translator: Translator) -> list[str]:
    """A row for each kind: how many translations are green, and how many of these fail."""
    found = list(replace(translator, estimates=True).translate([one.source for one in inputs]))
    lines = [f"{'kind':<30}{'inputs':>7}{'green':>7}{'of these fail':>15}"]
    for kind in [*dict.fromkeys(one.kind for one in inputs), None]:
        rows = [row for row in zip(inputs, found, strict=True) if kind in (row[0].kind, None)]
        green = [row for row in rows if row[1].estimate is not None and row[1].estimate.is_green]
        num_failing = sum(one.fails(each.text) for one, each in green)
        lines.append(f"{kind or 'all':<30}{len(rows):>7}{len(green):>7}{num_failing:>15}")
    return lines


def seconds(translator: Translator, sources: Sequence[str]) -> float:
    gc.collect()  # else one turn in five pays for a collection of everything that is loaded, a tenth of its time
    started_at = time.process_time()
    list(translator.translate(sources))
    return time.process_time() - started_at


def clean_rows(plain: Translator, repairing: Translator, pairs: Sequence[Pair], turns: int) -> list[str]:
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    before, after = (list(each.translate(sources)) for each in (plain, repairing))
    flagged = sum(map(is_flagged, after))
    changed = sum(one.text != two.text for one, two in zip(before, after, strict=True))
    bleu = [score_corpus([one.text for one in side], references, ["bleu"])[0].value for side in (before, after)]
    times = []
    for turn in range(turns):
        first, second = (repairing, plain) if turn % 2 else (plain, repairing)
        of_first, of_second = seconds(first, sources), seconds(second, sources)
        times.append((of_first, of_second) if turn % 2 else (of_second, of_first))
    ratios = sorted(with_repair / without for with_repair, without in times)
    medians = [statistics.median(side) for side in zip(*times, strict=True)]
    return [
        f"clean text: {len(pairs)} sentences, flagged {flagged / len(pairs):.2%}, changed {changed / len(pairs):.2%}; "
        f"BLEU {bleu[0]:.2f} before, {bleu[1]:.2f} after",
        f"CPU time of clean text: {statistics.median(ratios):.3f} times ({ratios[0]:.3f} to {ratios[-1]:.3f}); "
        f"medians {medians[0]:.3f} s with and {medians[1]:.3f} s without, smallest {min(one for one, _ in times):.3f} and "
        f"{min(other for _, other in times):.3f}",
    ]


def beside(
    run: str,
    settings: Sequence[str],
    inputs: Sequence[Ugly],
    given: dict[str, list[str]],
    write: Path | None,
) -> list[str]:
    """A row for each kind: how many inputs fail by each search.

    A plain search gets the whole line and returns what the engine has found: no layout is kept, no sentence is split, nothing is
    searched again.
    """
    plain = [*settings, *PLAIN]
    searches = {"tfm": settings, "plain, PyTorch": [*plain, "decoding.engine=torch"]}
    searches["plain, CTranslate2"] = [*plain, "decoding.engine=ctranslate2"]
    sources = [one.source for one in inputs]
    if write is not None:
        write.write_text("".join(f"{' '.join(one.splitlines())}\n" for one in sources), encoding="utf-8")
    texts = {}
    for name, of_search in searches.items():
        translator = replace(load_run(run, of_search).translator, reports_lines=False)
        texts[name] = [one.text for one in translator.translate(sources)]
    texts |= given
    lines = [
        "| kind | inputs | " + " | ".join(texts) + " |",
        "|---|--:" + "|--:" * len(texts) + "|",
    ]
    for kind in [*dict.fromkeys(one.kind for one in inputs), None]:
        places = [place for place, one in enumerate(inputs) if kind in (one.kind, None)]
        counts = [sum(inputs[place].fails(found[place]) for place in places) for found in texts.values()]
        lines.append(f"| {kind or 'all'} | {len(places)} | " + " | ".join(map(str, counts)) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description="Count failures on ugly inputs.")
    parser.add_argument("--run", default="runs/en-it", help="name or folder of a run")
    parser.add_argument("--set", action="append", default=[], help="a setting, such as decoding.engine=ctranslate2")
    parser.add_argument("--inputs", type=Path, help="further inputs, a JSON object in each line")
    parser.add_argument("--only", type=Path, help="a file as of --inputs, and no other inputs")
    parser.add_argument("--green", action="store_true", help="count the green ones instead, for a calibrated run")
    parser.add_argument("--own", action="store_true", help="only the inputs of the rules of this file")
    parser.add_argument("--beside", action="store_true", help="count what plain searches do, too")
    parser.add_argument("--write", type=Path, help="with --beside: a file for the inputs")
    parser.add_argument(
        "--read",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="with --beside: translations by another program, one on a line",
    )
    parser.add_argument("--show", action="store_true", help="print each input that fails")
    parser.add_argument("--clean", action="store_true", help="only what the repair costs clean text")
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    loaded = load_run(given.run, given.set)
    translator = replace(loaded.translator, reports_lines=False)
    repairing, plain = (
        replace(translator, decoding=translator.decoding.model_copy(update={"repair": is_on}))
        for is_on in (True, False)
    )
    read = read_pairs(loaded.config.data, "validation", seed=loaded.config.seed, report=ReadingReport())
    pairs = [(pair.source, pair.target) for pair in islice(read, 2000)]
    if given.clean:
        sys.stdout.write("\n".join(clean_rows(plain, repairing, pairs, given.turns)) + "\n")
        return
    inputs = [] if given.only else ugly_inputs(known_pairs(plain, pairs))
    files = [file for file in (given.only, given.inputs) if file]
    if not (given.own or given.only) and str(translator.pipeline.languages) == "en-it":
        files.append(Path(__file__).with_name("ugly_inputs.jsonl.gz"))
    for file in files:
        content = file.read_bytes()
        content = gzip.decompress(content) if file.suffix == ".gz" else content
        for line in content.decode().splitlines():
            facts = json.loads(line)
            inputs.append(Ugly(**facts | {"keeps": tuple(facts.get("keeps", ()))}))
    if given.green:
        sys.stdout.write("\n".join(green_rows(inputs, translator)) + "\n")
        return
    if given.beside:
        named = (each.partition("=") for each in given.read)
        others = {name: Path(file).read_text(encoding="utf-8").split("\n")[: len(inputs)] for name, _, file in named}
        sys.stdout.write("\n".join(beside(given.run, given.set, inputs, others, given.write)) + "\n")
        return
    before, after = (list(each.translate([one.source for one in inputs])) for each in (plain, repairing))
    sys.stdout.write("\n".join(table(inputs, before, after)) + "\n")
    sys.stdout.write("\n".join(clean_rows(plain, repairing, pairs, given.turns)) + "\n")
    if given.show:
        for one, first, second in zip(inputs, before, after, strict=True):
            if one.fails(second.text):
                sys.stdout.write(
                    f"\n{one.kind}: {one.source[:200]}\n  {first.text[:200]}\n  {second.text[:200]}\n  {second.doubts}\n"
                )


if __name__ == "__main__":
    main()
