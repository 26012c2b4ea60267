"""Ablations on text: label smoothing, the length penalty, the vocabulary, and too few pairs."""

from transformer_cli.ablations.ablation import PHRASES, Ablation, Variant

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
        sample=STATION,
        question="Label smoothing takes 0.1 of the probability from the true token and spreads it over the vocabulary. The validation loss is always measured without it. What changes if the model is trained without it?",
        options=(
            "The model becomes surer of its predictions, and the validation loss falls.",
            "The model becomes less sure, and the validation loss rises.",
            "All figures stay within 1 %.",
        ),
        right=1,
        came_out="TODO",
        why="With smoothing, the best probability for the true token is 0.9 and a little: the model is trained to keep the rest for other tokens. That costs likelihood, so the loss that is measured is higher, and the mean probability is lower. A search takes the most probable token, whether its probability is 0.6 or 0.9. Therefore perplexities of models with and without smoothing must not be compared.",
        read_on="model/loss.py; Vaswani et al. 2017, section 5.4; Müller et al. 2019; evaluation/calibration.py",
        cpu_seconds=100,
    ),
    Ablation(
        name="no-length-penalty",
        subject="beam search without length penalty, English to Italian",
        config="en-it.yaml",
        settings=(*PHRASES, "training.max_steps=150"),
        variants=(
            Variant("greedy"),
            Variant("beam, penalty", decoding=("decoding.beam_size=16",)),
            Variant("beam, none", decoding=("decoding.beam_size=16", "decoding.length_penalty=0")),
        ),
        measures=("bleu", "length"),
        sample=STATION,
        question="The score of a translation is the sum of the log-probabilities of its tokens, and each of them is negative. Usually it is divided by a length penalty. What does a beam of 16 find without it?",
        options=(
            "Longer translations.",
            "Shorter translations.",
            "The same translations.",
        ),
        right=2,
        came_out="TODO",
        why="Each further token adds a negative number, so a shorter translation has an advantage, and a search that ends early often has the best sum. A wider beam finds more of these short translations (Murray and Chiang 2018). Dividing by a function of the length takes the advantage away.",
        read_on="decoding/search; docs/search.md; Wu et al. 2016, equation 14",
        cpu_seconds=60,
    ),
    Ablation(
        name="small-vocabulary",
        subject="a vocabulary of 200 words or 200 subwords, English to Italian",
        config="en-it.yaml",
        settings=PHRASES,
        variants=(
            Variant("all words"),
            Variant("200 words", ("tokenizer.vocab_size=200",)),
            Variant("200 subwords", ("tokenizer.kind=bpe", "tokenizer.vocab_size=200")),
        ),
        measures=("loss", "bleu", "unknown", "length"),
        sample=STATION,
        question="The vocabularies are cut to 200 entries for each language: once the 200 most frequent words, once 200 subwords. What happens to the translations?",
        options=(
            "With 200 words, most words are still known, and BLEU is nearly the same.",
            "With 200 words, the references and sources are full of [UNK], and so are the translations. Subwords can write every word.",
            "Both fail: 200 entries are too few.",
        ),
        right=2,
        came_out="TODO",
        why="All words outside the vocabulary become one token, [UNK], and what they mean is lost before the model reads them. In the target, [UNK] is then a frequent token, and the model learns to write it. Subwords have no unknown words: 200 pieces, letters among them, make up every word. The price is longer sequences, and a model that must learn to spell.",
        read_on="text/tokenizer.py; Sennrich et al. 2016; docs/judging.md",
        cpu_seconds=120,
    ),
    Ablation(
        name="too-few-pairs",
        subject="500 training pairs, with and without dropout, English to Italian",
        config="en-it.yaml",
        settings=(*PHRASES, "data.num_pairs=500"),
        variants=(
            Variant("no dropout"),
            Variant("dropout 0.3", ("model.dropout=0.3",)),
        ),
        measures=("training loss", "loss", "bleu"),
        sample=STATION,
        question="The corpus has only 500 pairs, which the model reads about 30 times. What does a dropout of 0.3 do?",
        options=(
            "Training loss and validation loss both fall.",
            "The training loss rises, and the validation loss falls.",
            "Both rise: dropout only disturbs.",
        ),
        right=2,
        came_out="TODO",
        why="A model with more parameters than the corpus has tokens can learn the pairs by heart: the training loss falls towards 0, and the validation loss does not follow. Dropout switches off random activations in each update, so that no fixed path can hold a sentence. It makes learning harder and slower, which helps only where pairs are few.",
        read_on="model/dropout.py; Vaswani et al. 2017, section 5.4",
        cpu_seconds=80,
    ),
)
