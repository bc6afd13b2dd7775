"""Datasets that need no network: those scikit-learn ships, and synthetic ones.

Roles: iris, its one-against-rest tasks and everything synthetic are development
sets, because defaults, examples and tests lean on them; claims are made on
wine, wdbc and digits.
"""

import importlib

from kbench import DatasetSource, hookimpl

_SOURCES = {
    "iris": "_bundled:load_iris",
    "iris-setosa": "_bundled:load_iris_setosa",
    "iris-versicolor": "_bundled:load_iris_versicolor",
    "iris-virginica": "_bundled:load_iris_virginica",
    "wine": "_bundled:load_wine",
    "wdbc": "_bundled:load_wdbc",
    "digits": "_bundled:load_digits",
    "two-moons": "_synthetic:two_moons",
    "circles": "_synthetic:circles",
    "checkerboard": "_synthetic:checkerboard",
    "polytope": "_synthetic:polytope",
}
_PUBLIC = {place.partition(":")[2]: place.partition(":")[0] for place in _SOURCES.values()}
__all__ = list(_PUBLIC)


def __getattr__(name):
    """Import a public function when it is first asked for."""
    if name in _PUBLIC:
        return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    """List the public functions."""
    return __all__


@hookimpl
def kbench_datasets():
    """List the bundled and the synthetic datasets."""
    return [DatasetSource(name, load=f"{__name__}.{place}") for name, place in _SOURCES.items()]
