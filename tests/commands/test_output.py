"""Where `--output` writes (J1): through what is no regular file, and otherwise a whole file or none."""

import bz2
import gzip
import lzma
import os
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.commands import calibrate
from transformer_cli.commands.output import check_output, descriptor_of, opened_output, opened_output_of_lines
from transformer_cli.commands.shortlist import learned_shortlist
from transformer_cli.config import load_config
from transformer_cli.data.exported import require_exportable
from transformer_cli.process.errors import CannotCreateError, TryAgainError
from transformer_cli.process.signals import end_by_signals
from transformer_cli.storage import require_replaceable_folder

from ..faults import run_in_child

DOCS_RUN = Path(__file__).parents[2] / "docs" / "run"


def put(path: Path, *lines: str) -> None:
    check_output(path)
    with opened_output(path) as write:
        for line in lines:
            write(f"{line}\n".encode())


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "out.txt"
    path.write_text("old\n")
    return path


@pytest.mark.parametrize("depth", [1, 2])
def test_a_link_stays_and_its_target_gets_the_text(old: Path, depth: int) -> None:
    link = old
    for number in range(depth):
        link = old.with_name(f"link-{number}")
        link.symlink_to(old.name if number == 0 else f"link-{number - 1}")
    put(link, "new")
    assert link.is_symlink()
    assert not old.is_symlink()
    assert old.read_text() == "new\n"


