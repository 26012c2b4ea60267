"""Repairs of sentences: those whose translations lose text are divided between clauses, or left as they were given (`decoding.keep_text`); doubtful ones are searched again in other ways (`decoding.repair`)."""

from __future__ import annotations

import math
import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformer_cli.config import DecodingConfig, Direction, SamplingConfig
from transformer_cli.decoding.checks.divided_parts import (
    divided_at,
    encoded_part,
    keeping,
    read_with,
    sentences_read_at_once,
    with_clauses,
    with_divided_parts,
)
from transformer_cli.decoding.checks.doubts import (
    COPIES,
    DATES,
    LACKS_JOINED,
    LACKS_LIMIT,
    LACKS_NAME,
    LACKS_TITLE,
    NEGATION,
    NUMBERS,
    OPPOSITE,
    OTHER_LANGUAGE,
    OTHER_SCRIPT,
    REPEATS,
    TOO_LONG,
    TWICE,
    UNFINISHED,
    UNREADABLE,
    UNSURE,
    VERBLESS,
    WORDLESS,
    doubts_about,
    is_unreadable,
    without_loops,
)
from transformer_cli.decoding.checks.omissions import has_only_please, please_of
from transformer_cli.decoding.checks.quality import Quality, pieces_per_word
from transformer_cli.decoding.engine import (
    ExplainingEngine,
    Hypothesis,
    Request,
    TokenIds,
    score_of_given,
    search_confidence,
)
from transformer_cli.decoding.translation import SourceText, TextPart
from transformer_cli.text.languages import has_spaces
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.normalization import has_word
from transformer_cli.text.sentences import (
    ELLIPSIS,
    FEWEST_TOKENS,
    INNER_END,
    LABEL,
    begins_clause,
    cut_after_sentence,
    cut_in_two,
    num_inner_ellipses,
    split_sentences,
    with_commas,
)

if TYPE_CHECKING:
    from transformer_cli.decoding.text_pipeline import TextPipeline

Found = Mapping[Request, Sequence[Hypothesis]]

# Parts of sentences: divided between clauses, or kept as they were given.

# A sentence that is longer than those of the training is divided into parts of an ordinary length, if it can be.
_ORDINARY_SHARE = 0.5
# How many times as long it may be to be translated as a whole, if a clause of it alone cannot be.
_LITTLE_LONGER = 1.5
# A translation loses text if it is shorter than this share of nearly all translations of the training.
_FAR_TOO_SHORT = 0.7
_FEWEST_WORDS = 4
# So is one with fewer than this share of the words of its source, if the model is not sure of it. Of a sure one nothing is said: the
# seven words "I'd like to help her prove it." are two in Italian.
_FEW_WORDS = 0.4
_FAIRLY_SURE = 0.6
# A pause with no words behind it: what stood there is lost, as in "The dog,, sees the cat." An ellipsis may follow a comma.
_EMPTY_CLAUSE = lazy_pattern(
    r"\A\s*[,;\u060c\u061b\uff0c\u3001\uff1b]"
    r"|[,;\u060c\u061b\uff0c\u3001\uff1b]\s*(?!\.\.)(?=[,;:.!?\u060c\u061b\u061f\uff0c\u3001\uff1b\u3002\uff01\uff1f]|\Z)"
)
# What may stand between two clauses of a sentence; the last one between two sentences, before a label: "It is late.x:We go."
CLAUSE_MARK = re.compile(rf"[,;:\u060c\u061b\u1363\u3001\uff0c\uff1a\uff1b\u2013\u2014]|\s-\s|[.!?]{LABEL}")
_FEWEST_WORDS_OF_CLAUSE = 3
_RATHER_SHORT = 1.4
# Where the second part begins as a clause does. With this for every sentence with a comma, most of them would be translated twice.
_RATHER_SHORT_FOR_CLAUSES = 2.2
_CLEARLY_MORE = 1.1
_MOST_WORDS_OF_CLAUSE = 1.5  # for each word of its source
_SURE = 0.8


