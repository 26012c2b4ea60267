"""One update of the weights: micro-batches in, report out; the objectives; and what stands around an update in one process."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from transformer_cli.acceleration import accelerated_loss
from transformer_cli.acceleration.masks import with_tokens_in_all
from transformer_cli.acceleration.recorded_passes import RecordedPasses, recorder_on
from transformer_cli.config import Config, TrainingConfig
from transformer_cli.data.updates import Batch
from transformer_cli.model import LossSums, SmoothedLabels, Transformer
from transformer_cli.model.layers import aligning_weights
from transformer_cli.model.loss import alignment_loss, likelihood_loss, r_drop_loss, simcut_loss
from transformer_cli.process.device import Machine, seed_everything, seed_generators
from transformer_cli.process.errors import TryAgainError, is_out_of_memory
from transformer_cli.text import Tokenizer
from transformer_cli.training.optimizers import Optimizer
from transformer_cli.training.process_group import ALONE, GradientSums, Processes, whole


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one update did, in all processes; the tensors stay on the device, so that no step waits for it."""

    objective: Tensor  # () label-smoothed loss, summed over target tokens, in nats
    negative_log_likelihood: Tensor  # () summed over target tokens, in nats; gives the perplexity
    gradient_norm: Tensor  # () before clipping
    is_finite: Tensor  # () bool; if False, weights and moments stayed as they were
    num_source_tokens: int
    num_target_tokens: int
    num_halvings: int = 0  # how often the batches were cut in two, because memory was too small
    # () bool, in float16 alone: the update was skipped, and a smaller scale of the gradient may help.
    is_scale_too_large: Tensor | None = None


def train_step(
    model: Transformer,
    optimizer: Optimizer,
    objective: "Objective",
    micro_batches: Sequence[Batch],
    *,
    runner: "UpdateRunner",
    seed: int,
    clip_norm: float | None,
) -> StepReport:
    """Sum the gradients of all micro-batches, of all processes; divide once by their target tokens; update once.

    Target tokens include [EOS], not padding. If the gradient is not finite (NaN or infinity), the weights stay as
    they are; `training.max_skipped_in_a_row` says after how many such updates the loop stops.

    Args:
        model: in training mode, on the device of `runner`.
        optimizer: of this model, with the learning rate of this update.
        objective: what is minimised.
        micro_batches: the batches of this update that this process computes, on the CPU.
        runner: the machine, its memory, and the processes that train together.
        seed: of this update; dropout's random numbers follow from it.
        clip_norm: largest norm of the gradient over all parameters; None: no clipping.

    Source: Vaswani et al. 2017, section 5.
    """
    scale = optimizer.scale
    num_source_tokens, num_target_tokens = runner.num_tokens(micro_batches)

    def sum_step_by_step(batches: Iterable[Batch]) -> list[LossSums]:
        optimizer.zero_grad()
        losses = []
        for batch in batches:
            with runner.machine.autocast():
                sums = objective(model, batch)
            # Divide by the tokens of the whole update: a mean of means would overweight short batches.
            loss = sums.objective / max(num_target_tokens, 1)
            if scale is not None:  # in float16
                loss = scale.scaled(loss)
            loss.backward()
            losses.append(LossSums(*(one.detach() for one in sums)))
        return losses

    sum_gradients: SumGradients = sum_step_by_step
    if runner.recorded is not None:
        sum_gradients = partial(runner.recorded.sum_gradients, num_target_tokens=num_target_tokens)
    losses, num_halvings = runner.summed(sum_gradients, micro_batches, seed)
    if scale is not None:
        scale.unscale(optimizer.torch_optimizers)
    if model.config.start_embedding == "zero":
        clear_start(model)
    gradient_norm = whole(optimizer.measure_and_clip(clip_norm))
    is_finite = torch.isfinite(gradient_norm)
    # Without a target token the gradient is 0, but Adam's moments would still move the weights.
    if num_target_tokens:
        optimizer.step_if(is_finite)
    return StepReport(
        *losses,
        gradient_norm=gradient_norm,
        is_finite=is_finite,
        num_source_tokens=num_source_tokens,
        num_target_tokens=num_target_tokens,
        num_halvings=num_halvings,
        is_scale_too_large=None if scale is None else scale.adapt(is_finite),
    )


