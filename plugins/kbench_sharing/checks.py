"""Validate the content of a bundle: keys, references, times and ranges of metrics.

Each check raises a BundleError. None can detect plausible invented numbers:
`kbench_sharing.verifying` recomputes results for that.
"""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from pathlib import PurePath

from kbench.errors import BundleError
from kbench.features import FILE_PARAMETERS, PLAIN, holdout_sizes, make_key_from_json
from kbench.messages import plural
from kbench.records import DEFAULT, Protocol
from kbench.records.canonical import to_json
from kbench_sharing.bundle_records import SharedCell, SharedDataset, SharedResult
from kbench_sharing.untrusted_text import check_component

# Tolerance of the ranges of metrics, for rounding.
SLACK = 1e-9

# Relative tolerance for rounding and for the order of sums on other CPUs.
CLOSE = 1e-6

DAY_MS = 86_400_000

_OF_SHARES = (
    *("accuracy", "balanced_accuracy", "expected_error", "accuracy_non_duplicates", "f1_macro"),
    *("roc_auc", "average_precision", "ece", "coverage_error_90", "converged"),
)
_POSITIVE = (
    *("log_loss", "rmse", "rmse_standardized", "mae", "crps", "crps_standardized"),
    *("interval_score_90", "peak_memory_mib", "n_test", "n_train", "n_components", "n_candidates"),
)
# Ranges of metrics, also of the default candidate.
RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(_OF_SHARES, (0.0, 1.0)),
    **dict.fromkeys(_POSITIVE, (0.0, math.inf)),
    "mcc": (-1.0, 1.0),
    "brier_score": (0.0, 2.0),
    "r2": (-math.inf, 1.0),
}

# Facts of a dataset that its checksum determines.
_OF_CONTENT = ("task", "is_weighted", "n_samples", "n_features", "n_classes", "n_missing")

_WITHIN = ("fit_time_s", "predict_time_s", "search_time_s")


def check_datasets(datasets: Iterable[SharedDataset]) -> dict[str, SharedDataset]:
    """Check sizes and files of datasets, and return them by label."""
    by_label: dict[str, SharedDataset] = {}
    alike = Alike()
    for each in datasets:
        alike.check_facts(each)
        label = each.ref.label
        for key in FILE_PARAMETERS:
            path = each.ref.params.get(key)
            if isinstance(path, str) and (".." in PurePath(path).parts or path[:1] in "/~"):
                raise BundleError(f"the dataset {label!r} refers to a file outside of its folder")
        if label in by_label:
            raise BundleError(f"it has the dataset {label!r} twice")
        by_label[label] = each
    return by_label


def check_cells(cells: Iterable[SharedCell], datasets: Mapping[str, SharedDataset]) -> None:
    """Check the datasets and the keys of cells."""
    seen: set[tuple[str, str]] = set()
    for each in cells:
        name, dataset = each.name, datasets.get(each.dataset)
        if dataset is None:
            raise BundleError(f"a cell is of the dataset {each.dataset!r}, which the bundle lacks")
        try:
            cell = each.cell(dataset.ref)
            refs = each.feature_map, each.learner
            sides = [{"name": ref.name, "params": ref.params} for ref in refs]
            # a value that its record changes was not hashed; an earlier version may lack protocol
            # fields
            protocol = to_json(cell.protocol)
            read = [to_json(cell.feature_map), to_json(cell.learner)]
            method, read = [*sides, each.protocol], [*read, {n: protocol[n] for n in each.protocol}]
            key = make_key_from_json(method, dataset.checksum, dataset.task, each.kinds, each.code)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            raise BundleError(f"{name} has parameters that are invalid in a suite") from None
        if method != read or key != each.key:
            raise BundleError(
                f"{name} has a key that does not match its data, parameters, protocol and code"
            )
        if (each.key, name) in seen:
            raise BundleError(f"it has the cell {name} twice")
        seen.add((each.key, name))


