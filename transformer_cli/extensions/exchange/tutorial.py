"""The tutorial by hkproj: its checkpoints (tmodel_19.pt, tokenizer_en.json, tokenizer_it.json) as a model of ours.

The number of heads changes no shape of a weight, so no file holds it. The tutorial puts [SOS] before each source.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_cli.checkpoint.run_folder import MOST
from transformer_cli.config import Config, DecodingConfig, ModelConfig, TokenizerConfig
from transformer_cli.extensions.exchange.imported_model import FINE_TUNING, ImportedModel
from transformer_cli.extensions.exchange.model_folder import (
    ModelFolder,
    ModelLanguages,
    NamedLanguages,
    fitting_config,
    imported_data,
)
from transformer_cli.extensions.exchange.pickled_weights import read_pickled
from transformer_cli.extensions.exchange.sentencepiece_tokenizers import (
    ForeignTokenizers,
    ordered_entries,
)
from transformer_cli.model import Transformer
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import SPECIALS, tag_of
from transformer_cli.text.tokenizer_file import (
    TokenizerParts,
    WhitespaceLayout,
    tokenizer_errors_explained,
)

_CHECKPOINT = re.compile(r"tmodel_(\d{1,6})\.pt")
_TOKENIZER = re.compile(r"tokenizer_([A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8})*)\.json")
_NUM_HEADS = 8
_USUAL_SOURCE = "en"
_STEP, _EPOCH = "global_step", "epoch"


def is_tutorial_folder(folder: ModelFolder) -> bool:
    """Whether the folder has tokenizers and a checkpoint of the tutorial."""
    return bool(_checkpoints(folder)) and len(_tokenizers(folder)) >= 2


def import_tutorial(folder: ModelFolder, name: str, named: NamedLanguages) -> ImportedModel:
    """The model of the last checkpoint in a folder, or in a folder inside it.

    Args:
        folder: with the two tokenizers.
        name: of the run.
        named: which of the two languages is the source.

    Raises:
        DataError: the files are not those of the tutorial, or do not belong together.
        UsageError: nothing says which language is the source.
    """
    for language in (named.source, *named.targets):
        if language is not None and language not in (names := _tokenizers(folder)):
            raise UsageError(f"{language}: the folder has tokenizers of {', '.join(names)}")
    checkpoint = max(_checkpoints(folder), key=_number)
    found = read_pickled(checkpoint)
    try:
        return _imported(folder, name, named, checkpoint, found.tensors, found.numbers)
    except DataError as error:
        raise DataError(f"{checkpoint}: {error.message}", hint=error.hint) from error


def _imported(
    folder: ModelFolder,
    name: str,
    named: NamedLanguages,
    checkpoint: Path,
    tensors: dict[str, Tensor],
    numbers: dict[str, int],
) -> ImportedModel:
    model = tutorial_config(tensors, num_heads=_NUM_HEADS)
    source_size, target_size = (len(_named(tensors, name)) for name in (_SOURCE, _OUTPUT))
    languages = _languages(folder, named, (source_size, target_size))
    files = tuple(folder.json(_tokenizers(folder)[one]) for one in languages)
    tokenizers = tutorial_tokenizers((files[0], files[1]), languages[1])
    with torch.device("meta"):
        expected = Transformer(model, source_size, target_size).state_dict()
    state = tutorial_state(model, tensors, expected)
    table = "source_embedding.weight"
    state[table] = state[table][torch.tensor(tokenizers.source_rows)]
    directions = ModelLanguages(languages[0], languages[1:], tagged=languages[1:])
    data = imported_data(directions, normalize_unicode=False)
    config = Config(
        name=name,
        data=data,
        tokenizer=TokenizerConfig(kind="wordlevel"),
        model=model,
        training=FINE_TUNING,
        decoding=DecodingConfig(beam_size=1),
    )
    return ImportedModel(
        origin=f"{checkpoint.name} of the tutorial, epoch {numbers.get(_EPOCH, '?')}",
        config=config,
        state=state,
        tokenizers=(tokenizers.source, tokenizers.target),
        compare=_not_compared,
        step=max(0, min(numbers.get(_STEP, 0), MOST)),
        notes=(
            f"{_NUM_HEADS} heads, as in the tutorial: the file does not say it",
            f"the tutorial reads [SOS] before each source; here the tag {tokenizers.source.special_tokens[-1]} stands for it",
        ),
    )


def _not_compared(model: Transformer) -> list[str]:
    return ["not compared: the tutorial is no package that can be called; the weights were converted by their names"]


def _languages(folder: ModelFolder, named: NamedLanguages, sizes: tuple[int, int]) -> tuple[str, str]:
    """Source and target: as the user says, or as the sizes of the vocabularies say."""
    names = _tokenizers(folder)
    num_entries = {one: len(tutorial_vocabulary(folder.json(file))) for one, file in names.items()}
    fitting = [
        (source, target)
        for source in names
        for target in names
        if source != target
        and (num_entries[source], num_entries[target]) == sizes
        and named.source in (None, source)
        and (not named.targets or target in named.targets)
    ]
    if not fitting:
        found = ", ".join(f"{one}: {number:,}" for one, number in num_entries.items())
        raise DataError(
            f"the model has {sizes[0]:,} source and {sizes[1]:,} target words, but the tokenizers have other numbers ({found})"
        )
    usual = [pair for pair in fitting if pair[0] == _USUAL_SOURCE]
    if len(fitting) > 1 and len(usual) != 1:
        raise UsageError(f"{folder}: several tokenizers fit the model", hint="add --from and --to")
    return (usual or fitting)[0] if len(fitting) > 1 else fitting[0]


def _checkpoints(folder: ModelFolder) -> list[Path]:
    """In the folder, or in a folder inside it, such as opus_books_weights."""
    found = [*folder.path.glob("tmodel_*.pt"), *folder.path.glob("*/tmodel_*.pt")]
    return [path for path in found if _CHECKPOINT.fullmatch(path.name)]


def _number(checkpoint: Path) -> int:
    return int(checkpoint.stem.removeprefix("tmodel_"))


def _tokenizers(folder: ModelFolder) -> dict[str, str]:
    """The name of the file by language."""
    found = (_TOKENIZER.fullmatch(path.name) for path in sorted(folder.path.iterdir()))
    return {match[1]: match[0] for match in found if match is not None}


_SOURCE, _OUTPUT = "src_embed.embedding.weight", "projection_layer.proj.weight"
_NAMES = {
    _SOURCE: "source_embedding.weight",
    "tgt_embed.embedding.weight": "target_embedding.weight",
    _OUTPUT: "output.weight",
    "projection_layer.proj.bias": "output.bias",
}
_POSITIONS = "src_pos.pe"
_TABLES = (_POSITIONS, "tgt_pos.pe")
"""Sines and cosines, which our model computes."""
_PARTS = {
    "self_attention_block.w_q": "self_attention.query",
    "self_attention_block.w_k": "self_attention.key",
    "self_attention_block.w_v": "self_attention.value",
    "self_attention_block.w_o": "self_attention.output",
    "cross_attention_block.w_q": "cross_attention.query",
    "cross_attention_block.w_k": "cross_attention.key",
    "cross_attention_block.w_v": "cross_attention.value",
    "cross_attention_block.w_o": "cross_attention.output",
    "feed_forward_block.linear_1": "feed_forward.up",
    "feed_forward_block.linear_2": "feed_forward.down",
}
_NORMS = {
    "encoder": ("self_attention_norm", "feed_forward_norm"),
    "decoder": ("self_attention_norm", "cross_attention_norm", "feed_forward_norm"),
}
_IN_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(.+)\.(weight|bias|alpha)")
_NORM = re.compile(r"residual_connections\.(\d)\.norm")


def tutorial_config(tensors: Mapping[str, Tensor], *, num_heads: int) -> ModelConfig:
    """The settings of the model with these weights.

    Raises:
        DataError: a weight is missing or has no fitting shape, or the number of heads does not fit.
    """
    width = _named(tensors, _SOURCE).size(-1)
    if width % num_heads:
        raise DataError(f"the width of the model, {width}, is no multiple of {num_heads} heads")
    gain = _named(tensors, "encoder.norm.alpha", num_axes=0)
    in_layers = [found for found in map(_IN_LAYER.fullmatch, tensors) if found]
    layers = {
        f"{stack}_layers": 1 + max((int(found[2]) for found in in_layers if found[1] == stack), default=-1)
        for stack in ("encoder", "decoder")
    }
    settings = {
        "d_model": width,
        "num_heads": num_heads,
        "d_ff": len(_named(tensors, "encoder.layers.0.feed_forward_block.linear_1.weight")),
        **layers,
        "max_length": _named(tensors, _POSITIONS).size(-2),
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "ff_dropout": 0.1,
        "norm": "scalar_std_layernorm" if gain.numel() == 1 else "std_layernorm",
        "norm_eps": 1e-6,
        "norm_placement": "pre",
        "attention_bias": "encoder.layers.0.self_attention_block.w_q.bias" in tensors,
        "tie_embeddings": "none",
    }
    return fitting_config(settings, "the weights")


def tutorial_state(
    config: ModelConfig, tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Our weights.

    Args:
        config: of `tutorial_config`.
        tensors: of the tutorial.
        expected: `state_dict()` of our model, on any device, also meta.

    Raises:
        DataError: a weight is missing, has another shape, or has no place in our model.
    """
    state = {}
    for ours, theirs in _pairs(tensors):
        if ours in state:
            raise DataError(f"the weights: {theirs} and another tensor stand for one weight, {ours}")
        if ours not in expected:
            raise DataError(f"the weights: {theirs} is no weight of the tutorial's model")
        tensor = tensors[theirs].float()
        wanted = expected[ours].shape
        if tensor.numel() != wanted.numel() or (tensor.shape != wanted and tensor.numel() != 1):
            raise DataError(f"the weights: {theirs} has the shape {list(tensor.shape)}, not {list(wanted)}")
        state[ours] = tensor.reshape(wanted).clone()
    for name in sorted(expected.keys() - state.keys()):
        raise DataError(f"the weights: nothing stands for {name}")
    return state


