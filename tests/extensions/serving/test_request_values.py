"""Keys: wrong ones are answered late, and stop nobody who has a valid one."""

import asyncio
import logging
from pathlib import Path

import pytest
from starlette.requests import HTTPConnection

from transformer_cli.extensions.serving import request_values
from transformer_cli.extensions.serving.limits import RefusedRequest
from transformer_cli.extensions.serving.request_values import ApiKeys, read_api_keys

WRONG = RefusedRequest(403, "wrong")


def connection_from(address: str) -> HTTPConnection:
    return HTTPConnection({"type": "http", "client": (address, 1), "headers": []})


async def status_of(keys: ApiKeys, address: str, key: str) -> int:
    try:
        await keys.check(connection_from(address), key, WRONG)
    except RefusedRequest as refusal:
        return refusal.status
    return 200


async def begun(keys: ApiKeys, address: str, key: str, number: int) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(status_of(keys, address, key)) for _ in range(number)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


def test_many_wrong_keys_of_one_address_are_answered_late_and_a_valid_one_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_values, "_DELAY_SECONDS", 0.2)

    async def clients() -> None:
        keys = ApiKeys(["right"])
        assert [await status_of(keys, "a", "wrong") for _ in range(5)] == [403] * 5
        guesses = await begun(keys, "a", "wrong", 20)
        assert [each.result() for each in guesses if each.done()] == [429] * 4
        assert await status_of(keys, "a", "right") == 200
        assert await status_of(keys, "b", "wrong") == 403
        # A client that does not wait for its answer gains nothing.
        for each in guesses:
            each.cancel()
        assert await status_of(keys, "a", "wrong") == 429
        assert await status_of(keys, "a", "right") == 200
        while await status_of(keys, "a", "wrong") != 403:
            await asyncio.sleep(0.02)

    asyncio.run(clients())


def test_a_missing_key_is_no_guess() -> None:
    async def clients() -> list[int]:
        return [await status_of(keys, "a", "") for _ in range(100)]

    keys = ApiKeys(["right"])
    assert set(asyncio.run(clients())) == {403}
    assert asyncio.run(status_of(keys, "a", "right")) == 200


def test_addresses_of_guessers_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_values, "_MAX_ADDRESSES", 10)

    async def clients() -> None:
        for number in range(100):
            await status_of(keys, str(number), "wrong")

    keys = ApiKeys(["right"])
    asyncio.run(clients())
    assert len(keys._mistakes) <= 10


def test_only_addresses_of_wrong_keys_are_remembered() -> None:
    async def clients() -> None:
        await status_of(keys, "a", "right")
        await status_of(keys, "b", "")
        await status_of(keys, "c", "wrong")

    keys = ApiKeys(["right"])
    asyncio.run(clients())
    assert list(keys._mistakes) == ["c"]


@pytest.mark.parametrize(("seconds", "remembered"), [(60.0, ["b", "c"]), (-1.0, ["c"])])
def test_when_there_are_many_addresses_the_old_ones_are_forgotten_first(
    monkeypatch: pytest.MonkeyPatch, seconds: float, remembered: list[str]
) -> None:
    monkeypatch.setattr(request_values, "_MAX_ADDRESSES", 2)
    monkeypatch.setattr(request_values, "_SECONDS_OF_MISTAKES", seconds)

    async def clients() -> None:
        for address in ("a", "b", "c"):
            await status_of(keys, address, "wrong")

    keys = ApiKeys(["right"])
    asyncio.run(clients())
    assert list(keys._mistakes) == remembered


def test_short_keys_are_warned_of_and_not_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "keys"
    file.write_text("secret\n# a comment\nlong-enough-to-be-a-key\n")
    with caplog.at_level(logging.WARNING):
        read_api_keys(file)
    assert "1 of 2 keys have less than 16 characters" in caplog.text
    assert "secret" not in caplog.text


def test_the_mark_that_editors_of_windows_write_belongs_to_no_key(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes("long-enough-to-be-a-key\r\n".encode("utf-8-sig"))
    assert read_api_keys(file).allow("long-enough-to-be-a-key")
