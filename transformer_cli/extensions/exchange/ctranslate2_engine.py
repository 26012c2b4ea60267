"""The CTranslate2 engine: translates token ids with a converted model; PyTorch does what CTranslate2 cannot do.

At the first use of a checkpoint, its model is converted and checked.
"""

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from transformer_cli.checkpoint.trained_files import TrainedFiles, converted_files, load_weights
from transformer_cli.config import Config, DecodingConfig, ModelConfig, RuntimeConfig
from transformer_cli.decoding.engine import (
    MAX_LOGITS,
    TEXT_SETTINGS,
    ExplainingEngine,
    Explanation,
    Hypothesis,
    Request,
    SpecialIds,
    TokenIds,
    length_batches,
    length_limits,
    length_penalty,
    require_agreement,
    unknown_settings,
)
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.extensions.exchange.ctranslate2_models import (
    LAYOUT,
    ctranslate2_files,
    require_convertible,
    require_ctranslate2,
)
from transformer_cli.extensions.exchange.position_tables import num_positions
from transformer_cli.process.errors import ConfigError
from transformer_cli.text import SequenceFormat, Tokenizer

if TYPE_CHECKING:  # this engine needs no PyTorch
    from torch import Tensor

    from transformer_cli.decoding.shortlist import Shortlist
    from transformer_cli.model import Transformer

logger = logging.getLogger(__name__)

NUM_CHECKED = 20
"""Sentences whose translations must be those of PyTorch before a converted model is kept."""
VOCABULARY_MAP = "vmap.txt"
"""The file of CTranslate2 for a lexical shortlist."""
_KNOWN = TEXT_SETTINGS | {
    "beam_size",
    "length_penalty",
    "num_best",
    "max_length",
    "allow_unknown",
    "batch_tokens",
    "shortlist",
}
"""The settings of decoding that this engine follows; others must have their defaults."""