def in_clauses(pipeline: TextPipeline, source: SourceText) -> SourceText:
    """The text with each sentence divided at its clauses that is longer than those of the training.

    A sentence inside brackets, or before an ellipsis, is divided from the one behind it, too. A sentence without a
    place for a division stays whole. Where it is not known how long the sentences of the training were, none is too long.
    """
    for number in reversed(range(len(source.parts))):
        place = number
        while INNER_END.search(given := source.parts[place].given) and (cut := cut_after_sentence(given)):
            source = divided_at(pipeline, source, place, cut)
            place += 1
    longest = pipeline.seen.longest
    if longest is None:
        return source
    long = [number for number, ids in enumerate(source.parts) if len(ids.request.ids) > longest]
    for number in reversed(long):
        most = max(1, math.ceil(longest * _ORDINARY_SHARE))
        source = with_clauses(pipeline, source, number, most)
    return source


def loses_text(pipeline: TextPipeline, part: TextPart, found: Sequence[Hypothesis], options: DecodingConfig) -> bool:
    """Whether a translation is surely no translation of the whole text.

    That is a translation without a word of a text with words; one that is far shorter than those that the model was
    trained to write, or that has far fewer words while the model is not sure; one with a pause before no words; or one of fewer
    sentences than its text, which was not divided into them. A translation whose beginning is forced is what the caller wants, and
    a part that is kept as it was given loses nothing.

    Args:
        pipeline: of the model.
        part: what was translated.
        found: its hypotheses, of which the first one is looked at; none if the search found none.
        options: of the search.
    """
    if part.is_kept or part.request.prefix:
        return False
    if not pipeline.splits_sentences and _lacks_a_sentence(pipeline, part, found):
        return True
    ids = found[0].ids if found else ()
    num_target_words = pipeline.target_tokenizer.count_written(ids)
    if num_target_words == 0:
        return has_word(part.text)
    confidence = search_confidence(found[0], options)
    is_unsure = confidence is not None and confidence < _FAIRLY_SURE
    if is_unsure and _has_few_words(pipeline, part, found[0]):
        return True
    if CLAUSE_MARK.search(part.given) and _empties_a_clause(pipeline, part, found[0]):
        return True
    ratio, num_tokens = pipeline.seen.smallest_ratio, len(part.request.ids)
    if ratio is None or num_tokens < FEWEST_TOKENS:
        return False
    ratio *= _FAR_TOO_SHORT
    if len(ids) >= ratio * num_tokens:
        return False
    # Rows of marks, such as !!!!!!, may become one mark.
    num_source_words = pipeline.source_tokenizer.count_written(part.request.ids)
    return num_source_words >= max(_FEWEST_WORDS, num_target_words / ratio)


def _has_few_words(pipeline: TextPipeline, part: TextPart, best: Hypothesis) -> bool:
    """Whether a translation, of which the model is not sure, has far fewer words than its source.

    Tokens alone do not show it: the first word may have as many of them as the others together. Of terms of a glossary, and of
    languages without spaces, nothing is said.
    """
    if part.terms or not all(map(has_spaces, pipeline.languages)):
        return False
    written = pipeline.target_tokenizer.decode(best.ids)
    num_read, num_written = (sum(map(has_word, text.split())) for text in (part.given, written))
    return num_read >= _FEWEST_WORDS and num_written < _FEW_WORDS * num_read


def _empties_a_clause(pipeline: TextPipeline, part: TextPart, best: Hypothesis) -> bool:
    """Whether a translation has more pauses before no words than its source."""
    written = pipeline.target_tokenizer.decode(best.ids)
    found = _EMPTY_CLAUSE.findall(written)
    return bool(found) and len(found) > len(_EMPTY_CLAUSE.findall(part.given))


def _lacks_a_sentence(pipeline: TextPipeline, part: TextPart, best: Sequence[Hypothesis]) -> bool:
    """Whether a text of several sentences, read at once (`decoding.split_sentences: false`), has a translation of fewer."""
    num_sentences = len(sentences_read_at_once(pipeline, part.given))
    if num_sentences == 1:
        return False
    written = pipeline.target_tokenizer.decode(best[0].ids) if best else ""
    return len(split_sentences(written, pipeline.languages.target)) < num_sentences


