"""The words that the training of a model has seen, as hashes; the words of a text that it has not seen, and those that a model has made up.

A list of hashes is small, and shows no word of a private corpus to a person who reads the file.
"""

import base64
import binascii
import json
import logging
import re
import sys
import zlib
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import accumulate, combinations, pairwise
from pathlib import Path
from typing import Self

from transformer_cli.storage import replace_file
from transformer_cli.text.languages import has_spaces, is_plain, plain_words, primary_language
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.sentences import LANGUAGES_WITH_CAPITAL_NOUNS
from transformer_cli.text.spans import SpanKind, find_spans, masked
from transformer_cli.text.tokenizer import Tokenizer
from transformer_cli.text.units import with_units

logger = logging.getLogger(__name__)

MOST_WORDS = 300_000
"""Of a corpus that has more different words than this, only the most frequent ones are kept: this many."""
_MOST_COUNTED = 4 * MOST_WORDS
_MOST_PIECES = 500_000
# Letters, with the vowel signs and accents between them; not beside a digit or an underscore, as in B2B and 20th.
_SIGNS = "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0971-\u109f\u17b4-\u17d3"
# The apostrophe \u02bc is a letter for Unicode, but a text that writes it has the same words as one with another apostrophe. No
# letter is given back (?>...): the beginning of a word with a digit behind it is no word either.
_WORD = lazy_pattern(rf"(?<![^\W\u02bc])[^\W\d_\u02bc](?>(?:[^\W\d_\u02bc]++|[{_SIGNS}])*)(?![\d_])")
_LETTER = lazy_pattern(r"[^\W\d_\u02bc]")
# "the dog's house", "the dogs' house": what belongs to somebody without a name. In "it's late" and the like, 's is a verb.
_POSSESSED = lazy_pattern(
    r"(?<![\w'\u2019])(?!(?:it|s?he|that|this|here|there|what|who|where|when|why|how|let|(?:some|any|every|no)(?:one|body|thing))\b)"
    r"[a-z]+(?:['\u2019\u02bc]s|s['\u2019\u02bc]) ([a-z]+)(?!\w)"
)
MAY_POSSESS = "['\u2019\u02bc]s |s['\u2019\u02bc] "
"""A regular expression: nothing belongs to somebody in an English text without it."""
_MAY_POSSESS = re.compile(MAY_POSSESS)
_OPENING_QUOTE = lazy_pattern(r"(?<!\w)['\u2018]")
KNOWS_POSSESSED = "'s *"
"""In a list of words: it has the words of `possessed_words`, too. Lists of earlier versions do not have them."""
_STARTS_SENTENCE = lazy_pattern(r"[.?!:;\u2026\"\u201c\u201e\u00ab\u00bf\u00a1(\n]")
_FEWEST_LETTERS = 2
_LETTERS_OF_NAME = 4  # the others may be an ending
_END_OF_LATIN = "\u0250"
_SPACED_LETTERS = lazy_pattern(r"(?<!\S)[^\W\d_](?: [^\W\d_]){2,}(?!\S)")
# "20h", "3rd": letters that touch a number; a list of words has them behind a zero.
_BESIDE_NUMBER = lazy_pattern(r"(?<![\w.,])\d+([^\W\d_]{2,})(?!\w)")
_ORDINALS = frozenset(["st", "nd", "rd", "th", "er", "ère", "nde", "ème", "ième", "eme", "ieme"])
# Languages whose words have endings and whose compounds are several words: other words that training lacks are made up.
_WITH_ENDINGS = ("en", "es", "fr", "it", "pt")
_FEWEST_WORDS = 20_000  # of a training text that tells which endings its words have
_MOST_WITH_ENDINGS = 50_000
_LONGEST_ENDING, _SHORTEST_STEM = 5, 3
_FEWEST_STEMS = 40  # of two endings of which a word may have either
_MOST_ENDINGS = 60  # of a stem; one with more is the beginning of unrelated words
_BYTES = 4  # of a hash
_MOST_REMEMBERED = 20_000