def _pairs(tensors: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Our name and theirs, for each weight."""
    for name in tensors:
        if name not in _TABLES:
            yield _our_name(name), name


def _our_name(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    found = _IN_LAYER.fullmatch(name)
    if found is None:  # encoder.norm and decoder.norm, or a name that the model does not have
        return name.replace(".alpha", ".weight")
    stack, number, part, kind = found.groups()
    norm = _NORM.fullmatch(part)
    if norm is not None and int(norm[1]) < len(_NORMS[stack]):
        ours = _NORMS[stack][int(norm[1])]
    else:
        ours = _PARTS.get(part, part)
    return f"{stack}.layers.{number}.{ours}.{kind.replace('alpha', 'weight')}"


def _named(tensors: Mapping[str, Tensor], name: str, *, num_axes: int = 2) -> Tensor:
    """The tensor of a name, which has at least so many axes."""
    if name not in tensors:
        raise DataError(f"the weights have no {name}: not a checkpoint of the tutorial")
    if tensors[name].dim() < num_axes:
        shape = list(tensors[name].shape)
        raise DataError(f"the weights: {name} has the shape {shape}, which is no table or matrix")
    return tensors[name]


def tutorial_tokenizers(files: tuple[Mapping[str, Any], Mapping[str, Any]], target_language: str) -> ForeignTokenizers:
    """Tokenizers of source and target; the tag of the target language stands for [SOS] before each source.

    Args:
        files: the content of both tokenizer.json files.
        target_language: names the tag, such as <2it>.

    Raises:
        DataError: a file is not as the tutorial writes it.
    """
    vocabularies = [tutorial_vocabulary(content) for content in files]
    tag = tag_of(target_language)
    source, target = map(ordered_entries, vocabularies)
    num_fixed, sos_id = len(SPECIALS), Tokenizer.sos_id
    tagged = [*source[:num_fixed], tag, *source[num_fixed:]]
    rows = [*range(num_fixed), sos_id, *range(num_fixed, len(source))]
    return ForeignTokenizers(
        source=_tokenizer(tagged, (tag,)),
        target=_tokenizer(target, ()),
        source_rows=rows,
        target_rows=[*range(len(target))],
        are_shared=False,
    )


def tutorial_vocabulary(content: Mapping[str, Any]) -> dict[str, int]:
    """The ids of the words in a tokenizer.json.

    Raises:
        DataError: the file is not as the tutorial writes it.
    """
    model, cut, normalizer = (content.get(name) for name in ("model", "pre_tokenizer", "normalizer"))
    if not isinstance(model, dict) or model.get("type") != "WordLevel":
        raise DataError("not a tokenizer of the tutorial: its model is not of the type WordLevel")
    if cut != {"type": "Whitespace"} or normalizer is not None:
        raise DataError("not a tokenizer of the tutorial: it does not cut at white space only")
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict) or any(type(one) is not int for one in vocabulary.values()):
        raise DataError("not a tokenizer of the tutorial: it has no map from words to ids")
    if [vocabulary.get(name) for name in SPECIALS] != [*range(len(SPECIALS))]:
        raise DataError(f"not a tokenizer of the tutorial: its first entries are not {' '.join(SPECIALS)}")
    return dict(vocabulary)


def _tokenizer(entries: list[str], tags: tuple[str, ...]) -> Tokenizer:
    layout = WhitespaceLayout(tags=tags)
    if len({*entries}) != len(entries):
        raise DataError(f"the vocabulary has an entry {tags[0]}, the name of a tag of ours")
    vocabulary = {entry: index for index, entry in enumerate(entries)}
    with tokenizer_errors_explained("the tokenizer cannot be built"):
        return Tokenizer(TokenizerParts(layout, layout.empty_model() | {"vocab": vocabulary}))
