"""Explains lines: what a trained model does with each sentence, from its tokens to its translation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.config.decoding import OTHER_SEARCHES
from transformer_cli.decoding import (
    Explanation,
    Hypothesis,
    Request,
    TextPipeline,
    TokenIds,
    Translator,
)
from transformer_cli.decoding.details import (
    alignment_units,
    linked_words,
    places_of_parts,
    spans_in_line,
    words_at,
)
from transformer_cli.decoding.ensemble import EnsembleEngine
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.decoding.translation import SourceText
from transformer_cli.extensions.lessons.explaining.beam_tree import (
    BeamRecorder,
    best_of_each_step,
    branches,
    with_continuations,
)
from transformer_cli.extensions.lessons.explaining.explanation import (
    FORMAT,
    BeamTree,
    DecoderToken,
    ExplainedHypothesis,
    ExplainedSentence,
    LineExplanation,
    ProbableToken,
    Source,
    SourceToken,
    Span,
    TargetToken,
)
from transformer_cli.extensions.lessons.explaining.forward_trace import (
    ForwardTrace,
    attention_of,
    masks_of,
    positions_of,
    trace_forward,
)
from transformer_cli.model import Transformer
from transformer_cli.process.device import to_device
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.messages import on_one_line
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import without_line_breaks
from transformer_cli.text.token_ids import pad_ids

_NOWHERE = (-2, -1)


def explained_source(ids: TokenIds, text: str, start: int, tokenizer: Tokenizer) -> Source:
    """The tokens of a sentence, with a tag before them and [EOS] behind them where the model reads these.

    Args:
        start: where the sentence begins in the line.
    """
    pieces = tokenizer.marked_tokens(ids)
    places = spans_in_line(ids, text, 0, tokenizer)
    tokens = tuple(
        SourceToken(
            index,
            piece,
            tokenizer.entries[index],
            _kind(index, tokenizer),
            None if begin < 0 else begin,
            None if begin < 0 else end,
        )
        for index, piece, (begin, end) in zip(ids, pieces, places, strict=True)
    )
    return Source(text, start, tokens, tuple(alignment_units(tokenizer, text)))


def _kind(index: int, tokenizer: Tokenizer) -> Literal["text", "tag", "end"]:
    if index in tokenizer.tag_ids:
        return "tag"
    return "end" if index == tokenizer.eos_id else "text"


def explained_hypothesis(
    source: Source,
    ids: TokenIds,
    explanation: Explanation,
    tokenizer: Tokenizer,
    numbers: tuple[float, float, float],
) -> ExplainedHypothesis:
    """A hypothesis with its tokens, and their links to the source.

    Args:
        ids: of the hypothesis.
        tokenizer: of the target.
        numbers: score, log-probability and length penalty.
    """
    text = without_line_breaks(tokenizer.decode(ids))
    spans = tokenizer.decoded_spans(ids)
    tokens = _target_tokens(ids, spans, explanation, tokenizer)
    words = alignment_units(tokenizer, text)
    source_spans = [_NOWHERE if one.start is None or one.end is None else (one.start, one.end) for one in source.tokens]
    target_spans = [span if span[0] < len(text) else _NOWHERE for span in spans]
    links = linked_words(explanation.attention, words_at(source_spans, source.words), words_at(target_spans, words))
    alignment = tuple(
        (place, aligned, float(explanation.attention[place, aligned]))
        for place, aligned in enumerate(explanation.alignment)
        if ids[place] != tokenizer.eos_id
    )
    return ExplainedHypothesis(
        text, *numbers, tokens, alignment, tuple(words), tuple((one[0], one[1]) for one in links)
    )


def _target_tokens(
    ids: TokenIds, spans: Sequence[Span], explanation: Explanation, tokenizer: Tokenizer
) -> tuple[TargetToken, ...]:
    log_probs = explanation.token_log_probs.tolist()
    best = zip(explanation.best_ids, explanation.best_log_probs, strict=True)
    rows = zip(ids, tokenizer.marked_tokens(ids), spans, log_probs, best, strict=True)
    return tuple(
        TargetToken(
            index,
            piece,
            tokenizer.entries[index],
            start,
            end,
            log_prob,
            float(np.exp(log_prob)),
            _alternatives(best_ids.tolist(), best_log_probs.tolist(), tokenizer),
        )
        for index, piece, (start, end), log_prob, (best_ids, best_log_probs) in rows
    )


def _alternatives(ids: Sequence[int], log_probs: Sequence[float], tokenizer: Tokenizer) -> tuple[ProbableToken, ...]:
    rows = zip(ids, tokenizer.marked_tokens(ids), log_probs, strict=True)
    return tuple(ProbableToken(index, piece, log, float(np.exp(log))) for index, piece, log in rows)


def decoder_tokens(ids: Sequence[int], tokenizer: Tokenizer) -> tuple[DecoderToken, ...]:
    """What the decoder reads."""
    return tuple(map(DecoderToken, ids, tokenizer.marked_tokens(ids)))


MAX_CONTINUED = 100
"""From how many branches of a search greedy search goes on; a long sentence has thousands of branches."""


class Explained(NamedTuple):
    """A sentence that was translated and explained."""

    found: list[Hypothesis]
    explained: ExplainedSentence


@dataclass(frozen=True, slots=True)
class SentenceExplainer:
    """Explains sentences, one at a time."""

    engine: PyTorchEngine
    pipeline: TextPipeline
    options: DecodingConfig
    """Plain beam search."""
    num_alternatives: int
    temperatures: tuple[float, ...]

    def explain(self, request: Request, text: str, start: int, *, continues: bool) -> Explained:
        """What the model does with a sentence.

        Args:
            text: of the sentence, normalised.
            start: its place in the line.
            continues: see `Explainer.explain`.

        Raises:
            DataError: the search found no translation.
        """
        found, tree = self._searched(request)
        if not found:
            raise DataError(
                f"{on_one_line(text, 60)}: the search found no translation",
                hint="give another beginning, or a larger decoding.max_length",
            )
        if continues:
            tree = with_continuations(tree, self._continuations(request, tree))
        source = explained_source(request.ids, text, start, self.pipeline.source_tokenizer)
        best_ids = found[0].ids
        decoder_input_ids = self._decoder_input_ids(best_ids)
        trace = self._trace(request.ids, decoder_input_ids)
        hypotheses = self._hypotheses(request, source, found, tree)
        best = self._with_partitions(hypotheses[0], trace)
        model = self.engine.model
        explained = ExplainedSentence(
            source,
            (best, *hypotheses[1:]),
            decoder_tokens(decoder_input_ids[0].tolist(), self.pipeline.target_tokenizer),
            attention_of(trace, model),
            masks_of(trace),
            positions_of(trace, model, len(request.ids), len(best_ids)),
            tuple(trace.shapes),
            tree,
        )
        return Explained(found, explained)

    def _searched(self, request: Request) -> tuple[list[Hypothesis], BeamTree]:
        """The hypotheses, found by the same search as those of a translation, and its tree."""
        tokenizer = self.pipeline.target_tokenizer
        recorder = BeamRecorder(tokenizer.sos_id, self._piece, self.num_alternatives)
        engine = replace(self.engine, observer=recorder)
        [found] = engine.translate([request], self.options)
        return found, recorder.tree(self.options.beam_size, [one.ids for one in found])

    def _piece(self, index: int) -> str:
        [piece] = self.pipeline.target_tokenizer.marked_tokens([index])
        return piece

    def _continuations(self, request: Request, tree: BeamTree) -> dict[int, str]:
        """The text of each branch: as it ends, or as greedy search goes on from the best `MAX_CONTINUED`."""
        tokenizer = self.pipeline.target_tokenizer
        endings = branches(tree)
        is_complete = {node.node for node in tree.nodes if node.state in ("finished", "chosen")}
        is_complete |= {node.node for node in tree.nodes if node.id == tokenizer.eos_id}
        left = best_of_each_step(tree, [node for node in endings if node not in is_complete])
        for node in left[MAX_CONTINUED:]:
            del endings[node]
        left = left[:MAX_CONTINUED]
        engine = replace(self.engine, continuing_ids=tuple)  # a branch may end inside a word
        greedy = self.options.best_of_beam(1)
        requests = [request._replace(prefix=endings[node]) for node in left]
        found = engine.translate(requests, greedy)
        for node, branch_hypotheses in zip(left, found, strict=True):
            endings[node] = branch_hypotheses[0].ids if branch_hypotheses else endings[node]
        return {node: without_line_breaks(tokenizer.decode(ids)) for node, ids in endings.items()}

    def _hypotheses(
        self, request: Request, source: Source, found: Sequence[Hypothesis], tree: BeamTree
    ) -> list[ExplainedHypothesis]:
        targets = [one.ids for one in found]
        explanations = self.engine.explain(
            [request] * len(found),
            targets,
            batch_tokens=self.options.batch_tokens,
            num_best=self.num_alternatives,
        )
        ends = {node.hypothesis: node for node in tree.nodes if node.hypothesis is not None}
        return [
            explained_hypothesis(
                source,
                one.ids,
                explanation,
                self.pipeline.target_tokenizer,
                (one.score, ends[rank].total, ends[rank].length_penalty),
            )
            for rank, (one, explanation) in enumerate(zip(found, explanations, strict=True))
        ]

    def _decoder_input_ids(self, target: TokenIds) -> Tensor:
        """(1, T) int64: what the decoder reads in order to predict these tokens."""
        special_ids = self.engine.special_ids
        target_ids, is_real = pad_ids([target], special_ids.pad_id)
        inputs = self.engine.sequence_format.decoder_inputs(
            target_ids, is_real, sos_id=special_ids.sos_id, pad_id=special_ids.pad_id
        )
        return torch.from_numpy(inputs)

    def _trace(self, source: TokenIds, decoder_input_ids: Tensor) -> ForwardTrace:
        machine = self.engine.machine
        ids = torch.tensor([source]), decoder_input_ids
        with torch.inference_mode(), machine.autocast():
            return trace_forward(self.engine.model, *(to_device(one, machine.device) for one in ids))

    def _with_partitions(self, best: ExplainedHypothesis, trace: ForwardTrace) -> ExplainedHypothesis:
        """The hypothesis whose tokens know how a temperature changes their probabilities."""
        log_probs = trace.log_probs.double()
        log_sums = torch.stack(
            [(log_probs / one).logsumexp(-1) for one in self.temperatures], dim=-1
        )  # (T, number of temperatures)
        tokens = zip(best.tokens, log_sums.tolist(), strict=True)
        return replace(best, tokens=tuple(replace(one, log_partitions=tuple(partitions)) for one, partitions in tokens))


TEMPERATURES = tuple(round(0.1 * tenths, 1) for tenths in range(2, 21))
"""From 0.2 to 2.0."""
NUM_ALTERNATIVES = 5


@dataclass(frozen=True, slots=True)
class Explainer:
    """Explains what a model does with a line: the same search as that of a translation, observed."""

    translator: Translator
    engine: PyTorchEngine
    num_alternatives: int = NUM_ALTERNATIVES
    """How many of the most probable tokens are told for each place."""

    @classmethod
    def of(cls, translator: Translator, *, num_alternatives: int = NUM_ALTERNATIVES) -> "Explainer":
        """The explainer of a translator of one direction.

        Raises:
            UsageError: it is an ensemble, or another library translates, or its settings ask for another search.
        """
        engine, decoding = translator.engine, translator.decoding
        if isinstance(engine, EnsembleEngine):
            raise UsageError("the inside of an ensemble cannot be shown", hint="name one run")
        if not isinstance(engine, PyTorchEngine):
            raise UsageError(
                "only the engine that runs on PyTorch can show the inside of a model",
                hint="set decoding.engine=torch",
            )
        for name in OTHER_SEARCHES:
            if getattr(decoding, name) is not None:
                raise UsageError(
                    f"decoding.{name}: plain beam search is explained, and nothing else",
                    hint=f"set decoding.{name}=null",
                )
        return cls(translator, engine, num_alternatives)

    def explain(
        self,
        line: str,
        *,
        beam_size: int | None = None,
        num_best: int | None = None,
        prefix: str = "",
        prefix_ids: TokenIds = (),
        continues: bool = False,
    ) -> LineExplanation:
        """What the model does with a line.

        The line is read as `tfm translate` reads it, but without `decoding.keep_layout`.

        Args:
            beam_size, num_best: instead of the settings; a `num_best` above the beam size is lowered to it.
            prefix: whole words with which the translation of the first sentence begins.
            prefix_ids: target tokens with which it begins, instead of `prefix`; they may end inside a word.
            continues: whether each branch of the beam that was left is continued by greedy search.

        Raises:
            DataError: the search found no translation, or the model cannot write the prefix.
        """
        options = self._options(beam_size, num_best)
        prepared = self._prepared(line, prefix, prefix_ids)
        # Tokens that a user chose may end inside a word, and the rest of the word follows them.
        engine = replace(self.engine, continuing_ids=tuple) if prefix_ids else self.engine
        recorded = SentenceExplainer(
            replace(engine, observer=None),
            self.translator.pipeline,
            options,
            self.num_alternatives,
            TEMPERATURES,
        )
        searched = [
            recorded.explain(part.request, part.text, place, continues=continues)
            for part, place in zip(prepared.parts, places_of_parts(prepared), strict=True)
        ]
        translation = self.translator.pipeline.restore(prepared, [one.found for one in searched])
        return LineExplanation(
            FORMAT,
            line,
            prepared.read,
            translation.text,
            self._languages,
            _facts_of_model(self.engine.model),
            _facts_of_search(options),
            TEMPERATURES,
            tuple(one.explained for one in searched),
        )

    def _options(self, beam_size: int | None, num_best: int | None) -> DecodingConfig:
        options = self.translator.decoding
        size = beam_size or options.beam_size
        best = min(num_best or options.num_best, size)
        return options.model_copy(update={"beam_size": size, "num_best": best})

    def _prepared(self, line: str, prefix: str, prefix_ids: TokenIds) -> SourceText:
        if prefix and prefix_ids:
            raise UsageError("a prefix as text and one as token ids were given", hint="give one")
        prepared = self.translator.pipeline.prepare(line, prefix)
        if not (prefix_ids and prepared.parts):
            return prepared
        self._check_prefix(prefix_ids)
        first = prepared.parts[0]
        first = first._replace(request=first.request._replace(prefix=prefix_ids))
        return prepared._replace(parts=(first, *prepared.parts[1:]))

    def _check_prefix(self, ids: TokenIds) -> None:
        pipeline = self.translator.pipeline
        tokenizer, max_length = pipeline.target_tokenizer, pipeline.max_length
        forbidden = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id, *tokenizer.tag_ids}
        if bad := [index for index in ids if not 0 <= index < tokenizer.vocab_size]:
            raise DataError(f"the prefix: token id {bad[0]}, but the ids are 0 to {tokenizer.vocab_size - 1}")
        if special := [index for index in ids if index in forbidden]:
            raise DataError(
                f"the prefix: token id {special[0]} is {tokenizer.entries[special[0]]}, which no translation contains before its end"
            )
        if len(ids) >= max_length:
            raise DataError(
                f"the prefix: {len(ids)} tokens, but the model writes at most {max_length}",
                hint="give a shorter beginning",
            )

    @property
    def _languages(self) -> tuple[str | None, str | None]:
        languages = self.translator.pipeline.languages
        return languages.source, languages.target


def _facts_of_model(model: Transformer) -> dict[str, Any]:
    """The settings of a model that name the sizes of its tensors."""
    config = model.config
    names = (
        "d_model",
        "num_heads",
        "encoder_layers",
        "decoder_layers",
        "decoder_layer",
        "d_ff",
        "positions",
    )
    facts = {name: getattr(config, name) for name in names}
    sizes = {"head_width": config.head_width, "num_kv_heads": config.kv_heads}
    return facts | sizes | {"norm_placement": config.norm_placement}


def _facts_of_search(options: DecodingConfig) -> dict[str, Any]:
    names = ("beam_size", "num_best", "length_penalty", "length_normalization", "coverage_penalty")
    return {name: getattr(options, name) for name in names}
