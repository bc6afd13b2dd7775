"""Two sets of rows, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kbench.errors import SuiteError
from kbench.features import TIMES, Labels, Row, holm
from kbench.records import ACCURACY, Measure
from kbench_compare.changes import Change, Compared, Comparison, Noise, Verdict
from kbench_compare.matching import by_labels, check_splits
from kbench_compare.scores import score_change, score_verdict
from kbench_compare.times import doubts_of, time_change, time_verdict


def compare(
    a: Sequence[Row],
    b: Sequence[Row],
    measure: Measure = ACCURACY,
    noise: Noise | None = None,
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
    both = [labels for labels in of_a if labels in of_b]
    if not both:
        raise SuiteError("the two have no cell in common: same dataset, feature map and learner")
    check_splits([(labels, of_a[labels], of_b[labels]) for labels in both])
    cells = [_compared(labels, of_a[labels], of_b[labels], measure, noise) for labels in both]
    cells = _judged(cells, measure.name, lambda change: score_verdict(change, measure, noise))
    for name in TIMES:
        cells = _judged(cells, name, lambda change: time_verdict(change, noise))
    return Comparison(
        measure,
        cells,
        {labels: row.status for labels, row in of_a.items() if labels not in of_b},
        {labels: row.status for labels, row in of_b.items() if labels not in of_a},
        _notes(a, b),
    )


def _compared(labels: Labels, a: Row, b: Row, measure: Measure, noise: Noise) -> Compared:
    splits = [i for i in a.split_hash if i in b.split_hash]
    doubts = doubts_of(a, b)
    changes = {measure.name: score_change(a, b, splits, measure, noise)}
    for name in TIMES:
        changes[name] = time_change(a, b, splits, name, doubts, noise)
    return Compared(labels, a.status, b.status, len(splits), changes)


def _judged(
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


def _notes(a: Sequence[Row], b: Sequence[Row]) -> list[str]:
    """Return what differs between the sides as a whole."""
    notes = []
    machines = [sorted({row.machine for row in rows}) for rows in (a, b)]
    if not all(any(row.by_split(TIMES[0]) for row in rows) for rows in (a, b)):
        notes.append("times are not compared: one side has none")
    elif machines[0] != machines[1]:
        notes.append(
            f"machines: {', '.join(machines[0])} in a, {', '.join(machines[1])} in b; times of b "
            "are corrected by what a small computation takes on either"
        )
    protocols = [{tuple(sorted(row.protocol.items())) for row in rows} for rows in (a, b)]
    if protocols[0] != protocols[1]:
        names = sorted({name for pair in protocols[0] ^ protocols[1] for name, _ in pair})
        values = {
            name: [sorted({dict(fields).get(name, "-") for fields in side}) for side in protocols]
            for name in names
        }
        differ = [
            f"{name} ({', '.join(left)} in a, {', '.join(right)} in b)"
            for name, (left, right) in values.items()
            if left != right
        ]
        if differ:
            notes.append(f"protocols differ: {'; '.join(differ)}")
    return notes
