"""One int8 model in three engines: WebAssembly in Node, Firefox's, and our reading in numpy; and back as a run."""

import struct
from pathlib import Path

import numpy as np
import pytest

from transformer_cli.checkpoint import load_trained
from transformer_cli.extensions.exchange.bergamot import (
    MODEL_FILE,
    BergamotFolder,
    bergamot_files,
    read_model,
)
from transformer_cli.extensions.exchange.browser import node, translated_in_node
from transformer_cli.extensions.exchange.export import float32_translator
from transformer_cli.extensions.exchange.import_folder import import_folder
from transformer_cli.extensions.exchange.marian_reading import MarianModel
from transformer_cli.extensions.exchange.model_folder import NamedLanguages
from transformer_cli.process.errors import DataError
from transformer_cli.text.sentencepiece_model import parsed_model

from .students import (
    MODEL,
    STUDENT,
    VOCABULARY,
    installed_engine,
    known_sentences,
    translated_by_firefox,
    write_page,
)

ODD = [
    "",
    " ",
    "\u200b\ufeff",
    "a" * 3000,
    "\0\1\2",
    "😀" * 200,
    "\ud800 half",
    "? ! .",
    "<b>x</b> &amp;",
    "ไทย",
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if node() is None:
        pytest.skip("bergamot-translator: needs node")
    folder = tmp_path_factory.mktemp("engine")
    return write_page(folder / "page", installed_engine(folder))


def num_equal(some: list[str], others: list[str]) -> int:
    return sum(a.strip() == b.strip() for a, b in zip(some, others, strict=True))


@pytest.mark.heavy
def test_the_engine_of_the_page_and_that_of_firefox_translate_the_same(page: Path) -> None:
    lines = known_sentences()
    assert num_equal(translated_in_node(page, lines), translated_by_firefox(lines)) >= 198


@pytest.mark.heavy
def test_the_engine_of_the_page_translates_as_our_reading_of_its_files(page: Path) -> None:
    lines = known_sentences()
    ours = [one.text for one in BergamotFolder(STUDENT).decode(lines, [80] * len(lines))]
    assert num_equal(translated_in_node(page, lines), ours) >= 198


@pytest.mark.heavy
def test_odd_lines_give_as_many_translations_in_the_engine_of_the_page(page: Path) -> None:
    assert len(translated_in_node(page, ODD)) == len(ODD)
    assert translated_in_node(page, ODD)[:2] == ["", ""]


def test_two_products_that_do_not_fit_into_16_bits_are_cut() -> None:
    """Computed here as the engines do it: unsigned times signed numbers, sums of two in 16 bits, all others exact."""
    generator = np.random.default_rng(1)
    weight = generator.normal(size=(64, 32)).astype(np.float32)
    weight[10:12, 3] = [4.9, 5.0]
    weight[20:22, 5] = [-5.0, -4.8]
    scale = 127 / np.abs(weight).max()
    whole = np.rint(weight * scale).astype(np.int64)
    weight = (whole / scale).astype(np.float32)  # as it is read from a file
    x = generator.normal(size=(7, 64)).astype(np.float32)
    x[:, 10:12] = 3.0
    model = MarianModel({"W": weight}, {"transformer-heads": 1, "dim-emb": 64}, {"W": 40.0})
    found = model._product(x, "W")
    left = np.clip(np.rint(x * 40.0), -127, 127).astype(np.int64) + 127
    pairs = left.reshape(7, 32, 2, 1) * whole.reshape(32, 2, 32)
    sums = np.clip(pairs.sum(2), -(2**15), 2**15 - 1).sum(1) - 127 * whole.sum(0)
    np.testing.assert_allclose(found, sums / (40.0 * scale), rtol=1e-4, atol=1e-4)
    exact = (left - 127) @ whole / (40.0 * scale)
    assert set(np.flatnonzero(np.abs(found - exact).max(0) > 0.01)) == {3, 5}


# Back to a run.


def imported(folder: Path, runs: Path, name: str = "back") -> Path:
    return import_folder(folder, name, NamedLanguages(), runs_folder=runs)[1].path


def copied(folder: Path) -> Path:
    folder.mkdir()
    for path in STUDENT.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_a_binary_model_becomes_a_run_that_translates_as_it_does(tmp_path: Path) -> None:
    found, run = import_folder(STUDENT, "back", NamedLanguages(), runs_folder=tmp_path)
    assert [str(one) for one in found.config.data.directions] == ["en-it"]
    assert "int8" in found.notes[0]
    trained = load_trained(run.path)
    lines = known_sentences()[:30]
    translator = float32_translator(trained, 1)
    ours = [one.text for one in translator.translate(lines)]
    binary = [one.text for one in BergamotFolder(STUDENT).decode(lines, [80] * len(lines))]
    assert num_equal(ours, binary) >= 29


def test_a_second_export_has_the_same_numbers(tmp_path: Path) -> None:
    trained = load_trained(imported(STUDENT, tmp_path))
    again = read_model(bergamot_files(trained, is_rounded=True)[MODEL_FILE], MODEL)
    before = read_model(MODEL.read_bytes(), MODEL)
    assert again.arrays.keys() == before.arrays.keys()
    for name in (
        "encoder_l1_self_Wq",
        "decoder_l1_rnn_Wf",
        "encoder_l2_ffn_W2",
        "decoder_l1_ffn_b1",
    ):
        np.testing.assert_allclose(again.arrays[name], before.arrays[name], rtol=1e-6, atol=1e-7)


def test_languages_are_those_of_the_name_of_the_model_as_in_firefox(tmp_path: Path) -> None:
    folder = tmp_path / "firefox"
    folder.mkdir()
    (folder / "model.enit.intgemm.alphas.bin").write_bytes(MODEL.read_bytes())
    (folder / "vocab.enit.spm").write_bytes(VOCABULARY.read_bytes())
    (folder / "lex.50.50.enit.s2t.bin").write_bytes(b"a shortlist")
    found, _ = import_folder(folder, "back", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert [str(one) for one in found.config.data.directions] == ["en-it"]


def header_of(content: bytes, name: str) -> int:
    """Where the header of a tensor stands."""
    _, number = struct.unpack_from("<QQ", content)
    place = 16 + 32 * number
    for index in range(number):
        [length] = struct.unpack_from("<Q", content, 16 + 32 * index)
        if content[place : place + length - 1].decode() == name:
            return 16 + 32 * index
        place += length
    raise AssertionError(name)


def with_type(content: bytes, name: str, kind: int) -> bytes:
    changed = bytearray(content)
    struct.pack_into("<Q", changed, header_of(content, name) + 8, kind)
    return bytes(changed)


WHOLE = MODEL.read_bytes()
DAMAGED = {
    "cut in a tensor": (WHOLE[:100_000], r"tensor \w+ is cut off: the file ends"),
    "cut in its list": (WHOLE[:500], "the file ends in the list of its tensors"),
    "empty": (b"", "the file ends in its first line"),
    "a text": (b"<html>not found</html>" * 9, "not a binary model of Marian"),
    "an unknown type": (with_type(WHOLE, "encoder_l1_self_Wq", 0x4102), "tensor encoder_l1_self_Wq holds numbers of the type 0x4102"),
    "int8 as float32": (with_type(WHOLE, "encoder_l1_self_Wq", 0x0404), r"tensor encoder_l1_self_Wq of the shape \[64, 64\] needs 16,384 bytes"),
    "another name": (WHOLE.replace(b"encoder_l1_self_bq\0", b"encoder_l1_self_xq\0"), "there is no tensor encoder_l1_self_bq"),
    "an unknown layer": (WHOLE.replace(b"dec-cell: ssru", b"dec-cell: lstm"), "transformer-decoder-autoreg: 'rnn'"),
    "an unknown order": (WHOLE.replace(b"transformer-postprocess: dan", b"transformer-postprocess: daz"), "transformer-postprocess: 'daz'"),
    "other heads": (WHOLE.replace(b"transformer-heads: 4", b"transformer-heads: 7"), "these sizes fit no model of ours"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_model_is_refused_by_the_name_of_the_tensor_or_the_setting(
    damage: str, tmp_path: Path
) -> None:
    content, message = DAMAGED[damage]
    assert content != WHOLE
    folder = copied(tmp_path / "in")
    (folder / MODEL_FILE).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        imported(folder, tmp_path / "runs")
    assert MODEL_FILE in str(caught.value)
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").iterdir())


def test_a_vocabulary_of_another_size_is_refused(tmp_path: Path) -> None:
    folder = copied(tmp_path / "in")
    model = parsed_model(VOCABULARY.read_bytes(), "vocab.spm")
    del model.pieces[-9:]
    (folder / "vocab.spm").write_bytes(model.SerializeToString())
    with pytest.raises(DataError, match="dim-vocabs"):
        imported(folder, tmp_path / "runs")
