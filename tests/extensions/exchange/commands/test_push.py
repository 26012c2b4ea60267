"""`tfm push`: shows what would go, asks, and uploads to a hub; here the hub is a small local server."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.extensions.exchange.commands.push import push_command
from transformer_cli.extensions.exchange.hub_upload import planned_files
from transformer_cli.extensions.exchange.own_folder import RECORD
from transformer_cli.process.errors import DataError, MissingInputError, TfmError, TryAgainError, UsageError

huggingface_hub = pytest.importorskip("huggingface_hub")
constants = pytest.importorskip("huggingface_hub.constants")

FILES = {
    "README.md": b"# a card\n",
    "config.json": b"{}",
    "onnx/a[1].onnx": bytes(range(256)),
    RECORD: json.dumps({"run": "en-it", "step": 5, "format": "onnx"}).encode(),
}


class Hub(BaseHTTPRequestHandler):
    """The part of the hub that an upload of small files uses; it remembers what came."""

    server: "HubServer"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.tokens.add(self.headers.get("Authorization"))
        if self.server.status != 200:
            self._answer({"error": "no permission"}, self.server.status)
        elif self.path == "/api/validate-yaml":
            self._answer({"warnings": [], "errors": []})
        elif self.path == "/api/repos/create":
            self.server.created = json.loads(body)
            self._answer({"url": f"http://{self.headers['Host']}/someone/en-it"})
        elif "/preupload/" in self.path:
            names = [one["path"] for one in json.loads(body)["files"]]
            modes = {"uploadMode": "regular", "shouldIgnore": False}
            self._answer({"files": [{"path": name, **modes} for name in names]})
        elif "/commit/" in self.path:
            lines = [json.loads(line) for line in body.splitlines() if line]
            self.server.message = lines[0]["value"]["summary"]
            for line in lines[1:]:
                self.server.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            address = f"http://{self.headers['Host']}/someone/en-it/commit/1"
            self._answer({"commitUrl": address, "commitOid": "1" * 40, "success": True})
        else:
            self._answer({}, 404)

    def do_GET(self) -> None:
        self._answer({"siblings": [], "sha": "0" * 40, "id": "someone/en-it"})

    def _answer(self, content: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


class HubServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Hub)
        self.status = 200
        self.files: dict[str, bytes] = {}
        self.tokens: set[str | None] = set()
        self.created: dict[str, Any] = {}
        self.message = ""


@pytest.fixture(autouse=True)
def _hub_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub of these tests runs on this machine, so they ask it also where HF_HUB_OFFLINE is set."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    server = HubServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "en-it.onnx"
    for name, content in FILES.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(content)
    return made


def push(folder: Path, repository: str = "someone/en-it", **changes: bool) -> None:
    push_command(folder, repository, **{"yes": True, **changes})


def test_all_files_arrive_in_one_commit_with_the_token(
    hub: HubServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    push(folder, private=True)
    assert hub.files == FILES
    assert hub.tokens == {"Bearer hf_of_a_test"}
    assert hub.created["name"] == "en-it"
    assert hub.created.get("private") is True or hub.created.get("visibility") == "private"
    assert hub.message == "Export of en-it, step 5, as onnx"
    shown = capsys.readouterr()
    assert "uploaded to http" in shown.out
    assert all(name in shown.err for name in FILES)
    assert "hf_of_a_test" not in shown.out + shown.err


def test_a_dry_run_shows_the_files_and_sends_nothing(
    hub: HubServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    push(folder, dry_run=True)
    assert hub.tokens == set()
    assert "to the public repository someone/en-it" in capsys.readouterr().out


def test_without_a_terminal_and_without_yes_nothing_is_sent(hub: HubServer, folder: Path) -> None:
    with pytest.raises(UsageError, match="no terminal to ask at") as refusal:
        push(folder, yes=False)
    assert "--yes" in str(refusal.value.hint)
    assert hub.tokens == set()


def test_nobody_logged_in_is_an_error_that_says_how(
    hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UsageError, match="nobody is logged in") as refusal:
        push(folder)
    assert "hf auth login" in str(refusal.value.hint)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_of_the_hub_is_told(hub: HubServer, folder: Path, status: int) -> None:
    hub.status = status
    with pytest.raises(UsageError, match=f"refuses the upload \\({status}\\)"):
        push(folder)


@pytest.mark.parametrize("status", [429, 500])
def test_a_hub_that_cannot_take_it_now_is_asked_again_later(hub: HubServer, folder: Path, status: int) -> None:
    hub.status = status
    with pytest.raises(TryAgainError, match=rf"cannot take the upload now \({status}\)"):
        push(folder)


def test_a_hub_that_may_not_be_asked_is_no_fault_of_the_disk(
    hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match="offline") as refusal:
        push(folder)
    assert "HF_HUB_OFFLINE" in str(refusal.value.hint)


def test_a_file_that_was_not_shown_is_not_uploaded(
    hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It appears while the question is on the screen."""
    asked = "transformer_cli.extensions.exchange.commands.push._ask"
    monkeypatch.setattr(asked, lambda _: (folder / "secret.txt").write_text("mine"))
    push(folder, yes=False)
    assert hub.files == FILES


def test_a_damaged_record_is_named(hub: HubServer, folder: Path) -> None:
    for content in ("{", "[]"):
        (folder / RECORD).write_text(content)
        with pytest.raises(DataError, match=RECORD):
            push(folder)
    assert hub.files == {}


def test_a_hub_that_cannot_be_reached_is_told(hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(TfmError, match="cannot be reached") as failure:
        push(folder)
    assert isinstance(failure.value, TryAgainError)


@pytest.mark.parametrize("name", ["en-it", "a/b/c", "../x/y", "a/b c", "someone/"])
def test_a_name_that_is_no_repository_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match="not a repository"):
        push(folder, name)


def test_only_exported_folders_without_links_are_uploaded(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        planned_files(tmp_path / "nothing")
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="a link"):
        planned_files(folder)
    (folder / RECORD).unlink()
    with pytest.raises(UsageError, match="not an exported folder"):
        planned_files(folder)
