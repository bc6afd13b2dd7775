"""Many classes and many sparse columns on their way through a task."""

import socket
import threading

import numpy as np
import pytest
import scipy.sparse

from kbench import Dataset, Protocol
from kbench.evaluation.checked_predictions import Committed, Predictions
from kbench.evaluation.evaluate import compute_scores
from kbench.evaluation.split_view import assign
from kbench.execution.handover import Handover, hand_over, receive_visible
from kbench.records import Details
from kbench.storage.datacache import DataCache

CLASSES = 200
TIMES = {f"{name}_time{kind}_s": 1.0 for name in ("fit", "predict") for kind in ("", "_cpu")}


@pytest.mark.parametrize("columns", [CLASSES, CLASSES * (CLASSES - 1) // 2])
def test_decision_values_of_200_classes_are_handed_over(columns):
    y = np.repeat(np.arange(CLASSES), 4)
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    assignment = assign(Dataset(name="many", X=X, y=y), Protocol(n_folds=2), 0)
    ours, theirs = socket.socketpair()
    handover = Handover(assignment)
    host = threading.Thread(target=handover, args=(ours,), daemon=True)
    host.start()
    visible = receive_visible(theirs, 0)
    assert len(np.unique(visible.y_train)) == CLASSES
    n_test = len(visible.test)
    given = Predictions(
        predicted=y[visible.test],
        probabilities=np.eye(CLASSES)[y[visible.test]],
        decision=np.zeros((n_test, columns)),
    )
    np.testing.assert_array_equal(hand_over(theirs, Committed((given,))), y[visible.test])
    host.join(10)
    assert handover.committed.chosen[0].decision.shape == (n_test, columns)
    evaluation = compute_scores(assignment, handover.committed, TIMES, Details(), "learner 'many'")
    assert evaluation.metrics["accuracy"] == 1.0


def test_50_000_sparse_columns_come_back(tmp_path):
    n, d = 60, 50_000
    X = scipy.sparse.random(n, d, density=0.001, random_state=0, format="csr")
    names = [f"x{j}" for j in range(d)]
    made = Dataset(name="wide", X=X, y=np.arange(n) % 2, feature_names=names)
    cache = DataCache(tmp_path)
    data = cache.load(cache.store(made))
    assert data.X.shape == (n, d)
    assert (data.X != X).nnz == 0
    # within the task nothing becomes dense: that would be 24 MiB
    inputs = cache.inputs(data.checksum)
    assert scipy.sparse.issparse(inputs.X)
    assert inputs.X.data.nbytes < 100_000