def word_pattern(language: str) -> re.Pattern[str]:
    """What finds the words of a text; each sign of a language without spaces between words, such as Chinese, is one."""
    return _WORD if has_spaces(language) else _LETTER


def possessed_words(text: str, language: str) -> list[re.Match[str]]:
    """Where an English text says that something belongs to a common noun; a list of words has what belongs as `possessed` writes it.

    Most texts have no match of `MAY_POSSESS`, so this is not asked of them.
    """
    if primary_language(language) != "en":
        return []
    if _OPENING_QUOTE.search(text) is not None:  # "he likes 'dogs' and cats"
        return []
    return [*_POSSESSED.finditer(text)]


def possessed(match: re.Match[str]) -> str:
    """The entry of a list of words for what was found."""
    return f"'s {match[1]}"


def folded(word: str) -> str:
    """The form of a word that is the same in capitals and small letters: also of the Turkish capital letter with a dot."""
    return word.casefold().replace("i\u0307", "i")


def most_frequent(words: Iterable[str], counts: Mapping[str, int], number: int) -> list[str]:
    """At most so many of the words, the most frequent ones; of equally frequent ones, the first in the order of the alphabet."""
    words = list(words)
    if len(words) <= number:
        return words
    return sorted(words, key=lambda word: (-counts[word], word))[:number]


