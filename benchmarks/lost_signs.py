"""Counts what a run loses without a word when it translates marked-up text: signs, brackets, quotes, placeholders, codes, labels, numbers.

    tfm train --config en-it.yaml
    python benchmarks/lost_signs.py --run en-it
    python benchmarks/lost_signs.py --run en-it --only label --show 20           # the lines that are lost or named, of the kinds with "label" in their names

Rules with a written seed put structure into sentences of the validation split that the run translates as their references. An
oracle of its own, not the checks of `decoding.doubts`, says whether a translation has each thing of the source as often and in the
same order, at least 60 % of the words of the reference, and not half as many words more. Such a line is kept. Else the line is named, if its
translation has doubts or says that text was left as it is; or it is lost in silence. A line that stays untranslated counts as named.
"""

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from transformer_cli.data.pairs import ReadingReport
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import load_run

SEED = 11
NUM_OF_KIND = 30
ENOUGH = 0.6  # the share of the words of a reference that a translation must have
Pair = tuple[str, str]

QUOTES = "[\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a]"
"""A quotation mark of any style, as a pattern: another language may have others."""


@dataclass(frozen=True)
class Marked:
    """A line with structure, and what its translation must have."""

    kind: str
    source: str
    keeps: tuple[str, ...]
    """Patterns that the translation must match, one behind another."""
    words: str
    """The reference of its sentence."""

    def fault(self, translation: str) -> str:
        """What a translation has lost or added; nothing if it has all."""
        place = 0
        for pattern in self.keeps:
            found = re.compile(pattern).search(translation, place)
            if found is None:
                return f"no {pattern}"
            place = found.end()
        for pattern in {*self.keeps}:
            here, there = (len(re.findall(pattern, text)) for text in (self.source, translation))
            if there > here and not re.fullmatch(r"\W*['\u2019,.].*", pattern):
                return f"{there} times {pattern}"
        lost = (words(self.words) - words(translation)).total()
        if lost > (1 - ENOUGH) * words(self.words).total():
            return "words lost"
        most = 1.5 * max(words(self.source).total(), words(self.words).total()) + 2
        return "words added" if words(translation).total() > most else ""


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


Rule = Callable[[random.Random, Sequence[Pair]], Marked]
RULES: dict[str, Rule] = {}


def bare(text: str) -> str:
    return text.rstrip(".")


def literal(*texts: str) -> tuple[str, ...]:
    return tuple(map(re.escape, texts))


def around(kind: str, *pairs: tuple[str, str], keeps: str = "", most_words: int = 2) -> None:
    """Marks around one or more words of a sentence."""

    def make(dice: random.Random, known: Sequence[Pair]) -> Marked:
        source, target = dice.choice(known)
        cut = bare(source).split()
        opening, closing = dice.choice(pairs)
        size = dice.randrange(1, most_words + 1)
        first = dice.randrange(len(cut) - size + 1)
        cut[first] = opening + cut[first]
        cut[first + size - 1] += closing
        patterns = (keeps, keeps) if keeps else literal(opening, closing)
        return Marked(kind, " ".join(cut) + ".", patterns, target)

    RULES[kind] = make


def beside(kind: str, *texts: str, keeps: str = "") -> None:
    """A text behind a word inside a sentence."""

    def make(dice: random.Random, known: Sequence[Pair]) -> Marked:
        source, target = dice.choice(known)
        cut = bare(source).split()
        text = dice.choice(texts)
        cut.insert(dice.randrange(1, len(cut)), text)
        return Marked(kind, " ".join(cut) + ".", (keeps,) if keeps else literal(text), target)

    RULES[kind] = make


def framed(kind: str, *frames: str, keeps: Callable[[str], tuple[str, ...]] | None = None) -> None:
    """A sentence inside a frame, such as "1) {}": {} is the sentence, {-} the same without a full stop, {_} also with a small letter first."""

    def make(dice: random.Random, known: Sequence[Pair]) -> Marked:
        source, target = dice.choice(known)
        frame = dice.choice(frames)
        small = source if re.match(r"I\b", source) else source[0].lower() + source[1:]
        line = frame.replace("{-}", bare(source)).replace("{_}", bare(small)).replace("{}", source)
        rest = [part.strip() for part in re.split(r"\{[-_]?\}", frame)]
        patterns = keeps(frame) if keeps else literal(*filter(None, rest))
        return Marked(kind, line, patterns, target)

    RULES[kind] = make