def _may_lack_a_clause(pipeline: TextPipeline, part: TextPart, best: Hypothesis, options: DecodingConfig) -> bool:
    text = pipeline.target_tokenizer.decode(best.ids)
    marks = [*CLAUSE_MARK.finditer(text)]
    num_marks = len(CLAUSE_MARK.findall(part.given))
    lacks_marks = len(marks) < num_marks
    ratio, num_tokens = pipeline.seen.smallest_ratio or 0.0, len(part.request.ids)
    lacks_marks = lacks_marks or has_only_please(part.given, text, pipeline.languages)
    if not lacks_marks and (not num_marks or len(best.ids) >= ratio * _RATHER_SHORT_FOR_CLAUSES * num_tokens):
        return False  # long enough, whatever follows the mark
    cut = cut_in_two(part.given, 0.5, pipeline.languages.source)
    if cut is None or (cut.marks.isspace() and not please_of(cut.right, pipeline.languages.source)):
        return False
    if min(len(cut.left.split()), len(cut.right.split())) < _FEWEST_WORDS_OF_CLAUSE:
        return False
    if lacks_marks:
        return True
    is_clause = begins_clause(cut.right, pipeline.languages.source)
    ratio *= _RATHER_SHORT_FOR_CLAUSES if is_clause else _RATHER_SHORT
    if len(best.ids) >= ratio * num_tokens:
        return False
    confidence = search_confidence(best, options)
    place = len(CLAUSE_MARK.findall(cut.left))
    if confidence is None or confidence < _SURE or place == len(marks):
        return True
    # A model that is sure, and writes each clause, may need few words: "they used to go back" is one in Italian.
    mark = marks[place]
    clauses = (cut.left, text[: mark.start()]), (cut.right, text[mark.end() :])
    return any(len(there.split()) < len(here.split()) / 2 for here, there in clauses)


def _adds_a_clause(pipeline: TextPipeline, parts: Iterable[TextPart], hypotheses: Found) -> bool:
    """Whether the translation of one of these parts has a clause more: a model that has read clauses only in pairs adds the second."""
    if not all(map(has_spaces, pipeline.languages)):
        return False
    for part in parts:
        for best in hypotheses[part.request][:1]:
            text = pipeline.target_tokenizer.decode(best.ids)
            has_more_marks = len(CLAUSE_MARK.findall(text)) > len(CLAUSE_MARK.findall(part.given))
            if has_more_marks and len(text.split()) > _MOST_WORDS_OF_CLAUSE * len(part.given.split()):
                return True
    return False


def _new_parts(divided: SourceText, before: SourceText) -> list[TextPart]:
    return [part for part in divided.parts if part not in before.parts]


