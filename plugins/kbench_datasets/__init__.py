"""Datasets available offline: those of scikit-learn, and synthetic ones.

Roles: iris, its one-against-rest tasks and everything synthetic are development
sets, because defaults, examples and tests depend on them; claims are made on
wine, wdbc, digits and diabetes.
"""

import lazy_loader

from kbench import DatasetSource, hookimpl

# functions by the names of their datasets
_FUNCTIONS = {
    "_bundled": {
        "iris": "load_iris",
        "iris-setosa": "load_iris_setosa",
        "iris-versicolor": "load_iris_versicolor",
        "iris-virginica": "load_iris_virginica",
        "wine": "load_wine",
        "wdbc": "load_wdbc",
        "digits": "load_digits",
        "diabetes": "load_diabetes",
    },
    "_synthetic": {
        "two-moons": "two_moons",
        "circles": "circles",
        "checkerboard": "checkerboard",
        "polytope": "polytope",
        "hypersphere-shells": "hypersphere_shells",
        "friedman1": "friedman1",
        "friedman2": "friedman2",
        "friedman3": "friedman3",
    },
}
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={module: list(named.values()) for module, named in _FUNCTIONS.items()}
)


@hookimpl
def kbench_datasets():
    """List the bundled and the synthetic datasets."""
    return [
        DatasetSource(name, load=f"{__name__}.{module}:{function}")
        for module, named in _FUNCTIONS.items()
        for name, function in named.items()
    ]
