"""The shortlist as CTranslate2 reads it: vmap.txt."""

import numpy as np
import pytest

from transformer_cli.decoding.engine import Request
from transformer_cli.decoding.shortlist import Shortlist
from transformer_cli.extensions.exchange.ctranslate2_engine import VOCABULARY_MAP
from transformer_cli.text.tokenizer import Tokenizer

from ...decoding.small_translators import random_model, tokenizer_of_words

TOKENIZER = tokenizer_of_words()
SIZE = TOKENIZER.vocab_size
ORDINARY = [*range(len(TOKENIZER.special_tokens), SIZE)]


def shortlist(translations: dict[int, list[int]], *, copies: bool = False) -> Shortlist:
    lists = [translations.get(token, []) for token in range(SIZE)]
    starts = np.cumsum([0, *map(len, lists)])
    flat = np.array([one for of_token in lists for one in of_token], np.int64)
    return Shortlist(starts, flat, np.arange(5), SIZE, best=2, copies=copies, name="some")


def test_each_line_has_a_source_token_and_its_translations() -> None:
    names = [f"n{number}" for number in range(SIZE)]
    content = shortlist({6: [9, 8, 7], 7: [5]}).vocabulary_map(names, names).decode()
    assert content == "\tn0 n1 n2 n3 n4\nn6\tn9 n8\nn7\tn5\n"
    lines = shortlist({6: [9]}, copies=True).vocabulary_map(names, names).decode().splitlines()
    assert lines[1 + 6] == "n6\tn9 n6"
    assert len(lines) == 1 + SIZE


def test_ctranslate2_chooses_among_these_tokens() -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    from transformer_cli.extensions.exchange.ctranslate2_models import ctranslate2_files

    made = ctranslate2_files(random_model(TOKENIZER).float(), TOKENIZER)
    names = [*map(str, range(SIZE))]
    source = Request((*TOKENIZER.encode("uno due tre"), Tokenizer.eos_id)).ids

    def written(files: dict[str, bytes], **options: bool) -> set[int]:
        translator = ctranslate2.Translator("model", device="cpu", files=files)
        [result] = translator.translate_batch(
            [[str(token) for token in source]],
            beam_size=1,
            max_decoding_length=20,
            return_end_token=True,
            **options,
        )
        return {int(token) for token in result.hypotheses[0]}

    freely = written(made)
    others = [token for token in ORDINARY if token not in freely][:2]
    one = shortlist({token: others for token in ORDINARY})
    files = {**made, VOCABULARY_MAP: one.vocabulary_map(names, names)}
    assert written(files, use_vmap=True) <= {*one.of(source).tolist()}
    assert written(files, use_vmap=True) != freely
    assert written(files, use_vmap=False) == freely
