"""The translator: lines in, lines out, in the same number and order."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count, islice, repeat
from typing import TYPE_CHECKING

from transformer_cli.config import DecodingConfig, Direction, SequencesData
from transformer_cli.config.decoding import WINDOW_LINES
from transformer_cli.decoding.checks.acronyms import MAY_BE_ACRONYM, lost_acronyms
from transformer_cli.decoding.checks.brackets import BRACKET
from transformer_cli.decoding.checks.doubts import (
    ACRONYM,
    BESIDE_PLACEHOLDER,
    DOUBTS_WITH_WORDS,
    ENCLOSED,
    LABEL,
    LEAVES,
    MADE_UP,
    MARKS,
    UNSEEN,
    lacks_words_at_placeholders,
    lost_marks,
    without_words,
)
from transformer_cli.decoding.checks.omissions import regain_lost_words, with_lost_words, with_omissions
from transformer_cli.decoding.checks.quality import Quality
from transformer_cli.decoding.checks.repair import Repair, TextKeeper, in_clauses, loses_text
from transformer_cli.decoding.checks.reverse_reading import Reader, read_in_reverse, reverse_reader
from transformer_cli.decoding.details import with_details, with_explained_unknown
from transformer_cli.decoding.end_marks import translated_as_sentences
from transformer_cli.decoding.engine import (
    Engine,
    ExplainingEngine,
    Hypothesis,
    LimitedEngine,
    Request,
)
from transformer_cli.decoding.glossary import Glossary
from transformer_cli.decoding.line_form import (
    SMALL_LETTER,
    LineForm,
    translated_with_spans,
    with_blank_lines,
    with_case_of,
    with_fixed_spaces,
    with_lost_brackets,
    with_quotes_of_one_kind,
)
from transformer_cli.decoding.target_spelling import with_target_spelling
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translation import (
    SourceText,
    Translation,
    left_out,
    seeded,
    through_pivot,
)
from transformer_cli.process.errors import DataError, TfmError, UsageError
from transformer_cli.text.languages import chosen_direction, is_plain, primary_language
from transformer_cli.text.normalization import has_word
from transformer_cli.text.seen_words import SeenWords, made_up_words
from transformer_cli.text.sentences import PLAIN_END
from transformer_cli.text.spans import has_span_sign, is_enclosed

if TYPE_CHECKING:  # a translation with another library does not wait for PyTorch or numpy
    from transformer_cli.decoding.memory import TranslationMemory
    from transformer_cli.decoding.minimum_bayes_risk import Utility
    from transformer_cli.decoding.rescoring import Rescorer


logger = logging.getLogger(__name__)

_ALL_LINE_REPAIRS = 2
MAX_SHOWN_LINES = 5
"""In a message."""


@dataclass(frozen=True, slots=True)
class Translator:
    """A text pipeline and an engine: the pipeline prepares lines, the engine translates their token ids.

    A blank line stays blank. Indentation, list marks and columns stay as they are (`decoding.keep_layout`). Each
    sentence of a line is translated by itself (`decoding.split_sentences`), and the translations are joined with the
    white space of the line. A sentence with more tokens than the model can read is cut into parts. `[UNK]` in a
    translation stands for a word that is not in the vocabulary.

    A line goes down through these methods and up again:
        translate_window    what a memory or a glossary knows, and messages
        _by_one_model       one model, or `_by_two_models`
        _in_form_of_lines   marks at the beginning of a line, columns, brackets
        translate_texts     token ids, repairs, and text again
        _search_new_parts   the engine
    """

    pipeline: TextPipeline
    engine: Engine
    decoding: DecodingConfig
    protects_spans: bool = False
    """Whether URLs, e-mail addresses, numbers, placeholders, paths and tags come back unchanged: each of them is in the
    translation as often as in the line."""
    is_strict: bool = False
    """Whether a sentence with more tokens than the model can read is an error; else it is translated in parts."""
    utility: "Utility | None" = None
    """What minimum Bayes risk compares candidates with (`decoding.mbr`); None: chrF."""
    memory: "TranslationMemory | None" = None
    """Texts whose translations are reused, so that the model does not translate them; None: none are known."""
    rescorers: "tuple[Rescorer, ...]" = ()
    """The further models of `decoding.rescore`."""
    reports_lines: bool = True
    """Whether messages name the lines of which sentences were cut or copied; a document names other places."""
    reports_not_green: bool = True
    """Whether messages tell why a translation is not green; at the prompt, `:why` tells it."""
    estimates: bool = False
    """Whether each translation gets the details that an estimate of its quality reads, and its `estimate` if the direction has
    a calibration (`tfm calibrate`); this takes a second pass over each source and its translation."""
    num_samples: int | None = None
    """With `estimates`: the number of samples with which each translation is compared; None: as many as in the calibration."""
    reverse: str | None = None
    """With `estimates`: the run of the reverse direction that reads sources after their translations; None: the calibration's."""
    load_reader: Callable[[str], Reader] | None = field(default=None, compare=False)
    """Loads the model of another run, once."""
    only_green: bool = False
    """Whether a translation that is not green is left out: its text is empty. Only with `estimates` and a calibration."""
    num_line_repairs: int = _ALL_LINE_REPAIRS
    """How many rounds of repairs a line may have: 2 are all of them, 1 brings back protected spans alone. What a repair asks for has
    one round less than its line: without this bound, the searches for a line with many signs multiply from repair to repair."""
    before: "Translator | None" = None
    """The translator into the language that this one reads, the pivot: lines go through it first. See `after`."""

    def translate(
        self,
        lines: Iterable[str],
        *,
        to: str | None = None,
        from_: str | None = None,
        prefixes: Iterable[str] | None = None,
        num_before: int = 0,
        with_details: bool = False,
    ) -> Iterator[Translation]:
        """One translation per line, in order; reads `WINDOW_LINES` lines ahead.

        Args:
            to: the target language, for a model that translates into several.
            from_: the source language, for a model that translates from several into `to`.
            prefixes: for each line, the text with which its translation begins: whole words, or an empty string. It
                follows the indentation and the list mark of the line.
            num_before: the number of lines of the same input that were translated before; `decoding.sampling` draws
                other samples for each line of an input, and messages name lines by their numbers.
            with_details: whether each translation gets its `details` with a word alignment; this takes a second pass of the model over each
                source and its best translation. The model then reads whole lines: no layout is kept, no span protected.

        Raises:
            UsageError: no direction of the model has these languages, or several have them; or the engine cannot
                explain its translations; or the settings do not keep the terms of a glossary; or two translators in a
                row (`after`) cannot do what is asked.
            DataError: there are not as many prefixes as lines, or the model cannot write one of them; or a sentence
                is too long for the model, and the translator is strict.
        """
        for texts in (lines, prefixes):
            if isinstance(texts, str | bytes):
                raise TypeError(f"give a list of lines, not {_described(texts)}")
        line_prefixes = None if prefixes is None else iter(prefixes)
        if self.pipeline.glossary is not None:
            self._check_keeps_terms()
        if self.before is not None:
            self._check_two_models(with_details=with_details)
        if with_details or self.estimates:
            self.explaining_engine()  # refuses an engine that cannot explain, before anything is translated
        towards = self.towards(to, from_)
        if self.estimates:
            reverse_reader(towards)  # refuses a run that is not there
        windows = towards._windows(iter(lines), line_prefixes, num_before)
        return chain.from_iterable(towards.translate_window(window, with_details=with_details) for window in windows)

    @property
    def repairs(self) -> bool:
        """Whether doubtful translations are searched again (`decoding.repair`)."""
        options = self.decoding
        is_plain = not (options.sampling or options.diversity or options.mbr)
        return options.repair and is_plain and not isinstance(self.pipeline.data, SequencesData)

    def explaining_engine(self) -> ExplainingEngine:
        """The engine, if it can explain translations; else an error."""
        if isinstance(self.engine, ExplainingEngine):
            return self.engine
        raise UsageError(
            "this engine gives no probabilities and no attention weights of its translations",
            hint="translate without details, or with the engine that runs on PyTorch",
        )

    def towards(self, to: str | None, from_: str | None = None) -> "Translator":
        """The translator into the language `to`, from the language `from_`; both None: it keeps its direction, or takes the only one.

        Raises:
            UsageError: the model has no such direction, or several.
        """
        pipeline = self.pipeline
        if to is None and from_ is None and pipeline.number is not None:
            return self
        if isinstance(pipeline.data, SequencesData) and (to or from_):
            what = f"the model of task {pipeline.data.task} translates no language"
            raise UsageError(what, hint="leave out --to and --from")
        direction = chosen_direction(pipeline.data.directions, to=to, from_=from_)
        return replace(self, pipeline=replace(pipeline, direction=direction))

    @property
    def languages(self) -> Direction:
        """From the language of the lines into that of their translations."""
        source = self.pipeline if self.before is None else self.before.pipeline
        return Direction(source.languages.source, self.pipeline.languages.target)

    def after(self, first: "Translator") -> "Translator":
        """The translator of two models in a row: what `first` writes, in the pivot language, is what this one reads.

        Lines stay aligned. Alternatives are those of this model for the best translation of `first`. A line that `first`
        cannot translate stays as it is. There are no details, no estimates and no glossary: each describes one model.

        Args:
            first: of one direction; its target language is the source language of this translator.

        Raises:
            UsageError: the languages do not fit, or this translator has a glossary.
        """
        written, read = first.pipeline.languages, self.pipeline.languages
        if primary_language(written.target) != primary_language(read.source):
            raise UsageError(
                f"the first model translates {written}, and the second one {read}: the second must read what the first writes"
            )
        decoding = first.decoding.model_copy(update={"num_best": 1})
        second = replace(self, before=replace(first, decoding=decoding), estimates=False)
        second._check_two_models(with_details=False)
        return second

    def _check_two_models(self, *, with_details: bool) -> None:
        """Refuse what describes one model only."""
        if with_details:
            raise UsageError(
                "tokens, probabilities and word alignment describe one model, not two in a row",
                hint="ask each of the two models for its step",
            )
        if self.pipeline.glossary is not None:
            raise UsageError(
                "a glossary has terms of the source language, but the second of two models reads the pivot language",
                hint="leave out the glossary, or translate in two commands, with a glossary for each step",
            )

    def with_glossary(self, glossary: Glossary) -> "Translator":
        """The translator whose translations contain the terms of a glossary.

        Where a sentence contains a source term as whole words, its translation contains the target term as whole words, as
        often as the source term stands there.

        Raises:
            UsageError: the model translates no language; or the settings ask for sampling, for diverse beam search or for minimum Bayes risk.
            DataError: a term is empty, stands for two target terms, or cannot be written by the model.
        """
        self._check_keeps_terms()
        return replace(self, pipeline=self.pipeline.with_glossary(glossary.without_header(self.languages)))

    def _check_keeps_terms(self) -> None:
        """Refuse what does not keep the terms of a glossary."""
        reasons = {
            "sampling": "needs beam search, but decoding.sampling draws translations at random",
            "diversity": "needs plain beam search, but decoding.diversity asks for diverse beam search",
            "mbr": "needs plain beam search, but decoding.mbr chooses what most candidates resemble: with terms, many are poor",
        }
        for name, reason in reasons.items():
            if getattr(self.decoding, name) is not None:
                raise UsageError(f"a glossary {reason}", hint=f"leave out decoding.{name} or the glossary")

    def in_direction(self, number: int) -> "Translator":
        """The translator of the direction with this index in `data.directions`."""
        return replace(self, pipeline=replace(self.pipeline, direction=number))

    def _windows(
        self, lines: Iterator[str], prefixes: Iterator[str] | None, num_before: int
    ) -> Iterator[list[SourceText]]:
        """Windows of lines, each read when it is asked for."""
        num_read = 0
        while window := list(islice(lines, WINDOW_LINES)):
            for number, line in enumerate(window, num_read + 1):
                if not isinstance(line, str):
                    raise TypeError(f"line {number}: a string is expected, not {_described(line)}")
            window_prefixes = list(islice(repeat("") if prefixes is None else prefixes, len(window)))
            if len(window_prefixes) < len(window):
                raise DataError(f"there are {num_read + len(window_prefixes)} prefixes, but more lines")
            yield list(map(SourceText, window, window_prefixes, count(num_before + num_read)))
            num_read += len(window)
        if prefixes is not None and next(prefixes, None) is not None:
            raise DataError(f"there are {num_read} lines, but more prefixes")

    def translate_window(self, lines: Sequence[SourceText], *, with_details: bool = False) -> list[Translation]:
        """One translation per line, in order; see `translate`, which makes windows of lines.

        Args:
            lines: as many as are translated together; they follow each other in their input.
            with_details: as of `translate`.
        """
        known: Sequence[Translation | None] = [None] * len(lines)
        if self.memory is not None or self.pipeline.glossary is not None:
            known = self._known_without_model(lines, with_terms=not with_details)
        unknown = [line for line, each in zip(lines, known, strict=True) if each is None]
        if self.before is None:
            answers = iter(self._by_one_model(unknown, with_details=with_details))
        else:
            answers = iter(self._by_two_models(self.before, unknown))
        translations = [next(answers) if each is None else each for each in known]
        # Without a memory, each of two models has warned of its own translations.
        if self.reports_lines and lines and (self.before is None or self.memory is not None):
            warn_of_lines(
                list(enumerate(translations, lines[0].line_number + 1)),
                max_length=self.pipeline.max_length,
                is_strict=self.is_strict,
                only_green=self.only_green,
                quality=self.pipeline.quality if self.estimates and self.reports_not_green else None,
            )
        if self.only_green:
            translations = [left_out(each) if each.is_not_green else each for each in translations]
        return translations

    def _known_without_model(self, lines: Sequence[SourceText], *, with_terms: bool) -> list[Translation | None]:
        """The translations of those lines that the memory has, or that have nothing but terms of the glossary; None for the others.

        Args:
            with_terms: whether a line of terms alone counts as known; with details, the model reads it.
        """
        known: list[Translation | None] = []
        for line in lines:
            translation = None
            if self.memory is not None and not line.prefix:
                translation = self.memory.recall(line.text, line.line_number + 1 if self.reports_lines else None)
            if translation is None and with_terms and not line.prefix:
                translation = self.pipeline.translation_by_terms(line.text)
            known.append(translation)
        return known

    def _by_one_model(self, lines: Sequence[SourceText], *, with_details: bool) -> list[Translation]:
        """The translations of lines by the model: first of the texts in them, then again of the lines that lost a part; and their estimates."""
        explainer = self.explaining_engine() if with_details else None
        # The symbols of the synthetic tasks are no language.
        is_language = not isinstance(self.pipeline.data, SequencesData)
        keeps_layout = self.decoding.keep_layout and is_language
        if explainer is not None or not (keeps_layout or self.protects_spans):
            translations = self.translate_texts(lines, explainer)
            if not all(has_word(line.text) for line in lines):
                translations = with_blank_lines(self.pipeline, lines, translations)
        else:
            form = LineForm(self.pipeline, keeps_layout, self.protects_spans)
            translations = self._in_form_of_lines(lines, form)
        if explainer is None and self.repairs and self.num_line_repairs:
            # Such a line has nothing that a repair of whole lines could bring back; most lines are so.
            is_sound = (
                not each.doubts and line.text[1:].islower() and is_plain(line.text)
                for line, each in zip(lines, translations, strict=True)
            )
            if not all(is_sound):
                from transformer_cli.decoding.checks.line_repairs import with_lost_parts

                # What is asked again is no line of the input, so the memory does not have it.
                again = replace(self, memory=None, num_line_repairs=self.num_line_repairs - 1)
                translations = with_lost_parts(again, lines, translations)
        if explainer is None and not all(line.text.isascii() for line in lines):
            translations = list(map(with_fixed_spaces, lines, translations))
        if explainer is None and self.repairs and is_language:
            # Most lines have no quotation marks, no capital letters inside and no signs.
            translations = [
                each
                if line.text[1:].islower()
                and is_plain(line.text)
                and '"' not in each.text
                and not SMALL_LETTER.search(line.text)
                else self._as_written(line, each)
                for line, each in zip(lines, translations, strict=True)
            ]
        if self.repairs or self.estimates:
            translations = list(map(self.with_doubts_of_line, translations))
        if self.repairs and not all(PLAIN_END.search(line.text) for line in lines):
            from transformer_cli.decoding.checks.copied_words import with_copied_words

            translations = with_copied_words(self, translations)
        return translations if self.num_line_repairs < _ALL_LINE_REPAIRS else self._with_lost_words(translations)

    def _as_written(self, line: SourceText, translation: Translation) -> Translation:
        """The translation of a line with quotation marks of one kind, with the case of some words of the line, and the target's spelling."""
        target = self.pipeline.languages.target
        if '"' in translation.text and not translation.terms:
            translation = with_quotes_of_one_kind(line, translation)
        may_have_other_case = not line.text[1:].islower() or SMALL_LETTER.search(line.text) is not None
        if may_have_other_case and not translation.terms:
            translation = with_case_of(line, translation, target)
        return translation if is_plain(line.text) else with_target_spelling(line, translation, target)

    def _with_lost_words(self, translations: list[Translation]) -> list[Translation]:
        """The translations of lines of the input, with doubts about those that have lost words of their sources; and their estimates.

        With an estimate, more words are found. A repair chooses between translations before: it would choose others with estimates.
        """
        if self.estimates:
            translations = with_omissions(self, read_in_reverse(self, translations))
        if self.repairs:
            translations = with_lost_words(self, translations, self.pipeline.languages)
        quality = self.pipeline.quality if self.estimates else None
        return [replace(each, estimate=quality.estimate(each)) for each in translations] if quality else translations

    def _by_two_models(self, before: "Translator", lines: Sequence[SourceText]) -> list[Translation]:
        """The translations of lines through the pivot language: by the first model, and then by this one."""
        reports_lines = self.reports_lines and self.memory is None
        first = replace(
            before, protects_spans=self.protects_spans, is_strict=self.is_strict, reports_lines=reports_lines
        )
        second = replace(self, before=None, memory=None, reports_lines=reports_lines)
        pivots = first.translate_window([line._replace(prefix="") for line in lines])
        translations = second.translate_window(
            [line._replace(text=each.text) for line, each in zip(lines, pivots, strict=True)]
        )
        return [through_pivot(one, other, self.languages) for one, other in zip(pivots, translations, strict=True)]

    def _in_form_of_lines(self, lines: Sequence[SourceText], form: LineForm) -> list[Translation]:
        """The translations of the texts of lines, joined as the lines are."""
        # A plain line is one text, and needs no look at its form.
        split_lines = [None if is_plain(line.text) else form.split(line) for line in lines]
        texts: list[SourceText] = []
        for line, split in zip(lines, split_lines, strict=True):
            texts += [line] if split is None else split.texts
        translations = self.translate_in_form(texts, form)
        if self.repairs and any(BRACKET.search(each.text) for each in texts):
            translations = with_lost_brackets(self, texts, translations, form)
        remaining = iter(translations)
        return [
            next(remaining) if line is None else form.join(line, [*islice(remaining, len(line.texts))])
            for line in split_lines
        ]

    def with_doubts_of_line(self, translation: Translation) -> Translation:
        """The translation of a line, with the doubts that only the whole line shows, and that no further search would end."""
        source, text, doubts = translation.source, translation.text, translation.doubts
        if doubts:  # a line that was translated again, with protected spans, may have them already
            doubts = without_words(doubts)
        is_odd = self.repairs and not is_plain(source)
        # Of a plain text, only the question mark can be lost.
        may_lack_marks = is_odd or (self.repairs and "?" in source and "?" not in text)
        if may_lack_marks and not any(doubt.startswith(MARKS) for doubt in doubts):
            lost = lost_marks(source, text, self.languages.target)
            doubts += (f"{MARKS}: {' '.join(lost)}",) if lost else ()
        if is_odd:
            if BESIDE_PLACEHOLDER not in doubts and has_span_sign(source):
                is_lost = lacks_words_at_placeholders(source, text, self.languages)
                doubts += (BESIDE_PLACEHOLDER,) if is_lost else ()
            if text == source and ENCLOSED not in doubts and is_enclosed(source):
                doubts += (ENCLOSED,)
            if ":" in source and LABEL not in doubts and self.pipeline.leaves_label(source, text):
                doubts += (LABEL,)
        words, seen = {UNSEEN: self.pipeline.unseen_words(translation)}, self.pipeline.seen_words
        if self.repairs and not translation.is_untranslated:
            if MAY_BE_ACRONYM.search(source):
                words[ACRONYM] = lost_acronyms(self.pipeline, translation)
            words[LEAVES] = self.pipeline.left_words(source, text)
        written = seen.written if isinstance(seen, SeenWords) else None
        if written is not None and not (translation.is_untranslated or translation.is_from_memory):
            given = (source, *(term.target for term in translation.terms))
            words[MADE_UP] = made_up_words(" ".join(given), text, written)
        doubts += tuple(f"{doubt}: {', '.join(named)}" for doubt, named in words.items() if named)
        return translation if doubts == translation.doubts else replace(translation, doubts=doubts)

    def with_estimates_if_possible(self) -> "Translator":
        """The translator whose translations have estimates, if the direction has a calibration that promises something.

        Without, and with a warning, if no threshold keeps the promise, or the reverse model of the calibration is not there.
        """
        quality = self.pipeline.quality
        if quality is not None and quality.threshold is None:
            logger.warning(
                "%s: no threshold keeps the promise of the calibration, so translations are not marked",
                self.pipeline.languages,
            )
        if quality is None or quality.threshold is None or not isinstance(self.engine, ExplainingEngine):
            return self
        estimating = replace(self, estimates=True)
        try:
            reverse_reader(estimating)
        except TfmError as error:
            logger.warning("%s, so translations are not marked; %s", error.message, error.hint)
            return self
        return estimating

    def translate_in_form(self, texts: Sequence[SourceText], form: LineForm) -> list[Translation]:
        """The translations of texts, with the letters and the ends of their texts, and with the protected spans that they name."""
        if any(each.spans for each in texts):
            return translated_with_spans(self, texts, form)
        # Most texts begin and end as their translations do, and the model has read them as they stand.
        plain = [PLAIN_END.search(text.text) and not (text.written or text.text[0].islower()) for text in texts]
        found = self.translate_texts(texts) if all(plain) else translated_as_sentences(self, texts, form)
        return [
            each if is_plain else form.finished(text, each)
            for text, each, is_plain in zip(texts, found, plain, strict=True)
        ]

    def translate_texts(
        self, texts: Sequence[SourceText], explainer: ExplainingEngine | None = None
    ) -> list[Translation]:
        """One translation per text, in order: token ids, the engine, repairs, and text again.

        Args:
            explainer: what gives each translation its details; None: they get none.
        """
        pipeline = self.pipeline
        sources = whole = list(map(pipeline.prepared, texts))
        if pipeline.keeps_text:
            sources = [in_clauses(pipeline, source) for source in sources]
        if (sampling := self.decoding.sampling) is not None:
            sources = [seeded(source, sampling.seed) for source in sources]
        # The repairs below put divided texts into `sources`, and what is found for their parts into `hypotheses`.
        hypotheses: dict[Request, list[Hypothesis]] = {}
        self._search_new_parts(sources, hypotheses)
        if pipeline.keeps_text:
            search_new = partial(self._search_new_parts, hypotheses=hypotheses)
            keeper = TextKeeper(pipeline, self.decoding, search_new, sources, hypotheses)
            # The words of a line with details are linked by their places, so none of its marks changes.
            keeper.apply(whole, changes_marks=explainer is None, divides_doubtful=self.repairs)
        if self.repairs:
            engine = self.engine if isinstance(self.engine, ExplainingEngine) else None
            regain_lost_words(pipeline, engine, sources, hypotheses, self.decoding)
            Repair(pipeline, pipeline.languages, pipeline.quality, self.decoding, self.search_with, engine).apply(
                sources, hypotheses
            )
        if pipeline.replacement is not None:
            hypotheses = with_explained_unknown(
                self.explaining_engine(),
                hypotheses,
                unk_id=pipeline.target_tokenizer.unk_id,
                batch_tokens=self.decoding.batch_tokens,
            )
        found = [[hypotheses[part.request] for part in source.parts] for source in sources]
        if pipeline.keeps_text and self.decoding.num_best > 1:
            pairs = zip(sources, found, strict=True)
            found = [_without_short_rivals(pipeline, *pair, self.decoding) for pair in pairs]
        translations = list(map(pipeline.restore, sources, found))
        if explainer is not None or self.estimates:
            return with_details(self, sources, hypotheses, translations, explainer)
        return translations

    def _search_new_parts(self, sources: Sequence[SourceText], hypotheses: dict[Request, list[Hypothesis]]) -> None:
        """Translate those parts of some texts that have no hypotheses yet; equal parts are translated once."""
        requests = dict.fromkeys(part.request for source in sources for part in source.parts)
        new = [request for request in requests if request not in hypotheses]
        if new:
            is_chosen = self.decoding.mbr is not None or (self.rescorers and self.decoding.rescore is not None)
            options = self.decoding
            if self.repairs:  # `regain_lost_words` chooses from the whole beam
                options = options.model_copy(update={"num_best": options.beam_size})
            found = self._best_candidates(new) if is_chosen else self.engine.translate(new, options)
            hypotheses.update(zip(new, found, strict=True))
        if self.pipeline.glossary is not None:
            new_hypotheses = {request: hypotheses[request] for request in new}
            from transformer_cli.decoding.terms_in_place import with_terms_in_place

            hypotheses |= with_terms_in_place(self, sources, new_hypotheses)

    def _best_candidates(self, parts: Sequence[Request]) -> list[list[Hypothesis]]:
        """The best hypotheses of each part by the scores of several models (`decoding.rescore`) or by minimum Bayes risk (`decoding.mbr`)."""
        options = self.decoding
        asked = options.model_copy(update={"num_best": options.num_candidates})
        candidates = self.engine.translate(parts, asked)
        if self.rescorers and options.rescore is not None:
            from transformer_cli.decoding.rescoring import rescored

            best = rescored(self, parts, candidates)
        else:
            from transformer_cli.decoding.minimum_bayes_risk import by_expected_utility  # numpy

            read = self.pipeline.source_tokenizer.decode
            write, utility = self.pipeline.target_tokenizer.decode, self.utility
            best = [
                by_expected_utility(part_candidates, write, utility and partial(utility, read(part.ids)))
                for part, part_candidates in zip(parts, candidates, strict=True)
            ]
        return [part_candidates[: options.num_best] for part_candidates in best]

    def search_with(self, parts: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        """The hypotheses of a search with other options than those of `decoding`."""
        engine = self.engine
        if isinstance(engine, LimitedEngine):
            engine = engine.with_all_settings()
        return engine.translate(parts, options)


def _described(value: object) -> str:
    kinds = {str: "a string", bytes: "bytes", type(None): "None"}
    return kinds.get(type(value), f"a value of the type {type(value).__name__}")


_SAID_OF_MARKS = {
    "is_divided": "a sentence was translated clause by clause, because it is longer than those of the training, "
    "or because its translation as a whole was doubtful: look whether words are missing",
    "is_untranslated": "a sentence or a part of it was left as it is, because the model loses text of it or cannot read it",
    "is_partly_copied": "a sentence was left as it is, because the model loses the protected parts of it",
    "is_in_pieces": "a sentence was translated in pieces around the parts that must stay, so read it again",
}


def warn_of_lines(
    numbered: Sequence[tuple[int, Translation]],
    *,
    max_length: int,
    is_strict: bool,
    only_green: bool,
    quality: Quality | None = None,
) -> None:
    """Warn of lines that a person should look at, with their numbers.

    Args:
        numbered: translations, each with the number of its line, from 1.
        max_length: how many tokens the model reads at once.
        is_strict: whether a sentence that was cut is an error.
        only_green: whether translations that are not green are left out; the others need no further message.
        quality: tells why a translation is not green; None: nothing is said about that, as where there are no estimates.

    Raises:
        DataError: a sentence was cut, and `is_strict`.
    """
    if cut := [number for number, translation in numbered if translation.is_cut]:
        if is_strict:
            raise DataError(
                f"line {cut[0]}: a sentence of more than {max_length} tokens, which the model cannot read at once",
                hint="divide the sentence, or leave out --strict to translate it in parts",
            )
        logger.warning(
            "%s: a sentence of more than %d tokens, which was translated in parts",
            _lines(cut),
            max_length,
        )
    if only_green:
        if left_out := [number for number, each in numbered if each.is_not_green]:
            logger.warning("%s: the translation is not green, so it was left out", _lines(left_out))
        numbered = [each for each in numbered if not each[1].is_not_green]
    for name, said in _SAID_OF_MARKS.items():
        if marked := [number for number, each in numbered if getattr(each, name)]:
            logger.warning("%s: %s", _lines(marked), said)
    if with_doubts := [one for one in numbered if one[1].doubts]:
        _report_doubts(with_doubts)
    if quality is not None:
        _report_not_green(numbered, quality)


def _report_not_green(numbered: Sequence[tuple[int, Translation]], quality: Quality) -> None:
    """Say why translations are not green of which nothing else has been said."""
    reasons: dict[str, list[int]] = {}
    for number, each in numbered:
        is_named = each.doubts or each.is_untranslated or each.is_partly_copied or each.is_in_pieces
        if not is_named and (reason := quality.why_not_green(each)):
            reasons.setdefault(reason, []).append(number)
    for reason, numbers in reasons.items():
        logger.warning("%s: not green: %s", _lines(numbers), reason)


def _report_doubts(numbered: Sequence[tuple[int, Translation]]) -> None:
    """Warn of lines with doubts: one message for those with equal doubts, and one each for lost, unseen and made-up words."""
    lines_by_doubts: dict[tuple[str, ...], list[int]] = {}
    words_by_doubt: dict[str, tuple[list[int], dict[str, None]]] = {doubt: ([], {}) for doubt in DOUBTS_WITH_WORDS}
    for number, each in numbered:
        if doubts := without_words(each.doubts):
            lines_by_doubts.setdefault(doubts, []).append(number)
        for doubt, _, named in (one.partition(": ") for one in each.doubts):
            if doubt in words_by_doubt:
                words_by_doubt[doubt][0].append(number)
                words_by_doubt[doubt][1].update(dict.fromkeys(named.split(", ")))
    for doubts, doubtful in lines_by_doubts.items():
        logger.warning("%s: the translation %s", _lines(doubtful), "; it ".join(doubts))
    for doubt, (lines, words) in words_by_doubt.items():
        if words:
            shown, num_more = ", ".join([*words][:MAX_SHOWN_LINES]), len(words) - MAX_SHOWN_LINES
            more = f" and {num_more} more (tfm translate --json tells all)" if num_more > 0 else ""
            logger.warning("%s: the translation %s: %s%s", _lines(lines), doubt, shown, more)


def _lines(numbers: Sequence[int]) -> str:
    """Line 3; lines 3, 5 to 8; or the first of them, the number of the others, and where they all are."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    few = [f"{each[0]} to {each[-1]}" if len(each) > 2 else ", ".join(map(str, each)) for each in ranges]
    more = sum(map(len, ranges[MAX_SHOWN_LINES:]))
    shown = ", ".join(few[:MAX_SHOWN_LINES]) + (
        f" and {more} more (tfm translate --json tells it of each line)" if more else ""
    )
    return f"line{'s' if len(numbers) > 1 else ''} {shown}"


def _without_short_rivals(
    pipeline: TextPipeline,
    source: SourceText,
    hypotheses: Sequence[Sequence[Hypothesis]],
    options: DecodingConfig,
) -> list[list[Hypothesis]]:
    """The best hypothesis of each part, and those others that lose no text."""
    return [
        [
            *part_hypotheses[:1],
            *(each for each in part_hypotheses[1:] if not loses_text(pipeline, part, [each], options)),
        ]
        for part, part_hypotheses in zip(source.parts, hypotheses, strict=True)
    ]
