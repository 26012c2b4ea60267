"""Explains lines: what a trained model does with each, from its tokens to its translation."""

from dataclasses import dataclass, replace
from typing import Any

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import TokenIds, Translator
from transformer_cli.decoding.details import places_of
from transformer_cli.decoding.engines.ensemble import EnsembleEngine
from transformer_cli.decoding.engines.pytorch import PyTorchEngine
from transformer_cli.decoding.translation import PreparedLine
from transformer_cli.extensions.lessons.explaining.explained_sentence import SentenceExplainer
from transformer_cli.extensions.lessons.explaining.explanation import FORMAT, LineExplanation
from transformer_cli.model import Transformer
from transformer_cli.process.errors import DataError, UsageError

TEMPERATURES = tuple(round(0.1 * tenths, 1) for tenths in range(2, 21))
"""From 0.2 to 2.0."""
NUM_ALTERNATIVES = 5


@dataclass(frozen=True, slots=True)
class Explainer:
    """Explains what a model does with a line: the same search as that of a translation, observed."""

    translator: Translator
    engine: PyTorchEngine
    num_alternatives: int = NUM_ALTERNATIVES
    """How many of the most probable tokens are told for each place."""

    @classmethod
    def of(cls, translator: Translator, *, num_alternatives: int = NUM_ALTERNATIVES) -> "Explainer":
        """The explainer of a translator of one direction.

        Raises:
            UsageError: it is an ensemble, or another library translates, or its settings ask for another search.
        """
        engine, decoding = translator.engine, translator.decoding
        if isinstance(engine, EnsembleEngine):
            raise UsageError("the inside of an ensemble cannot be shown", hint="name one run")
        if not isinstance(engine, PyTorchEngine):
            raise UsageError(
                "only the engine that runs on PyTorch can show the inside of a model",
                hint="set decoding.engine=torch",
            )
        for name in ("sampling", "mbr", "diversity"):
            if getattr(decoding, name) is not None:
                raise UsageError(
                    f"decoding.{name}: plain beam search is explained, and nothing else",
                    hint=f"set decoding.{name}=null",
                )
        return cls(translator, engine, num_alternatives)

    def explain(
        self,
        line: str,
        *,
        beam_size: int | None = None,
        num_best: int | None = None,
        prefix: str = "",
        prefix_ids: TokenIds = (),
        continues: bool = False,
    ) -> LineExplanation:
        """What the model does with a line.

        The line is read as `tfm translate` reads it, but without `decoding.keep_layout`.

        Args:
            beam_size, num_best: instead of the settings; a `num_best` above the beam size is lowered to it.
            prefix: whole words with which the translation of the first sentence begins.
            prefix_ids: target tokens with which it begins, instead of `prefix`; they may end inside a word.
            continues: whether each branch of the beam that was left is continued by greedy search.

        Raises:
            DataError: the search found no translation, or the model cannot write the prefix.
        """
        options = self._options(beam_size, num_best)
        prepared = self._prepared(line, prefix, prefix_ids)
        # Tokens that a user chose may end inside a word, and the rest of the word follows them.
        engine = replace(self.engine, continuing_ids=()) if prefix_ids else self.engine
        recorded = SentenceExplainer(
            replace(engine, observer=None),
            self.translator.pipeline,
            options,
            self.num_alternatives,
            TEMPERATURES,
        )
        places = places_of(prepared.texts, prepared.read)
        searched = [
            recorded.explain(request, text, place, continues=continues)
            for request, text, place in zip(prepared.parts, prepared.texts, places, strict=True)
        ]
        translation = self.translator.pipeline.restore(prepared, [one.found for one in searched])
        return LineExplanation(
            FORMAT,
            line,
            prepared.read,
            translation.text,
            self._languages,
            _facts_of_model(self.engine.model),
            _facts_of_search(options),
            TEMPERATURES,
            tuple(one.explained for one in searched),
        )

    def _options(self, beam_size: int | None, num_best: int | None) -> DecodingConfig:
        options = self.translator.decoding
        size = beam_size or options.beam_size
        best = min(num_best or options.num_best, size)
        return options.model_copy(update={"beam_size": size, "num_best": best})

    def _prepared(self, line: str, prefix: str, prefix_ids: TokenIds) -> PreparedLine:
        if prefix and prefix_ids:
            raise UsageError("a prefix as text and one as token ids were given", hint="give one")
        prepared = self.translator.pipeline.prepare(line, prefix)
        if not (prefix_ids and prepared.parts):
            return prepared
        self._check_prefix(prefix_ids)
        first = prepared.parts[0]._replace(prefix=prefix_ids)
        return replace(prepared, parts=(first, *prepared.parts[1:]))

    def _check_prefix(self, ids: TokenIds) -> None:
        pipeline = self.translator.pipeline
        tokenizer, max_length = pipeline.target_tokenizer, pipeline.max_length
        forbidden = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id, *tokenizer.tag_ids}
        if bad := [index for index in ids if not 0 <= index < tokenizer.vocab_size]:
            raise DataError(
                f"the prefix: token id {bad[0]}, but the ids are 0 to {tokenizer.vocab_size - 1}"
            )
        if special := [index for index in ids if index in forbidden]:
            raise DataError(
                f"the prefix: token id {special[0]} is {tokenizer.entries[special[0]]}, which no translation contains before its end"
            )
        if len(ids) >= max_length:
            raise DataError(
                f"the prefix: {len(ids)} tokens, but the model writes at most {max_length}",
                hint="give a shorter beginning",
            )

    @property
    def _languages(self) -> tuple[str | None, str | None]:
        languages = self.translator.pipeline.languages
        return languages.source, languages.target


def _facts_of_model(model: Transformer) -> dict[str, Any]:
    """The settings of a model that name the sizes of its tensors."""
    config = model.config
    names = ("d_model", "num_heads", "encoder_layers", "decoder_layers", "d_ff", "positions")
    facts = {name: getattr(config, name) for name in names}
    sizes = {"head_width": config.head_width, "num_kv_heads": config.kv_heads}
    return facts | sizes | {"norm_placement": config.norm_placement}


def _facts_of_search(options: DecodingConfig) -> dict[str, Any]:
    names = ("beam_size", "num_best", "length_penalty", "length_normalization", "coverage_penalty")
    return {name: getattr(options, name) for name in names}
