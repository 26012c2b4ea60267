from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.data.selection import DigestSet


def digest(number: int) -> bytes:
    return blake2b(b"%d" % number, digest_size=16).digest()


# Digests that begin alike are looked for at the same place.
ALIKE = st.integers(1, 9).map(lambda number: bytes(8) + b"%08d" % number)
DIGESTS = st.lists(ALIKE | st.integers(0, 30).map(digest), max_size=60)


@given(DIGESTS)
def test_it_answers_as_a_python_set_does(digests: list[bytes]) -> None:
    ours, theirs = DigestSet(), set[bytes]()
    for one in digests:
        assert ours.add(one) is (one not in theirs)
        theirs.add(one)
    assert len(ours) == len(theirs)
    for one in [*digests, *map(digest, range(30)), bytes(8) + b"%08d" % 3]:
        assert (one in ours) is (one in theirs)
    assert "text" not in ours
    assert set(ours) == theirs


@pytest.mark.parametrize("max_bytes", [0, 64 << 20])
def test_it_grows_in_memory_and_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_bytes: int) -> None:
    monkeypatch.setattr("transformer_cli.data.selection.MAX_BYTES_IN_MEMORY", max_bytes)
    found = DigestSet(tmp_path)
    assert all(found.add(digest(number)) for number in range(10_000))
    assert not any(found.add(digest(number)) for number in range(10_000))
    assert len(list(tmp_path.iterdir())) == (0 if max_bytes else 1)
    found.close()
    assert not list(tmp_path.iterdir())
