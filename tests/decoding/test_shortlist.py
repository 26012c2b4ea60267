"""A shortlist restricts the output layer of a prepared model, and nothing else: the same search among fewer tokens."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from transformer_cli.acceleration.native_kernels import SWITCH
from transformer_cli.acceleration.prepared_transformer import PreparedTransformer
from transformer_cli.config import ShortlistConfig, TokenizerConfig
from transformer_cli.decoding import Translator
from transformer_cli.decoding.engine import Request
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.decoding.shortlist import Shortlist, load_shortlist, shortlist_content
from transformer_cli.evaluation.validation import conditions_of
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

from .small_translators import WORDS, random_model, tokenizer_of_words, translator

TOKENIZER = tokenizer_of_words()
LINES = [" ".join(WORDS[first:last]) for first in range(8) for last in range(first + 1, 9)]
SIZE = TOKENIZER.vocab_size


def shortlist_of(
    translations: dict[int, list[int]], frequent: list[int], settings: dict[str, int] | None = None
) -> Shortlist:
    """Of a table in a file, as `tfm shortlist` writes it."""
    lists = [translations.get(token, []) for token in range(SIZE)]
    starts = np.cumsum([0, *map(len, lists)])
    flat = np.array([one for of_token in lists for one in of_token], np.int64)
    both = TOKENIZER, TOKENIZER
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shortlist.npz"
        path.write_bytes(shortlist_content(starts, flat, np.array(frequent), both))
        return load_shortlist(path, ShortlistConfig.model_validate(settings or {}), both)


ORDINARY = [*range(len(TOKENIZER.special_tokens), SIZE)]
EVERYTHING = shortlist_of({}, ORDINARY)
SOME = shortlist_of({token: [ORDINARY[(token * 7) % len(ORDINARY)]] for token in ORDINARY}, ORDINARY[:2])


@pytest.fixture(params=["kernels", "PyTorch"], autouse=True)
def with_and_without_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "PyTorch":
        monkeypatch.setenv(SWITCH, "0")


def prepared(shortlist: Shortlist | None, **settings: Any) -> Translator:
    model = random_model(TOKENIZER).float()
    made = translator(TOKENIZER, model=model, **settings)
    assert isinstance(made.engine, PyTorchEngine)
    return replace(made, engine=replace(made.engine.prepared(), shortlist=shortlist))


def found(one: Translator, lines: list[str] = LINES) -> list[list[tuple[str, float]]]:
    return [
        [(other.text, pytest.approx(other.score, abs=1e-4)) for other in line.alternatives]
        for line in one.translate(lines)
    ]


@pytest.mark.long
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_shortlist_of_everything_changes_nothing(beam_size: int) -> None:
    settings = {"beam_size": beam_size, "num_best": beam_size}
    assert found(prepared(EVERYTHING, **settings)) == found(prepared(None, **settings))


@pytest.mark.heavy
@pytest.mark.parametrize(
    "settings",
    [
        {"beam_size": 1},
        {"beam_size": 3, "num_best": 3},
        {"beam_size": 4, "diversity": {"groups": 2}},
        {"beam_size": 2, "no_repeat_ngram_size": 1},
    ],
)
def test_a_translation_has_only_its_candidates_and_does_not_depend_on_its_batch(
    settings: dict[str, Any],
) -> None:
    restricted = prepared(SOME, **settings)
    together = found(restricted)
    assert [found(restricted, [line])[0] for line in LINES[::5]] == together[::5]
    assert together != found(prepared(None, **settings))
    for line, of_line in zip(LINES, together, strict=True):
        allowed = set(SOME.of((*TOKENIZER.encode(line), Tokenizer.eos_id)).tolist())
        for text, _ in of_line:
            assert set(TOKENIZER.encode(text)) <= allowed


def test_scores_are_those_of_a_softmax_over_the_candidates() -> None:
    model = random_model(TOKENIZER).float()
    whole = PreparedTransformer(model, torch.float32)
    sources = [tuple(TOKENIZER.encode(line)) for line in ("uno due tre", "sette otto cinque")]
    ids, is_allowed = SOME.restriction(sources)
    part = whole.restricted(torch.from_numpy(ids), torch.from_numpy(is_allowed))
    source_ids = torch.tensor(sources)
    with torch.inference_mode():
        states = [one.start_decoding(one.encode(source_ids, None), None) for one in (whole, part)]
        rows, sentences = torch.tensor([1, 0, 0]), torch.arange(2)
        places = torch.full((2,), int(np.searchsorted(ids, Tokenizer.sos_id)))
        for step in range(3):
            full = states[0].advance(torch.from_numpy(ids)[places])
            fewer = states[1].advance(places)
            of_rows = torch.from_numpy(is_allowed)[sentences]
            expected = full[:, ids].where(of_rows, -torch.inf).log_softmax(-1)
            torch.testing.assert_close(fewer.where(of_rows, -torch.inf), expected, atol=1e-4, rtol=1e-4)
            assert (fewer[~of_rows] < -1e30).all()
            if step == 0:
                for state in states:
                    state.select(rows)
                sentences = sentences[rows]
            places = torch.randint(len(ids), (len(sentences),))


@pytest.mark.long
@pytest.mark.parametrize("settings", [{"coverage_penalty": 0.2}, {"sampling": {"seed": 3}, "num_best": 2}])
def test_what_needs_the_whole_vocabulary_searches_it(settings: dict[str, Any]) -> None:
    assert found(prepared(SOME, **settings)) == found(prepared(None, **settings))


@pytest.mark.long
def test_a_forced_prefix_may_have_any_token() -> None:
    engine = prepared(SOME).engine
    source = (*TOKENIZER.encode("uno due"), Tokenizer.eos_id)
    outside = next(one for one in ORDINARY if one not in SOME.of(source).tolist())
    requests = [Request(source, prefix=(outside,)), Request(source)]
    [[first, *_], _] = engine.translate(requests, prepared(SOME).decoding)
    assert first.ids[0] == outside


def test_scores_name_the_shortlist_in_their_signature() -> None:
    plain = conditions_of(prepared(None))
    assert "shortlist" not in plain
    assert conditions_of(prepared(SOME)) == f"{plain}|shortlist:{SOME.name}"
    assert SOME.name.startswith("100+100.")


def test_the_settings_choose_how_many_of_the_table_are_used() -> None:
    table = {5: [*reversed(ORDINARY)]}
    few = shortlist_of(table, ORDINARY, {"frequent": 1, "best": 2})
    special = {0, 1, 2, 3}
    # The source tokens are candidates too: both sides have one vocabulary.
    assert set(few.of((5,)).tolist()) == special | {ORDINARY[0], 5, *ORDINARY[-2:]}


def test_another_vocabulary_and_damage_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "shortlist.npz"
    both = TOKENIZER, TOKENIZER
    with pytest.raises(MissingInputError, match="cannot be read"):
        load_shortlist(path, ShortlistConfig(), both)
    good = shortlist_content(np.zeros(SIZE + 1, np.int64), np.array([], np.int64), np.array([4]), both)
    path.write_bytes(good)
    assert load_shortlist(path, ShortlistConfig(), both).of((4,)).tolist() == [0, 1, 2, 3, 4]
    other = train_tokenizer(["altro"], TokenizerConfig())
    with pytest.raises(DataError, match="made for other vocabularies"):
        load_shortlist(path, ShortlistConfig(), (TOKENIZER, other))
    wrong = shortlist_content(np.zeros(SIZE + 1, np.int64), np.array([], np.int64), np.array([SIZE]), both)
    in_stream = bytearray(good)
    in_stream[60:80] = bytes(20)  # zlib refuses it, before a checksum is compared
    for content in (good[:-30], b"", b"text", wrong, bytes(in_stream)):
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a shortlist, or damaged"):
            load_shortlist(path, ShortlistConfig(), both)
