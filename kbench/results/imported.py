"""Imported results next to local ones: marked, and compared only if that is fair."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from kbench.messages import plural
from kbench.records import Metric, divide_protocol
from kbench.records.canonical import JsonObject
from kbench.results.rows import LABELS, Row, newest, sort_by_dataset
from kbench.results.stored import StoredResults

# Agreement of a recomputed split with its row.
Verdict = Literal["equal", "noise", "different"]

# Verdicts, as they are written for people.
VERDICTS: Mapping[Verdict, str] = {
    "equal": "equal",
    "noise": "within the noise of BLAS",
    "different": "different",
}

# Who recomputed a split, where it was this user.
HERE = "here"

_OF_A_MACHINE = ("_s", "_s_sd", "_mib", "_mib_sd")


@dataclass(frozen=True)
class Check:
    """A split that a user recomputed: by whom, when (milliseconds since 1970), the verdict."""

    split: int
    verdict: Verdict
    by: str
    at_ms: int


@dataclass(frozen=True)
class ImportedRow:
    """A row that another user computed.

    Parameters
    ----------
    row : Row
        Its `machine` is `by`.
    metric : Metric
        What the suite compares, where it was computed.
    author, cpu : str
        Who computed it, and on what.
    source : str
        The bundle or file that it came in.
    versions : str
        Versions of what computed it.
    checks : sequence of Check
        Splits of the row that were recomputed.
    """

    row: Row
    metric: Metric
    author: str
    cpu: str
    source: str = ""
    versions: str = ""
    checks: Sequence[Check] = ()

    @property
    def by(self) -> str:
        """Author and CPU."""
        return f"{self.author} on {self.cpu}" if self.cpu else self.author

    @property
    def verification(self) -> str:
        """Whether another user recomputed the row, and with what result.

        >>> from kbench.records import ACCURACY
        >>> row = Row("iris", "rff", "ridge", "ok", 5, 5)
        >>> ImportedRow(row, ACCURACY, "Ada", "A CPU").verification
        'imported'
        >>> checks = [Check(0, "equal", "Bob", 1_700_000_000_000), Check(0, "noise", "here", 1)]
        >>> ImportedRow(row, ACCURACY, "Ada", "A CPU", checks=checks).verification
        'recomputed: 1 of 5 splits by Bob and here, 2023-11-14; equal, within the noise of BLAS'
        """
        if not self.checks:
            return "imported"
        n_splits = len({check.split for check in self.checks})
        names = " and ".join(sorted({check.by for check in self.checks}))
        last_ms = max(check.at_ms for check in self.checks)
        day = time.strftime("%Y-%m-%d", time.gmtime(last_ms / 1000))
        states = {check.verdict for check in self.checks}
        verdicts = ", ".join(words for verdict, words in VERDICTS.items() if verdict in states)
        return f"recomputed: {n_splits} of {self.row.n_splits} splits by {names}, {day}; {verdicts}"

    @property
    def is_refuted(self) -> bool:
        """Whether a split of it was recomputed with another result."""
        return any(check.verdict == "different" for check in self.checks)


@dataclass(frozen=True)
class RowPair:
    """An imported row, and the local row that it may be compared with.

    `value` is the mean of the metric over all splits of the imported row; `local` that of the
    local row, and `difference` imported minus local, over the splits that both have.
    `comparable` is what the two have in common, or why they are not compared.
    """

    other: ImportedRow
    value: float | None
    local: float | None
    difference: float | None
    comparable: str

    def to_line(self) -> JsonObject:
        """Return the values of a row of a table by column."""
        row = self.other.row
        return {
            **dict(zip(LABELS, row.labels, strict=True)),
            "author": self.other.by,
            "splits": f"{row.n_splits_done} of {row.n_splits}",
            "metric": self.value,
            "local": self.local,
            "difference": self.difference,
            "comparable": self.comparable,
            "verification": self.other.verification,
        }

    def to_json(self, metric: Metric) -> JsonObject:
        """Return what `kbench results --format json` writes: a row, its author and verification."""
        values = {name: v for name, v in self.to_line().items() if name not in ("metric", "splits")}
        return {
            **self.other.row.to_json(metric),
            **values,
            "source": self.other.source,
            "versions": self.other.versions,
        }


def without_times(row: Row) -> Row:
    """Return a row without what means something only on the machine that took it.

    >>> row = Row("iris", "rff", "ridge", "ok", 5, 5, {"accuracy": 0.9, "fit_time_s": 2.0})
    >>> without_times(row).metrics
    {'accuracy': 0.9}
    """

    def kept(name: str) -> bool:
        return not name.endswith(_OF_A_MACHINE)

    return replace(
        row,
        metrics={name: value for name, value in row.metrics.items() if kept(name)},
        values_by_split={name: v for name, v in row.values_by_split.items() if kept(name)},
        budget_curve=[],
        machine_speed_s="",
        contention="",
    )


def protocol_changes(a: Row, b: Row) -> dict[str, tuple[str, str]]:
    """Return the fields of the protocol in which two rows differ, each with both values."""
    names = sorted(a.protocol.keys() | b.protocol.keys())
    pairs = {name: (a.protocol.get(name, "-"), b.protocol.get(name, "-")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def why_not_comparable(local: Row, other: Row) -> str:
    """Return why the metrics of two rows must not be compared; empty if they may be.

    Rows with equal keys have equal data, parameters, protocol and code. Others are compared if
    the data, the rows of all common splits, and the protocol apart from the effort of the search
    are equal.
    """
    if not (local.checksum and local.checksum == other.checksum):
        return "other data" if local.checksum and other.checksum else "unknown data"
    differ, _ = divide_protocol(protocol_changes(local, other))
    if differ:
        return f"other protocol: {', '.join(differ)}"
    common = local.split_hash.keys() & other.split_hash.keys()
    if any(local.split_hash[split] != other.split_hash[split] for split in common):
        return "other splits"
    return "" if common else "no common split"


def match_local_rows(
    local: Sequence[Row], imported: Iterable[ImportedRow], metric: Metric
) -> list[RowPair]:
    """Return imported rows, each with the local row that it is compared with, if any.

    The local row is that of the same key, else that of the same labels.
    """
    by_key = {row.key: row for row in local if row.key}
    by_labels = {row.labels: row for row in local}
    places = {dataset: i for i, dataset in enumerate(dict.fromkeys(row.dataset for row in local))}
    matches = [
        _match(by_key.get(other.row.key) or by_labels.get(other.row.labels), other, metric)
        for other in imported
    ]
    return sorted(
        matches,
        key=lambda each: (
            places.get(each.other.row.dataset, len(places)),
            each.other.row.labels,
            each.other.by,
        ),
    )


def _match(ours: Row | None, other: ImportedRow, metric: Metric) -> RowPair:
    value = other.row.metrics.get(metric.name)
    if ours is None:
        return RowPair(other, value, None, None, "not computed locally")
    # one key: the same data, protocol and splits, whatever an earlier store has of them
    same = bool(ours.key) and ours.key == other.row.key
    reason = "" if same else why_not_comparable(ours, other.row)
    mine, theirs = ours.by_split(metric.name), other.row.by_split(metric.name)
    common = [split for split in mine if split in theirs]
    if reason or not common:
        return RowPair(other, value, None, None, f"not compared: {reason or 'no common split'}")
    local = fmean(mine[split] for split in common)
    difference = fmean(theirs[split] - mine[split] for split in common)
    words = "same cell" if same else "same data, protocol and splits"
    note = f"{words}; {plural(len(common), 'split')}"
    for name, (here, there) in {} if same else protocol_changes(ours, other.row).items():
        note += f"; {name} {there} instead of {here}"
    return RowPair(other, value, local, difference, note)


def make_side(imported: Sequence[ImportedRow], name: str, metric: Metric) -> StoredResults:
    """Return the last row of each cell as results to compare, without times.

    Rows of one author are one side, whatever machines the author has.
    """
    rows = [replace(without_times(each.row), machine=each.author) for each in imported]
    return StoredResults(sort_by_dataset(newest(rows)), name, metric, is_imported=True)
