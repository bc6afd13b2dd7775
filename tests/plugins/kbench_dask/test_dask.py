"""Runs on a Dask cluster: who may compute, where the data come from, who died."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kbench import Block, Dataset, Suite, SuiteError
from kbench.errors import ClusterError
from kbench.execution.engine import Terms
from kbench.execution.sandbox import processes
from kbench.execution.warm_parents import GIVEN, WARM
from kbench.machine import cluster_id, machine_id, versions
from kbench.planning.methods import method_code
from kbench.records import Cell, Limits, Manifest, Protocol, Ref, Task
from kbench.records.canonical import digest, to_json
from kbench.registry.installed import list_plugins
from kbench.registry.registry import Registry, build
from kbench.runner import Options, Run
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal, state_folder
from kbench_dask.dispatch import DaskEngine
from kbench_dask.feature import kbench_engine
from kbench_dask.pool import Worker, _refusal
from kbench_dask.worker import read_manifest
from tests.support.paths import SUPPORT
from tests.support.planted import Seen, dask_process, plant, run_text, suite_text
from tests.support.processes_here import wait_until

PRELOAD = {("planted",): (*WARM, "planted_plugin")}
NOTHING = {"dataset": [], "feature map": [], "learner": []}
COMPONENTS = {
    "dataset": [("datasets[0]", to_json(Ref("blobs")))],
    "feature map": [("feature_maps[0]", to_json(Ref("planted")))],
    "learner": [("learners[0]", to_json(Ref("centroids")))],
}


def ignored(*told):
    """Hear what an engine tells."""


# -- without a cluster ----------------------------------------------------------


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"kbench-core\[dask\]"):
        DaskEngine("tcp://127.0.0.1:1", None, ignored, ignored)


def test_a_scheduler_that_is_not_there_is_a_wrong_usage(monkeypatch):
    pytest.importorskip("distributed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr("kbench_dask.pool.CONNECT_S", 0.5)
        with pytest.raises(ClusterError, match=f"{address} cannot be reached"):
            DaskEngine(address, None, ignored, ignored)
    with pytest.raises(ClusterError, match="form tcp://host:8786"):
        DaskEngine("nonsense://x", None, ignored, ignored)


def test_what_differs_is_listed_versions_first():
    here = read_manifest({}, NOTHING)
    assert here.differences(here) == []
    assert here.distributions["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert {"numpy", "scipy", "scikit-learn", "kbench-core"} <= set(here.distributions)
    assert not any(" " in each for name, each in here.distributions.items() if name != "blas")
    assert here.distributions["blas"] == versions()["blas"]
    modules = {**here.modules, "kbench.evaluation.splits": "0" * 64}
    del modules["kbench.evaluation.evaluate"]
    there = replace(here, modules=modules, distributions={**here.distributions, "numpy": "1.0"})
    assert here.differences(there) == [
        f"numpy 1.0 instead of {here.distributions['numpy']}",
        "kbench.evaluation.evaluate is not there",
        "kbench.evaluation.splits changed",
    ]
    many = tuple(here.differences(Manifest()))
    said = _refusal([Worker("tcp://0", 1, refused=many)]).splitlines()
    assert said[1:3] == ["  tcp://0", f"    {many[0]}"]
    assert said[-2] == f"    {len(many) - 12} more"


def test_what_brings_a_task_to_its_code_must_agree_but_not_its_versions():
    here = read_manifest({}, NOTHING)
    assert {"kbench", "kbench.records._suite", "kbench.registry.registry"} <= set(here.modules)
    assert not {"pluggy", "packaging"} & set(here.distributions)


READING = '''
"""A plugin that reads a file beside it, a declared one and variables when it is imported."""
import os
from pathlib import Path
from kbench import FeatureMap, hookimpl
from planted_plugin import Planted

SHIFT = float(Path(__file__).with_name("reading.txt").read_text())
SEED = os.environ.get("KBENCH_TEST_SEED", "")


@hookimpl
def kbench_feature_maps():
    return [FeatureMap("reading", make=Planted, depends=[{declared!r}],
                       env_vars=["KBENCH_TEST_DECLARED"])]
'''


@pytest.fixture
def reading(site, tmp_path, monkeypatch):
    """Install a plugin that reads files and variables, into a folder of its own."""
    folder = tmp_path / "reading"
    info = folder / "reading-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: reading\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kbench]\nreading = reading_plugin\n")
    declared = folder / "weights"
    declared.write_text("here")
    (folder / "reading_plugin.py").write_text(READING.format(declared=str(declared)))
    (folder / "reading.txt").write_text("1.0")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ["PYTHONPATH"]]))
    monkeypatch.setenv("KBENCH_TEST_SEED", "secret 1")
    return folder


@pytest.mark.slow
def test_files_and_variables_that_a_plugin_reads_must_agree(reading, monkeypatch):
    components = {**NOTHING, "feature map": [("feature_maps[0]", to_json(Ref("reading")))]}
    preload = {("reading",): (*WARM, f"{GIVEN}KBENCH_TEST_SEED", f"{GIVEN}KBENCH_TEST_DECLARED")}

    def probed():
        return read_manifest(preload, components)

    here = probed()
    assert {"reading_plugin", "planted_plugin", "planted_helper"} <= set(here.modules)
    assert here.differences(probed()) == []
    (reading / "reading.txt").write_text("2.0")
    (reading / "weights").write_text("there")
    monkeypatch.setenv("KBENCH_TEST_SEED", "secret 2")
    monkeypatch.setenv("KBENCH_TEST_DECLARED", "secret 3")
    there = probed()
    assert here.differences(there) == [
        "the environment variable KBENCH_TEST_DECLARED has another value",
        "the environment variable KBENCH_TEST_SEED has another value",
        "the file reading.txt changed",
        "the file weights changed",
    ]
    for text in ("secret", str(reading)):
        assert text not in str(here) + str(there)
    (reading / "weights").unlink()
    assert "the file weights is not there" in here.differences(probed())


@pytest.mark.slow
def test_a_host_that_cannot_import_a_component_differs(reading):
    components = {**NOTHING, "feature map": [("feature_maps[0]", to_json(Ref("reading")))]}
    here = read_manifest({("reading",): WARM}, components)
    # a process without the plugin, as on a host that does not have it
    found = here.differences(read_manifest({}, components))
    assert "reading_plugin is not there" in found
    assert "the file reading.txt is not there" in found


@pytest.mark.slow
def test_a_cluster_is_let_go_of_before_what_it_computed_is_delivered(site, store_uri, monkeypatch):
    happened = []

    class Lost:
        def __init__(self, address, jobs, notice, started):
            pass

        def prepare(self, terms):
            pass

        def run(self, tasks):
            raise ClusterError("lost")

        def close(self):
            happened.append("closed")

    monkeypatch.setattr("kbench_dask.dispatch.DaskEngine", Lost)
    monkeypatch.setattr(Seen, "on_delivering", lambda self: happened.append("delivering"))
    with pytest.raises(ClusterError, match="lost"):
        run_text(suite_text("work"), store_uri, jobs=None, scheduler="tcp://head:8786")
    assert happened == ["closed", "delivering"]


def test_exclusive_timing_is_for_this_machine():
    with pytest.raises(SuiteError, match="omit `scheduler`"):
        kbench_engine(Options(timing="exclusive", given={"scheduler": "tcp://x:1"}))


def test_tasks_at_a_time_are_those_of_the_cluster(store_uri):
    given = {"store": store_uri, "scheduler": "tcp://x:1"}
    suite = Suite("threads", (Block((), (), (), Protocol(threads=3)),))
    assert Run(suite, Registry(), Options(jobs=None, given=given)).options.jobs is None


# -- with one -------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the plugin, on the path of this process and of the workers."""
    folder = tmp_path_factory.mktemp("dask")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBENCH_STATE_DIR", str(folder / "state"))
        patch.setenv("KBENCH_CACHE_DIR", str(folder / "cache"))
        yield plant(folder / "site", patch)


