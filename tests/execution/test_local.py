"""Slots of this machine, and the engine that computes in them."""

import contextlib
import dataclasses
import socket
import threading
import time

import numpy as np
import pytest

from kbench import Dataset
from kbench.evaluation.split_view import assign
from kbench.evaluation.splits import make_split
from kbench.execution.engine import LocalEngine, Terms, ThisMachine, over_slots
from kbench.execution.handover import (
    BrokenHandoverError,
    Handover,
    receive,
    receive_visible,
    send,
)
from kbench.execution.request import Assignments
from kbench.execution.sandbox import CallOutcome
from kbench.execution.warm_parents import WARM, WarmParents
from kbench.machine import machine_id
from kbench.planning.current_state import Present
from kbench.records import Cell, Limits, Protocol, Ref, Task
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal
from tests.support.made_torch import fake_torch
from tests.support.planted import plant
from tests.support.processes_here import gone, linux, wait_until


def test_every_task_has_its_result():
    found = dict(over_slots(range(20), lambda task, slot: task * 2, jobs=3))
    assert found == {task: task * 2 for task in range(20)}


def test_results_come_in_the_order_in_which_tasks_end():
    waits = [0.2, 0.0]
    ends = [task for task, _ in over_slots([0, 1], lambda t, slot: time.sleep(waits[t]), jobs=2)]
    assert ends == [1, 0]


def test_no_more_than_jobs_tasks_run_at_once():
    running, most, lock = 0, 0, threading.Lock()

    def work(task, slot):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return slot

    assert {slot for _, slot in over_slots(range(12), work, jobs=3)} <= {0, 1, 2}
    assert most == 3


def test_tasks_are_taken_only_when_a_slot_is_free_so_that_results_can_stop_them():
    stopped = []

    def tasks():
        for task in range(10):
            if stopped:
                return
            yield task

    done = []
    for task, _ in over_slots(tasks(), lambda task, slot: time.sleep(0.02), jobs=1):
        done.append(task)
        if task == 2:
            stopped.append(True)
    # one task may have been taken before the result was seen
    assert done in ([0, 1, 2], [0, 1, 2, 3])


def test_what_a_task_raises_ends_the_run():
    def work(task, slot):
        raise RuntimeError("in a slot")

    with pytest.raises(RuntimeError, match="in a slot"):
        list(over_slots([1, 2], work, jobs=2))


def test_an_iterator_that_is_left_starts_nothing_more():
    started = []

    def work(task, slot):
        started.append(task)
        time.sleep(0.01)

    running = over_slots(range(100), work, jobs=1)
    next(running)
    running.close()
    time.sleep(0.1)
    assert len(started) <= 3


# -- the engine


DATA = Dataset("blobs", np.arange(24.0).reshape(12, 2), np.tile([0, 1], 6))


def task(cell_key, number, **params):
    cell = Cell(Ref("blobs"), Ref("planted", params), Ref("centroids"), Protocol(n_folds=3))
    return Task(cell, number, cell_key, checksum=DATA.checksum)


METRICS = dict.fromkeys(
    ("fit_time_s", "predict_time_s", "fit_time_cpu_s", "predict_time_cpu_s"), 0.1
)
ANSWER = {"metrics": METRICS, "details": {}}


STATUSES = ("error", "timed_out", "out_of_memory", "crashed")


class Made:
    """A sandbox that does what the script says for each cell and split.

    A task hands over right predictions, unless the script has other ones or None.
    """

    def __init__(self, script):
        self.script, self.calls, self.closed = script, [], threading.Event()

    def run(self, function, payload, *, time_s, memory_mib, address_mib, wanted, converse):
        self.calls.append((function, payload, time_s, memory_mib))
        act = self.script.get(payload["feature_map"]["params"]["cell"], {}).get(payload["split"])
        if act == "hang":
            self.closed.wait(60)
            return CallOutcome("crashed", error="the sandbox was closed while the task ran")
        if act not in STATUSES:
            self.converse(converse, payload["split"], act)
        if isinstance(act, dict):
            return CallOutcome("ok", value=act.get("value", ANSWER))
        return CallOutcome(act or "ok", value=None if act else ANSWER)

    def converse(self, host, split, act):
        predictions = (act or {}).get("predictions", self.right)
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=host, args=(ours,))
        with ours, theirs:
            thread.start()
            visible = receive_visible(theirs, split)
            if predictions is not None:
                send(theirs, predictions(visible))
                revealed = receive(theirs, 10**6)["y_test"]
                assert (revealed == DATA.y[visible.test]).all()
            theirs.shutdown(socket.SHUT_RDWR)
            thread.join()

    @staticmethod
    def right(visible):
        return {"predicted": DATA.y[visible.test]}

    @contextlib.contextmanager
    def using(self, plugins):
        assert plugins == ()
        yield self

    def close(self):
        self.closed.set()


