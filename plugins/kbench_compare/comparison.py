"""Two sets of rows, cell by cell: changes of the metric and of times, and the verdicts."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from kbench.features import (
    LABELS,
    METRICS,
    NO_TEST,
    TIMES,
    Labels,
    Row,
    SuiteError,
    corrected_t,
    find_unit,
    group_values,
    holdout_ratio,
    holm,
    protocol_changes,
    why_not_comparable,
)
from kbench.records import ACCURACY, Metric, divide_protocol

Verdict = Literal["same", "better", "worse", "unknown"]

_OF_CELL = ("status_a", "status_b", "n_splits")
_PARTS = ("a", "b", "change", "low", "high", "p", "verdict")

ONE_SPLIT = "one split: its noise cannot be estimated"


@dataclass(frozen=True)
class Noise:
    """Thresholds of a change."""

    alpha: float = 0.05
    """Level of the tests, over all cells together (Holm)."""
    time_factor: float = 2.0
    """A time has changed if the test is significant and the means over the splits differ by
    more than this factor.
    """
    time_floor_s: float = 0.002
    """And the two means differ by more than this many seconds."""
    time_noise: float = 0.1
    """Relative standard deviation of a cell's mean time between runs of the same code on an idle
    machine: the part that its splits share.
    """


@dataclass(frozen=True)
class Change:
    """One metric of one cell on both sides."""

    a: float | None = None
    b: float | None = None
    """`a` and `b` are means over the common splits; times are geometric means, and that of `b` is
    corrected for the machine speed.
    """
    change: float | None = None
    """b - a; for times b / a."""
    low: float | None = None
    high: float | None = None
    """`low` to `high` is its confidence interval of level 1 - alpha; None if there is none."""
    p: float | None = None
    """Two-sided, of "no change"; not adjusted."""
    p_holm: float | None = None
    """Adjusted for the number of cells."""
    verdict: Verdict = "unknown"
    """It is "unknown" if there is no answer, for the reasons in `doubts`."""
    doubts: tuple[str, ...] = ()
    untested: str = ""
    """Why there is no p although both sides have values; empty if there is one."""


@dataclass(frozen=True)
class Compared:
    """A cell that both sides have."""

    labels: Labels
    """Of dataset, feature map, learner."""
    status_a: str
    status_b: str
    n_splits: int
    """Splits that both finished."""
    changes: dict[str, Change]
    """By the metric that is compared, and `TIMES`."""


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`: its `metric` is compared in addition to times.

    `only_a` and `only_b` have the status of the cells that the other side does
    not have; `notes` are differences between the sides as a whole.
    """

    metric: Metric
    cells: list[Compared]
    only_a: dict[Labels, str] = field(default_factory=dict)
    only_b: dict[Labels, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def regressions(self, fail_on: Iterable[str]) -> list[tuple[Labels, str]]:
        """Return the cells that became worse, each with the metric that did.

        `fail_on` has some of "metric" (the one that is compared), "time"
        and "missing" (b has no data for a cell that was ok in a, or does not
        have the cell). A cell that was ok and failed is in all of them.
        """
        wanted = set(fail_on)
        names = [self.metric.name] if "metric" in wanted else []
        names += TIMES if "time" in wanted else ()
        lost = [cell for cell in self.cells if cell.status_a == "ok" and cell.status_b != "ok"]
        worse = [(c.labels, c.status_b) for c in lost if wanted and c.status_b != "unavailable"]
        if "missing" in wanted:
            worse += [(c.labels, c.status_b) for c in lost if c.status_b == "unavailable"]
            worse += [(labels, "missing") for labels, was in self.only_a.items() if was == "ok"]
        return worse + [
            (cell.labels, name)
            for cell in self.cells
            for name in names
            if cell.changes[name].verdict == "worse"
        ]

    def count(self, name: str) -> Counter[str]:
        """Count the verdicts of a metric."""
        return Counter(cell.changes[name].verdict for cell in self.cells)

    def rows(self) -> list[dict[str, object]]:
        """Return one row of plain values per cell of either side, with the keys of `columns`.

        ``side`` is "both", "a" or "b".
        """
        rows = [_to_row(cell, (self.metric.name, *TIMES)) for cell in self.cells]
        for side, only in (("a", self.only_a), ("b", self.only_b)):
            for labels, status in only.items():
                row: dict[str, object] = dict.fromkeys(columns(self.metric))
                row |= zip(LABELS, labels, strict=True)
                rows.append(row | {"side": side, f"status_{side}": status})
        return rows


def columns(metric: Metric) -> tuple[str, ...]:
    """Return the keys of `Comparison.rows`, in order."""
    return (
        *(*LABELS, "side", *_OF_CELL),
        *(f"{name}_{part}" for name in (metric.name, *TIMES) for part in _PARTS),
        "warnings",
    )


def _to_row(cell: Compared, names: Sequence[str]) -> dict[str, object]:
    row: dict[str, object] = dict(zip(LABELS, cell.labels, strict=True))
    row |= {"side": "both"} | {name: getattr(cell, name) for name in _OF_CELL}
    changes = [cell.changes[name] for name in names]
    for name, change in zip(names, changes, strict=True):
        values = vars(change) | {"p": change.p_holm}
        row |= {f"{name}_{part}": values[part] for part in _PARTS}
    doubts = [why for change in changes for why in (*change.doubts, change.untested) if why]
    return {**row, "warnings": "; ".join(dict.fromkeys(doubts))}


# -- cell by cell


def compare(
    a: Sequence[Row], b: Sequence[Row], metric: Metric = ACCURACY, noise: Noise | None = None
) -> Comparison:
    """Compare two sets of results cell by cell, in the order of `a`; b is the newer side.

    Raises
    ------
    SuiteError
        The sides have no cell in common, or were measured on different splits;
        or one of them has a cell twice or results of several machines.

    References
    ----------
    C. Nadeau, Y. Bengio, "Inference for the generalization error", Machine
    Learning 52 (2003). S. Holm, "A simple sequentially rejective multiple test
    procedure", Scandinavian Journal of Statistics 6 (1979).
    """
    noise = noise or Noise()
    of_a, of_b = by_labels(a, "A"), by_labels(b, "B")
    if not (both := [labels for labels in of_a if labels in of_b]):
        raise SuiteError("the two have no cell in common: same dataset, feature map and learner")
    check_splits([(labels, of_a[labels], of_b[labels]) for labels in both])
    cells = [_compare(labels, of_a[labels], of_b[labels], metric, noise) for labels in both]
    cells = _judge(cells, metric.name, lambda change: score_verdict(change, metric, noise))
    for name in TIMES:
        cells = _judge(cells, name, lambda change: time_verdict(change, noise))
    return Comparison(
        metric,
        cells,
        {labels: row.status for labels, row in of_a.items() if labels not in of_b},
        {labels: row.status for labels, row in of_b.items() if labels not in of_a},
        _notes(a, b, [(of_a[labels], of_b[labels]) for labels in both]),
    )


def _compare(labels: Labels, a: Row, b: Row, metric: Metric, noise: Noise) -> Compared:
    splits = [i for i in a.split_hash if i in b.split_hash]
    doubts = list_doubts(a, b)
    changes = {metric.name: score_change(a, b, splits, metric, noise)}
    changes |= {name: time_change(a, b, splits, name, doubts, noise) for name in TIMES}
    return Compared(labels, a.status, b.status, len(splits), changes)


def _judge(
    cells: list[Compared], name: str, verdict: Callable[[Change], Verdict]
) -> list[Compared]:
    """Adjust p over all cells and add their verdicts.

    Cells without a test count among all of them: fewer would make the others' p smaller.
    """
    changes = [cell.changes[name] for cell in cells]
    counted = [change for change in changes if change.p is not None or change.untested]
    adjusted = iter(holm([1.0 if change.p is None else change.p for change in counted]))
    judged = []
    for cell, change in zip(cells, changes, strict=True):
        p_holm = next(adjusted) if change.p is not None or change.untested else None
        if change.p is not None and p_holm is not None:
            change = replace(change, p_holm=float(p_holm))
            change = replace(change, verdict="unknown" if change.doubts else verdict(change))
        judged.append(replace(cell, changes={**cell.changes, name: change}))
    return judged


def _notes(a: Sequence[Row], b: Sequence[Row], pairs: Sequence[tuple[Row, Row]]) -> list[str]:
    """Return what differs between the sides as a whole, and in the protocols of common cells."""
    notes = []
    machines = [sorted({row.machine for row in rows}) for rows in (a, b)]
    if not all(any(row.by_split(TIMES[0]) for row in rows) for rows in (a, b)):
        notes.append("times are not compared: one side has no times")
    elif machines[0] != machines[1]:
        notes.append(
            f"machines: {', '.join(machines[0])} in a, {', '.join(machines[1])} in b; times of b "
            "are normalised by a speed benchmark of each machine"
        )
    changed = group_values(item for pair in pairs for item in protocol_changes(*pair).items())
    for what, names in zip(("protocols", "searches"), divide_protocol(changed), strict=True):
        sides = {name: map(set, zip(*values, strict=True)) for name, values in names.items()}
        differ = [
            f"{name} ({', '.join(sorted(left))} in a, {', '.join(sorted(right))} in b)"
            for name, (left, right) in sides.items()
        ]
        if differ:
            notes.append(f"{what} differ: {'; '.join(differ)}")
    return notes


# -- the cells and splits that both sides have


def by_labels(rows: Sequence[Row], side: str) -> dict[Labels, Row]:
    """Return the rows of a side by cell; two rows of one cell or several machines are errors."""
    machines = sorted({row.machine for row in rows})
    if len(machines) > 1:
        raise SuiteError(
            f"{side} contains results of {len(machines)} machines ({', '.join(machines)}); only "
            "those of one machine can be compared: `kbench results SUITE --machine ID --format "
            "json` writes them"
        )
    cells: dict[Labels, Row] = {}
    for row in rows:
        if cells.setdefault(row.labels, row) is not row:
            raise SuiteError(f"{side} contains {' + '.join(row.method)} on {row.dataset} twice")
    return cells


def check_splits(pairs: Sequence[tuple[Labels, Row, Row]]) -> None:
    """Raise an error for rows that were evaluated on different splits."""
    differ = []
    for labels, left, right in pairs:
        common = left.split_hash.keys() & right.split_hash.keys()
        if any(left.split_hash[i] != right.split_hash[i] for i in common):
            differ.append(labels[0])
    if differ:
        names = list(dict.fromkeys(differ))
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        raise SuiteError(
            f"not comparable: {len(differ)} of {len(pairs)} common cells have different splits "
            f"({shown}): the data, the splits of the protocol or the seed differ"
        )


def values_on(a: Row, b: Row, splits: Sequence[str], name: str) -> list[tuple[float, float]]:
    """Return the values of both sides on the splits that have them."""
    left, right = a.by_split(name), b.by_split(name)
    return [(left[i], right[i]) for i in splits if i in left and i in right]


def why_none(a: Row, b: Row, kind: str) -> str:
    """Return why two rows have no values in common."""
    for side, row in (("a", a), ("b", b)):
        if row.status != "ok":
            return f"{row.status} in {side}"
    return f"no {kind} for common splits"


# -- changes of the metric that a suite compares


def score_change(a: Row, b: Row, splits: Sequence[str], metric: Metric, noise: Noise) -> Change:
    """Return the change of what a suite compares, with its interval, over common splits."""
    if not (pairs := values_on(a, b, splits, metric.name)):
        return Change(doubts=(why_none(a, b, metric.words),))
    mean_a, mean_b = (math.fsum(values) / len(pairs) for values in zip(*pairs, strict=True))
    if len(pairs) < 2:
        return _one_split(mean_a, mean_b, a.metrics.get("n_test"), metric, noise)
    d = [right - left for left, right in pairs]
    unit = find_unit([value for pair in pairs for value in pair], metric)
    test = corrected_t(d, holdout_ratio(a), noise.alpha, unit)
    row = _one_row(a, metric)
    # as many rows on every split, though folds differ by a row in size
    if test.p is not None and not (metric.name == ACCURACY.name and max(d) - min(d) < row / 2):
        return Change(mean_a, mean_b, test.difference, test.low, test.high, test.p)
    if test.is_zero:
        return Change(mean_a, mean_b, 0.0, verdict="same", untested=NO_TEST)
    if not row:
        return Change(mean_a, mean_b, test.difference, untested=NO_TEST, doubts=(NO_TEST,))
    # the noise is below the resolution: one row, where shares of rows are one or two apart
    low, high = test.difference - row, test.difference + row
    verdict = "same" if abs(test.difference) < 1.5 * row else _direction(test.difference, metric)
    return Change(mean_a, mean_b, test.difference, low, high, verdict=verdict, untested=NO_TEST)


def _one_row(row: Row, metric: Metric) -> float:
    """Return how much one test row changes a metric that counts rows; 0 for any other."""
    standard, n_test = METRICS.get(metric.name), row.metrics.get("n_test")
    counts_rows = standard and standard.task == "classification" and standard.needs == "predictions"
    return 1.0 / n_test if n_test and counts_rows else 0.0


def _one_split(a: float, b: float, n_test: float | None, metric: Metric, noise: Noise) -> Change:
    """Compare two values on one split: shares of its test rows, by their binomial error.

    The rows count as two samples, with Yates' correction: fewer methods differ
    than by their predictions on each row, which are not known here. The noise
    does not include that another split would train other models.
    """
    from scipy.special import ndtr, ndtri

    if a == b:
        return Change(a, b, 0.0, verdict="same", untested=NO_TEST)
    if metric.name != ACCURACY.name or not n_test or not (0 <= a <= 1 and 0 <= b <= 1):
        return Change(a, b, b - a, doubts=(ONE_SPLIT,))
    share, row = (a + b) / 2, 1 / n_test
    if not (error := math.sqrt(2 * share * (1 - share) / n_test)):
        return Change(a, b, b - a, doubts=(ONE_SPLIT,))
    wide = error * float(ndtri(1 - noise.alpha / 2)) + row
    p = 2 * float(ndtr(-max(0.0, abs(b - a) - row) / error))
    return Change(a, b, b - a, b - a - wide, b - a + wide, p)


def score_verdict(change: Change, metric: Metric, noise: Noise) -> Verdict:
    """Judge a change by its adjusted p."""
    assert change.change is not None and change.p_holm is not None
    return "same" if change.p_holm > noise.alpha else _direction(change.change, metric)


def _direction(difference: float, metric: Metric) -> Verdict:
    return "better" if metric.gain(difference) > 0 else "worse"


# -- changes of times: ratios, corrected by the calibration figures of the machines


CALIBRATION_SPREAD = 1.25
"""Ratio of two measured speeds of one machine above which its times are unreliable."""


def time_change(
    a: Row, b: Row, splits: Sequence[str], name: str, doubts: tuple[str, ...], noise: Noise
) -> Change:
    """Return the ratio of two times, that of b corrected, with its interval, over common splits."""
    if not (pairs := [pair for pair in values_on(a, b, splits, name) if min(pair) > 0]):
        return Change(doubts=(why_none(a, b, "times"),))
    of_a, of_b = _calibration(a), _calibration(b)
    factor = math.log(of_a[0]) - math.log(of_b[0]) if of_a and of_b else 0.0
    logs = [math.log(right) - math.log(left) + factor for left, right in pairs]
    mean_a = _exp(math.fsum(math.log(left) for left, _ in pairs) / len(pairs))
    ratio = _exp(math.fsum(logs) / len(logs))
    if len(pairs) < 2:
        return Change(mean_a, mean_a * ratio, ratio, doubts=(*doubts, ONE_SPLIT))
    low, high, p = _interval(logs, noise)
    return Change(mean_a, mean_a * ratio, ratio, _exp(low), _exp(high), p, doubts=doubts)


def _exp(value: float) -> float:
    """Return e^value, the value clipped to what gives a positive number."""
    return math.exp(max(-700.0, min(value, 700.0)))


def _interval(logs: Sequence[float], noise: Noise) -> tuple[float, float, float]:
    """Return an interval for the mean of logarithms of ratios, and p of "no change".

    The variance within a run is estimated from the splits, that between runs
    is given, so that the degrees of freedom are Satterthwaite's.
    """
    from scipy.special import stdtr, stdtrit

    n = len(logs)
    mean = math.fsum(logs) / n
    within = math.fsum((value - mean) ** 2 for value in logs) / (n - 1) / n
    if (error := math.sqrt(within + 2 * noise.time_noise**2)) == 0:
        return mean, mean, float(mean == 0)
    df = (n - 1) * (error**2 / within) ** 2 if within > 1e-12 else math.inf
    wide = error * float(stdtrit(min(df, 1e6), 1 - noise.alpha / 2))
    return mean - wide, mean + wide, 2 * float(stdtr(min(df, 1e6), -abs(mean) / error))


def _calibration(row: Row) -> list[float]:
    """Return the calibration figures of a row: their median, the least and the greatest."""
    figures = [float(value) for value in row.machine_speed_s.split(", ") if value]
    figures = [figure for figure in figures if figure > 0]
    return [median(figures), min(figures), max(figures)] if figures else []


def list_doubts(a: Row, b: Row) -> tuple[str, ...]:
    """Return why the times of two rows cannot be compared."""
    doubts = []
    for side, row in (("a", a), ("b", b)):
        if row.contention:
            doubts.append(f"{side}: the machine was loaded: {row.contention}")
        if not (calibration := _calibration(row)):
            doubts.append(f"{side}: no speed benchmark")
        elif calibration[2] > CALIBRATION_SPREAD * calibration[1]:
            doubts.append(f"{side}: the machine's speed changed between its splits")
    figures = [_calibration(row) for row in (a, b)]
    if all(figures) and a.machine == b.machine:
        of_a, of_b = figures[0][0], figures[1][0]
        if max(of_a, of_b) > CALIBRATION_SPREAD * min(of_a, of_b):
            doubts.append(
                f"the speed of the machine differs: its benchmark took {of_a:.3g} s in a, "
                f"{of_b:.3g} s in b"
            )
    threads_a, threads_b = (row.protocol.get("threads", "1") for row in (a, b))
    if threads_a != threads_b:
        doubts.append(f"{threads_a} threads in a, {threads_b} in b")
    return tuple(doubts)


def time_verdict(change: Change, noise: Noise) -> Verdict:
    """Judge a ratio by its adjusted p and by how far it is from 1."""
    assert change.a is not None and change.b is not None
    assert change.change is not None and change.p_holm is not None
    far = max(change.change, 1 / change.change) > noise.time_factor
    far = far and abs(change.b - change.a) > noise.time_floor_s
    if change.p_holm > noise.alpha or not far:
        return "same"
    return "better" if change.change < 1 else "worse"


def comparable(
    a: Sequence[Row], b: Sequence[Row]
) -> tuple[list[Row], list[Row], Mapping[str, int]]:
    """Leave out the cells of two sides that must not be compared; count them by reason.

    Cells of one side only are kept.
    """
    of_b = {row.labels: row for row in b}
    refused = {
        row.labels: reason
        for row in a
        if (other := of_b.get(row.labels))
        and not (row.key and row.key == other.key)
        and (reason := why_not_comparable(row, other))
    }
    kept_a, kept_b = ([row for row in rows if row.labels not in refused] for rows in (a, b))
    return kept_a, kept_b, Counter(refused.values())
