"""What a training tells its user: the plan and its warnings, slow settings, alarms, the time left; and what ends it: a time limit, a watchdog.

All are callbacks, or texts that callbacks write to the log.
"""

import faulthandler
import logging
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config, FilesData, HubData, RuntimeConfig, SequencesData, TrainingConfig
from transformer_cli.config.schema import DEFAULT_LEARNING_RATES, ENDS_AT_MAX_STEPS
from transformer_cli.data.order import EpochOrder, UpdateSize, estimated_updates
from transformer_cli.data.preparation import PreparedData, frequency_loss, has_reversed_pairs
from transformer_cli.decoding.translator import Translator
from transformer_cli.evaluation import ValidationReport
from transformer_cli.process.device import Machine, has_tensor_cores, num_usable_cpus
from transformer_cli.process.errors import TrainingStoppedError, TryAgainError
from transformer_cli.process.messages import counted
from transformer_cli.storage import read_json_lines
from transformer_cli.text.normalization import SPECIALS
from transformer_cli.text.vocabulary import NUM_FIXED_ENTRIES, SUBWORD_VOCAB_SIZE
from transformer_cli.training.callbacks import Callback, StepReport, TrainingReport
from transformer_cli.training.optimizers import learning_rate

logger = logging.getLogger(__name__)

# The drop-first exercise spends two thirds of its updates on the warm-up, and learns.
MAX_WARMUP_SHARE = 0.75
# A schedule that ends at max_steps should come so far.
MIN_SCHEDULE_SHARE = 0.8
# With fewer tokens for each entry, most entries of a vocabulary occur too rarely to be learned.
MIN_OCCURRENCES = 10
MIN_VALIDATION_SENTENCES = 20
MIN_UPDATES_PER_EPOCH = 5
# The advice is never to take less than this: a smaller vocabulary has hardly an entry beside the bytes, and a
# smaller batch holds no longer sentence.
MIN_SUBWORD_VOCABULARY = NUM_FIXED_ENTRIES + 20
MIN_BATCH_TOKENS = 64
# With a smaller decay, the moving average is little more than the newest weights.
MIN_EMA_DECAY = 0.5
# With a larger share for validation, too little is left for training.
_LARGEST_SHARE = 0.4
_MORE_PAIRS = "add more pairs: the corpus is too small"