@pytest.fixture
def engine_of(tmp_path):
    """Make an engine of a made-up sandbox, ready for its first task."""
    engines = []

    def make(script, jobs=1, started=lambda task, slot: None):
        sandbox = Made(script)
        machine = ThisMachine(False, lambda text: None)
        DataCache(tmp_path).store(DATA)
        engine = LocalEngine(sandbox, tmp_path, jobs, machine, started)
        engine.prepare(Terms({}, {}, Limits(task_timeout_s=7, task_memory_mib=9)))
        engines.append((engine, machine))
        return engine, sandbox

    yield make
    for engine, machine in engines:
        engine.close()
        machine.release()


def statuses(answers):
    return {(task.cell_key, task.split_index): each.outcome.status for task, each in answers}


def tasks_of(*keys, n_splits=3):
    return [task(key, i, cell=key) for key in keys for i in range(n_splits)]


@pytest.mark.parametrize("status", ["timed_out", "out_of_memory", "crashed"])
def test_further_tasks_of_a_stopped_cell_are_not_begun(engine_of, status):
    begun = []
    engine, _ = engine_of(
        {"a": {1: status}}, started=lambda task, slot: begun.append((task.cell_key, slot))
    )
    found = statuses(engine.run(tasks_of("a", "b")))
    assert found == {("a", 0): "ok", ("a", 1): status, **{("b", i): "ok" for i in range(3)}}
    assert begun == [("a", 0), ("a", 0), ("b", 0), ("b", 0), ("b", 0)]


def test_a_cell_stops_whether_or_not_anybody_has_taken_its_answer(engine_of):
    engine, sandbox = engine_of({"a": {0: "crashed"}})
    going = engine.run(tasks_of("a", n_splits=50))
    assert statuses([next(going)]) == {("a", 0): "crashed"}
    assert list(going) == []
    assert len(sandbox.calls) == 1


def test_after_an_error_the_other_splits_are_computed(engine_of):
    engine, _ = engine_of({"a": {0: "error"}}, jobs=2)
    assert statuses(engine.run(tasks_of("a"))) == {
        ("a", 0): "error",
        ("a", 1): "ok",
        ("a", 2): "ok",
    }


@pytest.mark.parametrize(
    ("value", "lacking"),
    [
        ({}, "metrics, details"),
        ([], "metrics, details"),
        ({"metrics": METRICS}, "details"),
        (ANSWER | {"metrics": {"fit_time_s": 0.1, "predict_time_s": 0.1}},
         "metrics['fit_time_cpu_s'], metrics['predict_time_cpu_s']"),
    ],
)  # fmt: skip
def test_an_answer_that_lacks_fields_is_an_error_of_its_task(engine_of, value, lacking):
    engine, _ = engine_of({"a": {0: {"value": value}}})
    answers = [answer for _, answer in engine.run(tasks_of("a"))]
    assert [answer.outcome.status for answer in answers] == ["error", "ok", "ok"]
    assert answers[0].outcome.error == f"the answer of the task lacks {lacking}"
    assert answers[0].outcome.value is None


def test_what_an_answer_says_besides_is_left_out_and_its_texts_can_be_written(engine_of):
    details = {"nonsense": 1, "notes": ["a \udcff"]}
    engine, _ = engine_of({"a": {0: {"value": ANSWER | {"details": details}}}})
    (answer, *_) = [answer for _, answer in engine.run(tasks_of("a"))]
    assert answer.outcome.status == "ok"
    assert "a \\udcff" in answer.outcome.value["details"]["notes"]
    assert "nonsense" not in answer.outcome.value["details"]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        ({"predictions": None}, "the task has handed over no predictions"),
        ({"predictions": lambda v: {"predicted": np.array([0, 1])}},
         "learner 'centroids' returned an array of shape (2,) and dtype int64 from predict; "
         "expected 4 labels in an array of shape (4,)"),
        ({"predictions": lambda v: {"predicted": DATA.y[v.test], "probabilities": np.eye(2)}},
         "predict_proba of learner 'centroids' returned an array of shape (2, 2) and dtype "
         "float64; expected probabilities of shape (4, 2) whose rows sum to 1"),
        ({"value": ANSWER | {"metrics": METRICS | {"accuracy": 1.0}}},
         "metrics of a plugin return 'accuracy', which kbench measures itself; give it "
         "another name"),
        ({"value": ANSWER | {"metrics": METRICS | {"fit_time_s": "soon"}}},
         "could not convert string to float: 'soon'"),
        ({"value": ANSWER | {"metrics": METRICS | {"extra": 10**400}}}, "int too large"),
        ({"value": ANSWER | {"metrics": METRICS | {"extra": [1]}}}, "list"),
        ({"value": ANSWER | {"metrics": [1]}}, "the answer of the task lacks metrics"),
        ({"value": ANSWER | {"metrics": None}}, "the answer of the task lacks metrics"),
        ({"value": ANSWER | {"details": [1]}}, "the answer of the task lacks details"),
        ({"value": ANSWER | {"details": {"notes": 1}}}, "details['notes']: "),
        ({"value": ANSWER | {"details": {"notes": [1]}}}, "details['notes'][0]: "),
        ({"value": ANSWER | {"details": {"chosen": ["a"]}}}, "details['chosen']: "),
    ],
)  # fmt: skip
def test_a_task_that_answers_falsely_is_an_error(engine_of, act, message):
    engine, _ = engine_of({"a": {0: act}})
    answers = [answer for _, answer in engine.run(tasks_of("a"))]
    assert [answer.outcome.status for answer in answers] == ["error", "ok", "ok"]
    assert message in answers[0].outcome.error
    assert answers[1].outcome.value["metrics"]["accuracy"] == 1.0


