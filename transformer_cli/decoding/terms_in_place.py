"""Terms of a glossary in the place of the model's own words.

A search that must write a term is free to write its own translation of the word, too: "Il treno convoglio parte". So a sentence
with terms is also translated without them. The attention tells which of its words translate the source terms; where these
words stand beside the terms in the constrained translation, the terms are put in their places in the free one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import (
    ExplainingEngine,
    Explanation,
    Hypothesis,
    Request,
    Term,
    score_of_given,
)
from transformer_cli.decoding.glossary import (
    RequiredTerm,
    applied_terms,
    count_term,
    needed_counts,
    word_sequence,
)
from transformer_cli.decoding.translation import SourceText
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import has_word

if TYPE_CHECKING:  # a translation with another library waits neither for PyTorch nor for numpy
    from transformer_cli.decoding.translator import Translator
    from transformer_cli.text.token_ids import WordEdges

# Of several forms for each of several terms, this many combinations are compared.
_MOST_COMBINATIONS = 16
# A second word belongs to the translation of a term if the model read the term with more than this weight.
_LEAST_WEIGHT = 0.5

Span = tuple[int, int]


class _Free(NamedTuple):
    """A translation of a sentence without its terms, and which of its words translate them."""

    ids: tuple[int, ...]
    rivals: tuple[Span, ...]
    """For each required term, the tokens of the model's own words for it; no two of them overlap."""


def with_terms_in_place(
    translator: "Translator", sources: Sequence[SourceText], hypotheses: Mapping[Request, list[Hypothesis]]
) -> Mapping[Request, list[Hypothesis]]:
    """Hypotheses in which terms of the glossary do not stand beside the model's own words; nothing without a search, or without attention."""
    options, engine, pipeline = translator.decoding, translator.engine, translator.pipeline
    if options.sampling or options.diversity or not isinstance(engine, ExplainingEngine):
        return {}
    required = {part.request: part.terms for source in sources for part in source.parts if part.request in hypotheses}
    placer = TermPlacer(engine, pipeline.source_tokenizer, pipeline.target_tokenizer, options)
    return placer.placed(required, hypotheses)


