"""`tfm init` refuses what would do harm or cannot work, and says what to do."""

import os
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.commands.new_config import write_config
from transformer_cli.config import load_config
from transformer_cli.data.survey import Wishes
from transformer_cli.errors import CannotCreateError, DataError, UsageError
from transformer_cli.phrasebook import generate_split

PAIRS = [(pair.source, pair.target) for pair in generate_split("train", num_pairs=60, seed=1)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*paths: str, wishes: Wishes = Wishes(), **options: Any) -> None:  # noqa: B008 - immutable
    defaults: dict[str, Any] = {"name": None, "output": Path("it.yaml"), "force": True}
    write_config(paths, wishes, **defaults | options)


def table(*rows: tuple[str, ...]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("how", ["its name", "a symbolic link", "a hard link"])
@pytest.mark.parametrize("paths", [["z.tsv"], ["z.en", "z.it"], ["corpus"]])
def test_the_config_never_replaces_the_corpus(
    folder: Path, paths: list[str], how: str, force: bool
) -> None:
    (folder / "corpus").mkdir()
    sides = ["".join(pair[side] + "\n" for pair in PAIRS) for side in (0, 1)]
    for name, text in (("z.tsv", table(*PAIRS)), ("z.en", sides[0]), ("z.it", sides[1])):
        (folder / name).write_text(text, encoding="utf-8")
    for name, text in (("a.en", sides[0]), ("a.it", sides[1]), ("a.txt", "mine")):
        (folder / "corpus" / name).write_text(text, encoding="utf-8")
    for given in [folder / "corpus" / "a.txt"] if paths == ["corpus"] else map(Path, paths):
        output = given
        if how != "its name":
            output = folder / f"{given.name}.{how[2:6]}"
            link = os.symlink if how == "a symbolic link" else os.link
            link(given.absolute(), output)
        before = given.read_bytes()
        with pytest.raises(CannotCreateError, match="is a file of the corpus") as refused:
            init(*paths, output=output, force=force)
        assert given.read_bytes() == before
        assert "--force" not in str(refused.value)


def test_a_config_beside_the_files_of_a_folder_can_be_replaced(folder: Path) -> None:
    for side, name in enumerate(("a.en", "a.it")):
        (folder / name).write_text("".join(pair[side] + "\n" for pair in PAIRS), encoding="utf-8")
    (folder / "a.yaml").write_text("mine")
    init(".", output=Path("a.yaml"))
    assert "corpora" in (folder / "a.yaml").read_text(encoding="utf-8")


def test_a_language_is_given_by_code_or_by_name(folder: Path) -> None:
    (folder / "a.tsv").write_text(table(*PAIRS), encoding="utf-8")
    init("a.tsv", wishes=Wishes(source_language="Italian", target_language="English"))
    data: Any = load_config("it.yaml").data
    assert (data.source_language, data.target_language) == ("it", "en")
    assert data.corpora[0].source_field == 1
    with pytest.raises(UsageError, match="'Englsh' cannot be used") as refused:
        init("a.tsv", wishes=Wishes(source_language="Englsh"))
    assert "a name such as English" in str(refused.value)


def test_the_same_file_twice_is_refused(folder: Path) -> None:
    (folder / "a.en").write_text("".join(f"{en}\n" for en, _ in PAIRS))
    with pytest.raises(DataError, match="are the same file"):
        init("a.en", "./a.en")


def test_a_corpus_without_a_usable_pair_says_what_was_dropped(folder: Path) -> None:
    (folder / "a.tsv").write_text(table(*((en, en) for en, _ in PAIRS)))
    with pytest.raises(DataError, match=r"60 of 60 dropped: .*(same|equal)"):
        init("a.tsv")
    for name in ("a.en", "a.it"):
        (folder / name).write_text("".join(f"{en}\n" for en, _ in PAIRS))
    with pytest.raises(DataError, match="60 of 60 dropped") as refused:
        init("a.en", "a.it")
    assert "--source-field" not in str(refused.value)
