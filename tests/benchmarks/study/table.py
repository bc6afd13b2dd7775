"""The results of the study as one table: a cell for each dataset, map, width and learner.

Files are what ``kbench results SUITE --format json`` writes. Cells without a result stay in the
table, with their status, so that they can be bounded.
"""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LOSSES = {"classification": "accuracy", "regression": "rmse_standardized"}
"""Metric of each task; the loss of a class is 1 - accuracy."""

COSTS = ("features", "model_bytes", "fit_cpu_s", "predict_cpu_s")

BYTES_PER_NUMBER = 8

REFERENCES = {"kernel": "exact kernel", "trees": "boosting"}
"""Families of learners on the inputs that are references."""

GAUSSIAN = (
    *("rff", "orthogonal-rff", "qmc-rff", "leverage-rff", "fastfood", "sorf"),
    *("nystroem", "nystroem-kmeans", "nystroem-rpcholesky", "nystroem-leverage"),
)
"""Maps of the Gaussian kernel with a number of features: their errors can be compared."""

CONTROL = "-one-bandwidth"
"""End of the name of the control of a learned map: equal but for what is learned. No candidate."""

LINEAR, EXACT, BOOSTING = "linear", "exact kernel", "boosting"

_WIDTH = re.compile(r"^(.+?)(?:\s*,\s*|\s+|-)(\d+)$")
_SIZE = re.compile(r"\(n_(roots|grids|trees)=\d+\)$")
LEAST_WIDTH = 8
"""A smaller number at the end of a label is part of a name, as the degree of polynomial-2."""


class StudyError(Exception):
    """A mistake of the user, said in one message."""


