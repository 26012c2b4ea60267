"""Ablations: what breaks if one part of the model or of the training is changed. Each is one experiment and a question."""

import difflib
from dataclasses import dataclass

from transformer_cli.process.errors import UsageError

SMALL_MACHINE = ("runtime.device=cpu", "runtime.threads=1", "runtime.precision=float32")
"""Settings of each ablation: with them, a CPU gives the same figures in each repetition."""

SEQUENCES = (
    "data.max_length=8",
    "data.num_pairs=30000",
    "training.max_steps=300",
    "training.warmup_steps=60",
    "training.log_every=20",
    "training.validate_every=300",
    "training.save_every=300",
    "validation.max_sentences=100",
    "validation.sequence_lengths=[5, 6, 7, 8]",
)
"""Settings that make copy.yaml, reverse.yaml and sort.yaml shorter: sequences of 5 to 8 symbols, 300 updates."""
PHRASES = (
    "data.num_pairs=20000",
    "model.d_model=128",
    "model.d_ff=256",
    "training.batch_tokens=512",
    "training.max_steps=300",
    "training.warmup_steps=60",
    "training.log_every=20",
    "training.validate_every=300",
    "training.save_every=300",
    "validation.max_sentences=100",
    "validation.scores=[bleu]",
    "decoding.beam_size=1",
)
"""Settings that make en-it.yaml shorter: a narrower model, 300 updates of 512 tokens."""
LONGER_PHRASES = (
    *PHRASES,
    "training.max_steps=500",
    "training.warmup_steps=100",
    "training.validate_every=500",
    "training.save_every=500",
)
"""The same with 500 updates, for what begins late."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the models that an ablation compares."""

    label: str
    """A few words, for the heading of a column."""
    settings: tuple[str, ...] = ()
    """Its settings, as in `--set`."""
    decoding: tuple[str, ...] = ()
    """Settings of decoding for its translations; variants that differ in nothing else share one training."""
    replaced: str | None = None
    """The name of the part of the model that is replaced (laboratory.py: REPLACEMENTS); None: the model as it is."""

    @property
    def training(self) -> tuple[tuple[str, ...], str | None]:
        """Equal for variants that share one training."""
        return self.settings, self.replaced


@dataclass(frozen=True, slots=True)
class Ablation:
    """What is trained, what is measured, and what a reader can learn from it."""

    name: str
    subject: str
    """What is changed, and in which experiment: one line."""
    config: str
    """The name of a config that comes with the package."""
    settings: tuple[str, ...]
    """Settings for all variants: a smaller experiment than that of the config."""
    variants: tuple[Variant, ...]
    """The first one is the usual model."""
    measures: tuple[str, ...]
    """Names of laboratory.py: MEASURES, in the order of the table."""
    drawn: str
    """The one of them that the picture shows beside the curves of the loss."""
    sample: str
    """A source text whose translations by all variants are shown."""
    question: str
    options: tuple[str, ...]
    """Predictions, of which the reader chooses one."""
    right: int
    """The number of the option that came out, from 1."""
    came_out: str
    """What was measured."""
    why: str
    """The explanation."""
    read_on: str
    """Files and sections where the part is explained."""
    cpu_seconds: int
    """CPU time of all its trainings, as measured on one core."""

    @property
    def num_trainings(self) -> int:
        """Number of models that are trained."""
        return len({variant.training for variant in self.variants})


ON_SEQUENCES = ("training loss", "loss", "forced", "symbols", "exact")