def test_predictions_that_are_larger_than_they_can_be_are_not_read(engine_of):
    too_many = {"predictions": lambda v: {"predicted": np.zeros(10**6, dtype=int)}}
    made = Made({})
    with pytest.raises((BrokenHandoverError, BrokenPipeError, ConnectionResetError)):
        made.converse(Handover(assign(DATA, Protocol(n_folds=3), 0)), 0, too_many)


def test_the_host_scores_what_it_was_handed(engine_of):
    wrong = {"predictions": lambda v: {"predicted": 1 - DATA.y[v.test]}}
    engine, _ = engine_of({"a": {0: wrong}})
    answers = [answer.outcome.value for _, answer in engine.run(tasks_of("a"))]
    assert [value["metrics"]["accuracy"] for value in answers] == [0.0, 1.0, 1.0]
    assert answers[0]["metrics"]["n_test"] == 4
    assert answers[0]["details"]["split_hash"] == make_split(DATA, Protocol(n_folds=3), 0).digest


def test_data_that_cannot_be_split_are_an_error(engine_of):
    engine, sandbox = engine_of({})
    cell = Cell(Ref("blobs"), Ref("planted"), Ref("centroids"), Protocol(n_folds=13))
    ((_, answer),) = engine.run([Task(cell, 0, "a", DATA.checksum)])
    assert answer.outcome.status == "error"
    assert "13 folds need at least as many rows, got 12" in answer.outcome.error
    assert not sandbox.calls


def test_a_task_has_the_terms_of_the_run_and_its_host(engine_of, tmp_path):
    engine, sandbox = engine_of({})
    one = task("a", 4, cell="a")
    ((same, answer),) = engine.run([one])
    assert same is one
    assert answer.host.machine == machine_id()
    assert answer.host.machine_speed_s > 0
    assert answer.ended_ms >= answer.started_ms > 0
    ((function, payload, time_s, memory_mib),) = sandbox.calls
    assert function == "kbench.execution.task_functions:evaluate_task"
    assert (payload["checksum"], payload["split"]) == (DATA.checksum, 4)
    assert payload["cache"] == str(tmp_path)
    assert (time_s, memory_mib) == (7, 9)


def test_the_machine_is_held_from_before_the_first_task_until_it_is_released(tmp_path):
    told = []
    machine = ThisMachine(True, told.append)
    engine = LocalEngine(Made({}), tmp_path, 1, machine, lambda task, slot: None)
    release = threading.Event()
    held = threading.Event()

    def another():
        with Journal().lock("computing", shared=True):
            held.set()
            release.wait(60)

    thread = threading.Thread(target=another)
    thread.start()
    held.wait()
    waiting = threading.Thread(target=engine.prepare, args=(Terms({}, {}),))
    waiting.start()
    assert wait_until(lambda: told, 10)
    assert "exclusive timing needs the machine alone" in told[0]
    assert waiting.is_alive()
    release.set()
    waiting.join(60)
    thread.join()
    engine.prepare(Terms({}, {}))  # it has it
    refused = []

    def refuse(holder):
        refused.append(holder)
        raise TimeoutError

    with pytest.raises(TimeoutError), Journal().lock("computing", refuse, shared=True):
        pass
    machine.release()
    with Journal().lock("computing", lambda holder: pytest.fail("still held")):
        pass
    assert len(refused) == 1


