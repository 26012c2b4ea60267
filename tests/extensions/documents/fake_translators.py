"""Translators of documents whose translations are known: the same text, or the words in another order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transformer_cli.config.data import Direction
from transformer_cli.decoding.details import word_spans
from transformer_cli.extensions.documents.segments import Document
from transformer_cli.extensions.documents.translation import TranslatedDocument, translate_document
from transformer_cli.extensions.documents.translator import AnsweredText, AskedText, LinkedWords
from transformer_cli.text.sentences import Sentence, split_sentences
from transformer_cli.text.spans import find_spans, masked

EN_IT = Direction("en", "it")
Words = Callable[[list[str]], list[int]]
"""From the words of a text to the order in which they stand in its translation, by their indices."""


@dataclass
class WordByWord:
    """Translates each word by itself and changes their order; its links are exact."""

    word: Callable[[str], str] = lambda word: word
    order: Words = lambda words: list(range(len(words)))
    languages: Direction = EN_IT
    joins: str = " "
    """What stands between two words of a translation."""
    read_words: frozenset[str] = frozenset()

    def sentences(self, text: str) -> list[Sentence]:
        sentences, place = [], 0
        for sentence in split_sentences(masked(text, find_spans(text), "x"), "en"):
            start = place + len(sentence.gap)
            place = start + len(sentence.text)
            sentences.append(Sentence(text[start:place], sentence.gap))
        return sentences

    def knows(self, text: str) -> bool:
        return False

    def has_read(self, word: str) -> bool:
        return word in self.read_words

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        return [self._answer(asked.text) for asked in texts]

    def _answer(self, text: str) -> AnsweredText:
        places = word_spans(text)
        words = [text[start:end] for start, end in places]
        order = self.order(words)
        translated = [self._translated(words[number]) for number in order]
        result, links = "", []
        for number, word in zip(order, translated, strict=True):
            result += self.joins if result else ""
            links.append(LinkedWords(places[number], (len(result), len(result) + len(word))))
            result += word
        return AnsweredText(result, tuple(links))

    def _translated(self, word: str) -> str:
        """A word with its protected parts as they are."""
        result, place = "", 0
        for span in find_spans(word):
            result += self.word(word[place : span.start]) + word[span.start : span.end]
            place = span.end
        return result + self.word(word[place:])


class Identity(WordByWord):
    """Every text is its own translation."""

    def __init__(self) -> None:
        super().__init__(languages=Direction("en", "en"))

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        return [AnsweredText(asked.text) for asked in texts]


UPPER = WordByWord(str.upper)
REVERSED = WordByWord(str.upper, lambda words: list(range(len(words)))[::-1])


def translated(document: Document, translator: WordByWord = UPPER) -> str:
    return done(document, translator).data.decode()


def done(document: Document, translator: WordByWord = UPPER) -> TranslatedDocument:
    return translate_document(document, translator)