@contextlib.contextmanager
def local_cluster(n_workers, **options):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", **options
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def shared(site):
    """Return a cluster of two workers that the tests leave as it is."""
    with local_cluster(2) as cluster:
        yield cluster


@pytest.fixture
def task_of(site):
    """Make tasks about a dataset that only this process knows so far."""
    registry = build(list_plugins())
    ref = Ref("blobs")
    dataset = registry.get("dataset", "blobs").load()
    checksum = DataCache().store(dataset)

    def make(act, checksum=checksum, **params):
        feature_map = Ref("planted", {"do": act, **params})
        cell = Cell(ref, feature_map, Ref("centroids"), Protocol(n_folds=3))
        records = digest(method_code(cell, registry, "classification"))
        return Task(cell, 0, "the cell's key", checksum, records=records, plugins=("planted",))

    return make


@contextlib.contextmanager
def prepared(address, jobs=None, components=COMPONENTS, started=ignored, time_s=60.0):
    notices = []
    engine = DaskEngine(address, jobs, notices.append, started)
    limits = Limits(task_timeout_s=time_s, task_memory_mib=500.0)
    try:
        engine.prepare(Terms(PRELOAD, components, limits))
        engine.notices = notices
        yield engine
    finally:
        engine.close()


def answers(engine, tasks):
    """Yield the number of each task with its answer."""
    numbered = [replace(task, cell_key=str(i)) for i, task in enumerate(tasks)]
    with contextlib.closing(engine.run(numbered)) as going:
        for task, answer in going:
            yield int(task.cell_key), answer


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def pids(path):
    return [int(line) for line in Path(path).read_text().split()] if Path(path).exists() else []


