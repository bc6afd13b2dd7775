"""A supervisor that does not work any longer, though its process lives, is replaced."""

import os
import signal
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from kbench.execution.sandbox import Sandbox, processes, warm_process
from kbench.execution.sandbox.warm_process import HungError, Liveness
from tests.support.paths import SUPPORT
from tests.support.processes_here import linux, wait_until

TASKS = "harmful_tasks"


@pytest.fixture
def impatient(monkeypatch):
    """Give supervisors up sooner."""
    monkeypatch.setattr(warm_process, "TICK_S", 0.1)
    monkeypatch.setattr(warm_process, "STOPPED_S", 0.8)  # it wakes every 20 ms


@pytest.fixture
def mark(monkeypatch):
    """Return what marks every process of this test, in its environment."""
    value = uuid.uuid4().hex
    monkeypatch.setenv("KBENCH_TEST", value)
    return f"KBENCH_TEST={value}"


def test_a_task_that_stops_its_supervisor_crashes_and_those_beside_it_do_not(
    impatient, mark, monkeypatch
):
    monkeypatch.syspath_prepend(str(SUPPORT))
    with Sandbox(preload=[TASKS]) as sandbox, ThreadPoolExecutor(2) as pool:
        beside = pool.submit(sandbox.run, f"{TASKS}:nap", 0.3)
        outcome = sandbox.run(f"{TASKS}:stop_the_supervisor", None)
        assert outcome.status == "crashed"
        assert outcome.error.count("it has not run for 0.8 s (was it stopped?)") == 2
        assert "tried again" in outcome.error
        assert beside.result().value == "rested"
        assert sandbox.run(f"{TASKS}:echo", 1).value == 1
    assert wait_until(lambda: not processes.list_marked(mark), 2)


@linux
def test_a_working_supervisor_is_not_given_up(impatient, monkeypatch):
    """It waits for its task longer than a stopped one is waited for."""
    monkeypatch.syspath_prepend(str(SUPPORT))
    with Sandbox(preload=[TASKS]) as sandbox:
        before = sandbox.run(f"{TASKS}:where", None).value["supervisor"]
        assert sandbox.run(f"{TASKS}:nap", 1.2).value == "rested"
        assert sandbox.run(f"{TASKS}:where", None).value["supervisor"] == before


@linux
def test_a_supervisor_that_takes_no_request_is_replaced(impatient):
    with Sandbox() as sandbox:
        assert sandbox.run("math:factorial", 3).value == 6
        os.kill(sandbox._supervisor._process.pid, signal.SIGSTOP)
        # more than a socket holds
        assert sandbox.run("builtins:len", "x" * 2**20).value == 2**20


@linux
def test_an_import_that_stops_the_supervisor_costs_only_the_tasks_that_need_it(
    impatient, mark, monkeypatch, tmp_path
):
    (tmp_path / "stops.py").write_text(
        "import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(60)"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with Sandbox(preload=["stops"]) as sandbox:
        assert sandbox.run("math:factorial", 5).value == 120
    assert wait_until(lambda: not processes.list_marked(mark), 2)


STOPPING = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
from kbench.execution.sandbox import Sandbox
Sandbox(preload=["{TASKS}"]).run("{TASKS}:leave_children_and_stop_the_supervisor", sys.argv[1])
"""


@linux
@pytest.mark.parametrize("how", ["group", "daemon"])
def test_a_stopped_supervisor_does_not_outlive_its_client(how, mark):
    parent = subprocess.Popen([sys.executable, "-c", STOPPING, how])
    # the client, the supervisor, the task and two children
    assert wait_until(lambda: len(processes.list_marked(mark)) == 5, 20)
    (supervisor,) = processes.list_children(parent.pid)
    assert wait_until(lambda: processes._stat(supervisor)[0] == "T", 5)
    parent.kill()
    parent.wait()
    assert wait_until(lambda: not processes.list_marked(mark), 2), processes.list_marked(mark)


def test_a_thread_that_ends_does_not_end_the_supervisor_that_it_started():
    with Sandbox() as sandbox:
        with ThreadPoolExecutor(1) as pool:
            before = pool.submit(sandbox.run, "os:getppid", None)
            assert before.result().status == "error"  # takes no argument
        pid = sandbox._supervisor._process.pid
        assert sandbox.run("math:factorial", 3).value == 6
        assert sandbox._supervisor._process.pid == pid


def _looks(watch, n):
    for _ in range(n):
        watch.look()


@pytest.fixture
def pulses(monkeypatch):
    """Return the pulses that a supervisor will show; the last one stays."""
    shown = [0]
    monkeypatch.setattr(
        processes, "pulse", lambda pid: shown.pop(0) if len(shown) > 1 else shown[0]
    )
    return shown


def test_looks_are_counted_not_seconds(pulses):
    pulses[:] = [(1,)]
    watch = Liveness(1, lambda: True, 600.0, None)
    _looks(watch, 20)  # the first one shows nothing yet
    with pytest.raises(HungError, match="not run for 10 s"):
        watch.look()


def test_a_sign_of_life_starts_the_count_anew(pulses):
    pulses[:] = [(1,)] * 20 + [(2,)]
    watch = Liveness(1, lambda: True, 600.0, None)
    _looks(watch, 40)
    with pytest.raises(HungError):
        watch.look()


def test_a_system_that_does_not_count_gives_nobody_up(pulses):
    pulses[:] = [None]
    _looks(Liveness(1, lambda: True, 600.0, None), 1000)


def test_a_limit_that_the_supervisor_does_not_enforce_is_enforced(pulses):
    pulses[:] = list(range(10_000))
    ready = iter([False] * 100)
    watch = Liveness(1, lambda: next(ready, True), 600.0, 5.0)
    _looks(watch, 100 + 2 * (5 + 60))  # imports do not count
    with pytest.raises(HungError, match="limit of 5 s"):
        watch.look()


def test_imports_end(pulses):
    pulses[:] = list(range(10_000))
    watch = Liveness(1, lambda: False, 600.0, None)
    _looks(watch, 1200)
    with pytest.raises(HungError, match="imports took more than 600 s"):
        watch.look()


@linux
def test_a_pulse_shows_whether_a_process_runs():
    program = "import time\nwhile True: time.sleep(0.01)"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        first = processes.pulse(process.pid)
        assert wait_until(lambda: processes.pulse(process.pid) != first, 10)
        os.kill(process.pid, signal.SIGSTOP)
        assert wait_until(lambda: processes._stat(process.pid)[0] == "T", 10)
        first = processes.pulse(process.pid)
        assert not wait_until(lambda: processes.pulse(process.pid) != first, 0.1)
        process.kill()
    assert processes.pulse(process.pid) is None