def clear_start(model: Transformer) -> None:
    """Set the gradient of the embedding of [SOS] to zero, so that an embedding of zeros stays as it is."""
    gradient = start_table(model).grad
    if gradient is not None:
        gradient[Tokenizer.sos_id] = 0.0


def start_table(model: Transformer) -> Tensor:
    """The table from which the decoder takes the embedding of [SOS], (V, D)."""
    return (model.target_embedding or model.output).weight


# Objectives: a model and a batch in, sums of losses out.


class Objective(Protocol):
    """What training minimises. It runs the model itself, once or as often as it needs to."""

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """Sums over the target tokens of a batch that lies on the model's device.

        The sums are not divided: the caller divides by the target tokens of the whole update.
        """


def build_objective(
    training: TrainingConfig,
    vocab_size: int,
    device: torch.device,
    *,
    is_compiled: bool = False,
) -> Objective:
    """The objective that a config asks for.

    Args:
        training: names the objective and its settings.
        vocab_size: of the target.
        device: of the model; its fastest form of the loss is used.
        is_compiled: whether torch.compile makes kernels for the losses.
    """
    labels = SmoothedLabels.of(
        vocab_size, Tokenizer.pad_id, training.label_smoothing, training.smoothed_over
    )
    if training.r_drop is not None:
        loss = accelerated_loss(r_drop_loss, device, is_compiled=is_compiled)
        return RDrop(labels, training.r_drop, loss)
    if training.simcut is not None:
        loss = accelerated_loss(simcut_loss, device, is_compiled=is_compiled)
        return SimCut(labels, training.simcut.weight, loss)
    loss = accelerated_loss(likelihood_loss, device, is_compiled=is_compiled)
    if training.guided_alignment is not None:
        return GuidedAlignment(labels, training.guided_alignment, loss)
    return LabelSmoothedLikelihood(labels, loss)


@dataclass(frozen=True, slots=True)
class LabelSmoothedLikelihood:
    """Cross-entropy with smoothed labels.

    Source: Vaswani et al. 2017, section 5.4.
    """

    labels: SmoothedLabels
    loss: Callable[..., LossSums] = likelihood_loss

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """See `Objective`."""
        decoder_output = model.decoder_output(
            batch.source_ids, _with_note(batch.padding_mask, batch), batch.decoder_input_ids
        )
        return self.loss(model.output, decoder_output, batch.target_ids, self.labels)


@dataclass(frozen=True, slots=True)
class GuidedAlignment:
    """Cross-entropy with smoothed labels, and `weight` times the `alignment_loss` of the attention that `model.alignment_head` names.

    Source: Chen et al. 2016, "Guided Alignment Training for Topic-Aware Neural Machine Translation", equation 8.
    """

    labels: SmoothedLabels
    weight: float
    loss: Callable[..., LossSums] = likelihood_loss

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """See `Objective`."""
        noted: list[Tensor] = []
        decoder_output = model.decoder_output(
            batch.source_ids,
            batch.padding_mask,
            batch.decoder_input_ids,
            {model.config.aligning_layer: noted.append},
        )
        sums = self.loss(model.output, decoder_output, batch.target_ids, self.labels)
        if not noted or batch.alignment is None:  # LayerDrop skips the layer; a batch without links
            return sums
        weights = aligning_weights(noted[0], model.config)
        of_alignment = alignment_loss(weights, batch.alignment)
        return sums._replace(objective=sums.objective + self.weight * of_alignment)


