"""The translator of documents that a trained model gives: translations, and links between words by attention."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transformer_cli.decoding import ExplainingEngine, Translator
from transformer_cli.decoding.given_pairs import TextAligner
from transformer_cli.extensions.documents.segments import Languages
from transformer_cli.extensions.documents.text_translator import (
    AnsweredText,
    AskedText,
    LinkedWords,
)
from transformer_cli.text.sentences import Sentence, split_sentences_around
from transformer_cli.text.spans import find_spans, span_texts


@dataclass(frozen=True, slots=True)
class ModelTranslator:
    """A `TextTranslator` of a `Translator` for one direction."""

    translator: Translator

    @classmethod
    def of(
        cls, translator: Translator, *, to: str | None = None, from_: str | None = None
    ) -> "ModelTranslator":
        """The translator of documents in one direction.

        It protects spans.

        Args:
            to: the target language, for a model that translates into several.
            from_: the source language, for a model that translates from several into `to`.
        """
        return cls(
            replace(
                translator.towards(to, from_),
                protects_spans=True,
                reports_lines=False,
                is_strict=False,
            )
        )

    @property
    def languages(self) -> Languages:
        """See `TextTranslator.languages`."""
        return Languages(*self.translator.pipeline.languages)

    def sentences(self, text: str) -> list[Sentence]:
        """See `TextTranslator.sentences`."""
        if not self.translator.pipeline.splits_sentences:
            return [Sentence(text, "")]
        return split_sentences_around(find_spans(text), text, self.languages.source)

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        """See `TextTranslator.translate`."""
        translations = list(self.translator.translate([asked.text for asked in texts]))
        links = self._links(
            [
                (asked.text, translation.text)
                for asked, translation in zip(texts, translations, strict=True)
                if asked.needs_links
            ]
        )
        return [
            AnsweredText(
                translation.text,
                links[asked.text, translation.text] if asked.needs_links else (),
                is_copied=translation.is_partly_copied,
                is_in_pieces=translation.is_in_pieces,
                is_cut=translation.is_cut,
                is_divided=translation.is_divided,
                is_untranslated=translation.is_untranslated,
                spans_of_terms=frozenset(
                    span
                    for term in translation.terms
                    for text in (term.source, term.target)
                    for span in span_texts(text, find_spans(text))
                ),
            )
            for asked, translation in zip(texts, translations, strict=True)
        ]

    def _links(
        self, pairs: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[LinkedWords, ...]]:
        """The links of each pair of a text and its translation; none if the engine cannot tell its attention."""
        engine = self.translator.engine
        if not isinstance(engine, ExplainingEngine):
            return dict.fromkeys(pairs, ())
        aligner = TextAligner(
            self.translator.pipeline, engine, self.translator.decoding.batch_tokens
        )
        found = zip(pairs, aligner.align(pairs), strict=True)
        return {pair: tuple(LinkedWords(*link) for link in links) for pair, links in found}
