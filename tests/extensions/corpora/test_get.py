"""`tfm data get`: downloads from a server on this machine, with ranges, broken connections and changed files."""

import http.server
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.extensions.corpora.catalogues import CatalogueEntry, plain, read_catalogue
from transformer_cli.extensions.corpora.downloads import download
from transformer_cli.process.errors import DataError, MissingInputError, TryAgainError

from ...launcher import Finished, Tfm


@dataclass
class Server:
    """What the server gives, how it fails, and what it was asked."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    breaks_after: list[int] = field(default_factory=list)
    """For each of the next responses, after how many bytes the connection ends."""
    statuses: list[int] = field(default_factory=list)
    """Errors with which the next requests are answered."""
    has_ranges: bool = True
    tells_size: bool = True
    """Whether a part of a file comes with the size of the whole."""
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and Range of each request."""

    def sent_since(self, number: int) -> list[tuple[str, str | None]]:
        return self.requests[number:]


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.requests.append((self.path, wanted))
            content = state.files.get(self.path)
            if state.statuses or content is None:
                self.send_error(state.statuses.pop(0) if state.statuses else 404)
                return
            tag = f'"{sha256(content).hexdigest()[:16]}"'
            start = 0
            if wanted and state.has_ranges and self.headers.get("If-Range") == tag:
                start = int(wanted.removeprefix("bytes=").partition("-")[0])
                self.send_response(206)
                size = len(content) if state.tells_size else "*"
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{size}")
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(len(content) - start))
            self.send_header("ETag", tag)
            self.end_headers()
            end = start + state.breaks_after.pop(0) if state.breaks_after else len(content)
            self.wfile.write(content[start:end])

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        state.url = f"http://127.0.0.1:{listener.server_address[1]}"
        yield state
        listener.shutdown()
        thread.join()


def nothing(num_bytes: int, size: int | None) -> None:
    pass


def fetch_file(server: Server, folder: Path, name: str = "/a.bin") -> bytes:
    path = folder / "a.bin"
    download(server.url + name, path, progress=nothing, first_wait_seconds=0.01)
    return path.read_bytes()


CONTENT = bytes(range(256)) * 4000


