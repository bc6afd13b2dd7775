"""`kbench sync` and `kbench ui`."""

import json
import os
import subprocess
import sys
import time
import webbrowser
from dataclasses import asdict
from threading import Thread
from typing import Annotated

import typer

from kbench import features
from kbench.errors import StoreError
from kbench.features import Open, Store, echo, stored_suite


def sync(
    suites: Annotated[
        list[str] | None,
        stored_suite(
            metavar="SUITE", help="Names of suites; by default all that were run for this store."
        ),
    ] = None,
    store: Store = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also upload suites that were run for other stores.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON line per suite, and nothing else.")
    ] = False,
) -> None:
    """Upload results that a store does not have yet; compute nothing.

    The suites' files and data are not needed. The exit code is 1 if the store could not be
    reached.
    """
    from kbench_mlflow.delivery import sync_suites, views_of
    from kbench_mlflow.tracking.address import default_uri

    left = ""
    views = views_of(features.load_registry(), _notice)
    uri = store or default_uri()
    for synced in sync_suites(uri, suites or (), everything, _notice_waiting, views):
        echo(json.dumps(asdict(synced)) if as_json else synced.sentence)
        left = left or synced.delivered.problem
    if left:
        if not as_json:
            echo(f"kbench: {left}", err=True)
            echo("No result is lost: run `kbench sync` again.", err=True)
        raise typer.Exit(1)


def _notice_waiting(holder: features.Holder | None) -> None:
    name = features.describe_holder(holder)
    _notice(f"waiting for {name}, which is uploading this suite to this store")


def _notice(text: str) -> None:
    echo(f"kbench: {text}", err=True)


def ui(
    suite: Annotated[
        str | None,
        stored_suite(help="Print (and with --open, open) the page of this suite's experiment."),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 5000,
    show: Open = False,
    store: Store = None,
) -> None:
    """Start MLflow's user interface on this machine and print the URLs of its pages.

    The pages of a suite show its methods with their metrics, and charts. Ctrl-C stops it.
    """
    from kbench_mlflow.tracking.address import Address, default_uri, ui_environment

    uri = store or default_uri()
    served = uri.startswith(("http://", "https://"))  # by another process, already
    server = Address.parse(uri).server if served else f"http://127.0.0.1:{port}"
    addresses = {"MLflow": server} if suite is None else _addresses(uri, suite, server)
    if served:
        _tell(addresses, server, show)
        return
    # not on the command line, which every user of this machine can read
    environment = {**os.environ, **ui_environment(uri)}
    command = [sys.executable, "-m", "mlflow", "server"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    echo(f"Starting MLflow at {server} ...", err=True)
    Thread(target=_tell, args=(addresses, server, show), daemon=True).start()
    raise typer.Exit(subprocess.run(command, env=environment, check=False).returncode)


def _addresses(uri: str, suite: str, server: str) -> dict[str, str]:
    """Return the addresses of a suite's pages by name; write missing views to the store."""
    from kbench_mlflow.delivery import read_all_results, views_of
    from kbench_mlflow.tracking.store import Store
    from kbench_mlflow.tracking.views import ui_address

    stored = read_all_results(features.Query(suite, {"store": uri}, "all"))
    handle = Store(uri)
    experiment = handle.experiment(stored.name)
    views = views_of(features.load_registry(), lambda text: echo(text, err=True))
    try:
        plain = features.PLAIN[features.find_row_task(stored.rows)].name
        handle.present(experiment, views, stored.metric, plain)
    except StoreError as error:
        echo(f"without kbench's views: {error}", err=True)
        views = {}
    # tables first
    ordered = sorted(views.values(), key=lambda view: (view.mode != "table", view.key))
    addresses = {view.name: ui_address(server, experiment, view) for view in ordered}
    return addresses or {stored.name: ui_address(server, experiment)}


def _tell(addresses: dict[str, str], server: str, show: bool) -> None:
    """Print the addresses as soon as their server answers, and open the first in the browser."""
    if not _answers(server):
        echo(f"{server} does not answer", err=True)
        return
    for name, address in addresses.items():
        echo(f"{name}  {address}")
    sys.stdout.flush()
    if show:
        webbrowser.open(next(iter(addresses.values())))


def _answers(server: str) -> bool:
    """Wait until a server answers, for five minutes at most."""
    import urllib.error
    import urllib.request  # not light: HTTP, TLS and e-mail

    end = time.monotonic() + 300
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(server, timeout=5).close()
            return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            time.sleep(0.2)
    return False