ATTENTION = (
    Ablation(
        name="no-positions",
        subject="a model without positions, on the task reverse",
        config="reverse.yaml",
        settings=SEQUENCES,
        variants=(
            Variant("with positions"),
            Variant("no positions", ("model.positions=none",)),
        ),
        measures=ON_SEQUENCES,
        drawn="exact",
        sample="1 2 3 4 5 6",
        question="The task is to write a sequence in reverse order. The model gets no positions, neither sines nor "
        "anything else. Which part of the task can it still learn?",
        options=(
            "All of it: the causal mask of the decoder tells the order.",
            "Which symbols the target has, but not their order.",
            "Nothing: it guesses, and its loss is that of 10 equally probable symbols, 2.3.",
        ),
        right=2,
        came_out="Seed 1: without positions 0.2 % of the sequences are right from the first symbol to the last, with positions 90.8 %. From 1 2 3 4 5 6 it makes 6 1 5 4 2 3: the right symbols in a wrong order.",
        why="Attention is a weighted mean over a set, so an encoder without positions makes the same vectors from 1 2 3 and from 3 2 1, only in another order, and the decoder reads them as a set. It learns which symbols are in the source and how often, but it cannot know which of them stood last.",
        read_on="transformer_cli/model/layers.py; Vaswani et al. 2017, section 3.5; `--set model.positions=none`",
        cpu_seconds=25,
    ),
    Ablation(
        name="no-causal-mask",
        subject="a decoder that sees the rest of the target in training, English to Italian",
        config="en-it.yaml",
        settings=LONGER_PHRASES,
        variants=(
            Variant("with causal mask"),
            Variant("no causal mask", replaced="causal mask"),
        ),
        measures=("training loss", "loss", "forced", "bleu", "length"),
        drawn="bleu",
        sample="Where is the station?",
        question="In training, the decoder reads the whole target at once. Without the causal mask, each position sees "
        "the tokens after it, and so also the token that it must predict. What happens to the training loss and to the "
        "translations?",
        options=(
            "The loss falls far below that of the usual model, and the translations are useless.",
            "The loss falls far below that of the usual model, and the translations are better: the decoder knows more.",
            "The loss does not fall.",
        ),
        right=1,
        came_out="Seed 1: after 500 updates the training loss is 0.36 without the mask and 1.71 with it. The validation loss does not warn, because the decoder sees the whole target there too. When it generates, it writes empty translations; the usual model has BLEU 26.7.",
        why="The token that a position must predict is the input of the next position. So the decoder learns to look one position ahead, and it does not need the source. When it generates, there is no next position yet, and it has learned nothing else. A loss near 0 on real text is a sign of this error: a sentence has several good translations.",
        read_on="transformer_cli/model/layers.py: causal_mask; Vaswani et al. 2017, section 3.2.3",
        cpu_seconds=92,
    ),
    Ablation(
        name="no-cross-attention",
        subject="a decoder that cannot read the source, on the task copy",
        config="copy.yaml",
        settings=SEQUENCES,
        variants=(
            Variant("with cross-attention"),
            Variant("no cross-attention", replaced="cross-attention"),
        ),
        measures=ON_SEQUENCES,
        drawn="loss",
        sample="1 2 3 4 5 6",
        question="The symbols of a sequence are drawn at random from 10. The decoder cannot read the source. Which loss "
        "does it reach, in nats per token?",
        options=(
            "About 0.2: the decoder learns typical targets by heart.",
            "About 2.2: it guesses each symbol, and learns only where a target may end.",
            "It diverges, because gradients no longer reach the encoder.",
        ),
        right=2,
        came_out="Seed 1: a validation loss of 2.215; with cross-attention it is 0.006.",
        why="Cross-attention is the only way from the source to the target. Without it the decoder is a language model of random symbols, and nothing is better than 1/10 for each symbol, whose loss is ln 10 = 2.30. The end is easier, because there are only 4 lengths.",
        read_on="transformer_cli/model/layers.py: DecoderLayer; `tfm explain` shows cross-attention",
        cpu_seconds=26,
    ),
    Ablation(
        name="no-scaling",
        subject="attention scores that are not divided by sqrt(K), one head of 128 numbers, on the task copy",
        config="copy.yaml",
        settings=(*SEQUENCES, "model.num_heads=1", "model.d_model=128"),
        variants=(
            Variant("with scaling"),
            Variant("no scaling", replaced="scaling"),
        ),
        measures=ON_SEQUENCES,
        drawn="symbols",
        sample="1 2 3 4 5 6",
        question="Queries and keys have 128 numbers. Their products are not divided by sqrt(128) = 11.3. What happens?",
        options=(
            "Nothing: the model learns smaller queries.",
            "It learns much more slowly.",
            "The loss becomes NaN.",
        ),
        right=2,
        came_out="Seed 1: after 300 updates the validation loss is 1.63; with scaling it is 0.005.",
        why="The product of two random vectors of K numbers has a standard deviation that grows with sqrt(K). With large scores, softmax gives one position almost all the weight. There its gradient is almost 0, so attention learns slowly to look elsewhere.",
        read_on="transformer_cli/model/layers.py: attention_weights; Vaswani et al. 2017, section 3.2.1, footnote 4",
        cpu_seconds=37,
    ),
    Ablation(
        name="one-head",
        subject="1 head instead of 4, of the same width together, on the task sort",
        config="sort.yaml",
        settings=SEQUENCES,
        variants=(
            Variant("4 heads"),
            Variant("1 head", ("model.num_heads=1",)),
        ),
        measures=ON_SEQUENCES,
        drawn="exact",
        sample="3 1 2 3 8 4",
        question="One head of 64 numbers replaces 4 heads of 16; the number of parameters is the same. The task is to sort "
        "the symbols. What happens?",
        options=(
            "The model cannot learn the task.",
            "It still learns the task; the difference is small.",
            "It learns the task much faster.",
        ),
        right=2,
        came_out="Seed 1: with one head 88.8 % of the sequences are right, with 4 heads 97.0 %.",
        why="Heads let one layer read several places at once. Sorting needs counts more than places, and the model has two layers in which it can look one after the other, so one head is enough for most sequences. In the paper's own comparison one head costs 0.9 BLEU.",
        read_on="transformer_cli/model/layers.py: MultiHeadAttention; Vaswani et al. 2017, section 3.2.2 and table 3, rows (A)",
        cpu_seconds=24,
    ),
)


