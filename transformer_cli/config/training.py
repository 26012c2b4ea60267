"""The settings of training, validation, decoding and the machine."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transformer_cli.config.exercise_settings import SequenceLength
from transformer_cli.config.section import (
    Contradiction,
    Count,
    Positive,
    Probability,
    Section,
    Share,
    Switch,
)

Metric = Literal["loss", "perplexity", "bleu", "chrf", "ter", "cer", "wer"]
ScoreName = Literal["bleu", "chrf", "ter", "cer", "wer"]
SmoothedOver = Literal["vocabulary", "others"]

LOWER_IS_BETTER = frozenset({"loss", "perplexity", "ter", "cer", "wer"})


class TrainingConfig(Section):
    """How the model is trained. Every interval is a number of optimizer updates."""

    optimizer: Literal["adam", "adamw"] = "adam"
    """adam (Kingma and Ba 2015), or adamw with decoupled weight decay (Loshchilov and Hutter 2019)."""
    betas: tuple[Probability, Probability] = (0.9, 0.98)
    """Decay rates of Adam's two moments (the paper, section 5.3)."""
    epsilon: Positive = 1e-9
    """Adam's epsilon (the paper, section 5.3)."""
    weight_decay: Share | None = None
    """adamw: weight decay, multiplied by the learning rate at each update; absent: 0.01."""
    max_steps: Count | None = None
    """Stop after this many updates."""
    max_epochs: Count | None = None
    """Stop after this many passes over the training split; if max_steps is given too, the first limit that is reached stops the run."""
    batch_tokens: Count | None = None
    """Largest number of tokens of a batch, padding included, counted on its longer side."""
    batch_sentences: Count | None = None
    """Number of sentence pairs of a batch; instead of batch_tokens."""
    accumulate: Annotated[int, Field(strict=True, ge=1, le=100_000)] = 1
    """Number of batches whose gradients are added up for one update."""
    schedule: Literal["noam", "inverse_sqrt", "cosine", "constant"] = "inverse_sqrt"
    """Learning rate after the linear warm-up: noam follows the paper (equation 3), inverse_sqrt falls from the peak as 1 / sqrt(step), cosine falls to 0 at max_steps, constant stays at the peak."""
    learning_rate: Annotated[float, Field(strict=True, gt=0.0, le=100.0)] | None = None
    """Peak learning rate; not for noam. Absent: 7e-4."""
    noam_factor: Annotated[float, Field(strict=True, gt=0.0, le=1000.0)] | None = None
    """noam: factor in front of d_model^-0.5 min(step^-0.5, step warmup_steps^-1.5). Absent: 1."""
    warmup_steps: Annotated[int, Field(strict=True, ge=0, le=10**9)] = 4000
    """Number of updates in which the learning rate rises linearly from 0."""
    label_smoothing: Probability = 0.1
    """Probability that is taken from the true token and spread evenly as smoothed_over says (the paper, section 5.4)."""
    smoothed_over: SmoothedOver = "vocabulary"
    """The tokens that get it. vocabulary: all V tokens, so the true one has 1 - label_smoothing + label_smoothing / V (Szegedy et al. 2016; PyTorch); others: the V - 2 tokens that are neither the true one nor padding (The Annotated Transformer)."""
    clip_norm: Positive | None = 1.0
    """Gradient clipping: the largest norm of the gradient over all parameters; null: no clipping."""
    max_skipped_in_a_row: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 10
    """Updates whose gradient is NaN or infinite are skipped; stop after this many in a row. On an accelerator, the number is checked only once in this many updates."""
    log_every: Count = 50
    """Updates between two reports of the loss."""
    validate_every: Count = 1000
    """Updates between validations; also at the end."""
    save_every: Count = 1000
    """Updates between checkpoints; also at the end."""
    keep_last: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 2
    """Number of newest checkpoints that are kept."""
    keep_best: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 1
    """Number of best checkpoints that are kept, by best_metric."""
    best_metric: Metric = "bleu"
    """The metric on the validation split that decides which checkpoint is the best; between equal values, the lower loss decides."""
    patience: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = None
    """Stop after this many validations in a row without a better best_metric; absent: never."""

    @model_validator(mode="after")
    def _something_ends_the_run(self) -> Self:
        if self.max_steps is None and self.max_epochs is None:
            raise ValueError("give max_steps or max_epochs, or both")
        if (self.batch_tokens is None) == (self.batch_sentences is None):
            raise ValueError("give either batch_tokens or batch_sentences")
        return self

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> Self:
        if self.schedule == "noam" and self.learning_rate is not None:
            raise ValueError("learning_rate has no effect with schedule noam; give noam_factor")
        if self.schedule != "noam" and self.noam_factor is not None:
            raise ValueError(f"noam_factor has no effect with schedule {self.schedule}")
        if self.smoothed_over == "others" and self.label_smoothing == 0.0:
            raise ValueError("smoothed_over: others has no effect with label_smoothing 0")
        if self.schedule == "noam" and self.warmup_steps < 1:
            raise ValueError("schedule noam needs warmup_steps of 1 or more")
        if self.schedule == "cosine" and self.max_steps is None:
            raise ValueError("schedule cosine needs max_steps, where it reaches 0")
        if self.optimizer == "adam" and self.weight_decay is not None:
            raise ValueError("weight_decay has no effect with optimizer adam; use adamw")
        return self


