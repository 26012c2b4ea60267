"""How good a model is: validation, scores, exact matches, and pictures of attention."""

from transformer_cli.evaluation.metrics import score_corpus as score_corpus
from transformer_cli.evaluation.validation import ValidationReport as ValidationReport
from transformer_cli.evaluation.validation import validate as validate
