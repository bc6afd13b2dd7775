"""Libraries of arrays that tests compute with: the standard's, torch on the CPU, and on a GPU."""

import contextlib

import pytest

LIBRARIES = ("array_api_strict", "torch", "torch on cuda")


@contextlib.contextmanager
def library(name):
    """Give the module of a library; arrays are made on the GPU where the name says so."""
    package, _, device = name.partition(" on ")
    module = pytest.importorskip(package, reason="the extra gpu is not installed")
    if not device:
        yield module
        return
    if not module.cuda.is_available():
        pytest.skip("torch finds no GPU")
    module.set_default_device(device)
    try:
        yield module
    finally:
        module.set_default_device(None)