def between(kind: str, *signs: str, keeps: str = "", end: str = "") -> None:
    """A sign between two sentences in one line."""

    def make(dice: random.Random, known: Sequence[Pair]) -> Marked:
        (one, first), (two, second) = dice.sample(known, 2)
        sign = dice.choice(signs)
        line = f"{bare(one)}{sign}{bare(two)}{end}"
        return Marked(kind, line, (keeps,) if keeps else literal(sign.strip()), f"{first} {second}")

    RULES[kind] = make


around("round brackets", ("(", ")"))
around("square brackets", ("[", "]"))
around("braces", ("{", "}"))
around("two kinds of brackets", ("([", "])"), ("[(", ")]"))
around("link of Markdown", ("[", "](https://a.org)"), ("[", "](page.html)"), ("[", "](#top)"))
around("image of Markdown", ("![", "](images/a.png)"))
around("reference of Markdown", ("[", "][1]"), ("[", "][link]"))
around("double quotes", ('"', '"'), keeps=QUOTES)
around("curly quotes", ("\u201c", "\u201d"), ("\u201e", "\u201c"), keeps=QUOTES)
around("guillemets", ("\u00ab", "\u00bb"), ("\u2039", "\u203a"), keeps=QUOTES)
around("single quotes", ("'", "'"), ("\u2018", "\u2019"), keeps=QUOTES)
around("bold and slanted", ("**", "**"), ("*", "*"), ("~~", "~~"))
around("underscores", ("__", "__"), ("_", "_"))
around("tags", ("<b>", "</b>"), ('<a href="x">', "</a>"))
around("brackets and quotes", ('("', '")'), ('["', '"]'), keeps=rf"[(\[]?{QUOTES}[)\]]?")
beside("placeholder", "{name}", "{0}", "%s", "%1$s", "${x}", "{{ name }}", "%(name)s", "$NAME", ":name")
beside(
    "placeholder in quotes",
    *(f"{one}{name}{two}" for name in ("{name}", "%s", "{0}", "$x") for one, two in ('""', "''")),
    keeps=rf"{QUOTES}(?:\{{name\}}|%s|\{{0\}}|\$x){QUOTES}",
)
beside("placeholder in brackets", "({name})", "(%s)", "[{0}]", "<{name}>")
beside(
    "address in quotes",
    '"a@b.org"',
    "'https://a.org/b'",
    '"www.a.org"',
    keeps=rf"{QUOTES}(?:a@b\.org|https://a\.org/b|www\.a\.org){QUOTES}",
)
beside("address in brackets", "(https://a.org)", "<https://a.org>", "(a@b.org)", "[www.a.org]")
beside(
    "sign in quotes", "'#'", '"%"', "'/'", '"&"', "'*'", '"@"', "'->'", keeps=rf"{QUOTES}(?:#|%|/|&|\*|@|->){QUOTES}"
)
beside("signs in brackets", "(!, $, %, ...)", "(#)", "(*)", "(@, #)", "(+/-)", "(?)", "(&)")
beside("version", "1.0-beta.2", "v4.x", "5.x", "2.3.1", "v1.2", "1.0.0-rc.1", "3.x-dev", "10.0.0+1")
beside("name with a number", "3.times", "node-18", "utf-8", "x86_64", "H2O", "mp3", "COVID-19")
beside("file name", "a.txt", "README.md", "my-file.tar.gz", "package.json", ".gitignore", "Makefile.am")
beside("path", "/usr/bin/env", "C:\\Windows", "~/.bashrc", "src/a/b.py", "./run", "../x", "docs/a")
beside("code", "`a.b()`", "`x = 1`", "``code``", "`git push`")
beside("call", "a.b()", "print(x)", "f(x, y)", "obj.method(1)", "foo()", "np.array([1])")
beside("name of a program", "snake_case", "camelCase", "std::vector", "a.b.c", "self.x", "my-package", "CONST_NAME")
beside("option", "--help", "-v", "--name=x", "-O2", "/quiet")
beside("handle", "@anna", "@anna_b", "#topic", "#my-topic", "u/anna", "r/topic")
beside("issue", "#123", "PR-12", "user/repo#1", "GH-7", "bug 123", "\u00a7 3", "\u00a73.1")
beside("key", "Ctrl+C", "Alt-F4", "Ctrl + C", "F5", "\u2318C", "<Enter>", "Shift+Tab")
beside("range", "3-5", "10\u201320", "1990-1995", "2..4", "A-Z", "[0-9]", "1:1")
beside("time", "10:30", "9am", "10:30 p.m.", "12h30", keeps=r"(?:10[:.]30|9|12h30)")
beside("date", "2026-11-27", "11/27/2026", "27.11.2026", keeps=r"(?:2026-11-27|\d\d[./]\d\d[./]2026)")
beside(
    "currency",
    "$5",
    "5 \u20ac",
    "\u20ac5",
    "\u00a33.50",
    "5 EUR",
    "US$10",
    "$1,000",
    keeps=r"(?:[$\u20ac\u00a3] ?(?:3|5|10|1[.,]000)|(?:3[.,]50|5|10|1[.,]000) ?(?:[$\u20ac\u00a3]|EUR|US\$))",
)
beside("percent", "50%", "50 %", "3.5%", "100 %", keeps=r"(?:50|3[.,]5|100) ?%")
beside("fraction", "1/2", "3/4", "\u00bd", "24/7")
beside("unit", "5 kg", "5kg", "10 km/h", "20 \u00b0C", "3 m\u00b2", "5\u2033", "16GB")
beside("mathematics", "2 + 2 = 4", "x > 3", "a \u2264 b", "3 \u00d7 4", "\u00b15", "x^2", "~5", "\u2248 3", "a != b")
beside("arrow", "->", "\u2192", "=>", "<-", "\u21d2", "\u2194", keeps="(?:<?[-=]>|<-|[\u2190-\u21ff])")
beside(
    "sign by itself",
    "/",
    "|",
    "+",
    "=",
    "&",
    "~",
    "^",
    "\\",
    "\u2022",
    "\u00b7",
    "\u00a9",
    "\u2122",
    "*",
    "#",
    "@",
    "%",
)
beside("emoji", "\U0001f600", "\u2764\ufe0f", "\U0001f44d\U0001f3fd", "\u2728", ":-)", ";)", ":D")
beside("ellipsis inside", "...", "\u2026", keeps="(?:\\.\\.\\.|\u2026)")
beside("empty brackets", "()", "[]", "[ ]", "(...)", "[...]", "[\u2026]")
beside("footnote", "[1]", "[^1]", "\u2020", "\u00b9", "(1)", "[12]")
beside("abbreviation", "e.g.", "i.e.", "etc.", keeps=r"(?:e\.g\.|i\.e\.|etc|ecc|esempio|es\.|cio\u00e8|ossia|ovvero)")
framed("number of a list", "1) {}", "1. {}", "a. {}", "a) {}", "(i) {}", "(1) {}", "iv. {}", "2.1 {}", "A.1) {}")
framed(
    "bullet", "- {}", "* {}", "\u2022 {}", "+ {}", "\u2013 {}", "\u2014 {}", "\u25a0 {}", "> {}", ">> {}", "\u27a4 {}"
)
framed("check box", "[ ] {}", "[x] {}", "- [ ] {}", "- [x] {}", "\u2610 {}", "\u2611 {}", "( ) {}")
framed("heading", "# {-}", "## {-}", "### {-} ###", "== {-} ==", "=== {-} ===", "*** {-} ***")
framed(
    "leading sign",
    ", {_}",
    "; {_}",
    ": {_}",
    "/ {}",
    "& {}",
    "= {}",
    "| {}",
    "~ {}",
    "% {}",
    "\u2192 {}",
    "-> {}",
    "* {}",
    "... {_}",
    "\u2026{_}",
    ", {}",
    ") {}",
    "] {}",
    "? {}",
    "! {}",
    '" {}',
)
framed(
    "trailing sign",
    "{-} /",
    "{-} &",
    "{-} |",
    "{-} ~",
    "{-} *",
    "{-} =",
    "{-} \u2192",
    "{-} ->",
    "{-} #",
    "{-} (",
    "{-} [",
    "{-} \u2014",
    "{-} -",
    "{-},",
    "{-};",
    "{-}:",
    "{-} :",
    "{-} +",
)
framed(
    "row of signs",
    "*** {}",
    "=== {} ===",
    "----- {}",
    "{} -----",
    "!!! {}",
    "~~~ {} ~~~",
    ">>> {}",
    "{-} ###",
    "{} ***",
)
framed(
    "dotted leader",
    "{-} ..... 12",
    "{-} ............ 3",
    "{-} . . . . 7",
    "{-}\u2026\u2026 4",
    keeps=lambda frame: (r"\.{3}|(?:\. ){3}|\u2026", *re.findall(r"\d+", frame)[:1]),
)
framed("sentence in brackets", "({})", "[{}]", "({-})", "[{-}]", "{{}}", "<{-}>")
framed(
    "sentence in quotes",
    '"{}"',
    "\u201c{}\u201d",
    "\u00ab{}\u00bb",
    "'{}'",
    '"{-}".',
    "\u201e{}\u201c",
    keeps=lambda frame: (QUOTES, QUOTES),
)
framed("marks at the end", "{-}?!", "{-}!!", "{-}...", "{-}\u2026", "{-}!?", "{-}?", "{-}!")
framed(
    "label of one word",
    "Note: {}",
    "Warning: {}",
    "Dog: {}",
    "Tip: {_}",
    "TODO: {}",
    "Error: {}",
    "Step 3: {}",
    "EU: {}",
    keeps=lambda frame: (":",),
)
framed(
    "label with small words",
    "The dog: {}",
    "My house: {}",
    "A new car: {}",
    "the station: {}",
    "name: {}",
    "Description of the house: {}",
    "In the city: {}",
    "The old man and the sea: {}",
    keeps=lambda frame: (":",),
)
framed(
    "label with a sign",
    "**Note**: {}",
    "**Note:** {}",
    "[Note] {}",
    "(Note) {}",
    "Note - {}",
    "`x`: {}",
    "--help: {}",
    "x = {}",
    "Note : {}",
    "{name}: {}",
    "@anna: {}",
    "1: {}",
    keeps=lambda frame: tuple(map(re.escape, re.findall(r"[^\w\s]+", frame.replace("{}", "")))),
)
framed(
    "speaker",
    "ANNA: {}",
    "Anna: {}",
    "- Anna: {}",
    "<Anna> {}",
    "[Anna] {}",
    "Anna \u2014 {}",
    keeps=lambda frame: ("(?i:anna)", re.escape(re.findall(r"[^\w\s{}]", frame)[-1])),
)
between("dash in the middle", " - ", " \u2013 ", " \u2014 ", "\u2014", end=".", keeps="[-\u2013\u2014]")
between(
    "sign between sentences",
    " / ",
    " | ",
    " & ",
    " -> ",
    " => ",
    " \u2192 ",
    " + ",
    " = ",
    " ~ ",
    " \u2022 ",
    " \u00b7 ",
    " // ",
    " > ",
    " :: ",
    " * ",
    end=".",
)
between("semicolon or colon", "; ", ": ", end=".")
between("code between", " `a.b()` ", " `x` ", " {name} ", " %s ", " (%s) ", end=".")
framed(
    "short word between code",
    "`a` or `b`: {}",
    "{-} `a.b()` or `c`.",
    "{-} a.b() or c()",
    "{} Example: `a` and `b`",
    "{-} {x} or {y}.",
    "{-} %s and %d.",
    keeps=lambda frame: tuple(part for part in (r"a\.b\(\)|`a`|\{x\}|%s", r"\w+", r"`b`|`c`|c\(\)|\{y\}|%d")),
)