def check_result(
    result: SharedResult, cell: SharedCell, dataset: SharedDataset, n_machines: int, now_ms: int
) -> None:
    """Check the result of a split: plausible times, and metrics in their ranges."""
    name = f"split {result.split} of {cell.name}"
    if result.split >= cell.n_splits:
        raise BundleError(f"{name} is beyond the {plural(cell.n_splits, 'split')} of its cell")
    if result.machine >= n_machines:
        raise BundleError(f"{name} refers to a machine that the bundle lacks")
    _check_times(result, name, now_ms)
    if result.status != "ok":
        if result.metrics or result.details.model_fields_set:
            raise BundleError(f"{name} has metrics, but its status is {result.status}")
        return
    metrics, plain = result.metrics, PLAIN[dataset.task].name
    if plain not in metrics:
        raise BundleError(f"{name} is ok and lacks the metric {plain!r}")
    for metric, value in metrics.items():
        low, high = _range(metric)
        if not low - SLACK <= value <= high + SLACK:
            raise BundleError(f"{name} has the {metric} {value:g}, which is out of range")
    for metric in _WITHIN:
        # times are rounded to three digits
        if metrics.get(metric, 0.0) > 1.011 * result.seconds + 1e-3:
            raise BundleError(f"{name} has a {metric} longer than its task")
    rows = metrics.get("n_train", 0.0) + metrics.get("n_test", 0.0)
    if dataset.n_samples and rows > dataset.n_samples:
        raise BundleError(f"{name} has more rows than its dataset")
    try:
        _check_counts(result, cell.protocol_record, dataset, name)
    except (ArithmeticError, ValueError):
        raise BundleError(f"{name} has an invalid protocol") from None


@lru_cache(maxsize=1 << 12)
def _range(metric: str) -> tuple[float, float]:
    """Return the range of a metric; raise BundleError for a name that no metric has."""
    check_component(metric, "metric")
    low, high = RANGES.get(metric.removeprefix(DEFAULT), (-math.inf, math.inf))
    return 0.0 if metric.endswith("_s") else low, high


def _check_counts(
    result: SharedResult, protocol: Protocol, dataset: SharedDataset, name: str
) -> None:
    """Check the size of the test set, and that accuracies are fractions of it.

    The size is unknown with dropped rows, grouped duplicates or splits of the dataset; weighted
    accuracies are no fractions of rows.
    """
    n_test = result.metrics.get("n_test", 0.0)
    if n_test < 1 or n_test % 1:
        raise BundleError(f"{name} has {n_test:g} test rows")
    sizes = _test_sizes(protocol, dataset)
    if sizes and n_test not in sizes:
        raise BundleError(
            f"{name} has {n_test:g} test rows, but its protocol has {max(sizes)} of "
            f"{dataset.n_samples}"
        )
    if dataset.task != "classification" or dataset.is_weighted:
        return
    by_seed = result.details.by_seed
    if any(len(values) != protocol.map_seeds for values in by_seed.values()):
        raise BundleError(f"{name} has other map seeds than the {protocol.map_seeds} planned")
    mean = result.metrics["accuracy"]
    accuracies = by_seed.get("accuracy", [])
    if accuracies and not math.isclose(sum(accuracies) / len(accuracies), mean, rel_tol=CLOSE):
        raise BundleError(f"{name} has an accuracy that is not the mean over its seeds")
    for accuracy in accuracies:
        if not is_share(accuracy, n_test):
            raise BundleError(
                f"{name} has the accuracy {accuracy:g}, which is no number of {n_test:g} test rows"
            )
    for metric in ("accuracy", f"{DEFAULT}accuracy"):
        value = result.metrics.get(metric)
        if value is not None and not _is_mean_count(value, n_test, protocol.map_seeds):
            raise BundleError(
                f"{name} has the {metric} {value:g}, which is no number of {n_test:g} test rows"
            )


def _is_mean_count(value: float, rows: float, n_seeds: int) -> bool:
    """Return whether a value is a fraction of rows, or a rounded mean of such fractions."""
    count = value * rows * n_seeds
    return is_share(value, rows) or (
        n_seeds > 1 and math.isclose(count, round(count), rel_tol=CLOSE, abs_tol=CLOSE)
    )


