"""Devices of this machine, and the tasks that they get."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from kbench.errors import SuiteError
from kbench.execution import devices
from kbench.execution.devices import count_slots, describe_device, take_device
from kbench.planning.suite_plan import Options
from kbench.records import Suite


def fake_torch(monkeypatch, n_gpus: int, built: str | None = "13.0"):
    cuda = SimpleNamespace(is_available=lambda: n_gpus > 0, device_count=lambda: n_gpus)
    version = SimpleNamespace(cuda=built)
    torch = SimpleNamespace(cuda=cuda, version=version, __version__="2.13.0")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "array_api_compat", SimpleNamespace())


def test_host_needs_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert count_slots("cpu") is None


def test_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SuiteError, match=r"needs torch: pip install 'kbench-core\[gpu\]'"):
        count_slots("torch-cpu")


@pytest.mark.parametrize(
    ("built", "why"), [("13.0", "a build for CUDA 13.0"), (None, "a build without CUDA")]
)
def test_missing_gpu_is_one_message(monkeypatch, built, why):
    fake_torch(monkeypatch, 0, built)
    with pytest.raises(SuiteError, match=why):
        count_slots("cuda")
    assert count_slots("torch-cpu") is None


def test_each_gpu_has_one_slot(monkeypatch):
    fake_torch(monkeypatch, 2)
    assert count_slots("cuda") == 2
    suite = Suite("s", ())
    monkeypatch.setattr("kbench.machine.physical_cores", lambda: 16)
    monkeypatch.setattr(Suite, "protocols", (SimpleNamespace(threads=1),))
    assert Options(jobs=None).resolve_jobs(suite, 2).jobs == 2
    assert Options(jobs=1).resolve_jobs(suite, 2).jobs == 1
    assert Options(jobs=5).resolve_jobs(suite, 2).jobs == 2
    assert Options(jobs=None).resolve_jobs(suite).jobs == 16


@pytest.mark.parametrize(
    ("visible", "slot", "taken"), [(None, 1, "1"), ("3,5", 0, "3"), ("3,5", 1, "5"), ("7", 1, "7")]
)
def test_slot_sees_one_gpu(monkeypatch, visible, slot, taken):
    monkeypatch.delenv(devices.VISIBLE, raising=False)
    if visible is not None:
        monkeypatch.setenv(devices.VISIBLE, visible)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    fake_torch(monkeypatch, 2)
    cuda, shares = sys.modules["torch"].cuda, []
    cuda.get_device_properties = lambda number: SimpleNamespace(total_memory=2**33)
    cuda.set_per_process_memory_fraction = shares.append
    take_device(slot, 4096.0)
    assert os.environ[devices.VISIBLE] == taken
    take_device(slot, 16384.0)
    assert shares == [0.5, 1.0]


def test_device_is_described_with_its_libraries(monkeypatch):
    fake_torch(monkeypatch, 1)
    gpu = SimpleNamespace(name="NVIDIA H100", total_memory=2**36)
    torch = sys.modules["torch"]
    torch.cuda.get_device_properties = lambda number: gpu
    matmul = SimpleNamespace(allow_tf32=False)
    torch.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=matmul))
    text = "NVIDIA H100 (64 GiB) by torch 2.13.0, CUDA 13.0, TF32 off"
    assert describe_device("cuda") == text
    assert describe_device("torch-cpu") == "CPU by torch 2.13.0"
    assert describe_device("cpu") == ""