class WordCounts:
    """How often each word stands in a text that is given in parts, in bounded memory.

    Exact for a text of at most 1.2 million different words (`_MOST_COUNTED`). Of a longer one the rarest words that were counted
    until then are forgotten, as in "Lossy Counting" (Manku and Motwani 2002): they count from 0 if they come again.
    """

    def __init__(self, language: str, *, knows_numbers: bool = False) -> None:
        self._language = language
        self._knows_numbers = knows_numbers
        """Whether letters that touch a number count, too."""
        self.knows_possessed = primary_language(language) == "en"
        """Whether `add_possessed` counts something in this language."""
        self._pieces: Counter[str] = Counter()
        self._words: Counter[str] = Counter()

    def add(self, pieces: Iterable[str], counts: Iterable[int]) -> None:
        """Count what stands between two spaces, and how often; a piece may come again.

        Most words stand in a text many times, so pieces are divided into words when there are many of them. In a language without
        spaces a piece is a sentence, so its signs are counted at once.
        """
        if has_spaces(self._language):
            for piece, count in zip(pieces, counts, strict=True):
                self._pieces[piece] += count
            if len(self._pieces) > _MOST_PIECES:
                self._divide()
        else:
            for piece, count in zip(pieces, counts, strict=True):
                self._pieces.update(piece * count)  # adds the signs of a text

    def add_possessed(self, texts: Iterable[str]) -> None:
        """Count what belongs to somebody in whole texts; see `possessed_words`."""
        for text in texts:
            self._words.update(map(possessed, possessed_words(text, self._language)))

    def word_counts(self) -> Mapping[str, int]:
        """The count of each word, as `folded` writes it."""
        self._divide()
        return self._words

    def _divide(self) -> None:
        pattern = word_pattern(self._language)
        for piece, count in self._pieces.items():
            for word in pattern.findall(piece):
                self._words[folded(word)] += count
            if self._knows_numbers:
                for letters in _BESIDE_NUMBER.findall(piece):
                    self._words[f"0{folded(letters)}"] += count
        self._pieces.clear()
        if len(self._words) > _MOST_COUNTED:
            kept = most_frequent(self._words, self._words, _MOST_COUNTED // 2)
            self._words = Counter({word: self._words[word] for word in kept})


@dataclass(frozen=True, slots=True)
class SeenWords:
    """A set of words in any case. One of 14,000 words that are not in a set of 300,000 is taken for one of them."""

    hashes: "array[int]"
    """Of the words, in rising order."""
    written: "SeenWords | None" = None
    """Of the words of the sources: those of their translations, if they tell which words a model makes up."""
    endings: frozenset[tuple[str, str]] = frozenset()
    """Of the words of translations: pairs of endings of which many words have both, such as er and ons in French."""
    _remembered: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Words that were found: most words of a text come again and again."""

    @classmethod
    def of(cls, counts: Mapping[str, int], *, least: int = 1) -> Self:
        """The words that were counted at least so often.

        Args:
            counts: word, as `folded` writes it -> how often it stands in the text. Of more than `MOST_WORDS`, the most frequent
                ones are kept; of equally frequent ones, the first in the order of the alphabet.
            least: the smallest count of a word that is kept.
        """
        kept = [word for word, count in counts.items() if count >= least]
        return cls(array("I", sorted({*map(_hash, most_frequent(kept, counts, MOST_WORDS))})))

    def __len__(self) -> int:
        return len(self.hashes)

    def __contains__(self, word: object) -> bool:
        if not isinstance(word, str):
            return False
        if word in self._remembered:
            return True
        number = _hash(folded(word))
        place = bisect_left(self.hashes, number)
        if place == len(self.hashes) or self.hashes[place] != number:
            return False
        if len(self._remembered) < _MOST_REMEMBERED:
            self._remembered.add(word)
        return True

    def joined(self, other: "SeenWords") -> "SeenWords":
        """The words of both; they know what belongs to somebody only if both do."""
        hashes = {*self.hashes, *other.hashes}
        if not (KNOWS_POSSESSED in self and KNOWS_POSSESSED in other):
            hashes.discard(_hash(KNOWS_POSSESSED))
        return SeenWords(array("I", sorted(hashes)), self._written_of_either(other), self.endings | other.endings)

    def common(self, other: "SeenWords") -> "SeenWords":
        """The words that are in both; of translations, those that are in either: each of two models may write them."""
        return SeenWords(array("I", sorted({*self.hashes} & {*other.hashes})), self._written_of_either(other))

    def _written_of_either(self, other: "SeenWords") -> "SeenWords | None":
        return None if self.written is None or other.written is None else self.written.joined(other.written)

    def to_text(self) -> str:
        """The set in letters and digits, about three of them for each word."""
        steps = array("I", (after - before for before, after in pairwise([0, *self.hashes])))
        if sys.byteorder == "big":
            steps.byteswap()
        content = steps.tobytes()
        # All lowest bytes first, then all second ones: the high bytes are nearly always zero.
        planes = b"".join(content[number::_BYTES] for number in range(_BYTES))
        return base64.b64encode(zlib.compress(planes, 9)).decode("ascii")

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The set that `to_text` has written.

        Raises:
            ValueError: it is no such text.
        """
        steps = array("I")
        try:
            planes = zlib.decompress(base64.b64decode(text, validate=True))
            size = len(planes) // _BYTES
            content = bytearray(len(planes))
            for number in range(_BYTES):
                content[number::_BYTES] = planes[number * size : (number + 1) * size]
            steps.frombytes(content)
            if sys.byteorder == "big":
                steps.byteswap()
            return cls(array("I", accumulate(steps)))
        except (zlib.error, binascii.Error, OverflowError) as error:
            raise ValueError("not a set of words") from error


class WordsOfOneToken:
    """The words of a set, and those that a tokenizer does not divide: a word is such a token because its corpus has it often."""

    def __init__(self, words: SeenWords, tokenizer: "Tokenizer") -> None:
        self._words, self._tokenizer = words, tokenizer

    def __contains__(self, word: object) -> bool:
        if not isinstance(word, str):
            return False
        if word in self._words:
            return True
        ids = self._tokenizer.encode(word)
        return len(ids) == 1 and ids[0] != self._tokenizer.unk_id


def written_words(counts: Mapping[str, int]) -> SeenWords | None:
    """The words of the translations of a corpus, with their endings; None if they are too few to tell which words are made up.

    So are those of a corpus with more words than are kept.

    Args:
        counts: as of `SeenWords.of`.
    """
    if not _FEWEST_WORDS <= len(counts) <= MOST_WORDS:
        return None
    endings_by_stem = defaultdict[str, list[str]](list)
    for word in most_frequent(counts, counts, _MOST_WITH_ENDINGS):
        for end in range(max(_SHORTEST_STEM, len(word) - _LONGEST_ENDING), len(word) + 1):
            endings_by_stem[word[:end]].append(word[end:])
    pairs = Counter(
        pair
        for endings in endings_by_stem.values()
        if len(endings) <= _MOST_ENDINGS
        for pair in combinations(sorted(endings), 2)
        if not pair[0] or pair[0][0] != pair[1][0]  # the same letter belongs to the stem
    )
    frequent = frozenset(pair for pair, num_stems in pairs.items() if num_stems >= _FEWEST_STEMS)
    return replace(SeenWords.of(counts), endings=frequent)


def has_endings(language: str) -> bool:
    """Whether words of a language that a training text lacks are made up, unless they have the endings of others."""
    return primary_language(language) in _WITH_ENDINGS


def made_up_words(source: str, translation: str, written: SeenWords) -> tuple[str, ...]:
    """The words of a translation that stand neither in the training text nor in the source, and are no other form of a word there.

    Such words are pieces of words that a model has put together: "hallations", "3issent". A name of which the source has the plural,
    and what stands in a URL, a placeholder or the like, is none.
    """
    words = plain_words(translation) if is_plain(translation) else _WORD.findall(translation)
    letters = [] if is_plain(translation) else _BESIDE_NUMBER.findall(translation)
    if all(map(written.__contains__, words)) and not letters:
        return ()  # as most translations
    spans = find_spans(translation)
    # A tag is no part of the word behind it, as a number is.
    visible = masked(translation, [span for span in spans if span.kind is SpanKind.TAG], " ")
    visible = masked(visible, [span for span in spans if span.kind is not SpanKind.TAG], "0")
    read = folded(source)
    source_forms = {form for word in _WORD.findall(read) for form in (word, word.removesuffix("s"))}
    found = {
        folded(word): word
        for word in _WORD.findall(visible)
        if len(word) >= _FEWEST_LETTERS and word not in written and folded(word) not in source_forms
        if not _has_known_ending(folded(word), written)
    }
    known = {*_BESIDE_NUMBER.findall(read), *_ORDINALS}
    for match in _BESIDE_NUMBER.finditer(visible):
        if (ending := folded(match[1])) not in known and f"0{ending}" not in written:
            found[match[0]] = translation[slice(*match.span())]
    return tuple(found.values())


def _has_known_ending(word: str, written: SeenWords) -> bool:
    """Whether a word is one of a text with another ending, and both endings stand there with many words: parlons, parler."""
    for end in range(max(_SHORTEST_STEM, len(word) - _LONGEST_ENDING), len(word) + 1):
        stem, ending = word[:end], word[end:]
        for one, other in written.endings:
            if ending in (one, other) and stem + (other if ending == one else one) in written:
                return True
    return False


def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "replace"), digest_size=_BYTES).digest(), "big")


