"""Which task goes to which worker, and what becomes of it: with workers that are made up."""

import itertools
import queue
from concurrent.futures import CancelledError
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from kbench.errors import ClusterError
from kbench.execution.engine import Terms
from kbench.execution.request import Answer, Host
from kbench.execution.sandbox import CallOutcome
from kbench.records import Limits, Manifest
from kbench.storage.journal import Journal
from kbench_dask import dispatch as dask_dispatch
from kbench_dask import pool as dask_pool
from kbench_dask import worker as dask_worker
from kbench_dask.pool import Worker
from kbench_dask.worker import ReleasedError


class KilledWorker(Exception):
    """As Dask calls it."""


class Future:
    _numbers = itertools.count()

    def __init__(self, outcome):
        self.key, self._outcome = f"key-{next(self._numbers)}", outcome

    def add_done_callback(self, callback):
        if self._outcome is not None:
            callback(self)

    def result(self, timeout):
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class Cast:
    """Workers that do what the script says for each task: one act per try."""

    run = "a-run"

    def __init__(self, machines, script):
        self.known = [
            Worker(f"tcp://{i}", 1, Host(name, f"host-{name}", "cpu", 0.01))
            for i, name in enumerate(machines)
        ]
        self.script = {task: list(acts) for task, acts in script.items()}
        self.sent, self.slots, self.cancelled, self.dismissed = [], [], [], []
        self.words = 0
        self.notices = []

    def __call__(self, address, events, notice):
        self.events = events
        return self

    def prepare(self, terms):
        assert terms.limits == LIMITS

    def ready(self):
        return [each for each in self.known if each.host]

    def submit(self, function, worker, run, request, slots):
        task = request.task
        assert (request.limits, request.offline) == (LIMITS, True)
        acts = self.script.get(task, [])
        act = acts.pop(0) if acts else "ok"
        self.sent.append((task, worker.address))
        self.slots.append(slots)
        ok = Answer(CallOutcome("ok", value=task), worker.host, 1, 2)
        lacking = Answer(CallOutcome("error", error="no data"), worker.host, 1, 2, lacks_data=True)
        if act == "die":
            self.known.remove(worker)
            self.known.append(Worker(f"{worker.address}'", 1, worker.host))
            self.events.put(worker)
            self.events.put(None)
        outcomes = {
            "ok": ok,
            "lack": lacking,
            "lack on a": lacking if worker.host.machine == "a" else ok,
            "die": None,
            "cancel": CancelledError(),
            "killed": KilledWorker(),
            "fail": RuntimeError("no disk"),
            "released": ReleasedError(),
        }
        return Future(outcomes[act])

    def cancel(self, futures):
        self.cancelled += futures

    def dismiss(self, worker, reason):
        worker.host = None
        self.dismissed.append((worker.address, reason))
        if not self.ready():
            raise ClusterError("none of use")

    def rejoin(self, worker):
        self.known.remove(worker)
        self.known.append(Worker(worker.address, 1, worker.host))
        return True

    def wait_for_scheduler(self):
        self.words += 1


@pytest.fixture
def play(monkeypatch):
    def run(machines, script, tasks, jobs=None):
        cast = Cast(machines, script)
        monkeypatch.setattr(dask_dispatch, "Workers", cast)
        slots = {}
        engine = dask_dispatch.DaskEngine(
            "tcp://head:8786", jobs, cast.notices.append, slots.__setitem__
        )
        engine.prepare(Terms({}, {}, LIMITS, offline=True))
        return cast, engine.run(map(Numbered, tasks)), slots

    return run


LIMITS = Limits(task_timeout_s=1, task_memory_mib=2)


LOST = "1 tasks; 1 are left"


class Numbered(int):
    """A task that is a number."""

    checksum = "sum"


def statuses(answers):
    return {task: answer.outcome.status for task, answer in answers}


def test_each_task_has_its_answer(play):
    cast, answers, slots = play(["a", "b"], {}, range(20))
    found = dict(answers)
    assert {task: answer.outcome.value for task, answer in found.items()} == {
        task: task for task in range(20)
    }
    assert set(slots.values()) <= {0, 1}
    assert {address for _, address in cast.sent} == {"tcp://0", "tcp://1"}
    assert set(cast.slots) == {1}  # one task at a time on each machine


def test_what_a_machine_runs_is_told_to_its_tasks(play):
    cast, answers, _ = play(["a", "a", "b"], {}, range(9))
    dict(answers)
    slots = {address: n for (_, address), n in zip(cast.sent, cast.slots, strict=True)}
    assert slots == {"tcp://0": 2, "tcp://1": 2, "tcp://2": 1}


def test_jobs_limit_what_is_in_flight(play):
    cast, answers, slots = play(["a", "b", "c"], {}, range(6), jobs=1)
    assert statuses(answers) == dict.fromkeys(range(6), "ok")
    assert set(slots.values()) == {0}
    assert set(cast.slots) == {1}


def test_tasks_are_taken_only_when_a_slot_is_free(play):
    taken = []
    tasks = (taken.append(task) or task for task in range(10))
    _, answers, _ = play(["a"], {}, tasks)
    for n_done, _ in enumerate(answers, 1):
        assert len(taken) <= n_done + 1


