"""From a folder of the library transformers (Marian, Pegasus or BART) to a model with its tokenizers."""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from transformer_cli.config import Config, TokenizerConfig
from transformer_cli.extensions.exchange.interchange.foreign_tokenizers.marian_tokenizers import (
    ForeignTokenizers,
    SpecialEntries,
    language_codes,
    marian_tokenizers,
)
from transformer_cli.extensions.exchange.interchange.foreign_tokenizers.sentencepiece_file import (
    read_sentencepiece,
)
from transformer_cli.extensions.exchange.interchange.foreign_tokenizers.unigram_json import (
    unigram_tokenizers,
    unknown_id,
    vocabulary_of_unigram,
)
from transformer_cli.extensions.exchange.porting.importing.imported_model import (
    FINE_TUNING,
    ImportedModel,
    Wishes,
)
from transformer_cli.extensions.exchange.porting.importing.languages_of_folder import (
    Languages,
    imported_data,
    languages_of,
)
from transformer_cli.extensions.exchange.porting.importing.model_folder import (
    MAX_TOKENIZER_BYTES,
    ModelFolder,
    text_setting,
)
from transformer_cli.extensions.exchange.porting.importing.search_of_folder import (
    decoding_of_folder,
    search_notes,
)
from transformer_cli.process.errors import DataError

if TYPE_CHECKING:
    from transformer_cli.extensions.exchange.interchange.hugging_face.from_hugging_face import (
        ForeignModel,
    )

SOURCE_MODEL, TARGET_MODEL = "source.spm", "target.spm"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
TOKENIZER = "tokenizer.json"
_MARIAN_FILES = (SOURCE_MODEL, TARGET_MODEL, VOCABULARY)
_NEVER = -100.0
"""Added to the bias of [SOS], which no translation contains: exp(-100) is 0 beside any other probability, and a training loss
that is smoothed over the whole vocabulary stays small."""


def import_hugging_face(folder: ModelFolder, name: str, wishes: Wishes) -> ImportedModel:
    """The model in a folder of transformers.

    Args:
        folder: with config.json.
        name: of the run.
        wishes: its languages.

    Raises:
        MissingInputError: a file is missing.
        DataError: the model has no counterpart here; the message names the setting.
        UsageError: the languages are not known, or the package sentencepiece is missing.
    """
    from transformer_cli.extensions.exchange.interchange.hugging_face.from_hugging_face import (
        from_hugging_face,
    )

    settings = folder.json("config.json")
    settings |= folder.json_or_empty("generation_config.json")
    languages, tokenizers = _tokenizers(folder, settings, wishes)
    try:
        foreign = from_hugging_face(settings, folder.tensors())
    except DataError as error:
        raise DataError(f"{folder}: {error.message}", hint=error.hint) from error
    foreign = _with_our_ids(folder, foreign, tokenizers)
    from transformer_cli.extensions.exchange.porting.importing.comparison_with_transformers import (
        compare,
    )

    never_written = {*tokenizers.target_rows[: len(tokenizers.target.special_tokens)]}
    never_written -= {settings["eos_token_id"]}
    config = Config(
        name=name,
        data=imported_data(languages),
        tokenizer=TokenizerConfig(kind="sentencepiece", shared=tokenizers.are_shared),
        model=foreign.config,
        training=FINE_TUNING,
        decoding=decoding_of_folder(settings),
    )
    return ImportedModel(
        origin=str((settings.get("architectures") or [settings["model_type"]])[0]),
        config=config,
        state=foreign.state,
        tokenizers=(tokenizers.source, tokenizers.target),
        compare=functools.partial(compare, folder.path, tokenizers),
        notes=tuple(search_notes(settings, never_written)),
    )


def _tokenizers(
    folder: ModelFolder, settings: Mapping[str, Any], wishes: Wishes
) -> tuple[Languages, ForeignTokenizers]:
    if not folder.has(*_MARIAN_FILES) and folder.has(TOKENIZER):
        return _tokenizers_of_one_file(folder, settings, wishes)
    if not folder.has(*_MARIAN_FILES):
        missing = [name for name in _MARIAN_FILES if not folder.has(name)]
        raise DataError(
            f"{folder}: there is no {' and no '.join(missing)}",
            hint="the tokenizer of an OPUS-MT model consists of these files, others have a tokenizer.json; copy the whole folder",
        )
    models = tuple(
        read_sentencepiece(
            folder.bytes(name, max_bytes=MAX_TOKENIZER_BYTES), str(folder.path / name)
        )
        for name in (SOURCE_MODEL, TARGET_MODEL)
    )
    vocabulary = _vocabulary(folder, VOCABULARY)
    is_separate = folder.json_or_empty("tokenizer_config.json").get("separate_vocabs") is True
    target = _vocabulary(folder, TARGET_VOCABULARY) if is_separate else vocabulary
    languages = languages_of(
        folder, wishes, codes=[] if is_separate else language_codes(vocabulary)
    )
    specials = _special_entries(folder, settings, vocabulary, target)
    try:
        tokenizers = marian_tokenizers(
            (models[0], models[1]), (vocabulary, target), specials, languages=languages.tagged
        )
    except DataError as error:
        raise DataError(f"{folder}: {error.message}", hint=error.hint) from error
    return languages, tokenizers


