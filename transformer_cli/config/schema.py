"""The settings of a run: the architecture, training, validations and the machine; all sections together, and the rules between them.

The sections of data and tokenizers stand in data.py, those of a translation in decoding.py.
"""

from collections.abc import Collection
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, ValidationInfo, model_validator

from transformer_cli.config.data import (
    TOKENIZER_KINDS,
    CleaningConfig,
    FilesData,
    HubCorpus,
    HubData,
    LanguageData,
    NoiseConfig,
    PhrasebookData,
    PublishedConfig,
    SequenceLength,
    SequencesData,
    Text,
    TokenizerConfig,
    check_vocabularies,
)
from transformer_cli.config.decoding import DecodingConfig
from transformer_cli.config.section import (
    Contradiction,
    Count,
    Depth,
    Positive,
    Probability,
    Section,
    Share,
    Switch,
    Width,
)

Norm = Literal["layernorm", "rmsnorm", "std_layernorm", "scalar_std_layernorm"]
NormPlacement = Literal["pre", "post", "residual_of_normed"]


_STUDENT = {"decoder_layer": "ssru", "tie_embeddings": "all"}
# The students of the translators in browsers: student.tiny.yml and student.base.yml in pipeline/train/configs/model of
# github.com/mozilla/translations, which follow github.com/browsermt/students (student.tiny11 and student.base).
_SIZES = ("d_model", "num_heads", "d_ff", "encoder_layers", "decoder_layers")
PRESETS: dict[str, dict[str, Any]] = {
    name: {**dict(zip(_SIZES, sizes, strict=True)), **others}
    for name, sizes, others in (
        ("tiny", (128, 4, 256, 4, 4), {}),
        ("small", (256, 4, 1024, 3, 3), {}),
        ("base", (512, 8, 2048, 6, 6), {}),
        ("big", (1024, 16, 4096, 6, 6), {"dropout": 0.3}),
        ("student-tiny", (256, 8, 1536, 6, 2), _STUDENT),
        ("student-base", (512, 8, 2048, 6, 2), _STUDENT),
    )
}


_DEEP_LAYERS = 6


