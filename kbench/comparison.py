"""Two sets of results, cell by cell: what became better, worse, slower. Rows in, rows out.

A cell of one side is matched with that of the other by its labels (dataset,
feature map, learner). Both must have been measured on the same splits: their
hashes tell. Accuracies are compared over these splits by the corrected
resampled t-test; on one split, by the binomial error of its test rows. Times
are compared by their logarithms, after those of the second side were multiplied
by the ratio of the machines' calibration figures; their noise has two parts,
between the splits of a run, which is measured, and between runs of the same
code, which is given.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Literal

from kbench.comparable import TIMES
from kbench.errors import SuiteError
from kbench.records import ACCURACY, Measure
from kbench.results import Row
from kbench.stats import corrected_t, holdout_ratio, holm

Verdict = Literal["same", "better", "worse", "unknown"]
Labels = tuple[str, str, str]

CALIBRATION_SPREAD = 1.25
"""Ratio of two calibration figures of one machine from which its times are doubted."""

_ONE_SPLIT = "one split: its noise is not known"


@dataclass(frozen=True)
class Noise:
    """What counts as a change.

    Parameters
    ----------
    alpha : float, default 0.05
        Level of the tests, over all cells together (Holm).
    time_factor : float, default 2.0
        A time has changed where, beside the test, its mean over the splits is
        this many times the other.
    time_floor_s : float, default 0.002
        And the two means differ by more than this many seconds.
    time_noise : float, default 0.1
        Relative standard deviation of a cell's mean time between runs of the
        same code on a quiet machine: what its splits share.
    """

    alpha: float = 0.05
    time_factor: float = 2.0
    time_floor_s: float = 0.002
    time_noise: float = 0.1


@dataclass(frozen=True)
class Change:
    """One measure of one cell on both sides.

    Parameters
    ----------
    a, b : float or None
        Means over the common splits; times are geometric means, and that of b
        is corrected by the calibration figures.
    change : float or None
        b - a; for times b / a.
    low, high : float or None
        Interval of level 1 - alpha for it; None where it cannot be told.
    p : float or None
        Two-sided, of "no change"; not adjusted.
    p_holm : float or None
        Adjusted for the number of cells.
    verdict : {"same", "better", "worse", "unknown"}
        "unknown" where nothing can be said, see `doubts`.
    doubts : tuple of str
        Why not.
    """

    a: float | None = None
    b: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    verdict: Verdict = "unknown"
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compared:
    """A cell that both sides have.

    Parameters
    ----------
    labels : (str, str, str)
        Of dataset, feature map, learner.
    status_a, status_b : str
        What became of it.
    n_splits : int
        Splits that both finished.
    changes : dict of str to Change
        By the measure that is compared, and `TIMES`.
    """

    labels: Labels
    status_a: str
    status_b: str
    n_splits: int
    changes: dict[str, Change]

    @property
    def broken(self) -> bool:
        """Whether it was ok and failed."""
        return self.status_a == "ok" and self.status_b not in ("ok", "unavailable")

    @property
    def unavailable(self) -> bool:
        """Whether it was ok and its data cannot be had."""
        return self.status_a == "ok" and self.status_b == "unavailable"


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Parameters
    ----------
    measure : Measure
        What is compared beside times.
    cells : list of Compared
    only_a, only_b : dict of (str, str, str) to str
        Cells that the other side does not have, and what became of them.
    notes : list of str
        What must be known to read it.
    """

    measure: Measure
    cells: list[Compared]
    only_a: dict[Labels, str] = field(default_factory=dict)
    only_b: dict[Labels, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def regressions(self, fail_on: Iterable[str]) -> list[tuple[Labels, str]]:
        """Return the cells that became worse, and in what.

        Parameters
        ----------
        fail_on : iterable of {"accuracy", "time", "missing"}
            "accuracy" means the measure that is compared; "missing", that b
            has no data for a cell that was ok in a, or does not have the cell.
            A cell that was ok and failed is in all of them.
        """
        wanted = set(fail_on)
        names = [self.measure.name] if "accuracy" in wanted else []
        names += TIMES if "time" in wanted else ()
        found = [(each.labels, each.status_b) for each in self.cells if wanted and each.broken]
        if "missing" in wanted:
            gone = [each for each in self.cells if each.unavailable]
            found += [(each.labels, each.status_b) for each in gone]
            found += [(labels, "missing") for labels, was in self.only_a.items() if was == "ok"]
        return found + [
            (each.labels, name)
            for each in self.cells
            for name in names
            if each.changes[name].verdict == "worse"
        ]

    def count(self, name: str) -> Counter[str]:
        """Count the verdicts of a measure."""
        return Counter(each.changes[name].verdict for each in self.cells)

    def rows(self) -> list[Row]:
        """Return one row per cell of either side, of plain values.

        Returns
        -------
        list of dict
            ``dataset, feature_map, learner, side`` (both, a, b), ``status_a,
            status_b, n_splits`` and, for the measure and `TIMES`, ``X_a, X_b,
            X_change, X_low, X_high, X_p, X_verdict``; ``doubts``.
        """
        names = (self.measure.name, *TIMES)
        found = [_as_row(each, names) for each in self.cells]
        for side, only in (("a", self.only_a), ("b", self.only_b)):
            for labels, status in only.items():
                row = dict.fromkeys(columns(self.measure)) | _labelled(labels)
                found.append(row | {"side": side, f"status_{side}": status})
        return found


def columns(measure: Measure) -> tuple[str, ...]:
    """Return the keys of `Comparison.rows`, in order."""
    parts = ("a", "b", "change", "low", "high", "p", "verdict")
    return (
        *("dataset", "feature_map", "learner", "side", "status_a", "status_b", "n_splits"),
        *(f"{name}_{part}" for name in (measure.name, *TIMES) for part in parts),
        "doubts",
    )


def _labelled(labels: Labels) -> Row:
    return dict(zip(("dataset", "feature_map", "learner"), labels, strict=True))


def _as_row(cell: Compared, names: Sequence[str]) -> Row:
    row: Row = {
        **_labelled(cell.labels),
        "side": "both",
        "status_a": cell.status_a,
        "status_b": cell.status_b,
        "n_splits": cell.n_splits,
    }
    for name in names:
        change = cell.changes[name]
        for part in ("a", "b", "change", "low", "high"):
            row[f"{name}_{part}"] = getattr(change, part)
        row[f"{name}_p"] = change.p_holm
        row[f"{name}_verdict"] = change.verdict
    doubts = [why for name in names for why in cell.changes[name].doubts]
    return {**row, "doubts": "; ".join(dict.fromkeys(doubts))}


# ---------------------------------------------------------------------------
# Which rows
# ---------------------------------------------------------------------------


def chosen(rows: Sequence[Row], version: str = "", until_ms: int | None = None) -> list[Row]:
    """Keep one row per cell: of a version of kbench, or as it was at a time.

    Parameters
    ----------
    rows : sequence of dict
        As `kbench.results.of_run_in_full` gives them, superseded ones too.
    version : str, optional
        Version of kbench that computed (a part of) it.
    until_ms : int, optional
        Milliseconds since 1970; what ended later is left out.

    Returns
    -------
    list of dict
        Of several rows of one cell the one that ended last.

    Examples
    --------
    >>> row = {"dataset": "iris", "feature_map": "rff", "learner": "ridge"}
    >>> old, new = row | {"version": "0.1", "end_ms": 1}, row | {"version": "0.2", "end_ms": 2}
    >>> [each["version"] for each in chosen([old, new])], len(chosen([old, new], "0.1"))
    (['0.2'], 1)
    """
    newest: dict[Labels, Row] = {}
    for row in rows:
        if version and version not in str(row["version"]).split(", "):
            continue
        if until_ms is not None and row["end_ms"] > until_ms:
            continue
        other = newest.setdefault(_labels(row), row)
        if row["end_ms"] > other["end_ms"]:
            newest[_labels(row)] = row
    return list(newest.values())


# ---------------------------------------------------------------------------
# Comparing them
# ---------------------------------------------------------------------------


def compare(
    a: Sequence[Row],
    b: Sequence[Row],
    measure: Measure = ACCURACY,
    noise: Noise | None = None,
) -> Comparison:
    """Compare two sets of results cell by cell.

    Parameters
    ----------
    a, b : sequence of dict
        As `kbench.results.of_run_in_full` gives them, one per cell; b is the
        newer one.
    measure : Measure, optional
        What is compared beside times.
    noise : Noise, optional
        What counts as a change.

    Returns
    -------
    Comparison
        Cells in the order of `a`.

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
    of_a, of_b = _by_labels(a, "A"), _by_labels(b, "B")
    both = [labels for labels in of_a if labels in of_b]
    if not both:
        raise SuiteError("the two have no cell in common: same dataset, feature map and learner")
    _check_splits([(labels, of_a[labels], of_b[labels]) for labels in both])
    cells = [_compared(labels, of_a[labels], of_b[labels], measure, noise) for labels in both]
    cells = _judged(cells, measure.name, lambda each: _verdict(each, measure, noise))
    for name in TIMES:
        cells = _judged(cells, name, lambda each: _time_verdict(each, noise))
    return Comparison(
        measure,
        cells,
        {labels: row["status"] for labels, row in of_a.items() if labels not in of_b},
        {labels: row["status"] for labels, row in of_b.items() if labels not in of_a},
        _notes(a, b),
    )


def _labels(row: Mapping[str, Any]) -> Labels:
    return row["dataset"], row["feature_map"], row["learner"]


def _by_labels(rows: Sequence[Row], side: str) -> dict[Labels, Row]:
    """Return the rows of a side by cell; refuse what has several rows of one."""
    machines = sorted({str(row["machine"]) for row in rows})
    if len(machines) > 1:
        raise SuiteError(
            f"{side} holds results of {len(machines)} machines ({', '.join(machines)}); those of "
            "one are compared: `kbench results SUITE --machine ID --format json` writes them"
        )
    found: dict[Labels, Row] = {}
    for row in rows:
        labels = _labels(row)
        if found.setdefault(labels, row) is not row:
            raise SuiteError(f"{side} holds {labels[1]} + {labels[2]} on {labels[0]} twice")
    return found


def _check_splits(pairs: Sequence[tuple[Labels, Row, Row]]) -> None:
    """Refuse rows that were measured on different splits."""
    differ = []
    for labels, left, right in pairs:
        common = left["split_hash"].keys() & right["split_hash"].keys()
        if any(left["split_hash"][i] != right["split_hash"][i] for i in common):
            differ.append(labels[0])
    if differ:
        names = list(dict.fromkeys(differ))
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        raise SuiteError(
            f"not comparable: {len(differ)} of {len(pairs)} common cells were measured on other "
            f"splits ({shown}): the data, the protocol's splits or its seed differ"
        )


def _compared(labels: Labels, a: Row, b: Row, measure: Measure, noise: Noise) -> Compared:
    splits = [i for i in a["split_hash"] if i in b["split_hash"]]
    doubts = _doubts(a, b)
    changes = {measure.name: _change(a, b, splits, measure, noise)}
    for name in TIMES:
        changes[name] = _time_change(a, b, splits, name, doubts, noise)
    return Compared(labels, a["status"], b["status"], len(splits), changes)


def _pairs(a: Row, b: Row, splits: Sequence[str], name: str) -> list[tuple[float, float]]:
    """Return the values of both sides on the splits that have them."""
    left, right = a["values_by_split"].get(name, {}), b["values_by_split"].get(name, {})
    return [(left[i], right[i]) for i in splits if i in left and i in right]


def _change(a: Row, b: Row, splits: Sequence[str], measure: Measure, noise: Noise) -> Change:
    pairs = _pairs(a, b, splits, measure.name)
    if not pairs:
        return Change(doubts=(_why_none(a, b, measure.words),))
    mean_a, mean_b = (math.fsum(values) / len(pairs) for values in zip(*pairs, strict=True))
    if len(pairs) < 2:
        return _one_split(mean_a, mean_b, a.get("n_test"), measure, noise)
    d = [right - left for left, right in pairs]
    found = corrected_t(d, holdout_ratio(a), noise.alpha)
    low, high, p = found.low, found.high, found.p
    row = 1.0 / a["n_test"] if a.get("n_test") else 0.0
    alike = low == high
    if measure.name == ACCURACY.name:
        # as many rows on every split, though folds differ by a row in size
        alike = alike or max(d) - min(d) < row / 2
    if alike and found.difference:
        # the noise is below the resolution: one row, where shares of rows are one or two apart
        low, high = min(low, found.difference - row), max(high, found.difference + row)
        p = 1.0 if abs(found.difference) < 1.5 * row else p
    return Change(mean_a, mean_b, found.difference, low, high, p)


def _one_split(a: float, b: float, n_test: float | None, measure: Measure, noise: Noise) -> Change:
    """Compare two values on one split: shares of its test rows, by their binomial error.

    As two samples of rows, with Yates' correction: fewer methods are told apart
    than by their predictions on each row, which are not known here. That
    another split would train other models is not in it.
    """
    from scipy.special import ndtr, ndtri

    if a == b:
        return Change(a, b, 0.0, 0.0, 0.0, 1.0)
    if measure.name != ACCURACY.name or not n_test or not (0 <= a <= 1 and 0 <= b <= 1):
        return Change(a, b, b - a, doubts=(_ONE_SPLIT,))
    share, row = (a + b) / 2, 1 / n_test
    error = math.sqrt(2 * share * (1 - share) / n_test)
    if not error:  # of shares that no number of rows gives
        return Change(a, b, b - a, doubts=(_ONE_SPLIT,))
    wide = error * float(ndtri(1 - noise.alpha / 2)) + row
    p = 2 * float(ndtr(-max(0.0, abs(b - a) - row) / error))
    return Change(a, b, b - a, b - a - wide, b - a + wide, p)


def _why_none(a: Row, b: Row, what: str) -> str:
    for side, row in (("a", a), ("b", b)):
        if row["status"] != "ok":
            return f"{row['status']} in {side}"
    return f"no {what} of common splits"


def _time_change(
    a: Row, b: Row, splits: Sequence[str], name: str, doubts: tuple[str, ...], noise: Noise
) -> Change:
    pairs = [pair for pair in _pairs(a, b, splits, name) if min(pair) > 0]
    if not pairs:
        return Change(doubts=(_why_none(a, b, "times"),))
    of_a, of_b = _calibration(a), _calibration(b)
    factor = math.log(of_a[0]) - math.log(of_b[0]) if of_a and of_b else 0.0
    logs = [math.log(right) - math.log(left) + factor for left, right in pairs]
    mean_a = _exp(math.fsum(math.log(left) for left, _ in pairs) / len(pairs))
    ratio = _exp(math.fsum(logs) / len(logs))
    if len(pairs) < 2:
        return Change(mean_a, mean_a * ratio, ratio, doubts=(*doubts, _ONE_SPLIT))
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
    within = math.fsum((each - mean) ** 2 for each in logs) / (n - 1) / n
    error = math.sqrt(within + 2 * noise.time_noise**2)
    if error == 0:
        return mean, mean, float(mean == 0)
    df = (n - 1) * (error**2 / within) ** 2 if within > 1e-12 else math.inf
    wide = error * float(stdtrit(min(df, 1e6), 1 - noise.alpha / 2))
    return mean - wide, mean + wide, 2 * float(stdtr(min(df, 1e6), -abs(mean) / error))


def _calibration(row: Row) -> list[float]:
    """Return the calibration figures of a row: their median, the least and the greatest."""
    given = [float(each) for each in str(row.get("calibration_s") or "").split(", ") if each]
    found = [each for each in given if each > 0]
    return [median(found), min(found), max(found)] if found else []


def _doubts(a: Row, b: Row) -> tuple[str, ...]:
    """Say why the times of two rows cannot be compared."""
    found = []
    for side, row in (("a", a), ("b", b)):
        if row.get("contention"):
            found.append(f"{side}: the machine was busy: {row['contention']}")
        calibration = _calibration(row)
        if not calibration:
            found.append(f"{side}: no calibration figure")
        elif calibration[2] > CALIBRATION_SPREAD * calibration[1]:
            found.append(f"{side}: the machine's speed changed between its splits")
    figures = [_calibration(row) for row in (a, b)]
    if all(figures) and a["machine"] == b["machine"]:
        of_a, of_b = figures[0][0], figures[1][0]
        if max(of_a, of_b) > CALIBRATION_SPREAD * min(of_a, of_b):
            found.append(
                "the machine itself was not as fast in both: its small computation took "
                f"{of_a:.3g} s in a, {of_b:.3g} s in b"
            )
    threads = [str(row["protocol"].get("threads", "1")) for row in (a, b)]
    if threads[0] != threads[1]:
        found.append(f"{threads[0]} threads in a, {threads[1]} in b")
    return tuple(found)


def _judged(
    cells: list[Compared], name: str, verdict: Callable[[Change], Verdict]
) -> list[Compared]:
    """Adjust p over all cells and say what became of each."""
    tested = [i for i, each in enumerate(cells) if each.changes[name].p is not None]
    adjusted = dict(
        zip(tested, holm([cells[i].changes[name].p or 0.0 for i in tested]), strict=True)
    )
    found = []
    for i, each in enumerate(cells):
        change = each.changes[name]
        if i in adjusted:
            change = replace(change, p_holm=float(adjusted[i]))
            change = replace(change, verdict="unknown" if change.doubts else verdict(change))
        found.append(replace(each, changes={**each.changes, name: change}))
    return found


def _verdict(change: Change, measure: Measure, noise: Noise) -> Verdict:
    assert change.change is not None and change.p_holm is not None
    if change.p_holm > noise.alpha:
        return "same"
    return "better" if measure.gain(change.change) > 0 else "worse"


def _time_verdict(change: Change, noise: Noise) -> Verdict:
    assert change.a is not None and change.b is not None
    assert change.change is not None and change.p_holm is not None
    far = max(change.change, 1 / change.change) > noise.time_factor
    far = far and abs(change.b - change.a) > noise.time_floor_s
    if change.p_holm > noise.alpha or not far:
        return "same"
    return "better" if change.change < 1 else "worse"


def _notes(a: Sequence[Row], b: Sequence[Row]) -> list[str]:
    """Say what differs between the sides as a whole."""
    notes = []
    machines = [sorted({str(row["machine"]) for row in rows}) for rows in (a, b)]
    if machines[0] != machines[1]:
        notes.append(
            f"machines: {', '.join(machines[0])} in a, {', '.join(machines[1])} in b; times of b "
            "are corrected by what a small computation takes on either"
        )
    protocols = [{tuple(sorted(row["protocol"].items())) for row in rows} for rows in (a, b)]
    if protocols[0] != protocols[1]:
        names = sorted({name for pair in protocols[0] ^ protocols[1] for name, _ in pair})
        told = {
            name: [sorted({dict(each).get(name, "-") for each in side}) for side in protocols]
            for name in names
        }
        differ = [
            f"{name} ({', '.join(left)} in a, {', '.join(right)} in b)"
            for name, (left, right) in told.items()
            if left != right
        ]
        if differ:
            notes.append(f"protocols differ: {'; '.join(differ)}")
    return notes
