"""One int8 model in three engines: WebAssembly in Node, Firefox's, and our reading in numpy; and back as a run."""

import struct
from pathlib import Path

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor

from transformer_cli.checkpoint.trained_files import TrainedModel, load_trained
from transformer_cli.config.decoding import ShortlistConfig
from transformer_cli.decoding.loading import load_run
from transformer_cli.decoding.shortlist import Shortlist, load_shortlist
from transformer_cli.extensions.exchange.bergamot import (
    MODEL_FILE,
    BergamotFolder,
    bergamot_files,
    read_model,
)
from transformer_cli.extensions.exchange.binary_shortlist import (
    _checksum,
    binary_shortlist_content,
    read_binary_shortlist,
)
from transformer_cli.extensions.exchange.browser import FILES, file_as_script, node, translated_in_node
from transformer_cli.extensions.exchange.export import float32_translator
from transformer_cli.extensions.exchange.import_folder import import_folder
from transformer_cli.extensions.exchange.marian_reading import MarianModel
from transformer_cli.extensions.exchange.model_folder import NamedLanguages
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.text.sentencepiece_model import parsed_model

from .students import (
    MODEL,
    STUDENT,
    VOCABULARY,
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
def page(tmp_path_factory: pytest.TempPathFactory, installed_engine: Path) -> Path:
    if node() is None:
        pytest.skip("bergamot-translator: needs node")
    return write_page(tmp_path_factory.mktemp("engine") / "page", installed_engine)


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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_languages_are_those_of_the_name_of_the_model_as_in_firefox(tmp_path: Path) -> None:
    folder = tmp_path / "firefox"
    folder.mkdir()
    (folder / "model.enit.intgemm.alphas.bin").write_bytes(MODEL.read_bytes())
    (folder / "vocab.enit.spm").write_bytes(VOCABULARY.read_bytes())
    found, _ = import_folder(folder, "back", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert [str(one) for one in found.config.data.directions] == ["en-it"]


# A shortlist beside it.

NUM_ENTRIES = parsed_model(VOCABULARY.read_bytes(), "vocab.spm").trainer_spec.vocab_size
LISTS = [[(7 * row + 11 * number) % NUM_ENTRIES for number in range(row % 5)] for row in range(NUM_ENTRIES)]
LISTS[-1] = [0]
SHORTLIST = "lex.50.50.enit.s2t.bin"


def with_shortlist(folder: Path, content: bytes) -> Path:
    (copied(folder) / SHORTLIST).write_bytes(content)
    return folder


def candidates(shortlist: Shortlist, trained: TrainedModel, text: str) -> set[str]:
    ids = (*trained.source_tokenizer.encode(text), trained.source_tokenizer.eos_id)
    return {trained.target_tokenizer.entries[index] for index in shortlist.of(ids).tolist()}


@pytest.mark.long
def test_a_binary_shortlist_comes_along_with_the_candidates_of_its_programs(tmp_path: Path) -> None:
    folder = with_shortlist(tmp_path / "in", binary_shortlist_content(50, 4, LISTS))
    found, run = import_folder(folder, "back", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert "decoding.shortlist={frequent: 50, best: 4}" in found.notes[1]
    trained = load_trained(run.path)
    both = trained.source_tokenizer, trained.target_tokenizer
    shortlist = load_shortlist(run.path / "shortlist.npz", ShortlistConfig(frequent=50, best=4), both)
    library = SentencePieceProcessor(model_file=str(VOCABULARY))
    for text in known_sentences()[:20]:
        source = [*library.encode(text), 0]
        expected = {*range(50), *source, *(one for row in source for one in LISTS[row])}
        names = {library.id_to_piece(one) for one in expected} - {"</s>", "<unk>"}
        assert names <= candidates(shortlist, trained, text)
        assert len(candidates(shortlist, trained, text) - names) == 4  # the special tokens


@pytest.mark.long
def test_the_int8_engine_uses_an_imported_shortlist_only_if_it_is_asked(tmp_path: Path) -> None:
    lines = known_sentences()[:20]
    few = binary_shortlist_content(8, 1, [[0]] * NUM_ENTRIES)
    for name, content in (("plain", None), ("few", few)):
        folder = copied(tmp_path / name)
        if content:
            (folder / SHORTLIST).write_bytes(content)
        imported(folder, tmp_path / "runs", name)
    settings = ["runtime.precision=int8", "runtime.threads=1", "decoding.repair=false"]

    def texts(name: str, *more: str) -> list[str]:
        translator = load_run(str(tmp_path / "runs" / name), [*settings, *more]).translator
        return [one.text for one in translator.translate(lines)]

    assert texts("few") == texts("plain")
    restricted = texts("few", "decoding.shortlist={frequent: 8, best: 1}")
    assert num_equal(restricted, texts("plain")) < 5
    with pytest.raises(MissingInputError, match=r"decoding\.shortlist"):
        texts("plain", "decoding.shortlist={}")


def changed(content: bytes, place: int, form: str, number: int) -> bytes:
    whole = bytearray(content)
    struct.pack_into(form, whole, place, number)
    return bytes(whole)


GOOD = binary_shortlist_content(50, 4, LISTS)
DAMAGED_SHORTLISTS = {
    "cut": (GOOD[:-4], r"its head tells of [\d,]+ bytes, but it has"),
    "cut in its head": (GOOD[:40], "fewer than the head of a shortlist"),
    "empty": (b"", "the file has 0 bytes"),
    "a text": (b"<html>not found</html>" * 9, "not a binary shortlist of Marian"),
    "another bit": (changed(GOOD, 16, "<Q", 51), "its checksum does not fit"),
    "a huge size": (changed(GOOD, 32, "<Q", 2**63), "its head tells of"),
    "other vocabularies": (binary_shortlist_content(50, 4, LISTS[:-1]), "made for other vocabularies"),
    "an id behind the end": (
        binary_shortlist_content(50, 4, [*LISTS[:-1], [NUM_ENTRIES]]),
        "made for other vocabularies",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGED_SHORTLISTS)
def test_a_damaged_shortlist_is_refused(damage: str, tmp_path: Path) -> None:
    content, message = DAMAGED_SHORTLISTS[damage]
    with pytest.raises(DataError, match=message) as caught:
        imported(with_shortlist(tmp_path / "in", content), tmp_path / "runs")
    assert SHORTLIST in str(caught.value)


def test_lists_of_a_shortlist_that_overlap_are_refused() -> None:
    content = binary_shortlist_content(1, 1, [[0], [1]])
    bad = changed(content, 48 + 8, "<Q", 5)
    bad = changed(bad, 8, "<Q", _checksum(bad))
    with pytest.raises(DataError, match="its lists do not follow each other"):
        read_binary_shortlist(bad, Path("lex.bin"), (2, 2))


@pytest.mark.heavy
def test_the_engine_of_the_page_reads_a_shortlist_that_was_written_here(page: Path) -> None:
    lines = known_sentences()[:20]
    plain = translated_in_node(page, lines)
    file = page / FILES / "shortlist.js"
    try:
        whole = binary_shortlist_content(NUM_ENTRIES, 1, [[0]] * NUM_ENTRIES)
        file.write_bytes(file_as_script("shortlist", whole))
        assert translated_in_node(page, lines) == plain
        few = binary_shortlist_content(8, 1, [[0]] * NUM_ENTRIES)
        file.write_bytes(file_as_script("shortlist", few))
        assert num_equal(translated_in_node(page, lines), plain) < 5
    finally:
        file.unlink()


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
    "an unknown type": (
        with_type(WHOLE, "encoder_l1_self_Wq", 0x4102),
        "tensor encoder_l1_self_Wq holds numbers of the type 0x4102",
    ),
    "int8 as float32": (
        with_type(WHOLE, "encoder_l1_self_Wq", 0x0404),
        r"tensor encoder_l1_self_Wq of the shape \[64, 64\] needs 16,384 bytes",
    ),
    "another name": (
        WHOLE.replace(b"encoder_l1_self_bq\0", b"encoder_l1_self_xq\0"),
        "there is no tensor encoder_l1_self_bq",
    ),
    "an unknown layer": (WHOLE.replace(b"dec-cell: ssru", b"dec-cell: lstm"), "transformer-decoder-autoreg: 'rnn'"),
    "an unknown order": (
        WHOLE.replace(b"transformer-postprocess: dan", b"transformer-postprocess: daz"),
        "transformer-postprocess: 'daz'",
    ),
    "other heads": (
        WHOLE.replace(b"transformer-heads: 4", b"transformer-heads: 7"),
        "these sizes fit no model of ours",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_model_is_refused_by_the_name_of_the_tensor_or_the_setting(damage: str, tmp_path: Path) -> None:
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
