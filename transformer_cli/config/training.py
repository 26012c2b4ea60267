"""The settings of training."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transformer_cli.config.data import NoiseConfig, Text
from transformer_cli.config.section import (
    Contradiction,
    Count,
    Positive,
    Probability,
    Section,
    Share,
)

OptimizerName = Literal["adam", "adamw", "adafactor", "muon"]
ScheduleName = Literal[
    "noam", "inverse_sqrt", "cosine", "linear", "constant", "warmup_stable_decay", "plateau"
]
Metric = Literal[
    "loss",
    "perplexity",
    "bleu",
    "chrf",
    "chrf++",
    "ter",
    "cer",
    "wer",
    "exact_match",
    "bleu_lc_moses",
]
SmoothedOver = Literal["vocabulary", "others"]

DEFAULT_BETAS, DEFAULT_EPSILON = (0.9, 0.98), 1e-9
# Adafactor's learning rate is a share of each parameter's size: its paper has 0.01 (section 9, table 2).
DEFAULT_LEARNING_RATES: dict[OptimizerName, float] = {
    "adam": 7e-4, "adamw": 7e-4, "adafactor": 1e-2, "muon": 7e-4,
}  # fmt: skip
DEFAULT_PLATEAU_FACTOR, DEFAULT_PLATEAU_PATIENCE = 0.5, 3
PARAMETER_PATTERN = r"^[A-Za-z][A-Za-z0-9_.]{0,199}$"
ParameterName = Annotated[str, Field(pattern=PARAMETER_PATTERN)]

LOWER_IS_BETTER = frozenset({"loss", "perplexity", "ter", "cer", "wer"})

# The schedules that use a setting; the others refuse it.
_SETTINGS_OF_SCHEDULES: dict[str, tuple[ScheduleName, ...]] = {
    "noam_factor": ("noam",),
    "decay_steps": ("warmup_stable_decay",),
    "plateau_factor": ("plateau",),
    "plateau_patience": ("plateau",),
    "min_learning_rate": ("cosine", "linear", "warmup_stable_decay", "plateau"),
}
ENDS_AT_MAX_STEPS = ("cosine", "linear", "warmup_stable_decay")


class TrainingConfig(Section):
    """How the model is trained. Every interval is a number of optimizer updates."""

    init_from: Text | None = None
    """Fine-tuning: start from the weights of another run, with its tokenizers; the name of a run, or the path of a run or checkpoint folder. Absent: start from random weights."""
    frozen: Annotated[tuple[ParameterName, ...], Field(min_length=1, max_length=1000)] | None = None
    """Parts that keep the weights of init_from: encoder, decoder, embeddings, output, or the beginning of the names of parameters, such as encoder.layers.0. A tied matrix belongs to both embeddings and output."""
    add_words: Annotated[int, Field(strict=True, ge=1, le=100_000)] | None = None
    """Largest number of entries that are added to each vocabulary of init_from. wordlevel: the most frequent unknown words of the training split; bpe: further merges, learned from it; unigram: its most frequent words that consist of several subwords."""
    optimizer: OptimizerName = "adam"
    """adam (Kingma and Ba 2015); adamw with decoupled weight decay (Loshchilov and Hutter 2019); adafactor, which stores a row and a column instead of a matrix of second moments (Shazeer and Stern 2018); muon for the matrices inside the layers, with adamw for all other parameters (Jordan et al. 2024)."""
    betas: tuple[Probability, Probability] = DEFAULT_BETAS
    """Decay rates of Adam's two moments (the paper, section 5.3); not for adafactor."""
    epsilon: Positive = DEFAULT_EPSILON
    """Adam's epsilon (the paper, section 5.3); not for adafactor."""
    weight_decay: Share | None = None
    """adamw, adafactor, muon: weight decay of matrices, multiplied by the learning rate at each update; absent: 0.01, but 0 for adafactor."""
    max_steps: Count | None = None
    """Stop after this many updates."""
    max_epochs: Count | None = None
    """Stop after this many passes over the training split; if max_steps is given too, the first limit that is reached stops the run."""
    max_minutes: Positive | None = None
    """Time limit: the training saves and stops this many minutes after the start of the command, and the same command continues it with a new limit. Preparing the data counts too. The limit is checked between updates: at least one update is made, and a validation or a save that has begun is finished first. Absent: no limit."""
    batch_tokens: Count | Literal["auto"] | None = None
    """Largest number of tokens of a batch, padding included, counted on its longer side. auto: before the first update, find a number and write it into config.yaml of the run. On a GPU it is the largest that fits into memory; on a CPU it is the one after which larger batches are not faster. It is never more than an update needs. auto needs update_tokens and runtime.sharding: none, and is not for data.streaming."""
    batch_sentences: Count | None = None
    """Number of sentence pairs of a batch; instead of batch_tokens."""
    accumulate: Annotated[int, Field(strict=True, ge=1, le=100_000)] = 1
    """Number of batches that each process computes for one update; the gradients of all of them are added up."""
    update_tokens: Count | None = None
    """Size of an update in target tokens, padding excluded; instead of accumulate. An update takes as many batches as bring it closest to this number, so it has about the same size with any batch_tokens, and on any machine."""
    word_dropout: Annotated[float, Field(strict=True, gt=0.0, lt=1.0)] | None = None
    """Probability with which the embedding of a token is set to zero in training, in the source and in the decoder's input; special tokens are kept (Sennrich and Zhang 2019, who use 0.1 to 0.3)."""
    bpe_dropout: Annotated[float, Field(strict=True, gt=0.0, lt=1.0)] | None = None
    """BPE-dropout: probability with which a merge is left out when training pairs are cut into subwords; they are cut anew in each epoch (Provilkov et al. 2020, who use 0.1); for tokenizer.kind bpe."""
    unigram_alpha: Annotated[float, Field(strict=True, gt=0.0, le=100.0)] | None = None
    """Subword regularisation for tokenizer.kind unigram: in each epoch, the segmentation of each word of the training pairs is drawn anew. The probability of a segmentation is proportional to P^a, where P is its probability under the unigram model and a is this number: near 0 all are equally likely, and a large number always takes the best one (Kudo 2018, who uses 0.1 to 0.5)."""
    noise: NoiseConfig | None = None
    """Training noise: changes of the training pairs that make the model robust against typing; for tokenizers of subwords. Absent: no changes."""
    schedule: ScheduleName = "inverse_sqrt"
    """Learning rate after the linear warm-up: noam follows the paper (equation 3), inverse_sqrt falls from the peak as 1 / sqrt(step), cosine and linear fall to min_learning_rate at max_steps, constant stays at the peak, warmup_stable_decay stays there and falls linearly to min_learning_rate in the last decay_steps updates (Hu et al. 2024), plateau is multiplied by plateau_factor each time that best_metric stops improving."""
    learning_rate: Annotated[float, Field(strict=True, gt=0.0, le=100.0)] | None = None
    """Peak learning rate; not for noam. Absent: 7e-4, but 0.01 for adafactor, whose learning rate is relative to the size of the weights."""
    min_learning_rate: Annotated[float, Field(strict=True, ge=0.0, le=100.0)] | None = None
    """cosine, linear, warmup_stable_decay, plateau: the lowest learning rate after the warm-up. Absent: 0."""
    decay_steps: Count | None = None
    """warmup_stable_decay: number of updates at the end of the run in which the learning rate falls."""
    plateau_factor: Annotated[float, Field(strict=True, gt=0.0, lt=1.0)] | None = None
    """plateau: what the learning rate is multiplied by. Absent: 0.5."""
    plateau_patience: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = None
    """plateau: number of validations in a row without a better best_metric after which the learning rate falls. Absent: 3."""
    noam_factor: Annotated[float, Field(strict=True, gt=0.0, le=1000.0)] | None = None
    """noam: factor in front of d_model^-0.5 min(step^-0.5, step warmup_steps^-1.5). Absent: 1."""
    warmup_steps: Annotated[int, Field(strict=True, ge=0, le=10**9)] = 4000
    """Number of updates in which the learning rate rises linearly from 0."""
    label_smoothing: Probability = 0.1
    """Probability that is taken from the true token and spread evenly as smoothed_over says (the paper, section 5.4)."""
    smoothed_over: SmoothedOver = "vocabulary"
    """The tokens that get it. vocabulary: all V tokens, so the true one has 1 - label_smoothing + label_smoothing / V (Szegedy et al. 2016; PyTorch); others: the V - 2 tokens that are neither the true one nor padding (The Annotated Transformer)."""
    r_drop: Positive | None = None
    """Weight alpha of R-Drop (Liang et al. 2021): each batch runs twice with different dropout, the losses of both runs are added up, and alpha / 2 times the symmetric KL divergence of both predictions is added to them; an update takes twice the time and memory. Absent: no R-Drop."""
    clip_norm: Positive | None = 1.0
    """Gradient clipping: the largest norm of the gradient over all parameters; null: no clipping."""
    ema_decay: Annotated[float, Field(strict=True, gt=0.0, lt=1.0)] | None = None
    """Exponential moving average of the weights, such as 0.999: each update keeps this share of the average (less in the first updates). Validation, checkpoints and translation use the average; absent: none."""
    max_skipped_in_a_row: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 10
    """Updates whose gradient is NaN or infinite are skipped; stop after this many in a row. On a GPU the count is read only at steps that are a multiple of this number. In float16, updates that were skipped because the scale was too large do not count."""
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
    average_last: Annotated[int, Field(strict=True, ge=2, le=1000)] | None = None
    """Number of checkpoints whose weights are averaged at the end of the run; until then the run keeps at least that many. The average and the best checkpoint are validated with decoding.beam_size, and tfm translate uses the better one. Absent: no average."""
    average_of: Literal["last", "best"] = "last"
    """The checkpoints that average_last counts: the last ones, at multiples of save_every and at the end, or the best ones by best_metric."""
    best_metric: Metric = "bleu"
    """The metric on the validation split that decides which checkpoint is the best; between equal values, the lower loss decides. With several directions of translation, a score is the mean of the scores of the directions, and the loss is that of all tokens."""
    patience: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = None
    """Stop after this many validations in a row without a better best_metric; absent: never."""

    @model_validator(mode="after")
    def _something_ends_the_run(self) -> Self:
        if self.max_steps is None and self.max_epochs is None:
            raise ValueError("give max_steps or max_epochs, or both")
        if (self.batch_tokens is None) == (self.batch_sentences is None):
            what = "batch_tokens and batch_sentences are both given"
            if self.batch_tokens is None:
                what = "neither batch_tokens nor batch_sentences is given"
            raise Contradiction(
                what,
                hint="give one of them; --set training.batch_sentences=null removes the other one",
            )
        if self.update_tokens is not None and self.accumulate != 1:
            raise ValueError("give either accumulate or update_tokens")
        if self.batch_tokens == "auto" and self.update_tokens is None:
            raise Contradiction(
                "batch_tokens: auto needs update_tokens; without it, the memory of the machine would decide the size of an update",
                hint="give training.update_tokens, the target tokens of an update, such as 25000",
            )
        return self

    @property
    def peak_learning_rate(self) -> float:
        """The learning rate at the end of the warm-up; not for noam."""
        default = DEFAULT_LEARNING_RATES[self.optimizer]
        return default if self.learning_rate is None else self.learning_rate

    @property
    def num_kept_best(self) -> int:
        """Number of best checkpoints that are kept: keep_best, or more for their average."""
        return max(self.keep_best, (self.average_last or 0) if self.average_of == "best" else 0)

    @property
    def changes_pairs(self) -> bool:
        """Whether the ids of a training pair are drawn anew in each epoch."""
        settings = self.bpe_dropout, self.unigram_alpha, self.noise
        return any(setting is not None for setting in settings)

    @property
    def patience_of_plateau(self) -> int | None:
        """Validations without a better score after which the learning rate falls; None for other schedules."""
        if self.schedule != "plateau":
            return None
        return DEFAULT_PLATEAU_PATIENCE if self.plateau_patience is None else self.plateau_patience

    @model_validator(mode="after")
    def _fine_tuning_has_a_start(self) -> Self:
        for name in ("frozen", "add_words"):
            if getattr(self, name) is not None and self.init_from is None:
                raise ValueError(f"{name} is for fine-tuning; give init_from, or leave {name} out")
        return self

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> Self:
        if self.smoothed_over == "others" and self.label_smoothing == 0.0:
            raise ValueError("smoothed_over: others has no effect with label_smoothing 0")
        if self.average_of == "best" and self.average_last is None:
            raise ValueError(
                "average_of has no effect without average_last, a number of checkpoints"
            )
        if self.optimizer == "adam" and self.weight_decay is not None:
            raise ValueError("weight_decay has no effect with optimizer adam; use adamw")
        for name, default in (("betas", DEFAULT_BETAS), ("epsilon", DEFAULT_EPSILON)):
            if self.optimizer == "adafactor" and getattr(self, name) != default:
                raise ValueError(f"{name} has no effect with optimizer adafactor; remove it")
        return self

    @model_validator(mode="after")
    def _the_schedule_uses_its_settings(self) -> Self:
        if self.schedule == "noam" and self.learning_rate is not None:
            raise Contradiction(
                "learning_rate has no effect with schedule noam, whose rate follows from model.d_model and warmup_steps",
                hint="leave out training.learning_rate (--set training.learning_rate=null); training.noam_factor makes the rate larger or smaller",
            )
        for name, schedules in _SETTINGS_OF_SCHEDULES.items():
            if getattr(self, name) is not None and self.schedule not in schedules:
                raise ValueError(
                    f"{name} has no effect with schedule {self.schedule}; "
                    f"remove it, or set schedule: {' or '.join(schedules)}"
                )
        if self.schedule == "noam" and self.warmup_steps < 1:
            raise ValueError("schedule noam needs warmup_steps of 1 or more")
        if self.schedule in ENDS_AT_MAX_STEPS and self.max_steps is None:
            raise ValueError(
                f"schedule {self.schedule} needs max_steps, where it reaches "
                + ("0" if self.min_learning_rate is None else "min_learning_rate")
            )
        if self.schedule == "warmup_stable_decay":
            self._require_room_for_the_decay()
        return self

    @model_validator(mode="after")
    def _the_learning_rate_can_fall(self) -> Self:
        lowest, patience = self.min_learning_rate, self.patience_of_plateau
        if lowest is not None and lowest >= self.peak_learning_rate:
            raise ValueError(
                f"min_learning_rate ({lowest:g}) must be below learning_rate ({self.peak_learning_rate:g})"
            )
        if patience is not None and self.patience is not None and self.patience <= patience:
            raise ValueError(
                f"patience ({self.patience}) ends the run before the learning rate falls for the first time, "
                f"after {patience} validations (plateau_patience); raise patience or lower plateau_patience"
            )
        return self

    def _require_room_for_the_decay(self) -> None:
        if self.decay_steps is None:
            raise ValueError(
                "schedule warmup_stable_decay needs decay_steps, such as a tenth or a fifth of max_steps"
            )
        if self.warmup_steps + self.decay_steps > (self.max_steps or 0):
            raise ValueError(
                f"warmup_steps ({self.warmup_steps}) and decay_steps ({self.decay_steps}) are more than "
                f"max_steps ({self.max_steps}); lower one of them, or raise max_steps"
            )
