"""Bytes of the tensors of torch that exist at a time, which a GPU would hold."""

import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_iter  # noqa: E402


class CountedBytes(TorchDispatchMode):
    """Counts the storages that functions of torch get and return in the block; `peak` is the most.

    Those that share the memory of an array of numpy count, as they are copies on a GPU.
    """

    def __init__(self):
        super().__init__()
        self.now, self.peak, self._known = 0, 0, set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self._count((args, kwargs))
        result = function(*args, **(kwargs or {}))
        self._count(result)
        return result

    def _count(self, tree):
        for tensor in tree_iter(tree):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                key = storage._cdata
                if key not in self._known:
                    self._known.add(key)
                    self.now += storage.nbytes()
                    weakref.finalize(storage, self._free, key, storage.nbytes())
        self.peak = max(self.peak, self.now)

    def _free(self, key, n_bytes):
        self._known.discard(key)
        self.now -= n_bytes


def copied_to_host(tensor):
    """Return the values as an array that holds no tensor, as those from a GPU do."""
    return np.array(tensor.detach().numpy(), copy=True)
