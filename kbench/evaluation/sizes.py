"""Sizes of the parts of a split, without numpy."""

from kbench.records import Protocol


def count(size: float | int, n: int) -> int:
    """Turn a share (a float below 1) or a number of rows into a number of rows."""
    return round(size * n) if isinstance(size, float) and size < 1 else int(size)


def holdout_sizes(n: int, protocol: Protocol) -> tuple[int, int]:
    """Return the rows of the training and of the test set of a holdout of `n` rows."""
    n_test = count(protocol.test_size, n)
    return n - n_test if protocol.train_size is None else count(protocol.train_size, n), n_test


def holdout_problem(n: int, protocol: Protocol, name: str) -> str:
    """Return why a dataset of `n` rows is too small for a holdout; empty if it is not.

    >>> holdout_problem(150, Protocol(cv="holdout", train_size=140), "iris")
    'iris has 150 rows; train_size 140 and test_size 0.3 (the default: 45 rows) need 185'
    """
    n_train, n_test = holdout_sizes(n, protocol)
    if n_test >= 1 and n_train >= 1 and n_test + n_train <= n:
        return ""
    sizes = [_write(key, n, protocol) for key in ("train_size", "test_size")]
    return f"{name} has {n} rows; {' and '.join(sizes)} need {max(n_train, 1) + max(n_test, 1)}"


def check_split_size(n: int, protocol: Protocol, name: str) -> str:
    """Return why a dataset of `n` rows is too small for its splits; empty if it is not."""
    if protocol.cv in ("holdout", "ordered"):
        return holdout_problem(n, protocol, name)
    if protocol.cv != "official" and n < protocol.n_folds:
        return f"{name}: {protocol.n_folds} folds need at least as many rows, got {n}"
    return ""


def _write(key: str, n: int, protocol: Protocol) -> str:
    """Write a size with what the reader may not know: that it is the default, and its rows."""
    size = getattr(protocol, key)
    if size is None:
        return f"{key} (all other rows)"
    notes = [f"{count(size, n)} rows"] if isinstance(size, float) and size < 1 else []
    if size == getattr(Protocol, key):
        notes.insert(0, "the default")
    return f"{key} {size}" + (f" ({': '.join(notes)})" if notes else "")
