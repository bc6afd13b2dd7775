"""Whatever a task does, it costs that task only.

The tasks are functions of this module, which the sandbox imports by its plain
name from this folder.
"""

import ctypes
import math
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kbench.sandbox import Outcome, Sandbox, client, processes, supervisor, wire

ME = "test_sandbox"
MB = 2**20
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")


# -- tasks ----------------------------------------------------------------------


def echo(payload):
    return payload


def meet(payload):
    """Wait until as many tasks as asked for are here."""
    folder = Path(payload["folder"])
    (folder / uuid.uuid4().hex).touch()
    give_up = time.monotonic() + 10
    while len(list(folder.iterdir())) < payload["n_tasks"]:
        if time.monotonic() > give_up:
            return False
        time.sleep(0.005)
    return True


def nap(seconds):
    time.sleep(seconds)
    return "rested"


def hang_in_python(_):
    print("about to hang")
    while True:
        pass


def hang_in_c(_):
    re.match(r"(a+)+$", "a" * 64 + "b")


def ignore_signals(_):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(60)


def segfault(_):
    print("last words")
    ctypes.string_at(0)


def leave(code):
    os._exit(code)


def send_signal(number):
    os.kill(os.getpid(), number)
    time.sleep(60)


def allocate(megabytes):
    """Touch memory bit by bit."""
    held = []
    for _ in range(megabytes // 10):
        held.append(np.ones(10 * MB // 8))
        time.sleep(0.001)
    return len(held)


def reserve(bytes_):
    return len(np.empty(int(bytes_), dtype=np.uint8))


def segfault_with(megabytes):
    held = np.ones(megabytes * MB // 8)
    ctypes.string_at(0)
    return held.size


def no_threads_left(_):
    raise RuntimeError("can't start new thread")


def family(payload):
    """Fork children that touch, or only read, memory beside each other."""
    data = np.ones(payload["shared_mb"] * MB // 8)
    pids = []
    for _ in range(3):
        if (pid := os.fork()) == 0:
            own = np.ones(payload["own_mb"] * MB // 8)
            end = time.monotonic() + payload["seconds"]
            while time.monotonic() < end:
                data.sum()
                time.sleep(0.01)
            os._exit(own.size == 0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    return "done"


def leave_children(how):
    """Fork children that want to live on; return their process ids."""
    reader, writer = os.pipe()
    for _ in range(2):
        if os.fork() == 0:
            if how != "group":
                os.setsid()
            if how == "daemon" and os.fork():
                os._exit(0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(writer, b"%d " % os.getpid())
            time.sleep(60)
            os._exit(0)
    said = b""
    while said.count(b" ") < 2:
        said += os.read(reader, 100)
    return [int(pid) for pid in said.split()]


def leave_children_and_die(how):
    print(*leave_children(how), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def leave_children_and_hang(how):
    print(*leave_children(how), flush=True)
    time.sleep(60)


def leave_children_once(payload):
    """Hang with children the first time; say so the second."""
    mark = Path(payload["mark"])
    if mark.exists():
        return "the second time"
    mark.touch()
    return leave_children_and_hang(payload["how"])


def kill_the_supervisor(_):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


def fork_and_return(_):
    os.fork()
    return os.getpid()


def print_much(megabytes):
    line = "x" * 1023
    for _ in range(megabytes * 1024):
        print(line)
    os.write(2, b"the end, in C\xff\n")
    return "printed"


def close_everything(_):
    os.closerange(0, 1000)
    return 1


def replace_everything(folder):
    os.closerange(0, 1000)
    for number in range(40):
        os.open(f"{folder}/{number}", os.O_CREAT | os.O_RDWR)
    return "x" * 1000


def write_everywhere(_):
    """Write junk into every descriptor but the standard ones."""
    for fd in range(3, 64):
        try:
            os.write(fd, b"\xff" * 100)
        except OSError:
            continue
    return 1


def give_back(what):
    return {
        "nan": [math.nan, math.inf, -math.inf],
        "numpy float": np.float64(0.5),
        "set": {1, 2},
        "numpy int": np.int64(1),
        "large": "x" * (5 * MB),
        "unprintable": "\ud800",
    }[what]


def fail(what):
    if what == "exit":
        sys.exit("enough")
    if what == "interrupt":
        raise KeyboardInterrupt
    if what == "recursion":
        return fail(what)
    raise ValueError(what)


def leave_threads(_):
    for daemon in (True, False):
        threading.Thread(target=time.sleep, args=(60,), daemon=daemon).start()
    return "left"


def read_input(_):
    return sys.stdin.read() + input()


def where(_):
    return {
        "pid": os.getpid(),
        "supervisor": os.getppid(),
        "path": sys.path,
        "threads": os.environ["OMP_NUM_THREADS"],
        "modules": sorted(sys.modules),
    }


# -- fixtures -------------------------------------------------------------------


@pytest.fixture(scope="module")
def sandbox():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        with Sandbox(preload=[ME]) as warm:
            yield warm


def gone(pid):
    try:
        # whoever has inherited it may not have asked how it ended
        return (Path("/proc") / f"{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not (done := condition()) and time.monotonic() < end:
        time.sleep(0.005)
    return done


# -- each costs its own task only -------------------------------------------------


@pytest.mark.parametrize(
    ("function", "payload", "limits", "status", "error"),
    [
        ("hang_in_python", None, {"time_s": 0.2}, "timeout", "limit of 0.2 s"),
        ("hang_in_c", None, {"time_s": 0.2}, "timeout", "limit of 0.2 s"),
        ("ignore_signals", None, {"time_s": 0.2}, "timeout", "limit of 0.2 s"),
        ("segfault", None, {}, "crash", "SIGSEGV"),
        ("send_signal", signal.SIGABRT, {}, "crash", "SIGABRT"),
        ("send_signal", signal.SIGKILL, {}, "crash", "SIGKILL"),
        ("send_signal", 35, {}, "crash", "signal 35"),
        ("send_signal", signal.SIGXCPU, {}, "timeout", "CPU time"),
        ("leave", 0, {}, "crash", "exit code 0"),
        ("leave", 7, {}, "crash", "exit code 7"),
        ("close_everything", None, {}, "crash", "no result"),
        ("write_everywhere", None, {}, "crash", "no result"),
        ("reserve", 1e14, {}, "memory", "Unable to allocate"),
        ("no_threads_left", None, {}, "memory", "can't start new thread"),
        ("fail", "message", {}, "error", "ValueError: message"),
        ("fail", "exit", {}, "error", "SystemExit: enough"),
        ("fail", "interrupt", {}, "error", "KeyboardInterrupt"),
        ("fail", "recursion", {}, "error", "RecursionError"),
        ("give_back", "set", {}, "error", "not JSON"),
        ("give_back", "numpy int", {}, "error", "not JSON"),
        ("read_input", None, {"time_s": 5}, "error", "EOFError"),
        ("no_such_function", None, {}, "error", "AttributeError"),
    ],
)
def test_a_bad_task_costs_itself_only(sandbox, function, payload, limits, status, error):
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(sandbox.run, f"{ME}:nap", 0.1)
        outcome = sandbox.run(f"{ME}:{function}", payload, **limits)
        assert beside.result().value == "rested"
    assert (outcome.status, outcome.value) == (status, None)
    assert error in outcome.error
    assert sandbox.run(f"{ME}:echo", "after").value == "after"


@linux
@pytest.mark.parametrize(
    ("function", "payload", "memory_mb"),
    [
        ("allocate", 200, 100),
        ("reserve", 4e9, 100),  # nothing touched: the backstop
        ("segfault_with", 95, 100),  # within 10 % of the limit
        ("family", {"shared_mb": 1, "own_mb": 60, "seconds": 10}, 100),
        ("family", {"shared_mb": 1, "own_mb": 120, "seconds": 10}, 100),
    ],
)
def test_memory(sandbox, function, payload, memory_mb):
    outcome = sandbox.run(f"{ME}:{function}", payload, memory_mb=memory_mb, time_s=20)
    assert outcome.status == "memory", outcome
    assert sandbox.run(f"{ME}:echo", 1, memory_mb=memory_mb).value == 1


@linux
def test_a_hang_near_the_limit_is_put_down_to_memory_and_one_far_from_it_is_not(sandbox):
    payload = {"own_mb": 1, "seconds": 10}
    for shared, status in ((95, "memory"), (30, "timeout")):
        outcome = sandbox.run(
            f"{ME}:family", payload | {"shared_mb": shared}, memory_mb=100, time_s=0.4
        )
        assert outcome.status == status


@linux
def test_pages_that_children_share_count_once(sandbox):
    payload = {"shared_mb": 80, "own_mb": 1, "seconds": 0.5}
    outcome = sandbox.run(f"{ME}:family", payload, memory_mb=150)
    assert outcome.status == "ok", outcome.error
    assert 80 <= outcome.peak_memory_mb < 110


@linux
def test_peak_memory_is_that_of_the_task(sandbox):
    assert sandbox.run(f"{ME}:echo", 1).peak_memory_mb < 5
    for status_of in (f"{ME}:allocate", f"{ME}:segfault_with"):
        assert 50 <= sandbox.run(status_of, 50).peak_memory_mb < 60


def test_time_is_that_of_the_task(sandbox):
    assert 0.2 <= sandbox.run(f"{ME}:nap", 0.2).seconds < 2
    assert 0.2 <= sandbox.run(f"{ME}:nap", 60, time_s=0.2).seconds < 2


# -- what goes in and comes out ---------------------------------------------------


def test_values_pass_as_json(sandbox):
    payload = {"text": "é\n\0", "list": [1, None, True, 1e300], "empty": {}}
    outcome = sandbox.run(f"{ME}:echo", payload)
    assert (outcome.status, outcome.value, outcome.error) == ("ok", payload, "")
    assert sandbox.run(f"{ME}:echo", (1, 2)).value == [1, 2]
    assert sandbox.run(f"{ME}:echo", "x" * (3 * MB)).value == "x" * (3 * MB)
    assert sandbox.run(f"{ME}:give_back", "large").value == "x" * (5 * MB)
    assert sandbox.run(f"{ME}:give_back", "unprintable").value == "\ud800"
    assert sandbox.run(f"{ME}:give_back", "numpy float").value == 0.5


def test_not_a_number_passes(sandbox):
    nan, up, down = sandbox.run(f"{ME}:give_back", "nan").value
    assert math.isnan(nan)
    assert (up, down) == (math.inf, -math.inf)
    assert sandbox.run(f"{ME}:echo", math.inf).value == math.inf


def test_the_end_of_what_was_printed_is_kept(sandbox):
    outcome = sandbox.run(f"{ME}:print_much", 8)
    assert outcome.value == "printed"
    assert len(outcome.printed) == 4000
    assert outcome.printed.endswith("x\nthe end, in C�\n")


def test_what_was_printed_before_the_end_is_kept(sandbox):
    crash = sandbox.run(f"{ME}:segfault", None).printed
    assert crash.startswith("last words\n")
    assert "in segfault" in crash  # the Python line at fault
    assert sandbox.run(f"{ME}:hang_in_python", 0, time_s=0.2).printed == "about to hang\n"


def test_a_result_is_not_written_into_files_of_the_task(sandbox, tmp_path):
    assert sandbox.run(f"{ME}:replace_everything", str(tmp_path)).status == "crash"
    assert not any("xxx" in file.read_text() for file in tmp_path.iterdir())


def test_a_result_beyond_reason_is_refused(tmp_path, monkeypatch):
    ours, theirs = socket.socketpair()
    with ours, theirs, monkeypatch.context() as patch:
        patch.setattr(supervisor, "MAX_RESULT", 10)
        patch.setattr(supervisor.signal, "set_wakeup_fd", lambda *_, **__: None)
        patch.setattr(supervisor.signal, "signal", lambda *_: None)
        warm = supervisor.Supervisor(theirs, os.getppid())
        reader, writer = os.pipe()
        os.write(writer, b"x" * 100)
        task = supervisor.Task(None)
        task.pid = subprocess.Popen(["sleep", "60"], start_new_session=True).pid
        warm._read(task, reader, task.reported)
        assert os.waitpid(task.pid, 0)[1] == signal.SIGKILL
        assert task.killed_for[0] == "error"
        for fd in (reader, writer):
            os.close(fd)


def test_tasks_run_beside_each_other(sandbox, tmp_path):
    payload = {"folder": str(tmp_path), "n_tasks": 4}
    with ThreadPoolExecutor(4) as pool:
        outcomes = pool.map(lambda _: sandbox.run(f"{ME}:meet", payload), range(4))
    assert [outcome.value for outcome in outcomes] == [True] * 4


def test_every_task_has_its_own_process(sandbox):
    first, second = (sandbox.run(f"{ME}:where", None).value for _ in range(2))
    assert first["pid"] != second["pid"]
    assert first["supervisor"] == second["supervisor"] != os.getpid()


def test_imports_are_found_as_in_the_client(monkeypatch, tmp_path):
    (tmp_path / "found_nowhere_else.py").write_text("def f(x): return x + 1")
    monkeypatch.chdir(tmp_path)
    with Sandbox() as elsewhere:
        assert "ModuleNotFoundError" in elsewhere.run("found_nowhere_else:f", 1).error
    monkeypatch.syspath_prepend(str(tmp_path))
    with Sandbox() as here:
        assert here.run("found_nowhere_else:f", 1).value == 2


def test_threads_and_path_of_tasks(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    with Sandbox(threads=3) as warm:
        task = warm.run(f"{ME}:where", None).value
    assert task["threads"] == "3"
    assert task["path"] == [str(folder) for folder in sys.path]
    assert "mlflow" not in task["modules"]


# -- nothing outlives its task ----------------------------------------------------


@linux
@pytest.mark.parametrize("how", ["group", "session", "daemon"])
@pytest.mark.parametrize(
    "end", ["leave_children", "leave_children_and_die", "leave_children_and_hang"]
)
def test_no_child_outlives_its_task(sandbox, end, how):
    outcome = sandbox.run(f"{ME}:{end}", how, time_s=0.5)
    pids = outcome.value or [int(pid) for pid in outcome.printed.split()]
    assert len(pids) == 2
    assert all(map(gone, pids))


def test_threads_do_not_delay_the_end(sandbox):
    outcome = sandbox.run(f"{ME}:leave_threads", None, time_s=10)
    assert outcome.value == "left"


def test_a_fork_that_comes_back_through_the_function_answers_once(sandbox):
    for _ in range(5):
        outcome = sandbox.run(f"{ME}:fork_and_return", None, time_s=10)
        assert outcome.status == "ok"
        assert wait_until(lambda pid=outcome.value: gone(pid), 1)


PARENT = f"""
import sys, threading, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from kbench.sandbox import Sandbox
sandbox = Sandbox(preload=["{ME}"])
for how in ("group", "session", "daemon"):
    threading.Thread(
        target=sandbox.run, args=("{ME}:leave_children_and_hang", how), daemon=True
    ).start()
time.sleep(60)
"""


@linux
def test_nothing_is_left_within_a_second_of_the_parents_death():
    mark = f"KBENCH_TEST={uuid.uuid4().hex}"
    name, _, value = mark.partition("=")
    parent = subprocess.Popen([sys.executable, "-c", PARENT], env=os.environ | {name: value})
    # the parent, the supervisor, three tasks with two children each
    assert wait_until(lambda: len(processes.marked(mark)) == 11, 20), processes.marked(mark)
    parent.kill()
    parent.wait()
    assert wait_until(lambda: not processes.marked(mark), 1), processes.marked(mark)


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
        "from kbench.sandbox import Sandbox, supervisor\n"
        f"with Sandbox(preload=[{module!r}]): time.sleep(0.5)\n"
        "print('closed', flush=True)\n"
        "time.sleep(60)"
    )
    name, _, value = mark.partition("=")
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {name: value}, stdout=subprocess.PIPE
    )
    assert wait_until(lambda: len(processes.marked(mark)) == n_processes, 20)
    if end == "kill":
        parent.kill()
    else:
        assert parent.stdout.readline() == b"closed\n"
        assert processes.marked(mark) == [parent.pid]
        parent.kill()
    parent.communicate()
    assert wait_until(lambda: not processes.marked(mark), 1), processes.marked(mark)


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
    assert sandbox.run(f"{ME}:echo", 1).value == 1
    if (pid := os.fork()) == 0:
        try:
            sandbox.close()
            sandbox.run(f"{ME}:echo", 1)
        except RuntimeError:
            os._exit(3)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    assert sandbox.run(f"{ME}:echo", 2).value == 2


@linux
def test_a_killed_supervisor_costs_its_tasks_one_retry(sandbox, tmp_path):
    before = sandbox.run(f"{ME}:where", None).value["supervisor"]
    with ThreadPoolExecutor(2) as pool:
        calls = [
            pool.submit(
                sandbox.run, f"{ME}:leave_children_once", {"how": how, "mark": f"{tmp_path}/{how}"}
            )
            for how in ("group", "daemon")
        ]
        # two tasks, two children each, and what the daemons have forked on the way
        assert wait_until(lambda: len(processes.descendants(before)) == 8, 10)
        left = processes.descendants(before)
        os.kill(before, signal.SIGKILL)
        assert [call.result().value for call in calls] == ["the second time"] * 2
    assert all(map(gone, left))
    after = sandbox.run(f"{ME}:where", None).value["supervisor"]
    assert after != before


@linux
def test_a_task_that_kills_its_supervisor_crashes_and_those_beside_it_do_not(sandbox):
    with ThreadPoolExecutor(3) as pool:
        beside = [pool.submit(sandbox.run, f"{ME}:nap", 0.5) for _ in range(2)]
        outcome = sandbox.run(f"{ME}:kill_the_supervisor", None)
        assert outcome.status == "crash"
        assert outcome.error.count("SIGKILL") == 2
        assert "tried once more" in outcome.error
        assert [call.result().value for call in beside] == ["rested"] * 2
    assert sandbox.run(f"{ME}:echo", 1).value == 1


def test_a_task_that_nobody_wants_any_longer_is_killed(sandbox, tmp_path):
    outcome = sandbox.run(f"{ME}:nap", 60, wanted=lambda: False)
    assert (outcome.status, "wanted" in outcome.error) == ("crash", True)
    assert sandbox.run(f"{ME}:nap", 0.1, wanted=lambda: True).value == "rested"
    supervisor_pid = sandbox.run(f"{ME}:where", None).value["supervisor"]
    assert wait_until(lambda: not processes.children(supervisor_pid), 2)


@pytest.fixture
def interrupts():
    """Let SIGINT raise KeyboardInterrupt, whatever libraries of other tests made of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_call_ends_its_task(sandbox, interrupts):
    main = threading.main_thread().ident
    supervisor_pid = sandbox.run(f"{ME}:where", None).value["supervisor"]
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        sandbox.run(f"{ME}:nap", 60)
    assert wait_until(lambda: not processes.children(supervisor_pid), 2)
    assert sandbox.run(f"{ME}:echo", 1).value == 1


def test_closing_ends_calls_in_flight():
    with ThreadPoolExecutor(1) as pool:
        sandbox = Sandbox()
        call = pool.submit(sandbox.run, "time:sleep", 60)
        time.sleep(0.2)
        sandbox.close()
        assert call.result(5) == Outcome("crash", error=call.result().error)
    sandbox.close()
    with pytest.raises(RuntimeError, match="closed"):
        sandbox.run("time:sleep", 0)


# -- warming up -------------------------------------------------------------------


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
    monkeypatch.setattr(client, "PROBE_S", 0.5)
    with Sandbox(preload=[*bad, "good:compile", "good", "no_such_module"]) as sandbox:
        modules, ready = sandbox.run("tasks:loaded", None).value
        assert "good" in modules
        assert ready == [1]
        assert not {*bad, "mlflow"} & set(modules)
        # the task itself meets what is wrong
        assert sandbox.run("crashes:f", None).status == "crash"
        assert sandbox.run("hangs:f", None, time_s=0.2).status == "timeout"


@linux
def test_the_supervisor_has_one_thread(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    with Sandbox(preload=["sklearn.linear_model"]) as sandbox:
        task = sandbox.run(f"{ME}:where", None).value
        assert "sklearn.linear_model" in task["modules"]
        assert len(list(Path(f"/proc/{task['supervisor']}/task").iterdir())) == 1


def test_a_supervisor_that_cannot_start_says_why(monkeypatch, tmp_path):
    (tmp_path / "kbench.py").write_text("raise ImportError('the wrong kbench')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with Sandbox() as sandbox, pytest.raises(RuntimeError, match="the wrong kbench"):
        sandbox.run("math:factorial", 3)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("nocolon", 1), ValueError, "module:name.*'nocolon'"),
        (("math:", 1), ValueError, "module:name"),
        (("math:factorial", {1, 2}), TypeError, "JSON"),
    ],
)
def test_wrong_arguments_are_named(sandbox, arguments, error, says):
    with pytest.raises(error, match=says):
        sandbox.run(*arguments)
    with pytest.raises(ValueError, match=r"time_s.*-1"):
        sandbox.run("math:factorial", 1, time_s=-1)
    with pytest.raises(ValueError, match=r"threads.*0"):
        Sandbox(threads=0)


def test_messages_survive_any_cut():
    message = wire.pack({"a": "é"}, b"body\0") + wire.pack({}, b"")
    for cut in range(len(message) + 1):
        buffer, found = bytearray(message[:cut]), []
        for _ in range(2):
            while got := wire.unpack(buffer):
                found.append(got)
            buffer += message[cut:]
            message_rest, cut = b"", len(message)
            assert message_rest == b""
        assert found == [({"a": "é"}, b"body\0"), ({}, b"")]