@dataclass(frozen=True, slots=True)
class TextKeeper:
    """Translates those sentences again whose translations lose text: divided, or read in another way (`decoding.keep_text`)."""

    pipeline: TextPipeline
    options: DecodingConfig
    """Of the search."""
    search_new: Callable[[Sequence[SourceText]], object]
    """Adds the hypotheses of those parts of some texts that have none yet."""
    sources: list[SourceText]
    """The texts with their parts; those with other parts take their places."""
    hypotheses: dict[Request, list[Hypothesis]]
    """Of all parts; those of new parts are added."""

    def apply(self, whole: Sequence[SourceText], *, changes_marks: bool, divides_doubtful: bool) -> None:
        """Repair what can be repaired.

        Args:
            whole: the texts before long sentences were divided; one takes its place if a clause would be kept.
            changes_marks: whether the model may read a comma for an ellipsis.
            divides_doubtful: whether a sentence is divided, too, whose translation may lack a clause, though none is far too short.
        """
        # Most texts have neither an ellipsis nor a mark between clauses.
        if changes_marks and any(ELLIPSIS.search(part.given) for source in self.sources for part in source.parts):
            self._regain_ellipses()
        self._divide_lost(range(len(self.sources)))
        if self.options.sampling is None and self.sources != whole:
            self._join_clauses(whole)
        if divides_doubtful and any(CLAUSE_MARK.search(part.given) for source in self.sources for part in source.parts):
            self._regain_clauses()

    def _regain_ellipses(self) -> None:
        """Translate sentences again, with commas, whose translations lack an ellipsis inside them."""
        changed = {
            index: read
            for index, source in enumerate(self.sources)
            if (read := self._with_commas_for_ellipses(source)) is not source
        }
        if not changed:
            return
        for index, read in changed.items():
            self.sources[index] = read
        self.search_new(list(changed.values()))

    def _with_commas_for_ellipses(self, source: SourceText) -> SourceText:
        """The text in which the model reads a comma for each ellipsis inside a sentence whose translation lacks it.

        A model that has seen an ellipsis only at the end of a text takes it for the end, and loses the words behind it. The
        sentence is not divided there, because its parts, such as "is big", are translated worse by themselves.
        """
        pipeline = self.pipeline
        for number, part in enumerate(source.parts):
            num_ellipses = num_inner_ellipses(part.given)
            found = self.hypotheses[part.request][:1]
            if not num_ellipses or not found or part.is_kept:
                continue
            if num_inner_ellipses(pipeline.target_tokenizer.decode(found[0].ids)) == num_ellipses:
                continue
            _, ellipses = with_commas(part.given, pipeline.comma)
            request = part.request
            read = encoded_part(pipeline, part._replace(ellipses=ellipses), prefix=request.prefix, seed=request.seed)
            if len(read.request.ids) < pipeline.max_length:
                source = source._replace(
                    parts=(*source.parts[:number], read, *source.parts[number + 1 :]),
                    read=read_with(source, number, read.text),
                )
        return source

    def _divide_lost(self, indexes: Iterable[int]) -> None:
        """Divide the parts whose translations lose text, and translate their halves, until no translation loses text.

        A part that cannot be divided any more is kept as it was given.

        Args:
            indexes: of the texts that are looked at.
        """
        left = list(indexes)
        while left:
            lost = []
            for index in left:
                source = self.sources[index]
                numbers = [
                    number
                    for number, part in enumerate(source.parts)
                    if loses_text(self.pipeline, part, self.hypotheses[part.request], self.options)
                ]
                if numbers:
                    self.sources[index] = with_divided_parts(self.pipeline, source, numbers)
                    lost.append(index)
            if lost:
                self.search_new([self.sources[index] for index in lost])
            left = lost

    def _join_clauses(self, whole: Sequence[SourceText]) -> None:
        """Translate sentences as a whole that were divided for their length, if a clause stays untranslated, or gets another one."""
        left = [n for n, source in enumerate(self.sources) if self._may_be_joined(whole[n], source)]
        if not left:
            return
        self.search_new([whole[n] for n in left])
        for n in left:
            if self._reads_well(whole[n]):
                self.sources[n] = whole[n]._replace(is_repaired=True)

    def _may_be_joined(self, whole: SourceText, in_parts: SourceText) -> bool:
        """Whether a part that was divided for its length is no good translation, and none is much longer than those of the training."""
        if len(in_parts.parts) == len(whole.parts):
            return False
        is_kept = any(part.is_kept for part in in_parts.parts)
        if not (is_kept or _adds_a_clause(self.pipeline, in_parts.parts, self.hypotheses)):
            return False
        most = _LITTLE_LONGER * (self.pipeline.seen.longest or math.inf)
        return all(len(part.request.ids) <= most and not part.is_kept for part in whole.parts)

    def _reads_well(self, whole: SourceText) -> bool:
        """Whether sentences that are a little longer than those of the training have translations of which the model is sure.

        These are as long as those of the training were for such a source, without a factor for exceptions.
        """
        ratio = self.pipeline.seen.smallest_ratio or 0.0
        for part in whole.parts:
            best = self.hypotheses[part.request][:1]
            if part.is_kept or not best or loses_text(self.pipeline, part, best, self.options):
                return False
            if len(best[0].ids) < ratio * len(part.request.ids):
                return False
            confidence = search_confidence(best[0], self.options)
            if confidence is None or confidence < _FAIRLY_SURE:
                return False
        return True

    def _regain_clauses(self) -> None:
        """Divide sentences whose translations lack a clause, though none is far too short."""
        in_halves = {
            index: halves
            for index, source in enumerate(self.sources)
            if (halves := self._divided_if_doubtful(source)) is not source
        }
        if not in_halves:
            return
        self.search_new(list(in_halves.values()))
        for index, halves in in_halves.items():
            self.sources[index] = self._longer_of(self.sources[index], halves)
        self._divide_lost(in_halves)

    def _divided_if_doubtful(self, source: SourceText) -> SourceText:
        """The text in which those parts are divided at a comma or another mark whose translations may lack a clause.

        That is a translation with fewer such marks than its source, or a short one, though not too short for a translation of the
        training. `_longer_of` tells whether a clause was missing.
        """
        for number in reversed(range(len(source.parts))):
            part = source.parts[number]
            if CLAUSE_MARK.search(part.given) is None and not please_of(part.given, self.pipeline.languages.source):
                continue
            best = self.hypotheses[part.request][:1]
            is_free = not (part.is_kept or part.terms or part.request.prefix)
            if is_free and best and _may_lack_a_clause(self.pipeline, part, best[0], self.options):
                source = with_divided_parts(self.pipeline, source, [number], anywhere=False)
        return source

    def _longer_of(self, whole: SourceText, halves: SourceText) -> SourceText:
        """The halves if their translations have clearly more words than that of the whole, which lacks a clause then."""
        num_whole, num_halves = (
            sum(
                self.pipeline.target_tokenizer.count_written(each.ids)
                for part in source.parts
                for each in self.hypotheses[part.request][:1]
            )
            for source in (whole, halves)
        )
        is_longer = num_halves >= _CLEARLY_MORE * num_whole
        if not is_longer or _adds_a_clause(self.pipeline, _new_parts(halves, whole), self.hypotheses):
            return whole
        return halves._replace(is_repaired=True)


