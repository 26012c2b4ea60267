"""`tfm init` says what is odd about a corpus, on the screen and in the config."""

from pathlib import Path
from typing import Any

import openpyxl
import pytest

from transformer_cli.commands.init import init_command
from transformer_cli.config import load_config
from transformer_cli.data.preparation import prepare_data
from transformer_cli.data.sources.corpus import read_pairs, read_phrasebook
from transformer_cli.process.errors import CannotCreateError, DataError, UsageError

PAIRS = [(pair.source, pair.target) for pair in read_phrasebook("train", 60)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*paths: str, **options: Any) -> Any:
    init_command([*paths], output=Path("it.yaml"), force=True, **options)
    return load_config("it.yaml").data


def table(*rows: tuple[str, ...]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


@pytest.mark.long
def test_a_header_that_the_text_contradicts_is_warned_of_and_the_text_decides(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.tsv").write_text(table(("Italian", "English"), *PAIRS), encoding="utf-8")
    data = init("a.tsv")
    assert (data.source_language, data.target_language) == ("en", "it")
    assert data.corpora[0].source_field == "Italian"
    for text in (capsys.readouterr().out, (folder / "it.yaml").read_text(encoding="utf-8")):
        assert "column Italian looks like English (en)" in text
        assert "column English looks like Italian (it)" in text
    back = init("a.tsv", source_language="it")
    assert (back.source_language, back.corpora[0].source_field) == ("it", "English")
    named = init(
        "a.tsv",
        source_field="Italian",
        target_field="English",
        source_language="it",
        target_language="en",
    )
    assert (named.source_language, named.corpora[0].source_field) == ("it", "Italian")
    assert "column Italian looks like English" in capsys.readouterr().out


def test_file_names_that_the_text_contradicts_are_warned_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "c").mkdir()
    for side, name in enumerate(("c/a.it", "c/a.en")):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    for paths in (["c/a.it", "c/a.en"], ["c"]):
        data = init(*paths, source_language="en")
        assert (data.source_language, data.corpora[0].source_path) == ("en", "c/a.it")
        assert "file a.it looks like English (en)" in capsys.readouterr().out


def test_true_names_are_not_doubted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.tsv").write_text(table(("English", "Italian"), *PAIRS), encoding="utf-8")
    init("a.tsv")
    assert "warning" not in capsys.readouterr().out
    assert "Check:" not in (folder / "it.yaml").read_text(encoding="utf-8")


def test_the_files_of_a_folder_that_are_left_out_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "c").mkdir()
    for side, name in enumerate(("a.en", "a.it")):
        (folder / "c" / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    for number in range(50):
        (folder / "c" / f"n{number:02}.txt").write_text("x")
    init("c")
    out = capsys.readouterr().out
    assert "pairs from c/a.en and c/a.it" in out
    assert "left out, 50 files of the folder: n00.txt, n01.txt, n02.txt, n03.txt, n04.txt and 45 more" in out


@pytest.mark.long
@pytest.mark.parametrize(
    "names",
    [
        ("Frase in inglese", "Traduzione"),
        ("英語", "日本語"),
        ("Frase in inglese", "Frase in italiano"),
        ("Satz", "Übersetzung"),
        ("源文", "译文"),
        ("الأصل", "الترجمة"),
        ("Πρωτότυπο", "Μετάφραση"),
        ("מקור", "תרגום"),
        ("मूल", "अनुवाद"),
        ("ต้นฉบับ", "คำแปล"),
        ("bản gốc", "bản dịch"),
        ("kaynak", "hedef"),
        ("tekst źródłowy", "tłumaczenie"),
        ("원문", "번역"),
        ("texto", "traducción"),
    ],
)
def test_names_in_other_words_are_a_header(folder: Path, names: tuple[str, str]) -> None:
    (folder / "a.tsv").write_text(table(names, *PAIRS), encoding="utf-8")
    (corpus,) = init("a.tsv").corpora
    assert (corpus.has_header, corpus.source_field, corpus.target_field) == (True, *names)


@pytest.mark.parametrize("names", [("phrase", "meaning"), ("Prima colonna", "Colonna due")])
def test_a_first_row_that_may_be_a_header_is_warned_of(
    folder: Path, names: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.tsv").write_text(table(names, *PAIRS), encoding="utf-8")
    (corpus,) = init("a.tsv").corpora
    assert corpus.has_header is False
    for text in (capsys.readouterr().out, (folder / "it.yaml").read_text(encoding="utf-8")):
        assert f"the first row, {names[0]} and {names[1]}, is read as a pair" in text
        assert "set has_header: true under data.corpora" in text


@pytest.mark.parametrize("languages", [("eng", "ita"), ("English", "Italian")])
def test_the_language_of_each_sentence_is_no_name_of_a_column(folder: Path, languages: tuple[str, str]) -> None:
    rows = [
        ("\t".join((f"{n}", languages[0], en)), "\t".join((f"{n + 500}", languages[1], it)))
        for n, (en, it) in enumerate(PAIRS)
    ]
    (folder / "a.tsv").write_text(table(*rows), encoding="utf-8")
    (corpus,) = init("a.tsv").corpora
    assert (corpus.has_header, corpus.source_field, corpus.target_field) == (False, 2, 5)


@pytest.mark.parametrize("first", [("Hello", "Ciao"), ("English", "Inglese"), ("frase", "sentence")])
def test_a_list_of_words_has_no_header(folder: Path, first: tuple[str, str]) -> None:
    words = [(f"{en.split()[0]}{i}", f"{it.split()[0]}{i}") for i, (en, it) in enumerate(PAIRS)]
    (folder / "a.tsv").write_text(table(first, *words), encoding="utf-8")
    assert init("a.tsv").corpora[0].has_header is False


@pytest.mark.parametrize("first", [("The house", "La casa"), ("House", "Casa")])
def test_a_short_first_pair_whose_words_stand_below_again_is_no_header(folder: Path, first: tuple[str, str]) -> None:
    """The article la is the code of Latin, too."""
    rows = [(f"The house is in front of station {n}.", f"La casa è davanti alla stazione {n}.") for n in range(40)]
    (folder / "a.tsv").write_text(table(first, *rows), encoding="utf-8")
    data = init("a.tsv")
    assert data.corpora[0].has_header is False
    assert (data.source_language, data.target_language) == ("en", "it")


def test_a_header_that_is_one_only_because_it_is_short_is_warned_of(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(f"The house is here, {n} times.", f"La casa è qui, {n} volte.") for n in range(40)]
    for first, is_warned_of in ((("It rains", "Piove"), True), (("English", "Italian"), False)):
        (folder / "a.tsv").write_text(table(first, *rows), encoding="utf-8")
        (folder / "a.yaml").unlink(missing_ok=True)
        init("a.tsv")
        out = "".join(capsys.readouterr())
        assert ("is taken for the names of the columns" in out) is is_warned_of
        assert ("source_field: 0, target_field: 1, has_header: false" in out) is is_warned_of


def test_a_title_above_the_table_is_refused(folder: Path) -> None:
    (folder / "a.tsv").write_text(table(("My phrases", ""), ("English", "Italian"), *PAIRS), encoding="utf-8")
    with pytest.raises(DataError, match="it looks like a title above the table"):
        init("a.tsv")
    (folder / "a.tsv").write_text(table(("Not translated yet.", ""), *PAIRS), encoding="utf-8")
    assert init("a.tsv").corpora[0].has_header is False


@pytest.mark.long
@pytest.mark.parametrize("num_pairs", [60, 108, 400, 2_500])
def test_the_pairs_of_each_split_are_told_as_training_will_find_them(
    folder: Path, num_pairs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = read_phrasebook("train", num_pairs)
    rows = [(pair.source, pair.target) for pair in pairs]
    (folder / "a.tsv").write_text(table(*rows, *rows[:9]), encoding="utf-8")
    init("a.tsv")
    out = capsys.readouterr().out
    data = prepare_data(load_config("it.yaml"), folder / "data")
    num_train, num_validation = data.report.num_pairs["train"], len(data.validation)
    assert f"usable pairs: train {num_train:,}, validation {num_validation:,}, test " in out
    assert num_train > 0.55 * num_pairs


def test_a_bad_name_is_refused_by_the_name_of_its_option(folder: Path) -> None:
    (folder / "a.tsv").write_text(table(*PAIRS), encoding="utf-8")
    for name in ("../x", "a b", "", "-x", "è"):
        with pytest.raises(UsageError, match=r"--name .* cannot be the name of a run"):
            init_command(["a.tsv"], name=name)


@pytest.mark.parametrize("num_pairs", [1, len(PAIRS)])
def test_a_corpus_without_a_validation_pair_is_said_to_be_refused(
    folder: Path, num_pairs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.tsv").write_text(table(*PAIRS[:num_pairs]), encoding="utf-8")
    init("a.tsv")
    out = capsys.readouterr().out
    is_refused = num_pairs == 1
    assert ("No validation pair is left" in out) is ("validation 0" in out) is is_refused
    assert ("then: tfm train" in out) is not is_refused
    assert ("next: add pairs" in out) is is_refused


@pytest.mark.long
@pytest.mark.parametrize(
    "names",
    [
        ("km", "en"),
        ("am", "en"),
        ("xmf", "en"),
        ("עברית", "אנגלית"),
        ("ქართული", "ინგლისური"),
        ("中文", "英文"),
        ("العربية", "الإنجليزية"),
        ("русский", "английский"),
        ("አማርኛ", "እንግሊዝኛ"),
        ("source_text", "target_text"),
        ("English sentence", "French"),
        ("Shqip", "English"),
        ("a", "b"),
    ],
)
def test_codes_and_names_of_languages_in_any_script_are_a_header(folder: Path, names: tuple[str, str]) -> None:
    (folder / "a.tsv").write_text(table(names, *PAIRS), encoding="utf-8")
    (corpus,) = init("a.tsv").corpora
    assert (corpus.has_header, corpus.source_field, corpus.target_field) == (True, *names)


@pytest.mark.parametrize("first", [("am", "bin"), ("no", "nein"), ("Hello", "Ciao"), ("Good morning", "Buongiorno")])
def test_a_short_first_pair_of_short_pairs_is_no_header(folder: Path, first: tuple[str, str]) -> None:
    words = [("at", "an"), ("I go", "ich gehe"), ("or", "oder"), ("the sea", "das Meer")] * 8
    (folder / "a.tsv").write_text(table(first, *words), encoding="utf-8")
    assert init("a.tsv").corpora[0].has_header is False


def test_the_doubt_about_a_first_row_names_the_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.tsv").write_text(table(("phrase one", "meaning"), *PAIRS), encoding="utf-8")
    init("a.tsv")
    told = capsys.readouterr().out
    assert "the first row, phrase one and meaning, is read as a pair" in told
    assert "--source-field 'phrase one' --target-field meaning, or set has_header: true" in told
    (corpus,) = init("a.tsv", source_field="phrase one", target_field="meaning").corpora
    assert corpus.has_header is True


GEORGIAN = [(f"გამარჯობა მეგობარო, როგორ ხარ {n}?", f"Hello my friend, how are you {n}?") for n in range(30)]
AMHARIC = [(f"እንደምን አደርክ ወዳጄ {n}?", f"Good morning my friend {n}, how are you?") for n in range(30)]
KAZAKH = [(f"Мен үйге барамын, досым {n}.", f"I am going home, my friend {n}.") for n in range(30)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "header", "language", "doubt"),
    [
        (GEORGIAN, "xmf", "xmf", "column xmf looks like Georgian (ka), and its name says Mingrelian (xmf)"),
        (GEORGIAN, "ka", "ka", ""),
        # A file of which most texts are not translated yet; the letters of Georgian are known.
        (
            [(b, b) for _, b in GEORGIAN[:20]] + GEORGIAN[:10],
            "ka",
            "ka",
            "Georgian (ka), of which no words are known here: its name decides; cells that are not translated",
        ),
        (AMHARIC, "am", "am", ""),
        (AMHARIC, "ti", "ti", "its name says Tigrinya (ti)"),
        (KAZAKH, "kk", "kk", "its name says Kazakh (kk)"),
    ],
)
def test_the_code_in_a_header_decides_between_languages_of_one_script(
    folder: Path,
    rows: list[tuple[str, str]],
    header: str,
    language: str,
    doubt: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "a.tsv").write_text(table((header, "en"), *rows), encoding="utf-8")
    data = init("a.tsv")
    assert (data.source_language, data.target_language) == (language, "en")
    told = capsys.readouterr().out
    assert doubt in told
    assert ("looks like" in told) is bool(doubt)


def test_the_code_at_the_end_of_a_file_name_decides_too(folder: Path) -> None:
    for side, name in enumerate(("a.xmf", "a.en")):
        (folder / name).write_text("".join(f"{row[side]}\n" for row in GEORGIAN), encoding="utf-8")
    assert init("a.xmf", "a.en").source_language == "xmf"


def test_a_script_without_a_header_gives_its_most_usual_language(folder: Path) -> None:
    (folder / "a.tsv").write_text(table(*AMHARIC), encoding="utf-8")
    assert init("a.tsv").source_language == "am"


@pytest.mark.long
def test_a_table_in_windows_1252_is_read_and_its_encoding_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("English", "Italian"), *PAIRS]
    (folder / "a.tsv").write_bytes(table(*rows).encode("windows-1252"))
    (folder / "utf8.tsv").write_text(table(*rows), encoding="utf-8")
    data = init("a.tsv")
    assert data.corpora[0].encoding == "windows-1252"
    told = capsys.readouterr().out
    assert "a.tsv: not UTF-8, and read as windows-1252: " in told
    assert "encoding: windows-1252" in (folder / "it.yaml").read_text(encoding="utf-8")
    found = [[pair[:2] for pair in read_pairs(each, "train", seed=1)] for each in (data, init("utf8.tsv"))]
    assert found[0] == found[1]
    assert init("utf8.tsv").corpora[0].encoding is None


@pytest.mark.parametrize(
    ("first", "is_warned_of"),
    [
        (("short entry", "long form"), True),
        (("Windows", "Windows"), False),
        (("Windows", "Операционная система Windows"), False),
    ],
)
def test_names_in_latin_letters_above_two_other_scripts_are_warned_of(
    folder: Path, first: tuple[str, str], is_warned_of: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [(f"машина {sign}", f"{sign}的汽车在这里") for sign in "天地人山水火木金"]
    (folder / "a.tsv").write_text(table(first, *pairs), encoding="utf-8")
    assert init("a.tsv").corpora[0].has_header is False
    assert ("is read as a pair; if it holds the names" in capsys.readouterr().out) is is_warned_of


def test_a_spreadsheet_becomes_a_table_beside_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workbook = openpyxl.Workbook()
    for row in (("English", "Italian"), *PAIRS):
        workbook.active.append(row)
    workbook.save("phrases.xlsx")
    with pytest.raises(UsageError, match=r"--encoding is for text, and phrases\.xlsx says itself how it is encoded"):
        init_command(["phrases.xlsx"], encoding="utf-8")
    (corpus,) = init("phrases.xlsx").corpora
    assert (corpus.path, corpus.source_field) == ("phrases.tsv", "English")
    assert "wrote phrases.tsv: the first sheet of phrases.xlsx" in capsys.readouterr().out
    assert (folder / "phrases.tsv").read_text(encoding="utf-8") == table(("English", "Italian"), *PAIRS)
    (folder / "it.yaml").unlink()
    init_command(["phrases.xlsx"], output=Path("again.yaml"))  # the table holds the sheet
    assert (folder / "again.yaml").is_file()
    (folder / "phrases.tsv").write_text("mine")
    with pytest.raises(CannotCreateError, match=r"phrases\.tsv: exists already"):
        init_command(["phrases.xlsx"], output=Path("it.yaml"))
    assert (folder / "phrases.tsv").read_text() == "mine"


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "written", "is_warned"),
    [
        ("eng", "en", False),
        ("hye", "hy", False),
        ("English", "en", False),
        ("pt-BR", "pt-BR", False),
        ("tlh", "tlh", False),
        ("xxx", "xxx", True),
    ],
)
def test_a_code_of_three_letters_becomes_the_one_of_two_and_an_unknown_one_is_warned_of(
    folder: Path, capsys: pytest.CaptureFixture[str], given: str, written: str, is_warned: bool
) -> None:
    for side, name in enumerate(("a.one", "a.two")):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    assert init("a.one", "a.two", source_language=given, target_language="it").source_language == written
    told = capsys.readouterr().out
    assert f"languages: {written} into it" in told
    assert [
        line for line in told.splitlines() if line.startswith(f"warning: {written}: no language")
    ] != [] or not is_warned
    assert ("no language that is known here" in told) == is_warned
