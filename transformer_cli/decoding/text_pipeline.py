"""The text pipeline: a line to the token ids that an engine reads, and hypotheses back to a line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from transformer_cli.config import DataConfig, Direction, SequencesData
from transformer_cli.decoding.alternatives import Alternative as Alternative
from transformer_cli.decoding.alternatives import join_alternatives
from transformer_cli.decoding.chosen_direction import chosen_direction
from transformer_cli.decoding.details.unknown_replacement import UnknownReplacement
from transformer_cli.decoding.engine import Hypothesis, Request, TokenIds
from transformer_cli.decoding.glossary import (
    Glossary,
    RequiredTerm,
    RequiredTerms,
    applied_terms,
    texts_of_slots,
    with_terms,
)
from transformer_cli.decoding.translation import PreparedLine as PreparedLine
from transformer_cli.decoding.translation import Translation as Translation
from transformer_cli.errors import DataError, UsageError
from transformer_cli.escaping import on_one_line
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.long_lines import split_line
from transformer_cli.text.normalization import (
    is_blank,
    may_be_invisible,
    normalize,
    normalize_invisible,
    reads_without_invisible,
)
from transformer_cli.text.sentences import Sentence, gap_between, split_sentences
from transformer_cli.text.spelling.known_spellings import KnownSpellings
from transformer_cli.text.tokenizer import MAX_CHARACTERS_PER_TOKEN
from transformer_cli.text.word_split import APOSTROPHES

# Every character that some program takes for the end of a line.
LINE_BREAKS = dict.fromkeys(map(ord, "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), " ")

_LETTER = "a"


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
    spellings: KnownSpellings | None = None
    """What replaces unknown words by words of the vocabulary; None: they stay as they are."""
    also_read_by: tuple[Tokenizer, ...] = ()
    """Of an ensemble: further tokenizers, in whose tokens a part must be short enough too."""
    direction: int | None = None
    """Index into `data.directions`; None: not chosen yet, which is an error if there are several."""
    glossary: RequiredTerms | None = None
    """The terms that translations must contain."""
    replacement: UnknownReplacement | None = None
    """What replaces [UNK] in translations whose hypotheses are explained; None: [UNK] stays."""

    def with_glossary(self, glossary: Glossary) -> "TextPipeline":
        """The pipeline whose translations contain the terms of a glossary; see `Translator.with_glossary`."""
        if isinstance(self.data, SequencesData):
            raise UsageError(f"the model of task {self.data.task} translates no language")
        required = RequiredTerms(
            glossary,
            self.target_tokenizer,
            normalize_source=self.normalize_source,
            normalize_target=self.normalize_given_target,
            max_length=self.max_length,
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
        text = self.normalize_source(line.rstrip("\r\n"))
        if is_blank(text):
            return PreparedLine(line, ())
        sentences = [Sentence(text, "")]
        if self.splits_sentences:
            sentences = split_sentences(text, self.languages.source)
        given = [sentence.text for sentence in sentences]
        if self.spellings is not None:
            sentences = [
                Sentence(self.spellings.respelled(each.text), each.gap) for each in sentences
            ]
            text = "".join(sentence.gap + sentence.text for sentence in sentences)
        parts: list[TokenIds] = []
        texts: list[str] = []
        spelled: list[str] = []
        gaps: list[str] = []
        for sentence, as_given in zip(sentences, given, strict=True):
            of_sentence = self._short_parts(sentence.text)
            gaps += [self._gap(sentence.gap), *[self._gap(" ")] * (len(of_sentence) - 1)]
            parts += [ids for _, ids in of_sentence]
            of_texts = [part for part, _ in of_sentence]
            texts += of_texts
            # Terms are found in the spelling of the line. Only parts of a long sentence stay in known spellings.
            spelled += [as_given] if len(of_texts) == 1 else of_texts
        requests = (Request(parts[0], self.prefix_ids(prefix)), *map(Request, parts[1:]))
        terms = tuple(map(self.required_terms, spelled))
        unknown_words = self._unknown_words(text, parts)
        num_known_words = sum(map(self.source_tokenizer.count_words, parts))
        return PreparedLine(
            line,
            tuple(map(with_terms, requests, terms)),
            gaps=("", *gaps[1:]),
            is_cut=len(parts) > len(sentences),
            unknown_words=unknown_words,
            num_words=num_known_words + len(unknown_words),
            texts=tuple(texts),
            read=text,
            terms=terms,
        )

    def required_terms(self, text: str) -> tuple[RequiredTerm, ...]:
        """What the glossary requires of the translation of a normalised text; nothing without a glossary."""
        return () if self.glossary is None else self.glossary.find(text)

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
        of_parts = zip(prepared.texts, prepared.parts, prepared.terms, hypotheses, strict=True)
        texts = [self._texts(*part) for part in of_parts]
        alternatives = join_alternatives(texts, prepared.gaps)
        # Without hypotheses the translation is empty, for example if drop-first gets one symbol.
        best = alternatives[0] if alternatives else Alternative("", 0.0)
        unknown_words, num_words = prepared.unknown_words, prepared.num_words
        applied = [
            applied_terms(of_part[0].text if of_part else "", required)
            for of_part, required in zip(texts, prepared.terms, strict=True)
        ]
        return Translation(
            prepared.line,
            *best,
            alternatives,
            unknown_words,
            num_words,
            terms=tuple(chain.from_iterable(applied)),
            is_cut=prepared.is_cut,
        )

    @property
    def removes_invisible(self) -> bool:
        """Whether source text is read without invisible characters, and with plain spaces."""
        is_sentencepiece = self.source_tokenizer.parts.layout.is_sentencepiece
        return reads_without_invisible(self.data.cleaning, is_sentencepiece=is_sentencepiece)

    def normalize_source(self, text: str) -> str:
        """Normalise source text as before training."""
        return normalize(text, self.data.cleaning, removes_invisible=self.removes_invisible)

    def normalize_target(self, text: str) -> str:
        """Normalise target text as before training: it keeps its no-break spaces."""
        return normalize(text, self.data.cleaning, removes_invisible=False)

    def normalize_given_target(self, text: str) -> str:
        """Normalise words that a translation must have; invisible characters go if the model cannot write them."""
        text = self.normalize_target(text)
        if not self.removes_invisible or not may_be_invisible(text):
            return text
        tokenizer = self.target_tokenizer
        is_writable = tokenizer.unk_id not in tokenizer.encode(text)
        return text if is_writable else self.normalize_target(normalize_invisible(text))

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
        text = self.normalize_given_target(text).strip()
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
        return gap_between(of_source, *self.languages).translate(LINE_BREAKS)

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
            longest = len(encoded[part])
            if self.also_read_by:
                added = longest - len(self.source_tokenizer.encode(part))
                others = [len(one.encode(part)) + added for one in self.also_read_by]
                longest = max(longest, *others)
            return longest <= self.max_length

        parts = split_line(text, is_short)
        # `is_short` never sees a single character, which cannot be cut and may still have too many tokens.
        return [
            (part, (encoded.get(part) or self.source_ids(part))[: self.max_length])
            for part in parts
        ]

    def words_for_unknown(
        self,
        text: str,
        request: Request,
        terms: Sequence[RequiredTerm],
        hypothesis: Hypothesis,
    ) -> list[str]:
        """What is shown in place of each [UNK] of a hypothesis of one part; nothing: [UNK] itself.

        Args:
            text: of the part, as in `PreparedLine.texts`.
            request: of the part.
            terms: of the part. If [UNK] stands for some of them, each [UNK] of the hypothesis does.
            hypothesis: explained if it contains [UNK] and `replacement` is given.
        """
        of_terms = texts_of_slots(terms)
        if of_terms or self.replacement is None:
            return of_terms
        return self.replacement.words(text, request.ids, hypothesis, self.source_tokenizer)

    def _texts(
        self,
        text: str,
        request: Request,
        terms: Sequence[RequiredTerm],
        hypotheses: Sequence[Hypothesis],
    ) -> list[Alternative]:
        """The texts of the hypotheses of one part, all different; of equal texts, the best score."""
        decode = self.target_tokenizer.decode
        texts = [
            decode(hypothesis.ids, self.words_for_unknown(text, request, terms, hypothesis))
            for hypothesis in hypotheses
        ]
        best: dict[str, float] = {}
        for text, hypothesis in zip(texts, hypotheses, strict=True):
            best.setdefault(text.translate(LINE_BREAKS), hypothesis.score)
        return [Alternative(text, score) for text, score in best.items()]
