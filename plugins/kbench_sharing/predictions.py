"""Predictions of splits in a bundle, from which metrics can be recomputed.

Each line has the kept predictions of one split and one seed of the map, in the form of
`kbench.storage.predictions`, which is never unpickled.
"""

import base64
import binascii
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kbench import features
from kbench.errors import BundleError, PluginError
from kbench.records.canonical import JsonObject
from kbench_sharing.bundle_records import Bundle, SharedDataset, SharedPredictions, SharedResult
from kbench_sharing.checks import CLOSE

# Maximum number of classes that the training set of a split may lack.
_MAX_CLASSES_AWAY = 20


def dump_predictions(
    cells: Iterable[features.PlannedCell], journal: features.Journal
) -> Iterator[JsonObject]:
    """Yield the lines of all predictions that the journal has kept, once for each key of a cell."""
    seen = set()
    for number, cell in enumerate(cells):
        if cell.key in seen:
            continue
        seen.add(cell.key)
        assert cell.dataset is not None
        for result in cell.in_order:
            if not result.is_ok:
                continue
            most = features.most_bytes(
                int(result.metrics.get("n_test", 0.0)), cell.dataset.n_classes
            )
            for seed in range(len(result.of_seeds(features.PLAIN[cell.dataset.task].name))):
                data = journal.blob(result.address, features.blob_of_seed(seed), most)
                if data is not None:
                    encoded = base64.b64encode(data).decode("ascii")
                    yield {"cell": number, "split": result.split, "seed": seed, "data": encoded}


def check_predictions(
    lines: Iterable[tuple[str, SharedPredictions]], bundle: Bundle, most: int
) -> Mapping[tuple[str, int], Sequence[features.Predictions]]:
    """Return predictions of a bundle, checked as far as that needs no data.

    They are by key of the cell and number of the split, in the order of the seeds, and have at
    most `most` bytes.
    """
    by_unit: dict[tuple[str, int], list[features.Predictions]] = {}
    for place, line in lines:
        if line.cell >= len(bundle.cells):
            raise BundleError(f"{place} refers to a cell that the bundle lacks")
        cell = bundle.cells[line.cell]
        result = bundle.results.get(cell.key, {}).get(line.split)
        if result is None or result.status != "ok":
            raise BundleError(f"{place} refers to a split without a result")
        seeds = by_unit.setdefault((cell.key, line.split), [])
        if line.seed != len(seeds):
            raise BundleError(f"{place} has the seed {line.seed}, expected {len(seeds)}")
        seeds.append(_unpack_checked(place, line, result, bundle.datasets[cell.dataset], most))
        most -= sum(array.nbytes for array in vars(seeds[-1]).values() if array is not None)
    return by_unit


def _unpack_checked(
    place: str, line: SharedPredictions, result: SharedResult, dataset: SharedDataset, most: int
) -> features.Predictions:
    """Return predictions with valid shapes, types and values; raise BundleError otherwise."""
    import numpy as np

    rows = result.metrics.get("n_test", 0.0)
    if not 0 < rows <= 2**31 or rows % 1:
        raise BundleError(f"{place} refers to a split with an unknown number of test rows")
    n_rows, key = int(rows), features.task_key(result.cell, line.split)
    try:
        data = base64.b64decode(line.data, validate=True)
    except (binascii.Error, ValueError):
        raise BundleError(f"{place} has predictions that are not base64") from None
    if len(data) > features.most_bytes(n_rows, dataset.n_classes):
        raise BundleError(f"{place} has too many bytes for the predictions of its split")
    reason: Exception | None = None
    # a training set may lack rare classes
    counts = range(dataset.n_classes, max(dataset.n_classes - _MAX_CLASSES_AWAY, 1) - 1, -1)
    for k in counts if dataset.task == "classification" else (0,):
        try:
            predictions = features.unpack(data, key, n_rows, k, max(most, 0))
            labels = np.arange(dataset.n_classes)
            if dataset.task == "classification" and k < len(labels):
                some = np.intersect1d(predictions.predicted, labels)
                labels = np.unique([*some, *labels[: max(k - len(some), 0)]])[:k]
            return predictions.validate(dataset.task, labels, n_rows, "it")
        except (features.DamagedPredictionsError, PluginError, ValueError, MemoryError) as error:
            reason = reason or error
    raise BundleError(f"{place}: {str(reason).splitlines()[0]}") from None


def differing(
    result: SharedResult, seeds: Sequence[features.Predictions], truth: features.Truth
) -> tuple[str, float, float] | None:
    """Return the first metric that the predictions do not have: name, stored and computed value.

    Metrics that need more than predictions are not compared, and None is returned if all others
    agree. PluginError is raised for predictions of other rows or classes.
    """
    checked = [each.validate(truth.task, truth.classes, len(truth.y), "it") for each in seeds]
    for name in [name for name in result.metrics if name in features.COMPUTE]:
        values = [features.COMPUTE[name](truth, each) for each in checked]
        available = [value for value in values if value is not None]
        if len(available) < len(values):
            return name, result.metrics[name], math.nan
        computed = sum(available) / len(available)
        stored = result.metrics[name]
        # what is shared has seven digits
        if not math.isclose(stored, computed, rel_tol=CLOSE, abs_tol=CLOSE**2):
            return name, stored, computed
    return None
