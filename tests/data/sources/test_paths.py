from pathlib import Path

import pytest

from transformer_cli.data.sources.local_files import expand_path, name_under_root
from transformer_cli.process.errors import MissingInputError


def _files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_a_glob_gives_its_files_in_sorted_order(tmp_path: Path) -> None:
    _files(tmp_path, "b.en", "a.en", "c/d.en", "a.it", "c.en/x")
    assert expand_path("*.en", str(tmp_path)) == [tmp_path / "a.en", tmp_path / "b.en"]
    assert expand_path("**/*.en", str(tmp_path)) == [tmp_path / name for name in ("a.en", "b.en", "c/d.en")]


def test_an_absolute_path_ignores_the_root(tmp_path: Path) -> None:
    _files(tmp_path, "a.en")
    assert expand_path(str(tmp_path / "a.en"), "nowhere") == [tmp_path / "a.en"]
    assert expand_path(str(tmp_path / "*.en"), "nowhere") == [tmp_path / "a.en"]


def test_names_and_roots_with_brackets_are_taken_as_they_are(tmp_path: Path) -> None:
    root = tmp_path / "r[1]*"
    _files(root, "a[1].en", "a1.en")
    assert expand_path("a[1].en", str(root)) == [root / "a[1].en"]
    assert expand_path("a*.en", str(root)) == [root / "a1.en", root / "a[1].en"]


def test_a_relative_root_starts_at_the_current_folder_and_a_tilde_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _files(tmp_path, "corpora/a.en")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expand_path("a.en", "corpora") == [Path("corpora/a.en")]
    assert expand_path("a.en", "~/corpora") == [tmp_path / "corpora/a.en"]


def test_a_missing_file_is_named_with_the_root_and_what_is_close_to_it(tmp_path: Path) -> None:
    _files(tmp_path, "train.en.gz", "train.de.gz", "notes")
    with pytest.raises(MissingInputError, match=rf"{tmp_path}/train\.eng\.gz: no such file") as caught:
        expand_path("train.eng.gz", str(tmp_path))
    assert caught.value.exit_code == 66
    hint = str(caught.value.hint)
    assert f"data.root ({tmp_path})" in hint
    assert "--set data.root=PATH" in hint
    assert f"similar names in {tmp_path}: train.en.gz" in hint
    assert "notes" not in hint


def test_a_missing_folder_is_looked_for_where_the_path_breaks_off(tmp_path: Path) -> None:
    _files(tmp_path, "multi30k/train.en")
    with pytest.raises(MissingInputError, match=r"/multi30/train\.en: no such file") as caught:
        expand_path("multi30/train.en", str(tmp_path))
    assert f"similar names in {tmp_path}: multi30k" in str(caught.value.hint)


def test_a_glob_without_a_match_says_so(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"\*\.en: no file matches"):
        expand_path("*.en", str(tmp_path))


@pytest.mark.parametrize("path", ["nul\0byte", "x" * 5000, "/", "a/../../nothing"])
def test_strange_paths_are_missing_files_or_exist(path: str, tmp_path: Path) -> None:
    if path == "/":
        assert expand_path(path, str(tmp_path)) == [Path("/")]
        return
    with pytest.raises(MissingInputError):
        expand_path(path, str(tmp_path))


def test_names_under_the_root_do_not_depend_on_it(tmp_path: Path) -> None:
    assert name_under_root(tmp_path / "a" / "b.en", str(tmp_path)) == "a/b.en"
    assert name_under_root(Path("/other/b.en"), str(tmp_path)) == "/other/b.en"


def test_the_home_of_a_user_that_does_not_exist_is_an_ordinary_name(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"~nobody-of-this-name/a\.en: no such file"):
        expand_path("~nobody-of-this-name/a.en", str(tmp_path))


def test_a_folder_that_is_missing_from_itself_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="no file matches"):
        expand_path("*", str(tmp_path))
