"""Whatever a task does, it costs that task only."""

import math
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kbench.execution.sandbox import Sandbox, wire
from tests.support.harmful_tasks import MIB
from tests.support.paths import SUPPORT
from tests.support.processes_here import linux

TASKS = "harmful_tasks"
# The kernel adds a core's pages to its sums of resident memory in batches of 32: of each of two
# sums (pages of files, other pages) those of two cores may be missing, of one thread that moved.
UNCOUNTED_MIB = 2 * 2 * 32 * 4096 / MIB


@pytest.mark.parametrize(
    ("function", "payload", "limits", "status", "error"),
    [
        ("hang_in_python", None, {"time_s": 0.2}, "timed_out", "limit of 0.2 s"),
        ("hang_in_c", None, {"time_s": 0.2}, "timed_out", "limit of 0.2 s"),
        ("ignore_signals", None, {"time_s": 0.2}, "timed_out", "limit of 0.2 s"),
        ("segfault", None, {}, "crashed", "SIGSEGV"),
        ("send_signal", signal.SIGABRT, {}, "crashed", "SIGABRT"),
        ("send_signal", signal.SIGKILL, {}, "crashed", "SIGKILL"),
        ("send_signal", 35, {}, "crashed", "signal 35"),
        ("send_signal", signal.SIGXCPU, {}, "timed_out", "CPU time"),
        ("leave", 0, {}, "crashed", "exit code 0"),
        ("leave", 7, {}, "crashed", "exit code 7"),
        ("close_everything", None, {}, "crashed", "no result"),
        ("write_everywhere", None, {}, "crashed", "no result"),
        ("reserve", 1e14, {}, "out_of_memory", "Unable to allocate"),
        ("no_threads_left", None, {}, "out_of_memory", "can't start new thread"),
        ("no_device_memory", "CUDA out of memory. Tried 2 GiB", {}, "out_of_memory", "2 GiB"),
        ("no_device_memory", "cuFFT error: CUFFT_ALLOC_FAILED", {}, "out_of_memory", "cuFFT"),
        ("no_device_memory", "can't allocate memory: 9 bytes", {}, "out_of_memory", "9 bytes"),
        ("fail", "message", {}, "error", "ValueError: message"),
        ("fail", "no text", {}, "error", "ValueError: \\udcff is no text"),
        ("forge", {"header": {}, "body": "{"}, {}, "error", "the answer of the task is not JSON"),
        ("forge", {"header": {}, "body": "[" * 10**5}, {}, "error", "is not JSON"),
        ("forge", {"header": {"status": "fine"}, "body": "1"}, {}, "crashed", "and no result"),
        ("forge", {"header": {"error": ["e"]}, "body": "1"}, {}, "crashed", "and no result"),
        ("forge", {"header": {"size": None}, "body": "1"}, {}, "crashed", "and no result"),
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
        beside = pool.submit(sandbox.run, f"{TASKS}:nap", 0.1)
        outcome = sandbox.run(f"{TASKS}:{function}", payload, **limits)
        assert beside.result().value == "rested"
    assert (outcome.status, outcome.value) == (status, None)
    assert error in outcome.error
    assert sandbox.run(f"{TASKS}:echo", "after").value == "after"


@pytest.mark.parametrize("limit", [math.inf, 1e300])
def test_a_limit_may_be_infinite(sandbox, limit):
    outcome = sandbox.run(f"{TASKS}:echo", 1, time_s=limit, memory_mib=limit)
    assert (outcome.status, outcome.value) == ("ok", 1), outcome


@linux
@pytest.mark.parametrize(
    ("function", "payload", "memory_mib"),
    [
        ("allocate", 200, 100),
        ("reserve", 4e9, 100),  # nothing touched: the backstop
        ("segfault_with", 95, 100),  # within 10 % of the limit
        ("family", {"shared_mib": 1, "own_mib": 60, "seconds": 10}, 100),
        ("family", {"shared_mib": 1, "own_mib": 120, "seconds": 10}, 100),
    ],
)
def test_memory(sandbox, function, payload, memory_mib):
    outcome = sandbox.run(f"{TASKS}:{function}", payload, memory_mib=memory_mib, time_s=20)
    assert outcome.status == "out_of_memory", outcome
    assert sandbox.run(f"{TASKS}:echo", 1, memory_mib=memory_mib).value == 1


@linux
def test_a_hang_near_the_limit_is_put_down_to_memory_and_one_far_from_it_is_not(sandbox):
    payload = {"own_mib": 1, "seconds": 10}
    for shared, status in ((95, "out_of_memory"), (30, "timed_out")):
        outcome = sandbox.run(
            f"{TASKS}:family", payload | {"shared_mib": shared}, memory_mib=100, time_s=0.4
        )
        assert outcome.status == status


@linux
def test_pages_that_children_share_count_once(sandbox):
    payload = {"shared_mib": 80, "own_mib": 1, "seconds": 0.5}
    outcome = sandbox.run(f"{TASKS}:family", payload, memory_mib=150)
    assert outcome.status == "ok", outcome.error
    assert 80 <= outcome.peak_memory_mib < 110


@linux
def test_peak_memory_is_that_of_the_task(sandbox):
    assert sandbox.run(f"{TASKS}:echo", 1).peak_memory_mib < 5
    for status_of in (f"{TASKS}:allocate", f"{TASKS}:segfault_with"):
        assert 50 - UNCOUNTED_MIB <= sandbox.run(status_of, 50).peak_memory_mib < 60


@linux
@pytest.mark.parametrize("own_mib", [1, 30])
def test_pages_of_mapped_files_are_not_memory_of_the_task(sandbox, tmp_path, own_mib):
    path = tmp_path / "rows.npy"
    np.save(path, np.ones(80 * 2**17))
    # mapped for many looks of the supervisor: what is unmapped between two of them may count
    payload = {"path": str(path), "own_mib": own_mib, "seconds": 0.3}
    outcome = sandbox.run(f"{TASKS}:read_mapped_file", payload, memory_mib=60)
    assert outcome.status == "ok", outcome.error
    assert outcome.value == 80 * 2**17
    assert own_mib - UNCOUNTED_MIB <= outcome.peak_memory_mib < own_mib + 15


def test_time_is_that_of_the_task(sandbox):
    assert 0.2 <= sandbox.run(f"{TASKS}:nap", 0.2).seconds < 2
    assert 0.2 <= sandbox.run(f"{TASKS}:nap", 60, time_s=0.2).seconds < 2


def test_values_pass_as_json(sandbox):
    payload = {"text": "é\n\0", "list": [1, None, True, 1e300], "empty": {}}
    outcome = sandbox.run(f"{TASKS}:echo", payload)
    assert (outcome.status, outcome.value, outcome.error) == ("ok", payload, "")
    assert sandbox.run(f"{TASKS}:echo", (1, 2)).value == [1, 2]
    assert sandbox.run(f"{TASKS}:echo", "x" * (3 * MIB)).value == "x" * (3 * MIB)
    assert sandbox.run(f"{TASKS}:give_back", "large").value == "x" * (5 * MIB)
    assert sandbox.run(f"{TASKS}:give_back", "unprintable").value == "\ud800"
    assert sandbox.run(f"{TASKS}:give_back", "numpy float").value == 0.5


def test_not_a_number_passes(sandbox):
    nan, up, down = sandbox.run(f"{TASKS}:give_back", "nan").value
    assert math.isnan(nan)
    assert (up, down) == (math.inf, -math.inf)
    assert sandbox.run(f"{TASKS}:echo", math.inf).value == math.inf


def test_the_end_of_what_was_printed_is_kept(sandbox):
    outcome = sandbox.run(f"{TASKS}:print_much", 8)
    assert outcome.value == "printed"
    assert len(outcome.printed) == 4000
    assert outcome.printed.endswith("x\nthe end, in C�\n")


def test_what_was_printed_before_the_end_is_kept(sandbox):
    crash = sandbox.run(f"{TASKS}:segfault", None).printed
    assert crash.startswith("last words\n")
    assert "in segfault" in crash  # the Python line at fault
    assert sandbox.run(f"{TASKS}:hang_in_python", 0, time_s=0.2).printed == "about to hang\n"


def test_a_result_is_not_written_into_files_of_the_task(sandbox, tmp_path):
    assert sandbox.run(f"{TASKS}:replace_everything", str(tmp_path)).status == "crashed"
    assert not any("xxx" in file.read_text() for file in tmp_path.iterdir())


def test_tasks_run_beside_each_other(sandbox, tmp_path):
    payload = {"folder": str(tmp_path), "n_tasks": 4}
    with ThreadPoolExecutor(4) as pool:
        outcomes = pool.map(lambda _: sandbox.run(f"{TASKS}:meet", payload), range(4))
    assert [outcome.value for outcome in outcomes] == [True] * 4


def test_every_task_has_its_own_process(sandbox):
    first, second = (sandbox.run(f"{TASKS}:where", None).value for _ in range(2))
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
    monkeypatch.syspath_prepend(str(SUPPORT))
    with Sandbox() as warm:
        task = warm.run(f"{TASKS}:where", None).value
    assert task["threads"] == "1"
    assert task["path"] == [str(folder) for folder in sys.path]
    assert "mlflow" not in task["modules"]


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


@pytest.mark.slow
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