@dataclass(frozen=True)
class Cell:
    """One dataset, map, width and learner; `losses` has the loss by number of the split.

    Costs are NaN if they are unknown. ``metrics`` has all other means over splits.
    """

    dataset: str
    family: str
    task: str
    map: str
    width: int | None
    learner: str
    status: str
    n_splits: int
    losses: Mapping[int, float] = field(default_factory=dict)
    hashes: Mapping[int, str] = field(default_factory=dict)
    reference: str = ""
    model_bytes: float = np.nan
    fit_cpu_s: float = np.nan
    predict_cpu_s: float = np.nan
    search_cpu_s: float = np.nan
    test_to_train: float = np.nan
    n_folds: int = 0
    """Folds of a repeat, whose test rows are disjoint; 0 if those of splits overlap."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    coarse: bool = False
    """Whether a cost is wall clock, because the clock of CPU time was too coarse."""

    @property
    def option(self) -> Option:
        """Name of an option, the same on all datasets."""
        return Option(self.map, self.width, self.learner)


@dataclass(frozen=True, order=True)
class Option:
    """A map, its width and a learner."""

    map: str
    width: int | None
    learner: str

    @property
    def group(self) -> str:
        """The map, without a size that does not count features."""
        return _SIZE.sub("", self.map)

    def __str__(self) -> str:
        width = "" if self.width is None else f"-{self.width}"
        return f"{self.map}{width} + {self.learner}"


def split_label(label: str, size: str = "n_components") -> tuple[str, int | None]:
    """Return the name of a map or learner and its width; searched parameters are left out.

    >>> split_label("rff(n_components=32, bandwidth_factor=tune[1, 0.5])")
    ('rff', 32)
    >>> split_label("tensor-sketch(degree=3, n_components=64)"), split_label("rff, 512")
    (('tensor-sketch(degree=3)', 64), ('rff', 512))
    >>> split_label("polynomial-2"), split_label("ridge(alpha=tune[1, 10]) (ovr)")
    (('polynomial-2', None), ('ridge (ovr)', None))
    """
    opening = label.find("(")
    if opening < 1 or label[opening - 1] == " ":
        numbered = _WIDTH.match(label)
        if numbered and int(numbered[2]) >= LEAST_WIDTH:
            return numbered[1], int(numbered[2])
        return label, None
    closing = _find_closing(label, opening)
    name, given_text, rest = label[:opening], label[opening + 1 : closing], label[closing + 1 :]
    width, kept = None, []
    for each in _split_parameters(given_text):
        parameter, _, value = each.partition("=")
        if parameter == size and value.isdigit():
            width = int(value)
        elif "tune[" not in value:
            kept.append(each)
    given = f"({', '.join(kept)})" if kept else ""
    return f"{name}{given}{rest}", width


def _find_closing(text: str, opening: int) -> int:
    """Return where the parenthesis is closed; the end if it is not."""
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] in "([") - (text[place] in ")]")
        if depth == 0:
            return place
    return len(text)


def _split_parameters(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def read_files(paths: Iterable[Path]) -> list[Cell]:
    """Read the cells of all files; two cells of one name are an error."""
    cells: list[Cell] = []
    seen: dict[tuple[str, str, Option], Path] = {}
    for path in paths:
        for cell in _read_file(path):
            key = cell.task, cell.dataset, cell.option
            if key in seen:
                raise StudyError(f"{path}: {cell.option} on {cell.dataset} is also in {seen[key]}")
            seen[key] = path
            cells.append(cell)
    if not any(cell.losses for cell in cells):
        raise StudyError("no file has a finished split")
    return cells


def _read_file(path: Path) -> list[Cell]:
    try:
        lines = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise StudyError(f"{path}: is not JSON: {error}") from error
    lines = lines.get("rows") if isinstance(lines, dict) else lines
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        raise StudyError(f"{path}: is not the output of kbench results --format json")
    cells = [read_row(line, f"{path}, row {i}") for i, line in enumerate(lines, 1)]
    return _correct_tasks(cells)


def _correct_tasks(cells: Sequence[Cell]) -> list[Cell]:
    """Give datasets that could not be had the task of the others, or leave them out.

    A row of such a dataset says "classification", because its targets were never read.
    """
    read = {cell.dataset for cell in cells if cell.losses}
    tasks = {cell.task for cell in cells if cell.losses}
    if len(tasks) != 1:
        return [cell for cell in cells if cell.dataset in read]
    (task,) = tasks
    return [cell if cell.dataset in read else replace(cell, task=task) for cell in cells]


def read_row(row: Mapping[str, Any], place: str = "row") -> Cell:
    """Return the cell of a row of ``kbench results --format json``."""
    needed = ("dataset", "feature_map", "learner", "status", "n_splits")
    if lacking := [name for name in needed if row.get(name) is None]:
        raise StudyError(f"{place}: lacks {', '.join(lacking)}")
    task = str(row.get("task") or "classification")
    if task not in LOSSES:
        raise StudyError(f"{place}: unknown task {task!r}; allowed: {', '.join(LOSSES)}")
    name, width = split_label(str(row["feature_map"]))
    learner, _ = split_label(str(row["learner"]))
    metric = LOSSES[task]
    values = (row.get("values_by_split") or {}).get(metric)
    if values is None and row.get("metric") == metric:
        values = row.get("metric_by_split")
    # six digits, which a bundle has: methods that are the same are then tied
    scores = {int(split): float(f"{value:.6g}") for split, value in (values or {}).items()}
    if not all(map(np.isfinite, scores.values())):
        raise StudyError(f"{place}: {metric} of a split is not finite")
    losses = {i: 1 - v if task == "classification" else v for i, v in scores.items()}
    numbers = {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    fit, coarse = _seconds(numbers, "fit_time")
    predict, coarse_too = _seconds(numbers, "predict_time")
    n_test, n_train = numbers.get("n_test", 0.0), numbers.get("n_train", 0.0)
    n_folds = _count_folds(row.get("protocol") or {})
    return Cell(
        dataset=str(row["dataset"]),
        family=str(row.get("dataset_family") or row["dataset"]),
        task=task,
        map=name,
        width=width,
        learner=learner,
        status=str(row["status"]),
        n_splits=int(row["n_splits"]),
        losses=losses,
        hashes={int(i): str(each) for i, each in (row.get("split_hash") or {}).items()},
        reference=_reference(name, learner, str(row.get("family") or "")),
        model_bytes=BYTES_PER_NUMBER * numbers.get("n_stored_floats", np.nan),
        fit_cpu_s=fit,
        predict_cpu_s=predict / n_test if n_test else np.nan,
        search_cpu_s=numbers.get("search_time_cpu_s", numbers.get("search_time_s", np.nan)),
        test_to_train=_ratio(n_test, n_train, n_folds),
        n_folds=n_folds,
        metrics=numbers,
        coarse=coarse or coarse_too,
    )


def _count_folds(protocol: Mapping[str, Any]) -> int:
    folds = str(protocol.get("n_folds", ""))
    is_folds = protocol.get("cv", "holdout") != "holdout" and folds.isdigit() and int(folds) > 1
    return int(folds) if is_folds else 0


def _ratio(n_test: float, n_train: float, n_folds: int) -> float:
    """Return test rows over training rows for corrected tests.

    Of k folds it is at most 1 / (k - 1): samples of the training rows of a fold overlap less than
    these rows do.
    """
    if not n_test or not n_train:
        return float("nan")
    return min(n_test / n_train, 1 / (n_folds - 1)) if n_folds else n_test / n_train


def _seconds(numbers: Mapping[str, float], name: str) -> tuple[float, bool]:
    """Return CPU seconds, or wall clock where the CPU clock did not move."""
    seconds = numbers.get(f"{name}_cpu_s", 0.0)
    return (seconds, False) if seconds > 0 else (numbers.get(f"{name}_s", np.nan), True)


def _reference(name: str, learner: str, family: str) -> str:
    if name != "identity":
        return ""
    if learner.startswith("ridge"):
        return LINEAR
    known = {"kernel-svm": EXACT, "kernel-ridge": EXACT, "gradient-boosting": BOOSTING}
    return REFERENCES.get(family) or known.get(learner.split(" ")[0].split("(")[0], "")


SECONDS = ("fit_cpu_s", "predict_cpu_s", "search_cpu_s")


def write_costs(cells: Iterable[Cell], path: Path) -> None:
    """Write the seconds of all cells, which bundles do not have."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "dataset", "option", *SECONDS, "coarse"])
        for cell in cells:
            costs = [f"{getattr(cell, name):.7g}" for name in SECONDS]
            writer.writerow([cell.task, cell.dataset, cell.option, *costs, int(cell.coarse)])


