"""Words of a source for which its translation has nothing: the model finds the translation more probable without them.

Source: Vamvas and Sennrich 2022, "As Little as Possible, as Much as Necessary: Detecting Over- and Undertranslations with
Contrastive Conditioning", section 3. The paper leaves out constituents of a parse tree; here each word is left out alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer_cli.decoding.checks.doubts import OMITS, without_unseen_words
from transformer_cli.decoding.engine import Request, TokenIds
from transformer_cli.decoding.translation import PartDetails, Translation
from transformer_cli.text.languages import FUNCTION_WORDS, frequent_words, has_spaces, primary_language

if TYPE_CHECKING:
    from transformer_cli.decoding.text_pipeline import TextPipeline
    from transformer_cli.decoding.translator import Translator

_WORD = re.compile(r"(?<![\w'\u2019-])[^\W_]+(?![\w'\u2019-])")
_FEWEST_LETTERS = 3
_READ_AT_ONCE = 1000
# Beside the frequent words and the function words of a language: what a good translation often has no word of its own for.
_OFTEN_LEFT_OUT = {
    "de": "alle also auch befinden befindet beginnt beide beim bereit besteht dabei damit dann daran darauf davon "
    "dazu deren dessen diese diesem diesen dieser dieses doch dort einander einige einigen etwas euch gerade "
    "gibt hier ihm ihn ihnen ihr ihrem ihren ihrer ihres immer kann kannst machen macht machte mal man mich "
    "mir noch nun nur schon sehr sein seinem seinen seiner seines selbst sich sind sowie steht uns viel vor "
    "wird wurde wurden während",
    "en": "again all any been being both doing done down each ever get gets getting going got her here him how just "
    "kind let like made make makes may might off one other out over own pair piece please quite really shall "
    "some such take takes them then there thing things those too took way well what",
    "es": "algo algunos aquí así cada cual cuyo desde donde ellas ellos era esa ese eso esta este esto estoy están "
    "fue hace hacer hay les mismo más nos otro puede qué ser soy también tan tiene toda todo todos usted",
    "fr": "aussi avez avoir avons bien cela celle celui ces cet cette chaque chez deux dont elles encore eux faire "
    "fait fois font ici ils leurs lui moi même mêmes ont peu peut plus quel quelle quelques quoi sera soi sont "
    "suis tout toute toutes vos était être",
    "it": "abbiamo alcuni anche ancora bene ciò così cui dove egli ella era erano essere fare fatto già hai hanno "
    "loro mai molti noi nostro ogni ora più poi proprio può qua quale quanto quei quel quella quello questa "
    "questi questo qui sei sempre siamo sta stato sue suoi tutta tutti tutto voi",
    "nl": "aan alle daar dan deze dit elkaar gaat geen heb hebben hem hen hier hun iets jij jou jullie kan maakt mij "
    "nog ook over staat toch toe toen uit veel weer wel werd wij worden wordt zich zou",
    "pt": "aos aqui assim até bem cada dela dele depois elas eles essa esse esta este faz fazer foi isso lhe mais "
    "mesmo nos nós onde outro pode qual quem ser são também tem ter toda todo todos tão vocês",
}


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
        (part.source_ids, part.target_ids): [*without_each_word(part, pipeline)]
        for translation in translations
        if translation.details is not None and not without_unseen_words(translation.doubts)
        for part in translation.details.parts
    }
    log_probs = _log_probs(
        translator, [(Request(ids), target) for (_, target), found in shorter.items() for _, ids in found]
    )
    without = {key: [(word, next(log_probs)) for word, _ in found] for key, found in shorter.items()}
    return [_with_doubt(each, without) for each in translations]


def _log_probs(translator: "Translator", pairs: Sequence[tuple[Request, TokenIds]]) -> Iterator[float]:
    """The log-probability of each target after its source.

    Some are read at a time: with them come attention weights, which for all the long lines of a window would take gigabytes.
    """
    engine, batch_tokens = translator.explaining_engine(), translator.decoding.batch_tokens
    for start in range(0, len(pairs), _READ_AT_ONCE):
        requests, targets = zip(*pairs[start : start + _READ_AT_ONCE], strict=True)
        for explanation in engine.explain(requests, targets, batch_tokens=batch_tokens):
            yield float(explanation.token_log_probs.sum(dtype="float64"))


def _with_doubt(
    translation: Translation, without: Mapping[tuple[TokenIds, TokenIds], Sequence[tuple[str, float]]]
) -> Translation:
    if translation.details is None or without_unseen_words(translation.doubts):
        return translation
    source = translation.source.casefold()
    lost = [
        word
        for part in translation.details.parts
        for word, log_prob in without[part.source_ids, part.target_ids]
        # A name or a number that stands in for a protected span is no word of the source.
        if (word.islower() or word.casefold() in source)
        and log_prob > float(part.explanation.token_log_probs.sum(dtype="float64"))
    ]
    if not lost:
        return translation
    return replace(translation, doubts=(*translation.doubts, f"{OMITS}: {', '.join(dict.fromkeys(lost))}"))


def without_each_word(part: PartDetails, pipeline: "TextPipeline") -> Iterator[tuple[str, TokenIds]]:
    """Each word with a meaning of its own, and the source tokens of the part without it.

    Nothing for a part of one word, and for one that the model cannot read wholly.
    """
    if pipeline.source_tokenizer.unk_id in part.source_ids:
        return
    text = pipeline.source_tokenizer.decode(part.source_ids)
    words = [*_WORD.finditer(text)]
    if len(words) < 2:
        return
    language = primary_language(pipeline.languages.source)
    of_language = (FUNCTION_WORDS.get(language, ""), _OFTEN_LEFT_OUT.get(language, ""))
    left_out = {*frequent_words(language), *" ".join(of_language).split()}
    for word in words:
        is_name_or_number = word[0][0].isdigit() or (word.start() > 0 and not word[0].islower())
        if word[0].lower() in left_out or (len(word[0]) < _FEWEST_LETTERS and not is_name_or_number):
            continue
        rest = f"{text[: word.start()].rstrip()} {text[word.end() :].lstrip()}".strip()
        yield word[0], pipeline.source_ids(re.sub(r" (?=[.,;:!?])", "", rest))
