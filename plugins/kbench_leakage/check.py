"""The check: inputs, targets and a split in, findings out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kbench.features import row_hashes
from kbench_leakage import scoring
from kbench_leakage.findings import Finding, Leakage
from kbench_leakage.scoring import Score, Targets

VALUES = 1 << 20
"""Values that are read together."""


@dataclass(frozen=True)
class Attribute:
    """One column of a matrix, or the adjacent indicator columns of a one-hot encoding."""

    name: str
    first: int
    width: int = 1
    nominal: bool = False


class Attributes:
    """Reads the attributes of a dense or CSR matrix, some rows and columns at a time."""

    def __init__(self, X: Any, names: Sequence[str] = (), kinds: Sequence[str] = ()) -> None:
        self._X = X
        n = X.shape[1]
        self.all = list(_join(names or [f"x{j}" for j in range(n)], kinds or ["numeric"] * n))

    def __len__(self) -> int:
        return len(self.all)

    def values(self, rows: np.ndarray, chosen: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the values of attributes in float64; an indicator's number stands for its value.

        The result has shape (rows, attributes).
        """
        numbers = np.empty((len(rows), len(chosen)))
        for at in _blocks(len(chosen), max(1, VALUES // max(len(rows), 1))):
            attributes = [self.all[j] for j in chosen[at]]
            columns = np.concatenate([each.first + np.arange(each.width) for each in attributes])
            dense = self._dense(rows, columns)
            start = 0
            for k, each in enumerate(attributes, start=at.start):
                part = dense[:, start : start + each.width]
                start += each.width
                numbers[:, k] = part[:, 0] if each.width == 1 else _number(part)
        return numbers

    def row_hashes(self, rows: np.ndarray) -> np.ndarray:
        """Return a hash of each row; equal rows have equal ones, NaN equals NaN."""
        blocks = _blocks(len(rows), max(1, VALUES // max(self._X.shape[1], 1)))
        return np.concatenate([row_hashes(self._X[rows[at]]) for at in blocks])

    def _dense(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if hasattr(self._X, "indptr"):
            return np.asarray(self._X[rows][:, columns].toarray(), dtype=float)
        # few whole rows, as they lie in the file
        blocks = _blocks(len(rows), max(1, VALUES // max(self._X.shape[1], 1)))
        return np.vstack([self._X[rows[at]][:, columns] for at in blocks])


def _blocks(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _join(names: Sequence[str], kinds: Sequence[str]) -> Iterator[Attribute]:
    """Yield attributes; neighbours such as ``colour=red`` and ``colour=blue`` are one."""
    start, n = 0, len(names)
    while start < n:
        stem, sign, _ = names[start].partition("=")
        end = start + 1
        if kinds[start] == "onehot" and sign:
            while end < n and kinds[end] == "onehot" and names[end].startswith(f"{stem}="):
                end += 1
        name = stem if end - start > 1 else names[start]
        yield Attribute(name, start, end - start, kinds[start] != "numeric")
        start = end


def _number(indicators: np.ndarray) -> np.ndarray:
    """Return the number of the indicator that is set; -1 for none, NaN where one is missing."""
    numbers = np.where((indicators > 0).any(axis=1), np.argmax(indicators, axis=1), -1.0)
    return np.where(np.isnan(indicators).any(axis=1), np.nan, numbers)


TRAIN_ROWS, TEST_ROWS = 5_000, 2_000
"""Rows by which columns, pairs and neighbours are scored, at most."""

SCREEN_ROWS, SCREEN_VALUES = 1_000, 5_000_000
"""Rows by which columns are screened, and values that are read for it, at most."""

COLUMNS = 64
"""Columns that are scored alone, at most: the best of the screen."""

PAIRS = 12
"""Pairs that are scored, at most: the best of a screen of all pairs of `MAX_PAIRED` columns."""

MIN_GAIN = 0.005
"""By how much a pair must predict better than its better column."""

PAIR_ROWS = 400
"""Rows by which pairs are screened."""

LOOKUP_VALUES, NEAR_COLUMNS = 4_000_000, 256
"""Values among which copies are looked up, and columns of which all but one are compared."""

WIDE_VALUES, WIDE_ROWS = 30_000_000, 20_000
"""Values and rows of wider tables, of which all columns are compared, at most."""

SMOOTH_COLUMNS = 256
"""Columns that are compared along the file, at most."""

MIN_PRESENT = 0.5
"""Share of the test rows that have a column, if it is scored on these."""

MIN_TEST = 10
"""Test rows that a score needs."""


@dataclass(frozen=True)
class Parts:
    """The rows and targets of both parts of a split, sampled."""

    attributes: Attributes
    train: np.ndarray
    test: np.ndarray
    targets: Targets
    rng: np.random.Generator

    def sample(self, n_train: int, n_test: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows of both parts, in the order of the file."""
        return _sample(self.train, n_train, self.rng), _sample(self.test, n_test, self.rng)


def run_split(
    X: object,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    is_numeric: bool,
    names: Sequence[str] = (),
    kinds: Sequence[str] = (),
    seed: int = 0,
) -> Leakage:
    """Look for leakage in one split; see `kbench.find_leakage`."""
    attributes = Attributes(X, names, kinds)
    train, test = np.sort(train), np.sort(test)
    if is_numeric:  # a target that is missing or infinite tells nothing
        y = np.asarray(y, dtype=float)
        train, test = (rows[np.isfinite(y[rows])] for rows in (train, test))
        y = np.where(np.isfinite(y), y, 0.0)
    targets = Targets.from_values(y, is_numeric)
    short = ""
    if len(train) < MIN_TEST or len(test) < MIN_TEST:
        short = f"{len(train):,} training and {len(test):,} test rows"
    elif not len(attributes):
        short = "no columns"
    elif targets[train].is_constant or targets[test].is_constant:
        short = "a constant target"
    if short:
        return Leakage(notes=(f"not checked: {short}",), n_train=len(train), n_test=len(test))
    parts = Parts(attributes, train, test, targets, np.random.default_rng(seed))
    notes: list[str] = []
    looked_up, copied = _score_copies(parts, notes)
    new = np.setdiff1d(test, copied)
    if len(copied) and len(new) >= MIN_TEST and not targets[new].is_constant:
        # any column finds the training row that a test row is a copy of
        parts = replace(parts, test=new)
        notes.append(f"columns and adjacent rows: scored on {len(new):,} test rows without copies")
    findings = [*_score_columns(parts, notes), *_score_order(parts, y, notes), *looked_up]
    return Leakage(tuple(findings), tuple(notes), len(train), len(test))


def _sample(rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= n else np.sort(rng.choice(rows, n, replace=False))


# -- one column, two columns


def _score_columns(parts: Parts, notes: list[str]) -> Iterator[Finding]:
    attributes, targets = parts.attributes, parts.targets
    n, is_numeric = len(attributes), targets.is_numeric
    n_rows = max(100, min(SCREEN_ROWS, SCREEN_VALUES // n))
    rows, _ = parts.sample(n_rows, 0)
    blocks = np.array_split(np.arange(n), 1 + n_rows * n // VALUES)
    screens = [
        scoring.screen_columns(attributes.values(rows, block), targets[rows]) for block in blocks
    ]
    alike = np.concatenate(screens)
    chosen = np.sort(np.argsort(-alike, kind="stable")[:COLUMNS])
    few = np.sort(np.argsort(-alike[chosen], kind="stable")[: scoring.MAX_PAIRED])
    for how, part in (("alone", chosen), ("in pairs", few)):
        if len(part) < n:
            notes.append(f"scored {how}: the {len(part)} of {n:,} most predictive columns")
    train, test = parts.sample(TRAIN_ROWS, TEST_ROWS)
    x, x_test = attributes.values(train, chosen), attributes.values(test, chosen)
    y, y_test = targets[train], targets[test]
    names = [attributes.all[j].name for j in chosen]
    nominal = np.array([attributes.all[j].nominal for j in chosen])
    alone = [_score(x[:, k], y, x_test[:, k], y_test, bool(nominal[k])) for k in range(len(chosen))]
    k = max(range(len(alone)), key=lambda k: alone[k][0].value)
    yield Finding("column", (names[k],), alone[k][0], is_numeric, len(test), alone[k][1])
    best: Finding | None = None
    for pair in _best_pairs(x[:, few], y, nominal[few], parts.rng):
        a, b = few[pair.a], few[pair.b]
        scored = _score_pair(pair, x[:, few], y, x_test[:, few], y_test)
        if (best is None or best.score < scored) and _gains(scored, max(alone[a][0], alone[b][0])):
            best = Finding(pair.how, (names[a], names[b]), scored, is_numeric, len(test))
    if best is not None:
        yield best


def _score(
    x: np.ndarray, y: Targets, x_test: np.ndarray, y_test: Targets, nominal: bool
) -> tuple[Score, float]:
    """Score a column, on the test rows that have it where that is better; return their share."""
    every = scoring.score_one(x, y, x_test, y_test, nominal)
    has, has_test = ~np.isnan(x), ~np.isnan(x_test)
    share = float(has_test.mean())
    if share == 1 or share < MIN_PRESENT or has_test.sum() < MIN_TEST or not has.any():
        return every, 1.0
    partial = scoring.score_one(x[has], y[has], x_test[has_test], y_test[has_test], nominal)
    return (partial, share) if every < partial else (every, 1.0)


def _gains(pair: Score, better: Score) -> bool:
    """Tell whether a pair leaves at most half of what its better column leaves to predict."""
    missing = 1.0 - better.value
    return 1.0 - pair.value <= missing - max(0.5 * missing, MIN_GAIN)


def _best_pairs(
    x: np.ndarray, y: Targets, nominal: np.ndarray, rng: np.random.Generator
) -> list[scoring.Pair]:
    """Return the pairs of which a screen by few rows promises most."""
    rows = _sample(np.arange(len(x)), PAIR_ROWS, rng)
    within = _sample(np.arange(len(x)), SCREEN_ROWS, rng)
    tried = list(scoring.all_pairs(x, nominal))
    promise = np.empty(len(tried))
    for which, few in ((False, rows), (True, within)):  # groups need more rows
        at = [k for k, pair in enumerate(tried) if (pair.how == "within") == which]
        if at:
            values = np.column_stack([tried[k].combine(x[few]) for k in at])
            promise[at] = scoring.screen_columns(values, y[few])
    return [tried[k] for k in np.argsort(-promise, kind="stable")[:PAIRS]]


def _score_pair(
    pair: scoring.Pair, x: np.ndarray, y: Targets, x_test: np.ndarray, y_test: Targets
) -> Score:
    made = pair.combine(np.concatenate([x, x_test]))
    scored = scoring.score_one(made[: len(x)], y, made[len(x) :], y_test)
    if pair.how != "within":
        return scored
    # the same without a neighbour of another group, where there are no new groups
    group, along = (x[:, j] for j in (pair.a, pair.b))
    group_test, along_test = (x_test[:, j] for j in (pair.a, pair.b))
    keys, train_keys = (scoring.column_key(group_test, pair.a), scoring.column_key(group, pair.a))
    matched, inside = scoring.interpolate(keys, along_test, train_keys, along, y, y_test, False)
    return max(scored, inside) if matched.all() else scored


# -- neighbours in the file


def _score_order(parts: Parts, y: np.ndarray, notes: list[str]) -> Iterator[Finding]:
    attributes, targets = parts.attributes, parts.targets
    test = _sample(parts.test, TEST_ROWS, parts.rng)
    if scoring.is_sorted(y[test], targets.is_numeric):
        why = "the rows are sorted by the target, or a class is rare"
        notes.append(f"adjacent rows of the file are not compared: {why}")
        return
    before, after = scoring.neighbours(parts.train, test)
    near = np.unique(np.concatenate([before, after]))
    train = parts.train[near]
    before, after = np.searchsorted(near, before), np.searchsorted(near, after)
    known = targets[train]
    # of two classes the one before wins
    predicted = 0.51 * known.columns[before] + 0.49 * known.columns[after]
    scored = scoring.score(predicted, targets[test], known)
    n = len(attributes)
    columns = np.unique(np.linspace(0, n - 1, min(SMOOTH_COLUMNS, n)).astype(int))
    labels = scoring.ranges(y[np.concatenate([train, test])], targets.is_numeric)
    smooth = scoring.smoothness(
        before, after, attributes.values(train, columns), attributes.values(test, columns), labels
    )
    k = int(np.argmax(smooth))
    name = attributes.all[columns[k]].name
    yield Finding("order", (name,), scored, targets.is_numeric, len(test), float(smooth[k]))


# -- copies


def _score_copies(parts: Parts, notes: list[str]) -> tuple[list[Finding], np.ndarray]:
    """Return what copies predict, and the test rows that are copies."""
    n = len(parts.attributes)
    is_wide = n > NEAR_COLUMNS
    most = min(WIDE_VALUES // n, WIDE_ROWS) if is_wide else LOOKUP_VALUES // n
    n_all = len(parts.train) + len(parts.test)
    share = min(1.0, max(most, 100) / n_all)
    n_train, n_test = (max(1, int(share * len(rows))) for rows in (parts.train, parts.test))
    train, test = parts.sample(n_train, n_test)
    if share < 1:
        notes.append(f"duplicates: searched in {n_train + n_test:,} of {n_all:,} rows")
    by_chance = 0.0
    if is_wide:
        notes.append(f"near duplicates are not searched: {n:,} columns, {NEAR_COLUMNS} at most")
        keys, seen = (parts.attributes.row_hashes(rows) for rows in (test, train))
    else:
        x, x_test = (parts.attributes.values(rows, range(n)) for rows in (train, test))
        # by chance: columns of the same values that are independent of each other
        shuffled = np.column_stack([parts.rng.permutation(x[:, j]) for j in range(n)])
        seen, keys, random = map(row_hashes, (x, x_test, shuffled))
        by_chance = float(np.isin(keys, random).mean())
    y, y_test = parts.targets[train], parts.targets[test]
    is_copy, scored = scoring.look_up(keys, seen, y, y_test)
    is_numeric, share = parts.targets.is_numeric, float(is_copy.mean())
    exact = Finding("copies", (), scored, is_numeric, len(test), share, by_chance)
    if is_wide:
        return [exact], test[is_copy]
    new = ~is_copy
    y_test = y_test[new]
    best: Finding | None = None
    for j in range(n) if n > 1 else ():
        rest = keys[new] - scoring.column_key(x_test[new, j], j)
        rest_known = seen - scoring.column_key(x[:, j], j)
        if np.isin(rest, rest_known).sum() < MIN_TEST:
            continue
        attribute = parts.attributes.all[j]
        matched, scored = scoring.interpolate(
            rest, x_test[new, j], rest_known, x[:, j], y, y_test, attribute.nominal
        )
        part = float(matched.mean())
        if best is None or scored.value * part > best.score.value * best.share:
            by_chance = float(np.isin(rest, random - scoring.column_key(shuffled[:, j], j)).mean())
            about = scored, is_numeric, int(new.sum()), part, by_chance
            best = Finding("near copies", (attribute.name,), *about)
    return [each for each in (exact, best) if each is not None], test[is_copy]