class TermPlacer:
    """Puts the terms of one glossary in place; see `placed`."""

    def __init__(
        self,
        engine: ExplainingEngine,
        source: Tokenizer,
        target: Tokenizer,
        decoding: DecodingConfig,
    ) -> None:
        self._engine, self._source, self._target = engine, source, target
        self._decoding = decoding

    def placed(
        self,
        required: Mapping[Request, Sequence[RequiredTerm]],
        constrained: Mapping[Request, Sequence[Hypothesis]],
    ) -> dict[Request, list[Hypothesis]]:
        """Better hypotheses for those requests in whose translations a term stands beside the model's own word.

        Those that have both words are left out; the translations without the terms come in their place, with the terms in
        them. So there may be fewer than `num_best`.

        Args:
            required: the terms of each request, in the order of the sentence; a request without terms gets nothing.
            constrained: the hypotheses of the search with terms.
        """
        asked = {
            request: terms
            for request, terms in required.items()
            if terms and all(each.term is not None and not each.is_slot for each in terms)
        }
        beside: dict[Request, list[bool]] = {}
        candidates: dict[tuple[Request, int], list[tuple[int, ...]]] = {}
        for request, all_free in self._free(asked).items():
            found = constrained[request]
            are_beside = [any(self._is_beside(free, one) for free in all_free) for one in found]
            if any(are_beside) or not found:
                beside[request] = are_beside
                for rank, free in enumerate(all_free):
                    candidates[request, rank] = list(self._candidates(free, asked[request], found))
        in_place: dict[Request, list[Hypothesis]] = {}
        for (request, _), best in self._scored(candidates).items():
            in_place.setdefault(request, []).append(best)
        return {
            request: self._replaced(constrained[request], beside[request], better)
            for request, better in in_place.items()
        }

    def _replaced(
        self,
        constrained: Sequence[Hypothesis],
        are_beside: Sequence[bool],
        in_place: Sequence[Hypothesis],
    ) -> list[Hypothesis]:
        """The hypotheses with those that are better in the places of those with a term beside the model's own word."""
        better = iter(in_place)
        found = [
            next(better, None) if is_beside else one for one, is_beside in zip(constrained, are_beside, strict=True)
        ]
        unique = {one.ids: one for one in (*found, *better) if one is not None}
        return list(unique.values())[: self._decoding.num_best]

    def _scored(
        self, candidates: Mapping[tuple[Request, int], Sequence[tuple[int, ...]]]
    ) -> dict[tuple[Request, int], Hypothesis]:
        """The most likely candidate of each request and each of its translations without terms."""
        pairs = [(key, ids) for key, found in candidates.items() for ids in found]
        if not pairs:
            return {}
        explained = self._engine.explain(
            [request._replace(terms=()) for (request, _), _ in pairs],
            [ids for _, ids in pairs],
            batch_tokens=self._decoding.batch_tokens,
        )
        best: dict[tuple[Request, int], Hypothesis] = {}
        for (key, ids), explanation in zip(pairs, explained, strict=True):
            score = score_of_given(explanation, self._decoding)
            if key not in best or score > best[key].score:
                best[key] = Hypothesis(ids, score)
        return best

    def _free(self, asked: Mapping[Request, Sequence[RequiredTerm]]) -> dict[Request, list[_Free]]:
        """The translations of each request without its terms, best first, as far as the words for the terms are known."""
        plain = [request._replace(terms=()) for request in asked]
        found = self._engine.translate(plain, self._decoding) if plain else []
        kept = [
            (request, without, each.ids)
            for request, without, hypotheses in zip(asked, plain, found, strict=True)
            for each in hypotheses
            if each.ids
        ]
        if not kept:
            return {}
        explained = self._engine.explain(
            [without for _, without, _ in kept],
            [ids for _, _, ids in kept],
            batch_tokens=self._decoding.batch_tokens,
        )
        result: dict[Request, list[_Free]] = {}
        for (request, _, ids), explanation in zip(kept, explained, strict=True):
            rivals = self._rivals(request, ids, asked[request], explanation)
            if rivals is not None:
                result.setdefault(request, []).append(_Free(ids, rivals))
        return result

    def _rivals(
        self,
        request: Request,
        ids: Sequence[int],
        terms: Sequence[RequiredTerm],
        explanation: Explanation,
    ) -> tuple[Span, ...] | None:
        """The model's own words for each term; None if they are not known, or the same for two terms."""
        words = [word for word in _words(ids, self._target.word_edges) if self._has_letter(ids[slice(*word)])]
        rivals: list[Span] = []
        place = 0
        for each in terms:
            source = tuple(self._source.encode_inside(each.source))
            start = _place_of(source, request.ids, place)
            if start is None:
                return None
            place = start + len(source)
            rival = _rival(words, range(start, place), explanation)
            if rival is None:
                return None
            rivals.append(rival)
        in_order = sorted(rivals)
        overlap = any(one[1] > two[0] for one, two in pairwise(in_order))
        return None if overlap else tuple(rivals)

    def _has_letter(self, ids: Sequence[int]) -> bool:
        return has_word(self._target.decode(list(ids)))

    def _is_beside(self, free: _Free, constrained: Hypothesis) -> bool:
        """Whether the model's own word for any term stands in a constrained translation as often as in the free one."""
        counts = [Counter(self._folded(ids)) for ids in (free.ids, constrained.ids)]
        return any(
            all(counts[1][word] >= counts[0][word] for word in self._folded(free.ids[slice(*span)]))
            for span in free.rivals
        )

    def _folded(self, ids: Sequence[int]) -> list[str]:
        words = word_sequence(self._target.decode(list(ids)).strip())
        return [word.casefold() for word in words if has_word(word)]

    def _candidates(
        self, free: _Free, terms: Sequence[RequiredTerm], constrained: Sequence[Hypothesis]
    ) -> Iterator[tuple[int, ...]]:
        """The free translation with the terms in place, in all combinations of their forms."""
        longest = max([len(free.ids), *(len(each.ids) for each in constrained)])
        forms = [
            (each.term.first_forms if span[0] == 0 else ()) or each.term.forms
            for each, span in zip(terms, free.rivals, strict=True)
            if each.term is not None
        ]
        for chosen in islice(product(*forms), _MOST_COMBINATIONS):
            ids = free.ids
            for (start, end), form in sorted(zip(free.rivals, chosen, strict=True), reverse=True):
                ids = (*ids[:start], *form, *ids[end:])
            if len(ids) <= longest and self._has_all(ids, terms):
                yield ids

    def _has_all(self, ids: tuple[int, ...], terms: Sequence[RequiredTerm]) -> bool:
        counts: Counter[Term] = Counter(each.term for each in terms if each.term is not None)
        needed = needed_counts(counts, self._target.word_edges)
        has_tokens = all(
            count_term(ids, term, self._target.word_edges) >= number
            for term, number in zip(counts, needed, strict=True)
        )
        text = self._target.decode(list(ids))
        return has_tokens and all(each.is_applied for each in applied_terms(text, terms))


def _words(ids: Sequence[int], edges: "WordEdges") -> list[Span]:
    """The words of some tokens, and their marks: a token that goes on with a word belongs to it."""
    starts = [
        at for at in range(len(ids)) if at == 0 or not (edges.ends_in_word[ids[at - 1]] and edges.goes_on[ids[at]])
    ]
    return list(zip(starts, [*starts[1:], len(ids)], strict=True))


def _place_of(part: Sequence[int], ids: Sequence[int], start: int) -> int | None:
    places = range(start, len(ids) - len(part) + 1)
    return next((at for at in places if tuple(ids[at : at + len(part)]) == part), None)


def _rival(words: Sequence[Span], term: range, explanation: Explanation) -> Span | None:
    """The words that the model wrote when it read a term: the one with the largest weight, and its neighbours."""
    weights = [
        float(explanation.attention[start:end, term.start : term.stop].sum()) / (end - start) for start, end in words
    ]
    linked = [
        number
        for number, (start, end) in enumerate(words)
        if any(explanation.alignment[at] in term for at in range(start, end))
    ]
    if not linked:
        return None
    first = last = max(linked, key=weights.__getitem__)
    while first - 1 in linked and weights[first - 1] > _LEAST_WEIGHT and words[first - 1][1] == words[first][0]:
        first -= 1
    while last + 1 in linked and weights[last + 1] > _LEAST_WEIGHT and words[last][1] == words[last + 1][0]:
        last += 1
    return words[first][0], words[last][1]
