"""Feature maps to compare with: scikit-learn's, and the ones people ask for.

Maps with a bandwidth share three parameters: `gamma`, a number or "median";
`gamma_factor`, which multiplies the median heuristic and is what the default
grids search over; and `random_state`. A suite line that gives numbers for
`gamma` gives ``gamma_factor = 1`` with them, or equal candidates are fitted
again.
"""

from __future__ import annotations

import importlib

from kbench import FeatureMap, Ref, hookimpl

_HOMES = {
    "ArcCosineFeatures": "_arc_cosine",
    "Identity": "_identity",
    "KMeansNystroem": "_nystroem",
    "LaplaceFourierFeatures": "_fourier",
    "LeverageNystroem": "_nystroem",
    "MaternFourierFeatures": "_fourier",
    "OrthogonalFourierFeatures": "_fourier",
    "PolynomialMap": "_polynomial",
    "PolynomialSketch": "_polynomial",
    "QMCFourierFeatures": "_fourier",
    "RPCholeskyNystroem": "_nystroem",
    "RandomBinningFeatures": "_binning",
    "RandomFourierFeatures": "_fourier",
    "RandomMaclaurinFeatures": "_maclaurin",
    "SkewedChi2Map": "_chi2",
    "UniformNystroem": "_nystroem",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__


SQUARED = (0.25, 1.0, 4.0, 16.0)
"""gamma_factor of kernels of the squared distance: bandwidths 2 to 1/4 medians."""

PLAIN = (0.25, 1.0, 4.0)
"""gamma_factor of kernels of the distance itself."""


def _map(name, module, make, kernel, grid=None, requires=None, span=None):
    here = f"{__name__}.{module}"
    return FeatureMap(
        name,
        make=f"{here}:{make}" if ":" not in make else make,
        grid=grid or {},
        kernel=f"{here}:{kernel}",
        requires=requires,
        # where scikit-learn's class is used as it is, its kernel is still ours
        depends=(here,),
        span=span,
    )


def span_of_nystroem(params):
    """Say what Nystroem features span: landmarks, and Gaussians by their bandwidths.

    Parameters
    ----------
    params : mapping
        Of a suite line; several values are a `Search`.

    Returns
    -------
    str
        Number of landmarks and kernels, as a map with the same kernel written
        ``gaussian(bandwidth=0.5*median)`` says them; empty where there is no
        such writing, and with landmarks of a seed of its own.
    """
    number, kernel = params.get("n_components", 300), params.get("kernel", "rbf")
    if not isinstance(number, int) or params.get("random_state") is not None:
        return ""
    if kernel != "rbf":
        kernels = getattr(kernel, "values", (kernel,))
        # kernels that are named by a string have a gamma, which a label would not tell
        if not all(isinstance(each, Ref) for each in kernels):
            return ""
        labels = [each.label for each in kernels]
    else:
        gamma, factor = params.get("gamma", "median"), params.get("gamma_factor")
        factors = SQUARED if factor is None else getattr(factor, "values", (factor,))
        if gamma == "median":
            shares = [f"{each**-0.5:g}*" if each != 1 else "" for each in factors]
            widths = [f"{share}median" for share in shares]
        else:
            gammas = getattr(gamma, "values", (gamma,))
            # beside a number the factor does nothing, but equal candidates are fitted again
            if "median" in gammas or set(factors) != {1}:
                return ""
            widths = [f"{(2 * each) ** -0.5:g}" for each in gammas]
        labels = [f"gaussian(bandwidth={width})" for width in widths]
    return f"{number} uniform landmarks: {', '.join(sorted(labels))}"


@hookimpl
def kbench_feature_maps():
    """List the maps."""
    squared, plain = {"gamma_factor": SQUARED}, {"gamma_factor": PLAIN}
    additive = "sklearn.kernel_approximation:AdditiveChi2Sampler"
    return [
        _map("identity", "_identity", "Identity", "linear_gram"),
        _map("polynomial", "_polynomial", "PolynomialMap", "polynomial_gram"),
        _map(
            "polynomial-sketch",
            "_polynomial",
            "PolynomialSketch",
            "polynomial_gram",
            {"degree": (2, 3)},
        ),
        _map(
            "additive-chi2",
            "_chi2",
            additive,
            "additive_chi2_gram",
            {"sample_steps": (2, 3)},
            requires="nonnegative",
        ),
        _map(
            "skewed-chi2",
            "_chi2",
            "SkewedChi2Map",
            "skewed_chi2_gram",
            {"skewedness": (0.1, 0.3, 1.0, 3.0)},
            requires="nonnegative",
        ),
        _map("rff", "_fourier", "RandomFourierFeatures", "gaussian_gram", squared),
        _map("orthogonal-rff", "_fourier", "OrthogonalFourierFeatures", "gaussian_gram", squared),
        _map("qmc-rff", "_fourier", "QMCFourierFeatures", "gaussian_gram", squared),
        _map("laplace-rff", "_fourier", "LaplaceFourierFeatures", "laplace_gram", plain),
        _map("matern-rff", "_fourier", "MaternFourierFeatures", "matern_gram", plain),
        _map("random-binning", "_binning", "RandomBinningFeatures", "binning_gram", plain),
        _map(
            "arc-cosine",
            "_arc_cosine",
            "ArcCosineFeatures",
            "arc_cosine_gram",
            {"bias": (0.25, 0.5, 1.0)},
        ),
        _map(
            "random-maclaurin",
            "_maclaurin",
            "RandomMaclaurinFeatures",
            "maclaurin_gram",
            {"gamma_factor": (0.25, 1.0, 4.0)},
        ),
        _map(
            "nystroem",
            "_nystroem",
            "UniformNystroem",
            "nystroem_gram",
            squared,
            span=span_of_nystroem,
        ),
        _map("nystroem-kmeans", "_nystroem", "KMeansNystroem", "nystroem_gram", squared),
        _map("nystroem-rpcholesky", "_nystroem", "RPCholeskyNystroem", "nystroem_gram", squared),
        _map("nystroem-leverage", "_nystroem", "LeverageNystroem", "nystroem_gram", squared),
    ]
