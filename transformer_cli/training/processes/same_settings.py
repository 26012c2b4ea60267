"""Whether all processes of a training were started with the same settings."""

from transformer_cli.config import Config
from transformer_cli.config.section import flat_settings
from transformer_cli.errors import ConfigError
from transformer_cli.training.config_changes import as_written
from transformer_cli.training.processes.process_group import Processes

OF_ONE_MACHINE = ("data.root", "runtime.threads", "runtime.workers")
"""These may differ between machines: they change no result."""
_MOST_SHOWN = 5


def require_same_settings(config: Config, processes: Processes, *, from_scratch: bool) -> None:
    """Compare the settings of all processes, before the first of them reads data or trains.

    With different settings the processes would compute with different models, or wait for each other for ever.

    Raises:
        ConfigError: a setting differs between rank 0 and another rank; all processes raise it.
    """
    own = flat_settings(config.model_dump(mode="json")) | {"--from-scratch": from_scratch}
    for name in OF_ONE_MACHINE:
        own.pop(name, None)
    of_main, *others = processes.gathered(own)
    for rank, of_other in enumerate(others, start=1):
        names = sorted(
            name
            for name in of_main.keys() | of_other.keys()
            if of_main.get(name) != of_other.get(name)
        )
        if names:
            lines = [
                f"\n    {name}: {as_written(of_main.get(name))} in rank 0, {as_written(of_other.get(name))} in rank {rank}"
                for name in names[:_MOST_SHOWN]
            ]
            if len(names) > _MOST_SHOWN:
                lines.append(f"\n    and {len(names) - _MOST_SHOWN} more")
            raise ConfigError(
                f"the processes were started with different settings:{''.join(lines)}",
                hint="start all processes with the same command and the same config file; on several machines, copy the "
                f"file to each of them. Only {', '.join(OF_ONE_MACHINE)} may differ",
            )
