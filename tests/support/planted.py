"""A plugin whose maps do harm, for tests of whole runs, and a Dask cluster for them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from kbench.execution.plugins import load_registry
from kbench.execution.sandbox import processes
from kbench.planning.suite_file import read
from kbench.results.row_builders import make_row
from kbench.runner import Options, Run, Watcher, execute
from kbench_mlflow.tracking.store import Store
from tests.support.paths import SUPPORT
from tests.support.processes_here import wait_until

CENTROIDS = """
class Centroids(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        X = check_array(X)
        self.classes_ = np.unique(y)
        self.centres_ = np.array([X[y == k].mean(axis=0) for k in self.classes_])
        return self

    def predict(self, X):
        distances = ((X[:, None, :] - self.centres_[None]) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]

"""
PLUGIN = (
    '''
"""Maps that do what tests/support/harmful_tasks.py does, a dataset, and a learner."""
import os, time
import numpy as np
import harmful_tasks
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_array
from kbench import Dataset, DatasetSource, FeatureMap, Learner, hookimpl
from planted_helper import SHIFT


def blobs(seed=0):
    """The environment may change the data: a source that is not the same everywhere."""
    rng = np.random.default_rng(seed + int(os.environ.get("PLANTED_SEED", "0")))
    y = np.arange(60) % 2
    return Dataset("blobs", rng.normal(size=(60, 2)) + 2 * y[:, None], y)


def _refuse():
    raise RuntimeError("was unpickled")


class Unpicklable:
    """What a plugin may keep in an estimator: raises when it is unpickled."""

    def __reduce__(self):
        return _refuse, ()


def leave_trace(path):
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\\n")


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


ACTS = {
    "work": lambda: None,
    "burn": lambda: burn(0.15),
    "hang-in-python": lambda: harmful_tasks.hang_in_python(None),
    "hang-in-c": lambda: harmful_tasks.hang_in_c(None),
    "segfault": lambda: harmful_tasks.segfault(None),
    "exit": lambda: harmful_tasks.leave(0),
    "reserve-100-tb": lambda: harmful_tasks.reserve(1e14),
    "allocate-4-gb": lambda: harmful_tasks.allocate(4096),
    "leave-children": lambda: harmful_tasks.leave_children("daemon"),
    "print": lambda: harmful_tasks.print_much(4),
    "close-descriptors": lambda: harmful_tasks.close_everything(None),
    "leave-threads": lambda: harmful_tasks.leave_threads(None),
    "kill-supervisor": lambda: harmful_tasks.kill_the_supervisor(None),
    "stop-supervisor": lambda: harmful_tasks.stop_the_supervisor(None),
    "nap": lambda: time.sleep(0.3),
    "doze": lambda: time.sleep(4),
    "nan": lambda: None,
    "raise-at-unpickling": lambda: None,
    "raise": lambda: harmful_tasks.fail("as I was told"),
}


class Planted(TransformerMixin, BaseEstimator):
    def __init__(self, do="work", factor=1.0, trace=""):
        self.do, self.factor, self.trace = do, factor, trace

    def fit(self, X, y=None):
        if self.trace:
            leave_trace(self.trace)
        ACTS[self.do]()
        if self.do == "raise-at-unpickling":
            self.kept_ = Unpicklable()
        return self

    def transform(self, X):
        return X * (np.nan if self.do == "nan" else self.factor) + SHIFT

'''
    + CENTROIDS
    + """
@hookimpl
def kbench_datasets():
    return [DatasetSource("blobs", load=blobs)]


@hookimpl
def kbench_feature_maps():
    return [FeatureMap("planted", make=Planted)]


@hookimpl
def kbench_learners():
    return [Learner("centroids", classifier=Centroids)]
"""
)

HELPER = "SHIFT = 0.0\n"


class Seen(Watcher):
    """Keeps what it is told."""

    def __init__(self):
        self.tasks = 0
        self.slots = set()
        self.done = []
        self.notices = []

    def notice(self, text):
        self.notices.append(text)

    def on_planned(self, cells, n_tasks, metric):
        self.tasks = n_tasks

    def on_started(self, cell, split_index, slot):
        self.slots.add(slot)

    def on_finished(self, cell, result):
        self.done.append(result)


def plant(site, patch):
    """Install the plugin into a folder, and put that on the paths of this test's processes."""
    site.mkdir(exist_ok=True)
    (site / "planted_plugin.py").write_text(PLUGIN)
    (site / "planted_helper.py").write_text(HELPER)
    info = site / "planted_plugin-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kbench]\nplanted = planted_plugin\n")
    (info / "RECORD").write_text("planted_plugin.py,,\nplanted_helper.py,,\n")
    for folder in (SUPPORT, site):
        patch.syspath_prepend(str(folder))
    patch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(SUPPORT)]))
    for name in ("planted_helper", "planted_plugin"):
        patch.delitem(sys.modules, name, raising=False)
    return site


def suite_text(*acts, n_splits=2, time_s=60.0, memory_mib=300.0, **params):
    """Return a suite of one cell per act; an act may be a pair of name and parameters."""
    given = "".join(f", {name} = {value!r}" for name, value in params.items())
    maps = ", ".join(f'{{ name = "planted", do = "{act}"{given} }}' for act in acts)
    return f"""
datasets = ["blobs"]
feature_maps = [{maps}]
learners = ["centroids"]
[protocol]
n_folds = 3
[limits]
n_splits = {n_splits}
task_timeout_s = {time_s}
task_memory_mib = {memory_mib}
"""


def run_text(text, store_uri, watcher=None, **options):
    """Run a suite given as text."""
    registry = load_registry()
    suite = read(text, "planted", registry)
    watcher = watcher or Seen()
    given = {"store": store_uri}
    if "scheduler" in options:
        given["scheduler"] = options.pop("scheduler")
    return execute(Run(suite, registry, Options(given=given, **options), watcher)), watcher


def statuses(report):
    """Return the status of each cell by what its map does."""
    return {cell.cell.feature_map.params["do"]: cell.status for cell in report.cells}


def check_rows(report, store_uri):
    """Rows planned, rows in the report and runs in the store are the same."""
    runs = Store(store_uri).read("planted")
    stored = {(each.params["feature_map"], each.status) for each in runs}
    rows = [make_row(cell) for cell in report.cells]
    assert len(rows) == len(report.cells) == len(stored)
    assert {(row.feature_map, row.status) for row in rows} == stored


def nothing_is_left(mark):
    """Tell whether no process is left that has `mark` in its environment.

    But for Python's own, which `multiprocessing` keeps for as long as we live.
    """

    def left():
        for pid in processes.list_marked(mark):
            with contextlib.suppress(OSError):
                if "multiprocessing.resource_tracker" not in _command(pid):
                    yield pid

    return wait_until(lambda: not list(left()), 10)


def _command(pid):
    return Path(f"/proc/{pid}/cmdline").read_text()


@contextlib.contextmanager
def dask_process(*arguments, **environment):
    """Run ``python -m distributed.cli...`` and end it afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
