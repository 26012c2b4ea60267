"""Sentence pairs from data sets that the Hugging Face `datasets` library can load."""

import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from transformer_cli.config.data import HubData
from transformer_cli.data.fields import Fields, field_paths, value_at
from transformer_cli.data.lines import MAX_LINE_BYTES, RawPair, decode_pairs
from transformer_cli.data.pairs import ReadingReport
from transformer_cli.errors import DataError, MissingInputError
