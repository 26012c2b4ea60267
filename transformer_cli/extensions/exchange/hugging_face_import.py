"""From a folder of the library transformers (Marian, Pegasus or BART) to a model with its tokenizers."""

import functools
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch
from pydantic import ValidationError

from transformer_cli.config import Config, DecodingConfig, TokenizerConfig
from transformer_cli.extensions.exchange.hugging_face import compare_with_transformers
from transformer_cli.extensions.exchange.hugging_face_models import (
    ForeignModel,
    class_of_config,
    from_hugging_face,
    with_rows,
)
from transformer_cli.extensions.exchange.imported_model import FINE_TUNING, MOST_HYPOTHESES, ImportedModel
from transformer_cli.extensions.exchange.model_folder import (
    MAX_TOKENIZER_BYTES,
    ModelFolder,
    ModelLanguages,
    NamedLanguages,
    folder_languages,
    imported_data,
    text_setting,
)
from transformer_cli.extensions.exchange.sentencepiece_tokenizers import (
    ForeignTokenizers,
    SpecialEntries,
    language_codes,
    marian_tokenizers,
    read_sentencepiece,
    unigram_tokenizers,
    unigram_vocabulary,
    unknown_id,
)
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.process.messages import on_one_line
from transformer_cli.text import Tokenizer

SOURCE_MODEL, TARGET_MODEL = "source.spm", "target.spm"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
TOKENIZER = "tokenizer.json"
_MARIAN_FILES = (SOURCE_MODEL, TARGET_MODEL, VOCABULARY)
_NEVER = -100.0
"""Added to the bias of [SOS], which no translation contains: exp(-100) is 0 beside any other probability, and a training loss
that is smoothed over the whole vocabulary stays small."""
# Settings that change translations, have no counterpart, and do nothing at the value beside them.
_WITHOUT_EFFECT: dict[str, Any] = {
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "min_length": 0,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "do_sample": False,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "exponential_decay_length_penalty": None,
    "sequence_bias": None,
    "force_words_ids": None,
}


def import_hugging_face(folder: ModelFolder, name: str, named: NamedLanguages) -> ImportedModel:
    """The model in a folder of transformers.

    Args:
        folder: with config.json.
        name: of the run.
        named: its languages, as the user says.

    Raises:
        MissingInputError: a file is missing.
        DataError: the model has no counterpart here; the message names the setting.
        UsageError: the languages are not known, or the package sentencepiece is missing.
    """
    settings = folder.json("config.json")
    settings |= folder.json_or_empty("generation_config.json")
    _require_known_class(folder, settings)
    languages, tokenizers = _tokenizers(folder, settings, named)
    try:
        foreign = from_hugging_face(settings, folder.tensors())
    except DataError as error:
        raise DataError(f"{folder}: {error.message}", hint=error.hint) from error
    foreign = _with_our_ids(folder, foreign, tokenizers)

    never_written = {*tokenizers.target_rows[: len(tokenizers.target.special_tokens)]}
    never_written -= {settings["eos_token_id"]}
    config = Config(
        name=name,
        data=imported_data(languages),
        tokenizer=TokenizerConfig(kind="sentencepiece", shared=tokenizers.are_shared),
        model=foreign.config,
        training=FINE_TUNING,
        decoding=folder_decoding(settings),
    )
    architectures = settings.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        architectures = [settings["model_type"]]
    return ImportedModel(
        origin=on_one_line(str(architectures[0]), 100),
        config=config,
        state=foreign.state,
        tokenizers=(tokenizers.source, tokenizers.target),
        compare=functools.partial(compare_with_transformers, folder.path, tokenizers),
        notes=tuple(search_notes(settings, never_written)),
    )


def _require_known_class(folder: ModelFolder, settings: Mapping[str, Any]) -> None:
    """Name the kind of the model first: what its tokenizer lacks is of no use to know if it is another one."""
    if "model_type" not in settings and folder.has("model.bin"):
        raise DataError(
            f"{folder}: a model in the format of CTranslate2, which cannot be imported",
            hint="import the model from which it was converted; as it is, it can be a teacher: tfm student --teacher FOLDER --config CONFIG",
        )
    try:
        class_of_config(settings)
    except DataError as error:
        raise DataError(f"{folder}: {error.message}", hint=error.hint) from error


def _tokenizers(
    folder: ModelFolder, settings: Mapping[str, Any], named: NamedLanguages
) -> tuple[ModelLanguages, ForeignTokenizers]:
    if not folder.has(*_MARIAN_FILES) and folder.has(TOKENIZER):
        return _tokenizers_of_one_file(folder, settings, named)
    if not folder.has(*_MARIAN_FILES):
        missing = [name for name in _MARIAN_FILES if not folder.has(name)]
        raise DataError(
            f"{folder}: there is no {' and no '.join(missing)}",
            hint="the tokenizer of an OPUS-MT model consists of these files, others have a tokenizer.json; copy the whole folder",
        )
    models = tuple(
        read_sentencepiece(folder.bytes(name, max_bytes=MAX_TOKENIZER_BYTES), str(folder.path / name))
        for name in (SOURCE_MODEL, TARGET_MODEL)
    )
    vocabulary = _vocabulary(folder, VOCABULARY)
    is_separate = folder.json_or_empty("tokenizer_config.json").get("separate_vocabs") is True
    target = _vocabulary(folder, TARGET_VOCABULARY) if is_separate else vocabulary
    languages = folder_languages(folder, named, codes=[] if is_separate else language_codes(vocabulary))
    specials = _special_entries(folder, settings, vocabulary, target)
    try:
        tokenizers = marian_tokenizers(
            (models[0], models[1]), (vocabulary, target), specials, languages=languages.tagged
        )
    except DataError as error:
        raise DataError(f"{folder}: {error.message}", hint=error.hint) from error
    return languages, tokenizers