class ModelConfig(Section):
    """The default sizes are those of the base model of Vaswani et al. 2017, table 3; pre-norm by default."""

    preset: Literal["tiny", "small", "base", "big", "student-tiny", "student-base"] | None = None
    """Defaults for d_model, num_heads, d_ff, encoder_layers and decoder_layers: tiny (Wu et al. 2021), small, base and big (Vaswani et al. 2017, table 3); student-tiny and student-base, the small models of translators in browsers, also set decoder_layer: ssru and tie_embeddings: all, which needs tokenizer.shared (docs/students.md)."""
    d_model: Width = 512
    """Width of the input and output of every layer (d_model of the paper)."""
    num_heads: Width = 8
    """Number of attention heads (h of the paper, section 3.2.2)."""
    head_dim: Width | None = None
    """Width of the queries, keys and values of one head; absent: d_model / num_heads."""
    num_kv_heads: Width | None = None
    """Number of heads of keys and values; groups of query heads share them (Ainslie et al. 2023); absent: num_heads."""
    d_ff: Width = 2048
    """Inner width of the feed-forward network (d_ff of the paper, section 3.3)."""
    encoder_layers: Depth = 6
    """Number of layers of the encoder (N of the paper)."""
    decoder_layers: Depth = 6
    """Number of layers of the decoder (N of the paper)."""
    decoder_layer: Literal["attention", "ssru"] = "attention"
    """What a decoder layer reads the target so far with. attention: self-attention (the paper); ssru: the simpler simple recurrent unit, whose cost for a token does not grow with the length (Kim et al. 2019). Both are followed by cross-attention and the feed-forward network."""
    max_length: Width = 512
    """Length of the longest sequence, in tokens; longer training pairs are dropped, longer lines cut. Translations may be longer unless positions are learned."""
    dropout: Probability = 0.1
    """Dropout rate of the output of each sub-layer (P_drop of the paper, section 5.4)."""
    attention_dropout: Probability = 0.0
    """Dropout rate of the attention weights."""
    ff_dropout: Probability = 0.0
    """Dropout rate of the inner activations of the feed-forward network."""
    embedding_dropout: Probability | None = None
    """Dropout rate of the sum of embedding and position; absent: the same as dropout."""
    layer_dropout: Probability = 0.0
    """LayerDrop: probability with which training skips a layer, drawn for each layer and batch; translation uses all layers (Fan et al. 2020)."""
    norm: Norm = "layernorm"
    """Normalisation. layernorm: g (x - mean) / sqrt(var + eps) + b (Ba et al. 2016); rmsnorm: g x / sqrt(mean(x^2) + eps) (Zhang and Sennrich 2019); std_layernorm: g (x - mean) / (std + eps) + b with the unbiased std; scalar_std_layernorm: the same with one number each for g and b."""
    norm_eps: Positive = 1e-5
    """Epsilon of the normalisation."""
    norm_placement: NormPlacement = "pre"
    """pre: x + f(norm(x)) (Xiong et al. 2020); post: norm(x + f(x)) (the paper); residual_of_normed: x + norm(f(x))."""
    final_norm: Switch | None = None
    """A norm after the last layer of the encoder and of the decoder; absent: true unless norm_placement is post."""
    embedding_norm: Switch = False
    """A norm of the sum of embedding and position, before the first layer of the encoder and of the decoder (BART, Lewis et al. 2020)."""
    activation: Literal["relu", "gelu", "silu", "swiglu", "geglu", "reglu"] = "relu"
    """Activation function of the feed-forward network; swiglu, geglu and reglu multiply it with a second projection, the gate (Shazeer 2020)."""
    attention_bias: Switch = True
    """Biases in the query, key, value and output projections."""
    feed_forward_bias: Switch = True
    """Biases in the feed-forward network."""
    positions: Literal["sinusoidal", "sinusoidal_halves", "sinusoidal_marian", "learned", "rotary", "none"] = (
        "sinusoidal"
    )
    """Position encoding. sinusoidal: sines and cosines interleaved (the paper); sinusoidal_halves: first all sines, then all cosines (MarianMTModel of transformers); sinusoidal_marian: the same order, with the angles position / 10000^(2i / (d_model - 2)) instead of position / 10000^(2i / d_model) (Marian itself); learned: one vector per position; rotary (Su et al. 2021); none."""
    start_embedding: Literal["learned", "zero"] = "learned"
    """The embedding of [SOS], the first input of the decoder. learned: as that of every token; zero: it stays zero, as in Marian."""
    scale_embeddings: Switch = True
    """Multiply embeddings by sqrt(d_model) (the paper, section 3.4)."""
    tie_embeddings: Literal["none", "target-output", "all"] = "target-output"
    """Which tables share one set of weights (Press and Wolf 2017). target-output: the target embedding and the output projection; all: the source embedding too, which needs tokenizer.shared."""
    qk_norm: Switch = False
    """RMSNorm on the queries and keys of each head, with a learned factor for each column; Henry et al. 2020 divide both by their L2 norm and learn one factor, Dehghani et al. 2023 take LayerNorm."""
    init: Literal["xavier", "pytorch", "small"] = "xavier"
    """Initial weights. xavier: Xavier uniform for all matrices, embeddings included (Glorot and Bengio 2010); pytorch: the defaults of PyTorch; small: xavier, with the last matrix of each sub-layer divided by the square root of the number of sub-layers of its encoder or decoder, for deep models (Radford et al. 2019)."""
    output_bias: Switch = True
    """A bias in the output projection."""
    alignment_head: Annotated[int, Field(strict=True, ge=0, lt=1024)] | Literal["mean"] | None = None
    """What of a decoder layer's cross-attention learns given word alignments (training.guided_alignment), and aligns words afterwards: the number of a head, from 0, or mean: the mean over the heads. Absent: nothing learns them; words are aligned by the mean over the heads of the layer that aligns best by itself (Garg et al. 2019)."""
    alignment_layer: Annotated[int, Field(strict=True, ge=0, lt=1024)] | None = None
    """The number of that layer, from 0; absent: the last one."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in_preset(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("preset") in [*PRESETS]:
            return {**PRESETS[values["preset"]], **values}
        return values

    @model_validator(mode="after")
    def _numbers_fit_together(self) -> Self:
        if self.head_dim is None and self.d_model % self.num_heads:
            raise ValueError(
                f"d_model ({self.d_model}) must be a multiple of num_heads ({self.num_heads}), or give head_dim"
            )
        if self.num_kv_heads is not None and self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads ({self.num_heads}) must be a multiple of num_kv_heads ({self.num_kv_heads})")
        if "std_layernorm" in self.norm and self.d_model < 2:
            raise ValueError(f"norm: {self.norm} needs a d_model of 2 or more, because it divides by d_model - 1")
        if self.alignment_head is not None or self.alignment_layer is not None:
            self._check_alignment()
        if self.positions == "rotary" and self.head_width % 2:
            raise ValueError(f"rotary positions need an even head width, not {self.head_width}")
        if self.positions.startswith("sinusoidal") and self.d_model % 2:
            raise ValueError(f"{self.positions} positions need an even d_model, not {self.d_model}")
        return self

    def _check_alignment(self) -> None:
        head, layer = self.alignment_head, self.alignment_layer
        if isinstance(head, int) and head >= self.num_heads:
            raise ValueError(
                f"alignment_head ({head}) must be below num_heads ({self.num_heads}): heads are counted from 0"
            )
        if layer is not None and head is None:
            raise ValueError("alignment_layer has no effect without alignment_head")
        if layer is not None and layer >= self.decoder_layers:
            raise ValueError(
                f"alignment_layer ({layer}) must be below decoder_layers ({self.decoder_layers}): layers are counted from 0"
            )

    @property
    def aligning_layer(self) -> int:
        """The number of the decoder layer whose cross-attention aligns words.

        Without guided alignment it is the penultimate layer of a deep decoder, and the last layer of one with fewer than six
        layers: Garg et al. measured decoders of six layers; in shallower ones the last layer aligned best in our measurements
        (docs/experiments.md).

        Source: Garg et al. 2019, "Jointly Learning to Align and Translate with Transformer Models", section 4.2.
        """
        last = self.decoder_layers - 1
        if self.alignment_head is not None:
            return last if self.alignment_layer is None else self.alignment_layer
        return last - 1 if self.decoder_layers >= _DEEP_LAYERS else last

    @property
    def head_width(self) -> int:
        """K: the width of one head."""
        return self.head_dim or self.d_model // self.num_heads

    @property
    def kv_heads(self) -> int:
        """Number of heads of keys and values."""
        return self.num_kv_heads or self.num_heads

    @property
    def is_gated(self) -> bool:
        """Whether the feed-forward network has a gate."""
        return self.activation in ("swiglu", "geglu", "reglu")

    @property
    def has_final_norm(self) -> bool:
        """Whether encoder and decoder end with a norm."""
        return self.norm_placement != "post" if self.final_norm is None else self.final_norm

    @property
    def has_dropout(self) -> bool:
        """Whether a dropout rate is above 0, so that two forward passes of a batch differ in training."""
        return any((self.dropout, self.attention_dropout, self.ff_dropout, self.embedding_dropout))


# The settings of training.


OptimizerName = Literal["adam", "adamw", "adafactor", "muon"]
ScheduleName = Literal["noam", "inverse_sqrt", "cosine", "linear", "constant", "warmup_stable_decay", "plateau"]
Metric = Literal["loss", "perplexity", "bleu", "chrf", "chrf++", "ter", "cer", "wer", "exact_match", "bleu_lc_moses"]
SmoothedOver = Literal["vocabulary", "others"]

DEFAULT_BETAS, DEFAULT_EPSILON = (0.9, 0.98), 1e-9
# Adafactor's learning rate is a share of each parameter's size: its paper has 0.01 (section 9, table 2).
DEFAULT_LEARNING_RATES: dict[OptimizerName, float] = {"adam": 7e-4, "adamw": 7e-4, "adafactor": 1e-2, "muon": 7e-4}
DEFAULT_PLATEAU_FACTOR, DEFAULT_PLATEAU_PATIENCE = 0.5, 3
PARAMETER_PATTERN = r"^[A-Za-z][A-Za-z0-9_.]{0,199}$"
ParameterName = Annotated[str, Field(pattern=PARAMETER_PATTERN)]

LOWER_IS_BETTER = frozenset({"loss", "perplexity", "ter", "cer", "wer"})

# Settings of the training whose rules are about other sections, too.
_RARELY_SET = ("r_drop", "simcut", "bpe_dropout", "unigram_alpha", "noise", "add_words")
# The schedules that use a setting; the others refuse it.
_SETTINGS_OF_SCHEDULES: dict[str, tuple[ScheduleName, ...]] = {
    "noam_factor": ("noam",),
    "decay_steps": ("warmup_stable_decay",),
    "plateau_factor": ("plateau",),
    "plateau_patience": ("plateau",),
    "min_learning_rate": ("cosine", "linear", "warmup_stable_decay", "plateau"),
}
ENDS_AT_MAX_STEPS = ("cosine", "linear", "warmup_stable_decay")


class SimCutConfig(Section):
    """SimCut: a second pass whose embeddings are cut, and which is to predict the same."""

    weight: Positive = 3.0
    """alpha: what the KL divergence of both predictions is multiplied by before it is added to the loss. The gradient goes through both predictions."""
    probability: Annotated[float, Field(strict=True, gt=0.0, lt=1.0)] = 0.05
    """With which the embedding of a token becomes zero in the second pass, on both sides (token cutoff); special tokens stay."""


class TrainingConfig(Section):
    """How the model is trained. Every interval is a number of optimizer updates."""

    init_from: Text | None = None
    """Fine-tuning: start from the weights of another run, with its tokenizers; the name of a run, or the path of a run or checkpoint folder. Absent: start from random weights."""
    frozen: Annotated[tuple[ParameterName, ...], Field(min_length=1, max_length=1000)] | None = None
    """Parts that keep the weights of init_from: encoder, decoder, embeddings, output, or the beginning of the names of parameters, such as encoder.layers.0. A tied matrix belongs to both embeddings and output."""
    shrink: Switch = False
    """The run of init_from may have more layers, and self-attention where this model has SSRUs: each layer starts from one of its layers, evenly spread, the last one included, and what it does not have starts from random weights (shrink and fine-tune, Shleifer and Rush 2020). For students (docs/students.md)."""
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
    """BPE-dropout: probability with which a merge is left out when training pairs are cut into subwords; they are cut anew in each epoch (Provilkov et al. 2020, who use 0.1); for tokenizer.kind bpe, and sentencepiece with algorithm bpe."""
    unigram_alpha: Annotated[float, Field(strict=True, gt=0.0, le=100.0)] | None = None
    """Subword regularisation for tokenizer.kind unigram, and sentencepiece with algorithm unigram: in each epoch, the segmentation of each word of the training pairs is drawn anew. The probability of a segmentation is proportional to P^a, where P is its probability under the unigram model and a is this number: near 0 all are equally likely, and a large number always takes the best one (Kudo 2018, who uses 0.1 to 0.5)."""
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
    simcut: SimCutConfig | None = None
    """SimCut (Gao et al. 2022, "Bi-SimCut"): each batch runs a second time with some embeddings cut, and the KL divergence from the whole to the cut prediction is added to the loss; an update takes twice the time and memory. `{}` has the values of the paper. Absent: no SimCut."""
    guided_alignment: Positive | None = None
    """Weight of guided alignment: to the loss, this number times the cross-entropy between given word alignments (data.corpora.N.alignment_path) and the attention that model.alignment_head names is added (Chen et al. 2016; Garg et al. 2019, who use 0.05; Marian has 0.1). Absent: alignments are not learned."""
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
            if self.batch_tokens is None:
                raise Contradiction(
                    "neither batch_tokens nor batch_sentences is given", hint="--set training.batch_tokens=4096"
                )
            raise Contradiction(
                "batch_tokens and batch_sentences are both given",
                hint="--set training.batch_tokens=null removes the one, --set training.batch_sentences=null the other",
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
    def num_predictions(self) -> int:
        """How often an update predicts each pair."""
        return 1 if self.r_drop is None and self.simcut is None else 2

    @property
    def patience_of_plateau(self) -> int | None:
        """Validations without a better score after which the learning rate falls; None for other schedules."""
        if self.schedule != "plateau":
            return None
        return DEFAULT_PLATEAU_PATIENCE if self.plateau_patience is None else self.plateau_patience

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> Self:
        for name in ("frozen", "add_words", "shrink"):
            if getattr(self, name) not in (None, False) and self.init_from is None:
                raise ValueError(f"{name} is for fine-tuning; give init_from, or leave {name} out")
        if self.smoothed_over == "others" and self.label_smoothing == 0.0:
            raise ValueError("smoothed_over: others has no effect with label_smoothing 0")
        if self.average_of == "best" and self.average_last is None:
            raise ValueError("average_of has no effect without average_last, a number of checkpoints")
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
        lowest = self.min_learning_rate
        if lowest is not None and lowest >= self.peak_learning_rate:
            raise ValueError(
                f"min_learning_rate ({lowest:g}) must be below learning_rate ({self.peak_learning_rate:g})"
            )
        if self.patience is not None and self.patience <= (self.patience_of_plateau or 0):
            raise ValueError(
                f"patience ({self.patience}) ends the run before the learning rate falls for the first time, "
                f"after {self.patience_of_plateau} validations (plateau_patience); raise patience or lower plateau_patience"
            )
        return self

    def _require_room_for_the_decay(self) -> None:
        if self.decay_steps is None:
            raise ValueError("schedule warmup_stable_decay needs decay_steps, such as a tenth or a fifth of max_steps")
        if self.warmup_steps + self.decay_steps > (self.max_steps or 0):
            raise ValueError(
                f"warmup_steps ({self.warmup_steps}) and decay_steps ({self.decay_steps}) are more than "
                f"max_steps ({self.max_steps}); lower one of them, or raise max_steps"
            )


# The settings of validations.


ScoreName = Literal[
    "bleu", "chrf", "chrf++", "ter", "cer", "wer", "exact_match", "unknown", "length_ratio", "bleu_lc_moses"
]
SCORES_BY_DEFAULT: tuple[ScoreName, ...] = get_args(ScoreName)[:-1]
"""What tfm validate and tfm score compute: every score that needs no further package."""


class ValidationConfig(Section):
    """What is measured on held-out text during training."""

    max_sentences: Count | None = None
    """Number of validation pairs that are used, always the first ones; several directions share this number. Absent: all pairs of the corpora whose split is validation, and at most 3,000 pairs of a drawn split, evenly spread. tfm validate scores the whole split."""
    scores: Annotated[tuple[ScoreName, ...], Field(max_length=len(get_args(ScoreName)))] = ("bleu", "chrf", "cer")
    """Scores of translations; loss and perplexity are always computed. With an empty list, only the samples are translated. docs/judging.md explains each; bleu_lc_moses, the lower-cased BLEU of papers on Multi30k, needs the package sacremoses."""
    beam_size: Annotated[int, Field(strict=True, ge=1, le=64)] = 1
    """Beam size of validations during training; tfm validate uses decoding.beam_size."""
    num_samples: Annotated[int, Field(strict=True, ge=0, le=100)] = 4
    """Number of sample translations in the log and in TensorBoard."""
    sequence_lengths: Annotated[tuple[SequenceLength, ...], Field(min_length=1, max_length=1000)] | None = None
    """For data.source sequences: source lengths, in symbols, at which the exact match on 100 new sequences is measured (task memorise: on the training sequences); absent: all lengths of the data. Lengths beyond those of the training data are allowed."""


# The settings of the machine: device, precision and threads.


class RuntimeConfig(Section):
    """Device, precision and threads."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """auto: a CUDA device if there is one, else an Apple GPU (mps), else the CPU."""
    precision: Literal["auto", "float32", "bfloat16", "float16", "int8"] = "auto"
    """Precision of matrix products and activations; weights and optimizer stay float32. auto: bfloat16 if the hardware is fast at it, else float16 on NVIDIA cards that are fast at that (Volta, Turing), else float32. In float16 a factor that training adapts keeps gradients in range. int8, for translations on a CPU only: inputs and weights of linear layers are rounded to 8 bits, the rest is float32."""
    threads: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None
    """CPU threads; absent: PyTorch's default."""
    workers: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None
    """Processes that encode the training pairs (text to ids) while the data are prepared; the result does not depend on it. absent: one for each 250,000 pairs, at most one for each CPU; one where the system is not Linux."""
    compile: Switch | Literal["auto"] = "auto"
    """What torch.compile compiles. true: each layer, and on a GPU the loss. false: nothing. auto: on an NVIDIA GPU the loss, and the layers if the updates that are left are so many that this saves more time than it takes (docs/scaling.md); on other devices nothing."""
    cuda_graphs: Switch | Literal["auto"] = "auto"
    """Record the forward and backward pass of up to 128 shapes of batches as CUDA graphs, and replay them: for small models on an NVIDIA GPU, which otherwise waits for the CPU to start each kernel. In translation, record the steps of a search. auto: in translation, and in the training of a model so small that a GPU would wait (docs/scaling.md). Batches are padded to few shapes, so dropout draws other masks than without it. true is not for model.layer_dropout, runtime.sharding: full, training.guided_alignment or training.batch_tokens: auto."""
    sharding: Literal["none", "full"] = "none"
    """How several processes (torchrun) hold the model. none: each holds all of it. full: each holds a part of all weights, gradients and moments (FSDP2), for a training that does not fit into the memory of one GPU; all weights are put together on each GPU for a validation, so they must fit there. training.batch_tokens must then be a number."""
    stuck_after_seconds: Positive | None = None
    """A watchdog ends the training if no step, batch of a validation or save has ended for this time. It prints the stack of each thread and exits with code 75, so a scheduler can start the run again. Choose a longer time than the longest step, batch or save takes; absent: 1,800 with several GPUs, where a sum that hangs would wait for ever, else no watchdog."""