@pytest.mark.slow
def test_tasks_run_in_sandboxes_of_the_workers(shared, task_of):
    tasks = [task_of(act) for act in ("work", "segfault", "hang-in-c", "raise")]
    slots = set()

    def started(task, slot):
        slots.add(slot)

    with prepared(shared.scheduler_address, started=started, time_s=1) as engine:
        found = dict(answers(engine, tasks))
    assert [found[i].outcome.status for i in range(4)] == ["ok", "crashed", "timed_out", "error"]
    assert found[0].outcome.value["metrics"]["accuracy"] > 0.5
    assert slots <= {0, 1}
    for answer in found.values():
        assert (answer.host.machine, answer.host.name) == (machine_id(), socket.gethostname())
        assert answer.host.machine_speed_s > 0
        assert answer.ended_ms >= answer.started_ms > 0


@pytest.mark.slow
def test_jobs_limit_the_tasks_in_flight(shared, task_of, tmp_path):
    flying, most = 0, 0

    def started(task, slot):
        nonlocal flying, most
        flying += 1
        most = max(most, flying)

    with prepared(shared.scheduler_address, jobs=1, started=started) as engine:
        for _ in answers(engine, [task_of("nap") for _ in range(3)]):
            flying -= 1
    assert most == 1


@pytest.mark.slow
def test_nothing_is_left_on_the_workers_after_a_run(shared, task_of, tmp_path):
    """Neither the warm parents, nor a task that is under way when the client goes."""
    workers = [worker.process.pid for worker in shared.workers.values()]
    trace = tmp_path / "trace"
    with prepared(shared.scheduler_address) as engine:
        going = answers(engine, [task_of("work"), task_of("doze", trace=str(trace))])
        next(going)
        assert wait_until(lambda: pids(trace))
        going.close()  # as an interrupt does
    task = pids(trace)[0]
    assert wait_until(lambda: not Path(f"/proc/{task}").exists(), 3)
    assert wait_until(
        lambda: not any("kbench.execution.sandbox" in command for command in _commands(workers)), 10
    )