def _test_sizes(protocol: Protocol, dataset: SharedDataset) -> tuple[int, ...]:
    """Return the possible sizes of the test set; empty if they are unknown."""
    n = dataset.n_samples
    if not n or (protocol.missing == "drop_rows" and dataset.n_missing):
        return ()
    if protocol.cv in ("holdout", "ordered"):
        return (holdout_sizes(n, protocol)[1],)
    if protocol.cv == "stratified":
        return (n // protocol.n_folds, -(-n // protocol.n_folds))
    return ()


def _check_times(result: SharedResult, name: str, now_ms: int) -> None:
    if result.ended_ms < result.started_ms:
        raise BundleError(f"{name} ended before it started")
    if result.ended_ms > now_ms + DAY_MS:
        raise BundleError(f"{name} ended in the future")
    # a clock may be adjusted by seconds while a task runs
    if result.seconds * 1000 > result.ended_ms - result.started_ms + 60_000:
        raise BundleError(f"{name} took longer than from its start to its end")


class Alike:
    """Facts that must agree between results: those of the same data, and rows of the same split."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], object] = {}

    def check_rows(self, result: SharedResult, cell: SharedCell, dataset: SharedDataset) -> None:
        """Raise if a result has other rows than an earlier one of the same data and protocol."""
        place = (dataset.checksum, cell.task_digest, str(result.split))
        rows = result.details.split_hash
        if result.status == "ok" and self._known.setdefault(place, rows) != rows:
            raise BundleError(
                f"split {result.split} of {cell.name} has different rows than the same split of "
                "other methods"
            )

    def check_facts(self, dataset: SharedDataset) -> None:
        """Raise if the facts of a dataset differ from earlier ones of the same data."""
        for name in _OF_CONTENT:
            value = getattr(dataset, name)
            first = self._known.setdefault((dataset.checksum, name), value)
            if first != value:
                raise BundleError(
                    f"the dataset {dataset.ref.label!r} has {name} {value}, but {first} in other "
                    "files with the same checksum"
                )


# Significant digits of times, which vary by several per cent on one machine.
TIME_DIGITS = 3

# Significant digits of metrics that are not fractions of rows. The order of a sum may change a
# metric by 1e-6 (`kbench_sharing.verifying`).
METRIC_DIGITS = 7

_ROWS = ("n_test", "n_train")
_LARGEST_FOLD = 100_000


def round_time(seconds: float) -> float:
    """Round a time.

    >>> round_time(0.0123456), round_time(1234.5)
    (0.0123, 1230.0)
    """
    return float(f"{seconds:.{TIME_DIGITS}g}")


def round_metric(value: float) -> float:
    """Round a metric that is not a fraction of rows.

    >>> round_metric(0.12345678912345)
    0.1234568
    """
    return float(f"{value:.{METRIC_DIGITS}g}")


@lru_cache(maxsize=1 << 16)
def round_score(value: float) -> float:
    """Round a validation score that is not a fraction of the rows of a fold.

    >>> round_score(17 / 42), round_score(0.12345678912345)
    (0.40476190476190477, 0.1234568)
    """
    if not 0.0 <= value <= 1.0:
        return round_metric(value)
    share = float(Fraction(value).limit_denominator(_LARGEST_FOLD))
    return value if share == value else round_metric(value)


def round_all(metrics: Mapping[str, float]) -> dict[str, float]:
    """Round metrics of a split; fractions of its test or training rows stay exact.

    >>> round_all({"accuracy": 29 / 30, "n_test": 30.0, "log_loss": 1 / 7})
    {'accuracy': 0.9666666666666667, 'n_test': 30.0, 'log_loss': 0.1428571}
    """
    rows = [metrics[name] for name in _ROWS if metrics.get(name, 0.0) > 0]
    errors = {1.0 - metrics[name] for name in ("accuracy", f"{DEFAULT}accuracy") if name in metrics}
    return {
        name: round_time(value)
        if name.endswith("_s")
        else value
        if value in errors or any(is_share(value, n) for n in rows)
        else round_metric(value)
        for name, value in metrics.items()
    }


def is_share(value: float, rows: float) -> bool:
    """Return whether `value` equals k / rows for an integer k."""
    return 0.0 <= value <= 1.0 and rows % 1 == 0 and round(value * rows) / rows == value