def add_costs(cells: Iterable[Cell], path: Path) -> list[Cell]:
    """Give cells without times those of a file that `write_costs` wrote."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            known = {(x["task"], x["dataset"], x["option"]): x for x in csv.DictReader(file)}
    except (OSError, KeyError) as error:
        raise StudyError(f"{path}: costs cannot be read: {error}") from error
    found = []
    for cell in cells:
        line = known.get((cell.task, cell.dataset, str(cell.option)))
        if line and not np.isfinite(cell.fit_cpu_s):
            costs = {name: float(line[name]) for name in SECONDS}
            cell = replace(cell, **costs, coarse=line["coarse"] == "1")
        found.append(cell)
    return found


class Study:
    """The cells of one task as arrays: datasets by options.

    Losses are means over the splits of a dataset that all of its cells have, those that failed
    left aside: means over different splits are not compared. A cell that lacks one of these
    splits, or has other test rows, is missing (NaN).
    """

    def __init__(self, cells: Sequence[Cell], task: str) -> None:
        self.task = task
        self.cells = [cell for cell in cells if cell.task == task]
        self.datasets = list(dict.fromkeys(cell.dataset for cell in self.cells))
        self.options = list(dict.fromkeys(cell.option for cell in self.cells))
        self.family_of = {cell.dataset: cell.family for cell in self.cells}
        self.families = list(dict.fromkeys(self.family_of.values()))
        self.cell = {(cell.dataset, cell.option): cell for cell in self.cells}
        self.splits = {name: self._common_splits(name) for name in self.datasets}
        self.notes: list[str] = []
        self.status: dict[tuple[str, Option], str] = {}
        shape = len(self.datasets), len(self.options)
        self.losses_by_split: dict[str, Array] = {}
        self.losses = np.full(shape, np.nan)
        for i, name in enumerate(self.datasets):
            self.losses_by_split[name] = self._by_split(name)
            if self.splits[name]:
                self.losses[i] = self.losses_by_split[name].mean(axis=0)

    def _of_dataset(self, name: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.dataset == name]

    def _common_splits(self, name: str) -> list[int]:
        """Return the splits that all cells have which only wait for more splits."""
        waiting = ("ok", "unfinished", "not_run", "skipped")
        found = [set(c.losses) for c in self._of_dataset(name) if c.losses and c.status in waiting]
        return sorted(set.intersection(*found)) if found else []

    def _by_split(self, name: str) -> Array:
        """Return losses, shape (n_splits, n_options); a column is complete or NaN."""
        splits = self.splits[name]
        values = np.full((len(splits), len(self.options)), np.nan)
        of_dataset = [cell for cell in self._of_dataset(name) if cell.losses]
        usual: dict[int, str] = {}
        for i in splits:
            hashes = [cell.hashes[i] for cell in of_dataset if i in cell.hashes]
            if hashes:
                usual[i] = max(sorted(set(hashes)), key=hashes.count)
        for j, option in enumerate(self.options):
            cell = self.cell.get((name, option))
            if cell is None:
                if self._is_planned(name, option):
                    self.status[name, option] = "no result"
            elif any(cell.hashes.get(i, usual.get(i)) != usual.get(i) for i in splits):
                self.status[name, option] = "other test rows"
                self.notes.append(f"{option} on {name} has other test rows")
            elif not splits or not set(splits) <= cell.losses.keys():
                self.status[name, option] = cell.status if cell.status != "ok" else "unfinished"
            else:
                values[:, j] = [cell.losses[i] for i in splits]
        return values

    def ratio(self, name: str) -> float:
        """Return test rows over training rows of a dataset, for corrected tests."""
        ratios = [cell.test_to_train for cell in self._of_dataset(name)]
        known = [each for each in ratios if np.isfinite(each)]
        return float(np.median(known)) if known else 0.25

    def values(self, name: str) -> Array:
        """Return a cost or a metric, shape (n_datasets, n_options)."""
        out = np.full((len(self.datasets), len(self.options)), np.nan)
        for i, dataset in enumerate(self.datasets):
            for j, option in enumerate(self.options):
                cell = self.cell.get((dataset, option))
                if cell is None:
                    continue
                if name == "features":
                    # landmarks are training rows, which limits their number
                    asked = np.nan if cell.width is None else float(cell.width)
                    out[i, j] = cell.metrics.get("n_components", asked)
                else:
                    value = getattr(cell, name, None)
                    out[i, j] = cell.metrics.get(name, np.nan) if value is None else value
        return out

    def by_family(self, values: Array) -> Array:
        """Average the datasets of each family; NaN if one that was planned is missing."""
        names = np.array([self.family_of[name] for name in self.datasets])
        return np.array([values[names == family].mean(axis=0) for family in self.families])

    @cached_property
    def planned(self) -> NDArray[np.bool_]:
        """Mask of the cells that the suite has, shape (n_datasets, n_options)."""
        return np.array([[self._is_planned(d, o) for o in self.options] for d in self.datasets])

    def _is_planned(self, dataset: str, option: Option) -> bool:
        """Report if the suite has a cell, as far as results tell.

        Results lack cells that never ran. Options that most datasets have, and maps with the main
        learner, are planned for all datasets.
        """
        return (
            (dataset, option) in self.cell
            or 2 * sum((name, option) in self.cell for name in self.datasets) > len(self.datasets)
            or (option.learner == self.main_learner and option.map != "identity")
        )

    @cached_property
    def references(self) -> dict[Option, str]:
        """Return the options that are references, with their kind."""
        return {cell.option: cell.reference for cell in self.cells if cell.reference}

    def bounded(self) -> tuple[Array, Array]:
        """Return losses where missing cells have the best, and the worst, loss of their dataset."""
        best, worst = self.losses.copy(), self.losses.copy()
        for i, row in enumerate(self.losses):
            if np.isfinite(row).any():
                gaps = np.isnan(row) & self.planned[i]
                best[i, gaps], worst[i, gaps] = np.nanmin(row), np.nanmax(row)
        return best, worst

    def reference(self, kind: str) -> int | None:
        """Return the column of a reference; of several, the one with most datasets."""
        found = [j for j, option in enumerate(self.options) if self.references.get(option) == kind]
        return max(found, key=lambda j: (np.isfinite(self.losses[:, j]).sum(), -j), default=None)

    def maps(self, learner: str | None = None) -> list[str]:
        """Return the maps, without references and controls."""
        return list(
            dict.fromkeys(
                o.map
                for o in self.options
                if o.map != "identity"
                and not o.map.endswith(CONTROL)
                and (learner is None or o.learner == learner)
            )
        )

    @cached_property
    def main_learner(self) -> str:
        """Return the learner that most cells of maps have."""
        counts: dict[str, int] = {}
        for cell in self.cells:
            if cell.map != "identity":
                counts[cell.learner] = counts.get(cell.learner, 0) + 1
        return max(sorted(counts), key=lambda name: counts[name], default="")

    def columns(self, name: str, learner: str | None = None) -> list[int]:
        """Return the columns of a map with the main learner, the narrowest first."""
        learner = learner or self.main_learner
        found = [j for j, o in enumerate(self.options) if o.map == name and o.learner == learner]
        return sorted(found, key=lambda j: self.options[j].width or 0)

    def turns(self, name: str) -> list[tuple[list[int], list[int]]]:
        """Return pairs of rows of `losses_by_split`: on which to choose, and on which to score.

        Each fold is scored once, and chosen for on the other folds of its repeat: their test rows
        are disjoint. Other repeats have the same rows in other folds, so that what is best by
        luck there is best by the same luck here. A fold that is alone in its repeat has no turn.
        """
        splits = self.splits[name]
        n_folds = max(cell.n_folds for cell in self._of_dataset(name))
        if n_folds < 2:
            return []
        found = []
        for row, split in enumerate(splits):
            repeat = split // n_folds
            rest = [i for i, each in enumerate(splits) if i != row and each // n_folds == repeat]
            if rest:
                found.append((rest, [row]))
        return found

    def missing(self) -> list[dict[str, str]]:
        """List the planned cells without a loss."""
        return [
            {"dataset": name, "option": str(option), "status": status}
            for (name, option), status in self.status.items()
        ]


@dataclass(frozen=True)
class Lists:
    """Use of each dataset before the study: in view of a choice, or held out."""

    seen: frozenset[str]
    held_out: frozenset[str]
    families: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def every(self) -> frozenset[str]:
        """All datasets of the lists."""
        return self.seen | self.held_out

    def place(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return the cells with the families of the lists, where these name one."""
        family_of = {name: family for family, names in self.families.items() for name in names}
        return [replace(c, family=family_of.get(c.dataset, c.family)) for c in cells]