def _commands(workers):
    for pid in (each for worker in workers for each in processes.descendants(worker)):
        with contextlib.suppress(OSError):
            yield Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.slow
def test_workers_get_the_data_themselves_and_compare_them(shared, task_of, site, monkeypatch):
    """The data come from the worker's cache or the source; never from the client."""
    cache = Path(os.environ["KBENCH_CACHE_DIR"]).parent / "elsewhere"
    monkeypatch.setenv("KBENCH_CACHE_DIR", str(cache))  # of the client; the workers have their own
    good = task_of("work")
    other = DataCache().store(_other())
    with prepared(shared.scheduler_address) as engine:
        found = dict(answers(engine, [good, task_of("work", checksum=other)] * 2))
    assert [found[i].outcome.status for i in range(4)] == ["ok", "error"] * 2
    error = found[1].outcome.error
    assert f"checksum {good.checksum} instead of {other}" in error
    assert socket.gethostname() in error


def _other():
    import numpy as np

    return Dataset("blobs", np.arange(20.0).reshape(10, 2), np.arange(10) % 2)


@pytest.mark.slow
def test_parameters_are_checked_with_the_workers_plugins(shared, site):
    wrong = {**NOTHING, "feature map": [("feature_maps[0]", to_json(Ref("planted", {"doo": 1})))]}
    with pytest.raises(ClusterError, match="doo"), prepared(shared.scheduler_address, None, wrong):
        pass


@pytest.mark.slow
def test_a_suite_on_a_cluster_is_kept_apart_from_this_machines(shared, site, store_uri):
    text = suite_text("work", "segfault")
    address = shared.scheduler_address
    report, seen = run_text(text, store_uri, jobs=None, scheduler=address)
    assert seen.tasks == 4
    assert [cell.status for cell in report.cells] == ["ok", "crashed"]
    for result in report.cells[0].results.values():
        assert (result.machine, result.host) == (machine_id(), socket.gethostname())
    journal = Journal(state_folder(cluster_id()) / "journal.jsonl")
    assert len(list(journal.read("result"))) == len(seen.done)
    assert not Journal().path.exists()

    _, again = run_text(text, store_uri, jobs=None, scheduler=address)
    assert again.tasks == 0
    here, own = run_text(text, store_uri, jobs=2)
    assert own.tasks == 4
    from kbench_mlflow.tracking.store import Store

    machines = [run.machine for run in Store(store_uri).read("planted")]
    assert sorted(machines) == sorted([machine_id(), cluster_id()] * 2)
    hosts = {run.tags.get("kbench.hosts", "") for run in Store(store_uri).read("planted")}
    assert len(hosts) == 2
    assert any(socket.gethostname() in each for each in hosts)
    assert len(here.cells) == 2


# -- clusters that change -------------------------------------------------------


@pytest.mark.slow
def test_a_worker_that_dies_costs_a_retry_and_then_a_crash(site, task_of, tmp_path):
    """Its nanny starts another, which is used although it came in the middle of the run."""
    trace = tmp_path / "trace"
    tasks = [task_of("doze", trace=str(trace)), *[task_of("work") for _ in range(3)]]
    start = ("distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard", "--no-nanny")
    with (
        local_cluster(1) as dask,
        prepared(dask.scheduler_address) as engine,
        contextlib.ExitStack() as later,
    ):
        killed = []

        def kill_the_worker():
            assert wait_until(lambda: set(pids(trace)) - set(killed), 120)
            task = (set(pids(trace)) - set(killed)).pop()
            killed.append(task)
            os.kill(parent(parent(task)), signal.SIGKILL)  # of the sandbox's supervisor
            assert wait_until(lambda: not Path(f"/proc/{task}").exists(), 60)

        def killer():
            kill_the_worker()
            kill_the_worker()
            # a nanny that thinks its worker is still starting does not replace it
            later.enter_context(dask_process(*start, dask.scheduler_address))

        thread = threading.Thread(target=killer)
        thread.start()
        going = answers(engine, tasks)
        found = dict(going)
        thread.join()
        notices = list(engine.notices)
    assert [found[i].outcome.status for i in range(4)] == ["crashed", "ok", "ok", "ok"]
    dead = re.findall(r"worker (\S+) on \S+ died", found[0].outcome.error)
    assert len(set(dead)) == 2
    assert [sum(f"{address} with 1 tasks" in text for text in notices) for address in dead] == [
        1,
        1,
    ]