LEARNING = (
    Ablation(
        name="no-residuals",
        subject="layers without residual connections, 3 + 3 layers, on the task copy",
        config="copy.yaml",
        settings=(*SEQUENCES, "model.encoder_layers=3", "model.decoder_layers=3"),
        variants=(
            Variant("with residuals"),
            Variant("no residuals", replaced="residual connections"),
        ),
        measures=ON_SEQUENCES,
        drawn="symbols",
        sample="1 2 3 4 5 6",
        question="Each sub-layer replaces its input instead of adding to it: f(norm(x)) instead of x + f(norm(x)). The "
        "encoder and the decoder have 3 layers each. What happens?",
        options=(
            "The model learns the task a little more slowly.",
            "The model learns almost nothing in the same time.",
            "The loss becomes NaN at once.",
        ),
        right=2,
        came_out="Seed 1: after 300 updates the validation loss is 1.76; with residual connections it is 0.007.",
        why="With x + f(x), the token and its position are a part of the sum that each layer reads, and the gradient reaches each layer directly. Without it, the information must pass through each sub-layer, and attention with random weights mixes all positions into one mean.",
        read_on="transformer_cli/model/layers.py: pre; He et al. 2016; Vaswani et al. 2017, section 3.1",
        cpu_seconds=34,
    ),
    Ablation(
        name="post-norm-without-warm-up",
        subject="pre-norm and post-norm without warm-up, 6 + 6 layers, on the task copy",
        config="copy.yaml",
        settings=(
            *SEQUENCES,
            "training.warmup_steps=0",
            "training.schedule=constant",
            "training.learning_rate=1e-3",
            "model.encoder_layers=6",
            "model.decoder_layers=6",
        ),
        variants=(
            Variant("pre-norm"),
            Variant("post-norm, warm-up", ("model.norm_placement=post", "training.warmup_steps=100")),
            Variant("post-norm", ("model.norm_placement=post",)),
        ),
        measures=("training loss", "loss", "symbols"),
        drawn="symbols",
        sample="1 2 3 4 5 6",
        question="Six encoder and six decoder layers learn at a constant rate of 1e-3. Pre-norm normalises the input of each sub-layer; post-norm, as in the paper, normalises the sum behind it. The first model is pre-norm, without warm-up. The others are post-norm, with a warm-up of 100 updates and without any. Which ones learn to copy in 300 updates?",
        options=(
            "All three, post-norm a little more slowly.",
            "Pre-norm only, or far better than the others.",
            "Post-norm without warm-up learns fastest, because its first steps are large.",
        ),
        right=2,
        came_out="Seed 1: after 300 updates the validation loss of pre-norm is 0.02, that of post-norm with warm-up 1.19, and that of post-norm without warm-up 1.36. So the warm-up helps, but here the place of the norm matters more.",
        why="With pre-norm, the path of residual connections is free from the first layer to the last, and so is the path of the gradient. With post-norm, each sum is normalised. At the start the gradients of the last layers are then large (Xiong et al. 2020), so the first updates must be small: the warm-up. Post-norm models do learn with fewer layers and more updates; configs/memorise-shifted.yaml, with two layers, is one.",
        read_on='transformer_cli/model/layers.py: pre, post; Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture"',
        cpu_seconds=87,
    ),
    Ablation(
        name="target-not-shifted",
        subject="a decoder whose input is the target itself, on the task copy",
        config="copy.yaml",
        settings=(*SEQUENCES, "data.end_symbol=false"),
        variants=(
            Variant("shifted"),
            Variant("not shifted", ("data.shift_target=false",)),
        ),
        measures=ON_SEQUENCES,
        drawn="symbols",
        sample="1 2 3 4 5 6",
        question="Usually the decoder reads the target shifted right by one position, behind [SOS], so position t has "
        "seen the tokens before t. Now the shift is forgotten: position t reads token t and must predict token t. What will you "
        "notice first?",
        options=(
            "The training loss does not fall.",
            "The training loss is excellent, and so is the validation loss.",
            "The validation loss rises while the training loss falls.",
        ),
        right=2,
        came_out="Seed 1: both losses are 0.000. When it generates, 10.2 % of the symbols are right, as by chance; with the shift, 99.8 % are right.",
        why="The right answer is the input, so the decoder only has to pass it on. The validation loss does not warn, because it is computed with the same input. Generating shows the error: there the input is the token that was written last, and the model writes it again and again.",
        read_on="configs/memorise.yaml and configs/memorise-shifted.yaml; transformer_cli/data/updates.py",
        cpu_seconds=26,
    ),
)


