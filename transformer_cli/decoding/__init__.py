"""Translation with a trained model: the text pipeline, engines, search, and the translator over them."""

from transformer_cli.decoding.engine import Engine, Hypothesis, SpecialIds, TokenIds
from transformer_cli.decoding.text_pipeline import (
    Alternative,
    PreparedLine,
    TextPipeline,
    Translation,
)
from transformer_cli.decoding.translator import Translator

__all__ = [
    "Alternative",
    "Engine",
    "Hypothesis",
    "PreparedLine",
    "SpecialIds",
    "TextPipeline",
    "TokenIds",
    "Translation",
    "Translator",
]
