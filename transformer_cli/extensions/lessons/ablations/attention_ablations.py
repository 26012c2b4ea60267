"""Ablations of attention: its masks, its scaling, its heads, and the order of tokens."""

from transformer_cli.extensions.lessons.ablations.ablation import (
    LONGER_PHRASES,
    SEQUENCES,
    Ablation,
    Variant,
)

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
        came_out="Seed 1: a validation loss of 0.05 with positions and of 1.00 without them. Without positions, 0.2 % of the sequences are right from the first symbol to the last, with positions 90.8 %. From 1 2 3 4 5 6 it makes 6 1 5 4 2 3: the right symbols in a wrong order.",
        why="Attention is a weighted mean over a set, so an encoder without positions makes the same vectors from "
        "1 2 3 and from 3 2 1, only in another order, and the decoder reads them as a set. It learns which symbols are "
        "in the source and how often. It also knows which of them it has written, because its own causal mask lets it count. "
        "What it cannot know is which symbol stood last. The later symbols of a target are therefore easier than the "
        "first: fewer remain to choose from.",
        read_on="model/positions.py; Vaswani et al. 2017, section 3.5; `--set model.positions=none` works with each config",
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
        came_out="Seed 1: after 500 updates the training loss is 0.36 without the mask and 1.71 with it. The validation loss, 0.39 and 2.16, does not warn, because the decoder sees the whole target there too: with the target given, 98.5 % of the tokens are right. When it generates, it writes nothing at all for any sentence, so BLEU is 0. The usual model has BLEU 26.7 and writes Dov'è la stazione?",
        why="The token that a position must predict is the input of the next position. So the decoder learns to look one "
        "position ahead, and it does not need the source. When it generates, there is no next position yet, and it has learned "
        "nothing else. A loss near 0 on real text is a sign of this error: a sentence has several good translations, so nobody can "
        "know each word before it is written.",
        read_on="model/attention.py: causal_mask; Vaswani et al. 2017, section 3.2.3",
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
        came_out="Seed 1: a validation loss of 2.215; with cross-attention it is 0.006. The least possible loss without the source is 2.18. From 1 2 3 4 5 6 it makes 5 5 5 5 3.",
        why="Cross-attention is the only way from the source to the target. Without it the decoder is a language model of "
        "random symbols, and nothing is better than 1/10 for each symbol, whose loss is ln 10 = 2.30. The end is easier: there are "
        "only 4 lengths. A mean target has 6.5 symbols and one [EOS], so the least possible loss is "
        "(6.5 ln 10 + ln 4) / 7.5 = 2.18 nats per token.",
        read_on="model/layers.py: DecoderLayer; `tfm explain` shows cross-attention",
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
        came_out="Seed 1: after 300 updates the validation loss is 1.63; with scaling it is 0.005. When it generates, 23.7 % of the symbols are right, with scaling 99.9 %. The loss goes on falling, but slowly.",
        why="The product of two random vectors of K numbers has a standard deviation that grows with sqrt(K). With large "
        "scores, softmax gives one position almost all the weight, from the first step on. There its gradient is almost 0, so "
        "attention cannot learn to look elsewhere. In a wide head the effect is strong; with 4 heads of 16 numbers it is weaker.",
        read_on="model/attention.py: attention_weights; Vaswani et al. 2017, section 3.2.1, footnote 4",
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
        came_out="Seed 1: with one head 88.8 % of the sequences are right, with 4 heads 97.0 %; the validation loss is 0.058 and 0.028. The curves run side by side.",
        why="Heads let one layer read several places at once. Sorting needs counts more than places, and the model has two layers in which it can look one after the other, so one head is enough for most sequences. Not each part of the paper breaks a small experiment when it is taken away. In the paper's own comparison one head costs 0.9 BLEU.",
        read_on="model/attention.py: MultiHeadAttention; Vaswani et al. 2017, section 3.2.2 and table 3, rows (A)",
        cpu_seconds=24,
    ),
)