STATION = "Where is the station?"

TEXT = (
    Ablation(
        name="no-label-smoothing",
        subject="training without label smoothing, English to Italian",
        config="en-it.yaml",
        settings=PHRASES,
        variants=(
            Variant("smoothing 0.1"),
            Variant("no smoothing", ("training.label_smoothing=0",)),
        ),
        measures=("loss", "perplexity", "forced", "bleu", "confidence", "calibration"),
        drawn="confidence",
        sample=STATION,
        question="Label smoothing takes 0.1 of the probability from the true token and spreads it over the vocabulary. The validation loss is always measured without it. What changes if the model is trained without it?",
        options=(
            "The model becomes surer of its predictions, and the validation loss falls.",
            "The model becomes less sure, and the validation loss rises.",
            "All figures stay within 1 %.",
        ),
        right=1,
        came_out="Seed 1: without smoothing the validation loss is 3.66 instead of 3.80, and the mean probability of the best token 32.4 % instead of 29.2 %.",
        why="With smoothing, the best probability for the true token is 0.9 and a little: the model is trained to keep the rest for other tokens. That costs likelihood, so the loss that is measured is higher, and the mean probability is lower. Therefore perplexities of models with and without smoothing must not be compared.",
        read_on="transformer_cli/model/loss.py; Vaswani et al. 2017, section 5.4; Müller et al. 2019; transformer_cli/evaluation/confidence.py",
        cpu_seconds=61,
    ),
    Ablation(
        name="small-vocabulary",
        subject="a vocabulary of 300 words or 300 subwords, English to Italian",
        config="en-it.yaml",
        settings=PHRASES,
        variants=(
            Variant("all words"),
            Variant("300 words", ("tokenizer.vocab_size=300",)),
            Variant("300 subwords", ("tokenizer.kind=bpe", "tokenizer.vocab_size=300")),
        ),
        measures=("loss", "bleu", "unknown", "length"),
        drawn="unknown",
        sample=STATION,
        question="The vocabularies are cut to 300 entries for each language: once the 300 most frequent words, once 300 subwords. Where do you see the damage of the 300 words?",
        options=(
            "In the loss, which rises.",
            "Not in the loss, which falls: in the words that are [UNK].",
            "Nowhere: 300 words cover nearly all of the text.",
        ),
        right=2,
        came_out="Seed 1: with 300 words the validation loss is 1.41, with all words 3.80, with 300 subwords 2.48. But 51 % of the words of the translations are [UNK]; with subwords, none is.",
        why="The words outside the vocabulary become one token, [UNK], and what they mean is lost before the model reads them. In the target, [UNK] is frequent and easy to predict, so the loss is low. Losses and perplexities of different vocabularies must not be compared. Subwords write such words in pieces; the price is longer sequences, and a model that must learn to spell.",
        read_on="transformer_cli/text/tokenizer.py; Sennrich et al. 2016; docs/judging.md",
        cpu_seconds=80,
    ),
    Ablation(
        name="xavier-tables",
        subject="tables by Xavier or by PyTorch, times sqrt(d_model), English to Italian with 6,000 subwords",
        config="en-it.yaml",
        settings=(
            *PHRASES,
            "model.scale_embeddings=true",
            "model.tie_embeddings=all",
            "tokenizer.kind=bpe",
            "tokenizer.shared=true",
            "tokenizer.vocab_size=6000",
        ),
        variants=(
            Variant("init: xavier"),
            Variant("init: pytorch", ("model.init=pytorch",)),
        ),
        measures=("training loss", "loss", "forced", "bleu"),
        drawn="loss",
        sample=STATION,
        question="One table of 6,000 subwords serves the source, the target and the output. Its vectors are multiplied by sqrt(d_model) before the sinusoids are added. The table begins with random numbers: by Xavier, the default of `model.init`, or by PyTorch's defaults, which are larger. Which model learns faster in the first 300 updates?",
        options=(
            "The one with Xavier's tables: large first numbers disturb the training.",
            "The one with PyTorch's tables.",
            "Both learn equally fast: training replaces the first numbers soon.",
        ),
        right=2,
        came_out="Seed 1: after 300 updates the validation loss is 4.50 with Xavier's tables and 3.37 with PyTorch's. With whole words and a source table of its own, as in en-it.yaml, and d_model 128 it was the other way round after 500 updates: 2.16 with Xavier and 2.50 with PyTorch.",
        why="The vector of a token is its row of the table, times sqrt(128) = 11.3, plus the sinusoids of its position, which are about 0.7. Xavier's rule gives a table of V rows and D columns the standard deviation sqrt(2 / (V + D)), here 0.018, and 0.2 after the product. So at first a vector says where a token stands, and hardly which token it is. PyTorch begins the table of the output with 0.051, which is 0.6 after the product. `model.init` changes the other matrices too, so this experiment alone does not prove that the table is the reason.",
        read_on="transformer_cli/model/layers.py; docs/experiments.md, the effect of each choice of the model on Multi30k",
        cpu_seconds=64,
    ),
)


ABLATIONS = (*ATTENTION, *LEARNING, *TEXT)
"""In the order of the list and of docs/what_breaks.md."""


def ablation_named(name: str) -> Ablation:
    """The ablation of this name.

    Raises:
        UsageError: there is none.
    """
    known = {ablation.name: ablation for ablation in ABLATIONS}
    if name in known:
        return known[name]
    similar = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {similar[0]}? " if similar else ""
    raise UsageError(f"there is no ablation {name!r}", hint=f"{meant}`tfm ablate` lists all")
