"""The check of an exported model: the other program must tokenise, translate and detokenise as this one does.

Our model reads each greedy translation of the other program, in float32: each of its tokens must be the most probable
one after the tokens before it. Two tokens whose log-probabilities differ by less than `TIE` are equally good: rounding
decides between them. So translations are equal to those of our engine, token for token, except from a tie on, and where
our engine leaves out a token that would break a character (`Tokenizer.byte_pieces`), which other programs do not.
Quantised weights give other translations now and then: there a score against our float32 translations decides.
"""

import functools
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.checkpoint.trained_files import TrainedFiles
from transformer_cli.config import DecodingConfig
from transformer_cli.data.pairs import read_validation_pairs
from transformer_cli.data.preparation import VALIDATION
from transformer_cli.decoding import (
    ExplainingEngine,
    Explanation,
    Request,
    TextPipeline,
    TokenIds,
    Translator,
)
from transformer_cli.decoding.engine import length_limits
from transformer_cli.evaluation.metrics import score_corpus
from transformer_cli.extensions.exchange.export_format import Decoded, OtherEngine
from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import on_one_line
from transformer_cli.text import Tokenizer
from transformer_cli.text.tokenizer_file import SentencePieceLayout, is_hidden

NUM_CHECKED = 200
MAX_WORDS = 12
TIE = 1e-3
"""In nats."""
GREEDY = DecodingConfig(beam_size=1, allow_unknown=False)
MIN_CHRF = 70.0
"""A quantised model whose translations are farther from ours than this is refused."""
MIN_CHRF_OF_RANDOM_WORDS = 45.0
"""The same for texts of random words, in which rounding changes more: the small model that comes along has 62 there, and 98 on sentences."""
_RANDOM_WORDS = "texts of random words"


class CheckedText(NamedTuple):
    """A sentence as the other program gets it, and what our engine translates."""

    text: str
    """Normalised, with the tag of the target language directly before it if the model reads one."""
    request: Request


class CheckedTexts(NamedTuple):
    """Sentences, and where they come from."""

    texts: Sequence[CheckedText]
    origin: str
    """Such as "sentences of the validation split"."""


def checked_texts(files: TrainedFiles, pipeline: TextPipeline, lines: Sequence[str] | None) -> CheckedTexts:
    """At most `NUM_CHECKED` different sentences.

    Args:
        files: of the run. Its folder holds the validation pairs; a checkpoint that was copied alone has none.
        pipeline: of the run, without a direction.
        lines: texts that the user gives; None: the validation pairs. Without these, random words of the vocabulary.

    Raises:
        DataError: no given line can be used.
    """
    num_directions = len(pipeline.data.directions)
    if lines is not None:
        given = ((line, number % num_directions) for number, line in enumerate(lines))
        chosen = _chosen(files, pipeline, given)
        if not chosen:
            raise DataError("--input has no sentence that the model can translate")
        return CheckedTexts(chosen, "given sentences")
    stored = stored_sources(files)
    if stored and (chosen := _chosen(files, pipeline, iter(stored))):
        return CheckedTexts(chosen, "sentences of the validation split")
    random_lines = _random_lines(files, num_directions)
    return CheckedTexts(_chosen(files, pipeline, random_lines), _RANDOM_WORDS)


def _chosen(files: TrainedFiles, pipeline: TextPipeline, lines: Iterator[tuple[str, int]]) -> list[CheckedText]:
    sentences = dict.fromkeys(
        sentence for line, number in lines for sentence in _sentences(files, pipeline, line, number)
    )
    return [*islice(sentences, NUM_CHECKED)]


def _sentences(files: TrainedFiles, pipeline: TextPipeline, line: str, direction: int) -> Iterator[CheckedText]:
    """The sentences of a line; without those that are cut, and those in which a special token stands as text.

    Also without those in which an unknown run of characters happens to be a piece of the other language in the shared
    vocabulary of an imported model: only SentencePiece programs look it up there.
    """
    tokenizer = files.source_tokenizer
    other_side_pieces = _pieces_of_other_side(tokenizer)
    prepared = replace(pipeline, direction=direction).prepare(line)
    for part in prepared.parts:
        text, request = part.text, part.request
        if len(request.ids) == pipeline.max_length or tokenizer.eos_id == request.ids[0]:
            continue
        if any(special in text for special in tokenizer.special_tokens):
            continue
        if not other_side_pieces.isdisjoint(request.ids):
            continue
        tag = tokenizer.entries[request.ids[0]] if request.ids[0] in tokenizer.tag_ids else ""
        yield CheckedText(tag + text, request)


