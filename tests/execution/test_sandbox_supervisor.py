"""The warm parent of tasks: what it imports, what it refuses, and what its end costs."""

import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbench.execution.sandbox import Sandbox, processes, supervisor, warm_process
from tests.support.paths import SUPPORT
from tests.support.processes_here import gone, linux, wait_until

TASKS = "harmful_tasks"


def test_a_result_beyond_reason_is_refused(tmp_path, monkeypatch):
    ours, theirs = socket.socketpair()
    with ours, theirs, monkeypatch.context() as patch:
        patch.setattr(supervisor, "MAX_RESULT", 10)
        patch.setattr(supervisor.signal, "set_wakeup_fd", lambda *_, **__: None)
        patch.setattr(supervisor.signal, "signal", lambda *_: None)
        warm = supervisor.Supervisor(theirs, os.getppid())
        reader, writer = os.pipe()
        os.write(writer, b"x" * 100)
        call = supervisor.Call(None)
        call.pid = subprocess.Popen(["sleep", "60"], start_new_session=True).pid
        warm._read(call, reader, call.reported)
        assert os.waitpid(call.pid, 0)[1] == signal.SIGKILL
        assert call.killed_for[0] == "error"
        for fd in (reader, writer):
            os.close(fd)


@linux
def test_a_killed_supervisor_costs_its_tasks_one_retry(sandbox, tmp_path):
    before = sandbox.run(f"{TASKS}:where", None).value["supervisor"]
    with ThreadPoolExecutor(2) as pool:
        payloads = [{"how": how, "mark": f"{tmp_path}/{how}"} for how in ("group", "daemon")]
        calls = [
            pool.submit(sandbox.run, f"{TASKS}:leave_children_once", each) for each in payloads
        ]
        # two tasks, two children each, and what the daemons have forked on the way
        assert wait_until(lambda: len(processes.descendants(before)) == 8, 10)
        left = processes.descendants(before)
        os.kill(before, signal.SIGKILL)
        assert [call.result().value for call in calls] == ["the second time"] * 2
    assert all(map(gone, left))
    after = sandbox.run(f"{TASKS}:where", None).value["supervisor"]
    assert after != before


@linux
def test_a_task_that_kills_its_supervisor_crashes_and_those_beside_it_do_not(sandbox):
    with ThreadPoolExecutor(3) as pool:
        beside = [pool.submit(sandbox.run, f"{TASKS}:nap", 0.5) for _ in range(2)]
        outcome = sandbox.run(f"{TASKS}:kill_the_supervisor", None)
        assert outcome.status == "crashed"
        assert outcome.error.count("SIGKILL") == 2
        assert "tried again" in outcome.error
        assert [call.result().value for call in beside] == ["rested"] * 2
    assert sandbox.run(f"{TASKS}:echo", 1).value == 1


@linux
def test_a_bad_module_does_not_take_down_the_supervisor(tmp_path, monkeypatch):
    bad = {
        "crashes": "import ctypes; ctypes.string_at(0)",
        "hangs": "import time; time.sleep(60)",
        "leaves": "import os; os._exit(0)",
        "raises": "raise SystemExit(1)",
        "threads": "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "tracks": "import mlflow",
    }
    good = {"mlflow": "", "good": "ready = []\ndef compile(): ready.append(1)"}
    tasks = "import sys, good\ndef loaded(_): return [sorted(sys.modules), good.ready]"
    for name, text in {**bad, **good, "tasks": tasks}.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(warm_process, "PROBE_S", 0.5)
    with Sandbox(preload=[*bad, "good:compile", "good", "no_such_module"]) as sandbox:
        modules, ready = sandbox.run("tasks:loaded", None).value
        assert "good" in modules
        assert ready == [1]
        assert not {*bad, "mlflow"} & set(modules)
        # the task itself meets what is wrong
        assert sandbox.run("crashes:f", None).status == "crashed"
        assert sandbox.run("hangs:f", None, time_s=0.2).status == "timed_out"


@linux
def test_the_supervisor_has_one_thread(monkeypatch):
    monkeypatch.syspath_prepend(str(SUPPORT))
    with Sandbox(preload=["sklearn.linear_model"]) as sandbox:
        task = sandbox.run(f"{TASKS}:where", None).value
        assert "sklearn.linear_model" in task["modules"]
        assert len(list(Path(f"/proc/{task['supervisor']}/task").iterdir())) == 1


def test_a_supervisor_that_cannot_start_says_why(monkeypatch, tmp_path):
    (tmp_path / "kbench.py").write_text("raise ImportError('the wrong kbench')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with Sandbox() as sandbox, pytest.raises(RuntimeError, match="the wrong kbench"):
        sandbox.run("math:factorial", 3)