@pytest.mark.parametrize("act", ["die", "killed"])
def test_a_task_may_lose_one_worker(play, act):
    cast, answers, _ = play(["a"], {0: [act], 1: [act, act]}, range(3))
    found = dict(answers)
    assert [found[task].outcome.status for task in range(3)] == ["ok", "crashed", "ok"]
    assert found[1].outcome.error.count("died while the task ran") == 2
    assert found[1].outcome.error.count("host-a") == 2
    assert found[1].host.machine == "a"
    assert [task for task, _ in cast.sent].count(1) == 2
    assert [text.partition(" with ")[2] for text in cast.notices] == [LOST] * 3


def test_a_cancelled_future_is_nobodys_fault(play):
    cast, answers, _ = play(["a"], {0: ["cancel"] * 5}, range(2))
    assert statuses(answers) == {0: "ok", 1: "ok"}
    assert cast.words == 5


def test_a_worker_that_has_let_go_of_the_run_is_welcomed_again(play):
    cast, answers, _ = play(["a"], {0: ["released"] * 3}, range(2))
    assert statuses(answers) == {0: "ok", 1: "ok"}
    assert cast.dismissed == []


def test_a_worker_that_fails_gets_nothing_more(play):
    cast, answers, _ = play(["a", "b"], {0: ["fail"]}, range(6))
    assert statuses(answers) == dict.fromkeys(range(6), "ok")
    assert cast.dismissed == [("tcp://0", "RuntimeError: no disk")]
    after = cast.sent[cast.sent.index((0, "tcp://0")) + 1 :]
    assert {address for task, address in after if task > 1} == {"tcp://1"}
    _, answers, _ = play(["a"], {0: ["fail"]}, range(2))
    with pytest.raises(ClusterError, match="none of use"):
        dict(answers)


def test_a_host_without_the_data_is_passed_over(play):
    cast, answers, _ = play(["a", "b"], {task: ["lack on a"] * 2 for task in range(8)}, range(8))
    assert statuses(answers) == dict.fromkeys(range(8), "ok")
    assert sum(address == "tcp://0" for _, address in cast.sent) == 1


def test_data_that_no_host_has_are_an_error_for_each_task(play):
    acts = {task: ["lack", "lack"] for task in range(50)}
    cast, answers, _ = play(["a", "b"], acts, range(50))
    assert statuses(answers) == dict.fromkeys(range(50), "error")
    assert len(cast.sent) <= 4


def test_one_that_is_left_cancels_what_is_in_flight(play):
    cast, answers, _ = play(["a", "b"], {}, range(10))
    next(answers)
    answers.close()
    assert len(cast.cancelled) == 1


# -- looking at the workers


@pytest.fixture
def looking(monkeypatch):
    """Let a thread look at workers whose scheduler answers so; returns what it tells."""
    monkeypatch.setattr(dask_pool, "LOOK_S", 0.001)
    monkeypatch.setattr(dask_pool, "SILENT_S", 0.0)

    def look(answers):
        def nthreads():
            raise next(answers)

        client = SimpleNamespace(nthreads=nthreads, status="running", close=lambda timeout: None)
        monkeypatch.setattr(dask_pool, "_connect", lambda address: client)
        events = queue.SimpleQueue()
        workers = dask_pool.Workers("tcp://head:8786", events, lambda text: None)
        workers._watch()
        return events.get_nowait()

    return look


def test_a_scheduler_that_is_silent_is_given_up(looking):
    assert "was lost (OSError)" in str(looking(iter([OSError("no answer")])))


def test_what_no_waiting_cures_ends_the_run(looking, monkeypatch):
    monkeypatch.setattr(dask_pool, "SILENT_S", 1e9)
    told = looking(iter([OSError("no answer"), KeyError("nthreads")]))
    assert isinstance(told, ClusterError)
    assert "KeyError: 'nthreads'" in str(told)


# -- in a worker


def test_a_worker_lets_go_of_its_own_warm_parent_and_no_other(monkeypatch):
    closed = []

    def prepared(name):
        release = ExitStack()
        release.callback(closed.append, name)
        return dask_worker._Run(None, None, None, None, release)

    worker = SimpleNamespace(address="tcp://0")
    old, new = prepared("old"), prepared("new")
    monkeypatch.setattr(dask_worker, "_is_wanted", lambda worker, key: False)
    monkeypatch.setattr(dask_worker, "_RUNS", {("run", worker.address): new})
    dask_worker._release("run", worker, "key", old)
    assert closed == ["old"]
    assert list(dask_worker._RUNS.values()) == [new]
    dask_worker._release("run", worker, "key", new)
    assert closed == ["old", "new"]
    assert not dask_worker._RUNS


def test_a_worker_stops_waiting_for_a_machine_once_nobody_wants_it_to(monkeypatch, tmp_path):
    monkeypatch.setenv("KBENCH_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(
        dask_worker, "_current_task", lambda: (SimpleNamespace(address="tcp://0"), "key")
    )
    monkeypatch.setattr(dask_worker, "_is_wanted", lambda worker, key: False)
    with Journal().lock("computing"), pytest.raises(ReleasedError):
        dask_worker.prepare("run", (), {}, Manifest())
    with Journal().lock("computing", lambda holder: pytest.fail("still held")):
        pass