# The whole config, and the rules between its sections.


DataConfig = Annotated[PhrasebookData | SequencesData | FilesData | HubData, Field(discriminator="source")]

RUN_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class Config(Section):
    """All settings of one experiment."""

    name: Annotated[str, Field(pattern=RUN_NAME_PATTERN)]
    """Name of the run folder, runs/NAME: letters, digits, '.', '_' and '-'."""
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)] = 1
    """Seed of initial weights, data order, dropout and generated corpora."""
    data: DataConfig
    """The sentence pairs."""
    tokenizer: TokenizerConfig = Field(default_factory=TokenizerConfig)
    """How text becomes token ids."""
    model: ModelConfig = Field(default_factory=ModelConfig)
    """The architecture of the model."""
    training: TrainingConfig
    """How the model is trained."""
    validation: ValidationConfig = Field(default_factory=ValidationConfig)
    """What is measured on held-out text during training."""
    decoding: DecodingConfig = Field(default_factory=DecodingConfig)
    """How translations are found."""
    runtime: RuntimeConfig = Field(default_factory=RuntimeConfig)
    """Device, precision and threads."""
    published: PublishedConfig = Field(default_factory=PublishedConfig)
    """Losses that others publish for the same experiment."""

    @property
    def applied_cleaning(self) -> CleaningConfig:
        """The rules of `data.cleaning` as training applies them: a tokenizer of SentencePiece may normalise text itself."""
        rules = self.data.cleaning
        if not self.tokenizer.is_of_library or self.tokenizer.normalization == "identity":
            return rules
        return rules.model_copy(update={"normalize_invisible": False})

    @model_validator(mode="after")
    def _sections_fit_together(self, info: ValidationInfo) -> Self:
        if self.model.tie_embeddings == "all" and not self.tokenizer.shared:
            raise ValueError("model.tie_embeddings: all needs tokenizer.shared: true")
        if isinstance(self.data, LanguageData) and not self.tokenizer.shared:
            check_vocabularies(self.data)
        if any(getattr(self.training, name) is not None for name in _RARELY_SET):
            self._check_rarely_set()
        if self.training.guided_alignment is not None or isinstance(self.data, FilesData):
            self._check_alignment()
        if self.runtime.sharding == "full":
            self._check_sharding()
        if self.runtime.cuda_graphs is True:
            self._check_cuda_graphs()
        metric = self.training.best_metric
        is_trained = bool(info.context and info.context.get("is_trained"))
        if not is_trained and metric not in ("loss", "perplexity", *self.validation.scores):
            computed = [*self.validation.scores, "loss"]
            raise Contradiction(
                f"training.best_metric: {metric} is not among validation.scores",
                hint=f"add {metric} to validation.scores, or set training.best_metric to {' or '.join(computed)}",
            )
        if isinstance(self.data, FilesData | HubData):
            _check_streaming(self.data, self.training)
        if self.validation.sequence_lengths is not None:
            self._check_sequence_lengths(self.validation.sequence_lengths)
        return self

    def _check_sequence_lengths(self, lengths: Collection[int]) -> None:
        if not isinstance(self.data, SequencesData):
            raise ValueError("validation.sequence_lengths is for data.source: sequences")
        if self.data.task == "drop-first" and 1 in lengths:
            raise ValueError("validation.sequence_lengths: task drop-first needs lengths of 2 or more")

    def _check_rarely_set(self) -> None:
        if self.training.r_drop is not None and self.training.word_dropout is None and not self.model.has_dropout:
            raise ValueError(
                "training.r_drop has no effect without dropout, because both forward passes of a batch are equal; "
                "set model.dropout above 0, or training.word_dropout"
            )
        if self.training.simcut is not None:
            for setting, why in (
                ("r_drop", "runs each batch twice in another way"),
                ("word_dropout", "cuts embeddings in both passes"),
            ):
                if getattr(self.training, setting) is not None:
                    raise Contradiction(
                        f"training.{setting} {why}, so it does not go together with training.simcut",
                        hint=f"leave out training.simcut or training.{setting}",
                    )
        for setting, kind in (("bpe_dropout", "bpe"), ("unigram_alpha", "unigram")):
            is_given = getattr(self.training, setting) is not None
            if is_given and self.tokenizer.subwords != kind:
                found = f"kind is {self.tokenizer.kind}"
                if self.tokenizer.is_of_library:
                    found = f"algorithm is {self.tokenizer.subwords}"
                raise Contradiction(
                    f"training.{setting} is for tokenizer.kind: {kind}, and for the {kind} of sentencepiece, but the {found}",
                    hint=f"set tokenizer.kind: {kind}, or leave out training.{setting}",
                )
        if self.training.noise is not None and self.tokenizer.subwords is None:
            *first, last = (name for name, kind in TOKENIZER_KINDS.items() if kind.subwords)
            raise Contradiction(
                "training.noise makes words that a vocabulary of whole words does not have",
                hint=f"set tokenizer.kind: {', '.join(first)} or {last}, or leave out training.noise",
            )
        if self.training.add_words is not None and self.tokenizer.is_of_library:
            raise Contradiction(
                f"training.add_words is not for tokenizer.kind: {self.tokenizer.kind}: its model keeps its pieces",
                hint="leave out training.add_words",
            )

    def _check_alignment(self) -> None:
        training, data = self.training, self.data
        corpora = data.corpora if isinstance(data, FilesData) else ()
        given = [number for number, one in enumerate(corpora) if one.alignment_path is not None]
        if training.guided_alignment is None:
            if given:
                raise Contradiction(
                    f"data.corpora.{given[0]}.alignment_path has no effect without training.guided_alignment",
                    hint="set training.guided_alignment: 0.1, or leave out alignment_path",
                )
            return
        if self.model.alignment_head is None:
            raise Contradiction(
                "training.guided_alignment needs model.alignment_head, which names what learns the alignments",
                hint="set model.alignment_head: 0",
            )
        if not given:
            raise Contradiction(
                "training.guided_alignment needs word alignments, and no corpus has alignment_path",
                hint="give data.corpora.N.alignment_path, a file that tfm align or eflomal has written; it is for data.source: files",
            )
        for setting, is_set, why in (
            ("training.r_drop", training.r_drop is not None, "runs each batch twice"),
            ("training.simcut", training.simcut is not None, "runs each batch twice"),
            ("training.bpe_dropout", training.bpe_dropout is not None, "cuts words anew in each epoch"),
            ("training.unigram_alpha", training.unigram_alpha is not None, "cuts words anew in each epoch"),
            ("training.noise", training.noise is not None, "changes the words of a pair"),
            (
                "data.reversed_epochs",
                isinstance(data, FilesData) and data.reversed_epochs is not None,
                "turns pairs round",
            ),
            ("data.streaming", isinstance(data, FilesData) and data.streaming, "stores no pairs"),
            ("runtime.compile", self.runtime.compile is True, "compiles layers that keep no attention weights"),
            ("runtime.cuda_graphs", self.runtime.cuda_graphs is True, "records passes that keep no attention weights"),
        ):
            if is_set:
                raise Contradiction(
                    f"{setting} {why}, but training.guided_alignment needs the links between the stored subwords of each batch",
                    hint=f"leave out {setting} or training.guided_alignment",
                )

    def _check_sharding(self) -> None:
        if self.model.start_embedding == "zero":
            raise Contradiction(
                "model.start_embedding: zero sets one row of a gradient to zero, but runtime.sharding: full splits the rows",
                hint="leave out model.start_embedding, or set runtime.sharding: none",
            )
        if self.training.optimizer not in ("adam", "adamw"):
            raise Contradiction(
                f"training.optimizer: {self.training.optimizer} needs whole matrices, but runtime.sharding: full splits them",
                hint="use adam or adamw, or runtime.sharding: none",
            )
        if self.model.layer_dropout:
            raise Contradiction(
                "model.layer_dropout skips layers, but runtime.sharding: full needs every layer in each update",
                hint="leave out model.layer_dropout, or set runtime.sharding: none",
            )
        if self.training.batch_tokens == "auto":
            raise Contradiction(
                "training.batch_tokens: auto tries batches with a whole model in each process, but runtime.sharding: full is for models that do not fit there",
                hint="set training.batch_tokens to a number, such as 4096 (config.yaml of a run that has begun has its number), or runtime.sharding: none",
            )

    def _check_cuda_graphs(self) -> None:
        for setting, is_set, why in (
            ("model.layer_dropout", self.model.layer_dropout, "skips layers"),
            ("runtime.sharding: full", self.runtime.sharding == "full", "exchanges weights"),
        ):
            if is_set:
                raise Contradiction(
                    f"{setting} {why} within a pass, but runtime.cuda_graphs: true repeats the same operations in each",
                    hint=f"leave out {setting}, or set runtime.cuda_graphs: false",
                )
        if self.training.batch_tokens == "auto":
            raise Contradiction(
                "training.batch_tokens: auto finds batches that fill the memory, but runtime.cuda_graphs: true is for small ones, "
                "and needs the memory of a batch twice",
                hint="set training.batch_tokens to a number, such as 4096, or runtime.cuda_graphs: false",
            )