def _tokenizers_of_one_file(
    folder: ModelFolder, settings: Mapping[str, Any], wishes: Wishes
) -> tuple[Languages, ForeignTokenizers]:
    """The tokenizers of a folder with a tokenizer.json, which serves both sides."""
    content = folder.json(TOKENIZER, max_bytes=MAX_TOKENIZER_BYTES)
    try:
        vocabulary = vocabulary_of_unigram(content)
        pad, start, end = _ids_in_config(folder, settings, len(vocabulary))
        specials = SpecialEntries(unknown_id(content), pad, start, end)
        _require_different(folder, specials)
        languages = languages_of(folder, wishes, codes=language_codes(vocabulary))
        return languages, unigram_tokenizers(content, specials, languages=languages.tagged)
    except DataError as error:
        raise DataError(f"{folder}: {error.message}", hint=error.hint) from error


def _vocabulary(folder: ModelFolder, name: str) -> dict[str, int]:
    found = folder.json(name)
    if any(type(index) is not int for index in found.values()):
        raise DataError(f"{folder.path / name}: not a map from pieces to ids")
    return found


def _special_entries(
    folder: ModelFolder,
    settings: Mapping[str, Any],
    source: Mapping[str, int],
    target: Mapping[str, int],
) -> tuple[SpecialEntries, SpecialEntries]:
    """The special tokens of source and target."""
    of_tokenizer = folder.json_or_empty("tokenizer_config.json")
    unknown, padding, ending = (
        text_setting(of_tokenizer, f"{kind}_token") or usual
        for kind, usual in (("unk", "<unk>"), ("pad", "<pad>"), ("eos", "</s>"))
    )
    for vocabulary, entry in ((source, unknown), (target, unknown), (source, padding), (source, ending)):  # fmt: skip
        if entry not in vocabulary:
            raise DataError(f"{folder}: the vocabulary has no entry {entry}")
    pad, start, end = _ids_in_config(folder, settings, len(target))
    of_target = SpecialEntries(target[unknown], pad, start, end)
    # The encoder reads no start token; a copy of the row of padding stands in its place.
    of_source = SpecialEntries(source[unknown], source[padding], source[padding], source[ending])
    if source is target:
        of_source = of_target
    for one in (of_source, of_target):
        _require_different(folder, one)
    return of_source, of_target


def _ids_in_config(
    folder: ModelFolder, settings: Mapping[str, Any], vocab_size: int
) -> tuple[int, int, int]:
    """The ids of padding, of the start and of the end of a translation."""
    names = ("pad_token_id", "decoder_start_token_id", "eos_token_id")
    ids = [settings.get(name) for name in names]
    for name, index in zip(names, ids, strict=True):
        if type(index) is not int or not 0 <= index < vocab_size:
            raise DataError(f"{folder}: config.json: {name} is {index!r}, which is no id of the vocabulary")  # fmt: skip
    first = settings.get("forced_bos_token_id")
    if first is not None:
        raise DataError(
            f"{folder}: config.json: forced_bos_token_id is {first!r}: each translation begins with this token",
            hint="a run of ours begins each translation with one token; use the model with transformers or CTranslate2",
        )
    pad, start, end = (int(index or 0) for index in ids)
    return pad, start, end


def _require_different(folder: ModelFolder, specials: SpecialEntries) -> None:
    if len({specials.unk, specials.pad, specials.end}) != 3:
        raise DataError(f"{folder}: config.json: the ids of unknown, padding and end are not different")  # fmt: skip


def _with_our_ids(
    folder: ModelFolder, foreign: "ForeignModel", tokenizers: ForeignTokenizers
) -> "ForeignModel":
    """The model with the rows of our tokenizers; the row of [SOS] is a copy of the row with which it starts."""
    import torch

    from transformer_cli.extensions.exchange.interchange.hugging_face.from_hugging_face import (
        with_rows,
    )
    from transformer_cli.text import Tokenizer

    for side in ("source", "target"):
        size = getattr(foreign, f"{side}_vocab_size")
        most = max(getattr(tokenizers, f"{side}_rows"))
        if most >= size:
            raise DataError(f"{folder}: the {side} vocabulary has an id {most}, but the weights have {size} rows")  # fmt: skip
    if not foreign.config.output_bias:
        config = foreign.config.model_copy(update={"output_bias": True})
        state = foreign.state | {"output.bias": torch.zeros(foreign.target_vocab_size)}
        foreign = foreign._replace(config=config, state=state)
    if foreign.config.tie_embeddings == "all" and tokenizers.source_rows != tokenizers.target_rows:
        raise DataError(f"{folder}: source and target have one table of embeddings, but two vocabularies")  # fmt: skip
    foreign = with_rows(foreign, tokenizers.source_rows, tokenizers.target_rows)
    bias = foreign.state["output.bias"].clone()
    bias[Tokenizer.sos_id] += _NEVER
    return foreign._replace(state=foreign.state | {"output.bias": bias})
