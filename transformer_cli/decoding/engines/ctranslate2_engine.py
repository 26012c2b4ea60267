"""The CTranslate2 engine: translates token ids with a converted model; PyTorch does what CTranslate2 cannot do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import (
    MAX_LOGITS,
    ExplainingEngine,
    Explanation,
    Hypothesis,
    Request,
    SpecialIds,
    TokenIds,
    length_batches,
)
from transformer_cli.process.errors import ConfigError

if TYPE_CHECKING:  # this engine needs no PyTorch
    from torch import Tensor

_KNOWN = {
    "engine", "beam_size", "length_penalty", "num_best", "max_length", "split_sentences",
    "allow_unknown", "batch_tokens",
}  # fmt: skip
"""The settings of decoding that this engine follows; others must have their defaults."""


@dataclass(frozen=True, slots=True)
class CTranslate2Engine:
    """An `Engine` with a converted model.

    The beam search is that of CTranslate2. Its hypotheses are ranked again, with the length penalty of Wu et al.
    2016, which it does not have. Greedy translations are those of the PyTorch engine. A request is given
    to PyTorch if it has wishes of its own, or if CTranslate2 found a token that is banned or a broken character.
    """

    translator: Any
    """A `ctranslate2.Translator`."""
    special_ids: SpecialIds
    max_positions: int
    """The length of the longest translation that the converted model can write."""
    vocabulary_size: int
    is_text: Callable[[TokenIds], bool]
    """Whether the bytes of target tokens are whole characters."""
    pytorch: Callable[[], ExplainingEngine]
    """The PyTorch engine of the same model; it is loaded at the first call."""

    def describe(self) -> str:
        """Library, device and precision in a few words."""
        from ctranslate2 import __version__

        device = "CPU" if self.translator.device == "cpu" else self.translator.device
        return f"CTranslate2 {__version__} on {device}, {self.translator.compute_type}"

    def translate(
        self, requests: Sequence[Request], options: DecodingConfig
    ) -> list[list[Hypothesis]]:
        """See `Engine.translate`.

        Raises:
            ConfigError: a setting asks for something that CTranslate2 does not do.
        """
        self._refuse_unknown(options)
        found: dict[int, list[Hypothesis]] = {}
        plain = [index for index, one in enumerate(requests) if one == Request(one.ids)]
        batches = length_batches(
            plain,
            lambda index: len(requests[index].ids),
            max_tokens=options.batch_tokens,
            max_items=max(1, MAX_LOGITS // (options.beam_size * self.vocabulary_size)),
        )
        for batch in batches:
            sources = [requests[index].ids for index in batch]
            limit = max(self._max_length(source, options) for source in sources)
            for index, of_one in zip(batch, self._search(sources, limit, options), strict=True):
                own = self._max_length(requests[index].ids, options)
                if any(len(hypothesis.ids) > own for hypothesis in of_one):
                    # The limit of a batch is that of its longest source.
                    [of_one] = self._search([requests[index].ids], own, options)
                if of_one and all(self._is_allowed(one.ids, options) for one in of_one):
                    found[index] = of_one[: options.num_best]
        others = [index for index in range(len(requests)) if index not in found]
        if others:
            by_pytorch = self.pytorch().translate([requests[index] for index in others], options)
            found |= dict(zip(others, by_pytorch, strict=True))
        return [found[index] for index in range(len(requests))]

    def negative_log_likelihood(
        self, sources: Sequence[TokenIds], targets: Sequence[TokenIds], *, batch_tokens: int
    ) -> float:
        """See `Engine.negative_log_likelihood`; PyTorch computes it."""
        engine = self.pytorch()
        return engine.negative_log_likelihood(sources, targets, batch_tokens=batch_tokens)

    def next_token_probabilities(self, source: TokenIds, prefix: TokenIds) -> "Tensor":
        """See `Engine.next_token_probabilities`; PyTorch computes it."""
        return self.pytorch().next_token_probabilities(source, prefix)

    def explain(
        self,
        requests: Sequence[Request],
        targets: Sequence[TokenIds],
        *,
        batch_tokens: int,
        num_best: int = 0,
    ) -> list[Explanation]:
        """See `ExplainingEngine.explain`; PyTorch computes it."""
        return self.pytorch().explain(
            requests, targets, batch_tokens=batch_tokens, num_best=num_best
        )

    def _search(
        self, sources: Sequence[TokenIds], limit: int, options: DecodingConfig
    ) -> list[list[Hypothesis]]:
        """The hypotheses that CTranslate2 finds, ranked by our score; without any ban."""
        results = self.translator.translate_batch(
            [[str(token) for token in source] for source in sources],
            beam_size=options.beam_size,
            num_hypotheses=options.beam_size,
            length_penalty=0.0,  # so that its score is the log-probability
            return_end_token=True,
            return_scores=True,
            max_input_length=0,
            max_decoding_length=limit,
            # The default, 1, changes the probabilities of the first token.
            min_decoding_length=0,
        )
        return [_ranked(result, options.length_penalty) for result in results]

    def _is_allowed(self, ids: TokenIds, options: DecodingConfig) -> bool:
        """Whether the PyTorch engine, too, could have found these tokens."""
        special = self.special_ids
        banned = {special.pad_id, special.sos_id, *special.tag_ids}
        if not options.allow_unknown:
            banned.add(special.unk_id)
        return banned.isdisjoint(ids) and self.is_text(ids)

    def _max_length(self, source: TokenIds, options: DecodingConfig) -> int:
        """The largest number of tokens of a translation."""
        return min(options.max_length or 2 * len(source) + 20, self.max_positions)

    def _refuse_unknown(self, options: DecodingConfig) -> None:
        for name, field in sorted(DecodingConfig.model_fields.items()):
            if name not in _KNOWN and getattr(options, name) != field.default:
                raise ConfigError(
                    f"decoding.{name}: CTranslate2 does not know this setting",
                    hint=f"leave decoding.{name} out, or set decoding.engine=torch",
                )
        if (options.max_length or 0) > self.max_positions:
            raise ConfigError(
                f"decoding.max_length: {options.max_length}, but the converted model has positions for "
                f"{self.max_positions} tokens",
                hint=f"set decoding.max_length to at most {self.max_positions}, or decoding.engine=torch",
            )


def _ranked(result: Any, alpha: float) -> list[Hypothesis]:
    """The hypotheses of one sentence, best first: log-probability / ((5 + length) / 6)^alpha."""
    hypotheses = []
    for tokens, total in zip(result.hypotheses, result.scores, strict=True):
        ids = tuple(map(int, tokens))
        hypotheses.append(Hypothesis(ids, total / ((5.0 + len(ids)) / 6.0) ** alpha))
    return sorted(hypotheses, key=lambda one: -one.score)


def load_translator(files: Mapping[str, bytes], device: str, precision: str, threads: int) -> Any:
    """A `ctranslate2.Translator` of a converted model.

    Args:
        files: names and contents of its files.
        device: auto, cpu or cuda.
        precision: the type of weights and matrix products.
        threads: 0: the default of CTranslate2.

    Raises:
        ConfigError: this machine cannot compute in this precision, or has no such device.
    """
    import ctranslate2

    has_gpu = ctranslate2.get_cuda_device_count() > 0
    if device == "mps" or (device == "cuda" and not has_gpu):
        raise ConfigError(
            f"runtime.device: {device}, but CTranslate2 finds no such device on this machine",
            hint="set runtime.device=cpu, or decoding.engine=torch",
        )
    place = "cuda" if device in ("auto", "cuda") and has_gpu else "cpu"
    possible = sorted(ctranslate2.get_supported_compute_types(place))
    if precision not in possible:
        raise ConfigError(
            f"runtime.precision: {precision}, but CTranslate2 computes in {', '.join(possible)} on this machine",
            hint="set runtime.precision=float32, or decoding.engine=torch",
        )
    return ctranslate2.Translator(
        "model",
        device=place,
        compute_type=precision,
        inter_threads=1,
        intra_threads=threads,
        files=dict(files),
    )
