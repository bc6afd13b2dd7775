"""`kbench data`: list, fetch, verify and clear the data cache."""

import json
import os
from typing import Annotated

import typer

from kbench import features
from kbench.features import echo, options_from
from kbench.messages import plural
from kbench.records import DatasetFacts, Problem


def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> None:
    """List the datasets in the cache."""
    cache = features.DataCache()
    entries = cache.entries()
    if as_json:
        echo(json.dumps([entry.to_json() for entry in entries], indent=1))
        return
    if not entries:
        echo(f"no datasets in {cache.root}; `kbench data fetch SUITE` fetches those of a suite")
        return

    columns = [
        features.Column("name", "dataset"),
        features.Column("n_samples", "rows", numeric=True),
        features.Column("n_features", "columns", numeric=True),
        features.Column("target", numeric=True),
        features.Column("n_missing", "missing", numeric=True),
        features.Column("duplicate_fraction", "equal rows", "{:.1%}".format, True),
        features.Column("n_bytes", "MiB", lambda n: f"{n / 2**20:.1f}", True),
        features.Column("dataset_family"),
        features.Column("source"),
    ]
    rows = [{**vars(entry), "target": _target(entry)} for entry in entries]
    printing = features.printing
    printing.print_table(printing.console(), features.Table("data", "", columns, rows))
    size = sum(entry.n_bytes for entry in entries)
    echo(f"\n{plural(len(entries), 'dataset')}, {size / 2**20:,.1f} MiB in {cache.root}")


def _target(facts: DatasetFacts) -> str:
    """Describe the target of a dataset."""
    if facts.target_mean is None or facts.target_sd is None:
        return plural(facts.n_classes, "class", "classes")
    return f"{facts.target_mean:.4g} (sd {facts.target_sd:.4g})"


@options_from("run_suite")
def fetch(
    suite: str,
    dataset: list[str] | None = None,
    add_datasets: list[str] | None = None,
    data: str | None = None,
    offline: bool = False,
) -> None:
    """Download the datasets of a suite that are not in the cache.

    The exit code is 1 if a dataset is unavailable. Downloaded datasets stay in the cache; the
    same command continues with the missing ones.
    """
    if offline:
        os.environ["KBENCH_OFFLINE"] = "1"
    registry = features.load_registry()
    chosen = features.select_suite(suite, registry, dataset, add=(add_datasets, (), ()), data=data)
    lost = 0
    with features.open_fetching(registry, many=True) as fetching:
        lines = [line for ref in chosen.datasets for line in fetching.expand(ref)]
        for number, ref in enumerate(lines, start=1):
            echo(f"[{number}/{len(lines)}] {ref.label}: ", nl=False)
            facts = fetching.dataset(ref)
            if isinstance(facts, Problem):
                lost += 1
                echo(f"unavailable\n  {facts.reason}")
            else:
                task = "" if facts.task == "classification" else f" {facts.task},"
                echo(f"{facts.n_samples:,} x {facts.n_features:,},{task} {facts.source}")
    if lost:
        raise typer.Exit(1)


def verify() -> None:
    """Compare all files in the cache with their checksums.

    The exit code is 1 if a dataset is damaged. Damaged datasets are moved aside, and the
    next run downloads them again.
    """
    cache = features.DataCache()
    n_entries = len(cache.entries())
    problems = cache.verify()
    for problem in problems:
        echo(problem)
    if problems:
        aside = cache.root / "damaged"
        echo(f"{plural(len(problems), 'problem')}; damaged datasets were moved to {aside}")
        raise typer.Exit(1)
    echo(f"{plural(n_entries, 'dataset')} in {cache.root}: all valid")


def path() -> None:
    """Print the folder of the cache; KBENCH_CACHE_DIR sets it."""
    echo(features.default_cache())


def clear(yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Remove all datasets from the cache; results stay."""
    cache = features.DataCache()
    if not yes:
        typer.confirm(
            f"Remove {plural(len(cache.entries()), 'dataset')} in {cache.root}?", abort=True
        )
    echo(f"{cache.clear() / 2**20:,.1f} MiB freed in {cache.root}")