def test_two_runs_never_share_a_gpu(monkeypatch):
    fake_torch(monkeypatch, 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    told, done = [], threading.Event()
    first, second = (ThisMachine(False, told.append) for _ in range(2))
    first.acquire_gpus(2)
    first.acquire_gpus(2)  # it has them

    def wait():
        second.acquire_gpus(1)
        done.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert wait_until(lambda: told, 10)
    assert told[0].startswith("waiting for ")
    assert told[0].endswith(", which computes on GPU 3")
    assert not done.is_set()
    first.release()
    assert done.wait(30)
    thread.join()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    first.acquire_gpus(2)  # the second one has none of these; both slots have one GPU
    first.release()
    second.release()


def test_a_run_holds_its_gpus_until_the_machine_is_released(engine_of, monkeypatch):
    fake_torch(monkeypatch, 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "9")
    engine, _ = engine_of({})
    on_gpu = [
        dataclasses.replace(
            each, cell=dataclasses.replace(each.cell, protocol=Protocol(device="cuda"))
        )
        for each in tasks_of("a")
    ]
    assert len(list(engine.run(iter(on_gpu)))) == len(on_gpu)

    def refuse(holder):
        raise TimeoutError

    with pytest.raises(TimeoutError), Journal().lock("gpu-9", refuse):
        pass
    engine._machine.release()
    with Journal().lock("gpu-9", lambda holder: pytest.fail("still held")):
        pass


def test_an_interrupted_wait_for_a_gpu_takes_none(monkeypatch):
    fake_torch(monkeypatch, 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "9")

    def interrupt(text):
        raise KeyboardInterrupt

    first, second = (ThisMachine(False, each) for each in (print, interrupt))
    first.acquire_gpus(1)
    with pytest.raises(KeyboardInterrupt):
        second.acquire_gpus(1)
    second.release()
    first.release()
    third = ThisMachine(False, lambda text: pytest.fail(text))
    third.acquire_gpus(1)
    third.release()


def test_digests_are_kept_for_the_check_at_the_end_of_a_run(engine_of, monkeypatch):
    kept, answered = [], []
    monkeypatch.setattr(Present, "save", lambda present: kept.append(len(answered)))
    engine, _ = engine_of({})
    for each in engine.run(tasks_of("a", "b")):
        answered.append(each)
    assert kept == [6]


def test_closing_ends_what_runs_and_may_be_done_twice(engine_of):
    engine, sandbox = engine_of({"a": {0: "hang"}})
    going = engine.run(tasks_of("a"))
    threading.Thread(target=lambda: wait_until(lambda: sandbox.calls) and engine.close()).start()
    ((_, answer),) = going
    assert answer.outcome.status == "crashed"
    assert "closed" in answer.outcome.error
    engine.close()


@linux
@pytest.mark.slow
def test_closing_kills_the_processes_of_tasks(tmp_path, monkeypatch):
    plant(tmp_path / "site", monkeypatch)
    trace = tmp_path / "trace"
    cache = DataCache()
    checksum = cache.store(build(list_plugins()).get("dataset", "blobs").load())
    cell = task("a", 0, do="doze", trace=str(trace)).cell
    parents = WarmParents({("planted",): (*WARM, "planted_plugin")})
    machine = ThisMachine(False, lambda text: None)
    engine = LocalEngine(parents, cache.root, 1, machine, lambda task, slot: None)
    engine.prepare(Terms({}, {}))
    found = []
    tasks = [Task(cell, i, "a", checksum, plugins=("planted",)) for i in range(3)]
    going = engine.run(tasks)
    thread = threading.Thread(target=lambda: found.extend(going))
    thread.start()
    assert wait_until(lambda: trace.exists() and trace.read_text().endswith("\n"))
    (pid,) = map(int, trace.read_text().split())
    engine.close()
    thread.join(30)
    machine.release()
    assert [answer.outcome.status for _, answer in found] == ["crashed"]
    assert wait_until(lambda: gone(pid), 5)


@pytest.mark.parametrize("n_copies", [0, 7])
def test_test_rows_that_equal_a_training_row_are_known(n_copies, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[20 : 20 + n_copies] = X[:n_copies] + 0.0
    data = Dataset("copies", X=X, y=np.arange(40) % 2)
    cache = DataCache(tmp_path)
    cell = Cell(Ref("copies"), Ref("identity"), Ref("ridge"), Protocol(n_folds=4))
    cache.store(data)
    assignments = Assignments(cache)
    found = [assignments.get(Task(cell, i, "a", checksum=data.checksum)) for i in range(4)]
    for each in found:
        expected = assign(data, cell.protocol, each.visible.index)
        assert each.seen.tolist() == expected.seen.tolist()
    assert any(each.seen.any() for each in found) == bool(n_copies)


def test_rows_whose_hashes_are_known_are_not_hashed_again(tmp_path, monkeypatch):
    data = Dataset("rows", X=np.arange(120.0).reshape(40, 3), y=np.arange(40) % 2)
    cache = DataCache(tmp_path)
    cache.store(data)
    monkeypatch.delattr("kbench.evaluation.lazy_rows.hash_values")
    cell = Cell(Ref("rows"), Ref("identity"), Ref("ridge"), Protocol(n_folds=4))
    found = Assignments(cache).get(Task(cell, 0, "a", checksum=data.checksum))
    assert not found.seen.any()
