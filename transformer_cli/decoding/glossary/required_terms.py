"""From the terms of a glossary to constraints of a search, and a check that they stand in the translation."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from transformer_cli.decoding.engine import Request, Term, TokenIds
from transformer_cli.decoding.glossary.entries import Glossary, GlossaryEntry
from transformer_cli.decoding.glossary.term_counts import count_forms, num_needed_tokens
from transformer_cli.decoding.glossary.term_finder import TermFinder
from transformer_cli.process.errors import DataError
from transformer_cli.process.escaping import on_one_line
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import is_blank
from transformer_cli.text.whole_words import word_sequence

# Words with single spaces between them. Tokenizers of subwords can write each of them everywhere.
_PLAIN = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)*")
_SHOWN_CHARACTERS = 60


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
        entries = [
            _normalized(entry, normalize_source, normalize_target) for entry in glossary.entries
        ]
        self._finder = TermFinder(entries)
        if not self._has_slots:
            for entry in entries:
                self._check(entry)

    def find(self, text: str) -> tuple[RequiredTerm, ...]:
        """What the terms of a normalised sentence require, in their order."""
        required = [
            replace(self._required_term(found.entry), source=found.text)
            for found in self._finder.find(text)
        ]
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
            else tuple(
                first
                for form, first in capitalized.items()
                if first != form and self._can_write(first)
            )
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
            count_forms(tuple(word_sequence(self._tokenizer.decode(context))), [words])
            for context in in_contexts
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
            [tuple(word_sequence(form)) for form in group]
            for group in (each.forms, each.first_forms)
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
    target, *others = (
        on_a_line(normalize_target(form)) for form in (entry.target, *entry.other_forms)
    )
    forms = tuple(form for form in others if not is_blank(form))
    for term, side in ((source, "source"), (target, "target")):
        if is_blank(term):
            raise DataError(
                f"{entry.place or 'the glossary'}: the {side} term has no visible character",
                hint="remove the line, or write a term",
            )
    return replace(entry, source=source, target=target, other_forms=forms)