# Doubtful translations.


Search = Callable[[Sequence[Request], DecodingConfig], list[list[Hypothesis]]]
COSTS = {
    WORDLESS: 100.0,
    UNFINISHED: 6.0,
    REPEATS: 6.0,
    TOO_LONG: 6.0,
    COPIES: 3.0,
    OTHER_LANGUAGE: 3.0,
    OTHER_SCRIPT: 3.0,
    UNREADABLE: 3.0,
    UNSURE: 1.0,
    NUMBERS: 2.0,
    DATES: 2.0,
    LACKS_NAME: 1.0,
    LACKS_TITLE: 2.0,
    TWICE: 0.5,
    NEGATION: 0.7,
    OPPOSITE: 1.5,
    LACKS_LIMIT: 1.5,
    LACKS_JOINED: 1.0,
    VERBLESS: 0.15,  # else another wrong verb hides the fault
}
"""What each doubt about a hypothesis takes from its score, which is its log-probability over its length penalty, in nats.

The first eight outweigh any difference between two hypotheses of a beam. No list has all words that negate, so a hypothesis with
fewer doubts must be nearly as probable there."""
_COST_OF_CUT = 6.0  # as of a loop: such a text is no repair of one
_GAIN_OF_ONE_WORD = 1.5  # of a translation without a word that stood twice
_WIDE_BEAM = 8
_BLOCKED_NGRAM = 3
_LOOPS = frozenset((UNFINISHED, REPEATS, TOO_LONG))
_SAMPLING = SamplingConfig(temperature=0.7, top_p=0.9)
_NUM_SAMPLES = 8
_OF_SCRIPTS = frozenset((OTHER_SCRIPT, UNREADABLE))
_MARKED_WORD = lazy_pattern(r"[^\W\d_]{2,}[.!?]")
_TOKENS_OF_MARKED_WORD = 3  # with [EOS]