def _capitals(dice: random.Random, known: Sequence[Pair]) -> Marked:
    source, target = dice.choice(known)
    return Marked("capitals", source.upper(), (r"\A[^a-z]+\Z",), target)


RULES["capitals"] = _capitals


@dataclass(frozen=True)
class Word:
    """Signs that stand in the place of white space or of a mark between two words."""

    kind: str
    signs: tuple[str, ...]

    def __call__(self, dice: random.Random, known: Sequence[Pair]) -> Marked:
        source, target = dice.choice(known)
        cut = bare(source).split()
        place = dice.randrange(1, len(cut))
        sign = dice.choice(self.signs)
        line = " ".join(cut[:place]) + sign + " ".join(cut[place:]) + "."
        return Marked(self.kind, line, literal(sign.strip()), target)


for _kind, _signs in {
    "slash between words": ("/", " / "),
    "sign between words": (" & ", " + ", " = ", " | ", " -> ", " \u2192 ", " ~ ", " \u00b7 ", " > "),
    "semicolon inside": ("; ", " ; "),
    "colon inside": (": ",),
}.items():
    RULES[_kind] = Word(_kind, _signs)


def marked_lines(known: Sequence[Pair], only: str = "", num_of_kind: int = NUM_OF_KIND) -> list[Marked]:
    """So many lines of each kind; a kind has the same lines, however many others there are."""
    return [
        make(random.Random(f"{SEED} {kind} {number}"), known)
        for kind, make in RULES.items()
        if only in kind
        for number in range(num_of_kind)
    ]


