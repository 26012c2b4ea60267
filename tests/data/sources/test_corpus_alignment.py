import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transformer_cli.config.data import FilesData
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.sources.corpus import read_pairs

ANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
# Any text without a line feed, with characters that other readers treat as the end of a line.
NOISE = st.one_of(
    st.binary(max_size=8),
    st.sampled_from(
        [
            "\r",
            "\r\r",
            "\v",
            "\f",
            "\x1c",
            "\x1e",
            "\x85",
            "\u2028",
            "\u2029",
            "\0",
            "\ufeff",
            "",
            " ",
            '"',
            '""',
        ]
    ).map(str.encode),
    st.text(max_size=8).map(lambda text: text.encode("utf-8", "surrogatepass")),
).map(lambda noise: noise.replace(b"\n", b""))
NOISY_PAIRS = st.lists(st.tuples(NOISE, NOISE), min_size=1, max_size=12)


def _read(root: Path, corpus: dict[str, Any], policy: str) -> tuple[list[SentencePair], ReadingReport]:
    data = FilesData.model_validate(
        {
            "source": "files",
            "root": str(root),
            "undecodable": policy,
            "corpora": [{**corpus, "split": "train"}],
        }
    )
    report = ReadingReport()
    return list(read_pairs(data, "train", seed=1, report=report)), report


def _assert_aligned(pairs: list[SentencePair], report: ReadingReport, num_rows: int) -> None:
    """Both sides of every pair have the same number, and every row is returned or counted as skipped."""
    numbers = [(pair.source.split("|")[0], pair.target.split("|")[0]) for pair in pairs]
    assert all(source == target for source, target in numbers)
    assert [int(source) for source, _ in numbers] == sorted(int(source) for source, _ in numbers)
    assert report.num_rows == num_rows == len(pairs) + report.num_skipped
    assert report.num_read == len(pairs)


@pytest.mark.long
@ANY
@given(
    noise=NOISY_PAIRS,
    ends=st.tuples(*[st.sampled_from([b"\n", b"\r\n"])] * 2),
    final=st.tuples(st.booleans(), st.booleans()),
    suffix=st.sampled_from(list(COMPRESS)),
    policy=st.sampled_from(["skip", "replace"]),
)
def test_noise_in_plain_text_never_shifts_a_pair(
    noise: list[tuple[bytes, bytes]],
    ends: tuple[bytes, bytes],
    final: tuple[bool, bool],
    suffix: str,
    policy: str,
    tmp_path: Path,
) -> None:
    for side, language in enumerate(("en", "it")):
        lines = [b"%d|%b" % (number, sides[side]) for number, sides in enumerate(noise)]
        content = ends[side].join(lines) + (ends[side] if final[side] else b"")
        (tmp_path / f"a.{language}{suffix}").write_bytes(COMPRESS[suffix](content))
    paths = {"source_path": f"a.en{suffix}", "target_path": f"a.it{suffix}"}
    _assert_aligned(*_read(tmp_path, paths, policy), len(noise))


@pytest.mark.long
@ANY
@given(
    noise=NOISY_PAIRS,
    suffix=st.sampled_from(list(COMPRESS)),
    policy=st.sampled_from(["skip", "replace"]),
)
def test_noise_in_tsv_never_shifts_a_pair(
    noise: list[tuple[bytes, bytes]], suffix: str, policy: str, tmp_path: Path
) -> None:
    rows = [
        b"%d|%b\t%d|%b" % (number, source.replace(b"\t", b""), number, target.replace(b"\t", b""))
        for number, (source, target) in enumerate(noise)
    ]
    path = tmp_path / f"a.tsv{suffix}"
    path.write_bytes(COMPRESS[suffix](b"\n".join(rows)))
    _assert_aligned(*_read(tmp_path, {"path": path.name}, policy), len(noise))


@pytest.mark.long
@ANY
@given(
    noise=NOISY_PAIRS,
    line_ends_inside=st.lists(st.sampled_from([b"\n", b"\r\n", b","]), max_size=3),
    policy=st.sampled_from(["skip", "replace"]),
)
def test_noise_in_csv_never_shifts_a_pair(
    noise: list[tuple[bytes, bytes]], line_ends_inside: list[bytes], policy: str, tmp_path: Path
) -> None:
    def quoted(number: int, text: bytes) -> bytes:
        text += b"".join(line_ends_inside)
        return b'"%d|%b"' % (number, text.replace(b'"', b'""'))

    rows = [quoted(number, source) + b"," + quoted(number, target) for number, (source, target) in enumerate(noise)]
    (tmp_path / "a.csv").write_bytes(b"\r\n".join(rows))
    _assert_aligned(*_read(tmp_path, {"path": "a.csv"}, policy), len(noise))


@pytest.mark.long
@ANY
@given(
    noise=st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), min_size=1, max_size=12),
    ascii_only=st.booleans(),
)
def test_noise_in_json_lines_never_shifts_a_pair(
    noise: list[tuple[str, str]], ascii_only: bool, tmp_path: Path
) -> None:
    rows = [
        json.dumps({"en": f"{number}|{source}", "it": f"{number}|{target}"}, ensure_ascii=ascii_only)
        for number, (source, target) in enumerate(noise)
    ]
    (tmp_path / "a.jsonl").write_bytes("\r\n".join(rows).encode("utf-8", "surrogatepass"))
    _assert_aligned(*_read(tmp_path, {"path": "a.jsonl"}, "skip"), len(noise))


@pytest.mark.process
def test_text_is_read_alike_under_every_locale(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("The café…\tIl caffè\u2028è qui\n" * 2, encoding="utf-8")
    (tmp_path / "b.csv").write_text("\ufeffen;it\nThe sea;Il mare è blu\n", encoding="utf-8")
    program = (
        "import sys\n"
        "from pydantic import TypeAdapter\n"
        "from transformer_cli.config import DataConfig\n"
        "from transformer_cli.data.sources.corpus import read_pairs\n"
        "data = TypeAdapter(DataConfig).validate_python({'source': 'files', 'root': sys.argv[1],\n"
        "    'corpora': [{'path': '.', 'split': 'train'}]})\n"
        "print(ascii(list(read_pairs(data, 'train', seed=1))))\n"
    )
    outputs = []
    for locale in (
        {"LANG": "C.UTF-8"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ):
        environment = {**os.environ, **locale}
        run = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        outputs.append(run.stdout)
    assert outputs[0] == outputs[1]
    assert "Il caff\\xe8\\u2028\\xe8 qui" in outputs[0]
    assert "Il mare \\xe8 blu" in outputs[0]
