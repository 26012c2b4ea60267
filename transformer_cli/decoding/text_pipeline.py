"""A text to the token ids of its sentences, as in training, and the token ids of translations to text; known spellings of unknown words."""

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from transformer_cli.config import Config, DataConfig, DecodingConfig, Direction, SequencesData
from transformer_cli.decoding.checks.names_in_text import is_first_name, is_full_name
from transformer_cli.decoding.checks.quality import Quality
from transformer_cli.decoding.engine import Hypothesis, Request, TokenIds
from transformer_cli.decoding.glossary import (
    Glossary,
    RequiredTerm,
    RequiredTerms,
    applied_terms,
    texts_of_slots,
    with_terms,
)
from transformer_cli.decoding.protected_spans import HIDDEN, spans_outside_terms
from transformer_cli.decoding.translation import (
    Alternative,
    SourceText,
    TextPart,
    TranslatedPiece,
    Translation,
    copied,
    distinct,
    nth_best_of_all,
)
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.messages import on_one_line
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.languages import (
    UNKNOWN_LANGUAGE,
    chosen_direction,
    has_spaces,
    primary_language,
    scripts_of_language,
    scripts_of_letters,
)
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.lines_for_programs import part_for_programs
from transformer_cli.text.normalization import (
    APOSTROPHES,
    TYPED_MARKS,
    has_letter,
    has_word,
    is_blank,
    may_be_invisible,
    normalize,
    normalize_invisible,
    reads_without_invisible,
    with_single_spaces,
    without_accents,
    without_line_breaks,
)
from transformer_cli.text.quotation_marks import starts_with_lone_quote, unseen_names_in_quotes
from transformer_cli.text.roman_numerals import with_roman_numerals_of
from transformer_cli.text.seen_words import SeenWords, WordsOfOneToken, unseen_words
from transformer_cli.text.sentences import (
    UNKNOWN_LENGTHS,
    SeenLengths,
    Sentence,
    TextRange,
    as_inner_part,
    end_of_label,
    end_of_marks,
    gap_between,
    in_sentence_case,
    is_one_sentence,
    split_at_missing_spaces,
    split_line,
    split_sentences,
    with_ellipses,
    with_final_mark_of,
    without_closing_mark,
)
from transformer_cli.text.spans import Span, SpanKind, masked
from transformer_cli.text.tokenizer import MAX_CHARACTERS_PER_TOKEN

if TYPE_CHECKING:  # it explains what this pipeline reads and writes
    from transformer_cli.decoding.details import UnknownReplacement

_LETTER = "a"
_WIDE_MARKS = str.maketrans({",": "\uff0c", ";": "\uff1b", ":": "\uff1a"})
# Languages of the Arabic script, and their comma and semicolon.
_WITH_ARABIC_MARKS = frozenset(["ar", "fa", "ur", "ps", "ug", "ckb", "sd", "dv"])
_ARABIC_MARKS = str.maketrans({",": "\u060c", ";": "\u061b"})
_PLAIN_MARKS = str.maketrans(dict.fromkeys("\u060c\u1363\u1802\u07f8\u104a\u055d", ",") | {"\u061b": ";"})
_NARROW_MARKS = {"\uff0c": ", ", "\u3001": ", ", "\uff1b": "; ", "\uff1a": ": "}
_MAY_LACK_A_SPACE = lazy_pattern(r"[^\W\d_][.!?][^\W\d_]")
_TITLE = lazy_pattern(r"[A-Z][^\W\d_]*(?: [A-Z][^\W\d_]*){1,2}[:.!?]?")
_LABEL_OF_ONE_WORD = re.compile(r"[A-Z][^\W\d_]*[a-z][^\W\d_]*:")
_ENDS_AS_NOUN = lazy_pattern(r"[A-Z][a-z]{4,}(?:[ts]ion|ment|ness|[bcdlrs]ility|ivity|ality)s?")
_MARKS_OF_TITLE = ":.!? \u00a0\u202f"
_SMALL_WORD = lazy_pattern(r"(?<![^\W_])[^\W\d_A-Z]+(?![^\W_])")


