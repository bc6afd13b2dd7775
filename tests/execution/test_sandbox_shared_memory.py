"""Memory that no process maps counts, and nothing of it outlives a task."""

import mmap
import os
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbench.execution.sandbox import shared_memory
from tests.support.harmful_tasks import MIB
from tests.support.processes_here import linux

pytestmark = linux

TASKS = "harmful_tasks"
FOLDER = Path("/dev/shm")


@pytest.fixture
def name():
    """Yield the beginning of the names of this test's files in the folder."""
    start = f"kbench-test-{uuid.uuid4().hex}"
    yield start
    for path in FOLDER.glob(f"{start}*"):
        path.unlink()


def left(name):
    return sorted(path.name for path in FOLDER.glob(f"{name}*"))


@pytest.mark.parametrize(
    ("function", "more"),
    [
        ("fill_memfd", {}),
        ("fill_file", {}),
        ("fill_file", {"in_child": True}),
        ("fill_deleted_file", {}),
        ("fill_files", {"megabytes": 20, "n_files": 8, "seconds": 0.05}),
    ],
)
def test_a_task_that_fills_shared_memory_is_killed(sandbox, name, function, more):
    payload = {"path": f"{FOLDER}/{name}", "megabytes": 150, "seconds": 10} | more
    outcome = sandbox.run(f"{TASKS}:{function}", payload, memory_mib=100, time_s=20)
    assert (outcome.status, outcome.error) == ("out_of_memory", "limit of 100 MiB"), outcome
    assert outcome.seconds < 5
    assert outcome.peak_memory_mib > 100
    assert left(name) == []


@pytest.mark.parametrize("megabytes", [60, 150])
def test_segments_count_and_are_removed(sandbox, megabytes):
    payload = {"megabytes": megabytes, "seconds": 0.5}
    outcome = sandbox.run(f"{TASKS}:fill_segment", payload, memory_mib=100)
    assert outcome.status == ("ok" if megabytes < 100 else "out_of_memory"), outcome
    assert outcome.peak_memory_mib >= min(megabytes, 100)
    assert int(outcome.printed) not in {segment.id for segment in shared_memory._segments()}


@pytest.mark.parametrize("function", ["fill_memfd", "fill_file", "map_file"])
def test_shared_memory_counts_once(sandbox, name, function):
    payload = {"path": f"{FOLDER}/{name}", "name": name, "megabytes": 60, "seconds": 0.4}
    outcome = sandbox.run(f"{TASKS}:{function}", payload, memory_mib=100)
    assert outcome.status == ("crashed" if function == "map_file" else "ok"), outcome
    assert 60 <= outcome.peak_memory_mib < 75
    assert left(name) == []


def test_tasks_beside_each_other_count_and_clean_their_own(sandbox, name):
    small, large = (f"{FOLDER}/{name}-{which}" for which in ("small", "large"))
    with ThreadPoolExecutor(2) as pool:
        beside = pool.submit(
            sandbox.run,
            f"{TASKS}:fill_file",
            {"path": small, "megabytes": 5, "seconds": 1.5},
            memory_mib=100,
        )
        time.sleep(0.3)
        payload = {"path": large, "megabytes": 150, "seconds": 10}
        outcome = sandbox.run(f"{TASKS}:fill_file", payload, memory_mib=100)
        assert outcome.status == "out_of_memory"
        assert left(name) == [Path(small).name]
        assert beside.result().status == "ok"
        assert beside.result().peak_memory_mib < 20
    assert left(name) == []


def test_files_that_are_closed_soon_are_removed(sandbox, name):
    payload = {"path": f"{FOLDER}/{name}", "megabytes": 1, "n_files": 5, "pause": 0.05}
    assert sandbox.run(f"{TASKS}:fill_files", payload).value == "written"
    assert left(name) == []


def test_files_named_by_the_process_are_removed(sandbox, name):
    assert sandbox.run(f"{TASKS}:leave_named_folder", name).status == "ok"
    assert list(FOLDER.glob(f"joblib_memmapping_folder_*{name}")) == []


def test_files_of_other_programs_stay(sandbox, name):
    old, new = FOLDER / f"{name}-old", FOLDER / f"{name}-new"
    old.write_bytes(b"x" * 40 * MIB)
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(sandbox.run, f"{TASKS}:grow_file", str(old))
        time.sleep(0.1)
        new.write_bytes(b"x" * MIB)  # while the task runs
        assert task.result().value == "grown"
        assert task.result().peak_memory_mib < 20  # what it has added
    assert left(name) == [f"{name}-new", f"{name}-old"]
    assert sandbox.run(f"{TASKS}:replace_file", str(old)).value == "replaced"
    assert old.read_bytes() == b"new"
    assert sandbox.run(f"{TASKS}:replace_file", f"{FOLDER}/{name}-renamed").value == "replaced"
    assert left(name) == [f"{name}-new", f"{name}-old"]


@pytest.mark.parametrize("how", ["open", "mapped"])
def test_a_file_that_another_program_uses_stays(sandbox, name, how):
    """A task may have attached to it: nobody knows who made it."""
    path = FOLDER / name
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(sandbox.run, f"{TASKS}:nap", 0.1)
        warm = sandbox.run(f"{TASKS}:where", None)
        assert task.result().value == "rested"
        assert warm.status == "ok"
        payload = {"path": str(path), "megabytes": 1, "seconds": 0.5}
        task = pool.submit(sandbox.run, f"{TASKS}:fill_file", payload)
        give_up = time.monotonic() + 10
        while not path.exists() and time.monotonic() < give_up:
            time.sleep(0.001)
        descriptor = os.open(path, os.O_RDWR)
        if how == "mapped":
            time.sleep(0.05)
            view = mmap.mmap(descriptor, 4096)
            os.close(descriptor)
        assert task.result().value == "written"
        assert left(name) == [name]
        if how == "mapped":
            view.close()
        else:
            os.close(descriptor)


def test_lease_and_use(name):
    path = FOLDER / name
    path.write_bytes(b"x")
    inode = path.stat().st_ino
    assert shared_memory._is_unused(path, inode)
    assert not shared_memory._is_unused(path, inode + 1)
    for mode in (os.O_RDONLY, os.O_WRONLY):
        descriptor = os.open(path, mode)
        assert not shared_memory._is_unused(path, inode)
        os.close(descriptor)
    assert shared_memory._is_unused(path, inode)
