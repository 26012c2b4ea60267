"""The whole config, and the rules between its sections."""

from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, model_validator

from transformer_cli.config.data import (
    CleaningConfig,
    FilesData,
    HubCorpus,
    HubData,
    PhrasebookData,
    PublishedConfig,
    SequencesData,
    TokenizerConfig,
)
from transformer_cli.config.schema import (
    DecodingConfig,
    ModelConfig,
    TrainingConfig,
    ValidationConfig,
)
from transformer_cli.config.section import Contradiction, Positive, Section, Switch

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
    cuda_graphs: Switch = False
    """Record the forward and backward pass of each shape of batch as a CUDA graph, and replay it: for small models on an NVIDIA GPU, which otherwise waits for the CPU to start each kernel. In translation, record the steps of a search. Batches are padded to few shapes, so dropout draws other masks than without this setting. Not for model.layer_dropout, runtime.sharding: full or training.batch_tokens: auto."""
    sharding: Literal["none", "full"] = "none"
    """How several processes (torchrun) hold the model. none: each holds all of it. full: each holds a part of all weights, gradients and moments (FSDP2), for a training that does not fit into the memory of one GPU; all weights are put together on each GPU for a validation, so they must fit there. training.batch_tokens must then be a number."""
    stuck_after_seconds: Positive | None = None
    """A watchdog ends the training if no step, batch of a validation or save has ended for this time. It prints the stack of each thread and exits with code 75, so a scheduler can start the run again. Choose a longer time than the longest step, batch or save takes; absent: 1,800 with several GPUs, where a sum that hangs would wait for ever, else no watchdog."""


# The whole config, and the rules between its sections.


DataConfig = Annotated[
    PhrasebookData | SequencesData | FilesData | HubData, Field(discriminator="source")
]

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
    def cleaning(self) -> CleaningConfig:
        """The rules of `data.cleaning` as training applies them: a tokenizer of SentencePiece may normalise text itself."""
        rules = self.data.cleaning
        if self.tokenizer.kind != "sentencepiece" or self.tokenizer.normalization == "identity":
            return rules
        return rules.model_copy(update={"normalize_invisible": False})

    @model_validator(mode="after")
    def _sections_fit_together(self, info: ValidationInfo) -> Self:
        if self.model.tie_embeddings == "all" and not self.tokenizer.shared:
            raise ValueError("model.tie_embeddings: all needs tokenizer.shared: true")
        sources, targets = map(set, zip(*self.data.directions, strict=True))
        if len(targets) > 1 and not self.tokenizer.shared and (both := sorted(sources & targets)):
            raise Contradiction(
                f"{both[0]} is a source language and also a target language, so both sides need one vocabulary",
                hint="set tokenizer.shared: true",
            )
        self._check_regularisation()
        self._check_alignment()
        self._check_sharding()
        self._check_cuda_graphs()
        if self.tokenizer.kind == "sentencepiece" and self.training.add_words is not None:
            raise Contradiction(
                "training.add_words is not for tokenizer.kind: sentencepiece: its model keeps its pieces",
                hint="leave out training.add_words",
            )
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
        lengths = self.validation.sequence_lengths
        if lengths is not None:
            if not isinstance(self.data, SequencesData):
                raise ValueError("validation.sequence_lengths is for data.source: sequences")
            if self.data.task == "drop-first" and 1 in lengths:
                raise ValueError(
                    "validation.sequence_lengths: task drop-first needs lengths of 2 or more"
                )
        return self

    def _check_regularisation(self) -> None:
        has_dropout = self.model.has_dropout or self.training.word_dropout is not None
        if self.training.r_drop is not None and not has_dropout:
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
                if self.tokenizer.kind == "sentencepiece":
                    found = f"algorithm is {self.tokenizer.subwords}"
                raise Contradiction(
                    f"training.{setting} is for tokenizer.kind: {kind}, and for the {kind} of sentencepiece, but the {found}",
                    hint=f"set tokenizer.kind: {kind}, or leave out training.{setting}",
                )
        if self.training.noise is not None and self.tokenizer.kind == "wordlevel":
            raise Contradiction(
                "training.noise makes words that a vocabulary of whole words does not have",
                hint="set tokenizer.kind: bpe, unigram or sentencepiece, or leave out training.noise",
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
            ("data.streaming", isinstance(data, FilesData) and data.streaming, "stores no pairs"),
            ("runtime.compile", self.runtime.compile is True, "compiles layers that keep no attention weights"),
            ("runtime.cuda_graphs", self.runtime.cuda_graphs, "records passes that keep no attention weights"),
        ):  # fmt: skip
            if is_set:
                raise Contradiction(
                    f"{setting} {why}, but training.guided_alignment needs the links between the stored subwords of each batch",
                    hint=f"leave out {setting} or training.guided_alignment",
                )

    def _check_sharding(self) -> None:
        if self.runtime.sharding == "none":
            return
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
        if not self.runtime.cuda_graphs:
            return
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