@functools.lru_cache(maxsize=2)
def _pieces_of_other_side(tokenizer: Tokenizer) -> frozenset[int]:
    if not isinstance(tokenizer.parts.layout, SentencePieceLayout):
        return frozenset()
    names = enumerate(name for name, _ in tokenizer.parts.model["vocab"])
    first = len(tokenizer.special_tokens)
    return frozenset(index for index, name in names if index >= first and is_hidden(name))


def stored_sources(files: TrainedFiles) -> list[tuple[str, int]]:
    """Source texts of the run's validation pairs, and their directions."""
    run = RunFolder.containing(files.folder)
    if run is None:
        return []
    try:
        pairs = read_validation_pairs(run.data_folder / VALIDATION)
    except (OSError, ValueError, TypeError):
        return []  # an older run, or one whose data was deleted
    return [(pair.source, pair.direction) for pair in pairs]


def _random_lines(files: TrainedFiles, num_directions: int) -> Iterator[tuple[str, int]]:
    """Lines of 1 to `MAX_WORDS` random entries of the source vocabulary."""
    generator, tokenizer = random.Random(0), files.source_tokenizer
    ordinary = range(len(tokenizer.special_tokens), tokenizer.vocab_size)
    for number in range(2 * NUM_CHECKED):
        ids = generator.choices(ordinary, k=1 + number % MAX_WORDS)
        yield tokenizer.decode(ids), number % num_directions


@dataclass(frozen=True, slots=True)
class Agreement:
    """What was compared, and how well both programs agree."""

    engine: str
    """The other program."""
    origin: str
    num_texts: int
    num_equal: int
    """Translations with the same tokens from the first to the last."""
    num_tokens: int
    """Tokens of these translations; each was checked."""
    scores: tuple[tuple[str, float], ...] = ()
    """Of a quantised model: its translations against ours."""

    def lines(self) -> list[str]:
        """For people."""
        compared = f"{self.num_texts} {self.origin}, greedy search, {self.engine} and PyTorch"
        if self.scores:
            shown = ", ".join(f"{name} {value:.1f}" for name, value in self.scores)
            return [f"int8       {compared} in float32: {self.num_equal} translations are equal; {shown} against ours"]
        rest = "" if self.num_equal == self.num_texts else ", the others from a tie of two tokens on"
        return [
            f"compared   {compared}, float32",
            f"agreement  each of {self.num_tokens:,} tokens is the best one for PyTorch too; "
            f"{self.num_equal} of {self.num_texts} translations are equal{rest}",
        ]

    def notes(self) -> list[str]:
        """Sentences for the model card."""
        return [line.split(maxsplit=1)[1] for line in self.lines()]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self) | {"scores": dict(self.scores)}


