"""Runs with random weights, as they lie on disk: for exports, imports and everything around them."""

import functools
import io
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from transformer_cli.checkpoint.checkpoints import Checkpoints, portable_files
from transformer_cli.checkpoint.run_folder import Snapshot
from transformer_cli.checkpoint.trained_files import TrainedModel, load_trained
from transformer_cli.config import (
    Config,
    DecodingConfig,
    ModelConfig,
    PhrasebookData,
    RuntimeConfig,
    TokenizerConfig,
    TrainingConfig,
)
from transformer_cli.extensions.exchange.sentencepiece_tokenizers import (
    SpecialEntries,
    marian_tokenizers,
    read_sentencepiece,
)
from transformer_cli.model.transformer import Transformer
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer
from transformer_cli.training.optimizers import start_table

ENGLISH = [
    "The cat sleeps on the chair.",
    "Where is the station?",
    "I don't know, it's 10:30.",
    "We see two blue-green cars in front of the house.",
    "My sister's dog eats 3 apples every day!",
    "“Good morning”, she said; (he slept).",
]
ITALIAN = [
    "Il gatto dorme sulla sedia.",
    "Dov'è la stazione?",
    "Non lo so, sono le 10:30.",
    "Vediamo due macchine verdi-blu davanti alla casa.",
    "Il cane di mia sorella mangia 3 mele ogni giorno!",
    "«Buongiorno», disse lei; (lui dormiva l'altro ieri, nell'ombra).",
]
STUDENT: dict[str, Any] = {
    "start_embedding": "zero",
    "positions": "sinusoidal_marian",
    "norm_eps": 1e-6,
    "norm_placement": "post",
    "tie_embeddings": "all",
    "d_model": 64,
    "d_ff": 128,
    "num_heads": 4,
    "decoder_layer": "ssru",
}
"""What the programs in browsers ask of a model."""
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 24, "encoder_layers": 1, "decoder_layers": 2}


@functools.cache  # a training takes a tenth of a second
def sentencepiece_pair() -> tuple[Tokenizer, Tokenizer]:
    """Tokenizers as of an OPUS-MT model: a SentencePiece model for each side, and one vocabulary that lacks some pieces."""
    models = []
    for texts, size in ((ENGLISH, 60), (ITALIAN, 64)):
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=written,
            vocab_size=size,
            model_type="unigram",
            minloglevel=2,
        )
        models.append(read_sentencepiece(written.getvalue(), "small.spm"))
    pieces = dict.fromkeys(piece for model in models for piece in [*model.scores][:-3])
    entries = ["</s>", "<unk>", *pieces, "<start>", "<pad>"]
    vocabulary = {entry: index for index, entry in enumerate(entries)}
    specials = SpecialEntries(unk=1, pad=len(entries) - 1, start=len(entries) - 2, end=0)
    found = marian_tokenizers((models[0], models[1]), (vocabulary, vocabulary), (specials, specials))
    return found.source, found.target


@functools.cache
def learned(of_tokens: TokenizerConfig, tags: tuple[str, ...] = ()) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of the sentences; each test gets the same ones."""
    if of_tokens.kind == "sentencepiece" and of_tokens.vocab_size is None:  # an imported one
        return sentencepiece_pair()
    if of_tokens.shared:
        shared = train_tokenizer([*ENGLISH, *ITALIAN], of_tokens, tags=tags)
        return shared, shared
    return train_tokenizer(ENGLISH, of_tokens), train_tokenizer(ITALIAN, of_tokens)


def random_run(
    folder: Path,
    *,
    tokenizer: TokenizerConfig | None = None,
    both_directions: bool = False,
    decoding: DecodingConfig | None = None,
    **changes: object,
) -> TrainedModel:
    """A run in `folder`, with one checkpoint of random, large weights.

    Args:
        folder: of the run; it is made.
        tokenizer: how the words of a few sentences become tokens.
        both_directions: whether the model translates both ways.
        decoding: None: the defaults, but nothing is repaired, because random models write what fits no source.
        changes: settings of the model.
    """
    of_tokens = tokenizer or TokenizerConfig()
    if both_directions:
        of_tokens = of_tokens.model_copy(update={"shared": True})
    data = PhrasebookData(both_directions=both_directions)
    tokenizers = learned(of_tokens, ("<2it>", "<2en>") if both_directions else ())
    settings = {**SIZES, "max_length": 64, **changes}
    config = Config(
        name=folder.name,
        data=data,
        tokenizer=of_tokens,
        model=ModelConfig.model_validate(settings),
        training=TrainingConfig(max_steps=1, batch_sentences=1),
        decoding=decoding or DecodingConfig(keep_text=False, repair=False),
        runtime=RuntimeConfig(device="cpu", precision="float32", threads=1),
    )
    torch.manual_seed(1)
    model = Transformer(config.model, *(one.vocab_size for one in tokenizers)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4.0)
        if config.model.start_embedding == "zero":
            start_table(model)[Tokenizer.sos_id] = 0.0
    folder.mkdir(parents=True)
    files = portable_files(config, *tokenizers)
    Checkpoints(folder).save(Snapshot(1, model.state_dict(), {}, {}, files))
    return load_trained(folder)


def small_student(folder: Path, **changes: Any) -> TrainedModel:
    """A run with a model that the programs in browsers can read; random weights."""
    shared = TokenizerConfig(kind="sentencepiece", vocab_size=125, shared=True)
    return random_run(folder, **{"tokenizer": shared, **STUDENT, **changes})
