"""Devices that tasks compute on: the check before a run, and one task at a time on each GPU."""

from __future__ import annotations

import importlib
import os
from typing import Any

from kbench.errors import SuiteError
from kbench.messages import format_memory
from kbench.registry.installed import how_to_get

VISIBLE = "CUDA_VISIBLE_DEVICES"

ADDRESS_MIB = 2.0**40
"""Address space of a task with a device: drivers map all memory of a GPU and of the host."""


def count_slots(device: str) -> int | None:
    """Return how many tasks may compute on a protocol's device at a time; None for no limit.

    SuiteError is raised if this machine lacks the device, or what computes on it.
    """
    if device == "cpu":
        return None
    torch = _load(device, "torch")
    _load(device, "array_api_compat")
    if device == "torch-cpu":
        return None
    count: int = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        built = torch.version.cuda
        why = (
            f"torch {torch.__version__} is a build for CUDA {built}"
            if built
            else (f"torch {torch.__version__} is a build without CUDA")
        )
        raise SuiteError(
            f'device = "cuda" in [protocol] needs a GPU, and torch finds none: {why}; '
            'devices without a GPU: "cpu", "torch-cpu"'
        )
    return count


def take_device(slot: int, memory_mib: float) -> None:
    """Let this process see one GPU only, that of a slot, and use so much of its memory.

    Torch must not have used one in this process before.
    """
    visible = [name for name in os.environ.get(VISIBLE, "").split(",") if name]
    os.environ[VISIBLE] = visible[slot % len(visible)] if visible else str(slot)
    cuda = importlib.import_module("torch").cuda
    share = memory_mib * 2**20 / cuda.get_device_properties(0).total_memory
    cuda.set_per_process_memory_fraction(min(1.0, share))


def describe_device(device: str) -> str:
    """Describe the device that this process computes on; empty for the host."""
    if device == "cpu":
        return ""
    torch = importlib.import_module("torch")
    if device == "torch-cpu":
        return f"CPU by torch {torch.__version__}"
    gpu = torch.cuda.get_device_properties(0)
    tf32 = "on" if torch.backends.cuda.matmul.allow_tf32 else "off"
    return (
        f"{gpu.name} ({format_memory(gpu.total_memory / 2**20)}) by torch {torch.__version__}, "
        f"CUDA {torch.version.cuda}, TF32 {tf32}"
    )


def _load(device: str, package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise SuiteError(
            f'device = "{device}" in [protocol] needs {package}{how_to_get(package)} ({error})'
        ) from None