def unseen_words(source: str, translation: str, seen: Container[str], language: str) -> tuple[str, ...]:
    """The words of a source that training has not seen, each once, as the source writes them.

    Of English, "dog's house" is such a word, too, if training has never seen that a house belongs to a common noun: models lose the
    house there.

    Numbers are no words, nor is what stands in a URL, a placeholder or the like. A word with a capital letter may be a name, so it
    counts only if the translation lacks it; inside a sentence also its first four letters, because a name may get an ending. In a
    heading, where no word begins with a small letter, and in a language that writes all nouns so, it is a word. Three single letters
    in a row, as in "w i t h", are a word with spaces.

    Args:
        source: the text.
        translation: of it.
        seen: the words that training has seen, in any case.
        language: of the source.
    """
    found: dict[str, str] = {}
    if _MAY_POSSESS.search(source) is not None and KNOWS_POSSESSED in seen:
        possessives = possessed_words(source, language)
        found = {folded(match[0]): match[0] for match in possessives if possessed(match) not in seen}
    is_spaced = has_spaces(language)
    pattern = _WORD if is_spaced else _LETTER
    source_words = plain_words(source) if is_spaced and is_plain(source) else pattern.findall(source)
    if all(map(seen.__contains__, source_words)):
        return tuple(found.values())  # most sentences need no further look
    # A tag divides words. Letters beside a number or a placeholder may be the end of a word, as in 20th and {number}th.
    spans = with_units(source, find_spans(source), SpanKind.WORD, SpanKind.NUMBER)
    between_words = [span for span in spans if span.kind in (SpanKind.TAG, SpanKind.MARK)]
    text = masked(masked(source, spans, "0"), between_words, " ")
    words = list(pattern.finditer(text))
    is_heading = not any(word[0][0].islower() for word in words)
    may_begin_large = is_heading or primary_language(language) in LANGUAGES_WITH_CAPITAL_NOUNS
    end = 0
    written: set[str] | None = None
    for number, match in enumerate(words):
        word = match[0]
        is_first = number == 0 or _STARTS_SENTENCE.search(text, end, match.start()) is not None
        end = match.end()
        if (is_spaced and len(word) < _FEWEST_LETTERS) or word in seen:
            continue
        if word != word.lower():
            if written is None:
                written = set(map(folded, pattern.findall(translation)))
            if folded(word) in written:
                continue
            is_name = not (is_first or may_begin_large) or not (word[1:].islower() or is_heading)
            if is_name and not (is_spaced and _lacks_name(folded(word), written)):
                continue
        found[folded(word)] = word
    if is_spaced:
        spaced = _SPACED_LETTERS.findall(text)
        found |= {letters: letters for letters in spaced if not all(map(seen.__contains__, letters.split()))}
    return tuple(found.values())