@dataclass(frozen=True, slots=True)
class Repair:
    """Finds the doubtful translations of some lines, and better ones for them.

    1. A part in a script that the model cannot read stays as it is, and so does a run of letters that is too long to be a word.
    2. Each other doubtful part is translated again with a wider beam. If its translation repeats itself, is too long or does not
       end, no three tokens may stand twice, and the first translation without its repeated words is a candidate, too. If strong
       doubts are left, samples follow. The hypothesis with the best score less the `COSTS` of its doubts is kept; one with less
       than half the words of its source has a cost, too.
    3. A part with strong doubts is divided in two, if its halves have fewer doubts. So is a part of which the model is unsure,
       but only between clauses.
    4. A part of unknown words whose translation is a guess stays as it is. With `decoding.keep_text`, one without words does, too, and
       one that loses text is divided.
    """

    pipeline: TextPipeline
    """Gives texts for token ids, and divides parts."""
    languages: Direction
    """Of the sources and the translations."""
    quality: Quality | None
    """The calibration of this direction; None if there is none."""
    options: DecodingConfig
    """Of the search that found the translations."""
    search: Search
    """Translates requests with other options."""
    explainer: ExplainingEngine | None = None
    """Scores a translation whose repeated words are cut; None: none is cut."""

    def apply(self, sources: list[SourceText], hypotheses: dict[Request, list[Hypothesis]]) -> None:
        """Repair what can be repaired, and note in each text which doubts are left.

        Args:
            sources: the texts; those with doubts are replaced.
            hypotheses: of all their parts; better ones replace those with doubts.
        """
        doubtful: dict[int, list[int]] = {}  # the place of a text -> the numbers of its parts
        for place, source in enumerate(sources):
            for number, part in enumerate(source.parts):
                if self._doubts(part, hypotheses[part.request]):
                    doubtful.setdefault(place, []).append(number)
        if not doubtful:
            return
        language = self.pipeline.checked_languages.source
        for place, numbers in doubtful.items():
            parts = sources[place].parts
            unreadable = {n for n in numbers if is_unreadable(parts[n].given, language)}
            sources[place] = keeping(sources[place], unreadable)
        before = {place: self._total(sources[place], hypotheses) for place in doubtful}
        repaired = {
            part.request: part
            for place, numbers in doubtful.items()
            for part in map(sources[place].parts.__getitem__, numbers)
            if not part.is_kept
        }
        self._search_again(repaired, hypotheses)
        divided = {place: self._divided_parts(sources[place], hypotheses) for place in doubtful}
        of_halves = self._hypotheses_of_halves(divided.values(), hypotheses)
        for place in doubtful:
            source = self._in_halves(sources[place], divided[place], hypotheses, of_halves)
            source = self._without_guesses(source, hypotheses)
            if self.pipeline.keeps_text:
                source = self._without_losses(source, hypotheses)
            is_repaired = self._total(source, hypotheses) < before[place]
            part_doubts = (self._doubts(part, hypotheses[part.request]) for part in source.parts)
            left = tuple(dict.fromkeys(doubt for doubts in part_doubts for doubt in doubts))
            sources[place] = source._replace(doubts=left, is_repaired=is_repaired)

    def _search_again(self, parts: Mapping[Request, TextPart], hypotheses: dict[Request, list[Hypothesis]]) -> None:
        """Put the best hypotheses of each part, as many as `num_best`, in the places of those of the search."""
        part_doubts = {request: self._doubts(part, hypotheses[request]) for request, part in parts.items()}
        wide = self.options.model_copy(
            update={"beam_size": max(_WIDE_BEAM, self.options.beam_size), "num_best": _WIDE_BEAM}
        )
        without_loops = wide.model_copy(update={"no_repeat_ngram_size": _BLOCKED_NGRAM})
        loops = [parts[each] for each, doubts in part_doubts.items() if not _LOOPS.isdisjoint(doubts)]
        others = [
            parts[each] for each, doubts in part_doubts.items() if _LOOPS.isdisjoint(doubts) and set(doubts) != {UNSURE}
        ]
        self._take_better(loops, without_loops, hypotheses)
        self._take_better(others, wide, hypotheses)
        samples = self.options.model_copy(
            update={"num_best": _NUM_SAMPLES, "sampling": _SAMPLING, "coverage_penalty": 0.0}
        )
        # Samples keep no terms of a glossary.
        left = [
            part
            for part in (*loops, *others)
            if not part.request.terms and _is_strong(self._doubts(part, hypotheses[part.request]))
        ]
        self._take_better(left, samples, hypotheses)

    def _take_better(
        self, parts: Sequence[TextPart], options: DecodingConfig, hypotheses: dict[Request, list[Hypothesis]]
    ) -> None:
        if not parts:
            return
        unk_id = self.pipeline.target_tokenizer.unk_id
        found = self.search([part.request for part in parts], options)
        part_candidates = [[*hypotheses[part.request][:1], *each] for part, each in zip(parts, found, strict=True)]
        cuts = self._without_loops(parts, part_candidates)
        for part, candidates, cut in zip(parts, part_candidates, cuts, strict=True):
            search_hypotheses = hypotheses[part.request]
            if candidates:
                candidates[1:1] = cut
                # A repair does not have more unknown words than what it repairs; samples may.
                most = candidates[0].ids.count(unk_id)
                candidates = [each for each in candidates if each.ids.count(unk_id) <= most]

                def value(each: Hypothesis, part: TextPart = part) -> float:
                    return self._value(part, each)

                # Without one doubled word, the translation changes least.
                write = self.pipeline.target_tokenizer.decode
                num_words = [len(write(each.ids).split()) for each in (*candidates[:1], *cut)]
                gain = _GAIN_OF_ONE_WORD if num_words[0] - num_words[-1] == 1 else 0.0
                # Of equals, the first one: what the ordinary search has found.
                best = max(candidates, key=lambda each: value(each) + (gain if each in cut else 0.0))
                if self.options.num_best > 1:
                    others = {each.ids: each for each in (*search_hypotheses, *candidates)}
                    del others[best.ids]
                    candidates = sorted(others.values(), key=value, reverse=True)
                hypotheses[part.request] = [best, *candidates][: self.options.num_best]

    def _value(self, part: TextPart, hypothesis: Hypothesis) -> float:
        # The score says already how sure the model is.
        doubts = [each for each in self._doubts(part, [hypothesis]) if each != UNSURE]
        written = self.pipeline.target_tokenizer.decode(hypothesis.ids)
        is_cut_off = _is_cut_off(part.text, written, self.languages)
        return hypothesis.score - _cost(doubts) - (_COST_OF_CUT if is_cut_off else 0.0)

    def _without_loops(
        self, parts: Sequence[TextPart], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """For each part, its best hypothesis with its repeated words once, scored anew; nothing if it repeats none, or has few others."""
        cut = {number: ids for number, part in enumerate(parts) if (ids := self._cut_ids(part, found[number][:1]))}
        if self.explainer is None or not cut:
            return [[] for _ in parts]
        requests = [Request(parts[number].request.ids) for number in cut]
        explanations = self.explainer.explain(requests, [*cut.values()], batch_tokens=self.options.batch_tokens)
        scores = dict(zip(cut, (score_of_given(each, self.options) for each in explanations), strict=True))
        return [[Hypothesis(cut[number], scores[number])] if number in cut else [] for number in range(len(parts))]

    def _cut_ids(self, part: TextPart, found: Sequence[Hypothesis]) -> TokenIds:
        """The tokens of a hypothesis with its repeated words once; none if they are not wanted."""
        if part.request.terms or not found:
            return ()  # a term may have to stand twice
        text = self.pipeline.target_tokenizer.decode(found[0].ids)
        cut = without_loops(part.text, text)
        num_cut = len(text.split()) - len(cut.split())
        if num_cut == 0 or (num_cut > 1 and len(cut.split()) < _FEWEST_WORDS_OF_CLAUSE):
            return ()
        ids = self.pipeline.target_ids(cut)
        # More tokens than before are perhaps more than the model can read.
        is_wanted = REPEATS in self._doubts(part, found) and len(ids) <= max(len(found[0].ids), 1)
        return ids if is_wanted else ()

    def _divided_parts(self, source: SourceText, hypotheses: Found) -> dict[int, SourceText]:
        """The text with one part divided, for each part with strong doubts, or of which the model is unsure: number of the part -> text."""
        texts = ((number, self._with_halves(source, number, hypotheses)) for number in range(len(source.parts)))
        return {number: text for number, text in texts if text is not source}

    def _with_halves(self, source: SourceText, number: int, hypotheses: Found) -> SourceText:
        """The text with a doubtful part divided; the same text if the part is not doubtful, or cannot be divided."""
        part = source.parts[number]
        doubts = self._doubts(part, hypotheses[part.request])
        is_strong = _is_strong(doubts)
        if part.terms or not (is_strong or UNSURE in doubts):
            return source
        halves = with_divided_parts(self.pipeline, source, [number], anywhere=is_strong)
        return halves if len(halves.parts) > len(source.parts) else source

    def _hypotheses_of_halves(
        self, divided: Iterable[Mapping[int, SourceText]], hypotheses: Found
    ) -> dict[Request, list[Hypothesis]]:
        """What one search finds for all parts that were divided."""
        halves = (each for texts in divided for each in texts.values())
        requests = dict.fromkeys(request for each in halves for request in each.requests)
        new = [request for request in requests if request not in hypotheses]
        return dict(zip(new, self.search(new, self.options), strict=True)) if new else {}

    def _in_halves(
        self,
        source: SourceText,
        divided: dict[int, SourceText],
        hypotheses: dict[Request, list[Hypothesis]],
        of_halves: dict[Request, list[Hypothesis]],
    ) -> SourceText:
        """The text in which those parts are divided whose halves have fewer doubts."""
        whole, known = source, ChainMap(hypotheses, of_halves)
        for number in sorted(divided, reverse=True):
            halves = divided[number]
            if source is not whole:  # a part behind this one is divided now
                halves = self._with_halves(source, number, hypotheses)
            has_fewer = self._total(halves, known) < self._total(source, known)
            if has_fewer and not _adds_a_clause(self.pipeline, _new_parts(halves, source), known):
                source = halves
                hypotheses.update({each: known[each] for each in halves.requests})
        return source

    def _without_guesses(self, source: SourceText, hypotheses: Found) -> SourceText:
        """The text in which those parts stay as they are whose words the model does not know, and of which it is unsure.

        A word that is one token is known, although "Yes." with its mark and its end has more tokens for each word than most sentences.
        """
        quality = self.quality
        if quality is None:
            return source
        guesses = {
            number
            for number, part in enumerate(source.parts)
            if not part.terms  # which would not stand in the translation
            and not _is_one_known_word(part)
            and UNSURE in self._doubts(part, hypotheses[part.request])
            and pieces_per_word(part.text, part.request.ids) > quality.most_pieces
        }
        return keeping(source, guesses)

    def _without_losses(self, source: SourceText, hypotheses: dict[Request, list[Hypothesis]]) -> SourceText:
        """The text in which the parts that would lose text are divided until none does, or stay as they are."""
        parts = enumerate(source.parts)
        wordless = {number for number, part in parts if WORDLESS in self._doubts(part, hypotheses[part.request])}
        source = keeping(source, wordless)
        while lost := [
            number
            for number, part in enumerate(source.parts)
            if loses_text(self.pipeline, part, hypotheses[part.request], self.options)
        ]:
            source = with_divided_parts(self.pipeline, source, lost)
            new = [request for request in source.requests if request not in hypotheses]
            if new:
                hypotheses.update(zip(new, self.search(new, self.options), strict=True))
        return source

    def _doubts(self, part: TextPart, found: Sequence[Hypothesis]) -> tuple[str, ...]:
        """Nothing for a part that stays as it is, and for one whose beginning the caller has given."""
        if not found or part.is_kept or part.request.prefix:
            return ()
        ids, tokenizer = found[0].ids, self.pipeline.target_tokenizer
        is_limited = self.options.max_length or self.options.max_length_ratio
        is_finished = bool(is_limited) or ids[-1:] == (tokenizer.eos_id,)
        text = tokenizer.decode(ids)
        doubts = doubts_about(part.text, text, self.languages, is_finished=is_finished)
        if not _OF_SCRIPTS.isdisjoint(doubts):
            doubts = doubts_about(part.text, text, self.pipeline.checked_languages, is_finished=is_finished)
        quality = self.quality
        if quality is None or not text.strip():
            return doubts
        confidence = search_confidence(found[0], self.options)
        is_unsure = confidence is not None and confidence < quality.least_confidence
        return (*doubts, UNSURE) if is_unsure else doubts

    def _total(self, source: SourceText, hypotheses: Found) -> float:
        return sum(_cost(self._doubts(part, hypotheses[part.request])) for part in source.parts)


def _is_one_known_word(part: TextPart) -> bool:
    """Whether a part is a word of one token with a mark: "Yes." """
    return len(part.request.ids) == _TOKENS_OF_MARKED_WORD and _MARKED_WORD.fullmatch(part.text) is not None


def _cost(doubts: Iterable[str]) -> float:
    return sum(COSTS[doubt] for doubt in doubts)


def _is_cut_off(source: str, translation: str, languages: Direction) -> bool:
    """Whether a translation has fewer than half as many words as its source: a search that may not repeat tokens ends early."""
    if not all(map(has_spaces, languages)):
        return False
    num_read, num_written = (len(text.split()) for text in (source, translation))
    return num_read >= _FEWEST_WORDS and 2 * num_written < num_read


def _is_strong(doubts: Iterable[str]) -> bool:
    return any(COSTS[doubt] >= COSTS[OTHER_SCRIPT] for doubt in doubts)