class Vocabulary(NamedTuple):
    """One vocabulary, and how often its entries occur in an epoch."""

    side: str
    size: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a run."""

    num_pairs: int
    """Pairs that the model reads in an epoch."""
    num_target_tokens: int
    """Target tokens of an epoch, [EOS] included."""
    updates_per_epoch: int
    num_steps: int
    """The last step of the run, unless `training.patience` ends it earlier."""
    num_validation_sentences: int
    vocabularies: tuple[Vocabulary, ...]
    """One for each language, or the shared one."""
    num_held_out: int | None = None
    """All pairs of the validation split, of which each validation may use a part; None: not counted."""
    are_epochs_alike: bool = True
    """Whether the corpora have the same weights in each epoch; if not, the numbers are those of the first."""

    @classmethod
    def of(
        cls, config: Config, data: PreparedData, order: EpochOrder, num_validation_sentences: int, num_steps: int
    ) -> "Plan":
        """The plan for prepared data; an epoch is measured on its first 200,000 pairs.

        Args:
            order: of the training pairs.
            num_validation_sentences: that each validation uses.
            num_steps: the last step of the run.
        """
        num_pairs, report = order.num_pairs(), data.report
        visits = num_pairs / max(1, sum(data.train.corpus_sizes))
        target, is_both = report.target.train, has_reversed_pairs(config.data)
        has_end = not isinstance(config.data, SequencesData) or config.data.end_symbol
        # The report counts the pairs as they are written.
        target_sides = [target, report.source.train] if is_both else [target]
        num_target_tokens = sum(one.num_tokens + has_end * one.num_sentences for one in target_sides)
        growth = 1.0 if order.sampled_lengths is None else order.growth()
        sides = {"source": report.source, "target": report.target}
        vocabularies = [Vocabulary(name, side.vocab_size, side.train.num_tokens) for name, side in sides.items()]
        if config.tokenizer.shared:
            num_tokens = sum(one.num_tokens for one in vocabularies)
            vocabularies = [Vocabulary("shared", report.source.vocab_size, num_tokens)]
        return cls(
            num_pairs=num_pairs,
            num_target_tokens=round(visits * num_target_tokens * growth),
            updates_per_epoch=estimated_updates(
                order, UpdateSize(config.training.accumulate, config.training.update_tokens)
            ),
            num_steps=num_steps,
            num_validation_sentences=num_validation_sentences,
            vocabularies=tuple(vocabularies),
            num_held_out=len(data.validation),
            are_epochs_alike=not callable(order.weights),
        )

    def times(self, interval: int) -> int:
        """How often a task runs that is due every `interval` steps and at the end."""
        return -(-self.num_steps // interval)

    def lines(self, config: Config) -> list[str]:
        """The plan as lines of text."""
        training, d_model = config.training, config.model.d_model
        top = min(max(training.warmup_steps, 1), self.num_steps)
        highest, last = (learning_rate(n, training, d_model=d_model) for n in (top, self.num_steps))
        after = f" after {top:,} update{'s' * (top > 1)}" if training.warmup_steps else ""
        at_end = f"{last:.2g} at the end"
        if training.schedule == "plateau":
            at_end = f"then less whenever {training.best_metric} stops improving"
        num_epochs, updates_per_epoch = self.num_steps / self.updates_per_epoch, self.updates_per_epoch
        if training.max_epochs is not None and self.num_steps < (training.max_steps or math.inf):
            # Epochs of a small corpus differ by some updates, and this is the mean of all.
            num_epochs, updates_per_epoch = training.max_epochs, round(self.num_steps / training.max_epochs)
        epochs = f"{num_epochs:,.1f} epochs of {updates_per_epoch:,} updates"
        if not self.are_epochs_alike:
            later = "the weights of data.corpora change later"
            if has_reversed_pairs(config.data) and (until := config.data.reversed_epochs):
                rest = 2 * max(0.0, self.num_steps / self.updates_per_epoch - until)
                later = f"epochs that read each pair the other way round, too: {until:,}; then {rest:,.1f} of half as many updates"
            epochs = f"{self.updates_per_epoch:,} of them in the first epoch; {later}"
        return [
            f"plan: {self.num_pairs:,} training pairs, {counted(self.num_steps, 'update')} of about "
            f"{self.num_target_tokens / self.updates_per_epoch:,.0f} target tokens, {epochs}",
            f"plan: validations: {self.times(training.validate_every):,}, of "
            f"{counted(self.num_validation_sentences, 'sentence')}; saves: {self.times(training.save_every):,}, "
            f"and each new best; learning rate: {highest:.2g}{after}, {at_end}",
        ]


def warnings(plan: Plan, config: Config) -> list[str]:
    """One text for each problem of a plan: its numbers, and a setting with a value that fits."""
    training = config.training
    found = _length_warnings(plan, config)
    if training.schedule == "plateau":
        found += _plateau_warnings(plan, training)
    if training.average_last is not None:
        found += _average_warnings(plan, training)
    if training.ema_decay is not None and training.ema_decay < MIN_EMA_DECAY:
        found.append(_moving_average_warning(training.ema_decay))
    if has_reversed_pairs(config.data):
        found += _reversed_pairs_warnings(config.data.reversed_epochs or 0, plan)
    if training.update_tokens is not None:
        found += _update_warnings(plan, training)
    elif isinstance(training.batch_tokens, int):
        found += _batch_warnings(plan, training)
    if not isinstance(config.data, SequencesData):  # the exercises are small on purpose
        # The vocabularies of init_from were learned from another corpus.
        is_new = training.init_from is None
        found += [*(_vocabulary_warnings(plan, config) if is_new else []), *_corpus_warnings(plan, config)]
    return found


def _length_warnings(plan: Plan, config: Config) -> list[str]:
    """What does not fit the number of updates: the warm-up, the end of the schedule, the intervals."""
    training, num_steps = config.training, plan.num_steps
    found, fitting = list[str](), one_or_two_digits(num_steps / 10)
    warmup_steps = training.warmup_steps
    if warmup_steps > MAX_WARMUP_SHARE * num_steps:
        share = "all" if warmup_steps >= num_steps else f"{warmup_steps / num_steps:.0%}"
        found.append(
            f"training.warmup_steps is {warmup_steps:,} and the run has {num_steps:,} updates: the learning rate "
            f"rises in {share} of them, so the model learns little; set training.warmup_steps to about "
            f"{fitting}, or train longer"
        )
    if training.max_epochs is not None:
        found += _early_end_warnings(plan, config)
    is_validated_once = training.validate_every >= num_steps > 20  # a shorter one is a trial
    if is_validated_once:
        found.append(
            f"training.validate_every is {training.validate_every:,} and the run has {num_steps:,} updates: "
            "there is no validation and no sample before the end, and no choice of the best checkpoint; "
            f"set training.validate_every to about {fitting}"
        )
    if is_validated_once and training.save_every >= num_steps:
        found.append(
            f"training.save_every is {training.save_every:,} and the run has {num_steps:,} updates: nothing is "
            "saved before the end, so a crash of the machine loses the whole run; "
            f"set training.save_every to about {fitting}"
        )
    num_validations = plan.times(training.validate_every)
    if training.patience is not None and training.patience >= num_validations:
        found.append(
            f"training.patience is {training.patience} and the run has {num_validations} validations, of "
            "which the first is always a new best: patience cannot end the run; "
            f"lower training.patience, or set training.validate_every to about {one_or_two_digits(num_steps / (3 * training.patience))}"
        )
    return found


def _early_end_warnings(plan: Plan, config: Config) -> list[str]:
    """`training.max_epochs` may end a run long before the schedule has lowered the learning rate."""
    training, num_steps = config.training, plan.num_steps
    max_steps = training.max_steps
    is_lowered = training.schedule in ENDS_AT_MAX_STEPS
    if not is_lowered or max_steps is None or num_steps >= MIN_SCHEDULE_SHARE * max_steps:
        return []
    last = learning_rate(num_steps, training, d_model=config.model.d_model)
    return [
        f"training.schedule is {training.schedule}, which lowers the learning rate until training.max_steps ({max_steps:,}), but "
        f"training.max_epochs ends the run after about {num_steps:,} updates, where it is still {last:.2g}; set training.max_steps "
        f"to about {num_steps}"
    ]


def _update_warnings(plan: Plan, training: TrainingConfig) -> list[str]:
    wanted, size = training.update_tokens, plan.num_target_tokens / plan.updates_per_epoch
    # An update takes as many batches as come closest to it, so with one batch it may be too large by a half.
    if wanted is None or size < 1.5 * wanted or not isinstance(training.batch_tokens, int):
        return []
    fitting = max(MIN_BATCH_TOKENS, one_or_two_digits(training.batch_tokens * wanted / size))
    return [
        f"training.update_tokens is {wanted:,}, but a single batch has about {size:,.0f} target tokens, so each update is one "
        f"batch; set training.batch_tokens to about {fitting:,}, or raise training.update_tokens"
    ]


def _batch_warnings(plan: Plan, training: TrainingConfig) -> list[str]:
    size, num_batches = training.batch_tokens, plan.updates_per_epoch * training.accumulate
    if plan.num_pairs < 2 or num_batches <= 0.9 * plan.num_pairs:
        return []
    fitting = one_or_two_digits(32 * plan.num_target_tokens / plan.num_pairs)
    return [
        f"training.batch_tokens is {size:,}, and most sentence pairs are longer, so nearly every batch is a single pair; "
        f"set training.batch_tokens to {max(MIN_BATCH_TOKENS, fitting):,} or more"
    ]


def _plateau_warnings(plan: Plan, training: TrainingConfig) -> list[str]:
    patience, num_validations = training.patience_of_plateau, plan.times(training.validate_every)
    if patience is None or patience < num_validations:
        return []
    return [
        f"training.plateau_patience is {patience} and the run has {counted(num_validations, 'validation')}, of "
        "which the first is always a new best: the learning rate cannot fall; lower training.plateau_patience, or "
        f"set training.validate_every to about {one_or_two_digits(plan.num_steps / (3 * patience))}"
    ]


def _average_warnings(plan: Plan, training: TrainingConfig) -> list[str]:
    wanted = training.average_last
    interval, noun = ("save_every", "save")
    if training.average_of == "best":
        interval, noun = ("validate_every", "validation")
    number = plan.times(getattr(training, interval))
    if wanted is None or wanted <= number:
        return []
    result = "there is no average" if number < 2 else f"the average has only {number:,} checkpoints"
    advice = [] if number < 2 else ["lower training.average_last"]
    if wanted <= plan.num_steps:
        fitting = plan.num_steps // wanted
        advice += [f"set training.{interval} to {fitting:,}{' or less' if fitting > 1 else ''}"]
    return [
        f"training.average_last is {wanted:,} and the run has {counted(number, noun)}: {result}; {', or '.join(advice) or 'train longer'}"
    ]


def _moving_average_warning(decay: float) -> str:
    return (
        f"training.ema_decay is {decay:g}, the share of the average that each update keeps: so small a share averages hardly "
        f"anything. The number of Marian and OpenNMT-py is the share of the new weights; {decay:g} there is "
        f"training.ema_decay={1 - decay:g} here"
    )


_SHARE_OF_REVERSED, _MOST_REVERSED = 0.6, 0.85


def _reversed_pairs_warnings(until: int, plan: Plan) -> list[str]:
    if until * plan.updates_per_epoch <= _MOST_REVERSED * plan.num_steps:
        return []
    fitting = max(1, round(_SHARE_OF_REVERSED * plan.num_steps / plan.updates_per_epoch))
    taken = min(plan.num_steps, until * plan.updates_per_epoch)
    return [
        f"data.reversed_epochs: {until:,} takes about {taken:,} of the {plan.num_steps:,} updates, so {plan.num_steps - taken:,} are left for the wanted "
        f"direction alone; {fitting:,} would leave {1 - _SHARE_OF_REVERSED:.0%}"
    ]


def _vocabulary_warnings(plan: Plan, config: Config) -> list[str]:
    settings, found = config.tokenizer, list[str]()
    is_of_other_run = config.training.init_from is not None
    if settings.is_of_library and is_of_other_run:
        return found
    has_subwords = settings.subwords is not None
    num_fixed = NUM_FIXED_ENTRIES if has_subwords else 0
    if settings.is_of_library and not settings.byte_fallback:
        num_fixed = len(SPECIALS)
    asked = settings.vocab_size or SUBWORD_VOCAB_SIZE
    for side, size, num_tokens in plan.vocabularies:
        num_learned = max(1, size - num_fixed)
        fitting = max(400, one_or_two_digits(num_tokens / 30))
        wanted = min(fitting, one_or_two_digits(0.7 * size))
        advice = f"set tokenizer.vocab_size to about {wanted:,}"
        # A vocabulary of bytes alone is refused, or learns nothing.
        if wanted < MIN_SUBWORD_VOCABULARY:
            advice = _MORE_PAIRS
        if not has_subwords:
            advice = f"take subwords: tokenizer.kind: bpe, tokenizer.vocab_size: {fitting}"
        if num_tokens < MIN_OCCURRENCES * num_learned:
            found.append(
                f"the {side} vocabulary has {size:,} entries, and the corpus only {num_tokens:,} tokens: an entry "
                f"occurs {num_tokens / num_learned:.1f} times on average, too rarely to be learned; {advice}"
            )
        elif settings.kind == "bpe" and settings.min_frequency == 1 and size < asked:
            found.append(
                f"tokenizer.vocab_size is {asked:,}, and the corpus gives only {size:,} entries for the {side} "
                "vocabulary: every word is an entry of its own, so nothing is learned about parts of words; " + advice
            )
    return found


def _corpus_warnings(plan: Plan, config: Config) -> list[str]:
    found, training = [], config.training
    num_sentences = plan.num_validation_sentences
    if num_sentences < MIN_VALIDATION_SENTENCES:
        found.append(
            f"validation uses {counted(num_sentences, 'sentence')}: scores of so few are mostly chance; "
            + _advice_on_validation(plan, config)
        )
    if plan.updates_per_epoch < MIN_UPDATES_PER_EPOCH:
        name, size = _size_of_an_update(training)
        wanted = one_or_two_digits(size * training.accumulate * plan.updates_per_epoch / (4 * MIN_UPDATES_PER_EPOCH))
        also = " and training.accumulate to 1" if training.accumulate > 1 else ""
        advice = f"set training.{name} to about {wanted}{also}"
        if wanted < (2 if name == "batch_sentences" else MIN_BATCH_TOKENS):
            advice = _MORE_PAIRS
        found.append(
            f"training.{name} is {size:,}: an epoch has only {counted(plan.updates_per_epoch, 'update')}, "
            f"so the model learns slowly from each pair; {advice}"
        )
    return found


def _size_of_an_update(training: TrainingConfig) -> tuple[str, int]:
    """The setting under `training` that decides how large an update is, and its value."""
    sizes = {name: getattr(training, name) for name in ("update_tokens", "batch_sentences", "batch_tokens")}
    return next((name, size) for name, size in sizes.items() if isinstance(size, int))


def _advice_on_validation(plan: Plan, config: Config) -> str:
    """How validation gets enough sentences."""
    limit, num_sentences = config.validation.max_sentences, plan.num_validation_sentences
    has_more = plan.num_held_out is None or plan.num_held_out >= MIN_VALIDATION_SENTENCES
    if limit is not None and num_sentences == limit and has_more:
        return "set validation.max_sentences to 200"
    is_drawn = isinstance(config.data, FilesData | HubData) and any(
        corpus.split is None for corpus in config.data.corpora
    )
    if not is_drawn:
        return "use more pairs for the validation split"
    share = 2 * MIN_VALIDATION_SENTENCES / max(1, plan.num_pairs + num_sentences)
    if share > _LARGEST_SHARE:
        return _MORE_PAIRS
    return f"set data.validation_share to about {max(0.05, share):.2g}"


def one_or_two_digits(number: float) -> int:
    """A whole number, 1 or more, with one or two significant digits."""
    return max(1, int(float(f"{number:.1g}" if number < 1000 else f"{number:.2g}")))


def slow_settings(runtime: RuntimeConfig, machine: Machine) -> list[str]:
    """One text for each setting that slows this machine down: what happens, and what to set instead."""
    found = list[str]()
    if machine.device.type == "cuda" and machine.precision == torch.float32 and has_tensor_cores():
        found.append(
            "runtime.precision is float32, and tfm leaves TF32 off, so this GPU multiplies several times slower than it can; "
            "set runtime.precision to auto, which keeps weights and sums in float32"
        )
    if machine.device.type != "cpu":
        return found
    if runtime.threads is not None and runtime.threads > (num_cpus := num_usable_cpus()):
        found.append(
            f"runtime.threads is {runtime.threads}, and this process may use {num_cpus} CPU{'s' * (num_cpus > 1)}: threads that wait for a "
            f"CPU make each update slower; set runtime.threads to at most {num_cpus}, or leave it out"
        )
    if machine.precision == torch.float16:
        found.append(
            "runtime.precision is float16, which CPUs compute several times slower than float32; "
            "set runtime.precision to auto"
        )
    if runtime.compile is True:
        found.append(
            "runtime.compile on a CPU: the first updates take minutes, because layers are compiled, and later ones "
            "are not faster; set runtime.compile to false"
        )
    return found


# The speed of fewer updates than this says little about the whole run.
MIN_UPDATES_FOR_SPEED = 20


@dataclass(eq=False)
class Announcer(Callback):
    """Logs the plan and its warnings before the first step, and once the time that is left."""

    config: Config
    """Of the run."""
    plan_for: Callable[[int], Plan]
    """Makes the plan of a run with so many steps."""
    machine: Machine
    """On which it is trained."""
    num_steps: int = 0
    num_updates: int = 0
    num_tokens: int = 0
    seconds: float = 0.0
    has_told_time: bool = False
    is_warm: bool = False

    def on_start(self, first_step: int, num_steps: int | None) -> None:
        # The first updates on a GPU also compile, record and choose kernels, which takes longer than the updates.
        self.is_warm = self.machine.device.type == "cpu" and self.config.runtime.compile is not True
        if num_steps is None:
            return
        self.num_steps = num_steps
        plan = self.plan_for(num_steps)
        for line in plan.lines(self.config):
            logger.info("%s", line)
        # At the level of the plan, INFO: a script that hides these messages hides the warnings too.
        machine_warnings = slow_settings(self.config.runtime, self.machine)
        for warning in (*warnings(plan, self.config), *machine_warnings):
            logger.info("warning: %s", warning)

    def on_step(self, step: int, report: StepReport) -> None:
        self.num_updates += 1
        self.num_tokens += report.num_target_tokens

    def on_report(self, report: TrainingReport) -> None:
        """The speed of a report leaves out validations and saves, and so does the time."""
        self.seconds += self.num_tokens / max(report.target_tokens_per_second, 1e-9)
        self.num_tokens = 0
        if not self.is_warm:
            self.is_warm, self.num_updates, self.seconds = True, 0, 0.0
            return
        left = self.num_steps - report.step
        if self.has_told_time or left < 1 or self.num_updates < MIN_UPDATES_FOR_SPEED:
            return
        self.has_told_time = True
        logger.info(
            "about %s left for %s updates, at the speed of the last %d; validations take further time%s",
            _duration(left * self.seconds / self.num_updates),
            f"{left:,}",
            self.num_updates,
            self._limit(),
        )

    def _limit(self) -> str:
        minutes = self.config.training.max_minutes
        return "" if minutes is None else f"; training.max_minutes={minutes:g} may stop it before"


def _duration(seconds: float) -> str:
    if seconds < 1.5:
        return "a second"
    if seconds < 90:
        return f"{round(seconds)} seconds"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} minutes"
    hours = seconds / 3600
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"


# A warning is given when the loss rises above both limits since the last report. The usual noise stays
# below them; a training that diverges does not.
JUMP_FACTOR = 1.5
JUMP_NATS = 1.0


# A warning is given, once, when the loss of so many updates in a row is far above what it was (by both limits above), or
# when they are not below the loss of the frequencies and it does not fall: a slow training falls by more.
LONG = 200
LEAST_GAIN = 0.1
# Above so many times the default, the learning rate is the likely reason; then the end of the warm-up is not awaited.
FAR_FROM_USUAL = 10.0


ADVICE = "lower training.learning_rate, or raise training.warmup_steps"


class _Noted(NamedTuple):
    """What is kept of a report."""

    step: int
    loss: float
    learning_rate: float


@dataclass(eq=False, kw_only=True)
class Alarms(Callback):
    """Writes warnings; it changes nothing."""

    vocab_size: int
    """Entries of the target vocabulary. The loss of a model that guesses among them is its logarithm, and a loss far
    above this and above the first loss means that the training has diverged."""
    first_loss: float | None = None
    """Of a run that goes on: its first report, in nats per token; None: its first update from now on counts."""
    training: TrainingConfig | None = None
    """The schedule and its rate; None: no warning of a training that learns nothing."""
    frequency_loss: float = math.inf
    """In nats per token: the loss of a model that knows how often each token occurs, and nothing else."""
    stages: Collection[int] = ()
    """The epochs from which on the corpora have other weights, so the losses before and after are not compared."""
    divergence: str = ""
    """Why the training has diverged, at the last report; empty if not."""
    last_loss: float | None = None
    num_skipped: int = 0
    num_halved_steps: int = 0
    first_update: tuple[Tensor, int] | None = None
    """Its loss, summed over its target tokens, and their number; None before it, and if the first report is known."""
    last: deque[_Noted] = field(default_factory=deque)
    """Of the last `LONG` updates of this stage."""
    lowest_before: float = math.inf
    """The lowest loss before these."""
    epoch: int = 0
    reported_at: int = 0
    has_told_of_no_progress: bool = False

    @classmethod
    def of(cls, config: Config, data: PreparedData, *, first_loss: float | None) -> Self:
        """The alarms of a run."""
        corpora = config.data.corpora if isinstance(config.data, FilesData | HubData) else ()
        schedules = [one.weight for one in corpora if isinstance(one.weight, tuple)]
        return cls(
            vocab_size=data.target_tokenizer.vocab_size,
            first_loss=first_loss,
            training=config.training,
            frequency_loss=frequency_loss(data.train),
            stages={epoch for schedule in schedules for epoch, _ in schedule},
        )

    def on_step(self, step: int, report: StepReport) -> None:
        """Warn the first time that batches had to be cut in two."""
        # Its value is read later: here, the CPU would wait for a GPU.
        if self.first_loss is None and self.first_update is None:
            self.first_update = report.negative_log_likelihood, report.num_target_tokens
        if report.num_halvings == 0:
            return
        self.num_halved_steps += 1
        if self.num_halved_steps == 1:
            logger.warning(
                "step %d: out of memory, so its batches were cut in parts; from now on, batches of this "
                "size are cut beforehand. Such an update takes longer and draws other dropout masks; lower "
                "training.batch_tokens to avoid it",
                step,
            )

    def on_report(self, report: TrainingReport) -> None:
        """Warn when the loss per token is far above that of the last report, or that of guessing, or does not fall."""
        before, is_whole = self.last_loss, report.num_skipped == self.num_skipped
        if is_whole or not math.isnan(report.loss):  # NaN: every update was skipped
            self._note_divergence(report.step, "training", report.loss)
        if is_whole and math.isfinite(report.loss):
            self._warn_of_no_progress(report)
        # Skipped updates add no loss, so a report with some of them is not compared.
        self.last_loss, self.num_skipped = report.loss if is_whole else None, report.num_skipped
        if before is None or not report.loss > max(JUMP_FACTOR * before, before + JUMP_NATS):
            return  # a loss of NaN is no jump either
        logger.warning(
            "step %d: the training loss has jumped from %.2f to %.2f; if it stays there, lower "
            "training.learning_rate, raise training.warmup_steps or set training.clip_norm",
            report.step,
            before,
            report.loss,
        )

    def on_validation(self, step: int, report: ValidationReport, translator: Translator) -> None:
        """Warn when the loss is not finite; overfitting alone can make a finite one large."""
        if not math.isfinite(report.perplexity):
            self._note_divergence(step, "validation", report.loss)

    def require_convergence(self, step: int) -> None:
        """Raise an error if the training has diverged at the end.

        Raises:
            TrainingStoppedError: the last report or the last validation says so.
        """
        if self.divergence:
            raise TrainingStoppedError(
                f"diverged: after {step:,} steps, {self.divergence}; the model is useless",
                hint=f"{ADVICE}, then start again, with another name or with --from-scratch",
            )

    def _warn_of_no_progress(self, report: TrainingReport) -> None:
        """Warn once when the loss of the last `LONG` updates says that the model learns nothing, or forgets."""
        if self.has_told_of_no_progress:
            return
        if any(self.epoch < epoch <= report.epoch for epoch in self.stages):
            self.last.clear()
            self.lowest_before = math.inf
        num_updates, self.reported_at = report.step - self.reported_at, report.step
        self.epoch = report.epoch
        self.last.append(_Noted(report.step, report.loss, report.learning_rate))
        while self.last[0].step <= report.step - LONG:
            self.lowest_before = min(self.lowest_before, self.last.popleft().loss)
        last, lowest_before, training = self.last, self.lowest_before, self.training
        # One report of a few updates may be high by chance.
        is_enough = len(last) > 1 or num_updates >= LONG
        if math.isinf(lowest_before) or not is_enough or self.divergence:
            return
        lowest = min(one.loss for one in last)
        if lowest > max(JUMP_FACTOR * lowest_before, lowest_before + JUMP_NATS):
            problem = f"it was {lowest_before:.2f} before, so the model forgets"
        elif training is not None and self._learns_nothing(last, lowest_before, training):
            problem = (
                f"a model that knows only how often each token occurs has {self.frequency_loss:.2f}, "
                "so this one has learned nothing about the sources"
            )
        else:
            return
        self.has_told_of_no_progress = True
        logger.warning(
            "step %d: the training loss of the last %d updates is %.2f or more, and %s; %s",
            report.step,
            LONG,
            lowest,
            problem,
            self._advice(report.learning_rate),
        )

    def _learns_nothing(self, last: Sequence[_Noted], lowest_before: float, training: TrainingConfig) -> bool:
        lowest = min(one.loss for one in last)
        is_high = last[0].learning_rate > FAR_FROM_USUAL * DEFAULT_LEARNING_RATES[training.optimizer]
        return (
            (is_high or last[0].step > training.warmup_steps)
            and lowest >= self.frequency_loss
            and lowest > lowest_before - LEAST_GAIN
        )

    def _advice(self, learning_rate: float) -> str:
        """What to do, with the learning rate of the last update where it is far from the usual one."""
        if self.training is None:
            return ADVICE
        usual = DEFAULT_LEARNING_RATES[self.training.optimizer]
        is_noam = self.training.schedule == "noam"
        setting = f"training.{'noam_factor' if is_noam else 'learning_rate'}"
        found = f"the learning rate is now {learning_rate:.2g}, far %s {usual:.2g}, the default: %s {setting}"
        if learning_rate > FAR_FROM_USUAL * usual:
            return found % ("above", "lower")
        return found % ("below", "raise") if learning_rate * FAR_FROM_USUAL < usual else ADVICE

    def _note_divergence(self, step: int, kind: str, loss: float) -> None:
        total, num_tokens = self.first_update or (self.first_loss or 0.0, 1)
        guessing_loss = math.log(self.vocab_size)
        limit = max(guessing_loss, float(total) / max(1, num_tokens)) + JUMP_NATS
        is_told, self.divergence = bool(self.divergence), ""
        if not loss <= limit:  # NaN too
            self.divergence = f"the {kind} loss is {loss:.4g}, and guessing gives {guessing_loss:.2f}"
            if not is_told:
                logger.warning("step %d: diverged: %s; %s", step, self.divergence, ADVICE)

    def on_end(self) -> None:
        """Report how many updates were cut in parts."""
        if self.num_halved_steps > 1:
            logger.warning("updates whose batches were cut in parts: %d", self.num_halved_steps)


def first_recorded_loss(folder: RunFolder) -> float | None:
    """The training loss of the first report of a run; None if it is not recorded."""
    reports = (one for one in read_json_lines(folder.metrics_file) if one.get("kind") == "train")
    loss = next(reports, {}).get("loss")
    return loss if isinstance(loss, float) else None


class TimeLimit(Callback):
    """Ends the training when the time limit is reached; the time starts when this object is made.

    After each start of the command at least one update is made, so a run that is continued again and again
    comes to its end, however short the limit is.

    Args:
        max_minutes: the limit.
    """

    def __init__(self, max_minutes: float) -> None:
        self.max_minutes = max_minutes
        self.has_updated = False
        self._started_at = time.monotonic()

    def on_step(self, step: int, report: StepReport) -> None:
        self.has_updated = True

    def should_stop(self) -> bool:
        """True between two updates after the limit; a validation is never cut short."""
        seconds = time.monotonic() - self._started_at
        return self.has_updated and seconds >= 60.0 * self.max_minutes


CHECKS_PER_LIMIT = 8


STUCK_GPUS_SECONDS = 1800.0
"""With several GPUs: longer than any step, batch of a validation or save takes."""


def limit_of_watchdog(runtime: RuntimeConfig, machine: Machine, num_processes: int) -> float | None:
    """The seconds after which a training counts as stuck; None: never.

    If a sum over several GPUs hangs, for example because one of them has an error, all processes wait and look alive: the
    time limit of NCCL is long, because the others wait for rank 0 while it prepares the data.
    """
    if runtime.stuck_after_seconds is None and machine.device.type == "cuda" and num_processes > 1:
        return STUCK_GPUS_SECONDS
    return runtime.stuck_after_seconds


class Watchdog(Callback):
    """Ends the process when no step, no batch of a validation and no save has ended for too long.

    A thread looks at the clock. It can run whenever the main thread waits for a disk or a device, because
    Python's GIL is free then. Nothing is saved: a run goes on from its last checkpoint.

    Args:
        limit_seconds: longest time without a step, a batch of a validation, or a save.
    """

    def __init__(self, limit_seconds: float) -> None:
        self._alive_at = time.monotonic()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(limit_seconds,), name="watchdog", daemon=True)

    def on_start(self, first_step: int, num_steps: int | None) -> None:
        self._alive_at = time.monotonic()
        self._thread.start()

    def on_step(self, *_: Any, **__: Any) -> None:
        """A sign of life: a step, a validation or a save has ended."""
        self._alive_at = time.monotonic()

    on_validation = on_save = on_step

    def should_stop_now(self) -> bool:
        """Note that the training is alive: this is called between the batches of a validation."""
        self._alive_at = time.monotonic()
        return False

    def on_end(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self, limit_seconds: float) -> None:
        while not self._is_over.wait(limit_seconds / CHECKS_PER_LIMIT):
            if time.monotonic() - self._alive_at > limit_seconds:
                _end(limit_seconds)


def _end(limit_seconds: float) -> None:
    """End the process at once: the thread that hangs would never see an exception."""
    error = TryAgainError(
        f"nothing has happened for more than {limit_seconds:g} s (runtime.stuck_after_seconds); "
        "see the stacks of threads above",
        hint="the same command goes on from the last checkpoint; if it was only slow, raise the limit",
    )
    with suppress(OSError, ValueError):  # standard error may be closed
        faulthandler.dump_traceback(sys.stderr)
        os.write(2, f"tfm: {error}\n".encode())
    os._exit(error.exit_code)
