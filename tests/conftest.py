"""What several test modules share: private folders, stores, plugins made on the fly."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import hypothesis
import pytest

from kbench import DatasetSource, FeatureMap, KernelSpec, Learner, hookimpl
from kbench.execution.sandbox import Sandbox
from kbench.registry.installed import Plugin
from kbench.registry.registry import build
from tests.support import read_once
from tests.support.paths import ROOT, SUPPORT

LINUX = sys.platform == "linux"

# the machines that run the tests are shared: how long an example takes says nothing
hypothesis.settings.register_profile("kbench", deadline=None)
hypothesis.settings.load_profile("kbench")
# a shell that starts the tests in the background has them, and all that they start, ignore Ctrl-C
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# pytest keeps the test modules that it has rewritten, which takes most of the time of collecting
sys.dont_write_bytecode = False


SETTINGS = ("KBENCH_", "MLFLOW_", "OPENML_", "DASK_", "XDG_", "COLUMNS", "NO_COLOR", "FORCE_COLOR")
"""Prefixes of environment variables that would change what tests see."""


def _leave_user():
    """Give this process and its children an empty home without settings of the user.

    What pip needs to reach a package registry is kept.
    """
    for name in list(os.environ):
        if name.startswith(SETTINGS) and not name.startswith("KBENCH_TEST_"):
            del os.environ[name]
    home = Path(tempfile.mkdtemp(prefix="kbench-home-"))
    for name in (".pip", ".config/pip", ".cache/pip"):
        if (kept := Path.home() / name).is_dir():
            (home / name).parent.mkdir(exist_ok=True)
            (home / name).symlink_to(kept)
    os.environ["HOME"] = str(home)
    return home


HOME = _leave_user()


COMPILED = (
    "kbench_nbcs._compiled, kbench_learners._winnow_compiled",
    "kbench_nbcs._mesh_compiled",
)
"""Modules that numba compiles for many seconds where its cache has nothing yet."""

LATER = "mlflow.store.tracking.sqlalchemy_store, distributed, matplotlib.pyplot, openml, hypothesis"
"""Packages that tests and their processes import after the collection, when none is compiled."""

FRESH = "KBENCH_TEST_FRESH"


def _only_starts_workers(config):
    return config.getoption("numprocesses", None) and not hasattr(config, "workerinput")


def _bytecode(name):
    return Path(importlib.util.cache_from_source(importlib.util.find_spec(name).origin))


def pytest_configure(config):
    """Compile what all workers import once: each of them would, in a fresh checkout."""
    if not _only_starts_workers(config):
        return
    missing = []
    if not any((ROOT / "plugins" / "kbench_nbcs").glob("__pycache__/*.nbi")):
        missing += COMPILED
        if config.args == config.getini("testpaths"):
            os.environ[FRESH] = "1"
    # some installers leave the compiling to the first import
    if not (mlflow := _bytecode("mlflow")).exists() and os.access(mlflow.parents[1], os.W_OK):
        missing.append(LATER)
    compiling = [
        subprocess.Popen(
            [sys.executable, "-c", f"import {names}"],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
            stderr=subprocess.DEVNULL,
        )
        for names in missing
    ]
    for process in compiling:
        process.wait()


def pytest_collection(session):
    """Keep the collector from looking through all tests again and again."""
    if not _only_starts_workers(session.config):
        gc.disable()
        # where pytest has to rewrite all modules, every other worker begins with the last ones
        if os.environ.pop(FRESH, "") and os.environ["PYTEST_XDIST_WORKER"][-1] in "13579":
            for path in sorted((ROOT / "tests").rglob("test_*.py"), reverse=True):
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                with contextlib.suppress(Exception, pytest.skip.Exception):
                    importlib.import_module(name)


def pytest_collection_finish():
    """Leave the checkout; write no compiled modules: one of this second passes for current."""
    gc.freeze()
    gc.enable()
    # most tests leave no circles: by default the collector takes a twentieth of the time
    gc.set_threshold(50_000, 20, 20)
    os.chdir(HOME)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def pytest_unconfigure():
    """Remove the home of the tests."""
    shutil.rmtree(HOME, ignore_errors=True)


read_once.patch()


@pytest.fixture(scope="session")
def private_folder_names(tmp_path_factory):
    """Yield folders that are not there yet; `mktemp` reads all others for each new one."""
    base = tmp_path_factory.getbasetemp()
    # for fixtures that live longer than a test
    os.environ["KBENCH_STATE_DIR"] = str(base / "private-state")
    return (base / f"private-{number}" for number in itertools.count())


@pytest.fixture(autouse=True)
def private_folders(private_folder_names, monkeypatch):
    """No test reads or writes the user's journal or cache, or sees what the current folder has."""
    folder = next(private_folder_names)
    (folder / "here").mkdir(parents=True)
    monkeypatch.chdir(folder / "here")
    monkeypatch.setenv("KBENCH_STATE_DIR", str(folder / "state"))
    monkeypatch.setenv("KBENCH_CACHE_DIR", str(folder / "cache"))
    for name in ("MLFLOW_TRACKING_URI", "KBENCH_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture(scope="session")
def migrated_store(tmp_path_factory):
    """A migrated MLflow database to copy: making one takes seconds, and all workers share it."""
    from kbench_mlflow.tracking.connection import Connection
    from kbench_mlflow.tracking.store import Store

    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    path = folder / "migrated" / "mlflow.db"
    with (folder / "migrating").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            path.parent.mkdir()
            Store(f"sqlite:///{path}").open()
    Connection(f"sqlite:///{path}").load()
    from mlflow.store.db import utils

    # opening a store reads the source of all migrations, twice
    utils._get_latest_schema_revision = functools.cache(utils._get_latest_schema_revision)
    return path


@pytest.fixture
def store_uri(migrated_store, tmp_path):
    """Return the URI of an empty store of this test's own."""
    return f"sqlite:///{shutil.copy(migrated_store, tmp_path / 'mlflow.db')}"


@pytest.fixture
def store(store_uri):
    """Return an empty store."""
    from kbench_mlflow.tracking.store import Store

    return Store(store_uri)


@pytest.fixture
def uci(store):
    """Return an experiment without runs."""
    return store.experiment("uci")


@pytest.fixture(scope="session")
def fork_sandboxes():
    """Return a function that has `kbench` fork warm sandboxes for as long as a patch lasts."""
    from kbench.execution.sandbox import warm_process
    from tests.support.forked_sandboxes import Template, forking

    with contextlib.ExitStack() as stack:
        template = stack.enter_context(contextlib.closing(Template())) if LINUX else None

        def fork(patch):
            if template is not None:
                patch.setattr(warm_process, "subprocess", forking(template))

        yield fork


@pytest.fixture
def forked_sandboxes(fork_sandboxes, monkeypatch):
    """Fork the warm sandboxes of this test from a process that has imported scikit-learn."""
    fork_sandboxes(monkeypatch)


@pytest.fixture(scope="module")
def sandbox():
    """Return a warm sandbox that has imported the tasks of `harmful_tasks`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SUPPORT))
        with Sandbox(preload=["harmful_tasks"]) as warm:
            yield warm


@pytest.fixture
def plugin_of():
    """Make a plugin of hook functions, without installing anything."""

    def make(name="mine", distribution="my-dist", **hooks):
        module = types.ModuleType(name)
        for hook, records in hooks.items():
            setattr(module, hook, hookimpl(_giving(records)))
        return Plugin(name, distribution, "1.0", lambda: module, module=name)

    return make


def _giving(records):
    return lambda: records


class Thing:
    """An estimator that is never fitted."""

    def __init__(self, n_components=10, gamma=1.0, kernel=None, C=1.0):
        """Keep the parameters."""


def _a_dataset(n_rows=10):
    raise AssertionError("planning must not load data")


@pytest.fixture
def registry(plugin_of):
    """A small registry whose components cost nothing."""
    return build(
        [
            plugin_of(
                kbench_datasets=[DatasetSource(n, load=_a_dataset) for n in ("iris", "wine")],
                kbench_feature_maps=[
                    FeatureMap(n, make=Thing, grid={"gamma": (0.1, 1.0)})
                    for n in ("identity", "rff", "nystroem")
                ],
                kbench_learners=[
                    Learner("linear-svm", classifier=Thing, grid={"C": (1.0, 10.0)}),
                    Learner("ridge", classifier=Thing),
                    Learner("kernel-svm", classifier=Thing, uses_kernel=True),
                ],
                kbench_kernels=[KernelSpec("gaussian", make=Thing)],
            )
        ]
    )


@pytest.fixture
def install_plugin(tmp_path, monkeypatch):
    """Write a distribution with a plugin where imports find it, as an installer does."""

    def install(name, source, distribution=None):
        site = tmp_path / "site"
        site.mkdir(exist_ok=True)
        (site / f"{name}.py").write_text(source)
        distribution = distribution or name.replace("_", "-")
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        (info / "entry_points.txt").write_text(f"[kbench]\n{name.replace('_', '-')} = {name}\n")
        (info / "RECORD").write_text(f"{name}.py,,\n")
        (info / "top_level.txt").write_text(name + "\n")
        if str(site) not in sys.path:
            monkeypatch.syspath_prepend(str(site))
        monkeypatch.setenv("PYTHONPATH", str(site))
        monkeypatch.delitem(sys.modules, name, raising=False)
        return Path(site / f"{name}.py")

    return install


@pytest.fixture
def connect_openml(monkeypatch, tmp_path):
    """Point the openml client at a server, with an empty cache, short waits and no proxy."""
    import openml

    from kbench_openml import _transport

    monkeypatch.setattr(_transport, "BACKOFF_S", 0.01)
    monkeypatch.setattr(_transport, "CONNECT_S", 5.0)
    monkeypatch.setattr(_transport, "SILENCE_S", 10.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(openml.config, "_root_cache_directory", tmp_path / "openml")

    def to(server):
        monkeypatch.setattr(openml.config, "server", server.url)
        return Path(openml.config.get_cache_directory())

    return to