def read_lists(path: Path) -> Lists:
    """Read the file of the lists, which the page of the study repeats."""
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StudyError(f"{path}: the lists of datasets cannot be read: {error}") from error
    found = {name: text.get(name) for name in ("seen", "held_out")}
    for name, each in found.items():
        if not isinstance(each, list) or not all(isinstance(one, str) for one in each):
            raise StudyError(f"{path}: {name} must be a list of names of datasets")
    families = text.get("families", {})
    lists = Lists(*(frozenset(each or ()) for each in found.values()), families)
    listed = [name for names in families.values() for name in names]
    if wrong := sorted({n for n in listed if listed.count(n) > 1 or n not in lists.every}):
        raise StudyError(f"{path}: families have {', '.join(wrong)} twice, or in no list")
    if both := sorted(lists.seen & lists.held_out):
        raise StudyError(f"{path}: in both lists: {', '.join(both)}")
    return lists


def check_lists(cells: Iterable[Cell], lists: Lists) -> None:
    """Refuse results of a dataset that is in no list, and families that are held out in part."""
    families: dict[str, set[bool]] = {}
    unknown = set()
    for cell in cells:
        if cell.dataset not in lists.seen | lists.held_out:
            unknown.add(cell.dataset)
        families.setdefault(cell.family, set()).add(cell.dataset in lists.held_out)
    if unknown:
        raise StudyError(
            f"neither seen nor held out: {', '.join(sorted(unknown))}; the list of datasets must "
            "say which"
        )
    if shared := sorted(name for name, each in families.items() if len(each) > 1):
        raise StudyError(f"held out only in part: families {', '.join(shared)}")
