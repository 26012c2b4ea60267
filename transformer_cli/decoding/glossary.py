"""Glossaries: source terms, found in sentences, and the target terms that must stand in the translations.

`glossary_files` reads them.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tokenizers import Regex, pre_tokenizers

from transformer_cli.config import Direction
from transformer_cli.decoding.engine import Request, Term, TokenIds
from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import on_one_line
from transformer_cli.text import Tokenizer
from transformer_cli.text.languages import name_of, named_language, primary_language
from transformer_cli.text.normalization import UNSPACED_SCRIPTS, is_blank
from transformer_cli.text.tokenizer_file import without_surrogates

if TYPE_CHECKING:  # a translation with another library waits neither for PyTorch nor for numpy
    from transformer_cli.text.token_ids import WordEdges


logger = logging.getLogger(__name__)

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """One source term and its target term."""

    source: str
    target: str
    other_forms: tuple[str, ...] = ()
    """Further forms of the target term, such as its plural: the translation contains one of all forms."""
    keeps_case: bool = False
    """Whether capital letters count: the source term is found only in this spelling, and the target term is never
    written with a capital letter at the beginning of a translation."""
    place: str = ""
    """Where the entry was read, such as terms.tsv:12, for messages."""

    @property
    def forms(self) -> tuple[str, ...]:
        """All forms of the target term, without repetitions."""
        return tuple(dict.fromkeys((self.target, *self.other_forms)))


@dataclass(frozen=True, slots=True)
class Glossary:
    """Entries in any order; each source term stands there once, or twice if one of them keeps the case."""

    entries: tuple[GlossaryEntry, ...]

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> "Glossary":
        """A glossary of source terms and their target terms.

        Example:
            translator.with_glossary(Glossary.of({"dog": "Hund"}))
        """
        return cls(tuple(GlossaryEntry(source, target) for source, target in terms.items()))

    def without_header(self, languages: Direction) -> "Glossary":
        """The glossary for these languages without its first line, if this names the columns and is no term.

        Raises:
            DataError: it names the columns after other languages.
        """
        first = next(iter(self.entries), None)
        if first is None or not first.place or not _is_header(first, languages):
            return self
        logger.info(
            "%s: %s and %s are read as the names of the columns, not as a term", first.place, first.source, first.target
        )
        return Glossary(self.entries[1:])


_LONGEST_CODE = 3
_ROLES = ({"source", "src"}, {"target", "tgt", "trg", "translation"})


def _is_header(entry: GlossaryEntry, languages: Direction) -> bool:
    names = entry.source, entry.target
    if all(name.casefold() in roles for name, roles in zip(names, _ROLES, strict=True)):
        return True
    found = [primary_language(named_language(name) or "") for name in names]
    wanted = [primary_language(language) for language in languages]
    if found == wanted[::-1] and found[0] != found[1]:
        logger.warning(
            "%s: the columns are %s and %s, but the translation goes from %s into %s",
            entry.place,
            entry.source,
            entry.target,
            languages.source,
            languages.target,
        )
    if found[0] == found[1] or sorted(found) == sorted(wanted):
        return found[0] != found[1]
    # Codes and names of several words may be terms: "it" and "is", Turkish delight.
    if all(found) and all(len(name) > _LONGEST_CODE and name.isalpha() for name in names):
        column_languages, expected = (
            " and ".join(f"{name_of(code)} ({code})" for code in codes) for codes in (found, wanted)
        )
        raise DataError(
            f"{entry.place}: its columns are in {column_languages}, as their names say, where {expected} are expected",
            hint="give a glossary in the languages of the run; if only the names are wrong, correct them in this line; if they are a term, put another one before it",
        )
    return False


Words = tuple[str, ...]


class FoundTerm(NamedTuple):
    """A source term in a sentence."""

    text: str
    """As it stands in the sentence."""
    entry: GlossaryEntry


class TermFinder:
    """Dictionaries of the source terms, by their words.

    A sentence is looked up word by word, so that the time does not depend on the number of terms.
    """

    def __init__(self, entries: Iterable[GlossaryEntry]) -> None:
        """
        Args:
            entries: with normalised terms.

        Raises:
            DataError: a term stands there twice, with different target terms.
        """
        self._exact: dict[Words, GlossaryEntry] = {}
        self._in_any_case: dict[Words, GlossaryEntry] = {}
        # The numbers of words of all terms with this first word, the largest first.
        self._lengths: dict[str, list[int]] = {}
        for entry in entries:
            words = _with_single_spaces(word_sequence(entry.source))
            folded = _folded(words)
            if entry.keeps_case:
                _add(entry, words, self._exact)
            else:
                _add(entry, folded, self._in_any_case)
            lengths = self._lengths.setdefault(folded[0], [])
            if len(words) not in lengths:
                lengths.append(len(words))
                lengths.sort(reverse=True)

    def find(self, text: str) -> list[FoundTerm]:
        """The terms of a normalised sentence, in order; no word belongs to two of them."""
        pieces = word_sequence(text)
        words = _with_single_spaces(pieces)
        folded = _folded(words)
        found: list[FoundTerm] = []
        place = 0
        while place < len(words):
            for length in self._lengths.get(folded[place], ()):
                end = place + length
                entry = self._exact.get(words[place:end]) or self._in_any_case.get(folded[place:end])
                if entry is not None:
                    found.append(FoundTerm("".join(pieces[place:end]), entry))
                    place = end - 1
                    break
            place += 1
        return found


def _with_single_spaces(pieces: list[str]) -> Words:
    return tuple(" " if piece.isspace() else piece for piece in pieces)


def _folded(words: Words) -> Words:
    """The words without capital letters."""
    return tuple(map(str.casefold, words))


def _add(entry: GlossaryEntry, words: Words, entries: dict[Words, GlossaryEntry]) -> None:
    other = entries.setdefault(words, entry)
    if other.forms != entry.forms:
        term, one, two = (on_one_line(text, _SHOWN_CHARACTERS) for text in (entry.source, entry.target, other.target))
        raise DataError(
            f"{entry.place or 'the glossary'}: {term} stands for {one}, but "
            f"{f'at {other.place} ' if other.place else ''}for {two}",
            hint="keep one of the two; the column case tells Turkey from turkey",
        )


Item = TypeVar("Item", int, str)


def count_forms(
    items: tuple[Item, ...],
    forms: Sequence[tuple[Item, ...]],
    first_forms: Sequence[tuple[Item, ...]] = (),
    is_whole: Callable[[int], bool] = lambda end: True,
) -> int:
    """The largest number of places where forms stand in a sequence, without a common item.

    Args:
        items: tokens or words.
        forms: each of them counts; none is empty.
        first_forms: these count at the beginning of the sequence only.
        is_whole: whether a form may end before the item with this index.
    """
    count = free_from = 0
    for end in range(1, len(items) + 1):
        begins = [end - len(form) for form in forms if items[:end][-len(form) :] == form]
        begins += [0 for form in first_forms if items[:end] == form]
        # The form that ends first leaves most room for others.
        if max(begins, default=-1) >= free_from and is_whole(end):
            count, free_from = count + 1, end
    return count


def count_term(ids: TokenIds, term: Term, edges: "WordEdges") -> int:
    """The largest number of places where a term stands in token ids as whole words, without a common token."""

    def is_whole(end: int) -> bool:
        return end == len(ids) or not (edges.ends_in_word[ids[end - 1]] and edges.goes_on[ids[end]])

    return count_forms(ids, term.forms, term.first_forms, is_whole)


def needed_counts(terms: Counter[Term], edges: "WordEdges") -> list[int]:
    """How often each term must stand in a translation: for itself, and in the forms of the other terms."""
    return [
        number
        + sum(
            others * max(count_term(form, term, edges) for form in other.all_forms)
            for other, others in terms.items()
            if other != term
        )
        for term, number in terms.items()
    ]


def num_needed_tokens(terms: Sequence[Term], edges: "WordEdges") -> int:
    """A number of tokens in which all terms have room, each in its longest form."""
    counts = Counter(terms)
    needed = zip(counts, needed_counts(counts, edges), strict=True)
    return sum(number * max(map(len, term.all_forms)) for term, number in needed)


# Words with single spaces between them. Tokenizers of subwords can write each of them everywhere.
_PLAIN = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)*")


class AppliedTerm(NamedTuple):
    """A term of a glossary that stands in a source line."""

    source: str
    """The source term, as it stands in the line."""
    target: str
    """The target term."""
    is_applied: bool
    """Whether one of the forms of the target term stands in the translation."""


@dataclass(frozen=True, slots=True)
class RequiredTerm:
    """What must stand in the translation of a sentence, as text and as token ids."""

    source: str
    """The source term, as it stands in the sentence."""
    target: str
    """The target term."""
    forms: tuple[str, ...]
    """Its forms, of which the translation contains one."""
    first_forms: tuple[str, ...]
    """The forms with a capital letter, which count at the beginning of the translation."""
    term: Term | None
    """What the search needs; None if the sentence has no room for the term."""
    is_slot: bool = False
    """Whether the term is not in the vocabulary: the search puts [UNK] in its place, and the text gets the term."""


class RequiredTerms:
    """A glossary for one model: finds terms in sentences, and gives their target terms as token ids."""

    def __init__(
        self,
        glossary: Glossary,
        tokenizer: Tokenizer,
        *,
        normalize_source: Callable[[str], str],
        normalize_target: Callable[[str], str],
        max_length: int,
    ) -> None:
        """
        Args:
            glossary: any terms.
            tokenizer: of the target.
            normalize_source: normalises source text as before training.
            normalize_target: normalises target text as before training.
            max_length: the largest number of tokens that the terms of a sentence may need.

        Raises:
            DataError: a term is empty or twice in the glossary, or the tokenizer cannot write it.
        """
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._required: dict[GlossaryEntry, RequiredTerm] = {}
        entries = [_normalized(entry, normalize_source, normalize_target) for entry in glossary.entries]
        self._finder = TermFinder(entries)
        if not self._has_slots:
            for entry in entries:
                self._check(entry)

    def find(self, text: str) -> tuple[RequiredTerm, ...]:
        """What the terms of a normalised sentence require, in their order."""
        required = [replace(self._required_term(found.entry), source=found.text) for found in self._finder.find(text)]
        terms = [each.term for each in required if each.term is not None]
        while required and self._num_needed(terms) > self._max_length:
            # The last terms have no room.
            terms.pop()
            place = max(place for place, each in enumerate(required) if each.term is not None)
            required[place] = replace(required[place], term=None)
        return tuple(required)

    @property
    def _has_slots(self) -> bool:
        """Whether a word may be missing in the vocabulary, so that [UNK] can stand for a term."""
        return self._tokenizer.parts.layout.kind == "WordLevel"

    def _num_needed(self, terms: Sequence[Term]) -> int:
        return num_needed_tokens(terms, self._tokenizer.word_edges)

    def _required_term(self, entry: GlossaryEntry) -> RequiredTerm:
        if entry not in self._required:
            self._required[entry] = self._encoded(entry)
        return self._required[entry]

    def _encoded(self, entry: GlossaryEntry) -> RequiredTerm:
        if not self._can_write(entry.target):
            slot = Term(((self._tokenizer.unk_id,),))
            forms: tuple[str, ...] = (entry.target,)
            return RequiredTerm(entry.source, entry.target, forms, (), slot, is_slot=True)
        forms = tuple(filter(self._can_write, entry.forms))
        capitalized = {form: form[:1].upper() + form[1:] for form in forms}
        first_forms = (
            ()
            if entry.keeps_case
            else tuple(first for form, first in capitalized.items() if first != form and self._can_write(first))
        )
        term = Term(tuple(map(self._ids, forms)), tuple(map(self._ids, first_forms)))
        return RequiredTerm(entry.source, entry.target, forms, first_forms, term)

    def _ids(self, form: str) -> TokenIds:
        return tuple(self._tokenizer.encode_inside(form))

    def _check(self, entry: GlossaryEntry) -> None:
        for form in entry.forms:
            if not _PLAIN.fullmatch(form) and not self._can_write(form):
                raise DataError(
                    f"{entry.place or 'the glossary'}: the model cannot write this target term: "
                    f"{on_one_line(form, _SHOWN_CHARACTERS)}",
                    hint="write the term in another way, or remove the line",
                )

    def _can_write(self, form: str) -> bool:
        """Whether the ids of a form give exactly this text, alone and beside a word."""
        ids, beside = self._ids(form), self._tokenizer.encode("a")
        if self._tokenizer.unk_id in ids:
            return False
        words = tuple(word_sequence(form))
        in_contexts = (ids, (*beside, *ids), (*ids, *beside))
        return all(
            count_forms(tuple(word_sequence(self._tokenizer.decode(context))), [words]) for context in in_contexts
        )


def with_terms(request: Request, required: Sequence[RequiredTerm]) -> Request:
    """The request for a translation that contains the required terms."""
    return request._replace(terms=tuple(each.term for each in required if each.term is not None))


def texts_of_slots(required: Sequence[RequiredTerm]) -> list[str]:
    """For each term that [UNK] stands for, its text with a space before it, as `Tokenizer.decode` takes it."""
    return [f" {each.target}" for each in required if each.is_slot and each.term is not None]


def applied_terms(text: str, required: Sequence[RequiredTerm]) -> tuple[AppliedTerm, ...]:
    """Which of the required terms stand in a text, as whole words; a term that is required twice stands there twice."""
    words = tuple(word_sequence(text))
    num_found = Counter[tuple[str, ...]]()
    for each in required:
        forms, first_forms = (
            [tuple(word_sequence(form)) for form in group] for group in (each.forms, each.first_forms)
        )
        if each.forms not in num_found:
            num_found[each.forms] = count_forms(words, forms, first_forms)
    applied = []
    for each in required:
        applied.append(AppliedTerm(each.source, each.target, num_found[each.forms] > 0))
        num_found[each.forms] -= 1
    return tuple(applied)


def _normalized(
    entry: GlossaryEntry,
    normalize_source: Callable[[str], str],
    normalize_target: Callable[[str], str],
) -> GlossaryEntry:
    """The entry with normalised terms, each on one line."""

    def on_a_line(text: str) -> str:
        return " ".join(text.splitlines()).strip()

    source = on_a_line(normalize_source(entry.source))
    target, *others = (on_a_line(normalize_target(form)) for form in (entry.target, *entry.other_forms))
    forms = tuple(form for form in others if not is_blank(form))
    for term, side in ((source, "source"), (target, "target")):
        if is_blank(term):
            raise DataError(
                f"{entry.place or 'the glossary'}: the {side} term has no visible character",
                hint="remove the line, or write a term",
            )
    return replace(entry, source=source, target=target, other_forms=forms)


# Words of two texts that are compared.


# U+200C and U+200D change the shape of letters; they do not separate words.
_IN_WORD = rf"[\p{{L}}\p{{M}}\p{{N}}\u200C\u200D&&[^{UNSPACED_SCRIPTS}]]"
_CUT = pre_tokenizers.Split(Regex(rf"{_IN_WORD}+|[{UNSPACED_SCRIPTS}]\p{{M}}*|\s+|[^\s]"), "isolated")
_ASCII = re.compile(r"[A-Za-z0-9]+|\s+|[^\s]", re.ASCII)


def word_sequence(text: str) -> list[str]:
    """The words, marks and runs of white space of a text, in order; joined, they are the text.

    A word is a run of letters, digits and combining marks. In a script without spaces between words, such as Chinese, each
    sign is a word.
    """
    if text.isascii():
        return _ASCII.findall(text)
    found = _CUT.pre_tokenize_str(without_surrogates(text))
    return [text[start:end] for _, (start, end) in found]
