"""Ablations on text: label smoothing, the vocabulary, and the first values of the tables."""

from transformer_cli.extensions.lessons.ablations.ablation import PHRASES, Ablation, Variant

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
        came_out="Seed 1: without smoothing the validation loss is 3.66 instead of 3.80, the perplexity 38.7 instead of 44.7, and the mean probability of the best token 32.4 % instead of 29.2 %. The best token is right in 37.5 % and 37.0 % of the places, and BLEU is 1.9 and 1.7 after so short a training: no difference that one run could prove. The smoothed model is less sure than it is right, so its calibration error is larger, 7.8 % instead of 5.1 %.",
        why="With smoothing, the best probability for the true token is 0.9 and a little: the model is trained to keep the rest for other tokens. That costs likelihood, so the loss that is measured is higher, and the mean probability is lower. A search takes the most probable token, whether its probability is 0.6 or 0.9. Therefore perplexities of models with and without smoothing must not be compared.",
        read_on="model/loss.py; Vaswani et al. 2017, section 5.4; Müller et al. 2019; evaluation/confidence.py",
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
        came_out="Seed 1: with 300 words the validation loss is 1.41, with all words 3.80, with 300 subwords 2.48. But 51 % of the words of the translations are [UNK]; with all words and with subwords, none is. After so short a training even BLEU prefers the 300 words (4.1, 1.7 and 1.1), because [UNK] in the right place costs less than a wrong sentence.",
        why="All words outside the vocabulary become one token, [UNK], and what they mean is lost before the model reads them. In the target, [UNK] is the most frequent token and easy to predict, so the loss is low. Losses and perplexities of different vocabularies must not be compared. Subwords have no unknown words: 300 pieces, single letters among them, make up every word. The price is longer sequences, and a model that must learn to spell.",
        read_on="text/tokenizer.py; Sennrich et al. 2016; docs/judging.md",
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
        came_out="Seed 1: after 300 updates the validation loss is 4.50 with Xavier's tables and 3.37 with PyTorch's; with the target given, 29 % and 45 % of the tokens are right. With seeds 2 and 3 the losses differ by 0.90 and 1.23. BLEU is 0.8 and 1.2 (seed 1), too low to compare. It is not always so: with whole words and a source table of its own, as in en-it.yaml, and d_model 128 it was the other way round after 500 updates, 2.16 with Xavier and 2.50 with PyTorch (seed 1).",
        why="The vector of a token is its row of the table, times sqrt(128) = 11.3, plus the sinusoids of its position, which are about 0.7. Xavier's rule gives a table of V rows and D columns the standard deviation sqrt(2 / (V + D)), here 0.018, and 0.2 after the product. So at first a vector says where a token stands, and hardly which token it is. PyTorch begins the table of the output with 0.051, which is 0.6 after the product: token and position have about equal weight. With fewer tokens the entries by Xavier are larger. `model.init` changes the other matrices too, so this experiment alone does not prove that the table is the reason. On Multi30k, PyTorch's defaults were 0.6 nats ahead after each of three epochs; at the end of a longer training both had the same BLEU.",
        read_on="model/initialization.py; docs/experiments.md, the effect of each choice of the model on Multi30k; docs/from_the_tutorials.md",
        cpu_seconds=64,
    ),
)
