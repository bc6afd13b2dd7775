"""Devices that compute embeddings and learners: the host, or torch on the CPU or on a GPU."""

import importlib
import os
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import TypeVar

import numpy as np

from kbench.arrays import Array
from kbench.errors import SuiteError
from kbench.evaluation import lazy_rows
from kbench.messages import format_memory
from kbench.registry.installed import how_to_get

VISIBLE = "CUDA_VISIBLE_DEVICES"

ADDRESS_MIB = 2.0**40
"""Address space of a task with a device: drivers map all memory of a GPU and of the host."""

BLOCK_BYTES = 2**27
"""Embedded rows that a GPU computes together: it is idle while the host prepares the next ones."""

T = TypeVar("T")


class Device:
    """The host: arrays are those of numpy.

    >>> Device.of("cpu").is_host
    True
    """

    name = "cpu"
    is_host = True
    fits_bytes = 2**28
    """Memory of the fits that share their passes over blocks; one fit may have more."""

    n_slots: int | None = None
    """Tasks that may compute on it at a time: one on each GPU; None for no limit."""

    description = ""
    """Its name and memory, and the versions of its libraries; empty for the host."""

    @staticmethod
    def of(name: str) -> "Device":
        """Return the device that a protocol names; raise SuiteError if it is missing."""
        return HOST if name == "cpu" else TorchDevice(name)

    def limit(self, memory_mib: float) -> None:
        """Let the task use so much memory of a GPU."""

    def begin(self) -> None:
        """Prepare for a task: the peak memory is measured from here."""

    def put(self, X: Array, dtype: np.dtype) -> Array:
        """Return preprocessed rows on the device in a type.

        On the host they become float32 if that is asked for; others keep their type.
        """
        return X.astype(dtype, copy=False) if dtype == np.float32 else X

    def synchronise(self) -> None:
        """Wait until everything is computed."""

    def wait(self, value: T) -> T:
        """Return the value of a step, once everything is computed."""
        self.synchronise()
        return value

    def dispatch(self) -> AbstractContextManager[object]:
        """Let estimators of scikit-learn compute on the device in the block."""
        return nullcontext()

    @property
    def metrics(self) -> dict[str, float]:
        """Peak memory of a GPU."""
        return {}


HOST = Device()


class TorchDevice(Device):
    """The CPU ("torch-cpu") or a GPU ("cuda"), with arrays of torch."""

    is_host = False
    fits_bytes = 2**30

    def __init__(self, name: str) -> None:
        self.name = name
        self._torch = torch = _load(name, "torch")
        _load(name, "array_api_compat.torch")
        self._device = "cuda" if name == "cuda" else "cpu"
        self.description = f"CPU by torch {torch.__version__}"
        if name != "cuda":
            return
        if not torch.cuda.is_available():
            built = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "without CUDA"
            raise SuiteError(
                'device = "cuda" needs a GPU, and torch finds none: '
                f"torch {torch.__version__} is built {built}; without a GPU there are "
                '"cpu" and "torch-cpu"'
            )
        self.n_slots = torch.cuda.device_count()
        gpu = torch.cuda.get_device_properties(0)
        self._memory_mib = gpu.total_memory / 2**20
        self.description = (
            f"{gpu.name} ({format_memory(self._memory_mib)}) by torch {torch.__version__}, "
            f"CUDA {torch.version.cuda}, TF32 off"
        )

    def limit(self, memory_mib: float) -> None:
        """Let the task use so much memory of a GPU."""
        if self._device == "cuda":
            share = min(1.0, memory_mib / self._memory_mib)
            self._torch.cuda.set_per_process_memory_fraction(share)

    def begin(self) -> None:
        """Prepare for a task: the peak memory is measured from here."""
        use_torch()
        # TF32 has the digits of half precision
        self._torch.set_float32_matmul_precision("highest")
        if self._device == "cuda":
            self._torch.cuda.reset_peak_memory_stats()

    def put(self, X: Array, dtype: np.dtype) -> Array:
        """Return preprocessed rows on the device in a type."""
        return self._torch.from_numpy(np.require(X, dtype, ["C", "W"])).to(self._device)

    def synchronise(self) -> None:
        """Wait until everything is computed."""
        if self._device == "cuda":
            self._torch.cuda.synchronize()

    def dispatch(self) -> AbstractContextManager[object]:
        """Let estimators of scikit-learn compute on the device in the block."""
        sklearn = importlib.import_module("sklearn")
        context: AbstractContextManager[object] = sklearn.config_context(array_api_dispatch=True)
        return context

    @property
    def metrics(self) -> dict[str, float]:
        """Peak memory of a GPU."""
        peak = self._torch.cuda.max_memory_allocated() if self._device == "cuda" else 0
        return {"device_memory_mib": peak / 2**20} if peak else {}


def gpu_block_rows(width: float, dtype: np.dtype | str) -> int:
    """Return how many rows of `width` columns, of inputs or embedded, a GPU computes together."""
    n = BLOCK_BYTES / (lazy_rows.BLOCK_ROWS * width * np.dtype(dtype).itemsize)
    return lazy_rows.BLOCK_ROWS * max(1, int(n))


def use_torch() -> None:
    """Let this process compute on torch: scikit-learn wants it before scipy is imported."""
    os.environ["SCIPY_ARRAY_API"] = "1"
    importlib.import_module("array_api_compat.torch")


def gpu_of(slot: int) -> str:
    """Return the name of the GPU of a slot, among those that this process may see."""
    visible = [name for name in os.environ.get(VISIBLE, "").split(",") if name]
    return visible[slot % len(visible)] if visible else str(slot)


def identify_gpus(n_slots: int) -> dict[str, str]:
    """Return the names of the GPUs of some slots, by what identifies each for all processes."""
    cuda, names = _load("cuda", "torch").cuda, {}
    for slot, name in enumerate(map(gpu_of, range(n_slots))):
        gpu = cuda.get_device_properties(slot % cuda.device_count())
        # parts of one GPU share its UUID
        names[name if name.startswith("MIG-") else str(getattr(gpu, "uuid", name))] = name
    return names


def take_gpu(slot: int) -> None:
    """Let this process see the GPU of a slot only; torch must not have looked for any before."""
    os.environ[VISIBLE] = gpu_of(slot)


def _load(device: str, package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except (ImportError, OSError) as error:  # a library of CUDA may be missing
        raise SuiteError(
            f'device = "{device}" needs torch{how_to_get("torch")} ({error})'
        ) from None
