"""`kbench leakage`: signs of leakage in a file of your own, or in the datasets of a suite."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbench.errors import DatasetError
from kbench.features import completion, echo, options_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbench.features import Fetching, Registry
    from kbench.records import Problem, Protocol, Ref
    from kbench_leakage.findings import Leakage

PACKED = (".gz", ".bz2", ".xz", ".zst")


@options_of("run")
@options_of("run_suite")
def leakage(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE|SUITE",
            help="A file of yours, or a suite: its name, or its file.",
            autocompletion=completion.suites,
        ),
    ],
    target: str | None = None,
    task: str | None = None,
    ignore: list[str] | None = None,
    nominal: list[str] | None = None,
    delimiter: str | None = None,
    group: str | None = None,
    order_by: str | None = None,
    dataset: list[str] | None = None,
    data: str | None = None,
    offline: bool = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON line per dataset, and nothing else.")
    ] = False,
) -> None:
    """Look for columns and rows of a dataset that give the target away.

    On the first split, this predicts test rows without a model: by each column, by sums and
    differences of two, by neighbours in the file, by training rows with the same inputs, and
    with the same inputs but one. A sign is what predicts nearly all. It may be legitimate: you
    know what is known when a prediction is due.

    The exit code is 1 if a dataset is unavailable.
    """
    from kbench.features import load_registry, opened

    if offline:
        os.environ["KBENCH_OFFLINE"] = "1"
    registry = load_registry()
    own = {
        "target": target,
        "task": task,
        "ignore": tuple(ignore or ()),
        "nominal": tuple(nominal or ()),
        "delimiter": delimiter,
        "group_by": group,
        "order_by": order_by,
    }
    chosen = _chosen(what, own, dataset or [], data, registry)
    lost = 0
    with opened(registry, many=True) as fetching:
        for label, found in _each(chosen, fetching):
            lost += isinstance(found, str)
            _print(label, found, as_json)
    raise typer.Exit(1 if lost else 0)


def _chosen(
    what: str, own: dict[str, Any], patterns: list[str], data: str | None, registry: Registry
) -> list[tuple[Ref, Protocol]]:
    """Return the datasets to check, with the protocols that split them."""
    from kbench.features import chosen_suite
    from kbench.records import Protocol

    given = {name: value for name, value in own.items() if value}
    ending = _ending(Path(what))
    sources = {end: source for source in registry.all("dataset").values() for end in source.endings}
    if ending not in sources:
        if given:
            raise DatasetError(
                f"--{_flag(next(iter(given)))} is for a file of your own, not a suite"
            )
        suite = chosen_suite(what, registry, patterns, data=data)
        protocols = {
            ref.label: block.protocol for block in reversed(suite.blocks) for ref in block.datasets
        }
        return [(ref, protocols[ref.label]) for ref in suite.datasets]
    if patterns or data:
        raise DatasetError(f"{what}: --dataset and --data are for suites, not for a file")
    ref = _of_file(Path(what).expanduser(), given, sources[ending], ending)
    is_official = "group_by" in given or "order_by" in given
    return [(ref, Protocol(splits="official" if is_official else "stratified"))]


def _of_file(file: Path, given: dict[str, Any], source: Any, ending: str) -> Ref:
    """Return the dataset line of a file."""
    from kbench.features import parameters_of
    from kbench.records import Ref

    if not file.is_file():
        raise DatasetError(f"{str(file)!r}: there is no such file")
    taken = parameters_of(source.load)
    if taken is not None:
        for name in given:
            if name not in taken:
                raise DatasetError(
                    f"{file}: --{_flag(name)} has no meaning for {source.name} files"
                )
        if "target" in taken and taken["target"].is_required and "target" not in given:
            raise DatasetError(f"{file}: --target is missing: name the column to predict")
    label = file.name.partition(".")[0] or file.name
    return Ref(
        source.name, {"path": str(file.absolute()), **source.endings[ending], **given}, label
    )


def _ending(file: Path) -> str:
    endings = [each.lower() for each in file.suffixes if each.lower() not in PACKED]
    return endings[-1] if endings else ""


def _flag(name: str) -> str:
    return {"group_by": "group", "order_by": "order-by"}.get(name, name)


def _each(
    chosen: list[tuple[Ref, Protocol]], fetching: Fetching
) -> Iterator[tuple[str, Leakage | str]]:
    """Yield each dataset with what was found, or why it cannot be had."""
    from kbench.records import DatasetFacts
    from kbench_leakage.kept import leakage_of

    for line, protocol in chosen:
        for ref in fetching.expanded(line):
            facts: DatasetFacts | Problem = fetching.dataset(ref)
            if isinstance(facts, DatasetFacts):
                yield ref.label, leakage_of(facts, protocol)
            else:
                yield ref.label, facts.reason


def _print(label: str, found: Leakage | str, as_json: bool) -> None:
    if as_json:
        line: dict[str, object] = {"dataset": label}
        if isinstance(found, str):
            line["unavailable"] = found
        else:
            line |= found.to_json() | {"signs": found.sentences}
        echo(json.dumps(line))
        return
    if isinstance(found, str):
        echo(f"{label}: unavailable\n  {found}")
        return
    echo(f"{label}: {found.n_train:,} training rows, {found.n_test:,} test rows")
    for each in found.measured:
        if each.is_sign:
            echo(f"  sign: {each.sentence}")
    if found.measured and not found.signs:
        echo("  no sign of leakage")
    for each in found.measured:
        if not each.is_sign and each.n_scored and each.score.value > 0:
            echo(f"  {each.sentence}")
    for note in found.notes:
        echo(f"  {note}")