class ValidationConfig(Section):
    """What is measured on held-out text during training."""

    max_sentences: Count | None = None
    """Use only this many validation pairs, always the first ones. Absent: all pairs of the corpora whose split is validation, and at most 3,000 pairs of a drawn split, evenly spread. tfm validate scores the whole split."""
    scores: Annotated[tuple[ScoreName, ...], Field(max_length=5)] = ("bleu", "chrf", "cer")
    """Scores of translations; loss and perplexity are always computed. With an empty list, only the samples are translated."""
    beam_size: Annotated[int, Field(strict=True, ge=1, le=64)] = 1
    """Beam size of validations during training; tfm validate uses decoding.beam_size."""
    num_samples: Annotated[int, Field(strict=True, ge=0, le=100)] = 4
    """Number of sample translations in the log and in TensorBoard."""
    sequence_lengths: (
        Annotated[tuple[SequenceLength, ...], Field(min_length=1, max_length=1000)] | None
    ) = None
    """For data.source sequences: source lengths, in symbols, at which the exact match on 100 new sequences is measured (task memorise: on the training sequences); absent: all lengths of the data. Lengths beyond those of the training data are allowed."""


class DecodingConfig(Section):
    """How translations are found."""

    beam_size: Annotated[int, Field(strict=True, ge=1, le=64)] = 4
    """Number of hypotheses per sentence in beam search; 1 is greedy search."""
    length_penalty: Annotated[float, Field(strict=True, ge=0.0, le=10.0)] = 0.6
    """alpha: the log-probability of a hypothesis is divided by ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14)."""
    num_best: Annotated[int, Field(strict=True, ge=1, le=64)] = 1
    """Number of translations per sentence, best first; at most beam_size."""
    max_length: Annotated[int, Field(strict=True, ge=1, le=65_536)] | None = None
    """Largest number of tokens of a translation; absent: twice the tokens of the source, plus 20."""
    split_sentences: Switch = True
    """Translate each sentence of a line by itself, and join the translations with the white space of the line; data.source_language decides where a sentence ends. The sequences of data.source sequences are never split."""
    allow_unknown: Switch = True
    """A translation may contain [UNK], which shows that a word is missing; false: the best other token is used."""
    batch_tokens: Count = 4096
    """Largest number of source tokens of a batch, padding included, hypotheses of the beam not counted."""

    @model_validator(mode="after")
    def _best_come_from_the_beam(self) -> Self:
        if self.num_best > self.beam_size:
            raise Contradiction(
                f"num_best ({self.num_best}) is above beam_size ({self.beam_size})",
                hint=f"raise decoding.beam_size to {self.num_best}, or lower decoding.num_best",
            )
        return self


class RuntimeConfig(Section):
    """Device, precision and threads."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """auto: a CUDA device if there is one, else an Apple GPU (mps), else the CPU."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of matrix products and activations; weights and optimizer stay float32. auto: bfloat16 if the hardware is fast at it."""
    threads: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None
    """CPU threads; absent: PyTorch's default."""
    compile: Switch = False
    """Compile each layer with torch.compile; worthwhile for long runs on a GPU."""
    stuck_after_seconds: Positive | None = None
    """A watchdog ends the training if no step, batch of a validation or save has ended for this time. It prints the stack of each thread and exits with code 75, so a scheduler can start the run again. Choose a longer time than the longest step, batch or save takes; absent: no watchdog."""
