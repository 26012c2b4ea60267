"""Which settings may differ between the processes of a training."""

from typing import Any, cast

import pytest

from transformer_cli.config import load_config
from transformer_cli.errors import ConfigError
from transformer_cli.training.processes.process_group import ALONE, Processes
from transformer_cli.training.processes.same_settings import require_same_settings

CONFIG = load_config("multi30k-en-de.yaml", ["data.root=here"])


class _Pair:
    """Two processes; rank 0 has some other settings than this process, which is rank 1."""

    def __init__(self, **of_main: Any) -> None:
        self.of_main = of_main
        self.sent: dict[str, Any] = {}

    def gathered(self, value: dict[str, Any]) -> list[dict[str, Any]]:
        self.sent = value
        return [value | self.of_main, value]


def check(pair: _Pair, *settings: str) -> None:
    config = load_config("multi30k-en-de.yaml", ["data.root=here", *settings])
    require_same_settings(config, cast(Processes, pair), from_scratch=False)


@pytest.mark.parametrize("setting", ["data.root=there", "runtime.threads=3", "runtime.workers=3"])
def test_a_setting_of_one_machine_is_not_compared(setting: str) -> None:
    usual, changed = _Pair(), _Pair()
    check(usual)
    check(changed, setting)
    assert usual.sent == changed.sent


def test_the_first_differences_are_shown_and_the_others_counted() -> None:
    differing = {f"training.name_{number}": number for number in range(7)}
    with pytest.raises(ConfigError) as refused:
        check(_Pair(**differing))
    assert "training.name_4: 4 in rank 0, absent in rank 1" in refused.value.message
    assert refused.value.message.endswith("and 2 more")


def test_starting_from_scratch_in_one_process_only_is_refused() -> None:
    with pytest.raises(ConfigError, match="--from-scratch: true in rank 0, false in rank 1"):
        check(_Pair(**{"--from-scratch": True}))


def test_one_process_agrees_with_itself() -> None:
    require_same_settings(CONFIG, ALONE, from_scratch=True)
