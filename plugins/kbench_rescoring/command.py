"""`kbench rescore`: adds metrics to existing results, from the predictions that were kept."""

import json
import os
from dataclasses import asdict
from typing import Annotated

import typer

from kbench import features
from kbench.features import completion, echo, get_given, options_from


@options_from("run_suite")
def rescore(
    suite: str,
    metric: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="A metric of `kbench list metrics`; repeatable.",
            autocompletion=completion.metrics,
        ),
    ],
    offline: bool = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON line per metric, and nothing else.")
    ] = False,
) -> None:
    """Add metrics to existing results without computing these again.

    Metrics are computed from the stored predictions of each split.

    The exit code is 1 if a metric failed, or the store is incomplete.
    """
    from kbench_rescoring.rescoring import find_metric

    if offline:
        os.environ["KBENCH_OFFLINE"] = "1"
    registry = features.load_registry()
    chosen = features.select_suite(suite, registry)
    options = features.Options(
        None, offline=offline, given={**get_given(), "rescore": list(dict.fromkeys(metric))}
    )
    for name in metric:
        find_metric(name, registry)
    verbs = features.Verbs(_notice)
    for message in features.collect_notices(registry, options, verbs):
        _notice(message)
    report = features.execute(features.Run(chosen, registry, options, _Waits(), verbs))
    for added in report.added:
        echo(json.dumps(asdict(added)) if as_json else added.sentence)
    if not as_json and not report.interrupted:
        # the metrics of all cells that have one
        rows = features.sort_by_dataset([features.row_builders.make_row(c) for c in report.cells])
        if having := [row for row in rows if any(name in row.metrics for name in metric)]:
            features.show.print_rows(having, (*features.LABELS, *dict.fromkeys(metric)))
    for delivered in report.deliveries:
        if delivered.problem and not as_json:
            echo(f"kbench: {delivered.problem}", err=True)
            echo("Nothing is lost: the results stay in the journal; run `kbench sync`.", err=True)
    if report.interrupted:
        raise typer.Exit(130)
    raise typer.Exit(1 if report.undelivered or any(added.failed for added in report.added) else 0)


def _notice(message: str) -> None:
    echo(f"kbench: {message}", err=True)


class _Waits(features.Watcher):
    """Shows what must be waited for; sentences come at the end."""

    def notice(self, message: str) -> None:
        _notice(message)

    def on_loading(self, dataset: str) -> None:
        _notice(f"fetching {dataset}")
