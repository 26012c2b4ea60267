"""How the model is trained, validated and searched, and on what machine."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transformer_cli.config.exercise_settings import SequenceLength
from transformer_cli.config.section import Count, Positive, Probability, Section, Switch

Metric = Literal["loss", "perplexity", "bleu", "chrf", "ter", "cer", "wer"]
ScoreName = Literal["bleu", "chrf", "ter", "cer", "wer"]
SmoothedOver = Literal["vocabulary", "others"]
Beta = Annotated[float, Field(strict=True, ge=0.0, lt=1.0)]

LOWER_IS_BETTER = frozenset({"loss", "perplexity", "ter", "cer", "wer"})


class TrainingConfig(Section):
    """Every cadence counts optimizer updates."""

    optimizer: Literal["adam", "adamw"] = "adam"
    """adam (Kingma and Ba 2015), or adamw with decoupled weight decay (Loshchilov and Hutter 2019)."""
    betas: tuple[Beta, Beta] = (0.9, 0.98)
    """Decay rates of Adam's moments (the paper, section 5.3)."""
    epsilon: Positive = 1e-9
    """Adam's epsilon (the paper, section 5.3)."""
    weight_decay: Annotated[float, Field(strict=True, ge=0.0, le=1.0)] | None = None
    """adamw: decay of the weights per unit of learning rate; absent: 0.01."""
    max_steps: Count | None = None
    """Stop after this many updates."""
    max_epochs: Count | None = None
    """Stop after this many passes over the training split; with max_steps, the first reached stops."""
    batch_tokens: Count | None = None
    """Tokens of a batch, padding included, on the longer side."""
    batch_sentences: Count | None = None
    """Sentence pairs of a batch; instead of batch_tokens."""
    accumulate: Annotated[int, Field(strict=True, ge=1, le=100_000)] = 1
    """Batches whose gradients are summed to one update."""
    schedule: Literal["noam", "inverse_sqrt", "cosine", "constant"] = "inverse_sqrt"
    """Learning rate after the linear warm-up: noam (the paper, equation 3), inverse_sqrt from the peak, cosine down to 0 at max_steps, constant."""
    learning_rate: Annotated[float, Field(strict=True, gt=0.0, le=100.0)] | None = None
    """Peak learning rate; not for noam. Absent: 7e-4."""
    noam_factor: Annotated[float, Field(strict=True, gt=0.0, le=1000.0)] | None = None
    """noam: what multiplies d_model^-0.5 min(step^-0.5, step warmup_steps^-1.5). Absent: 1."""
    warmup_steps: Annotated[int, Field(strict=True, ge=0, le=10**9)] = 4000
    """Updates over which the learning rate rises linearly."""
    label_smoothing: Probability = 0.1
    """Share of probability taken from the true symbol and spread evenly (the paper, section 5.4)."""
    smoothed_over: SmoothedOver = "vocabulary"
    """vocabulary: over all V symbols, the true one included, so that it keeps 1 - label_smoothing + label_smoothing / V (Szegedy et al. 2016; PyTorch); others: over the V - 2 that are neither the true one nor padding, as The Annotated Transformer has it."""
    clip_norm: Positive | None = 1.0
    """Largest norm of the gradient over all parameters; absent (null): no clipping."""
    max_skipped_in_a_row: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 10
    """Stop after this many consecutive updates with a gradient that is not finite; each is skipped. An accelerator is asked only every so many updates."""
    log_every: Count = 50
    """Updates between two reports of the training loss."""
    validate_every: Count = 1000
    """Updates between two validations; one more takes place at the end."""
    save_every: Count = 1000
    """Updates between two checkpoints; one more is written at the end."""
    keep_last: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 2
    """Newest checkpoints kept."""
    keep_best: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 1
    """Best checkpoints kept, by best_metric."""
    best_metric: Metric = "bleu"
    """What makes a checkpoint the best one, on the validation split."""
    patience: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = None
    """Stop after this many validations without a new best."""

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
    """What is measured on held-out text while training."""

    max_sentences: Count | None = None
    """Only the first so many validation pairs are used; absent: all. The file order decides, so every validation sees the same."""
    scores: Annotated[tuple[ScoreName, ...], Field(max_length=5)] = ("bleu", "chrf", "cer")
    """Scores of decoded text; loss and perplexity are always there. An empty list: only the samples are decoded."""
    beam_size: Annotated[int, Field(strict=True, ge=1, le=64)] = 1
    """Beam of the decoding during training; tfm validate uses decoding.beam_size."""
    num_samples: Annotated[int, Field(strict=True, ge=0, le=100)] = 4
    """Sample translations shown in the log and in TensorBoard."""
    sequence_lengths: (
        Annotated[tuple[SequenceLength, ...], Field(min_length=1, max_length=1000)] | None
    ) = None
    """For data.source sequences: source lengths, in symbols, for which exact match on 100 fresh sequences each is told (task memorise: on those that were learned); absent: all lengths of the data. Longer ones than in training are allowed."""


class DecodingConfig(Section):
    """How translations are searched."""

    beam_size: Annotated[int, Field(strict=True, ge=1, le=64)] = 4
    """Hypotheses kept per sentence; 1 is greedy search."""
    length_penalty: Annotated[float, Field(strict=True, ge=0.0, le=10.0)] = 0.6
    """alpha of ((5 + length) / 6)^alpha, by which a hypothesis' log-probability is divided (Wu et al. 2016, equation 14)."""
    num_best: Annotated[int, Field(strict=True, ge=1, le=64)] = 1
    """Translations given per sentence, best first; at most beam_size."""
    max_length: Annotated[int, Field(strict=True, ge=1, le=65_536)] | None = None
    """Most tokens of a translation; absent: twice the source's plus 20."""
    allow_unknown: Switch = True
    """[UNK] may stand in a translation, where it shows that a word is missing; false: the best other token is taken."""
    batch_tokens: Count = 4096
    """Source tokens of a batch, padding included, beams not counted."""

    @model_validator(mode="after")
    def _best_come_from_the_beam(self) -> Self:
        if self.num_best > self.beam_size:
            raise ValueError(f"num_best ({self.num_best}) is above beam_size ({self.beam_size})")
        return self


class RuntimeConfig(Section):
    """What the machine decides unless told."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """auto: a CUDA device if there is one, else an Apple GPU, else the CPU."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of matrix products and activations; weights and optimizer stay float32. auto: bfloat16 where the hardware has it."""
    threads: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None
    """CPU threads; absent: all cores."""
    compile: Switch = False
    """torch.compile each layer: pays off in long runs on a GPU."""
    stuck_after_seconds: Positive | None = None
    """End a training in which no step, validation or save has begun or ended for so long, with exit code 75 and the place where each thread stood, so that a scheduler can start it again; absent: never. Longer than the longest validation."""
