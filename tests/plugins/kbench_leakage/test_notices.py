"""What a run says of its datasets before it computes anything."""

import numpy as np
import pytest

from kbench.features import DataCache
from kbench.planning.planned import PlannedCell
from kbench.records import Cell, Dataset, Protocol, Ref
from kbench_leakage import stored_checks
from kbench_leakage.feature import kbench_cells_planned

TOLD = "x0 + x1 alone predicts the target of test rows: R2 1.000"


class Run:
    """Collects notices."""

    def __init__(self):
        self.notices = []
        self.notice = self.notices.append


def planned(label, protocol=None):
    """Return a cell of a dataset in the cache whose target is a sum of two columns."""
    X = np.random.default_rng(len(label)).gamma(2.0, size=(120, 3))
    cache = DataCache()
    dataset = Dataset(label, X=X, y=X[:, 0] + X[:, 1], task="regression")
    facts = cache.describe(cache.store(dataset))
    method = Ref("identity"), Ref("ridge")
    cell = Cell(Ref("csv", label=label), *method, protocol or Protocol())
    return PlannedCell(cell, "key", facts, 1)


def notices(*cells, run=None):
    run = run or Run()
    kbench_cells_planned(run=run, cells=cells)
    return run.notices


def test_each_dataset_is_named_once_in_a_run():
    cells = [planned("rides"), planned("rides"), planned("other data")]
    run = Run()
    said = notices(*cells, run=run)
    assert said == [f"rides: possible leakage: {TOLD}", f"other data: possible leakage: {TOLD}"]
    assert notices(*cells, run=run) == said
    assert notices(*cells) == said


def test_many_datasets_are_counted():
    said = notices(*(planned("d" * (k + 1)) for k in range(8)))
    assert len(said) == 6
    assert said[-1] == (
        "possible leakage in 3 further datasets: the report and `kbench leakage` list the evidence"
    )


def test_known_measurements_are_not_taken_again(monkeypatch):
    cell = planned("rides")
    said = notices(cell)

    def measured_again(*args):
        raise AssertionError("measured again")

    monkeypatch.setattr(stored_checks, "_check_dataset", measured_again)
    assert notices(cell) == said


@pytest.mark.parametrize("protocol", [Protocol(cv="official"), Protocol(n_folds=500)])
def test_data_that_cannot_be_split_are_left_to_their_cells(protocol):
    assert notices(planned("rides", protocol)) == []


def test_all_training_rows_count_with_their_missing_values():
    cell = planned("rides", Protocol(unlabeled_size=0.5, max_train_rows=20))
    X = np.random.default_rng(0).gamma(2.0, size=(120, 3))
    y = X[:, 0] + X[:, 1]
    X[:, 2] = np.nan
    cell.dataset = DataCache().describe(
        DataCache().store(Dataset("d", X=X, y=y, task="regression"))
    )
    assert notices(cell) == [f"rides: possible leakage: {TOLD}"]


def test_a_gram_matrix_and_unavailable_data_are_passed_over():
    X = np.eye(120)
    cell = planned("gram")
    gram = Dataset("g", X=X, y=np.arange(120) % 2, pairwise=True)
    cell.dataset = DataCache().describe(DataCache().store(gram))
    lost = planned("rides")
    lost.dataset = None
    assert notices(cell, lost) == []
