"""Datasets that need no network: those scikit-learn ships, and synthetic ones.

Roles: iris, its one-against-rest tasks and everything synthetic are development
sets, because defaults, examples and tests lean on them; claims are made on
wine, wdbc and digits.
"""

from kbench import DatasetSource, hookimpl

_HERE = "kbench_datasets"


@hookimpl
def kbench_datasets():
    """List the bundled and the synthetic datasets."""
    loaders = {
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
    return [DatasetSource(name, load=f"{_HERE}.{load}") for name, load in loaders.items()]