@pytest.mark.slow
def test_workers_may_join_and_differing_ones_are_left_out(site, task_of, tmp_path):
    """One that is alike joins in the middle; one with other code of the plugin does not."""
    changed = tmp_path / "changed"
    changed.mkdir()
    (changed / "planted_helper.py").write_text("SHIFT = 2.0\n")
    other = {"PYTHONPATH": os.pathsep.join([str(changed), str(site), str(SUPPORT)])}
    start = ("distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard", "--no-nanny")
    slots = set()

    def started(task, slot):
        slots.add(slot)

    with (
        local_cluster(1) as dask,
        prepared(dask.scheduler_address, started=started) as engine,
    ):
        address = dask.scheduler_address
        with dask_process(*start, address, **other), dask_process(*start, address):
            give_up = time.monotonic() + 240
            for _ in answers(engine, [task_of("nap")] * 10_000):
                if (slots == {0, 1} and engine.notices) or time.monotonic() > give_up:
                    break
            assert slots == {0, 1}
            assert any("planted_helper changed" in each for each in engine.notices)
            # before the first task it is an error, with the same list
            with (
                pytest.raises(ClusterError, match="planted_helper changed") as refused,
                prepared(address),
            ):
                pass
            assert "restart the workers" in str(refused.value)


@pytest.mark.slow
def test_a_scheduler_that_goes_away_ends_the_run_and_loses_nothing(
    site, store_uri, tmp_path, monkeypatch
):
    monkeypatch.setattr("kbench_dask.pool.SILENT_S", 1.0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    serve = ("distributed.cli.dask_scheduler", "--host", address, "--no-dashboard")
    work = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard")
    monkeypatch.setenv("KBENCH_STATE_DIR", str(tmp_path / "state"))
    with dask_process(*serve) as scheduler, dask_process(*work):
        wait_until(lambda: _listens(port))

        class Killing(Seen):
            def on_finished(self, cell, result):
                super().on_finished(cell, result)
                scheduler.kill()

        watcher = Killing()
        with pytest.raises(ClusterError, match="run the same command to continue"):
            run_text(suite_text("work", "nap"), store_uri, watcher, jobs=1, scheduler=address)
    journal = Journal(state_folder(cluster_id()) / "journal.jsonl")
    assert 1 <= len(list(journal.read("result"))) == len(watcher.done) < 4


def _listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.mark.slow
def test_ctrl_c_ends_the_tasks_on_the_workers(shared, site, store_uri, tmp_path):
    trace = tmp_path / "trace"
    (tmp_path / "planted.toml").write_text(suite_text("doze", "work", trace=str(trace)))
    command = [sys.executable, "-m", "kbench.cli", "suite", "planted.toml", "--json"]
    command += ["--store", store_uri, "--scheduler", shared.scheduler_address]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_until(lambda: pids(trace), 150)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert pids(trace), err
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert json.loads(out.splitlines()[-1])["event"] == "interrupted"
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids(trace)), 5)


@pytest.mark.slow
def test_an_unreachable_scheduler_is_one_message_and_exit_code_2(tmp_path):
    pytest.importorskip("distributed")
    command = [sys.executable, "-m", "kbench.cli", "suite", "uci-small"]
    command += ["--scheduler", "nonsense", "--store", f"sqlite:///{tmp_path}/mlflow.db"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2, done.stderr
    assert "nonsense cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
