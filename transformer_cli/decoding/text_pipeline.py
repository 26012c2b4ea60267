"""The text pipeline: a line to the token ids that an engine reads, and hypotheses back to a line."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

from transformer_cli.config import DataConfig, Direction, SequencesData
from transformer_cli.decoding.engine import Hypothesis, Request, TokenIds
from transformer_cli.decoding.glossary import (
    Glossary,
    RequiredTerm,
    RequiredTerms,
    applied_terms,
    texts_of_slots,
    with_terms,
)
from transformer_cli.decoding.quality import Quality
from transformer_cli.decoding.translation import (
    Alternative,
    Clause,
    PreparedLine,
    Translation,
    joined_alternatives,
)
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.escaping import on_one_line
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.languages import has_spaces, meant_among, primary_language
from transformer_cli.text.normalization import (
    is_blank,
    may_be_invisible,
    normalize,
    normalize_invisible,
    reads_without_invisible,
)
from transformer_cli.text.sentences import (
    FEWEST_TOKENS,
    UNKNOWN_LENGTHS,
    Cut,
    SeenLengths,
    Sentence,
    as_inner_part,
    closing_mark,
    cut_after_sentence,
    cut_in_two,
    ends_sentence,
    gap_between,
    split_line,
    split_sentences,
    without_closing_mark,
)
from transformer_cli.text.tokenizer import MAX_CHARACTERS_PER_TOKEN, KnownSpellings
from transformer_cli.text.words import APOSTROPHES

# Every character that some program takes for the end of a line.
LINE_BREAKS = dict.fromkeys(map(ord, "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), " ")

Item = TypeVar("Item")

_LETTER = "a"
_WIDE_MARKS = str.maketrans({",": "\uff0c", ";": "\uff1b", ":": "\uff1a"})
_NARROW_MARKS = {"\uff0c": ", ", "\u3001": ", ", "\uff1b": "; ", "\uff1a": ": "}
# A sentence that is longer than those of the training is divided into parts of an ordinary length, if it can be.
_ORDINARY_SHARE = 0.5
# A translation loses text if it is shorter than this share of nearly all translations of the training.
_FAR_TOO_SHORT = 0.7
_FEWEST_WORD_TOKENS = 4


@dataclass(frozen=True, slots=True)
class UnknownReplacement:
    """What stands in a translation instead of [UNK].

    Source: Luong et al. 2015, "Addressing the Rare Word Problem in Neural Machine Translation".
    """

    dictionary: Mapping[str, str] = field(default_factory=dict)
    """The translation of words of the source; a word that it lacks stays as it is."""

    def words(
        self, text: str, source_ids: TokenIds, hypothesis: Hypothesis, source: Tokenizer
    ) -> list[str]:
        """For each [UNK] of a hypothesis, what replaces it, with the space before it if it is a word.

        Args:
            text: the normalised source, whose words are tokens.
            source_ids: its ids, with tags before them and [EOS] behind them.
            hypothesis: explained.
            source: the tokenizer of the source.
        """
        if hypothesis.explanation is None:
            return []
        words = source.words(text)
        num_tags = sum(index in source.tag_ids for index in source_ids)
        places = [
            place - num_tags
            for index, place in zip(hypothesis.ids, hypothesis.explanation.alignment, strict=True)
            if index == source.unk_id
        ]
        unknown = source.decode([source.unk_id])
        return [
            self._translated(words[place]) if 0 <= place < len(words) else f" {unknown}"
            for place in places
        ]

    def _translated(self, word: str) -> str:
        """The dictionary entry of a word; one with a capital letter may stand in lower case, and keeps its capital."""
        bare = word.strip()
        entry = self.dictionary.get(bare)
        if entry is None and bare[:1].isupper():
            lower = self.dictionary.get(bare[:1].lower() + bare[1:])
            entry = lower and lower[:1].upper() + lower[1:]
        return word if entry is None else f" {entry}"


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
    keeps_text: bool = False
    """Whether a sentence is divided, or stays as it is, where its translation would lose text (`decoding.keep_text`)."""
    seen: SeenLengths = UNKNOWN_LENGTHS
    """The lengths of the texts that the model was trained on."""
    qualities: Mapping[str, Quality] = field(default_factory=dict)
    """Direction, such as en-it -> what `tfm calibrate` has learned about the translations."""

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
    def quality(self) -> Quality | None:
        """The calibration of the chosen direction; None if there is none."""
        return self.qualities.get(str(self.languages))

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
            requests if self.glossary is None else tuple(map(with_terms, requests, terms)),
            gaps=("", *gaps[1:]),
            is_cut=len(parts) > len(sentences),
            unknown_words=unknown_words,
            num_words=num_known_words + len(unknown_words),
            texts=tuple(texts),
            read=text,
            terms=terms,
            clauses=tuple(map(Clause, spelled)),
        )

    def in_clauses(self, prepared: PreparedLine) -> PreparedLine:
        """The line with each sentence divided at its clauses that is longer than those of the training.

        A sentence inside brackets, or before an ellipsis, is divided from the one behind it, too. A sentence without a
        place for a division stays whole; so do all where `keeps_text` is false. Where it is not known how long the
        sentences of the training were, none is too long.
        """
        if not self.keeps_text:
            return prepared
        for number in reversed(range(len(prepared.parts))):
            place = number
            while (cut := cut_after_sentence(prepared.clauses[place].text)) is not None:
                prepared = self._divided(prepared, place, cut)
                place += 1
        longest = self.seen.longest
        if longest is None:
            return prepared
        long = [number for number, part in enumerate(prepared.parts) if len(part.ids) > longest]
        for number in reversed(long):
            prepared = self._with_clauses(
                prepared, number, max(1, math.ceil(longest * _ORDINARY_SHARE))
            )
        return prepared

    def _with_clauses(self, prepared: PreparedLine, number: int, most: int) -> PreparedLine:
        """The line in which a part, and each clause of it that has more tokens, is divided."""
        end = number + 1
        while number < end:
            num_tokens = len(prepared.parts[number].ids)
            cut = None
            if num_tokens > most:
                share = 1 / math.ceil(num_tokens / most)
                cut = cut_in_two(prepared.clauses[number].text, share, self.languages.source)
            if cut is None:
                number += 1
            else:
                prepared = self._divided(prepared, number, cut)
                end += 1
        return prepared

    def lost_parts(
        self, prepared: PreparedLine, hypotheses: Mapping[Request, Sequence[Hypothesis]]
    ) -> list[int]:
        """The numbers of the parts whose best hypotheses lose text, without those that are kept as they are."""
        return [
            number
            for number, part in enumerate(prepared.parts)
            if number not in prepared.kept
            and self._loses_text(prepared.texts[number], part, hypotheses[part][:1])
        ]

    def without_short_rivals(
        self, prepared: PreparedLine, hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """The best hypothesis of each part, and those others that lose no text."""
        of_parts = zip(prepared.texts, prepared.parts, hypotheses, strict=True)
        return [
            [
                *of_part[:1],
                *(each for each in of_part[1:] if not self._loses_text(text, request, [each])),
            ]
            for text, request, of_part in of_parts
        ]

    def divided(
        self, prepared: PreparedLine, numbers: Collection[int], *, anywhere: bool = True
    ) -> PreparedLine:
        """The line in which each of these parts is divided in two; one that cannot be divided is kept as it is.

        Args:
            anywhere: whether it is divided inside a clause if it has only one.
        """
        for number in sorted(numbers, reverse=True):
            text, language = prepared.clauses[number].text, self.languages.source
            cut = cut_in_two(text, 0.5, language, anywhere=anywhere)
            if cut is None:
                prepared = replace(prepared, kept=prepared.kept | {number})
            else:
                prepared = self._divided(prepared, number, cut)
        return prepared

    def _divided(self, prepared: PreparedLine, number: int, cut: Cut) -> PreparedLine:
        """The line in which a part is divided in two."""
        clause, request = prepared.clauses[number], prepared.parts[number]
        clauses = _clauses(clause, cut)
        texts = [self._respelled(each.text) for each in clauses]
        terms = [self.required_terms(each.text) for each in clauses]
        ids = [
            self.source_ids(text + each.closing)[: self.max_length]
            for text, each in zip(texts, clauses, strict=True)
        ]
        # Without sampling all seeds are 0.
        seeds = [request.seed and (request.seed + place) % 2**63 for place in (0, 1)]
        requests = [
            Request(ids[0], request.prefix, seed=seeds[0]),
            Request(ids[1], seed=seeds[1]),
        ]
        if self.glossary is not None:
            requests = list(map(with_terms, requests, terms))
        gaps = prepared.gaps[number], self._gap_with_marks(cut.marks)
        return replace(
            prepared,
            parts=_with_two(prepared.parts, number, requests),
            gaps=_with_two(prepared.gaps, number, gaps),
            texts=_with_two(prepared.texts, number, texts),
            terms=_with_two(prepared.terms, number, terms),
            clauses=_with_two(prepared.clauses, number, clauses),
            kept=frozenset(each + (each > number) for each in prepared.kept),
        )

    def _respelled(self, text: str) -> str:
        return text if self.spellings is None else self.spellings.respelled(text)

    def _gap_with_marks(self, marks: str) -> str:
        """What stands between the translations of two clauses: the same marks, as the target language writes them."""
        mark = marks.strip()
        if not mark:
            return self._gap(marks or "")
        if mark in _NARROW_MARKS:
            return _NARROW_MARKS[mark] if has_spaces(self.languages.target) else mark
        is_pause = mark in (",", ";", ":")
        if is_pause and primary_language(self.languages.target) in ("zh", "ja", "yue"):
            return mark.translate(_WIDE_MARKS)
        return marks.translate(LINE_BREAKS)

    def _loses_text(self, text: str, request: Request, best: Sequence[Hypothesis]) -> bool:
        """Whether a translation is surely no translation of the whole text.

        That is a translation without a word of a text with words; or one that is far shorter than those that the model was
        trained to write. A translation whose beginning is forced is what the caller wants.

        Args:
            text: of the part.
            request: of the part.
            best: its best hypothesis; nothing if the search found none.
        """
        if request.prefix:
            return False
        ids = best[0].ids if best else ()
        if not any(map(self._is_word_of_target, ids)):
            return any(map(str.isalnum, text))
        ratio, num_tokens = self.seen.smallest_ratio, len(request.ids)
        if ratio is None or num_tokens < FEWEST_TOKENS:
            return False
        ratio *= _FAR_TOO_SHORT
        if len(ids) >= ratio * num_tokens:
            return False
        # Rows of marks, such as !!!!!!, may become one mark.
        entries, end = self.source_tokenizer.entries, self.source_tokenizer.eos_id
        num_words = sum(_is_word(entries[index]) for index in request.ids if index != end)
        return num_words >= max(_FEWEST_WORD_TOKENS, sum(map(self._is_word_of_target, ids)) / ratio)

    def _is_word_of_target(self, index: int) -> bool:
        """Whether a token has a letter or digit; [UNK] stands for a word."""
        tokenizer = self.target_tokenizer
        if index in (tokenizer.eos_id, tokenizer.pad_id, tokenizer.sos_id):
            return False
        return _is_word(tokenizer.entries[index])

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
        if self.keeps_text or prepared.kept:
            texts = self._without_loss(prepared, texts)
        alternatives = joined_alternatives(
            texts, lambda of_parts: _with_gaps(of_parts, prepared.gaps)
        )
        # Without hypotheses the translation is empty, for example if drop-first gets one symbol.
        best = alternatives[0] if alternatives else Alternative("", 0.0)
        unknown_words, num_words = prepared.unknown_words, prepared.num_words
        applied = [
            applied_terms(of_part[0].text if of_part else "", required)
            for of_part, required in zip(texts, prepared.terms, strict=True)
            if required
        ]
        return Translation(
            prepared.line,
            *best,
            alternatives,
            unknown_words,
            num_words,
            terms=tuple(chain.from_iterable(applied)),
            is_cut=prepared.is_cut,
            is_divided=any(each.starts_inside or each.ends_inside for each in prepared.clauses),
            is_untranslated=bool(prepared.kept),
            doubts=prepared.doubts,
            is_repaired=prepared.is_repaired,
        )

    def _without_loss(
        self, prepared: PreparedLine, texts: Sequence[list[Alternative]]
    ) -> list[list[Alternative]]:
        """The texts of the parts: those of clauses in the form of clauses, and those that are kept as they were given."""
        if len(prepared.kept) == len(prepared.parts):
            line = prepared.line.rstrip("\r\n").translate(LINE_BREAKS)
            return [[Alternative(line, 0.0)], *([Alternative("", 0.0)] for _ in texts[1:])]
        num_best = max(map(len, texts))
        language = primary_language(self.languages.target)
        finished = []
        for number, (clause, of_part) in enumerate(zip(prepared.clauses, texts, strict=True)):
            if number in prepared.kept:
                finished.append([Alternative(clause.text, 0.0)] * num_best)
            elif clause.starts_inside or clause.ends_inside:
                finished.append([_in_form_of(clause, each, language) for each in of_part])
            else:
                finished.append(of_part)
        return finished

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
        return text if tokenizer.knows(text) else self.normalize_target(normalize_invisible(text))

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
        of_terms = texts_of_slots(terms) if terms else []
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


def _with_gaps(texts: Sequence[str], gaps: Sequence[str]) -> str:
    """The texts that are not empty, with a gap between two of them."""
    joined = ""
    for text, gap in zip(texts, gaps, strict=True):
        joined += (gap if joined else "") + text if text else ""
    return joined


def _with_two(items: tuple[Item, ...], place: int, two: Sequence[Item]) -> tuple[Item, ...]:
    """The items, with two in the place of one."""
    return (*items[:place], *two, *items[place + 1 :])


def _is_word(entry: str) -> bool:
    return any(map(str.isalnum, entry))


def _clauses(whole: Clause, cut: Cut) -> tuple[Clause, Clause]:
    """The two parts of a clause; those of a cut at the end of a sentence are sentences of their own."""
    if not cut.marks.strip() and ends_sentence(cut.left):
        return Clause(cut.left, whole.starts_inside), whole._replace(
            text=cut.right, starts_inside=False
        )
    closing = whole.closing or closing_mark(whole.text)
    return (
        Clause(cut.left, whole.starts_inside, ends_inside=True, closing=closing),
        whole._replace(text=cut.right, starts_inside=True),
    )


def _in_form_of(clause: Clause, translated: Alternative, target_language: str) -> Alternative:
    """The translation of a clause with no capital letter and no full stop but those of its sentence."""
    text = translated.text
    if clause.ends_inside:
        text = without_closing_mark(text)
    if clause.starts_inside:
        text = as_inner_part(text, clause.text, target_language=target_language)
    elif clause.text[:1].isupper():
        text = text[:1].upper() + text[1:]
    return translated._replace(text=text)


def chosen_direction(
    directions: Sequence[Direction], *, to: str | None = None, from_: str | None = None
) -> int:
    """The index of the one direction with these languages.

    Args:
        directions: all directions of the model.
        to: the target language: a code such as it, or a name such as Italian; None: any.
        from_: the source language; None: any.

    Raises:
        UsageError: no direction has these languages, or several have them.
    """
    source = _known_language(from_, "from", [one.source for one in directions])
    target = _known_language(to, "to", [one.target for one in directions])
    found = [
        number
        for number, one in enumerate(directions)
        if source in (None, one.source) and target in (None, one.target)
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"this model does not translate from {source} to {target}; it translates {_listed_directions(directions)}"
        )
    left = [directions[number] for number in found]
    targets = list(dict.fromkeys(one.target for one in left))
    option, choices = "to", targets
    if len(targets) == 1:
        # The source language decides where a sentence ends.
        option, choices = "from", [one.source for one in left]
    raise UsageError(
        f"this model translates {_listed_directions(left)}: say which",
        hint=f"add {' or '.join(f'--{option} {language}' for language in choices)}",
    )


def _known_language(given: str | None, option: str, languages: Sequence[str]) -> str | None:
    """The language of the model that is meant; None if none is given."""
    if given is None:
        return None
    if (meant := meant_among(given, languages)) is not None:
        return meant
    known = ", ".join(dict.fromkeys(languages))
    verb = "into" if option == "to" else "from"
    raise UsageError(
        f"--{option} {given}: this model translates {verb}: {known}",
        hint=f"leave out --{option}" if len({*languages}) == 1 else f"name one of {known}",
    )


def _listed_directions(directions: Sequence[Direction]) -> str:
    return ", ".join(map(str, directions))
