"""Kernels, and the maps F1, F2, F3 and datasets of Balcan, Blum and Vempala (2006).

M.-F. Balcan, A. Blum and S. Vempala, "Kernels as features: On kernels,
margins, and low-dimensional mappings", Machine Learning 65 (2006).
"""

import lazy_loader

from kbench import BANDWIDTH_FACTORS, DatasetSource, FeatureMap, KernelSpec, Ref, Tune, hookimpl

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_data": ["HiddenSubset", "conic", "conic_margin", "hidden_subset"],
        "_map": ["BalcanF1", "BalcanF2", "BalcanF3"],
        "_theory": ["TheorySizes", "theory_sizes"],
    },
)

# names in suite files; the classes of `kbench.kernels` are called so in camel case, and
# not imported here, since that takes numpy
_KERNELS = (
    *("linear", "polynomial", "cosine", "gaussian", "laplace-balcan", "laplace", "matern"),
    *("additive-chi2", "chi2", "intersection", "precomputed"),
    *("sum", "product", "scaled", "normalized"),
)

GRID = {"kernel": (Ref("gaussian", {"bandwidth_factor": Tune(BANDWIDTH_FACTORS)}),)}


def approximates(fitted, X, Y):
    """Return the Gram matrix that F2 and F3 approximate."""
    return fitted.kernel_(X, Y)


def span_of_f2(params):
    """Describe what F2 spans, by the parameters of a suite line (`Ref` and `Tune` in it).

    Where landmarks are uniform, that is what Nystroem features span: number of
    landmarks, and kernels. Empty if no other map spans the same, because the
    landmarks have their own seed or `rank_tolerance` leaves directions out.
    """
    number, kernel = params.get("n_landmarks", 100), params.get("kernel", "gaussian")
    if params.get("random_state") is not None or params.get("rank_tolerance") is not None:
        return ""
    if params.get("sampling", "uniform") != "uniform" or not isinstance(number, int):
        return ""
    kernels = kernel.values if isinstance(kernel, Tune) else (kernel,)
    if "kernel" not in params:
        kernels = [Ref("gaussian", {"bandwidth_factor": factor}) for factor in BANDWIDTH_FACTORS]
    return f"{number} uniform landmarks: {', '.join(sorted(map(_write_kernel, kernels)))}"


def _write_kernel(kernel):
    """Write a kernel, a Gaussian one in the same way however its bandwidth is given."""
    kernel = kernel if isinstance(kernel, Ref) else Ref(str(kernel))
    given = {"bandwidth": "median", "bandwidth_factor": 1.0, **kernel.params}
    bandwidth, factor = given["bandwidth"], given["bandwidth_factor"]
    if kernel.name != "gaussian" or not isinstance(factor, int | float):
        return kernel.label
    if isinstance(bandwidth, int | float):
        return f"gaussian(bandwidth={bandwidth * factor:g})"
    return f"gaussian(bandwidth={factor:g} {bandwidth})"


@hookimpl
def kbench_kernels():
    """List the kernels of `kbench.kernels`, and the lower bound's."""
    classes = {name: name.title().replace("-", "") for name in _KERNELS}
    return [
        *(KernelSpec(name, make=f"kbench.kernels:{cls}") for name, cls in classes.items()),
        KernelSpec("hidden-subset-kernel", make="kbench_balcan._data:HiddenSubset"),
    ]


@hookimpl
def kbench_feature_maps():
    """List F1, F2 and F3."""
    options = {"f1": {}, "f2": {"kernel": approximates, "span": span_of_f2}}
    options["f3"] = {"kernel": approximates}
    return [
        FeatureMap(
            f"balcan-{name}",
            f"kbench_balcan._map:Balcan{name.upper()}",
            GRID,
            family="landmarks",
            **given,
        )
        for name, given in options.items()
    ]


@hookimpl
def kbench_datasets():
    """List the paper's synthetic problems."""
    return [
        DatasetSource("conic", load="kbench_balcan._data:conic"),
        DatasetSource("hidden-subset", load="kbench_balcan._data:hidden_subset"),
    ]