@dataclass(frozen=True, slots=True)
class RDrop:
    """L(P) + L(Q) + alpha / 2 (KL(P || Q) + KL(Q || P)): a batch runs twice, with different dropout, and gives two predictions P and Q.

    L is the cross-entropy with smoothed labels; the sum is computed by `r_drop_loss` of model/loss.py. Both runs are one
    forward pass over a batch that holds each row twice: dropout draws another mask for the copy. The gradient is about
    twice that of one run; the reported likelihood is the mean of both.

    Source: Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", section 2.1.
    """

    labels: SmoothedLabels
    alpha: float
    loss: Callable[..., LossSums] = r_drop_loss

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """See `Objective`."""
        decoded = _decoded_twice(model, batch)
        return self.loss(model.output, decoded, batch.target_ids, self.labels, self.alpha)


@dataclass(frozen=True, slots=True)
class SimCut:
    """L(P) + weight KL(P || Q): P is the prediction of a batch, and Q that of its copy, whose embeddings are cut.

    L is the cross-entropy with smoothed labels; the sum is computed by `simcut_loss` of model/loss.py. The model cuts the copy
    (`model.layers.TokenCutoff`), which stands behind the batch in one forward pass; dropout draws another mask for it, too.

    Source: Gao et al. 2022, "Bi-SimCut: A Simple Strategy for Boosting Neural Machine Translation", section 3.
    """

    labels: SmoothedLabels
    weight: float
    loss: Callable[..., LossSums] = simcut_loss

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """See `Objective`."""
        decoded = _decoded_twice(model, batch)
        return self.loss(model.output, decoded, batch.target_ids, self.labels, self.weight)


def _decoded_twice(model: Transformer, batch: Batch) -> Tensor:
    """(2 B, T, D): the decoder's output for each row of a batch, and then for each row once more."""
    mask = batch.padding_mask
    return model.decoder_output(
        _twice(batch.source_ids),
        _with_note(None if mask is None else _twice(mask), batch),
        _twice(batch.decoder_input_ids),
    )


def _with_note(mask: Tensor | None, batch: Batch) -> Tensor | None:
    """A mask of the sources of a batch, with the note for the twins of acceleration/ that each source has a token, if the CPU knows it."""
    return mask if mask is None or not batch.sources_have_tokens else with_tokens_in_all(mask)


def _twice(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows])


# What stands around an update in one process: its machine and memory, dropout's seeds, and the processes that train together.


SumGradients = Callable[[Iterable[Batch]], list[LossSums]]
"""Computes the gradients of batches from the beginning, and returns the losses of each batch, without a gradient."""