def test_a_link_to_nothing_creates_its_target(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to("folder/out.txt")
    put(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "folder" / "out.txt").read_text() == "new\n"


def test_a_link_into_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere/out.txt")
    with pytest.raises(CannotCreateError, match="link: a link into a folder that does not exist"):
        put(tmp_path / "link", "new")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_a_file_keeps_its_mode(old: Path, mode: int) -> None:
    old.chmod(mode)
    put(old, "new")
    assert stat.S_IMODE(old.stat().st_mode) == mode
    assert old.read_text() == "new\n"


def test_text_for_a_private_file_is_private_while_it_is_written(old: Path) -> None:
    old.chmod(0o600)
    with opened_output(old) as write:
        write(b"secret\n")
        (unfinished,) = old.parent.glob(".tmp-*")
        assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        put(tmp_path / "new.txt", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner(old: Path) -> None:
    os.chown(old, 12_345, 23_456)
    put(old, "new")
    assert (old.stat().st_uid, old.stat().st_gid) == (12_345, 23_456)


def test_a_file_keeps_its_extended_attributes(old: Path) -> None:
    try:
        os.setxattr(old, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    put(old, "new")
    assert os.getxattr(old, "user.note") == b"kept"


def test_the_time_of_a_file_is_that_of_its_new_text(old: Path) -> None:
    os.utime(old, (1, 1))
    put(old)
    assert old.read_bytes() == b""
    assert old.stat().st_mtime > 1e9


@pytest.mark.parametrize("mode", [0o444, 0o400, 0])
def test_a_file_that_may_not_be_written_is_refused_also_for_root(old: Path, mode: int) -> None:
    old.chmod(mode)
    with pytest.raises(CannotCreateError, match=f"no permission to write .* {mode:04o}") as refusal:
        put(old, "new")
    assert "chmod u+w" in str(refusal.value.hint)
    old.chmod(0o600)
    assert old.read_text() == "old\n"


def test_a_disk_that_takes_no_writing_is_told_and_not_the_mode_of_the_file(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    with pytest.raises(CannotCreateError, match="Read-only file system") as refusal:
        check_output(old)
    assert "chmod" not in str(refusal.value.hint)


def test_a_disk_that_takes_no_writing_is_told_and_no_permission_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To change the mode of the folder, as to change that of a file, would help nobody."""
    (tmp_path / "checkpoints").mkdir()
    monkeypatch.setattr(os, "access", lambda place, mode: not mode & os.W_OK)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    with pytest.raises(CannotCreateError, match=r"new\.html: Read-only file system"):
        check_output(tmp_path / "new.html")
    with pytest.raises(CannotCreateError, match="checkpoints: Read-only file system"):
        RunFolder(tmp_path).require_own_files()


@pytest.mark.long
@pytest.mark.parametrize("command", ["report", "texts", "data", "calibration", "shortlist"])
def test_a_folder_that_may_not_be_written_is_refused_before_the_work(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A validation of hours would end without its report."""
    run = tmp_path / "run"
    shutil.copytree(DOCS_RUN, run)
    monkeypatch.setattr(os, "access", lambda place, mode: not mode & os.W_OK)
    monkeypatch.setattr(calibrate, "pairs_to_score", None)
    commands: dict[str, Callable[[], object]] = {
        "report": lambda: check_output(tmp_path / "new.html"),
        "texts": lambda: require_replaceable_folder(tmp_path / "new", "a", "b", other="c"),
        "data": lambda: require_exportable(load_config("en-it.yaml"), tmp_path / "new"),
        "calibration": lambda: calibrate.calibrated_run(str(run)),
        "shortlist": lambda: learned_shortlist(str(run)),
    }
    with pytest.raises(CannotCreateError, match="no permission to write into the folder"):
        commands[command]()


def test_another_hard_link_of_the_file_keeps_the_old_text(old: Path) -> None:
    other = old.with_name("backup.txt")
    other.hardlink_to(old)
    put(old, "new")
    assert (old.read_text(), other.read_text()) == ("new\n", "old\n")


def test_an_error_in_the_middle_leaves_the_old_file(old: Path) -> None:
    link = old.with_name("link")
    link.symlink_to(old.name)

    def write_and_fail() -> None:
        with opened_output(link) as write:
            write(b"new\n")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert link.is_symlink()
    assert old.read_text() == "old\n"
    assert {path.name for path in old.parent.iterdir()} == {"out.txt", "link"}


@pytest.mark.parametrize("through_link", [False, True])
def test_a_named_pipe_is_written_through_also_if_its_reader_comes_late(tmp_path: Path, through_link: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("pipe")
    output = tmp_path / "link" if through_link else pipe
    writer = threading.Thread(target=put, args=(output, "one", "two"), daemon=True)
    writer.start()
    writer.join(0.1)
    assert writer.is_alive(), "it waits for a reader"
    assert pipe.read_text() == "one\ntwo\n"
    writer.join(60)
    assert not writer.is_alive()
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_pipe_gets_each_line_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with opened_output(pipe) as write:
        for line in (b"one\n", b"two\n"):
            write(line)
            assert os.read(reader, 100) == line
    os.close(reader)


def test_a_reader_that_leaves_a_pipe_is_no_error_of_the_disk(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with opened_output(pipe) as write:
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            write(b"one\n")


def test_a_pipe_that_another_program_set_to_non_blocking_gets_everything(tmp_path: Path) -> None:
    source, target = os.pipe()
    os.set_blocking(target, False)
    text = "x" * 1_000_000
    writer = threading.Thread(target=put, args=(Path(f"/dev/fd/{target}"), text), daemon=True)
    writer.start()
    found = b""
    while len(found) < len(text) + 1:
        found += os.read(source, 65_536)
    writer.join()
    os.close(source)
    os.close(target)
    assert found == f"{text}\n".encode()


def test_the_null_device_stays_a_device() -> None:
    put(Path("/dev/null"), "new")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux only")
def test_a_full_device_is_told_by_its_name_and_stays_a_device(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/full")
    for path in (Path("/dev/full"), tmp_path / "link"):
        with pytest.raises(TryAgainError, match=f"{path}: No space left on device") as refusal:
            put(path, "new")
        assert refusal.value.hint == "make room, then run the same command again"
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_disk_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    try:
        os.mknod(path, 0o600 | stat.S_IFBLK, os.makedev(7, 200))
    except PermissionError:
        pytest.skip("making a device needs root")
    with pytest.raises(CannotCreateError, match="disk: a disk, not a file"):
        put(path, "new")


def test_a_socket_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        with pytest.raises(CannotCreateError, match="socket: cannot be opened for writing"):
            put(path, "new")
    assert stat.S_ISSOCK(path.stat().st_mode)


DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


@pytest.mark.parametrize("suffix", DECOMPRESS)
def test_a_name_of_a_compressed_file_makes_one(tmp_path: Path, suffix: str) -> None:
    files = [tmp_path / name for name in (f"a.txt{suffix}", f"b.txt{suffix.upper()}")]
    for file in files:
        put(file, "perché", "no")
    assert DECOMPRESS[suffix](files[0].read_bytes()).decode() == "perché\nno\n"
    assert files[0].read_bytes() == files[1].read_bytes(), "neither a name nor a time is in it"
    put(tmp_path / f"empty{suffix}")
    assert DECOMPRESS[suffix]((tmp_path / f"empty{suffix}").read_bytes()) == b""


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    """The number of a descriptor of a file, opened for appending."""
    (tmp_path / "log").write_text("old\n")
    descriptor = os.open(tmp_path / "log", os.O_WRONLY | os.O_APPEND)
    yield descriptor
    os.close(descriptor)


def test_an_open_descriptor_is_written_to_where_it_stands(tmp_path: Path, opened: int) -> None:
    inode = (tmp_path / "log").stat().st_ino
    (tmp_path / "link").symlink_to(f"/dev/fd/{opened}")
    for name in (f"/dev/fd/{opened}", f"/proc/self/fd/{opened}", tmp_path / "link"):
        put(Path(name), "new")
    assert (tmp_path / "log").read_text() == "old\nnew\nnew\nnew\n"
    assert (tmp_path / "log").stat().st_ino == inode
    os.fstat(opened)  # it is still open


def test_a_descriptor_that_is_not_open_is_told() -> None:
    with pytest.raises(CannotCreateError, match="/dev/fd/999: cannot be opened for writing"):
        put(Path("/dev/fd/999"), "new")


def test_the_names_of_descriptors_are_known(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("/dev/stdout")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "fd").symlink_to("/dev/fd")
    expected = {
        "/dev/stdin": 0,
        "/dev/stdout": 1,
        "/dev/stderr": 2,
        "/dev/fd/63": 63,
        "/dev/./fd/7": 7,
        "/proc/self/fd/1": 1,
        f"/proc/{os.getpid()}/fd/5": 5,
        "/proc/1/fd/5": None,
        tmp_path / "two": 1,
        tmp_path / "loop": None,
        tmp_path / "fd/3": 3,
        tmp_path / "fd": None,
        tmp_path / "no": None,
        "/dev/null": None,
        "/dev/fd/x": None,
    }
    assert {path: descriptor_of(Path(path)) for path in expected} == expected


@pytest.mark.process
@pytest.mark.parametrize("can_resume", [True, False])
def test_a_signal_in_the_middle_is_told_with_what_is_kept_and_with_the_option_that_keeps_lines(
    tmp_path: Path, can_resume: bool
) -> None:
    output, talk = tmp_path / "many.out", tmp_path / "talk"

    def in_child() -> int:
        os.dup2(os.open(talk, os.O_WRONLY | os.O_CREAT), 2)
        end_by_signals()
        with opened_output_of_lines(output, can_resume=can_resume) as write:
            write(b"one\n")
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(9)
        return 0

    assert run_in_child(in_child) == 130
    told = talk.read_text()
    assert told.startswith(f"tfm: ended by SIGINT\ntfm: nothing was written to {output}; ")
    assert ("--input FILE --resume keeps" in told) != can_resume
    assert "--resume keeps each 2,000 finished lines, and the same command then goes on" in told
    assert [*tmp_path.iterdir()] == [talk]


@pytest.mark.process
def test_an_access_list_stays(old: Path) -> None:
    """Where the commands for access lists and a file system that has them are there."""
    try:
        subprocess.run(["setfacl", "-m", "u:12345:rw", str(old)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no access lists here")
    put(old, "new")
    shown = subprocess.run(["getfacl", "-n", str(old)], check=True, capture_output=True, text=True)
    assert "user:12345:rw" in shown.stdout
