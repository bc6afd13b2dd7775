"""What the tests of tracking share: runs to write, and what a store shows of them."""

import socket
import subprocess
import sys

from kbench_mlflow.tracking.run import BOOKKEEPING, CellRun, DatasetInput, StoredRun

IRIS = DatasetInput("iris", "0123456789abcdef" * 4, "sklearn.datasets.load_iris", 150, 4)


def a_run(**changes):
    given = {
        "key": "k1",
        "machine": "m1",
        "name": "rff + linear-svm on iris",
        "status": "ok",
        "start_ms": 1_700_000_000_000,
        "end_ms": 1_700_000_005_000,
        "params": {"dataset": "iris", "feature_map": "rff", "feature_map.n_components": "64"},
        "tags": {"suite": "uci", "version": "0.1.0"},
        "metrics": {"accuracy": 0.75, "fit_time_s": 0.5},
        "n_splits_done": 2,
        "by_split": {"accuracy": {0: 0.5, 1: 1.0}},
        "dataset": IRIS,
    }
    return CellRun(**(given | changes))


def as_stored(key, machine, name, status, n_splits_done, params, tags, metrics, **times):
    """Return what a store has of a run."""
    own = {
        "kbench.cell_key": key,
        "kbench.machine": machine,
        "mlflow.runName": name,
        "kbench.status": status,
        "kbench.n_splits_done": str(n_splits_done),
    }
    given = {"start_ms": 0, "end_ms": 0, **times}
    tags = {**own, **tags}
    return StoredRun("", "", "FINISHED", params=params, tags=tags, latest=metrics, **given)


FAILED = a_run(
    status="timed_out",
    end_ms=1_700_000_001_000,
    metrics={},
    n_splits_done=0,
    by_split={},
    tags={"suite": "uci", "version": "0.1.0", "error": "took 300 s"},
    artifacts={"error.txt": "Traceback ..."},
)
LONGER = a_run(
    end_ms=1_700_000_009_000,
    metrics={"accuracy": 0.8, "fit_time_s": 0.4},
    n_splits_done=3,
    by_split={"accuracy": {0: 0.5, 1: 1.0, 2: 0.9}},
)
OTHER_PARAMS = a_run(params={"dataset": "iris", "feature_map": "nystroem"})
OTHER_VALUE = a_run(
    metrics={"accuracy": 0.25, "fit_time_s": 0.5}, by_split={"accuracy": {0: 0.0, 1: 0.5}}
)


def client_of(store):
    """MLflow's client of an open store: to do what others do to it, or to put another in."""
    store.open()
    return store.client


def live(store, experiment):
    return list(client_of(store).search_runs([experiment.id]))


def state(store, experiment, *, histories=True):
    """Everything a reader can see of the runs, without what differs from write to write."""
    seen = []
    for run in live(store, experiment):
        tags = {k: v for k, v in run.data.tags.items() if k not in BOOKKEEPING}
        points = {
            name: sorted(
                (m.step, m.value, m.timestamp)
                for m in client_of(store).get_metric_history(run.info.run_id, name)
            )
            for name in (run.data.metrics if histories else ())
        }
        data = [(each.dataset.name, each.dataset.digest) for each in run.inputs.dataset_inputs]
        info = run.info
        seen.append(
            (
                (info.status, info.run_name, info.start_time, info.end_time),
                run.data.params,
                tags,
                run.data.metrics,
                points,
                data,
            )
        )
    return seen


def a_free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def in_a_process(uri, code, *more):
    return subprocess.Popen(
        [sys.executable, "-c", code, uri, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


WRITE = """
import sys
from kbench_mlflow.tracking.run import CellRun
from kbench_mlflow.tracking.store import Store
store = Store(sys.argv[1]); experiment = store.experiment("uci")
for i in range(40):
    store.log(experiment, CellRun(f"k{i}", sys.argv[2], "n", "ok", 1, 2, metrics={"a": i}))
"""