@dataclass(frozen=True, slots=True)
class Reference:
    """The greedy translations of our engine in float32, computed once for several checks."""

    translator: Translator
    checked: CheckedTexts
    limits: Sequence[int]
    ids: Sequence[TokenIds]

    @classmethod
    def of(cls, translator: Translator, checked: CheckedTexts, *, most: int | None) -> "Reference":
        """Translate the texts.

        Args:
            translator: of the run, with the PyTorch engine in float32.
            checked: the texts.
            most: the largest number of tokens that the model can write; None: any number.
        """
        requests = [text.request for text in checked.texts]
        limits = [length_limits(len(one.ids), GREEDY, most=most).largest for one in requests]
        found = translator.engine.translate(requests, GREEDY)
        return cls(translator, checked, limits, [hypotheses[0].ids for hypotheses in found])

    def decoded_by(self, engine: OtherEngine) -> list[Decoded]:
        """The translations of the other program, after its tokens and texts were checked.

        Raises:
            DataError: its tokenizer gives other ids or another text.
        """
        texts = self.checked.texts
        decoded = engine.decode([text.text for text in texts], self.limits)
        for text, one in zip(texts, decoded, strict=True):
            if one.source_ids != text.request.ids:
                raise _mismatch(text, "its tokenizer gives other ids", one.source_ids, text.request.ids)
            # Programs write a broken character, of which tokens that stand for bytes can be a part, in different ways.
            is_whole = self._target.has_whole_characters(one.target_ids)
            if is_whole and one.text != (expected := self._target.decode(one.target_ids)):
                raise _mismatch(text, "it detokenises in another way", one.text, expected)
        return decoded

    def require_equal(self, engine: OtherEngine) -> Agreement:
        """Check that each token of the other program is the best one for our model too, in float32.

        Raises:
            DataError: a token is not.
        """
        decoded = self.decoded_by(engine)
        found = [one.target_ids for one in decoded]
        texts = self.checked.texts
        for text, one, limit in zip(texts, decoded, self.limits, strict=True):
            if len(one.target_ids) != limit and one.target_ids[-1:] != (self._target.eos_id,):
                raise _mismatch(text, "its translation has no end", one.text, "[EOS]")
        ours = self.translator.engine
        assert isinstance(ours, ExplainingEngine)
        requests = [text.request for text in texts]
        explanations = ours.explain(requests, found, batch_tokens=GREEDY.batch_tokens, num_best=len(self._banned) + 1)
        for text, ids, explained, expected in zip(texts, found, explanations, self.ids, strict=True):
            wrong = _first_wrong(ids, explained, self._banned)
            if wrong is not None:
                problem = f"token {wrong + 1} of its translation is another one"
                raise _mismatch(text, problem, self._target.decode(ids), self._target.decode(expected))
        return self._agreement(engine.describe(), found)

    def require_similar(self, engine: OtherEngine) -> Agreement:
        """Check that a quantised model translates nearly as ours does.

        Raises:
            DataError: its translations are too far from ours.
        """
        decoded = self.decoded_by(engine)
        scores = self._similar([one.text for one in decoded])
        return self._agreement(engine.describe(), [one.target_ids for one in decoded], scores)

    def require_similar_texts(self, engine: str, texts: Sequence[str]) -> Agreement:
        """Check the texts of a quantised model whose tokens are not to be had, as `require_similar` does.

        Args:
            engine: the name of the program that wrote them.
            texts: its translation of each of the texts.

        Raises:
            DataError: they are too far from ours.
        """
        scores, ours = self._similar(texts), [self._target.decode(ids) for ids in self.ids]
        num_equal = sum(a.strip() == b.strip() for a, b in zip(texts, ours, strict=True))
        program_agreement = self._agreement(engine, self.ids, scores)
        return replace(program_agreement, num_equal=num_equal)

    def _similar(self, texts: Sequence[str]) -> tuple[tuple[str, float], ...]:
        scores = score_corpus(
            texts,
            [self._target.decode(ids) for ids in self.ids],
            ["bleu", "chrf"],
            target_language=self.translator.pipeline.data.directions[0].target,
        )
        found = {score.name: score.value for score in scores}
        is_random = self.checked.origin == _RANDOM_WORDS
        least = MIN_CHRF_OF_RANDOM_WORDS if is_random else MIN_CHRF
        if found["chrF"] < least:
            raise DataError(
                f"the quantised model translates in another way than the float32 model: chrF {found['chrF']:.1f} "
                f"between both, at least {least:.0f} is expected",
                hint="give --input FILE, with sentences in place of random words; or export without --quantize, if you gave it"
                if is_random
                else "train the model further; or export without --quantize, if you gave it",
            )
        return tuple(found.items())

    @property
    def _target(self) -> Tokenizer:
        return self.translator.pipeline.target_tokenizer

    @property
    def _banned(self) -> frozenset[int]:
        """What no translation contains: special tokens except [EOS], and tags."""
        target = self._target
        return frozenset({target.unk_id, target.pad_id, target.sos_id, *target.tag_ids})

    def _agreement(
        self,
        engine: str,
        found: Sequence[TokenIds],
        scores: tuple[tuple[str, float], ...] = (),
    ) -> Agreement:
        return Agreement(
            engine=engine,
            origin=self.checked.origin,
            num_texts=len(found),
            num_equal=sum(theirs == ours for theirs, ours in zip(found, self.ids, strict=True)),
            num_tokens=sum(map(len, found)),
            scores=scores,
        )


def _first_wrong(ids: TokenIds, explained: Explanation, banned: frozenset[int]) -> int | None:
    """The place of the first token that is not the most probable one; None: there is none."""
    for place, token in enumerate(ids):
        best = zip(explained.best_ids[place], explained.best_log_probs[place], strict=True)
        highest = next(log_prob for index, log_prob in best if index not in banned)
        if token in banned or explained.token_log_probs[place] < highest - TIE:
            return place
    return None


def _mismatch(text: CheckedText, problem: str, found: object, expected: object) -> DataError:
    shown, right = on_one_line(str(found), 200), on_one_line(str(expected), 200)
    return DataError(
        f"the exported model does not agree with this one: {on_one_line(text.text, 100)}: {problem}: "
        f"{shown}; expected: {right}",
        hint="nothing was written; report this with the config of the run",
    )