def _lacks_name(name: str, written: Collection[str]) -> bool:
    """Whether no word of a translation begins as a name does; nothing is known where most words have letters of another script."""
    is_latin = name[0] < _END_OF_LATIN
    comparable = [word for word in written if (word[0] < _END_OF_LATIN) == is_latin]
    beginning = name[:_LETTERS_OF_NAME]
    return 2 * len(comparable) > len(written) and not any(word.startswith(beginning) for word in comparable)


def read_seen_words(path: Path) -> SeenWords | None:
    """The words of a file of `write_seen_words`; None if there is none, and with a warning if it is damaged."""
    if not path.is_file():
        return None
    try:
        facts = json.loads(path.read_bytes())
        if facts["format"] != 1:
            raise ValueError("an unknown format")
        written = facts.get("written")
        return replace(SeenWords.from_text(facts["hashes"]), written=written and _translation_words(written))
    except (OSError, AttributeError, KeyError, TypeError, ValueError, RecursionError):
        logger.warning(
            "%s: not a list of words, or damaged, so words that the training has not seen are not noticed; tfm calibrate makes it again",
            path,
        )
        return None


def _translation_words(facts: Mapping[str, str]) -> SeenWords:
    pairs = (pair.partition("-") for pair in facts["endings"].split())
    return replace(SeenWords.from_text(facts["hashes"]), endings=frozenset((one, other) for one, _, other in pairs))


def write_seen_words(path: Path, words: SeenWords) -> None:
    """Write the words that the training of a run has seen."""
    facts: dict[str, object] = {"format": 1, "words": len(words), "hashes": words.to_text()}
    if (written := words.written) is not None:
        endings = " ".join(f"{one}-{other}" for one, other in sorted(written.endings))
        facts["written"] = {"words": len(written), "hashes": written.to_text(), "endings": endings}
    replace_file(path, f"{json.dumps(facts, indent=1)}\n".encode())