@dataclass(frozen=True, slots=True)
class CTranslate2Engine:
    """An `Engine` with a converted model.

    The beam search is that of CTranslate2. Its hypotheses are ranked again, with the length penalty of Wu et al.
    2016, which it does not have. Greedy translations are those of the PyTorch engine. A request is given
    to PyTorch if it has facts of its own, or if CTranslate2 found a token that is banned or a broken character.
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
    shortlist: "Shortlist | None" = None
    """The target tokens among which it chooses: those of a whole batch together; None: the whole vocabulary."""

    def describe(self) -> str:
        """Library, device and precision in a few words."""
        from ctranslate2 import __version__

        device = "CPU" if self.translator.device == "cpu" else self.translator.device
        return f"CTranslate2 {__version__} on {device}, {self.translator.compute_type}"

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
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
            for index, hypotheses in zip(batch, self._search(sources, limit, options), strict=True):
                own = self._max_length(requests[index].ids, options)
                if any(len(hypothesis.ids) > own for hypothesis in hypotheses):
                    # The limit of a batch is that of its longest source.
                    [hypotheses] = self._search([requests[index].ids], own, options)
                if hypotheses and all(self._is_allowed(one.ids, options) for one in hypotheses):
                    found[index] = hypotheses[: options.num_best]
        others = [index for index in range(len(requests)) if index not in found]
        if others:
            by_pytorch = self.pytorch().translate([requests[index] for index in others], options)
            found |= dict(zip(others, by_pytorch, strict=True))
        return [found[index] for index in range(len(requests))]

    def with_all_settings(self) -> ExplainingEngine:
        """See `LimitedEngine.with_all_settings`: PyTorch."""
        return self.pytorch()

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
        return self.pytorch().explain(requests, targets, batch_tokens=batch_tokens, num_best=num_best)

    def _search(self, sources: Sequence[TokenIds], limit: int, options: DecodingConfig) -> list[list[Hypothesis]]:
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
            use_vmap=self.shortlist is not None,
        )
        return [_ranked(result, options) for result in results]

    def _is_allowed(self, ids: TokenIds, options: DecodingConfig) -> bool:
        """Whether the PyTorch engine, too, could have found these tokens."""
        special = self.special_ids
        banned = {special.pad_id, special.sos_id, *special.tag_ids}
        if not options.allow_unknown:
            banned.add(special.unk_id)
        return banned.isdisjoint(ids) and self.is_text(ids)

    def _max_length(self, source: TokenIds, options: DecodingConfig) -> int:
        """The largest number of tokens of a translation."""
        return length_limits(len(source), options, most=self.max_positions).largest

    def _refuse_unknown(self, options: DecodingConfig) -> None:
        for name in unknown_settings(options, _KNOWN):
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


def _ranked(result: Any, options: DecodingConfig) -> list[Hypothesis]:
    """The hypotheses of one sentence, best first: log-probability / length penalty."""
    hypotheses = []
    normalization, alpha = options.length_normalization, options.length_penalty
    for tokens, total in zip(result.hypotheses, result.scores, strict=True):
        ids = tuple(map(int, tokens))
        hypotheses.append(Hypothesis(ids, total / length_penalty(len(ids), normalization, alpha)))
    return sorted(hypotheses, key=lambda one: -one.score)


def ctranslate2_translator(files: Mapping[str, bytes], device: str, precision: str, threads: int) -> Any:
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


def compute_type(runtime: RuntimeConfig) -> str:
    """The precision in which CTranslate2 computes: float32, unless the config names another one."""
    return "float32" if runtime.precision == "auto" else runtime.precision


def require_possible(model: ModelConfig, sequence_format: SequenceFormat) -> None:
    """Check that CTranslate2 is installed and can translate with a model.

    Raises:
        ConfigError: it is not, or it cannot.
    """
    require_ctranslate2()
    require_convertible(model)
    if not sequence_format.has_end or not sequence_format.is_shifted:
        raise ConfigError(
            "decoding.engine: ctranslate2, but the model has no [EOS] or reads its target unshifted "
            "(data.end_symbol, data.shift_target)",
            hint="use the other engine: --set decoding.engine=torch",
        )


def load_ctranslate2_engine(
    files: TrainedFiles,
    config: Config,
    pipeline: TextPipeline,
    pytorch: Callable[[], ExplainingEngine],
) -> CTranslate2Engine:
    """The CTranslate2 engine of a checkpoint.

    Args:
        files: of the checkpoint.
        config: with the settings of decoding and of the machine.
        pipeline: makes requests of the validation sentences with which a newly converted model is checked.
        pytorch: loads the PyTorch engine of the same checkpoint, in float32.

    Raises:
        ConfigError: CTranslate2 is not installed, or a setting asks for something that it does not do.
        DataError: the converted model does not translate as PyTorch does.
        DamagedError: the weights have changed since they were saved.
    """
    require_possible(config.model, SequenceFormat.of(config.data))
    tokenizer = files.target_tokenizer

    def convert() -> dict[str, bytes]:
        logger.info("%s: converting the model for CTranslate2", files.folder)
        made = ctranslate2_files(load_weights(files).model, tokenizer)
        requests = _requests(files, pipeline)
        engine = _opened(made, tokenizer, config, "float32", pytorch)
        require_agreement(engine, pytorch(), requests, what=f"{files.folder}: converted")
        return made

    made = converted_files(files.checkpoint, "ctranslate2", LAYOUT, convert)
    shortlist = None
    if config.decoding.shortlist is not None:
        from transformer_cli.decoding.shortlist import load_shortlist, shortlist_path

        tokenizers = files.source_tokenizer, tokenizer
        path = shortlist_path(files.folder)
        shortlist = load_shortlist(path, config.decoding.shortlist, tokenizers)
        ids = ([*map(str, range(one.vocab_size))] for one in tokenizers)
        made = {**made, VOCABULARY_MAP: shortlist.vocabulary_map(*ids)}
    engine = _opened(made, tokenizer, config, compute_type(config.runtime), pytorch)
    return replace(engine, shortlist=shortlist)


def build_ctranslate2_engine(
    model: "Transformer",
    target_tokenizer: Tokenizer,
    config: Config,
    pytorch: Callable[[], ExplainingEngine],
) -> CTranslate2Engine:
    """The CTranslate2 engine of a model in memory, which is not compared with PyTorch.

    Args:
        model: on the CPU, in float32.
        target_tokenizer: of the target.
        config: with the settings of the model, of its sequences and of the machine.
        pytorch: loads the PyTorch engine of the same model.

    Raises:
        ConfigError: as of `load_ctranslate2_engine`.
    """
    require_possible(config.model, SequenceFormat.of(config.data))
    files = ctranslate2_files(model, target_tokenizer)
    return _opened(files, target_tokenizer, config, compute_type(config.runtime), pytorch)


def _opened(
    files: Mapping[str, bytes],
    target_tokenizer: Tokenizer,
    config: Config,
    precision: str,
    pytorch: Callable[[], ExplainingEngine],
) -> CTranslate2Engine:
    """The engine of a converted model."""
    runtime = config.runtime
    return CTranslate2Engine(
        translator=ctranslate2_translator(files, runtime.device, precision, runtime.threads or 0),
        special_ids=SpecialIds.of(target_tokenizer),
        max_positions=num_positions(config.model),
        vocabulary_size=target_tokenizer.vocab_size,
        is_text=target_tokenizer.has_whole_characters,
        pytorch=pytorch,
    )


def _requests(files: TrainedFiles, pipeline: TextPipeline) -> list[Request]:
    """The first validation sentences of the run; without them, random tokens."""
    from transformer_cli.extensions.exchange.verification import stored_sources

    sources = stored_sources(files)[:NUM_CHECKED]
    pipelines = [(replace(pipeline, direction=number), line) for line, number in sources]
    requests = [part for one, line in pipelines for part in one.prepare(line).requests]
    return list(dict.fromkeys(requests))[:NUM_CHECKED] or _random_requests(files)


def _random_requests(files: TrainedFiles) -> list[Request]:
    generator, tokenizer = random.Random(0), files.source_tokenizer
    ordinary = range(len(tokenizer.special_tokens), tokenizer.vocab_size)
    longest = max(1, files.config.model.max_length - 1)
    lengths = [min(number, longest) for number in range(1, NUM_CHECKED + 1)]
    return [Request((*generator.choices(ordinary, k=k), tokenizer.eos_id)) for k in lengths]
