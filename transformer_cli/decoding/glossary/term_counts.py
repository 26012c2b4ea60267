"""How often terms stand in token ids or words, and how much room they need."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from transformer_cli.decoding.engine import Term, TokenIds

if TYPE_CHECKING:  # it computes with numpy
    from transformer_cli.text.whole_words.word_edges import WordEdges

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
