"""The check of an imported model: the library transformers, with the same folder, must give the same ids and logits."""

import importlib.util
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from transformer_cli.extensions.exchange.interchange.foreign_tokenizers.marian_tokenizers import (
    ForeignTokenizers,
)
from transformer_cli.extensions.exchange.porting.importing.model_folder import PICKLED, WEIGHTS
from transformer_cli.process.errors import DataError
from transformer_cli.process.escaping import on_one_line
from transformer_cli.text import Tokenizer

if TYPE_CHECKING:
    from transformer_cli.model import Transformer

logger = logging.getLogger(__name__)

SENTENCES = (
    "Good morning.",
    "The train to the airport leaves at 7:45, doesn't it?",
    "Où est la gare ? Elle est à côté de l'église.",
    "Das Mädchen hört gern Musik; ihr Bruder (12) auch!",
    "¿Cuánto cuesta esto? — 3.000,50 €.",
    "Это очень хорошая книга.",
    "火车站在哪里。",
    "visit https://example.org or write to me@example.org",
)
MOST = 1e-3
"""Larger differences are no rounding: the logits of these models are of the order of 10."""
_NUM_TARGET_IDS = 12


def compare(folder: Path, tokenizers: ForeignTokenizers, model: "Transformer") -> list[str]:
    """Compare ids and logits on a few sentences; `ImportedModel.compare` of a folder of transformers.

    Raises:
        DataError: they differ.
    """
    if importlib.util.find_spec("transformers") is None:
        return ["not compared: the package transformers is not installed; the weights were converted by their names"]  # fmt: skip
    if not (folder / WEIGHTS).is_file():
        reason = f"transformers would read {PICKLED} without a limit"
        return [f"not compared with transformers: {reason}; the weights were converted by their names"]  # fmt: skip
    try:
        return _compared(folder, tokenizers, model)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError) as error:
        logger.debug("transformers cannot load %s", folder, exc_info=error)
        return [f"not compared: transformers cannot load {folder}: {on_one_line(str(error), 200)}"]


def _compared(folder: Path, tokenizers: ForeignTokenizers, model: "Transformer") -> list[str]:
    import transformers

    transformers.utils.logging.disable_progress_bar()
    options: dict[str, Any] = {"local_files_only": True}
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        folder, dtype=torch.float32, use_safetensors=True, **options
    ).eval()
    of_folder = transformers.AutoTokenizer.from_pretrained(folder, **options)
    largest, num_different = 0.0, 0
    source, rows = tokenizers.source, torch.tensor(tokenizers.target_rows)
    encoded = {sentence: [*source.encode(sentence), source.eos_id] for sentence in SENTENCES}
    short = {one: ids for one, ids in encoded.items() if len(ids) <= model.config.max_length}
    for sentence, ids in short.items():
        their_ids = [tokenizers.source_rows[index] for index in ids]
        num_different += of_folder(sentence)["input_ids"] != their_ids
        target_ids = _some_ids(tokenizers.target, len(sentence))
        largest = max(largest, _difference(model, theirs, ids, their_ids, target_ids, rows))
    name = f"transformers {transformers.__version__}"
    if not largest <= MOST:
        raise DataError(f"the imported model computes other logits than {name}: they differ by {largest:.2g}")  # fmt: skip
    same = "the same ids" if not num_different else f"the same ids in {len(short) - num_different} of them"  # fmt: skip
    return [f"{len(short)} sentences, {name}: {same}; logits differ by at most {largest:.1e}"]


def _some_ids(tokenizer: Tokenizer, seed: int) -> list[int]:
    """Ids of ordinary entries, as the beginning of a translation."""
    first = len(tokenizer.special_tokens)
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(first, tokenizer.vocab_size, (_NUM_TARGET_IDS,), generator=generator)
    return [tokenizer.sos_id, *ids.tolist()]


def _difference(
    model: "Transformer",
    theirs: Any,
    ids: list[int],
    their_ids: list[int],
    target_ids: list[int],
    rows: torch.Tensor,
) -> float:
    """The largest difference of the logits of all entries but [SOS], which the other program does not have."""
    source, target = torch.tensor([ids]), torch.tensor([target_ids])
    with torch.inference_mode():
        ours = model(source, torch.ones_like(source, dtype=torch.bool), target)
        expected = theirs(input_ids=torch.tensor([their_ids]), decoder_input_ids=rows[target]).logits  # fmt: skip
    difference = (ours - expected[..., rows]).abs()
    difference[..., Tokenizer.sos_id] = 0.0
    return float(difference.max())
