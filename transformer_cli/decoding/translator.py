"""The translator: lines in, lines out, in the same number and order."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count, islice, repeat
from typing import TYPE_CHECKING

from transformer_cli.config import DecodingConfig, Direction, SamplingConfig, SequencesData
from transformer_cli.decoding.brackets import BRACKET, lost_brackets, pieces_around_brackets
from transformer_cli.decoding.clauses import (
    CLAUSE_MARK,
    divided,
    divided_if_doubtful,
    in_clauses,
    longer_of,
    lost_parts,
    with_commas_for_ellipses,
    without_short_rivals,
)
from transformer_cli.decoding.details import (
    confidences_of,
    details_of,
    explained_hypotheses,
    parts_of,
    with_explained_unknown,
)
from transformer_cli.decoding.doubts import (
    BESIDE_PLACEHOLDER,
    ENCLOSED,
    LOST_MARK,
    MARKS,
    UNSEEN,
    lacks_form,
    lacks_marks,
    lacks_words_at_placeholders,
    without_unseen_words,
)
from transformer_cli.decoding.engine import (
    Engine,
    ExplainingEngine,
    Hypothesis,
    LimitedEngine,
    Request,
)
from transformer_cli.decoding.glossary import Glossary
from transformer_cli.decoding.line_form import LineForm
from transformer_cli.decoding.line_messages import warn_of_lines
from transformer_cli.decoding.line_repairs import with_lost_parts
from transformer_cli.decoding.protected_spans import ProtectedSentence
from transformer_cli.decoding.repair import Repair
from transformer_cli.decoding.reverse_reading import Reader, read_in_reverse, reverse_reader
from transformer_cli.decoding.terms_in_place import TermPlacer
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translation import (
    Chunk,
    Line,
    LineDetails,
    Translation,
    copied,
    joined,
    seeded,
    through_pivot,
)
from transformer_cli.process.errors import DataError, TfmError, UsageError
from transformer_cli.text.languages import primary_language
from transformer_cli.text.plain_text import is_plain
from transformer_cli.text.sentences import ELLIPSIS
from transformer_cli.text.spans import find_spans, has_span_sign, is_enclosed

if TYPE_CHECKING:  # a translation with another library does not wait for PyTorch or numpy
    from transformer_cli.decoding.memory import TranslationMemory
    from transformer_cli.decoding.minimum_bayes_risk import Utility
    from transformer_cli.decoding.rescoring import Rescorer


logger = logging.getLogger(__name__)

# Lines that are read before the first is translated: sorted by length, they need little padding.
WINDOW_LINES = 2000
_SAMPLES_TO_AGREE_WITH = SamplingConfig(top_p=0.95)


@dataclass(frozen=True, slots=True)
class Translator:
    """A text pipeline and an engine: the pipeline prepares lines, the engine translates their token ids.

    A blank line stays blank. Indentation, list marks and columns stay as they are (`decoding.keep_layout`). Each
    sentence of a line is translated by itself (`decoding.split_sentences`), and the translations are joined with the
    white space of the line. A sentence with more tokens than the model can read is cut into parts. `[UNK]` in a
    translation stands for a word that is not in the vocabulary.
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
    estimates: bool = False
    """Whether each translation gets the details that an estimate of its quality reads, and its `estimate` if the direction has
    a calibration (`tfm calibrate`); this takes a second pass over each source and its translation."""
    num_samples: int | None = None
    """With `estimates`: the number of samples with which each translation is compared; None: as many as in the calibration."""
    reverse: str | None = None
    """With `estimates`: the run of the reverse direction that reads each source after its translation; None: that of the
    calibration, if it has one."""
    load_reader: Callable[[str], Reader] | None = field(default=None, compare=False)
    """Loads the model of another run, once."""
    only_green: bool = False
    """Whether a translation that is not green is left out: its text is empty. Only with `estimates` and a calibration."""
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
        of_lines = None if prefixes is None else iter(prefixes)
        if self.pipeline.glossary is not None:
            self._check_keeps_terms()
        if self.before is not None:
            self._check_two_models(with_details=with_details)
        if with_details or self.estimates:
            self.explaining_engine()  # refuses an engine that cannot explain, before anything is translated
        towards = self.towards(to, from_)
        if self.estimates:
            reverse_reader(towards)  # refuses a run that is not there
        windows = towards._windows(iter(lines), of_lines, num_before)
        return chain.from_iterable(
            towards.translate_window(window, with_details=with_details) for window in windows
        )

    @property
    def repairs(self) -> bool:
        """Whether doubtful translations are searched again (`decoding.repair`)."""
        options = self.decoding
        is_plain = options.num_best == 1 and not (
            options.sampling or options.diversity or options.mbr
        )
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
        """The translator of one direction; see `TextPipeline.towards`."""
        pipeline = self.pipeline.towards(to, from_)
        return self if pipeline is self.pipeline else replace(self, pipeline=pipeline)

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
        found = replace(self, before=replace(first, decoding=decoding), estimates=False)
        found._check_two_models(with_details=False)
        return found

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
            UsageError: the model translates no language; or the settings ask for sampling or for diverse beam search.
            DataError: a term is empty, stands for two target terms, or cannot be written by the model.
        """
        self._check_keeps_terms()
        return replace(self, pipeline=self.pipeline.with_glossary(glossary))

    def _check_keeps_terms(self) -> None:
        """Refuse what does not keep the terms of a glossary."""
        if self.decoding.sampling is not None:
            raise UsageError(
                "a glossary needs beam search, but decoding.sampling draws translations at random",
                hint="leave out decoding.sampling or the glossary",
            )
        if self.decoding.diversity is not None:
            raise UsageError(
                "a glossary needs plain beam search, but decoding.diversity asks for diverse beam search",
                hint="leave out decoding.diversity or the glossary",
            )

    def in_direction(self, number: int) -> "Translator":
        """The translator of the direction with this index in `data.directions`."""
        return replace(self, pipeline=replace(self.pipeline, direction=number))

    def _windows(
        self, lines: Iterator[str], prefixes: Iterator[str] | None, num_before: int
    ) -> Iterator[list[Line]]:
        """Windows of lines, each read when it is asked for."""
        num_read = 0
        while window := list(islice(lines, WINDOW_LINES)):
            for number, line in enumerate(window, num_read + 1):
                if not isinstance(line, str):
                    raise TypeError(f"line {number}: a string is expected, not {_described(line)}")
            of_window = list(islice(repeat("") if prefixes is None else prefixes, len(window)))
            if len(of_window) < len(window):
                raise DataError(f"there are {num_read + len(of_window)} prefixes, but more lines")
            yield list(map(Line, window, of_window, count(num_before + num_read)))
            num_read += len(window)
        if prefixes is not None and next(prefixes, None) is not None:
            raise DataError(f"there are {num_read} lines, but more prefixes")

    def translate_window(
        self, lines: Sequence[Line], *, with_details: bool = False
    ) -> list[Translation]:
        """One translation per line, in order; see `translate`, which makes windows of lines.

        Args:
            lines: as many as are translated together; they follow each other in their input.
            with_details: as of `translate`.
        """
        if self.memory is not None:
            recall = self.memory.recall
            recalled = [None if line.prefix else recall(line.given) for line in lines]
            translating = replace(self, memory=None)
            return translating._beside_known(lines, recalled, with_details=with_details)
        if self.before is not None:
            return self._through_pivot(self.before, lines)
        if self.pipeline.glossary is not None and not with_details:
            alone = [
                None if line.prefix else self.pipeline.of_terms_alone(line.given) for line in lines
            ]
            if any(alone):
                return self._beside_known(lines, alone)
        explainer = self.explaining_engine() if with_details else None
        translations = self._in_form_of_lines(lines, explainer)
        if explainer is None:
            translations = self._mended(lines, translations)
        if self.estimates:
            translations = read_in_reverse(self, translations)
        if self.estimates and (quality := self.pipeline.quality) is not None:
            translations = [replace(each, estimate=quality.estimate(each)) for each in translations]
        self._report(lines, translations)
        if self.only_green:
            translations = [
                replace(each, text="", alternatives=()) if each.is_not_green else each
                for each in translations
            ]
        return translations

    def _report(self, lines: Sequence[Line], translations: Sequence[Translation]) -> None:
        """Warn of lines that a person should look at."""
        if self.reports_lines and lines:
            warn_of_lines(
                list(enumerate(translations, lines[0].number + 1)),
                max_length=self.pipeline.max_length,
                is_strict=self.is_strict,
                only_green=self.only_green,
            )

    def _in_form_of_lines(
        self, lines: Sequence[Line], explainer: ExplainingEngine | None
    ) -> list[Translation]:
        """The translations of the texts of lines, joined as the lines are; with details, each line is one text."""
        # The symbols of the synthetic tasks are no language.
        is_language = not isinstance(self.pipeline.data, SequencesData)
        keeps_layout = self.decoding.keep_layout and is_language
        if explainer is not None or not (keeps_layout or self.protects_spans):
            chunks = [Chunk(line.given, line.prefix, line.number) for line in lines]
            return self.translate_chunks(chunks, explainer)
        form = LineForm(self.pipeline, keeps_layout, self.protects_spans)
        split = [form.split(line) for line in lines]
        chunks = [chunk for line in split for chunk in line.chunks]
        found = self._finished(chunks, form)
        if self.repairs and any(BRACKET.search(chunk.text) for chunk in chunks):
            found = self._with_lost_brackets(chunks, found, form)
        of_chunks = iter(found)
        return [form.join(line, list(islice(of_chunks, len(line.chunks)))) for line in split]

    def _mended(self, lines: Sequence[Line], translations: list[Translation]) -> list[Translation]:
        """The translations of lines, some of them translated again because they lost a part; with the doubts of whole lines."""
        if self.repairs:
            translations = with_lost_parts(self, lines, translations)
        if self.repairs or self.estimates:
            translations = list(map(self.with_doubts_of_line, translations))
        return translations

    def with_doubts_of_line(self, translation: Translation) -> Translation:
        """The translation of a line, with the doubts that only the whole line shows, and that no further search would end."""
        source, text, doubts = translation.source, translation.text, translation.doubts
        if doubts:  # a line that was translated again, with protected spans, may have them already
            doubts = without_unseen_words(doubts)
        # Of a plain text, only the question mark can be lost.
        if self.repairs and ("?" in source or not is_plain(source)):
            if MARKS not in doubts and (
                (LOST_MARK.search(source) and lacks_marks(source, text, self.languages.target))
                or lacks_form(source, text, self.languages.target)
            ):
                doubts += (MARKS,)
            if BESIDE_PLACEHOLDER not in doubts and has_span_sign(source):
                is_lost = lacks_words_at_placeholders(source, text, self.languages)
                doubts += (BESIDE_PLACEHOLDER,) if is_lost else ()
            if text == source and ENCLOSED not in doubts and is_enclosed(source):
                doubts += (ENCLOSED,)
        if words := self.pipeline.unseen_words(translation):
            doubts += (f"{UNSEEN}: {', '.join(words)}",)
        is_same = doubts == translation.doubts
        return translation if is_same else replace(translation, doubts=doubts)

    def _beside_known(
        self,
        lines: Sequence[Line],
        known: Sequence[Translation | None],
        *,
        with_details: bool = False,
    ) -> list[Translation]:
        """The translations of lines, of which some are known: those of a memory, or of nothing but terms. The model reads the others."""
        others = [line for line, found in zip(lines, known, strict=True) if found is None]
        silent = replace(self, reports_lines=False)
        translated = iter(silent.translate_window(others, with_details=with_details))
        translations = [next(translated) if found is None else found for found in known]
        self._report(lines, translations)
        return translations

    def _through_pivot(self, before: "Translator", lines: Sequence[Line]) -> list[Translation]:
        """The translations of lines by two models in a row."""
        as_here = replace(
            before,
            protects_spans=self.protects_spans,
            is_strict=self.is_strict,
            reports_lines=self.reports_lines,
        )
        first = as_here.translate_window([replace(line, prefix="") for line in lines])
        second = replace(self, before=None).translate_window(
            [replace(line, given=each.text) for line, each in zip(lines, first, strict=True)]
        )
        return [
            through_pivot(one, other, self.languages)
            for one, other in zip(first, second, strict=True)
        ]

    def with_estimates_if_possible(self) -> "Translator":
        """The translator whose translations have estimates, if the direction has a calibration that promises something.

        Without, and with a warning, if the reverse model of the calibration is not there.
        """
        quality = self.pipeline.quality
        if quality is None or quality.threshold is None or not isinstance(self.engine, ExplainingEngine):  # fmt: skip
            return self
        estimating = replace(self, estimates=True)
        try:
            reverse_reader(estimating)
        except TfmError as error:
            logger.warning("%s, so translations are not marked; %s", error.message, error.hint)
            return self
        return estimating

    def _finished(self, chunks: Sequence[Chunk], form: LineForm) -> list[Translation]:
        """The translations of chunks in the form of their texts, with the protected spans that the chunks name."""
        if any(chunk.spans for chunk in chunks):
            return self._with_spans(chunks, form)
        found = self.translate_chunks(chunks) if chunks else []
        return list(map(form.finished, chunks, found))

    def _with_lost_brackets(
        self, chunks: Sequence[Chunk], translations: list[Translation], form: LineForm
    ) -> list[Translation]:
        """The translations; a text that loses the brackets around words is translated again, inside and outside of them."""
        pieces = {
            place: pieces_around_brackets(form.sentences(chunk.text, find_spans(chunk.text)))
            for place, (chunk, found) in enumerate(zip(chunks, translations, strict=True))
            if not chunk.prefix and lost_brackets(chunk.text, found.text)
        }
        if not pieces:
            return translations
        asked = [
            form.piece(piece.text + piece.closing, chunks[place], number)
            for place, of_chunk in pieces.items()
            for number, piece in enumerate(of_chunk)
            if piece.is_translated
        ]
        answers = iter(self._finished(asked, form))
        mended = list(translations)
        for place, of_chunk in pieces.items():
            parts = [
                form.in_sentence(piece, next(answers))
                if piece.is_translated
                else copied(piece.text)
                for piece in of_chunk
            ]
            whole = form.finished(chunks[place], joined(chunks[place].text, parts, "".join))
            num_terms, num_before = (
                sum(term.is_applied for term in each.terms) for each in (whole, translations[place])
            )
            if num_terms >= num_before:
                mended[place] = replace(whole, is_in_pieces=True, is_repaired=True)
        return mended

    def _with_spans(self, chunks: Sequence[Chunk], form: LineForm) -> list[Translation]:
        """The translations of chunks, some of which have protected spans: further rounds follow until every span has come back.

        In each round, what all sentences ask for is translated in one call, so that batches are full.
        """
        keeper = form.span_keeper()
        sentences = [ProtectedSentence(chunk, keeper) if chunk.spans else None for chunk in chunks]
        results = [None if sentence is None else sentence.result for sentence in sentences]
        while waiting := [place for place, result in enumerate(results) if result is None]:
            asked = [
                [chunks[place]] if (sentence := sentences[place]) is None else sentence.asked()
                for place in waiting
            ]
            answers = iter(self.translate_chunks(list(chain(*asked))))
            for place, of_sentence in zip(waiting, asked, strict=True):
                found = list(islice(answers, len(of_sentence)))
                sentence = sentences[place]
                if sentence is None:
                    results[place] = form.finished(chunks[place], found[0])
                else:
                    sentence.answer(found)
                    results[place] = sentence.result
        return [result for result in results if result is not None]

    def translate_chunks(
        self, chunks: Sequence[Chunk], explainer: ExplainingEngine | None = None
    ) -> list[Translation]:
        """One translation per chunk, in order: token ids, the engine, and text again.

        Args:
            explainer: what gives each translation its details; None: they get none.
        """
        pipeline = self.pipeline
        chunks = list(map(pipeline.prepared, chunks))
        if pipeline.keeps_text:
            chunks = [in_clauses(pipeline, chunk) for chunk in chunks]
        if (sampling := self.decoding.sampling) is not None:
            chunks = [seeded(chunk, sampling.seed) for chunk in chunks]
        hypotheses: dict[Request, list[Hypothesis]] = {}
        self._translate_new(chunks, hypotheses)
        if pipeline.keeps_text:
            # The words of a line with details are linked by their places, so none of its marks changes.
            if explainer is None and _any_given(chunks, ELLIPSIS):
                self._regain_ellipses(chunks, hypotheses)
            self._keep_text(chunks, hypotheses)
            if self.repairs and _any_given(chunks, CLAUSE_MARK):
                self._regain_clauses(chunks, hypotheses)
        if self.repairs:
            Repair(pipeline, self.decoding, self._search_again).apply(chunks, hypotheses)
        if pipeline.replacement is not None:
            hypotheses = with_explained_unknown(
                self.explaining_engine(),
                hypotheses,
                unk_id=pipeline.target_tokenizer.unk_id,
                batch_tokens=self.decoding.batch_tokens,
            )
        found = [[hypotheses[part.request] for part in chunk.parts] for chunk in chunks]
        if pipeline.keeps_text and self.decoding.num_best > 1:
            pairs = zip(chunks, found, strict=True)
            found = [without_short_rivals(pipeline, *pair, self.decoding) for pair in pairs]
        translations = list(map(pipeline.restore, chunks, found))
        if explainer is not None or self.estimates:
            return self._with_details(chunks, hypotheses, translations, explainer)
        return translations

    def _with_details(
        self,
        chunks: Sequence[Chunk],
        hypotheses: Mapping[Request, list[Hypothesis]],
        translations: Sequence[Translation],
        explainer: ExplainingEngine | None,
    ) -> list[Translation]:
        """The translations of chunks with what a second pass of the model says about them.

        Args:
            explainer: as of `translate_chunks`; None: they get only what an estimate of the quality reads.
        """
        used = {request for chunk in chunks for request in chunk.requests}
        best = {part: found[0] for part, found in hypotheses.items() if found and part in used}
        batch_tokens = self.decoding.batch_tokens
        agreements = self._agreements_of(best) if self.estimates else {}
        if explainer is not None:
            explained = explained_hypotheses(explainer, best, batch_tokens)
            return [
                replace(each, details=details_of(self.pipeline, chunk, explained, agreements))
                for chunk, each in zip(chunks, translations, strict=True)
            ]
        explained = explained_hypotheses(self.explaining_engine(), best, batch_tokens, num_best=0)
        return [
            replace(
                each,
                details=LineDetails(parts_of(chunk, explained, agreements), ()),
                confidences=confidences_of(
                    chunk, [hypotheses[request] for request in chunk.requests], self.decoding
                ),
            )
            for chunk, each in zip(chunks, translations, strict=True)
        ]

    def _regain_ellipses(
        self, chunks: list[Chunk], hypotheses: dict[Request, list[Hypothesis]]
    ) -> None:
        """Translate sentences again, with commas, whose translations lack an ellipsis inside them; chunks and hypotheses as of `_keep_text`."""
        changed = {
            place: read
            for place, chunk in enumerate(chunks)
            if (read := with_commas_for_ellipses(self.pipeline, chunk, hypotheses)) is not chunk
        }
        if not changed:
            return
        for place, read in changed.items():
            chunks[place] = read
        self._translate_new(list(changed.values()), hypotheses)

    def _translate_new(
        self, chunks: Sequence[Chunk], hypotheses: dict[Request, list[Hypothesis]]
    ) -> None:
        """Translate those parts of some chunks that have no hypotheses yet; equal parts are translated once."""
        requests = dict.fromkeys(part.request for chunk in chunks for part in chunk.parts)
        new = [request for request in requests if request not in hypotheses]
        hypotheses.update(zip(new, self._hypotheses(new) if new else [], strict=True))
        if self.pipeline.glossary is not None:
            of_new = {request: hypotheses[request] for request in new}
            hypotheses |= self._with_terms_in_place(chunks, of_new)

    def _keep_text(self, chunks: list[Chunk], hypotheses: dict[Request, list[Hypothesis]]) -> None:
        """Divide the parts whose translations lose text, and translate their halves, until no translation loses text.

        A part that cannot be divided any more is kept as it is.

        Args:
            chunks: get the divided parts.
            hypotheses: of all parts; get those of the new parts.
        """
        self._divide_lost(range(len(chunks)), chunks, hypotheses)

    def _divide_lost(
        self,
        waiting: Iterable[int],
        chunks: list[Chunk],
        hypotheses: dict[Request, list[Hypothesis]],
    ) -> None:
        """Divide the parts of some chunks until none loses text; chunks and hypotheses as of `_keep_text`."""
        while True:
            lost = {
                place: numbers
                for place in waiting
                if (numbers := lost_parts(self.pipeline, chunks[place], hypotheses, self.decoding))
            }
            if not lost:
                return
            for place, numbers in lost.items():
                chunks[place] = divided(self.pipeline, chunks[place], numbers)
            self._translate_new([chunks[place] for place in lost], hypotheses)
            waiting = lost

    def _regain_clauses(
        self, chunks: list[Chunk], hypotheses: dict[Request, list[Hypothesis]]
    ) -> None:
        """Divide sentences whose translations lack a clause, though none is far too short; chunks and hypotheses as of `_keep_text`."""
        pipeline = self.pipeline
        divided = {
            place: halves
            for place, chunk in enumerate(chunks)
            if (halves := divided_if_doubtful(pipeline, chunk, hypotheses, self.decoding))
            is not chunk
        }
        if not divided:
            return
        self._translate_new(list(divided.values()), hypotheses)
        for place, halves in divided.items():
            chunks[place] = longer_of(pipeline, chunks[place], halves, hypotheses)
        self._divide_lost(divided, chunks, hypotheses)

    def _with_terms_in_place(
        self, chunks: Sequence[Chunk], hypotheses: Mapping[Request, list[Hypothesis]]
    ) -> Mapping[Request, list[Hypothesis]]:
        """Hypotheses in which terms of the glossary do not stand beside the model's own words."""
        options = self.decoding
        is_search = not (options.sampling or options.diversity or options.mbr)
        engine = self.engine
        if not is_search or not isinstance(engine, ExplainingEngine):
            return {}
        required = {
            part.request: part.terms
            for chunk in chunks
            for part in chunk.parts
            if part.request in hypotheses
        }
        placer = TermPlacer(
            engine, self.pipeline.source_tokenizer, self.pipeline.target_tokenizer, options
        )
        return placer.placed(required, hypotheses)

    def _hypotheses(self, parts: Sequence[Request]) -> list[list[Hypothesis]]:
        """The best hypotheses of each part: by their scores, by those of several models (`decoding.rescore`), or by minimum Bayes risk (`decoding.mbr`)."""
        options = self.decoding
        is_rescored = bool(self.rescorers) and options.rescore is not None
        if options.mbr is None and not is_rescored:
            return self.engine.translate(parts, options)
        asked = options.model_copy(update={"num_best": options.num_candidates})
        candidates = self.engine.translate(parts, asked)
        if is_rescored:
            from transformer_cli.decoding.rescoring import rescored

            found = rescored(self, parts, candidates)
        else:
            from transformer_cli.decoding.minimum_bayes_risk import by_expected_utility  # numpy

            read = self.pipeline.source_tokenizer.decode
            write, utility = self.pipeline.target_tokenizer.decode, self.utility
            found = [
                by_expected_utility(of_part, write, utility and partial(utility, read(part.ids)))
                for part, of_part in zip(parts, candidates, strict=True)
            ]
        return [of_part[: options.num_best] for of_part in found]

    def _search_again(
        self, parts: Sequence[Request], options: DecodingConfig
    ) -> list[list[Hypothesis]]:
        """The hypotheses of a search with other options than those of `decoding`."""
        engine = self.engine
        if isinstance(engine, LimitedEngine):
            engine = engine.with_all_settings()
        return engine.translate(parts, options)

    def _agreements_of(self, best: Mapping[Request, Hypothesis]) -> dict[Request, float]:
        """How far each translation agrees with samples, as the calibration does it; nothing if it uses no samples."""
        num_samples, quality = self.num_samples, self.pipeline.quality
        if num_samples is None:
            num_samples = 0 if quality is None else quality.num_samples
        if not num_samples or not best:
            return {}
        decode = self.pipeline.target_tokenizer.decode
        texts = [decode(hypothesis.ids) for hypothesis in best.values()]
        return dict(zip(best, self.agreements([*best], texts, num_samples), strict=True))

    def agreements(
        self, parts: Sequence[Request], texts: Sequence[str], num_samples: int
    ) -> list[float]:
        """The mean chrF of a text for each part against samples of the model for the same part, 0 to 1.

        The samples of a part are always the same.

        Source: Fomicheva et al. 2020, "Unsupervised Quality Estimation for Neural Machine Translation", section 3.2, where dropout
            makes the samples differ.
        """
        from transformer_cli.decoding.minimum_bayes_risk import chrf_matrix  # needs numpy

        options = self.decoding.model_copy(
            update={
                "num_best": num_samples,
                "sampling": _SAMPLES_TO_AGREE_WITH,
                "coverage_penalty": 0.0,
                "diversity": None,
                "mbr": None,
            }
        )
        # Samples keep no terms of a glossary.
        plain = [part._replace(terms=(), seed=0) for part in parts]
        decode = self.pipeline.target_tokenizer.decode
        found = self._search_again(plain, options)
        return [
            float(chrf_matrix([text, *(decode(each.ids) for each in samples)])[0, 1:].mean()) / 100
            if samples
            else 0.0
            for text, samples in zip(texts, found, strict=True)
        ]


def _any_given(chunks: Iterable[Chunk], sign: re.Pattern[str]) -> bool:
    """Whether some part has a sign, as it was given; most have none, and need no look at what belongs to the sign."""
    return any(sign.search(part.given) for chunk in chunks for part in chunk.parts)


def _described(value: object) -> str:
    kinds = {str: "a string", bytes: "bytes", type(None): "None"}
    return kinds.get(type(value), f"a value of the type {type(value).__name__}")