def known_pairs(translator: Translator, pairs: Sequence[Pair]) -> list[Pair]:
    """Statements of four to nine words that the model translates as their references."""
    short = [p for p in dict.fromkeys(pairs) if p[0].endswith(".") and 4 <= len(p[0].split()) <= 9]
    found = translator.translate([source for source, _ in short])
    return [pair for pair, each in zip(short, found, strict=True) if each.text == pair[1] and not each.doubts]


Answer = tuple[str, bool, str]
"""A translation, whether its line is named, and the doubts."""


def in_process(translator: Translator, sources: Sequence[str]) -> list[Answer]:
    found = translator.translate(sources)
    return [
        (
            each.text,
            bool(each.doubts) or each.is_untranslated or each.is_partly_copied,
            "; ".join(each.doubts) + " (left as it is)" * each.is_untranslated,
        )
        for each in found
    ]


def table(lines: Sequence[Marked], answers: Sequence[Answer], num_shown: int) -> list[str]:
    rows = [f"{'kind':<28}{'lines':>7}{'kept':>7}{'named':>7}{'lost':>6}"]
    counts: dict[str, Counter[str]] = {}
    shown: list[str] = []
    for line, (text, is_named, doubts) in zip(lines, answers, strict=True):
        fault = line.fault(text)
        if not fault and "left as it is" in doubts:
            fault = "untranslated"
        state = "named" if fault and is_named else "lost" if fault else "kept"
        for kind in (line.kind, "all"):
            counts.setdefault(kind, Counter())[state] += 1
        if fault:
            shown.append(f"{state:<6}{line.source}  =>  {text}   [{fault}] {doubts}")
    counts["all"] = counts.pop("all")
    for kind, of in counts.items():
        rows.append(f"{kind:<28}{of.total():>7}{of['kept']:>7}{of['named']:>7}{of['lost']:>6}")
    return [*sorted(shown)[:num_shown], *rows]


def main() -> None:
    parser = argparse.ArgumentParser(description="Count what is lost in silence.")
    parser.add_argument("--run", default="runs/en-it", help="name or folder of a run")
    parser.add_argument("--only", default="", help="a part of the names of kinds")
    parser.add_argument("--number", type=int, default=NUM_OF_KIND, help="of lines of each kind")
    parser.add_argument("--show", type=int, default=0, help="so many lines that were not kept")
    parser.add_argument("--set", action="append", default=[], help="a setting, such as decoding.beam_size=1")
    given = parser.parse_args()
    loaded = load_run(given.run, given.set)
    translator = replace(loaded.translator, reports_lines=False)
    read = read_pairs(loaded.config.data, "validation", seed=loaded.config.seed, report=ReadingReport())
    known = known_pairs(translator, [(each.source, each.target) for each in islice(read, 4000)])
    lines = marked_lines(known, given.only, given.number)
    answers = in_process(translator, [line.source for line in lines])
    sys.stdout.write(f"{len(known)} known sentences\n")
    sys.stdout.write("\n".join(table(lines, answers, given.show)) + "\n")


if __name__ == "__main__":
    main()