def _tokenizers_of_one_file(
    folder: ModelFolder, settings: Mapping[str, Any], named: NamedLanguages
) -> tuple[ModelLanguages, ForeignTokenizers]:
    """The tokenizers of a folder with a tokenizer.json, which serves both sides."""
    content = folder.json(TOKENIZER, max_bytes=MAX_TOKENIZER_BYTES)
    try:
        vocabulary = unigram_vocabulary(content)
        pad, start, end = _ids_in_config(folder, settings, len(vocabulary))
        specials = SpecialEntries(unknown_id(content), pad, start, end)
        _require_different(folder, specials)
        languages = folder_languages(folder, named, codes=language_codes(vocabulary))
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
    tokenizer_settings = folder.json_or_empty("tokenizer_config.json")
    unknown, padding, ending = (
        text_setting(tokenizer_settings, f"{kind}_token") or usual
        for kind, usual in (("unk", "<unk>"), ("pad", "<pad>"), ("eos", "</s>"))
    )
    for vocabulary, entry in (
        (source, unknown),
        (target, unknown),
        (source, padding),
        (source, ending),
    ):
        if entry not in vocabulary:
            raise DataError(f"{folder}: the vocabulary has no entry {entry}")
    pad, start, end = _ids_in_config(folder, settings, len(target))
    target_entries = SpecialEntries(target[unknown], pad, start, end)
    # The encoder reads no start token; a copy of the row of padding stands in its place.
    source_entries = SpecialEntries(source[unknown], source[padding], source[padding], source[ending])
    if source is target:
        source_entries = target_entries
    for one in (source_entries, target_entries):
        _require_different(folder, one)
    return source_entries, target_entries


def _ids_in_config(folder: ModelFolder, settings: Mapping[str, Any], vocab_size: int) -> tuple[int, int, int]:
    """The ids of padding, of the start and of the end of a translation."""
    names = ("pad_token_id", "decoder_start_token_id", "eos_token_id")
    ids = [settings.get(name) for name in names]
    for name, index in zip(names, ids, strict=True):
        if type(index) is not int or not 0 <= index < vocab_size:
            raise DataError(f"{folder}: config.json: {name} is {index!r}, which is no id of the vocabulary")
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
        raise DataError(f"{folder}: config.json: the ids of unknown, padding and end are not different")


def _with_our_ids(folder: ModelFolder, foreign: ForeignModel, tokenizers: ForeignTokenizers) -> ForeignModel:
    """The model with the rows of our tokenizers; the row of [SOS] is a copy of the row with which it starts."""
    for side in ("source", "target"):
        size = getattr(foreign, f"{side}_vocab_size")
        most = max(getattr(tokenizers, f"{side}_rows"))
        if most >= size:
            raise DataError(f"{folder}: the {side} vocabulary has an id {most}, but the weights have {size} rows")
    if not foreign.config.output_bias:
        config = foreign.config.model_copy(update={"output_bias": True})
        state = foreign.state | {"output.bias": torch.zeros(foreign.target_vocab_size)}
        foreign = foreign._replace(config=config, state=state)
    if foreign.config.tie_embeddings == "all" and tokenizers.source_rows != tokenizers.target_rows:
        raise DataError(f"{folder}: source and target have one table of embeddings, but two vocabularies")
    foreign = with_rows(foreign, tokenizers.source_rows, tokenizers.target_rows)
    bias = foreign.state["output.bias"].clone()
    bias[Tokenizer.sos_id] += _NEVER
    return foreign._replace(state=foreign.state | {"output.bias": bias})


def folder_decoding(settings: Mapping[str, Any]) -> DecodingConfig:
    """The search; a score is divided by length^length_penalty, as in transformers.

    `max_length` of the folder is one number for sources of all lengths; ours follows the length of the source.

    Args:
        settings: the content of config.json and generation_config.json.

    Raises:
        ConfigError: a value is not possible here.
    """
    found: dict[str, Any] = {"length_normalization": "average", "length_penalty": 1.0}
    if settings.get("length_penalty") is not None:
        found["length_penalty"] = settings["length_penalty"]
    beam_size, repeated = settings.get("num_beams"), settings.get("no_repeat_ngram_size")
    if type(beam_size) is int and beam_size >= 1:
        found["beam_size"] = min(beam_size, MOST_HYPOTHESES)
    if type(repeated) is int and repeated > 0:
        found["no_repeat_ngram_size"] = repeated
    try:
        return DecodingConfig.model_validate(found)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise ConfigError(f"config.json: {name} is {found.get(name)!r}, which is not possible here") from error


def search_notes(settings: Mapping[str, Any], never_written: Collection[int]) -> Iterator[str]:
    """What the search of the folder does and ours does not, for people.

    Args:
        settings: as of `folder_decoding`.
        never_written: the ids of transformers that no translation of ours contains.
    """
    for name, value in _WITHOUT_EFFECT.items():
        found = settings.get(name)
        if found is not None and found != value:
            yield f"{name} {found!r} of the folder is not used in the search"
    bad_words = settings.get("bad_words_ids")
    if not isinstance(bad_words, list):
        return
    others = [ids for ids in bad_words if ids not in [[index] for index in never_written]]
    if others:
        yield f"bad_words_ids of the folder bans {len(others)} sequences of ids that the search can write"