@dataclass(slots=True)
class UpdateRunner:
    """What runs an update: the machine of this process, the processes that train together with it, its recordings, and what fits into memory.

    An update in parts has the tokens, the losses and the gradient of the whole update, except for rounding,
    because sums are divided by the tokens of all parts. With dropout it is another update: each part draws
    masks of its own.

    The size that fits is remembered for one session and is not saved: a resumed run may have more memory. So a
    run whose memory was too small cannot be repeated bit for bit.
    """

    machine: Machine
    processes: Processes = ALONE
    gradient_sums: GradientSums | None = None
    """With several processes."""
    recorded: RecordedPasses | None = None
    """With `runtime.cuda_graphs`."""
    may_cut: bool = True
    """False if the processes exchange weights during an update: then all must run the same number of batches."""
    max_cells: int | None = None
    """The largest batch that fitted after a larger one did not, as `Batch.num_cells`; None: all batches fitted."""

    def num_tokens(self, micro_batches: Sequence[Batch]) -> list[int]:
        """The source tokens and the target tokens of an update, in all processes."""
        counts = [
            sum(batch.num_source_tokens for batch in micro_batches),
            sum(batch.num_target_tokens for batch in micro_batches),
        ]
        return counts if self.processes.is_alone else self.processes.sums(*counts)

    def summed(
        self, sum_gradients: SumGradients, micro_batches: Sequence[Batch], seed: int
    ) -> tuple[LossSums, int]:
        """Sum gradients and losses over the micro-batches of all processes; when memory is too small, start again with each batch cut in two halves.

        Args:
            sum_gradients: of this process; it is called again with halves of the batches if memory is too small.
            micro_batches: of this process, on the CPU; those larger than `max_cells` are cut before the first attempt.
            seed: of the update; it decides dropout's random numbers.

        Returns:
            The sums of the losses, and how often the batches were cut in two.

        Raises:
            TryAgainError: memory cannot hold a single sentence; or a process has ended.
        """
        device = self.machine.device
        batches, num_halvings, has_failed = micro_batches, 0, False
        if self.max_cells is not None:
            batches, num_halvings = _cut_to(self.max_cells, batches)
        while True:
            if self.gradient_sums is not None:
                self.gradient_sums.begin(len(batches))
            seeded = with_seeds_of_dropout(batches, seed)
            try:
                losses = sum_gradients(batch.to(device) for batch in seeded)
                break
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                batches = self._halves_after(error, batches)
            # After the `except` block the exception is gone, and with it the last reference to the tensors.
            torch.cuda.empty_cache()
            num_halvings, has_failed = num_halvings + 1, True
        if has_failed:
            self.max_cells = max(batch.num_cells for batch in batches)
        sums = [torch.stack(parts).sum() for parts in zip(*losses, strict=True)]
        if self.gradient_sums is None:
            return LossSums(*sums), num_halvings
        sums = self.gradient_sums.finish(sums)
        return LossSums(*sums), self.processes.maxima(num_halvings)[0]

    def _halves_after(self, error: Exception, batches: Sequence[Batch]) -> list[Batch]:
        """The batches in halves, because memory was too small for them."""
        if not self.may_cut:
            raise _out_of_memory(
                "and with runtime.sharding: full, batches cannot be cut in halves"
            ) from error
        halves = [half for batch in batches for half in batch.halves()]
        if len(halves) == len(batches):
            raise _out_of_memory("even with a single sentence at a time") from error
        return halves


def build_runner(
    config: Config,
    model: Transformer,
    optimizer: Optimizer,
    objective: Objective,
    machine: Machine,
    processes: Processes,
) -> UpdateRunner:
    """The runner of updates that a config asks for; arguments as in `train_step`.

    Args:
        model: lies on the device of the machine already.
        processes: those that train together.
    """
    runner = UpdateRunner(machine, processes, may_cut=config.runtime.sharding == "none")
    if not processes.is_alone:
        runner.gradient_sums = GradientSums(model.parameters_by_gradient(), processes)
    if config.runtime.cuda_graphs:
        record = recorder_on(machine.device)
        scaled = None if optimizer.scale is None else optimizer.scale.scaled
        runner.recorded = RecordedPasses(model, objective, machine, record, scaled=scaled)
    return runner


def with_seeds_of_dropout(batches: Iterable[Batch], seed_of_update: int) -> Iterator[Batch]:
    """Each batch; before the first part of a micro-batch, dropout is seeded.

    The seed depends on the update and the number of the micro-batch, so the number of processes does not matter.
    """
    number = None
    for batch in batches:
        if batch.number == number:
            pass  # the second half goes on with the random numbers of the first
        elif batch.number == 0:
            seed_generators(seed_of_update)
        else:
            seed_everything(seed_of_update, "micro-batch", batch.number)
        number = batch.number
        yield batch


def _cut_to(max_cells: int, batches: Sequence[Batch]) -> tuple[Sequence[Batch], int]:
    """The batches in parts of at most `max_cells`, or of one sentence; and how often they were cut in two."""
    num_halvings = 0
    while True:
        parts = [
            part
            for batch in batches
            for part in (batch.halves() if batch.num_cells > max_cells else [batch])
        ]
        if len(parts) == len(batches):
            return batches, num_halvings
        batches, num_halvings = parts, num_halvings + 1


def _out_of_memory(when: str) -> TryAgainError:
    return TryAgainError(
        f"out of memory, {when}",
        hint="lower training.batch_tokens or model.max_length, or close other programs",
    )
