"""The text pipeline: a line to the token ids that an engine reads, and hypotheses back to a line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from transformer_cli.config import DataConfig, Direction, SequencesData
from transformer_cli.decoding.alternatives import Alternative as Alternative
from transformer_cli.decoding.alternatives import join_alternatives
from transformer_cli.decoding.chosen_direction import chosen_direction
from transformer_cli.decoding.engine import Hypothesis, Request, TokenIds
from transformer_cli.decoding.glossary import (
    AppliedTerm,
    Glossary,
    RequiredTerm,
    RequiredTerms,
    applied_terms,
    with_terms,
)
from transformer_cli.decoding.line_details import LineDetails
from transformer_cli.errors import DataError, UsageError
from transformer_cli.escaping import on_one_line
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.long_lines import split_line
from transformer_cli.text.normalization import is_blank, normalize
from transformer_cli.text.sentences import Sentence, gap_between, split_sentences
from transformer_cli.text.tokenizer import MAX_CHARACTERS_PER_TOKEN
from transformer_cli.text.word_split import APOSTROPHES

# Every character that some program takes for the end of a line.
_LINE_BREAKS = dict.fromkeys(map(ord, "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), " ")

_LETTER = "a"


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of one line; `text` never contains a line break."""

    source: str
    text: str
    score: float
    """Log-probability / length penalty; for a line of several sentences or parts, the sum over them."""
    alternatives: tuple[Alternative, ...]
    """At most `decoding.num_best`, all different, best first; the first is the translation itself. Empty for a
    blank line."""
    unknown_words: tuple[str, ...] = ()
    """The words and marks of the source that are not in the vocabulary, in order; the model read each as [UNK]."""
    num_words: int = 0
    """Number of words of the source, plus its unknown marks; 0 for subwords, which can encode every text."""
    terms: tuple[AppliedTerm, ...] = ()
    """The terms of the glossary that stand in the line, in order, and whether the translation contains their target terms."""
    details: LineDetails | None = None
    """Tokens, probabilities, attention and word alignment of the best translation; None unless they were asked for."""


@dataclass(frozen=True, slots=True)
class PreparedLine:
    """A line and its token ids, for the engine and for `restore`."""

    line: str
    """As it was given."""
    parts: tuple[Request, ...]
    """What the engine translates, in order: none for a blank line, else its sentences. A sentence that is too long
    for the model has several parts."""
    gaps: tuple[str, ...] = ()
    """For each part, the white space before its translation; empty for the first part."""
    is_cut: bool = False
    """Whether a sentence was too long for the model."""
    unknown_words: tuple[str, ...] = ()
    """As in `Translation`."""
    num_words: int = 0
    """As in `Translation`."""
    texts: tuple[str, ...] = ()
    """The normalised text of each part; only white space stands between two of them."""
    terms: tuple[tuple[RequiredTerm, ...], ...] = ()
    """For each part, what the glossary requires of its translation; empty without a glossary."""


