"""Devices that compute embeddings and learners: the host, or torch on the CPU or on a GPU."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np

from kbench.errors import KbenchError

T = TypeVar("T")

HOST_FITS_BYTES, DEVICE_FITS_BYTES = 2**28, 2**30
"""Memory of the fits that share their passes over blocks; one fit may have more."""


class Device:
    """The host: arrays are those of numpy.

    >>> Device.of("cpu").is_host
    True
    """

    name = "cpu"
    is_host = True
    fits_bytes = HOST_FITS_BYTES

    @staticmethod
    def of(name: str) -> Device:
        """Return the device that a protocol names; raise KbenchError if it is missing."""
        return HOST if name == "cpu" else TorchDevice(name)

    def begin(self) -> None:
        """Prepare for a task: the peak memory is measured from here."""

    def put(self, X: Any, dtype: np.dtype) -> Any:
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
    fits_bytes = DEVICE_FITS_BYTES

    def __init__(self, name: str) -> None:
        self.name = name
        # scikit-learn wants it; sandboxes have it before scipy is imported
        os.environ.setdefault("SCIPY_ARRAY_API", "1")
        try:
            import array_api_compat.torch  # noqa: F401
            import torch
        except ImportError as error:
            raise KbenchError(
                f'device = "{name}" needs torch and array-api-compat, which the extra "gpu" '
                f"installs: {error}"
            ) from None
        self._torch = torch
        self._device = "cuda" if name == "cuda" else "cpu"
        if name == "cuda" and not torch.cuda.is_available():
            raise KbenchError('device = "cuda": torch finds no GPU')

    def begin(self) -> None:
        """Prepare for a task: the peak memory is measured from here."""
        # TF32 has the digits of half precision
        self._torch.set_float32_matmul_precision("highest")
        if self._device == "cuda":
            self._torch.cuda.reset_peak_memory_stats()

    def put(self, X: Any, dtype: np.dtype) -> Any:
        """Return preprocessed rows on the device in a type."""
        rows = np.require(X, dtype, ["C", "W"])
        return self._torch.from_numpy(rows).to(self._device)

    def synchronise(self) -> None:
        """Wait until everything is computed."""
        if self._device == "cuda":
            self._torch.cuda.synchronize()

    def dispatch(self) -> AbstractContextManager[object]:
        """Let estimators of scikit-learn compute on the device in the block."""
        from sklearn import config_context

        context: AbstractContextManager[object] = config_context(array_api_dispatch=True)
        return context

    @property
    def metrics(self) -> dict[str, float]:
        """Peak memory of a GPU."""
        if self._device == "cpu":
            return {}
        return {"device_memory_mib": self._torch.cuda.max_memory_allocated() / 2**20}
