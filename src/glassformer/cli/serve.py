"""`glassformer serve`: trained runs over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.options import Device, Settings
from glassformer.errors import GlassformerError, install


def serve(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Run folders; those in training are watched."),
    ],
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any.")] = 8000,
    key: Annotated[
        list[str], typer.Option(help="Accept requests with this key only; repeatable.")
    ] = [],  # noqa: B006
    key_file: Annotated[
        Path | None, typer.Option(metavar="F", help="Read keys from a file, one per line.")
    ] = None,
    without_key: Annotated[
        bool, typer.Option("--without-key", help="Serve other machines without a key, too.")
    ] = False,
    cors: Annotated[
        list[str],
        typer.Option(metavar="ORIGIN", help="Let pages of this origin send requests; repeatable."),
    ] = [],  # noqa: B006
    allow_host: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Answer to this name, too; repeatable."),
    ] = [],  # noqa: B006
    settings: Settings = [],  # noqa: B006
    device: Device = "auto",
) -> None:
    """Serve runs over HTTP: a page, and the forms of OpenAI's API where there is one.

    Keys are also read from the environment: GLASSFORMER_KEYS.

    Example: glassformer serve runs/reviews runs/poems --port 8000
    """
    try:
        from glassformer.serving.lifecycle import serve as serve_runs
    except ModuleNotFoundError as error:
        raise GlassformerError(
            f"serving needs {error.name}, which is not installed; {install('serve')}"
        ) from None
    from glassformer.config.values import build, merge_values, parse_setting
    from glassformer.serving.keys import is_loopback, read_keys
    from glassformer.serving.settings import ServeConfig

    values: dict[str, object] = {}
    for setting in settings:
        values = merge_values(values, parse_setting(setting))
    keys = read_keys(key, key_file)
    if not keys and not is_loopback(host) and not without_key:
        raise GlassformerError(
            f"--host {host} lets other machines in, and there is no key; add --key or --key-file, "
            f"or --without-key if anybody may send requests"
        )
    config = build(ServeConfig, values)
    serve_runs(
        runs,
        keys,
        config,
        host=host,
        port=port,
        origins=cors,
        hosts=allow_host,
        device=device,
    )