def _check_streaming(data: FilesData | HubData, training: TrainingConfig) -> None:
    if not data.streaming:
        if data.tokenizer_pairs is not None:
            raise ValueError("data.tokenizer_pairs has no effect without data.streaming: true")
        if data.stream_parts > 1:
            raise ValueError("data.stream_parts has no effect without data.streaming: true")
        return
    if data.temperature is not None:
        raise Contradiction(
            "data.temperature needs the sizes of the corpora, and data.streaming does not know them",
            hint="leave data.temperature out: data.streaming reads equal parts of all corpora",
        )
    if data.stream_parts > 1 and training.update_tokens is not None:
        raise Contradiction(
            "training.update_tokens needs the lengths of all batches of an update, but with data.stream_parts no process knows all of them",
            hint="set training.accumulate instead of training.update_tokens",
        )
    for number in range(len(data.corpora)):
        _check_streamed_corpus(data, number)
    _check_training_on_a_stream(training)


def _check_streamed_corpus(data: FilesData | HubData, number: int) -> None:
    corpus, where = data.corpora[number], f"data.corpora.{number}"
    if corpus.split is None:
        raise Contradiction(
            f"{where} has no split, and data.streaming cannot draw one: a corpus is not read to its end",
            hint=f"set {where}.split: train, and give a small corpus with split: validation",
        )
    if corpus.weight != 1.0:
        raise Contradiction(
            f"{where}.weight has no effect with data.streaming: true",
            hint=f"leave {where}.weight out: data.streaming reads equal parts of all corpora",
        )
    if isinstance(corpus, HubCorpus) and corpus.streamed:
        raise Contradiction(
            f"{where}.streamed copies the pairs to the run folder, and data.streaming: true copies none",
            hint="leave one of the two out",
        )


def _check_training_on_a_stream(training: TrainingConfig) -> None:
    if training.max_epochs is not None or training.max_steps is None:
        raise Contradiction(
            "data.streaming does not know how many pairs an epoch has, so training.max_epochs cannot end the run",
            hint="set training.max_steps, and leave training.max_epochs out",
        )
    for setting in ("bpe_dropout", "unigram_alpha", "noise"):
        if getattr(training, setting) is not None:
            raise Contradiction(
                f"training.{setting} changes stored pairs anew in each epoch, and data.streaming stores none",
                hint=f"leave out training.{setting}, or set data.streaming: false",
            )
    if training.batch_tokens == "auto":
        raise Contradiction(
            "training.batch_tokens: auto tries the longest pairs of the corpus, which data.streaming does not know",
            hint="set training.batch_tokens to a number, such as 4096",
        )