def _without_lone_quote(sentence: Sentence) -> Sentence:
    """The sentence with a single quotation mark at its beginning, which it does not close, in the gap before it."""
    if not starts_with_lone_quote(sentence.text):
        return sentence
    return Sentence(sentence.text[1:], sentence.gap + sentence.text[0])


_NUM_ENTRIES_LOOKED_AT = 200
_LARGEST_OTHER_SHARE = 0.25


@lru_cache(maxsize=8)
def _share_of_other_scripts(tokenizer: Tokenizer, known: frozenset[str]) -> float:
    """The share of the letters of a vocabulary, of some of its entries, that are in other scripts than the known ones."""
    entries = range(0, tokenizer.vocab_size, max(1, tokenizer.vocab_size // _NUM_ENTRIES_LOOKED_AT))
    letters = Counter(sign for entry in entries for sign in tokenizer.decode([entry]) if sign.isalpha())
    found = scripts_of_letters(letters)
    return sum(count for script, count in found.items() if script not in known) / max(1, letters.total())


@dataclass(frozen=True, slots=True)
class TextPipeline:
    """Text to token ids as in training, and token ids of translations to text.

    `prepare` turns a text into token ids, the engine translates them, and `restore` makes the text.
    """

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    data: DataConfig
    """The cleaning rules, the sequence format and the languages that the model was trained with."""
    max_length: int
    """The largest number of tokens of a part, [EOS] included."""
    splits_sentences: bool = False
    """Whether each sentence of a line is translated by itself."""
    spellings: "KnownSpellings | None" = None
    """What replaces unknown words by words of the vocabulary; None: they stay as they are."""
    also_read_by: tuple[Tokenizer, ...] = ()
    """Of an ensemble: further tokenizers, in whose tokens a part must be short enough too."""
    direction: int | None = None
    """Index into `data.directions`; None: not chosen yet, which is an error if there are several."""
    glossary: RequiredTerms | None = None
    """The terms that translations must contain."""
    replacement: "UnknownReplacement | None" = None
    """What replaces [UNK] in translations whose hypotheses are explained; None: [UNK] stays."""
    keeps_text: bool = False
    """Whether a sentence is divided, or stays as it is, where its translation would lose text (`decoding.keep_text`)."""
    seen: SeenLengths = UNKNOWN_LENGTHS
    """The lengths of the texts that the model was trained on."""
    seen_words: Container[str] | None = None
    """The words that the training has seen; None: not known."""
    qualities: Mapping[str, Quality] = field(default_factory=dict)
    """Direction, such as en-it -> what `tfm calibrate` has learned about the translations."""
    # Asked for again and again, and the same for all lines.
    _format: SequenceFormat = field(init=False, repr=False, compare=False)
    number: int | None = field(init=False, repr=False, compare=False)
    """The number of the direction that is translated: the one that `direction` says, or the only one; None: none was chosen."""

    def __post_init__(self) -> None:
        is_only = self.direction is None and len(self.data.directions) == 1
        object.__setattr__(self, "_format", SequenceFormat.of(self.data))
        object.__setattr__(self, "number", 0 if is_only else self.direction)

    @classmethod
    def of(
        cls,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        config: Config,
        decoding: DecodingConfig,
        seen: SeenLengths = UNKNOWN_LENGTHS,
        seen_words: Container[str] | None = None,
        qualities: Mapping[str, Quality] | None = None,
    ) -> "TextPipeline":
        """The pipeline of a model.

        Args:
            source_tokenizer, target_tokenizer: of the model.
            config: the one that the model was trained with.
            decoding: the settings of the translations.
            seen: the lengths of the texts of its training.
            seen_words, qualities: what else is known of it.
        """
        # The symbols of the synthetic tasks are no language.
        is_language = not isinstance(config.data, SequencesData)
        reads_known_spellings = decoding.known_spellings and is_language
        return cls(
            source_tokenizer,
            target_tokenizer,
            config.data,
            max_length=config.model.max_length,
            splits_sentences=decoding.split_sentences and is_language,
            spellings=KnownSpellings(source_tokenizer) if reads_known_spellings else None,
            keeps_text=decoding.keep_text and is_language,
            seen=seen,
            seen_words=seen_words,
            qualities=qualities or {},
        )

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

    @property
    def languages(self) -> Direction:
        """The languages of the chosen direction."""
        directions, number = self.data.directions, self.number
        return directions[chosen_direction(directions) if number is None else number]

    @property
    def checked_languages(self) -> Direction:
        """As `languages`, but `und` in place of one that its vocabulary has in another script than it is known to have, such as Irish in Ogham: nothing is known of such letters and words."""
        scripts = list(map(scripts_of_language, self.languages))
        if self.source_tokenizer is self.target_tokenizer:  # its letters are those of both
            scripts = [scripts[0] | scripts[1] if all(scripts) else frozenset()] * 2
        return Direction(
            *(
                UNKNOWN_LANGUAGE
                if known and _share_of_other_scripts(tokenizer, known) > _LARGEST_OTHER_SHARE
                else language
                for language, known, tokenizer in zip(
                    self.languages, scripts, (self.source_tokenizer, self.target_tokenizer), strict=True
                )
            )
        )

    @property
    def quality(self) -> Quality | None:
        """The calibration of the chosen direction; None if there is none."""
        return self.qualities.get(str(self.languages)) if self.qualities else None

    def in_small_letters(self, text: str) -> str:
        """A text in capital letters, or of any case, as the model reads it best: small letters, but for the first one and names.

        The vocabulary tells which words are names: Anna has fewer tokens than anna, if training has read it so.
        """
        tokenizer = self.source_tokenizer
        is_english = primary_language(self.languages.source) == "en"

        def spelled(match: re.Match[str]) -> str:
            small, large = match[0], match[0].capitalize()
            if small == "i" and is_english:
                return large
            num_small, num_large = (len(tokenizer.encode(f"x {each}")) for each in (small, large))
            return large if num_large < num_small else small

        return with_roman_numerals_of(text, _SMALL_WORD.sub(spelled, in_sentence_case(text)))

    def unseen_words(self, translation: Translation) -> tuple[str, ...]:
        """The words of the source of a translation that training has not seen, and whose translations are therefore guesses.

        Where it is not known what training has seen, the text of the calibration tells it: the words that it has, and those that
        the tokenizer does not divide, count as seen.
        """
        seen, quality = self.seen_words, self.quality
        if quality is not None and quality.unseen_words_are_green:
            return ()
        if seen is None and quality is not None and quality.words is not None:
            seen = WordsOfOneToken(quality.words, self.source_tokenizer)
        if seen is None or translation.is_untranslated:
            return ()
        # The model reads the normalised text, whose unknown words may have another spelling, and so did training.
        source, language = self.normalize_source(translation.source), self.languages.source
        unseen = unseen_words(source, translation.text, seen, language)
        if unseen and self.spellings is not None:
            unseen = unseen_words(self.spellings.respelled(source), translation.text, seen, language)
        return unseen

    def unseen_names(self, text: str) -> list[Span]:
        """The words in quotation marks of which training has seen none, as spans of a text."""
        if self.seen_words is None or not self.keeps_text:
            return []
        return [Span(*each, SpanKind.WORD) for each in unseen_names_in_quotes(text, self.seen_words)]

    def leaves_label(self, source: str, translation: str) -> bool:
        """Whether a label such as "Full Changelog: ..." stays as it is in a translation, though a word of it is no name.

        A single word is none if it ends as nouns of English do: "Availability: ..."

        The translator leaves a label if training has not seen a word of it: most are speakers.
        """
        if part_for_programs(source) is not None:
            return False
        seen, start = self.seen_words, end_of_marks(source)
        end = end_of_label(source, TextRange(start, len(source)))
        if seen is None or end is None or not translation.startswith(source[:end]) or is_full_name(source[start:end]):
            return False
        words = source[start:end].split()
        if len(words) == 1:
            is_english = primary_language(self.languages.source) == "en"
            return is_english and _ENDS_AS_NOUN.fullmatch(words[0]) is not None
        return any(len(word) > 3 and word in seen and self.is_mostly_small(word) for word in words)

    def is_title(self, text: str) -> bool:
        """Whether a text is two or three words with capital letters, such as "Sort By", that training has mostly read in small letters."""
        seen = self.seen_words
        return (
            seen is not None
            and _TITLE.fullmatch(text) is not None
            and all(word in seen and self.is_mostly_small(word) for word in text.rstrip(_MARKS_OF_TITLE).split())
        )

    def left_words(self, source: str, translation: str) -> tuple[str, ...]:
        """The words of a title of two or three words, such as "Save Changes", that stay in its translation, though training has seen them.

        The word of a label such as "Duration:" counts also if training has not seen it, but for a first name. A word that the target side of training has, too, such as Hotel, is a translation.
        """
        seen, is_label = self.seen_words, _LABEL_OF_ONE_WORD.fullmatch(source) is not None
        if not isinstance(seen, SeenWords) or seen.written is None or not (is_label or _TITLE.fullmatch(source)):
            return ()
        here, there = (text.rstrip(_MARKS_OF_TITLE).split() for text in (source, translation))
        return tuple(
            word
            for word in here
            if word in there
            and len(word) > 2
            and word not in seen.written
            and not is_first_name(word)
            and (self.is_mostly_small(word) if word in seen else is_label)
        )

    def is_mostly_small(self, word: str) -> bool:
        """Whether training has mostly read a word in small letters: a frequent one has few tokens, with small numbers."""
        small, large = (self.source_tokenizer.encode(f"x {each}") for each in (word.lower(), word.capitalize()))
        return (len(small), *small) < (len(large), *large)

    def prepare(self, line: str, prefix: str = "") -> SourceText:
        """A line as one text with its parts; see `prepared`."""
        return self.prepared(SourceText(line, prefix))

    def prepared(self, given: SourceText) -> SourceText:
        """The text with its parts: normalised, split into sentences, and tokenised.

        The translation of the first sentence begins with the prefix of the text, which is whole words; a blank text ignores it.

        Raises:
            DataError: the model cannot write this prefix.
        """
        text = self.normalize_source(given.text.rstrip("\r\n"))
        if is_blank(text):
            return given
        tokenizer, sentences = self.source_tokenizer, self._sentences(text)
        if self.data.cleaning.join_white_space:
            sentences = [(with_single_spaces(sentence), gap) for sentence, gap in sentences]
            text = "".join(gap + sentence for sentence, gap in sentences)
        as_written = [sentence for sentence, _ in sentences]
        # A model of subwords knows every spelling.
        if self.spellings is not None and (tokenizer.has_words or _SEVERAL_SPACES.search(text)):
            sentences = [(self.spellings.respelled(sentence), gap) for sentence, gap in sentences]
            text = "".join(gap + sentence for sentence, gap in sentences)
        parts: list[TextPart] = []
        for (sentence, source_gap), written in zip(sentences, as_written, strict=True):
            ids_of_all = self._ids_if_short(sentence)
            sentence_parts = self._short_parts(sentence) if ids_of_all is None else [(sentence, ids_of_all)]
            for number, (part, ids) in enumerate(sentence_parts):
                gap = self.gap(" " if number else source_gap, part) if parts else ""
                # Terms are found in the spelling of the line. Only parts of a long sentence stay in known spellings.
                spelled = written if len(sentence_parts) == 1 else part
                terms = () if self.glossary is None else self.glossary.find(spelled)
                request = with_terms(Request(ids), terms) if terms else Request(ids)
                parts.append(TextPart(request, part, spelled, gap, terms))
        if given.prefix:
            beginning = parts[0].request._replace(prefix=self.prefix_ids(given.prefix))
            parts[0] = parts[0]._replace(request=beginning)
        unknown_words: tuple[str, ...] = ()
        if any(tokenizer.unk_id in part.request.ids for part in parts):
            unknown_words = tuple(tokenizer.unknown_words(text))
        num_known_words = sum(tokenizer.count_words(one.request.ids) for one in parts) if tokenizer.has_words else 0
        return given._replace(
            parts=tuple(parts),
            read=text,
            is_cut=len(parts) > len(sentences),
            unknown_words=unknown_words,
            num_words=num_known_words + len(unknown_words),
        )

    def required_terms(self, text: str) -> tuple[RequiredTerm, ...]:
        """What the glossary requires of the translation of a normalised text; nothing without a glossary."""
        return () if self.glossary is None else self.glossary.find(text)

    def translation_by_terms(self, line: str) -> Translation | None:
        """The translation of a line that has nothing but terms of the glossary, protected spans, marks and spaces; else None.

        Each target term takes the place of its source term, with its capital letter at the beginning, or all letters of it.
        """
        required = self.required_terms(self.normalize_source(line))
        visible = masked(line, spans_outside_terms(line, required), HIDDEN) if required else line
        result, position = "", 0
        for each in required:
            start = visible.find(each.source, position)
            if start < 0 or has_word(visible[position:start]):
                return None
            starts = not has_letter(visible[:start]) and each.source[:1].isupper() and each.first_forms
            result += line[position:start] + (each.first_forms[0] if starts else each.forms[0])
            position = start + len(each.source)
        if not required or has_word(visible[position:]):
            return None
        result += line[position:]
        terms = applied_terms(result, required)
        if not all(term.is_applied for term in terms):
            return None
        if visible == line and line.isupper() and all(each.first_forms and len(each.source) > 1 for each in required):
            result = result.upper()
        return replace(copied(line, without_line_breaks(result)), terms=terms, is_of_terms=True)

    def restore(self, source: SourceText, hypotheses: Sequence[Sequence[Hypothesis]]) -> Translation:
        """Detokenise the hypotheses of each part, and join the parts.

        Args:
            source: the text with its parts.
            hypotheses: for each part, best first.
        """
        if not source.parts:
            return Translation(source.text, "", 0.0, ())
        texts: list[list[Alternative]] = []
        for part, part_hypotheses in zip(source.parts, hypotheses, strict=True):
            written = []
            for hypothesis in part_hypotheses:
                for_unknown: list[str] = []
                if part.terms or self.replacement is not None:
                    for_unknown = self.words_for_unknown(part, hypothesis)
                text = self.target_tokenizer.decode(hypothesis.ids, for_unknown)
                if part.ellipses:
                    text = with_ellipses(text, part.ellipses)
                if part.given.endswith(("...", "\u2026")):
                    text = with_final_mark_of(text, part.given)
                written.append(Alternative(without_line_breaks(text), hypothesis.score))
            # Of equal texts, the best score.
            texts.append(list(distinct(written)) if len(written) > 1 else written)
        is_divided = any(part.starts_inside or part.ends_inside for part in source.parts)
        is_untranslated = any(part.is_kept for part in source.parts)
        if is_divided or is_untranslated:
            texts = _in_form_of_clauses(source, texts, primary_language(self.languages.target))
        found = texts[0] if len(texts) == 1 else _joined_parts(source, texts)
        alternatives = distinct(found) if len(found) > 1 else tuple(found)
        # Without hypotheses the translation is empty, for example if drop-first gets one symbol.
        best = alternatives[0] if alternatives else Alternative("", 0.0)
        applied = [
            applied_terms(part_texts[0].text if part_texts else "", part.terms)
            for part_texts, part in zip(texts, source.parts, strict=True)
            if part.terms
        ]
        return Translation(
            source.text,
            *best,
            alternatives,
            source.unknown_words,
            source.num_words,
            terms=tuple(chain.from_iterable(applied)),
            is_cut=source.is_cut,
            is_divided=is_divided,
            is_untranslated=is_untranslated,
            doubts=source.doubts,
            is_repaired=source.is_repaired,
            pieces=_pieces(source, texts) if len(texts) > 1 else (),
        )

    @property
    def removes_invisible(self) -> bool:
        """Whether source text is read without invisible characters, and with plain spaces."""
        is_sentencepiece = self.source_tokenizer.parts.layout.is_sentencepiece
        return reads_without_invisible(self.data.cleaning, is_sentencepiece=is_sentencepiece)

    def normalize_source(self, text: str) -> str:
        """Normalise source text as before training."""
        removes_invisible = not text.isascii() and self.removes_invisible
        return normalize(text, self.data.cleaning, removes_invisible=removes_invisible)

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
        tokenizer, number = self.source_tokenizer, self.number
        if number is None:
            number = chosen_direction(self.data.directions)  # says that there are several
        return tuple(self._format.source(tokenizer.encode(text), tokenizer, number))

    def target_ids(self, text: str) -> TokenIds:
        """The token ids of normalised target text, with [EOS] if the model predicts one."""
        ids = self.target_tokenizer.encode(text)
        return tuple(self._format.with_end(ids, self.target_tokenizer.eos_id))

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

    def _sentences(self, text: str) -> Sequence[tuple[str, str]]:
        """The sentences of a normalised text, each with the white space before it; one, if they are not translated by themselves."""
        if not self.splits_sentences or is_one_sentence(text):
            return [(text, "")]
        sentences = split_sentences(text, self.languages.source)
        if self.seen_words is not None and _MAY_LACK_A_SPACE.search(text):
            known = self.seen_words
            sentences = [part for each in sentences for part in split_at_missing_spaces(each, known)]
        if self.keeps_text and has_spaces(self.languages.target):
            sentences[1:] = map(_without_lone_quote, sentences[1:])
        return sentences

    def gap(self, marks: str, second: str) -> str:
        """What stands between two translations: white space, or marks as the target language writes them.

        Args:
            marks: what stands between their sources.
            second: the second source.
        """
        mark, target_language = marks.strip(), self.languages.target
        if not mark:
            return without_line_breaks(gap_between(marks, *self.languages, second))
        language = primary_language(target_language)
        if mark in _NARROW_MARKS:
            if not has_spaces(target_language):
                return mark
            marks = _NARROW_MARKS[mark]
        marks = marks.translate(_PLAIN_MARKS)
        if language in _WITH_ARABIC_MARKS:
            return without_line_breaks(marks.translate(_ARABIC_MARKS))
        is_pause = marks.strip() in (",", ";", ":")
        if is_pause and language in ("zh", "ja", "yue"):
            return marks.strip().translate(_WIDE_MARKS)
        return without_line_breaks(marks)

    @property
    def comma(self) -> str:
        """A comma as the source language writes it, with the white space behind it."""
        language = primary_language(self.languages.source)
        if language in _WITH_ARABIC_MARKS:
            return ", ".translate(_ARABIC_MARKS)
        return {"ja": "\u3001", "zh": "\uff0c", "yue": "\uff0c"}.get(language, ", ")

    def _short_parts(self, text: str) -> list[tuple[str, TokenIds]]:
        """The parts of a text with more than `max_length` tokens, and their token ids."""
        parts = split_line(text, lambda part: self._ids_if_short(part) is not None)
        # A single character cannot be cut, and may still have too many tokens.
        return [(part, self.source_ids(part)[: self.max_length]) for part in parts]

    def _ids_if_short(self, text: str) -> TokenIds | None:
        """The token ids of a text; None if it has more than `max_length`."""
        # A very long text is surely too long, so it is not tokenised.
        if len(text) > MAX_CHARACTERS_PER_TOKEN * self.max_length:
            return None
        ids = self.source_ids(text)
        longest = len(ids)
        if self.also_read_by:
            added = longest - len(self.source_tokenizer.encode(text))
            others = [len(one.encode(text)) + added for one in self.also_read_by]
            longest = max(longest, *others)
        return ids if longest <= self.max_length else None

    def words_for_unknown(self, part: TextPart, hypothesis: Hypothesis) -> list[str]:
        """What is shown in place of each [UNK] of a hypothesis of one part; nothing: [UNK] itself.

        Args:
            part: if [UNK] stands for some of its terms, each [UNK] of the hypothesis does.
            hypothesis: explained if it contains [UNK] and `replacement` is given.
        """
        term_texts = texts_of_slots(part.terms) if part.terms else []
        if term_texts or self.replacement is None:
            return term_texts
        return self.replacement.words(part.text, part.request.ids, hypothesis, self.source_tokenizer)


def _in_form_of_clauses(
    source: SourceText, texts: Sequence[list[Alternative]], target_language: str
) -> list[list[Alternative]]:
    """The texts of the parts: those of clauses in the form of clauses, and those that are kept as they were given."""
    if all(part.is_kept for part in source.parts):
        whole = without_line_breaks(source.text.rstrip("\r\n"))
        return [[Alternative(whole, 0.0)], *([Alternative("", 0.0)] for _ in texts[1:])]
    finished = []
    for part, part_texts in zip(source.parts, texts, strict=True):
        if part.is_kept:
            finished.append([Alternative(part.given, 0.0)])
        elif part.starts_inside or part.ends_inside:
            finished.append([_in_form_of(part, each, target_language) for each in part_texts])
        else:
            finished.append(part_texts)
    return finished


def _in_form_of(clause: TextPart, translated: Alternative, target_language: str) -> Alternative:
    """The translation of a clause with no capital letter and no full stop but those of its sentence."""
    text = translated.text
    if clause.ends_inside:
        text = without_closing_mark(text)
    if clause.starts_inside:
        text = as_inner_part(text, clause.given, target_language=target_language)
    elif clause.given[:1].isupper():
        text = text[:1].upper() + text[1:]
    return translated._replace(text=text)


def _pieces(source: SourceText, texts: Sequence[Sequence[Alternative]]) -> tuple[TranslatedPiece, ...]:
    """The parts of a text with their best translations; nothing for a text that stays as a whole."""
    if not all(texts) or all(part.is_kept for part in source.parts):
        return ()
    return tuple(
        TranslatedPiece(part.given, part_texts[0].text) for part, part_texts in zip(source.parts, texts, strict=True)
    )


def _joined_parts(source: SourceText, texts: Sequence[Sequence[Alternative]]) -> list[Alternative]:
    """The texts of the parts joined: the n-th best of the line joins the n-th best of each part that is not empty."""
    found = []
    for nth_best in nth_best_of_all(texts):
        joined = ""
        for part, each in zip(source.parts, nth_best, strict=True):
            joined += (part.gap if joined else "") + each.text if each.text else ""
        found.append(Alternative(joined, sum(each.score for each in nth_best)))
    return found


# Known spellings: a word that is not in the vocabulary, read as one that differs only in case, accents or marks.

_APOSTROPHES = str.maketrans({"'": "\u2019", "\u2019": "'"})
_SEVERAL_SPACES = re.compile(r"(?<=\S)\s{2,}(?=\S)")


@dataclass(frozen=True)
class KnownSpellings:
    """The spellings of a vocabulary of words."""

    tokenizer: Tokenizer
    """Of the source. One of subwords knows every spelling, so its texts do not change."""

    def respelled(self, text: str) -> str:
        """The text with several spaces as one, and with unknown words in a spelling that the vocabulary has.

        Words that are known, or that are unknown in every spelling, do not change.
        """
        text = _SEVERAL_SPACES.sub(" ", text)
        if not self.tokenizer.has_words or self.tokenizer.knows(text):
            return text
        pieces: list[str] = []
        place, is_first = 0, True
        for spelled in self.tokenizer.words(text):
            word = spelled.strip()
            start = text.find(word, place)
            if not word or start < 0:
                continue
            pieces += [text[place:start], self._known(word, is_first=is_first)]
            place = start + len(word)
            is_first = is_first and not word[0].isalnum()
        return "".join([*pieces, text[place:]])

    def _known(self, word: str, *, is_first: bool) -> str:
        if self._knows_word(word):
            return word
        return next(filter(self._knows_word, self._spellings(word, is_first=is_first)), word)

    def _spellings(self, word: str, *, is_first: bool) -> Iterator[str]:
        """Other spellings of a word or mark, the most similar first."""
        capitalised, small = word.capitalize(), word.lower()
        in_other_cases = [capitalised, small] if is_first else [small, capitalised]
        for spelling in [word, *in_other_cases]:
            yield spelling
            yield spelling.translate(_APOSTROPHES)
        if word in TYPED_MARKS:
            yield TYPED_MARKS[word]
        for spelling in [word, *in_other_cases]:
            yield self._with_accents.get(_plain_spelling(spelling), spelling)

    def _knows_word(self, word: str) -> bool:
        # An elided word such as dov' is one word only in a text where a letter follows, so it is looked up.
        return word in self._words or self.tokenizer.knows(word)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(map(str.strip, self.tokenizer.entries))

    @cached_property
    def _with_accents(self) -> dict[str, str]:
        """For each word of the vocabulary without its accents, the word; of several, the most frequent one."""
        words: dict[str, str] = {}
        for entry in self.tokenizer.entries[len(self.tokenizer.special_tokens) :]:
            word = entry.strip()
            words.setdefault(_plain_spelling(word), word)
        return words


def _plain_spelling(word: str) -> str:
    return without_accents(word).translate(_APOSTROPHES)
