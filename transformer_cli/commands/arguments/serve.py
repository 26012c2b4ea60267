"""The options of `tfm serve`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.arguments.options import (
    BeamOption,
    DebugOption,
    Overrides,
    set_option,
)


def serve(
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            help="Name or folder of a run; may be repeated, for other languages. Default: the newest run under runs/.",
            autocompletion=completion.runs,
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="Address at which the server listens. 0.0.0.0: all addresses of this machine.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0: any free one.")
    ] = 5000,
    overrides: Annotated[
        Overrides, set_option("decoding.beam_size=8", completion.settings_of_serving)
    ] = None,
    beam_size: BeamOption = None,
    api_keys: Annotated[
        Path | None,
        typer.Option(
            "--api-keys", help="A file with one key on each line. Default: no key is needed."
        ),
    ] = None,
    cors: Annotated[
        bool,
        typer.Option("--cors", help="Pages of other origins may use the server from a browser."),
    ] = False,
    debug: DebugOption = False,
) -> None:
    """Serve translations over HTTP: a page, and the interfaces of LibreTranslate, DeepL and OPUS-CAT."""
    from transformer_cli.commands.serving.serve import run_server
    from transformer_cli.messages import talk_on_stderr
    from transformer_cli.serving.limits import Limits

    talk_on_stderr(debug=debug)
    beam = [] if beam_size is None else [f"decoding.beam_size={beam_size}"]
    run_server(
        run,
        [*(overrides or []), *beam],
        address=(host, port),
        limits=Limits(),
        api_keys=api_keys,
        has_cors=cors,
    )
