"""The machine describes itself, the same way each time, without heavy imports."""

import dataclasses
import json
import os
import platform
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbench import machine
from kbench.machine import STALLED, Snapshot, contention, snapshot


def test_the_id_is_the_same_in_every_process():
    code = "import kbench.machine as m, sys; print(m.machine_id(), 'sklearn' in sys.modules)"
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.stdout.decode().split() == [machine.machine_id(), "False"]
    assert len(machine.machine_id()) == 12
    int(machine.machine_id(), 16)


def test_another_host_has_another_id(monkeypatch):
    ours = machine.machine_id()
    monkeypatch.setattr(platform, "node", lambda: "another")
    machine.machine_id.cache_clear()
    try:
        assert machine.machine_id() != ours
    finally:
        machine.machine_id.cache_clear()


def test_description_is_json_and_complete():
    this = machine.describe()
    assert json.loads(json.dumps(dataclasses.asdict(this))) == dataclasses.asdict(this)
    assert 1 <= this.physical_cores <= this.logical_cores <= os.cpu_count()
    assert this.cpu
    assert this.memory_mib > 100


def test_versions_are_those_in_use():
    import numpy
    import scipy

    found = machine.versions()
    assert found["python"] == platform.python_version()
    assert found["numpy"] == numpy.__version__
    assert found["scipy"] == scipy.__version__
    assert "scikit-learn" in found
    assert "kbench-core" in found
    assert "blas" in found


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_affinity_is_heeded():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert machine.logical_cores() == machine.physical_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Another /proc and /sys, of a machine with 4 cores of 2 threads."""
    for name, folder in (("PROC", "proc"), ("_CPUS", "cpus"), ("_CGROUPS", "cgroup")):
        monkeypatch.setattr(machine, name, tmp_path / folder)
    monkeypatch.setattr(machine, "_usable", lambda: set(range(8)))

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    for cpu in range(8):
        write(f"cpus/cpu{cpu}/topology/thread_siblings_list", f"{cpu % 4},{cpu % 4 + 4}\n")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=2**33))
    write("proc/self/cgroup", "0::/user/job\n")
    return write


def test_threads_of_a_core_count_once(pretend):
    assert (machine.logical_cores(), machine.physical_cores()) == (8, 4)
    assert machine.memory_mib() == 8192


def test_the_tightest_cgroup_above_counts(pretend):
    pretend("cgroup/user/job/cpu.max", "max 100000\n")
    pretend("cgroup/user/job/memory.max", "max\n")
    assert (machine.logical_cores(), machine.physical_cores()) == (8, 4)
    pretend("cgroup/user/cpu.max", "150000 100000\n")
    pretend("cgroup/user/memory.max", f"{2**30}\n")
    assert (machine.logical_cores(), machine.physical_cores()) == (2, 2)
    assert machine.memory_mib() == 1024
    pretend("cgroup/user/cpu.max", "10000 100000\n")
    assert machine.logical_cores() == 1


@pytest.mark.parametrize(
    ("flags", "name"), [("avx avx2 avx512f", "X (avx512f)"), ("avx avx2", "X (avx2)"), ("sse", "X")]
)
def test_the_name_of_the_cpu_has_its_vectors(tmp_path, monkeypatch, flags, name):
    # one name is that of several CPUs in virtual machines, and their last digits differ
    (tmp_path / "cpuinfo").write_text(
        f"processor: 0\nmodel\t: 1\nmodel name\t: X\nflags\t: {flags}\n"
    )
    monkeypatch.setattr(machine, "PROC", tmp_path)
    assert machine.cpu_model.__wrapped__() == name


def test_a_system_that_tells_nothing(tmp_path, monkeypatch):
    for module, name in (
        (machine, "PROC"),
        (machine, "_CPUS"),
        (machine, "_CGROUPS"),
    ):
        monkeypatch.setattr(module, name, tmp_path / "absent")
    machine.cpu_model.cache_clear()
    try:
        this = machine.describe()
        assert this.physical_cores == this.logical_cores >= 1
        before = snapshot()
        assert before.stalled_s is None
        assert contention(before, snapshot()).reasons == ()
    finally:
        machine.cpu_model.cache_clear()


def test_calibration_is_short():
    start = time.perf_counter()
    seconds = machine.calibrate()
    elapsed = time.perf_counter() - start
    assert 0 < 3 * seconds < elapsed  # the middle of seven, and one before


# -- contention -------------------------------------------------------------------

QUIET = Snapshot(time_s=0.0, running=1, cpu_ticks=0, steal_ticks=0, stalled_s=0.0)


def later(**changes):
    return dataclasses.replace(QUIET, **{"time_s": 10.0, "cpu_ticks": 2000, **changes})


@pytest.mark.parametrize(
    ("changes", "slots", "reasons"),
    [
        ({}, 1, []),
        ({"steal_ticks": 30}, 1, []),
        ({"steal_ticks": 200}, 1, ["10% of the CPU time"]),
        ({"stalled_s": 0.5}, 1, []),
        ({"stalled_s": 5.0}, 1, ["during 50% of the time"]),
        ({}, 10_000, ["10000 slots on"]),
        ({"steal_ticks": 200, "stalled_s": 5.0}, 10_000, ["slots", "stolen", "waited"]),
    ],
)
def test_reasons_to_doubt_a_time(changes, slots, reasons):
    found = contention(QUIET, later(**changes), slots).reasons
    assert len(found) == len(reasons)
    for text, part in zip(found, reasons, strict=True):
        assert part in text


def test_the_run_queue_counts_where_the_kernel_does_not_say_who_waited():
    unknown = dataclasses.replace(QUIET, stalled_s=None, running=1000)
    assert "1000 processes" in contention(unknown, later(stalled_s=None, running=1000)).reasons[0]
    assert not contention(unknown, later(stalled_s=None, running=1)).reasons


def test_what_a_task_knows_of_itself_counts_instead_of_who_else_waited():
    busy = later(stalled_s=QUIET.stalled_s + 1e6)
    assert contention(QUIET, busy).reasons
    assert not contention(QUIET, busy, waited=0.05).reasons
    assert "waited for a CPU during 40%" in contention(QUIET, later(), waited=0.4).reasons[0]


@given(ticks=st.integers(0, 10**6), steal=st.integers(0, 10**6), stalled=st.floats(0, 1e6))
def test_shares_are_shares(ticks, steal, stalled):
    after = later(cpu_ticks=ticks + steal, steal_ticks=steal, stalled_s=stalled)
    found = contention(QUIET, after)
    assert 0 <= found.steal <= 1
    assert 0 <= found.stalled <= 1


@pytest.mark.skipif(snapshot().stalled_s is None, reason="the kernel does not count pressure")
def test_more_busy_processes_than_cores_are_noticed():
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(3 * machine.logical_cores())]
    try:
        time.sleep(0.2)
        before = snapshot()
        time.sleep(0.5)
        found = contention(before, snapshot())
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert found.stalled > STALLED
    assert found.reasons
