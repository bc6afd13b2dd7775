"""Nothing outlives a task, nor the client of a sandbox."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from kbench.execution.sandbox import CallOutcome, Sandbox, processes
from tests.support.paths import SUPPORT
from tests.support.processes_here import gone, linux, wait_until

TASKS = "harmful_tasks"


@linux
@pytest.mark.parametrize("how", ["group", "session", "daemon"])
@pytest.mark.parametrize(
    "end", ["leave_children", "leave_children_and_die", "leave_children_and_hang"]
)
def test_no_child_outlives_its_task(sandbox, end, how):
    outcome = sandbox.run(f"{TASKS}:{end}", how, time_s=0.5)
    pids = outcome.value or [int(pid) for pid in outcome.printed.split()]
    assert len(pids) == 2
    assert all(map(gone, pids))


def test_threads_do_not_delay_the_end(sandbox):
    outcome = sandbox.run(f"{TASKS}:leave_threads", None, time_s=10)
    assert outcome.value == "left"


def test_a_fork_that_comes_back_through_the_function_answers_once(sandbox):
    for _ in range(5):
        outcome = sandbox.run(f"{TASKS}:fork_and_return", None, time_s=10)
        assert outcome.status == "ok"
        assert wait_until(lambda pid=outcome.value: gone(pid), 1)


PARENT = f"""
import sys, threading, time
sys.path.insert(0, {str(SUPPORT)!r})
from kbench.execution.sandbox import Sandbox
sandbox = Sandbox(preload=["{TASKS}"])
for how in ("group", "session", "daemon"):
    threading.Thread(
        target=sandbox.run, args=("{TASKS}:leave_children_and_hang", how), daemon=True
    ).start()
time.sleep(60)
"""


@linux
def test_nothing_is_left_within_a_second_of_the_parents_death():
    mark = f"KBENCH_TEST={uuid.uuid4().hex}"
    name, _, value = mark.partition("=")
    parent = subprocess.Popen([sys.executable, "-c", PARENT], env=os.environ | {name: value})
    # the parent, the supervisor, three tasks with two children each
    assert wait_until(lambda: len(processes.list_marked(mark)) == 11, 20), processes.list_marked(
        mark
    )
    parent.kill()
    parent.wait()
    assert wait_until(lambda: not processes.list_marked(mark), 1), processes.list_marked(mark)


@linux
@pytest.mark.parametrize(
    ("end", "module", "n_processes"),
    # the parent, the supervisor; the trial of a module that needs one
    [("kill", "sklearn", 2), ("close", "sklearn", 2), ("kill", "slow", 3), ("close", "slow", 3)],
)
def test_a_parent_that_ends_during_the_imports_leaves_nothing(tmp_path, end, module, n_processes):
    (tmp_path / f"{module}.py").write_text("import time\nfor _ in range(600): time.sleep(0.1)")
    mark = f"KBENCH_TEST={uuid.uuid4().hex}"
    code = (
        f"import sys, time; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from kbench.execution.sandbox import Sandbox, supervisor\n"
        f"with Sandbox(preload=[{module!r}]): time.sleep(0.5)\n"
        "print('closed', flush=True)\n"
        "time.sleep(60)"
    )
    name, _, value = mark.partition("=")
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {name: value}, stdout=subprocess.PIPE
    )
    assert wait_until(lambda: len(processes.list_marked(mark)) == n_processes, 20)
    if end == "kill":
        parent.kill()
    else:
        assert parent.stdout.readline() == b"closed\n"
        assert processes.list_marked(mark) == [parent.pid]
        parent.kill()
    parent.communicate()
    assert wait_until(lambda: not processes.list_marked(mark), 1), processes.list_marked(mark)


def _use_in_daemon(results):
    with Sandbox() as sandbox:
        results.put(sandbox.run("math:factorial", 4).value)


def test_it_works_in_a_daemonic_process():
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=_use_in_daemon, args=(results,), daemon=True)
    process.start()
    assert results.get() == 24
    process.join()


@linux
def test_a_fork_of_the_client_leaves_the_tasks_alone(sandbox):
    assert sandbox.run(f"{TASKS}:echo", 1).value == 1
    if (pid := os.fork()) == 0:
        try:
            sandbox.close()
            sandbox.run(f"{TASKS}:echo", 1)
        except RuntimeError:
            os._exit(3)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    assert sandbox.run(f"{TASKS}:echo", 2).value == 2


def test_a_task_that_nobody_wants_any_longer_is_killed(sandbox, tmp_path):
    outcome = sandbox.run(f"{TASKS}:nap", 60, wanted=lambda: False)
    assert (outcome.status, outcome.error) == ("crashed", "the task was cancelled")
    assert sandbox.run(f"{TASKS}:nap", 0.1, wanted=lambda: True).value == "rested"
    supervisor_pid = sandbox.run(f"{TASKS}:where", None).value["supervisor"]
    assert wait_until(lambda: not processes.list_children(supervisor_pid), 2)


def test_an_interrupted_call_ends_its_task(sandbox):
    main = threading.main_thread().ident
    supervisor_pid = sandbox.run(f"{TASKS}:where", None).value["supervisor"]
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        sandbox.run(f"{TASKS}:nap", 60)
    assert wait_until(lambda: not processes.list_children(supervisor_pid), 2)
    assert sandbox.run(f"{TASKS}:echo", 1).value == 1


def test_closing_ends_calls_in_flight():
    with ThreadPoolExecutor(1) as pool:
        sandbox = Sandbox()
        call = pool.submit(sandbox.run, "time:sleep", 60)
        time.sleep(0.2)
        sandbox.close()
        assert call.result(5) == CallOutcome("crashed", error=call.result().error)
    sandbox.close()
    with pytest.raises(RuntimeError, match="closed"):
        sandbox.run("time:sleep", 0)
