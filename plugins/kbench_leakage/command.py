"""`kbench leakage`: signs of leakage in a data file, or in the datasets of a suite."""

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbench import features
from kbench.errors import DatasetError
from kbench.features import completion, echo, options_from
from kbench.messages import option
from kbench.records import Problem, Protocol, Ref

if TYPE_CHECKING:
    from kbench_leakage.findings import Leakage


OWN = (
    *("target", "task", "drop", "categorical", "date", "group", "time_column"),
    *("delimiter", "decimal", "thousands", "encoding", "na_values", "sheet", "header_row"),
    "keep_totals",
)
"""Options for a data file."""


@options_from("recommend", OWN)
@options_from("run_suite")
def leakage(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE|SUITE",
            help="A data file, or the name or file of a suite.",
            autocompletion=completion.suites,
        ),
    ],
    *,
    own: Mapping[str, Any],
    dataset: list[str] | None = None,
    data: str | None = None,
    offline: bool = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON line per dataset, and nothing else.")
    ] = False,
) -> None:
    """Find columns and rows of a dataset that reveal the target (leakage).

    On the first split, test rows are predicted without a model: by each column, by sums and
    differences of two, by adjacent rows in the file, by training rows with the same inputs, and
    by those that differ in one column. Predictors that are nearly perfect are reported. They may
    be legitimate if they are available at prediction time.

    The exit code is 1 if a dataset is unavailable.
    """
    from kbench_leakage.stored_checks import read_leakage

    if offline:
        os.environ["KBENCH_OFFLINE"] = "1"
    registry = features.load_registry()
    chosen = _choose_datasets(what, own, dataset or [], data, registry)
    lost = 0
    with features.open_fetching(registry, many=True) as fetching:
        for line, protocol in chosen:
            for ref in fetching.expand(line):
                facts = fetching.dataset(ref)
                result = (
                    facts.reason if isinstance(facts, Problem) else read_leakage(facts, protocol)
                )
                lost += isinstance(result, str)
                _print(ref.label, result, as_json)
    raise typer.Exit(1 if lost else 0)


def _choose_datasets(
    what: str,
    own: Mapping[str, Any],
    patterns: list[str],
    data: str | None,
    registry: features.Registry,
) -> list[tuple[Ref, Protocol]]:
    """Return the datasets to check, with the protocols that split them."""
    reading = {name: value for name, value in own.items() if value}
    if not features.is_data_file(what, registry):
        if reading:
            first = option(next(iter(reading)))
            raise DatasetError(f"{first} is for a data file, not for a suite")
        suite = features.select_suite(what, registry, patterns, data=data)
        protocols = {
            ref.label: block.protocol_of(ref)
            for block in reversed(suite.blocks)
            for ref in block.datasets
        }
        return [(ref, protocols[ref.label]) for ref in suite.datasets]
    if patterns or data:
        named = f"{option('dataset')} and {option('data')}"
        raise DatasetError(f"{what}: {named} is for suites, not for a data file")
    ref, notices = features.dataset_of_file(what, registry=registry, **reading), []
    if (
        found := features.Verbs().one("kbench_file_preview", ref=ref, registry=registry)
    ) is not None:
        ref, notices = found
    # this command has no option that keeps a column
    for notice in (each for each in notices if not each.startswith("left out: ")):
        echo(f"kbench: {features.put_flags(notice)}", err=True)
    is_official = "group" in reading or "time_column" in reading
    return [(ref, Protocol(cv="official" if is_official else "stratified"))]


def _print(label: str, result: "Leakage | str", as_json: bool) -> None:
    if as_json:
        line: dict[str, object] = {"dataset": label}
        if isinstance(result, str):
            line["unavailable"] = result
        else:
            line |= result.to_json() | {"signs": result.sentences}
        echo(json.dumps(line))
        return
    if isinstance(result, str):
        echo(f"{label}: unavailable\n  {result}")
        return
    echo(f"{label}: {result.n_train:,} training rows, {result.n_test:,} test rows")
    for each in result.measured:
        if each.is_sign:
            echo(f"  evidence: {each.sentence}")
    if result.measured and not result.signs:
        echo("  no evidence of leakage")
    for each in result.measured:
        if not each.is_sign and each.n_scored and each.score.value > 0:
            echo(f"  {each.sentence}")
    for note in result.notes:
        echo(f"  {note}")
