"""Translations as lines of output: their texts, n-best lists, word alignments, or JSON objects."""

import json
from typing import Any

from transformer_cli.commands.translating.wishes import Wishes
from transformer_cli.decoding import LineDetails, PartDetails, TextPipeline, Translation
from transformer_cli.decoding.details import pharaoh
from transformer_cli.decoding.translation import Alternative
from transformer_cli.process.errors import UsageError
from transformer_cli.process.escaping import escaped_in_json

_TAB = "\t"


def check_wishes(wishes: Wishes, *, as_json: bool) -> None:
    """Refuse wishes that do not fit together, before a model is loaded.

    Raises:
        UsageError: details without JSON or with protected spans, a dictionary for nothing, or an alignment of n-best lists.
    """
    for is_wished, option in ((wishes.details, "--details"), (wishes.attention, "--attention")):
        if is_wished and not as_json:
            raise UsageError(
                f"{option} works only with --json", hint=f"add --json, or leave out {option}"
            )
    if wishes.any_details and wishes.protects_spans:
        raise UsageError(
            "--protect cannot be used with --alignment, --details and --attention",
            hint="these options describe a translation of the whole line, but --protect may translate a line in pieces",
        )
    if wishes.dictionary is not None and not wishes.replace_unknown:
        raise UsageError(
            "--dictionary works only with --replace-unknown", hint="add --replace-unknown"
        )
    if wishes.num_best is not None and wishes.alignment and not as_json:
        raise UsageError(
            "--alignment shows only the best translation, but --n-best prints several",
            hint="leave out one of the two, or add --json, which shows both",
        )


def output_lines(
    translation: Translation, wishes: Wishes, pipeline: TextPipeline, *, as_json: bool
) -> list[str]:
    """The lines of the output for one line of the input; more than one only for the n best translations.

    Args:
        pipeline: the one that made the translation.
    """
    if as_json:
        return [_as_json(translation, wishes, pipeline)]
    if wishes.num_best is None:
        details = translation.details
        if not wishes.alignment:
            return [translation.text]
        return [f"{_without_tabs(translation.text)}\t{pharaoh(details.links if details else ())}"]
    # A line without any translation, such as a blank one, has rank 1 too: programs count lines by this rank.
    best = translation.alternatives or (Alternative(translation.text, translation.score),)
    return [
        f"{rank}\t{alternative.score:.6f}\t{_without_tabs(alternative.text)}"
        for rank, alternative in enumerate(best, start=1)
    ]


def _without_tabs(text: str) -> str:
    return text.replace(_TAB, " ")


def _as_json(translation: Translation, wishes: Wishes, pipeline: TextPipeline) -> str:
    facts: dict[str, Any] = {
        "source": translation.source,
        "translation": translation.text,
        "score": translation.score,
        "alternatives": [alternative._asdict() for alternative in translation.alternatives],
        "unknown_words": translation.unknown_words,
        "divided": translation.is_divided,
        "untranslated": translation.is_untranslated,
    }
    if wishes.glossary is not None:
        facts["terms"] = [
            {"source": term.source, "target": term.target, "applied": term.is_applied}
            for term in translation.terms
        ]
    if translation.details is not None:
        facts |= _details(translation.details, wishes, pipeline)
    return escaped_in_json(json.dumps(facts, ensure_ascii=False))


def _details(details: LineDetails, wishes: Wishes, pipeline: TextPipeline) -> dict[str, Any]:
    confidence = details.confidence
    facts: dict[str, Any] = {
        "alignment": pharaoh(details.links),
        "confidence": None if confidence is None else _rounded(confidence),
    }
    if wishes.details or wishes.attention:
        parts = [_part(part, pipeline) for part in details.parts]
        if wishes.attention:
            for part, of_part in zip(details.parts, parts, strict=True):
                weights = part.explanation.attention.tolist()
                of_part["attention"] = [[_rounded(weight) for weight in row] for row in weights]
        facts["parts"] = parts
    return facts


def _part(part: PartDetails, pipeline: TextPipeline) -> dict[str, Any]:
    explanation, tokenizer = part.explanation, pipeline.target_tokenizer
    rows = zip(
        tokenizer.tokens(part.target_ids),
        explanation.token_probs.tolist(),
        explanation.alignment,
        explanation.best_ids.tolist(),
        explanation.best_probs.tolist(),
        strict=True,
    )
    confidence = LineDetails((part,), ()).confidence
    return {
        "confidence": None if confidence is None else _rounded(confidence),
        "source_tokens": pipeline.source_tokenizer.tokens(part.source_ids),
        "target_tokens": [
            {
                "token": token,
                "probability": _rounded(probability),
                "source_token": source_token,
                "most_probable": [
                    {"token": name, "probability": _rounded(value)}
                    for name, value in zip(tokenizer.tokens(best_ids), best_probs, strict=True)
                ],
            }
            for token, probability, source_token, best_ids, best_probs in rows
        ],
    }


def _rounded(value: float) -> float:
    """Six significant digits: the others are noise of float32."""
    return float(f"{value:.6g}")
