"""Replaces [UNK] in a translation by the source word with most attention, or by the dictionary entry of this word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from transformer_cli.decoding.engine import ExplainingEngine, Hypothesis, Request, TokenIds
from transformer_cli.text import Tokenizer


@dataclass(frozen=True, slots=True)
class UnknownReplacement:
    """What stands in a translation instead of [UNK].

    Source: Luong et al. 2015, "Addressing the Rare Word Problem in Neural Machine Translation".
    """

    dictionary: Mapping[str, str] = field(default_factory=dict)
    """The translation of words of the source; a word that it lacks stays as it is."""

    def words(
        self, text: str, source_ids: TokenIds, hypothesis: Hypothesis, source: Tokenizer
    ) -> list[str]:
        """For each [UNK] of a hypothesis, what replaces it, with the space before it if it is a word.

        Args:
            text: the normalised source, whose words are tokens.
            source_ids: its ids, with tags before them and [EOS] behind them.
            hypothesis: explained.
            source: the tokenizer of the source.
        """
        if hypothesis.explanation is None:
            return []
        words = source.words(text)
        num_tags = sum(index in source.tag_ids for index in source_ids)
        places = [
            place - num_tags
            for index, place in zip(hypothesis.ids, hypothesis.explanation.alignment, strict=True)
            if index == source.unk_id
        ]
        unknown = source.decode([source.unk_id])
        return [
            self._translated(words[place]) if 0 <= place < len(words) else f" {unknown}"
            for place in places
        ]

    def _translated(self, word: str) -> str:
        """The dictionary entry of a word; one with a capital letter may stand in lower case, and keeps its capital."""
        bare = word.strip()
        entry = self.dictionary.get(bare)
        if entry is None and bare[:1].isupper():
            lower = self.dictionary.get(bare[:1].lower() + bare[1:])
            entry = lower and lower[:1].upper() + lower[1:]
        return word if entry is None else f" {entry}"


def with_explained_unknown(
    engine: ExplainingEngine,
    hypotheses: Mapping[Request, Sequence[Hypothesis]],
    *,
    unk_id: int,
    batch_tokens: int,
) -> dict[Request, list[Hypothesis]]:
    """The same hypotheses; those that contain [UNK] are explained.

    Args:
        engine: the one that found them.
        hypotheses: of each request, best first.
        unk_id: the id of [UNK].
        batch_tokens: the largest number of tokens in a batch, padding included.
    """
    pairs = [
        (request, hypothesis)
        for request, found in hypotheses.items()
        for hypothesis in found
        if unk_id in hypothesis.ids
    ]
    explanations = iter(
        engine.explain(
            [request for request, _ in pairs],
            [hypothesis.ids for _, hypothesis in pairs],
            batch_tokens=batch_tokens,
        )
    )
    return {
        request: [
            one._replace(explanation=next(explanations)) if unk_id in one.ids else one
            for one in found
        ]
        for request, found in hypotheses.items()
    }
