"""Explains one sentence: its search is observed, and the best hypothesis goes through the model once more."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Hypothesis, Request, TextPipeline, TokenIds
from transformer_cli.decoding.engines.pytorch import PyTorchEngine
from transformer_cli.decoding.text_pipeline import LINE_BREAKS
from transformer_cli.extensions.lessons.explaining.beam_tree import (
    BeamRecorder,
    best_of_each_step,
    branches,
    with_continuations,
)
from transformer_cli.extensions.lessons.explaining.explained_tokens import (
    decoder_tokens,
    explained_hypothesis,
    explained_source,
)
from transformer_cli.extensions.lessons.explaining.explanation import (
    BeamTree,
    ExplainedHypothesis,
    ExplainedSentence,
    Source,
)
from transformer_cli.extensions.lessons.explaining.forward_trace import ForwardTrace, trace_forward
from transformer_cli.extensions.lessons.explaining.inner_values import (
    attention_of,
    masks_of,
    positions_of,
)
from transformer_cli.process.errors import DataError
from transformer_cli.process.escaping import on_one_line
from transformer_cli.process.memory import to_device
from transformer_cli.text.token_arrays import pad_ids

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
        [piece] = self.pipeline.target_tokenizer.tokens([index])
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
        engine = replace(self.engine, continuing_ids=())  # a branch may end inside a word
        greedy = self.options.best_of_beam(1)
        requests = [request._replace(prefix=endings[node]) for node in left]
        found = engine.translate(requests, greedy)
        for node, of_branch in zip(left, found, strict=True):
            endings[node] = of_branch[0].ids if of_branch else endings[node]
        return {node: tokenizer.decode(ids).translate(LINE_BREAKS) for node, ids in endings.items()}

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
            return trace_forward(
                self.engine.model, *(to_device(one, machine.device) for one in ids)
            )

    def _with_partitions(
        self, best: ExplainedHypothesis, trace: ForwardTrace
    ) -> ExplainedHypothesis:
        """The hypothesis whose tokens know how a temperature changes their probabilities."""
        log_probs = trace.log_probs.double()
        of_temperatures = torch.stack(
            [(log_probs / one).logsumexp(-1) for one in self.temperatures], dim=-1
        )  # (T, number of temperatures)
        tokens = zip(best.tokens, of_temperatures.tolist(), strict=True)
        return replace(
            best, tokens=tuple(replace(one, log_partitions=tuple(of_one)) for one, of_one in tokens)
        )
