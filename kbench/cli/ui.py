"""`kbench ui`: MLflow's own pages on the right store."""

from __future__ import annotations

from typing import Annotated

import typer


def ui(
    suite: Annotated[
        str | None, typer.Argument(help="Open the page of this suite's experiment.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on loopback.")] = 5000,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="MLflow store; default: $MLFLOW_TRACKING_URI, else mlflow.db in this folder.",
        ),
    ] = None,
) -> None:
    """Start MLflow's user interface on loopback and print the address to open.

    Ends with Ctrl-C.
    """
    import os
    import subprocess
    import sys

    from kbench.errors import StoreError
    from kbench.tracking import Store, default_uri, ui_address

    uri = store or default_uri()
    if uri.startswith(("http://", "https://")):
        server = uri.rstrip("/")
    else:
        server = f"http://127.0.0.1:{port}"
    address = server
    if suite is not None:
        handle = Store(uri)
        if not handle.read(suite):
            raise StoreError(
                f"the store {uri} has no runs of {suite!r}; run `kbench suite {suite}`"
            )
        address = ui_address(server, handle.experiment(suite))
    typer.echo(f"open {address}")
    if server == uri.rstrip("/"):
        return  # somebody serves it already
    # job execution off: half the time to start and a quarter of the memory
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri]
    command += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    raise typer.Exit(subprocess.run(command, env=environment, check=False).returncode)
