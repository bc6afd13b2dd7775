"""A torch that finds GPUs where there are none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace


def fake_torch(
    monkeypatch, n_gpus: int, built: str | None = "13.0", uuids: Sequence[str] = ()
) -> list[float]:
    """Replace torch by one that finds some GPUs; return the shares of memory that it is given.

    Old versions of torch tell no UUIDs.
    """
    shares: list[float] = []

    def describe(number: int) -> SimpleNamespace:
        assert number < n_gpus
        gpu = SimpleNamespace(name="NVIDIA H100", total_memory=2**33)
        if uuids:
            gpu.uuid = uuids[number]
        return gpu

    cuda = SimpleNamespace(
        is_available=lambda: n_gpus > 0,
        device_count=lambda: n_gpus,
        get_device_properties=describe,
        set_per_process_memory_fraction=shares.append,
    )
    version = SimpleNamespace(cuda=built)
    torch = SimpleNamespace(cuda=cuda, version=version, __version__="2.13.0")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "array_api_compat", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "array_api_compat.torch", SimpleNamespace())
    return shares
