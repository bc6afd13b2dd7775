"""`kbench sync`: writes results that could not be delivered earlier."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kbench.features import Store, completion, echo

if TYPE_CHECKING:
    from kbench.features import Holder


def sync(
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUITE",
            autocompletion=completion.stored,
            help="Names of suites; default: all that were run for the store.",
        ),
    ] = None,
    store: Store = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also write suites that were run for other stores.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON line per suite, and nothing else.")
    ] = False,
) -> None:
    """Write results to a store that does not have them yet; compute nothing.

    The suites' files and data are not needed. The exit code is 0 if the store has everything
    now, and 1 if it could not be reached.
    """
    from kbench.features import load_registry
    from kbench_mlflow.delivery import sync as syncing
    from kbench_mlflow.delivery.deliver import views_of
    from kbench_mlflow.tracking import default_uri

    left = ""
    views = views_of(load_registry(), _notice)
    uri = store or default_uri()
    for synced in syncing.sync(uri, suites or (), everything, _notice_waiting, views):
        echo(json.dumps(asdict(synced)) if as_json else synced.sentence)
        left = left or synced.delivered.problem
    if left:
        if not as_json:
            echo(f"kbench: {left}", err=True)
            echo("Nothing is lost: the journal keeps it, for `kbench sync` again.", err=True)
        raise typer.Exit(1)


def _notice_waiting(holder: Holder | None) -> None:
    from kbench.features import named_holder

    _notice(f"waiting for {named_holder(holder)}, which works on this suite with this store")


def _notice(text: str) -> None:
    echo(f"kbench: {text}", err=True)
