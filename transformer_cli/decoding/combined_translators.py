"""Ensembles: several translators combined into one, if their models write the same token ids."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from transformer_cli.decoding.engines import EnsembleEngine, PyTorchEngine
from transformer_cli.decoding.engines.source_reading import SourceReading
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translator import Translator
from transformer_cli.process.errors import UsageError
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.seen_lengths import SeenLengths
from transformer_cli.text.sentencepiece.sentencepiece_layout import SentencePieceLayout


def combine_translators(translators: Sequence[Translator], names: Sequence[str]) -> Translator:
    """The translator of an ensemble: the probability of a token is the mean of the probabilities of all models.

    Args:
        translators: of single models, on one device. The first one gives the settings of decoding; if it is the only
            one, it is returned.
        names: the name of each, for messages.

    Raises:
        UsageError: two of them differ in their vocabularies, languages or formats; the message says in which.
    """
    first, *others = translators
    if not others:
        return first
    for name, other in zip(names[1:], others, strict=True):
        for difference in _differences(first.pipeline, other.pipeline):
            raise UsageError(
                f"{names[0]} and {name} cannot form an ensemble: {difference}",
                hint="an ensemble needs runs with the same target vocabulary and languages, such as runs on the same corpus "
                "files that differ only in seed; if only the source vocabularies differ, name a run first whose source "
                "tokenizer is tokenizer.kind bpe or unigram",
            )
    engines = [each.engine for each in translators if isinstance(each.engine, PyTorchEngine)]
    if len(engines) < len(translators):
        raise UsageError("an ensemble needs models that run with PyTorch")
    max_length = min(each.pipeline.max_length for each in translators)
    readings = [_reading(first.pipeline, each.pipeline, max_length) for each in translators]
    pipeline = replace(
        first.pipeline,
        max_length=max_length,
        also_read_by=tuple(one.own for one in readings if one is not None),
        seen=_seen_by_all([each.pipeline.seen for each in translators]),
    )
    return replace(first, pipeline=pipeline, engine=EnsembleEngine.of(engines, readings))


def _reading(first: TextPipeline, other: TextPipeline, max_length: int) -> SourceReading | None:
    """How a model reads the source tokens of the first one; None if both have the same tokens."""
    given, own = first.source_tokenizer, other.source_tokenizer
    is_same = given is own or given.to_json() == own.to_json()
    return None if is_same else SourceReading(given, own, max_length)


def _seen_by_all(seen: Sequence[SeenLengths]) -> SeenLengths:
    """The lengths that every model of an ensemble knows, as far as they are recorded."""
    longest = [each.longest for each in seen if each.longest is not None]
    ratios = [each.smallest_ratio for each in seen if each.smallest_ratio is not None]
    return SeenLengths(min(longest, default=None), min(ratios, default=None))


def _gives_back_every_text(tokenizer: Tokenizer) -> bool:
    """Whether a text can be made again from its tokens: not from those that stand for several texts, such as [UNK]."""
    layout = tokenizer.parts.layout
    return layout.kind != "WordLevel" and not isinstance(layout, SentencePieceLayout)


def _differences(first: TextPipeline, other: TextPipeline) -> Iterator[str]:
    """What differs between two models, and how."""
    tokenizers = [("target", first.target_tokenizer, other.target_tokenizer)]
    if not _gives_back_every_text(first.source_tokenizer):
        tokenizers.append(("source", first.source_tokenizer, other.source_tokenizer))
    for side, one, two in tokenizers:
        if one.to_json() != two.to_json():
            yield f"the {side} vocabularies differ: {_difference(one, two)}"
    of_data = (
        ("languages", _directions(first), _directions(other)),
        ("formats of sequences", _format(first), _format(other)),
        ("rules of normalisation", _normalization(first), _normalization(other)),
    )
    for what, of_first, of_other in of_data:
        if of_first != of_other:
            yield f"the {what} differ: {of_first}, and {of_other}"


def _difference(one: Tokenizer, two: Tokenizer) -> str:
    if one.vocab_size != two.vocab_size:
        return f"{one.vocab_size:,} and {two.vocab_size:,} tokens"
    for index, (of_one, of_two) in enumerate(zip(one.entries, two.entries, strict=True)):
        if of_one != of_two:
            return f"token {index} is {of_one!r} and {of_two!r}"
    return "the same tokens, but text is split into them by other rules"


def _directions(pipeline: TextPipeline) -> str:
    return ", ".join(map(str, pipeline.data.directions))


def _format(pipeline: TextPipeline) -> str:
    of_data = SequenceFormat.of(pipeline.data)
    end = "with [EOS]" if of_data.has_end else "without [EOS]"
    shift = "shifted" if of_data.is_shifted else "not shifted"
    return f"{end}, {shift}, length change {of_data.length_change}"


def _normalization(pipeline: TextPipeline) -> str:
    rules = pipeline.data.cleaning
    return (
        f"normalize_unicode {rules.normalize_unicode}, remove_control_characters {rules.remove_control_characters}, "
        f"normalize_invisible {rules.normalize_invisible is not False}"
    )
