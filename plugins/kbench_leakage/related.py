"""Datasets that are related: they count once in tests over datasets, or should.

A dataset is sketched once: the names of its columns, the hashes of the values of its columns in
any order, and the smallest hashes of its rows, from which the share of common rows of two
datasets is estimated (A. Broder, "On the resemblance and containment of documents", 1997).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kbench_leakage.scoring import column_key

N_HASHES = 256
"""Smallest hashes of rows that are kept."""

MAX_VALUES = 30_000_000
"""Values of a dataset whose rows and columns are hashed."""

MIN_DISTINCT = 10
"""Different values of a column from which equal ones elsewhere are not a coincidence."""

VALUES = 1 << 19
"""Values that are hashed together."""

FIRST = 64
"""First values of a column that are counted before all are."""

MIN_SHARED = 0.05
"""Share of common rows from which two datasets are related."""

MIN_COLUMNS = 0.5
"""Share of common columns from which they are."""

_GENERIC = re.compile(
    r"(x|v|f|a|c|col|column|att|attr|attribute|feature|var|pixel|input)?[_ -]?\d*", re.IGNORECASE
)
_STEM = re.compile(r"[^\W\d_]{4,}")
_MAX_REASONS = 3
_SAYS_NOTHING = frozenset({"data", "dataset", "file", "sample", "table", "test", "train"})


@dataclass(frozen=True)
class Sketch:
    """What is kept of a dataset to find related ones."""

    names: tuple[str, ...]
    """Names of its columns, without those that say nothing, such as ``x1``."""
    columns: tuple[int, ...]
    """Hashes of the values of columns with many different ones, in any order."""
    target: int
    """That of the target; 0 for few different values."""
    rows: tuple[int, ...]
    """The smallest hashes of its rows, if most rows differ."""


def sketch(X: object, y: np.ndarray, names: tuple[str, ...] = ()) -> Sketch:
    """Sketch a dataset; of a sparse or very large one, only the names of its columns.

    >>> X = np.arange(60.0).reshape(20, 3)
    >>> first = sketch(X, X[:, 0])
    >>> len(first.rows), len(first.columns), first.target == first.columns[0]
    (20, 3, True)
    """
    telling = tuple(name for name in names if not _GENERIC.fullmatch(name))
    if not isinstance(X, np.ndarray) or X.size > MAX_VALUES or not X.size:
        return Sketch(telling, (), 0, ())
    # the values of a row in any order: columns are sorted otherwise in other versions
    rows, columns = np.zeros(len(X), dtype=np.uint64), list[int]()
    step = max(1, VALUES // len(X))
    for start in range(0, X.shape[1], step):
        keys = column_key(X[:, start : start + step], 0)
        rows += keys.sum(axis=1, dtype=np.uint64)
        columns += _column_facts(keys)
    distinct = np.unique(rows)
    hashes = distinct[:N_HASHES] if 2 * len(distinct) > len(X) else distinct[:0]
    is_number = np.issubdtype(np.asarray(y).dtype, np.number)
    return Sketch(
        telling,
        tuple(each for each in columns if each),
        _column_facts(column_key(y, 0)[:, None])[0] if is_number else 0,
        tuple(map(int, hashes)),
    )


def _column_facts(keys: np.ndarray) -> list[int]:
    """Return a hash of the values of columns in any order, given the hash of each; 0 if few differ.

    The first values, which are sorted in less time, often are different enough.
    """
    is_few = _have_few(keys[:FIRST])
    is_few[is_few] = _have_few(keys[:, is_few])
    return list(map(int, np.where(is_few, 0, keys.sum(axis=0, dtype=np.uint64))))


def _have_few(keys: np.ndarray) -> np.ndarray:
    keys = np.sort(keys.T)  # fast along rows
    return np.asarray((keys[:, 1:] != keys[:, :-1]).sum(axis=1) + 1 < MIN_DISTINCT)


def relation(a: Sketch, b: Sketch) -> str:
    """Say why two datasets are related; empty if nothing says so.

    >>> X = np.random.default_rng(0).normal(size=(40, 4))
    >>> one, other = sketch(X[:30, :3], X[:30, 3]), sketch(X[10:, 1:], X[10:, 0])
    >>> relation(one, one), relation(one, sketch(X[:30, 1:], X[:30, 0]))
    ('the same rows', 'the target of one is a column of the other')
    """
    if a.rows and b.rows and (share := _resemblance(a.rows, b.rows)) >= MIN_SHARED:
        return "the same rows" if share == 1 else f"about {share:.0%} of all rows are in both"
    if a.target in b.columns or b.target in a.columns:
        return "the target of one is a column of the other"
    if a.columns and b.columns:
        common = len(set(a.columns) & set(b.columns))
        if common >= MIN_COLUMNS * min(len(a.columns), len(b.columns)):
            return f"{common} columns have the same values"
    common = len(set(a.names) & set(b.names))
    if common > 2 and common >= 0.8 * max(len(a.names), len(b.names)):
        return f"{common} columns have the same names"
    return ""


def _resemblance(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    """Estimate the share of common rows in all rows of two datasets from their smallest hashes."""
    n = min(max(len(a), len(b)), N_HASHES)
    return len({*sorted({*a, *b})[:n]} & {*a} & {*b}) / n


def stem(name: str) -> str:
    """Return the first word of a name that goes on, or an empty string.

    >>> [stem(name) for name in ("mfeat-fourier", "wine_red", "iris", "a9a", "segment2")]
    ['mfeat', 'wine', '', '', 'segment']
    """
    match = _STEM.match(name)
    word = match[0].lower() if match and match.end() < len(name) else ""
    return "" if word in _SAYS_NOTHING else word


def families(
    names: Mapping[str, str], sketches: Mapping[str, Sketch]
) -> list[tuple[tuple[str, ...], str]]:
    """Return the datasets that seem related and are of different groups, each family with why.

    `names` has the group of each dataset. Those of one group are declared already.
    """
    joined: list[tuple[str, str]] = []
    why: dict[str, list[str]] = {name: [] for name in names}
    for a, b in combinations(names, 2):
        declared, reason = names[a] == names[b], ""
        if not declared and a in sketches and b in sketches:
            reason = relation(sketches[a], sketches[b])
        if not declared and not reason and stem(a) and stem(a) == stem(b):
            reason = f"their names begin with {stem(a)!r}"
        if reason:
            why[a].append(f"{a} and {b}: {reason}")
        if declared or reason:
            joined.append((a, b))
    if not any(why.values()):  # the import takes a second
        return []
    from scipy.cluster.hierarchy import DisjointSet

    sets = DisjointSet(names)
    for a, b in joined:
        sets.merge(a, b)
    listed_ = []
    for members in sets.subsets():
        family = tuple(name for name in names if name in members)
        reasons = [reason for name in family for reason in why[name]]
        if reasons:
            more = f"; and {len(reasons) - _MAX_REASONS} more pairs"
            listed = "; ".join(reasons[:_MAX_REASONS]) + more * (len(reasons) > _MAX_REASONS)
            listed_.append((family, listed))
    return listed_