@dataclass(frozen=True, slots=True)
class TextPipeline:
    """Text to token ids as in training, and token ids of translations to text.

    `prepare` turns a line into token ids, the engine translates them, and `restore` makes the text.
    """

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    data: DataConfig
    """The cleaning rules, the sequence format and the languages that the model was trained with."""
    max_length: int
    """The largest number of tokens of a part, [EOS] included."""
    splits_sentences: bool = False
    """Whether each sentence of a line is translated by itself."""
    direction: int | None = None
    """Index into `data.directions`; None: not chosen yet, which is an error if there are several."""
    glossary: RequiredTerms | None = None
    """The terms that translations must contain."""

    def with_glossary(self, glossary: Glossary) -> "TextPipeline":
        """The pipeline whose translations contain the terms of a glossary; see `Translator.with_glossary`."""
        if isinstance(self.data, SequencesData):
            raise UsageError(f"the model of task {self.data.task} translates no language")
        required = RequiredTerms(
            glossary, self.target_tokenizer, normalize=self.normalize, max_length=self.max_length
        )
        return replace(self, glossary=required)

    def towards(self, to: str | None, from_: str | None = None) -> "TextPipeline":
        """The pipeline of one direction.

        Args:
            to: the target language; None: keep the direction, or take the only one.
            from_: the source language.

        Raises:
            UsageError: the model has no such direction, or several.
        """
        if to is None and from_ is None and self.direction is not None:
            return self
        if isinstance(self.data, SequencesData) and (to or from_):
            raise UsageError(
                f"the model of task {self.data.task} translates no language",
                hint="leave out --to and --from",
            )
        return replace(self, direction=chosen_direction(self.data.directions, to=to, from_=from_))

    @property
    def languages(self) -> Direction:
        """The languages of the chosen direction."""
        return self.data.directions[self._number]

    @property
    def _number(self) -> int:
        return chosen_direction(self.data.directions) if self.direction is None else self.direction

    def prepare(self, line: str, prefix: str = "") -> PreparedLine:
        """Normalise a line, split it into sentences, and tokenise them.

        Args:
            prefix: whole words with which the translation of the first sentence begins; a blank line ignores it.

        Raises:
            DataError: the model cannot write this prefix.
        """
        text = self.normalize(line.rstrip("\r\n"))
        if is_blank(text):
            return PreparedLine(line, ())
        sentences = [Sentence(text, "")]
        if self.splits_sentences:
            sentences = split_sentences(text, self.languages.source)
        parts: list[TokenIds] = []
        texts: list[str] = []
        gaps: list[str] = []
        for sentence in sentences:
            of_sentence = self._short_parts(sentence.text)
            gaps += [self._gap(sentence.gap), *[self._gap(" ")] * (len(of_sentence) - 1)]
            parts += [ids for _, ids in of_sentence]
            texts += [part for part, _ in of_sentence]
        requests = (Request(parts[0], self.prefix_ids(prefix)), *map(Request, parts[1:]))
        terms: tuple[tuple[RequiredTerm, ...], ...] = ()
        if self.glossary is not None:
            terms = tuple(map(self.glossary.find, texts))
            requests = tuple(map(with_terms, requests, terms))
        unknown_words = self._unknown_words(text, parts)
        num_known_words = sum(map(self.source_tokenizer.count_words, parts))
        return PreparedLine(
            line,
            requests,
            gaps=("", *gaps[1:]),
            is_cut=len(parts) > len(sentences),
            unknown_words=unknown_words,
            num_words=num_known_words + len(unknown_words),
            texts=tuple(texts),
            terms=terms,
        )

    def restore(
        self, prepared: PreparedLine, hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> Translation:
        """Detokenise the hypotheses of each part, and join the parts.

        Args:
            prepared: the line.
            hypotheses: for each of its parts, best first.
        """
        if not prepared.parts:
            return Translation(prepared.line, "", 0.0, ())
        terms = prepared.terms or ((),) * len(prepared.parts)
        texts = list(map(self._texts, hypotheses, terms))
        alternatives = join_alternatives(texts, prepared.gaps)
        # Without hypotheses the translation is empty, for example if drop-first gets one symbol.
        best = alternatives[0] if alternatives else Alternative("", 0.0)
        unknown_words, num_words = prepared.unknown_words, prepared.num_words
        applied = [
            applied_terms(of_part[0].text if of_part else "", required)
            for of_part, required in zip(texts, terms, strict=True)
        ]
        return Translation(
            prepared.line,
            *best,
            alternatives,
            unknown_words,
            num_words,
            terms=tuple(chain.from_iterable(applied)),
        )

    def normalize(self, text: str) -> str:
        """Normalise text as before training."""
        return normalize(text, self.data.cleaning)

    def source_ids(self, text: str) -> TokenIds:
        """The token ids of normalised source text, with a tag and [EOS] if the model reads these."""
        sequence_format, tokenizer = SequenceFormat.of(self.data), self.source_tokenizer
        return tuple(sequence_format.source(tokenizer.encode(text), tokenizer, self._number))

    def target_ids(self, text: str) -> TokenIds:
        """The token ids of normalised target text, with [EOS] if the model predicts one."""
        ids = self.target_tokenizer.encode(text)
        return tuple(SequenceFormat.of(self.data).with_end(ids, self.target_tokenizer.eos_id))

    def prefix_ids(self, text: str) -> TokenIds:
        """The token ids of the beginning of a target; it consists of whole words.

        Raises:
            DataError: the model cannot write this text: it is too long, or has unknown words.
        """
        text = self.normalize(text).strip()
        if is_blank(text):
            return ()
        tokenizer = self.target_tokenizer
        ids = tokenizer.encode(text)
        if text[-1] in APOSTROPHES:
            # An elided article such as dell' is a word of its own only if a letter follows.
            ids = tokenizer.encode(text + _LETTER)[: -len(tokenizer.encode(_LETTER))]
        if tokenizer.unk_id in ids:
            unknown = ", ".join(tokenizer.unknown_words(text))
            raise DataError(
                f"the prefix {on_one_line(text, 60)}: not in the vocabulary of the model: {unknown}",
                hint="the translation can begin only with words that the model knows",
            )
        if len(ids) >= self.max_length:
            raise DataError(
                f"the prefix {on_one_line(text, 60)}: {len(ids)} tokens, but the model writes at most {self.max_length}",
                hint="give a shorter beginning",
            )
        return tuple(ids)

    def _gap(self, of_source: str) -> str:
        return gap_between(of_source, *self.languages).translate(_LINE_BREAKS)

    def _unknown_words(self, text: str, parts: Sequence[TokenIds]) -> tuple[str, ...]:
        if not any(self.source_tokenizer.unk_id in part for part in parts):
            return ()
        return tuple(self.source_tokenizer.unknown_words(text))

    def _short_parts(self, text: str) -> list[tuple[str, TokenIds]]:
        """A text and its token ids; several parts of it if it has more than `max_length` tokens."""
        encoded: dict[str, TokenIds] = {}

        def is_short(part: str) -> bool:
            # A very long text is surely too long, so it is not tokenised.
            if len(part) > MAX_CHARACTERS_PER_TOKEN * self.max_length:
                return False
            encoded[part] = self.source_ids(part)
            return len(encoded[part]) <= self.max_length

        parts = split_line(text, is_short)
        # `is_short` never sees a single character, which cannot be cut and may still have too many tokens.
        return [
            (part, (encoded.get(part) or self.source_ids(part))[: self.max_length])
            for part in parts
        ]

    def _texts(
        self, hypotheses: Sequence[Hypothesis], terms: Sequence[RequiredTerm]
    ) -> list[Alternative]:
        """The texts of the hypotheses of one part, all different; of equal texts, the best score."""
        unknown = [each.target for each in terms if each.is_slot and each.term is not None]
        decode = self.target_tokenizer.decode
        texts = [decode(hypothesis.ids, unknown) for hypothesis in hypotheses]
        best: dict[str, float] = {}
        for text, hypothesis in zip(texts, hypotheses, strict=True):
            best.setdefault(text.translate(_LINE_BREAKS), hypothesis.score)
        return [Alternative(text, score) for text, score in best.items()]
