"""The commands, in the order in which help lists them."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from kbench._version import __version__
from kbench.cli import (
    add,
    bundle,
    compare,
    data,
    export,
    listing,
    plugin,
    predict,
    publish,
    report,
    rescore,
    results,
    run,
    site,
    suite,
    sync,
    ui,
    verify,
)
from kbench.cli.pages import CONTEXT, Command, Group

app = typer.Typer(
    name="kbench",
    cls=Group,
    help="Measure the accuracy and cost of explicit feature maps and learners, all on the same "
    "splits of the same datasets.",
    epilog="Exit codes: 0 all planned cells are ok (cells with unavailable data are allowed), "
    "1 some cell failed, or the store does not have all runs yet, 2 wrong usage or suite file, "
    "130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    # kbench's errors are one line; others keep Python's plain traceback
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kbench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Define the options that precede a command."""


app.command("suite")(suite.suite)
app.command("run")(run.run)
app.command("export")(export.export)
app.command("predict")(predict.predict)
app.command("sync")(sync.sync)
app.command("rescore")(rescore.rescore)
app.command("results")(results.results)
app.command("compare")(compare.compare)
app.command("report")(report.report)
app.command("plot")(report.plot)
app.command("ui")(ui.ui)
app.command("bundle")(bundle.bundle)
app.command("verify")(verify.verify)
app.command("add")(add.add)
app.command("publish")(publish.publish)
app.command("site")(site.site)
app.add_typer(data.app)
app.command("list")(listing.list_)
app.command("show")(listing.show)
app.command("check")(plugin.check)
app.command("new")(plugin.new)

for _command in (*app.registered_commands, *data.app.registered_commands):
    # postponed annotations are strings, each of which typer would evaluate four times
    assert _command.callback is not None
    _command.cls = Command
    _command.callback.__annotations__ = inspect.get_annotations(_command.callback, eval_str=True)
