"""Text to token ids and back: normalisation, splitting into words, tokenizers, padding."""

from transformer_cli.text.tokenizer import SequenceFormat as SequenceFormat
from transformer_cli.text.tokenizer import Tokenizer as Tokenizer
from transformer_cli.text.tokenizer import train_tokenizer as train_tokenizer
