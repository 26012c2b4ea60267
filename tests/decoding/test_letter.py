"""A whole letter: every line in its place, every URL and price intact, every sentence translated."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from transformer_cli.config import DecodingConfig, PhrasebookData, TokenizerConfig
from transformer_cli.decoding import Hypothesis, Request, TextPipeline, Translator
from transformer_cli.decoding.text_pipeline import KnownSpellings
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

from ..launcher import Launcher, Tfm

ROOT = Path(__file__).parents[2]
LETTER = (ROOT / "examples" / "letter.txt").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "real_text.md").read_text(encoding="utf-8")
URLS = ["https://example.org/map?id=7", "https://example.com/~lucia"]
NAMES = ("Anna", "Marco", "Maria")
SHORT = {"training.max_steps": 150, "training.validate_every": 1000, "training.save_every": 150}


def in_other_words(word: str) -> str:
    """The "translation" of a word; names and marks stay."""
    return word if word in NAMES or not word.isalpha() else f"{word[::-1].lower()}q"


@dataclass(frozen=True)
class WordByWord:
    """An engine that knows a translation for each word that it has learned."""

    source: Tokenizer
    target: Tokenizer

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        found = []
        for request in requests:
            words = [word.strip() for word in self.source.words(self.source.decode(request.ids))]
            text = " ".join(in_other_words(word) for word in words)
            found.append([Hypothesis(tuple(self.target.encode(text)), -1.0)])
        return found


def word_by_word(lines: Sequence[str]) -> Translator:
    """A translator that knows the words of some lines, but no digit and no mark of a URL."""
    text = " ".join(word for line in lines for word in line.split() if not set(word) & set("/:>"))
    source = train_tokenizer([text, " ".join(NAMES)], TokenizerConfig())
    words = [in_other_words(word.strip()) for word in source.words(text)]
    target = train_tokenizer([" ".join([*words, *NAMES])], TokenizerConfig())
    spellings = KnownSpellings(source)
    pipeline = TextPipeline(source, target, PhrasebookData(), 50, splits_sentences=True, spellings=spellings)
    engine: object = WordByWord(source, target)
    return Translator(pipeline, engine, DecodingConfig(), protects_spans=True)  # type: ignore[arg-type]


def check(source: list[str], translated: list[str]) -> None:
    assert len(translated) == len(source)
    for given, found in zip(source, translated, strict=True):
        marks = given[: len(given) - len(given.lstrip(" ->"))]
        assert found.startswith(marks)
        assert found[len(marks) : len(marks) + 1] != " "
        assert bool(found.strip()) == bool(given.strip())
        assert [url for url in URLS if url in found] == [url for url in URLS if url in given]
        assert found.count("https://") == given.count("https://")
        assert [number for number in ("1.20", "12.00") if number in given] == [
            number for number in ("1.20", "12.00") if number in found
        ]


def test_a_letter_comes_back_with_every_line_url_and_price() -> None:
    lines = LETTER.splitlines()
    found = [translation.text for translation in word_by_word(lines).translate(lines)]
    check(lines, found)
    english = {word for line in lines for word in line.split() if word.isalpha()} - set(NAMES)
    assert not english & {word for line in found for word in line.split()}
    prices = [line for line in found if line[-1:].isdigit()]
    assert [len(line) for line in prices] == [len(line) for line in lines if line[-1:].isdigit()]


def test_a_page_shows_the_letter_and_a_translation_with_the_same_lines() -> None:
    blocks = [block.partition("\n")[2] for block in PAGE.split("```")[1::2]]
    assert LETTER in blocks
    following = blocks[blocks.index(LETTER) + 1]
    check(LETTER.splitlines(), following.splitlines())


@pytest.mark.slow
def test_the_built_in_model_keeps_every_line_of_a_letter(launcher: Launcher, memory_folder: Path) -> None:
    """The model has learned little after so few updates: only the form is checked."""
    folder = memory_folder / "letter"
    folder.mkdir()
    (folder / "letter.txt").write_bytes(LETTER.replace("\n", "\r\n").encode())
    tfm = Tfm(launcher, folder)
    settings = [f"--set={name}={value}" for name, value in SHORT.items()]
    finished = tfm("train", "--config", "en-it.yaml", *settings)
    assert finished.exit_code == 0, finished.talk
    found = tfm("translate", "--protect", "--input", "letter.txt").out.decode()
    assert found.count("\r\n") == found.count("\n") == LETTER.count("\n")
    check(LETTER.splitlines(), found.split("\r\n")[:-1])
