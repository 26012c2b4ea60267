"""Words of a source for which its translation has nothing: the model finds the translation more probable without them.

`regain_lost_words` takes another hypothesis of the beam that has them, for every translation. What is left is named: `with_omissions`
reads each translation with an estimate again without each word of its source, and `with_lost_words` reads only short translations, and
without the two words that they attend to least and without each clause, because a reading takes half as long as a search.

Source: Vamvas and Sennrich 2022, "As Little as Possible, as Much as Necessary: Detecting Over- and Undertranslations with
Contrastive Conditioning", section 3. The paper leaves out constituents of a parse tree; here each word is left out alone.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from transformer_cli.config import DecodingConfig, Direction
from transformer_cli.decoding.checks.doubts import OMITS, doubts_about, without_unseen_words
from transformer_cli.decoding.details import spans_in_line
from transformer_cli.decoding.engine import (
    ExplainingEngine,
    Explanation,
    Hypothesis,
    Request,
    TokenIds,
    search_confidence,
)
from transformer_cli.decoding.protected_spans import StandIns, kind_of_stand_in
from transformer_cli.decoding.translation import SourceText, Translation
from transformer_cli.text.languages import (
    SMALL_WORDS,
    has_spaces,
    is_plain,
    num_content_words,
    primary_language,
    small_words,
)
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.sentences import cut_in_two, ends_sentence
from transformer_cli.text.spans import SpanKind, find_spans
from transformer_cli.text.units import with_units

if TYPE_CHECKING:
    from transformer_cli.decoding.text_pipeline import TextPipeline
    from transformer_cli.decoding.translator import Translator

_WORD = lazy_pattern(r"(?<![\w'\u2019-])[^\W_]+(?![\w'\u2019-])")
# Good morning, guten Tag: Bonjour says both words.
_GREETING = lazy_pattern(
    r"(?:\A|[,;:.!?\u2014-] ?)(?:good|gut(?:en|e)|goede[nr]?|buon[ao]?|buen[oa]s|bo[am]) "
    r"(?:morning|afternoon|day|evening|morgen|tag|abend|middag|dag|avond|giorno|sera|d[ií]as?|tardes?|noites?|noches)\b",
    re.IGNORECASE,
)
_FEWEST_LETTERS = 3
_READ_AT_ONCE = 1000
# Of 79 lost words, 78 were among the two content words of their sources to which the translation attends least, and nearly all of
# them got less than this share of the attention of each of its tokens.
_MOST_IN_QUESTION = 2
_MOST_ATTENTION = 0.8
_FEW_CONTENT_WORDS = 0.75  # of the source
_MOST_WORDS_OF_LABEL = 4
# Of a translation of which the model is not sure: a word that hardly any of its tokens attends to is lost, even if the source with it
# makes the translation somewhat more probable. Of 22 such words of held-out sentences, 19 were lost.
_UNSURE = 0.72  # geometric mean of the probabilities of its tokens
_SCORE_OF_UNSURE = -0.5  # at most, of two or more tokens: a cheap question
_HARDLY_ATTENDED = 0.3
_LITTLE_EFFECT = 5.0  # nats
_FAIRLY_SURE = 0.6
_LARGEST_LOSS_OF_SCORE = 0.6
_CLEARLY_TRANSLATED = 3.0  # nats: the source with the word makes the translation twenty times as probable


def with_omissions(translator: "Translator", translations: Sequence[Translation]) -> list[Translation]:
    """The translations, with a doubt about those that have nothing for words of their sources.

    Looked at are those with details that could be green: another one is not trusted anyway. A calibration of an earlier version has
    not looked for omissions, so nothing is looked for with it.
    """
    pipeline = translator.pipeline
    is_calibrated = pipeline.quality is None or pipeline.quality.finds_omissions
    if not is_calibrated or not has_spaces(pipeline.languages.source):
        return list(translations)
    # A part that stands in several lines is read once.
    shorter = {
        (part.source_ids, part.target_ids): [*without_each_word(part.source_ids, pipeline)]
        for translation in translations
        if translation.details is not None and not without_unseen_words(translation.doubts)
        for part in translation.details.parts
    }
    log_probs = _log_probs(
        translator, [(Request(ids), target) for (_, target), found in shorter.items() for _, ids in found]
    )
    without = {key: [(word[0], next(log_probs)) for word, _ in found] for key, found in shorter.items()}
    return [_with_doubt(pipeline, each, without) for each in translations]


def _log_probs(translator: "Translator", pairs: Sequence[tuple[Request, TokenIds]]) -> Iterator[float]:
    """The log-probability of each target after its source.

    Some are read at a time: with them come attention weights, which for all the long lines of a window would take gigabytes.
    """
    engine, batch_tokens = translator.explaining_engine(), translator.decoding.batch_tokens
    for start in range(0, len(pairs), _READ_AT_ONCE):
        requests, targets = zip(*pairs[start : start + _READ_AT_ONCE], strict=True)
        for explanation in engine.explain(requests, targets, batch_tokens=batch_tokens):
            yield _log_prob(explanation)


def _with_doubt(
    pipeline: "TextPipeline",
    translation: Translation,
    without: Mapping[tuple[TokenIds, TokenIds], Sequence[tuple[str, float]]],
) -> Translation:
    if translation.details is None or without_unseen_words(translation.doubts):
        return translation
    source, lost = translation.source.casefold(), []
    for part in translation.details.parts:
        with_all = _log_prob(part.explanation)
        ignored = {word for word, _ in _ignored_words(pipeline, part.source_ids, part.explanation)}
        lost += _lost_words(
            [
                (word, with_all - log_prob, _LITTLE_EFFECT if word in ignored else 0.0)
                for word, log_prob in without[part.source_ids, part.target_ids]
                # A name or a number that stands in for a protected span is no word of the source.
                if word.islower() or word.casefold() in source
            ]
        )
    if not lost:
        return translation
    return _naming(translation, lost)


def _naming(translation: Translation, lost: Iterable[str]) -> Translation:
    return replace(translation, doubts=(*translation.doubts, f"{OMITS}: {', '.join(dict.fromkeys(lost))}"))


def with_lost_words(
    translator: "Translator", translations: list[Translation], languages: Direction
) -> list[Translation]:
    """The translations, with a doubt about those without other doubts that are short and have lost a word, without estimates.

    Looked at are those with fewer words, and clearly fewer content words, than their sources; beside a placeholder, of which the model has
    read a name or a number, a wrong word may stand for a lost one. Of 30 words lost in short translations, 28 were the least attended ones.
    Each half of a sentence with two clauses is left out, too: all that a translation has of one may be "please".

    Args:
        translator: has made them.
        translations: of lines.
        languages: of the lines and of the translations.
    """
    engine = translator.engine
    is_known = all(primary_language(language) in SMALL_WORDS for language in languages)
    if not is_known or not isinstance(engine, ExplainingEngine):
        return translations

    @cache
    def stand_ins() -> StandIns:
        return StandIns.of(translator.pipeline.source_tokenizer, translator.pipeline.target_tokenizer)

    pairs_of_lines = {
        place: pairs
        for place, each in enumerate(translations)
        if (pairs := [*_short_pairs(translator.pipeline, each, languages, translator.decoding, stand_ins)])
    }
    if not pairs_of_lines:
        return translations
    pairs = list(dict.fromkeys(pair for of_line in pairs_of_lines.values() for pair in of_line))
    batch_tokens = translator.decoding.batch_tokens

    def explained(asked: Sequence[_Pair]) -> Iterator[Explanation]:
        requests, targets = [Request(each.source) for each in asked], [each.target for each in asked]
        yield from engine.explain(requests, targets, batch_tokens=batch_tokens) if asked else ()

    whole = dict(zip(pairs, explained(pairs), strict=True))
    shorter = {pair: _in_question(translator.pipeline, pair, each) for pair, each in whole.items()}
    without = explained([_Pair(ids, pair.target) for pair, found in shorter.items() for _, ids, _ in found])
    lost = {
        pair: _lost_words(
            [(words, _log_prob(whole[pair]) - _log_prob(next(without)), most) for words, _, most in found]
        )
        for pair, found in shorter.items()
    }
    named = list(translations)
    for place, of_line in pairs_of_lines.items():
        said = translations[place].source.casefold()  # without the names that the model reads for placeholders
        if words := [word for pair in of_line for word in lost[pair] if word.casefold() in said]:
            named[place] = _naming(named[place], words)
    return named


class _Pair(NamedTuple):
    """The tokens of a part of a line and of its translation."""

    source: TokenIds
    target: TokenIds
    is_short: bool = False
    """Whether the translation has so few words that each word of the source is in question; else only the model is not sure of it."""
    is_label: bool = False
    """Whether the source is a label, and its translation short."""


def _in_question(pipeline: "TextPipeline", pair: _Pair, explanation: Explanation) -> list[tuple[str, TokenIds, float]]:
    """Words that a translation may have lost, with the source without them, and the most that they may do for it if they are lost."""
    ignored = _ignored_words(pipeline, pair.source, explanation)
    found = [(*each, _LITTLE_EFFECT) for each in ignored]
    if pair.is_label:
        words = ((word[0], ids) for word, ids in without_each_word(pair.source, pipeline))
        found += [(*each, _CLEARLY_TRANSLATED) for each in words if each not in ignored]
    elif pair.is_short:
        others = (*_least_attended(pipeline, pair.source, explanation), *_without_each_clause(pair.source, pipeline))
        found += [(*each, 0.0) for each in others if each not in ignored]
    return found


def _ignored_words(pipeline: "TextPipeline", source: TokenIds, explanation: Explanation) -> list[tuple[str, TokenIds]]:
    """The words of a source to which hardly any token of a translation attends of which the model is not sure, each with the source without it."""
    is_unsure = _log_prob(explanation) < math.log(_UNSURE) * len(explanation.token_log_probs)
    return _least_attended(pipeline, source, explanation, _HARDLY_ATTENDED) if is_unsure else []


def _lost_words(effects: Sequence[tuple[str, float, float]]) -> list[str]:
    """Those words without which a translation is more probable; if there are none, those that make it hardly more probable.

    Args:
        effects: of words, joined by commas: how much more probable they make the translation, and the most that they may if they are lost.
    """
    lost = [words for words, effect, _ in effects if effect < 0] or [
        words for words, effect, most in effects if effect < most
    ]
    return [word for words in lost for word in words.split(", ")]


def _is_named(translation: Translation) -> bool:
    """Whether a person is asked to look at a translation anyway, or no model has made it as it is."""
    return bool(
        without_unseen_words(translation.doubts)
        or translation.terms
        or translation.is_from_memory
        or translation.is_untranslated
        or translation.is_partly_copied
        or translation.is_in_pieces
        or translation.is_divided
    )


def _short_pairs(
    pipeline: "TextPipeline",
    translation: Translation,
    languages: Direction,
    options: DecodingConfig,
    stand_ins: Callable[[], StandIns],
) -> Iterator[_Pair]:
    """The tokens of those parts of a line, and of their translations, that may have lost a word which nothing else names."""
    for source, text in translation.pieces or ((translation.source, translation.text),):
        # A label is a few words without the end of a sentence; French writes more words for most: Le sol de la cuisine.
        num_words = len(source.split())
        has_end = source.endswith((".", "?", "!")) or ends_sentence(source)  # most sentences end so
        is_label = 2 <= num_words <= _MOST_WORDS_OF_LABEL and not has_end
        num_more = len(text.split()) - num_words
        has_clauses = _ANY_PLEASE.search(source) is not None and has_only_please(source, text, languages)
        if not is_plain(source) and any(span.kind is not SpanKind.NUMBER for span in find_spans(source)):
            # A wrong word may stand for a lost one there, however long the translation is.
            source, text = with_stand_ins(source, text, stand_ins())
        elif not (has_clauses or is_label or num_more < 0 or (num_more == 0 and not has_end)):  # most have as many
            continue
        num_read, num_written = num_content_words(source, languages.source), num_content_words(text, languages.target)
        if num_written > num_read and not has_clauses:
            continue
        is_short = has_clauses or num_written <= _FEW_CONTENT_WORDS * num_read
        if not is_short and (translation.pieces or translation.score > _SCORE_OF_UNSURE):
            continue
        ids = pipeline.target_ids(text)
        if not is_short and _is_sure(Hypothesis(ids, translation.score), options):
            continue
        if _is_named(translation):
            return
        is_label = is_label and not has_clauses
        pair = _Pair(pipeline.source_ids(pipeline.normalize_source(source)), ids, is_short, is_short and is_label)
        if max(len(pair.source), len(pair.target)) <= pipeline.max_length:
            yield pair


def _is_sure(found: Hypothesis, options: DecodingConfig) -> bool:
    confidence = search_confidence(found, options)
    return confidence is None or confidence >= _UNSURE


def with_stand_ins(source: str, translation: str, stand_ins: StandIns) -> tuple[str, str]:
    """Two texts with the same word in the place of each placeholder or the like, as the model has read it; without tags."""
    spans = with_units(source, find_spans(source), SpanKind.WORD)
    words = [span for span in spans if span.kind is SpanKind.WORD]
    chosen = stand_ins.choose([kind_of_stand_in(source, span, None) for span in words], source)
    of_text = {source[span.start : span.end]: word for span, word in zip(words, chosen, strict=True) if word}
    of_text |= {source[span.start : span.end]: " " for span in spans if span.kind in (SpanKind.TAG, SpanKind.MARK)}
    if not of_text:
        return source, translation
    longest_first = sorted(of_text, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    replaced = (pattern.sub(lambda match: of_text[match[0]], text) for text in (source, translation))
    first, second = (" ".join(text.split()) for text in replaced)
    return first, second


def _without_each_clause(source_ids: TokenIds, pipeline: "TextPipeline") -> list[tuple[str, TokenIds]]:
    """The content words of each half of a sentence with two clauses, with the tokens of the source without these words.

    Of a clause that says please, this word stays.
    """
    text, language = pipeline.source_tokenizer.decode(source_ids), pipeline.languages.source
    cut = cut_in_two(text, 0.5, language)
    if pipeline.source_tokenizer.unk_id in source_ids or cut is None:
        return []
    if cut.marks.isspace() and not please_of(cut.right, language):
        return []
    end = text[-1] if ends_sentence(text) else ""
    left_out = small_words(primary_language(language))
    found = []
    for lost, kept in ((cut.left, cut.right), (cut.right, f"{cut.left}{please_of(cut.right, language)}{end}")):
        words = [word for word in _WORD.findall(lost) if word.lower() not in left_out and len(word) >= _FEWEST_LETTERS]
        if words:
            found.append((", ".join(words), pipeline.source_ids(kept.strip())))
    return found


def without_each_word(source_ids: TokenIds, pipeline: "TextPipeline") -> Iterator[tuple[re.Match[str], TokenIds]]:
    """Each content word of a source in its text as the model reads it, and the tokens of the source without it.

    Nothing for a source of one word, and for one that the model cannot read wholly.
    """
    if pipeline.source_tokenizer.unk_id in source_ids:
        return
    text = pipeline.source_tokenizer.decode(source_ids)
    words = [*_WORD.finditer(text)]
    if len(words) < 2:
        return
    left_out = small_words(primary_language(pipeline.languages.source))
    greetings = [match.span() for match in _GREETING.finditer(text)]
    for word in words:
        is_name_or_number = word[0][0].isdigit() or (word.start() > 0 and not word[0].islower())
        if word[0].lower() in left_out or (len(word[0]) < _FEWEST_LETTERS and not is_name_or_number):
            continue
        if any(start <= word.start() < end for start, end in greetings):
            continue
        rest = f"{text[: word.start()].rstrip()} {text[word.end() :].lstrip()}".strip()
        yield word, pipeline.source_ids(re.sub(r" (?=[.,;:!?])", "", rest))


# Translations of the same beam that have a word which the best one has lost.


def regain_lost_words(
    pipeline: "TextPipeline",
    engine: ExplainingEngine | None,
    sources: list[SourceText],
    hypotheses: dict[Request, list[Hypothesis]],
    options: DecodingConfig,
) -> None:
    """Put a hypothesis of the beam that has a word of its source in the place of a best one that has lost it.

    Args:
        pipeline: reads and writes the texts.
        engine: has found the hypotheses; None, one without probabilities of given targets: nothing is put in the place of others.
        sources: the texts; those with another hypothesis are marked as repaired.
        hypotheses: of all their parts, the whole beam; `num_best` of each are left.
        options: of the search.
    """
    # Most translations have no rival of nearly the same score, and are asked nothing.
    close = {
        request: request_hypotheses
        for request, request_hypotheses in hypotheses.items()
        if len(request_hypotheses) > 1
        and request_hypotheses[1].score >= request_hypotheses[0].score - _LARGEST_LOSS_OF_SCORE
    }
    found = fuller_hypotheses(pipeline, engine, close, options) if close and engine is not None else {}
    for request, rival in found.items():
        hypotheses[request] = [rival, *(each for each in hypotheses[request] if each is not rival)]
    for number, source in enumerate(sources):
        if found and any(part.request in found for part in source.parts):
            sources[number] = source._replace(is_repaired=True)
    for request_hypotheses in hypotheses.values():
        del request_hypotheses[options.num_best :]


def fuller_hypotheses(
    pipeline: "TextPipeline",
    engine: ExplainingEngine,
    hypotheses: Mapping[Request, Sequence[Hypothesis]],
    options: DecodingConfig,
) -> dict[Request, Hypothesis]:
    """For each source whose best translation has lost a word: a hypothesis of the beam that has it, if there is one.

    Looked at are translations with fewer content words than their sources beside which the beam has a fuller one of nearly the same
    score. Of their sources, only the words that the translation attends to least are left out.
    """
    if not all(primary_language(language) in SMALL_WORDS for language in pipeline.languages):
        return {}
    rivals = {
        request: rival
        for request, found in hypotheses.items()
        if request.is_free and (rival := _fuller_rival(pipeline, request, found, options))
    }
    if not rivals:
        return {}

    def explained(pairs: Iterable[tuple[TokenIds, TokenIds]]) -> Iterator[Explanation]:
        pairs = list(pairs)
        requests = [Request(source) for source, _ in pairs]
        return iter(engine.explain(requests, [ids for _, ids in pairs], batch_tokens=options.batch_tokens))

    best = {request: hypotheses[request][0].ids for request in rivals}
    best_explanations = dict(zip(best, explained((request.ids, ids) for request, ids in best.items()), strict=True))
    shorter = {request: _least_attended(pipeline, request.ids, each) for request, each in best_explanations.items()}
    without = explained((ids, best[request]) for request, sources in shorter.items() for _, ids in sources)
    loses = {
        request: [_log_prob(next(without)) > _log_prob(best_explanations[request]) for _ in sources]
        for request, sources in shorter.items()
    }
    rivals = {request: rival for request, rival in rivals.items() if any(loses[request])}
    rival_explanations = explained(
        (ids, rival.ids)
        for request, rival in rivals.items()
        for ids in (request.ids, *(ids for _, ids in shorter[request]))
    )
    regained = {}
    for request, rival in rivals.items():
        with_all = _log_prob(next(rival_explanations))
        margins = [with_all - _log_prob(next(rival_explanations)) for _ in shorter[request]]
        least = [_CLEARLY_TRANSLATED if is_lost else 0.0 for is_lost in loses[request]]
        if all(margin >= needed for margin, needed in zip(margins, least, strict=True)):
            regained[request] = rival
    return regained


def _log_prob(explanation: Explanation) -> float:
    return float(explanation.token_log_probs.sum(dtype="float64"))


def _fuller_rival(
    pipeline: "TextPipeline", request: Request, found: Sequence[Hypothesis], options: DecodingConfig
) -> Hypothesis | None:
    """The first hypothesis of nearly the best score that has more content words than the best one, but not more than the source.

    Nothing beside a best one that the model is hardly sure of: its rivals are no better.
    """
    close = [each for each in found[1:] if each.score >= found[0].score - _LARGEST_LOSS_OF_SCORE]
    if not close or (search_confidence(found[0], options) or 0.0) < _FAIRLY_SURE:
        return None
    languages, write = pipeline.languages, pipeline.target_tokenizer.decode
    source, text = pipeline.source_tokenizer.decode(request.ids), write(found[0].ids)
    num_read, num_written = num_content_words(source, languages.source), num_content_words(text, languages.target)
    if num_written >= num_read:
        return None
    for each in close:
        other = write(each.ids)
        if num_written < num_content_words(other, languages.target) <= num_read:
            doubts = doubts_about(source, other, languages, is_finished=True)
            is_better = set(doubts).issubset(doubts_about(source, text, languages, is_finished=True))
            return each if is_better else None
    return None


def _least_attended(
    pipeline: "TextPipeline", source_ids: TokenIds, explanation: Explanation, most_attention: float = _MOST_ATTENTION
) -> list[tuple[str, TokenIds]]:
    """The few content words to which no target token attends much, each with the source without it."""
    text = pipeline.source_tokenizer.decode(source_ids)
    weights = explanation.attention.max(axis=0).tolist()
    places = spans_in_line(source_ids, text, 0, pipeline.source_tokenizer)
    in_question = []
    for word, rest in without_each_word(source_ids, pipeline):
        word_weights = [
            weight
            for weight, (start, end) in zip(weights, places, strict=True)
            if start < word.end() and end > word.start()
        ]
        if (most := max(word_weights, default=0.0)) < most_attention:
            in_question.append((most, rest, word[0]))
    return [(word, rest) for _, rest, word in sorted(in_question)[:_MOST_IN_QUESTION]]


# A clause of which only "please" is left.

_PLEASE = {
    "de": r"bitte",
    "en": r"please",
    "es": r"por favor",
    "fr": r"s['\u2019]il (?:vous|te) pla[i\u00ee]t|veuillez",
    "it": r"per (?:favore|piacere|cortesia)|prego",
    "nl": r"alsjeblieft|alstublieft",
    "pt": r"por favor|se faz favor",
}
_ANY_PLEASE = re.compile("|".join(_PLEASE.values()), re.IGNORECASE)
# English needs no comma behind these: If you see it please call me.
_BEGINS_LIKE_IF = lazy_pattern(r"(?i)\W*(?:after|as|because|before|if|once|since|unless|when(?:ever)?)\b")
_CLAUSES = lazy_pattern(r"[^.,;:!?\u2026\u2013\u2014]*[^\W_][^.,;:!?\u2026\u2013\u2014]*")


def has_only_please(source: str, translation: str, languages: Direction) -> bool:
    """Whether a translation has "please" in the place of a clause, and fewer other clauses: *Sono qui, per favore* for *I am here, please come in*."""
    here, there = (_PLEASE.get(primary_language(language)) for language in languages)
    if here is None or there is None or re.search(rf"(?i)\b(?:{here})\b", source) is None:
        return False
    source = _with_comma_before(here, source) if _BEGINS_LIKE_IF.match(source) else source
    (num_here, alone_here) = _clauses(source, here)
    (num_there, alone_there) = _clauses(_with_comma_before(there, translation), there)
    return alone_there > alone_here and num_there < num_here


def _with_comma_before(please: str, text: str) -> str:
    return re.sub(rf"(?i)(?<=\w)(?= (?:{please})\b)", ",", text)


def please_of(clause: str, language: str) -> str:
    """The word for "please" of a clause, behind a comma; nothing if it has none."""
    found = re.search(rf"(?i)\b(?:{_PLEASE.get(primary_language(language), '(?!)')})\b", clause)
    return f", {found[0]}" if found else ""


def _clauses(text: str, please: str) -> tuple[int, int]:
    """The number of clauses with other words than "please", and of those without."""
    clauses = _CLAUSES.findall(text)
    alone = sum(re.fullmatch(rf"(?i)\W*(?:{please})\W*", clause) is not None for clause in clauses)
    return len(clauses) - alone, alone
