"""Devices of this machine, and the tasks that they get."""

from __future__ import annotations

import os
import sys
import threading
from types import SimpleNamespace

import pytest

from kbench.errors import SuiteError
from kbench.evaluation import device
from kbench.evaluation.device import Device, take_gpu
from kbench.execution.engine import over_slots
from kbench.planning.suite_plan import Options
from tests.support.made_torch import fake_torch


def test_host_needs_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    host = Device.of("cpu")
    assert (host.n_slots, host.description) == (None, "")


def test_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SuiteError, match=r"needs torch: pip install 'kbench-core\[gpu\]'"):
        Device.of("torch-cpu")


@pytest.mark.parametrize(("built", "why"), [("13.0", "for CUDA 13.0"), (None, "without CUDA")])
def test_missing_gpu_is_one_message(monkeypatch, built, why):
    fake_torch(monkeypatch, 0, built)
    with pytest.raises(SuiteError, match=f"torch 2.13.0 is built {why}"):
        Device.of("cuda")
    assert Device.of("torch-cpu").n_slots is None


def suite_with(device: str) -> SimpleNamespace:
    return SimpleNamespace(protocols=(SimpleNamespace(threads=1, device=device),))


def test_each_gpu_has_one_slot(monkeypatch):
    fake_torch(monkeypatch, 2)
    monkeypatch.setattr("kbench.machine.physical_cores", lambda: 16)
    jobs = [Options(jobs=given).resolve_jobs(suite_with("cuda")).jobs for given in (None, 1, 2, 5)]
    assert jobs == [2, 1, 2, 2]
    assert Options(jobs=None).resolve_jobs(suite_with("torch-cpu")).jobs == 16


def test_two_gpus_compute_two_tasks_and_never_share_one(monkeypatch):
    fake_torch(monkeypatch, 2)
    jobs = Options(jobs=8).resolve_jobs(suite_with("cuda")).jobs
    assert jobs is not None
    lock, both, free = threading.Lock(), threading.Barrier(jobs, timeout=30), {0, 1}

    def work(task: int, slot: int) -> int:
        with lock:
            free.remove(slot)  # raises if a task is there
        both.wait()  # until the other one computes, too
        with lock:
            free.add(slot)
        return slot

    slots = [slot for _, slot in over_slots(range(6), work, jobs)]
    assert sorted(slots) == [0, 0, 0, 1, 1, 1]


def test_tasks_elsewhere_have_no_device():
    with pytest.raises(SuiteError, match=r'device = "cuda" needs tasks on this'):
        Options().resolve_jobs(suite_with("cuda"), is_here=False)
    assert Options(jobs=None).resolve_jobs(suite_with("cpu"), is_here=False).jobs is None


@pytest.mark.parametrize(
    ("visible", "slot", "taken"), [(None, 1, "1"), ("3,5", 0, "3"), ("3,5", 1, "5"), ("7", 1, "7")]
)
def test_slot_sees_one_gpu(monkeypatch, visible, slot, taken):
    environment = {} if visible is None else {device.VISIBLE: visible}
    monkeypatch.setattr(os, "environ", environment)
    take_gpu(slot)
    assert environment[device.VISIBLE] == taken


@pytest.mark.parametrize(
    ("visible", "uuids", "identities"),
    [
        ("", ["b2", "a1"], {"b2": "0", "a1": "1"}),
        ("1,0", ["a1", "b2"], {"a1": "1", "b2": "0"}),
        ("GPU-a1", ["a1"], {"a1": "GPU-a1"}),  # by index and by UUID it is the same
        ("0", ["a1"], {"a1": "0"}),
        ("MIG-x", ["a1"], {"MIG-x": "MIG-x"}),  # another part of the same GPU is free
        ("3,5", [], {"3": "3", "5": "5"}),
    ],
)
def test_a_gpu_is_identified_however_it_is_named(monkeypatch, visible, uuids, identities):
    fake_torch(monkeypatch, len(uuids) or 2, uuids=uuids)
    monkeypatch.setenv(device.VISIBLE, visible)
    assert device.identify_gpus(len(identities)) == identities


def test_memory_of_a_gpu_is_limited(monkeypatch):
    shares = fake_torch(monkeypatch, 1)
    for limit_mib in (2048.0, 16384.0):
        Device.of("cuda").limit(limit_mib)
    assert shares == [0.25, 1.0]


def test_device_is_described_with_its_libraries(monkeypatch):
    fake_torch(monkeypatch, 1)
    assert Device.of("cuda").description == (
        "NVIDIA H100 (8 GiB) by torch 2.13.0, CUDA 13.0, TF32 off"
    )
    assert Device.of("torch-cpu").description == "CPU by torch 2.13.0"
