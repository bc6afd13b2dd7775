"""The analyses of the study: numbers, sentences, a table and figures from results.

    kbench results study --format json > study.json
    python -m tests.benchmarks.study.predictors SUITE.toml -o predictors.json --span
    python -m tests.benchmarks.study study.json --predictors predictors.json -o OUT

OUT gets ``study.json`` (all numbers), ``sentences.json``, ``table.csv``, ``study-costs.csv`` and
the figures. Rows of an imported bundle have no times: ``--costs`` reads them from such a file.
``datasets.toml`` says which datasets are held out: results of any other dataset are rejected.
``--check`` compares pages with stored numbers instead; ``--fill`` writes the present sentences
into the pages.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import boosting, questions, rule, sentences
from .table import (
    LOSSES,
    Cell,
    Lists,
    Study,
    StudyError,
    add_costs,
    check_lists,
    read_files,
    read_lists,
    write_costs,
)

ROOT = Path(__file__).parents[3]
LISTS = Path(__file__).with_name("datasets.toml")
STORED = ROOT / "docs" / "measured" / "study.json"
PAGES = tuple(
    ROOT / "docs" / name
    for name in (
        *("studies/study.md", "choosing-a-map.md"),
        *("studies/study-classification.md", "studies/study-regression.md"),
    )
)

COLUMNS = (
    *("dataset", "family", "task", "map", "width", "learner", "status", "split", "loss"),
    *("fit_cpu_s", "predict_cpu_s_per_row", "model_bytes"),
)


def analyse(
    cells: Sequence[Cell],
    lists: Lists,
    predictors: Mapping[str, Mapping[str, Any]] | None = None,
    test: bool = False,
) -> dict[str, Any]:
    """Return the answers to all questions, by task."""
    check_lists(cells, lists)
    predictors = predictors or {}
    cells = add_span_errors(cells, predictors)
    held_out = sorted(lists.held_out)
    numbers = {
        name: {k: v for k, v in each.items() if k in rule.PREDICTORS}
        for name, each in predictors.items()
    }
    tasks: dict[str, Any] = {}
    for task in LOSSES:
        study = Study(cells, task)
        if not any(study.splits.values()):
            continue
        answers = questions.answer(study, held_out)
        answers["when_boosting"] = boosting.when_boosting(answers["boosting"], numbers)
        try:
            answers["rule"] = rule.answer(study, predictors, held_out, test)
        except StudyError as error:
            answers["rule"] = {"reason": str(error)}
        tasks[task] = answers
    return {"tasks": tasks, "hypotheses": questions.adjust(list(tasks.values()))}


def add_span_errors(
    cells: Sequence[Cell], predictors: Mapping[str, Mapping[str, Any]]
) -> list[Cell]:
    """Add the errors of unfitted maps of one bandwidth to the metrics of their cells."""
    found = []
    for cell in cells:
        errors = predictors.get(cell.dataset, {}).get("span", {}).get(cell.map, {})
        more = errors.get(str(cell.width), {})
        found.append(replace(cell, metrics={**cell.metrics, **more}) if more else cell)
    return found


def plain(value: Any) -> Any:
    """Return what JSON can hold: numbers of six digits, null where one is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def write_table(cells: Sequence[Cell], path: Path) -> None:
    """Write a line for each cell and split; a cell without a split has one line."""
    metrics = sorted({n for c in cells for n in c.metrics if "_error" in n and n[0] in "gs"})
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, *metrics])
        for cell in cells:
            lines: list[tuple[object, object]] = [*sorted(cell.losses.items())]
            for split, loss in lines or [("", "")]:
                writer.writerow(
                    [cell.dataset, cell.family, cell.task, cell.map, cell.width or ""]
                    + [cell.learner, cell.status, split, loss, cell.fit_cpu_s]
                    + [cell.predict_cpu_s, cell.model_bytes]
                    + [cell.metrics.get(name, "") for name in metrics]
                )


def run(given: argparse.Namespace) -> int:
    if given.check or given.fill:
        stored = given.numbers
        pages = [page for page in given.pages or PAGES if page.exists()]
        if not stored.exists():
            text = "".join(page.read_text(encoding="utf-8") for page in pages)
            if "<!-- study: " in text:
                raise StudyError(f"{stored}: not found, and pages quote it")
            return 0
        results = json.loads(stored.read_text(encoding="utf-8"))
        if given.fill:
            made = sentences.render(results)
            for page in pages:
                text = page.read_text(encoding="utf-8")
                page.write_text(sentences.fill(text, made), encoding="utf-8")
        problems = sentences.check(results, pages)
        print("\n".join(problems) or f"{len(pages)} pages follow from {stored.name}")
        return 1 if problems else 0
    if not given.results or given.out is None:
        raise StudyError("name the files of results, and a folder with -o")
    lists = read_lists(given.lists)
    # draws of means depend on the order, which a bundle does not keep
    cells = sorted(lists.place(read_files(given.results)), key=lambda c: (c.task, c.dataset))
    cells.sort(key=lambda cell: str(cell.option))
    if given.costs:
        cells = add_costs(cells, given.costs)
    predictors = {}
    if given.predictors:
        predictors = json.loads(given.predictors.read_text(encoding="utf-8"))
    results = plain(analyse(cells, lists, predictors, given.test))
    made = sentences.render(results)
    given.out.mkdir(parents=True, exist_ok=True)
    _write(given.out / "study.json", results)
    _write(given.out / "sentences.json", made)
    write_costs(cells, given.out / "study-costs.csv")
    write_table(add_span_errors(cells, predictors), given.out / "table.csv")
    # matplotlib takes longer to load than the analyses of a small study
    from .figures import draw

    figures = draw(results, given.out)
    for name, text in made.items():
        print(f"{name}: {text}")
    print(f"{given.out}: study.json, sentences.json, table.csv, {len(figures)} figures")
    return 0


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.study", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULTS.json")
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--predictors", type=Path, help="the file that predictors wrote")
    parser.add_argument("--costs", type=Path, help="seconds of cells of bundles, which have none")
    parser.add_argument("--lists", type=Path, default=LISTS, help="which datasets are held out")
    parser.add_argument("--test", action="store_true", help="score the rule on what is held out")
    parser.add_argument("--check", action="store_true", help="compare pages with stored numbers")
    parser.add_argument("--fill", action="store_true", help="write the sentences into the pages")
    parser.add_argument("--numbers", type=Path, default=STORED, help="numbers of --check")
    parser.add_argument("--pages", type=Path, nargs="*", help="pages of --check")
    try:
        return run(parser.parse_args(arguments))
    except StudyError as error:
        print(f"study: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