def test_a_broken_download_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = CONTENT
    server.breaks_after = [300_000, 200_000]
    assert fetch_file(server, tmp_path) == CONTENT
    ranges = [wanted for _, wanted in server.requests]
    assert ranges == [None, "bytes=300000-", "bytes=500000-"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_a_part_that_ends_too_early_is_no_whole_file_although_the_server_does_not_tell_its_size(
    server: Server, tmp_path: Path
) -> None:
    server.files["/a.bin"] = CONTENT
    server.tells_size = False
    server.breaks_after = [300_000, 200_000]
    assert fetch_file(server, tmp_path) == CONTENT


def test_a_later_call_goes_on_and_a_whole_file_is_not_downloaded_again(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = CONTENT
    server.breaks_after = [100_000] * 5
    with pytest.raises(TryAgainError, match="500,000 bytes are here, after 5 tries"):
        fetch_file(server, tmp_path)
    assert not (tmp_path / "a.bin").exists()
    assert fetch_file(server, tmp_path) == CONTENT
    number = len(server.requests)
    assert server.requests[-1][1] == "bytes=500000-"
    assert fetch_file(server, tmp_path) == CONTENT
    assert len(server.requests) == number


def test_a_file_that_changed_meanwhile_is_downloaded_from_its_beginning(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = CONTENT
    server.breaks_after = [100_000] * 5
    with pytest.raises(TryAgainError):
        fetch_file(server, tmp_path)
    server.files["/a.bin"] = other = CONTENT[::-1]
    assert fetch_file(server, tmp_path) == other


def test_bytes_of_an_earlier_version_never_get_the_validator_of_a_later_one(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/a.bin"] = CONTENT
    server.breaks_after = [100_000] * 5
    with pytest.raises(TryAgainError):
        fetch_file(server, tmp_path)
    server.files["/a.bin"] = CONTENT[::-1]

    opened = Path.open

    def killed(path: Path, *options: Any, **named: Any) -> Any:
        if path.suffix == ".part":
            raise KeyboardInterrupt
        return opened(path, *options, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", killed)
        with pytest.raises(KeyboardInterrupt):
            fetch_file(server, tmp_path)
    assert fetch_file(server, tmp_path) == CONTENT[::-1]


def test_a_server_without_ranges_gives_the_whole_file_again(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = CONTENT
    server.has_ranges = False
    server.breaks_after = [100_000]
    assert fetch_file(server, tmp_path) == CONTENT


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = CONTENT
    server.statuses = [503, 429]
    assert fetch_file(server, tmp_path) == CONTENT
    number = len(server.requests)
    with pytest.raises(MissingInputError, match="404"):
        download(server.url + "/no", tmp_path / "b", progress=nothing, first_wait_seconds=0.01)
    assert len(server.sent_since(number)) == 1


def test_a_full_disk_is_named_and_not_tried_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/a.bin"] = CONTENT

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(TryAgainError, match="No space left"):
        fetch_file(server, tmp_path)


def zipped(members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def tarred(members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in members.items():
            part = tarfile.TarInfo(name)
            part.size = len(text.encode())
            archive.addfile(part, io.BytesIO(text.encode()))
    return buffer.getvalue()


BOOKS = {
    "Books.en-it.en": "The house is big.\nI read a book.\n\n",
    "Books.en-it.it": "La casa è grande.\nLeggo un libro.\nVuoto.\n",
    "LICENSE": "Public domain\nfor all.\n",
}
BASE = {"source_language": "en", "target_language": "it"}


def catalogue(tfm: Tfm, *entries: dict[str, Any]) -> None:
    lines = [json.dumps(BASE | entry) + "\n" for entry in entries]
    (tfm.folder / "mine.jsonl").write_text("".join(lines), encoding="utf-8")


def get(tfm: Tfm, *arguments: str) -> Finished:
    return tfm("data", "get", *arguments, "--catalogue", "mine.jsonl", "--output", "corpora")


@pytest.fixture
def books(tfm: Tfm, server: Server) -> Tfm:
    server.files["/books.zip"] = zipped(BOOKS)
    entry = {
        "name": "books",
        "urls": [server.url + "/books.zip"],
        "kind": "txt",
        "members": ["*.en", "*.it"],
        "citation": "@misc{books}",
    }
    catalogue(tfm, entry)
    return tfm


def locked(tfm: Tfm) -> dict[str, Any]:
    [corpus] = json.loads((tfm.folder / "corpora/data.lock").read_text())["corpora"]
    return dict(corpus)


@pytest.mark.long
def test_a_corpus_is_fetched_with_licence_citation_and_checksums(books: Tfm, server: Server) -> None:
    finished = get(books, "books")
    assert finished.exit_code == 0, finished.talk
    folder = books.folder / "corpora"
    assert (folder / "books.en").read_text(encoding="utf-8") == "The house is big.\nI read a book.\n"
    assert (folder / "books.it").read_text(encoding="utf-8") == "La casa è grande.\nLeggo un libro.\n"
    assert (folder / "books.LICENSE").read_text() == BOOKS["LICENSE"]
    corpus = locked(books)
    assert corpus["downloads"] == [
        {
            "name": server.url + "/books.zip",
            "sha256": sha256(server.files["/books.zip"]).hexdigest(),
            "num_bytes": len(server.files["/books.zip"]),
        }
    ]
    for file in corpus["files"]:
        assert file["sha256"] == sha256((folder / file["name"]).read_bytes()).hexdigest()
    assert (corpus["rows"], corpus["skipped"]) == (2, {"an empty side": 1})
    assert (corpus["licence"], corpus["entry"]["citation"]) == ("Public domain", "@misc{books}")
    assert "source_path: books.en" in finished.text
    assert not (folder / ".downloads").exists()


def test_the_same_command_again_downloads_nothing(books: Tfm, server: Server) -> None:
    assert get(books, "books").exit_code == 0
    number = len(server.requests)
    again = get(books, "books")
    assert (again.exit_code, "nothing downloaded" in again.text) == (0, True)
    assert server.sent_since(number) == []


def test_the_lock_file_alone_brings_the_corpora_back(books: Tfm, server: Server) -> None:
    assert get(books, "books").exit_code == 0
    lock = (books.folder / "corpora/data.lock").read_bytes()
    for path in (books.folder / "corpora").iterdir():
        path.unlink()
    (books.folder / "corpora/data.lock").write_bytes(lock)
    finished = books("data", "get", "--output", "corpora")
    assert finished.exit_code == 0, finished.talk
    assert (books.folder / "corpora/books.en").exists()
    assert (books.folder / "corpora/data.lock").read_bytes() == lock


def test_a_remote_file_that_has_changed_is_an_error_until_it_is_accepted(books: Tfm, server: Server) -> None:
    assert get(books, "books").exit_code == 0
    (books.folder / "corpora/books.en").unlink()
    server.files["/books.zip"] = zipped(BOOKS | {"Books.en-it.en": "Other.\nOther again.\nMore.\n"})
    before = locked(books)
    refused = get(books, "books")
    assert (refused.exit_code, "the remote file has changed" in refused.talk) == (65, True)
    assert locked(books) == before
    assert not (books.folder / "corpora/books.en").exists()
    accepted = get(books, "books", "--accept-data-change")
    assert accepted.exit_code == 0, accepted.talk
    assert locked(books)["downloads"] != before["downloads"]
    assert locked(books)["rows"] == 3


def test_a_remote_file_that_has_changed_is_an_error_in_the_other_direction_too(tfm: Tfm, server: Server) -> None:
    server.files |= {"/b.en": b"One.\n", "/b.it": b"Uno.\n"}
    catalogue(tfm, {"name": "texts", "urls": [f"{server.url}/b.{side}" for side in ("en", "it")], "kind": "txt"})
    assert get(tfm, "texts").exit_code == 0
    (tfm.folder / "corpora/texts.en").unlink()
    server.files["/b.it"] = b"Un altro.\n"
    refused = get(tfm, "texts", "--source-language", "it", "--target-language", "en")
    assert (refused.exit_code, "b.it: the remote file has changed" in refused.talk) == (65, True)


def test_a_file_that_was_edited_here_is_not_overwritten(books: Tfm) -> None:
    assert get(books, "books").exit_code == 0
    (books.folder / "corpora/books.en").write_text("mine\n")
    refused = get(books, "books")
    assert (refused.exit_code, "differs from the file that was fetched" in refused.talk) == (
        65,
        True,
    )
    assert (books.folder / "corpora/books.en").read_text() == "mine\n"


def test_other_formats_and_directions_are_fetched_too(tfm: Tfm, server: Server) -> None:
    server.files |= {
        "/t.tgz": tarred({"x/a.en": "A dog.\n", "x/a.it": "Un cane.\n"}),
        "/a.tsv": b"1\tThe sea\tIl mare\nonly this\n2\tThe sky\tIl cielo\n3\t\xff\tx\n",
        "/m.zip": zipped(
            {
                "m.tmx": '<tmx version="1.4"><header/><body><tu><tuv xml:lang="en"><seg>Yes.</seg></tuv><tuv xml:lang="it"><seg>Sì.</seg></tuv></tu></body></tmx>'
            }
        ),
        "/b.en": b"One.\n",
        "/b.it": b"Uno.\n",
    }
    url = server.url
    catalogue(
        tfm,
        {"name": "tar", "urls": [f"{url}/t.tgz"], "kind": "txt", "members": ["*/a.en", "*/a.it"]},
        {"name": "table", "urls": [f"{url}/a.tsv"], "kind": "tsv", "columns": [1, 2]},
        {"name": "memory", "urls": [f"{url}/m.zip"], "kind": "tmx", "members": ["*.tmx"]},
        {"name": "texts", "urls": [f"{url}/b.en", f"{url}/b.it"], "kind": "txt"},
    )
    names = ("tar", "table", "memory", "texts")
    languages = "--source-language", "it", "--target-language", "en"
    refused = get(tfm, *names, *languages)
    assert refused.exit_code == 65
    assert "1 of 4 units are damaged (not UTF-8, first table:4)" in refused.talk
    finished = get(tfm, *names, *languages, "--max-dropped-share", "0.5")
    assert finished.exit_code == 0, finished.talk
    found = {
        name: tuple((tfm.folder / f"corpora/{name}.{side}").read_text(encoding="utf-8") for side in ("it", "en"))
        for name in names
    }
    assert found == {
        "tar": ("Un cane.\n", "A dog.\n"),
        "table": ("Il mare\nIl cielo\n", "The sea\nThe sky\n"),
        "memory": ("Sì.\n", "Yes.\n"),
        "texts": ("Uno.\n", "One.\n"),
    }


def test_a_corpus_of_other_languages_is_corrected_in_the_catalogue(tfm: Tfm, server: Server) -> None:
    """`--source-language` of this command chooses among corpora, and not among the languages of a file."""
    server.files["/m.tmx"] = (
        b'<tmx version="1.4"><header/><body><tu><tuv xml:lang="en"><seg>Yes.</seg></tuv>'
        b'<tuv xml:lang="de"><seg>Ja.</seg></tuv></tu></body></tmx>'
    )
    catalogue(tfm, {"name": "memory", "urls": [f"{server.url}/m.tmx"], "kind": "tmx"})
    refused = get(tfm, "memory")
    assert (refused.exit_code, "no pair was found" in refused.talk) == (65, True)
    assert "correct its languages, members or columns in the catalogue" in refused.talk
    assert "--source-language" not in refused.talk


def test_all_members_of_a_pattern_are_fetched_in_pairs(tfm: Tfm, server: Server) -> None:
    members = {"train.en": "A.\nB.\n", "train.it": "a.\nb.\n", "dev.en": "C.\n", "dev.it": "c.\n"}
    server.files["/m.zip"] = zipped(members)
    server.files["/n.zip"] = zipped(members | {"test.en": "D.\n"})
    patterns = {"kind": "txt", "members": ["*.en", "*.it"]}
    catalogue(
        tfm,
        {"name": "whole", "urls": [f"{server.url}/m.zip"]} | patterns,
        {"name": "odd", "urls": [f"{server.url}/n.zip"]} | patterns,
    )
    finished = get(tfm, "whole")
    assert finished.exit_code == 0, finished.talk
    found = [(tfm.folder / f"corpora/whole.{side}").read_text() for side in ("en", "it")]
    assert found == ["C.\nA.\nB.\n", "c.\na.\nb.\n"]
    refused = get(tfm, "odd")
    assert (refused.exit_code, "3 members *.en, and 2 members *.it" in refused.talk) == (65, True)


def test_a_row_with_a_nul_byte_is_left_out_of_a_table(tfm: Tfm, server: Server) -> None:
    server.files["/a.tsv"] = b"The sea\tIl mare\nThe s\0ky\tIl cielo\n"
    catalogue(tfm, {"name": "table", "urls": [f"{server.url}/a.tsv"], "kind": "tsv"})
    finished = get(tfm, "table", "--max-dropped-share", "0.5")
    assert finished.exit_code == 0, finished.talk
    assert (locked(tfm)["rows"], locked(tfm)["skipped"]) == (1, {"a NUL byte": 1})


def test_a_corpus_that_is_here_is_read_in_the_direction_that_is_asked_for(books: Tfm) -> None:
    assert "source_path: books.en" in get(books, "books").text
    turned = get(books, "books", "--source-language", "it", "--target-language", "en")
    assert "nothing downloaded" in turned.text
    assert "source_path: books.it" in turned.text
    assert "source_language: it" in turned.text


@pytest.mark.parametrize("address", ["/perch\xe9.tsv", "/a b.tsv", "/a%20b.tsv"])
def test_an_address_may_have_spaces_and_letters_beyond_ascii(tfm: Tfm, server: Server, address: str) -> None:
    server.files |= dict.fromkeys(("/perch%C3%A9.tsv", "/a%20b.tsv"), b"The sea\tIl mare\n")
    catalogue(tfm, {"name": "table", "urls": [server.url + address], "kind": "tsv"})
    finished = get(tfm, "table")
    assert finished.exit_code == 0, finished.talk


def test_a_download_that_is_no_archive_is_refused_and_nothing_is_locked(books: Tfm, server: Server) -> None:
    server.files["/books.zip"] = b"<html>We have moved</html>"
    refused = get(books, "books")
    assert (refused.exit_code, "a web page, where the catalogue expects a corpus" in refused.talk) == (65, True)
    assert not (books.folder / "corpora/data.lock").exists()
    server.files["/books.zip"] = zipped(BOOKS)[:-30]
    refused = get(books, "books")
    assert (refused.exit_code, "no zip or tar archive" in refused.talk) == (65, True)
    server.files["/books.zip"] = zipped(BOOKS)
    assert get(books, "books").exit_code == 0, "what was no corpus is not kept"


def test_names_are_listed_and_a_wrong_name_gets_suggestions(books: Tfm, server: Server) -> None:
    listed = get(books, "--list", "BOO")
    assert listed.text == f"books  en-it  {server.url}/books.zip\n"
    assert get(books, "--list", "xyz").text == "no corpus has all of these words\n"
    refused = get(books, "book")
    assert (refused.exit_code, "did you mean books?" in refused.talk) == (66, True)
    assert server.requests == []


def test_a_command_without_a_name_needs_a_lock_file(tfm: Tfm) -> None:
    refused = tfm("data", "get", "--output", "corpora")
    assert (refused.exit_code, "give the name of a corpus" in refused.talk) == (2, True)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"urls": ["file:///etc/passwd"]}, "does not begin with https://"),
        ({"name": "../evil"}, "name"),
        ({"urls": ["https://example.org/a"]}, "needs two members"),
        ({"surprise": 1}, "surprise"),
        ({"kind": "tsv", "urls": ["https://a.org/x"], "columns": [-3, 0]}, "columns"),
    ],
)
def test_a_catalogue_is_checked(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    entry = BASE | {"name": "a", "urls": ["https://a.org/x", "https://a.org/y"], "kind": "txt"}
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(entry) + "\n" + json.dumps(entry | change) + "\n")
    with pytest.raises(DataError, match=problem):
        list(read_catalogue(path))


def test_a_corpus_turned_twice_is_the_same() -> None:
    entry = CatalogueEntry(
        name="a",
        urls=("https://a.org/x",),
        kind="tsv",
        columns=(1, 2),
        **BASE,  # type: ignore[arg-type]
    )
    assert entry.reversed().reversed() == entry
    assert entry.reversed().columns == (2, 1)


def test_codes_of_mtdata_become_the_usual_ones() -> None:
    assert [plain(code) for code in ("eng", "ita", "por_BR", "xyz")] == ["en", "it", "pt-BR", "xyz"]


@pytest.mark.slow
def test_the_list_of_mtdata_has_corpora_of_opus(tfm: Tfm) -> None:
    languages = ("--source-language", "en", "--target-language", "it")
    finished = tfm("data", "get", "--list", "opus-tatoeba", *languages, "--json")
    assert finished.exit_code == 0, finished.talk
    found = json.loads(finished.text)["corpora"]
    assert {(one["source_language"], one["target_language"]) for one in found} == {("en", "it")}
    assert all(one["kind"] == "txt" and len(one["members"]) == 2 for one in found)
    assert all("tiedemann" in one["citation"].lower() for one in found)
