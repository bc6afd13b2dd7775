"""Feature maps to compare with: those of scikit-learn, and other common ones.

Maps with a bandwidth share three parameters: `gamma`, a number or "median";
`gamma_factor`, which multiplies the median heuristic and is what the default
grids search over; and `random_state`. A suite line that gives numbers for
`gamma` gives ``gamma_factor = 1`` with them, or equal candidates are fitted
again.
"""

import lazy_loader

from kbench import FeatureMap, Ref, hookimpl

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_arc_cosine": ["ArcCosineFeatures"],
        "_binning": ["RandomBinningFeatures"],
        "_chi2": ["SkewedChi2Map"],
        "_fourier": [
            "LaplaceFourierFeatures",
            "MaternFourierFeatures",
            "OrthogonalFourierFeatures",
            "QMCFourierFeatures",
            "RandomFourierFeatures",
        ],
        "_identity": ["Identity"],
        "_maclaurin": ["RandomMaclaurinFeatures"],
        "_nystroem": ["NystroemMap"],
        "_polynomial": ["PolynomialMap", "PolynomialSketch"],
    },
)

SQUARED = (0.25, 1.0, 4.0, 16.0)
"""gamma_factor of kernels of the squared distance: bandwidths 2 to 1/4 medians."""

PLAIN = (0.25, 1.0, 4.0)
"""gamma_factor of kernels of the distance itself, or of the inner product."""


def span_of_nystroem(params):
    """Describe what Nystroem features span, by the parameters of a suite line.

    That is the number of landmarks, and the kernels as a map with the same kernel
    written ``gaussian(bandwidth=0.5*median)`` describes them. Empty where they cannot
    be written like that, and where the landmarks are not uniform or have their own
    seed. Several values of a parameter are a `Search`.
    """
    number, kernel = params.get("n_components", 300), params.get("kernel", "rbf")
    if not isinstance(number, int) or params.get("random_state") is not None:
        return ""
    if params.get("landmarks", "uniform") != "uniform":
        return ""
    if kernel != "rbf":
        kernels = getattr(kernel, "values", (kernel,))
        # kernels that are named by a string have a gamma, which a label would not show
        if not all(isinstance(kernel, Ref) for kernel in kernels):
            return ""
        labels = [kernel.label for kernel in kernels]
    else:
        gamma, factor = params.get("gamma", "median"), params.get("gamma_factor")
        factors = SQUARED if factor is None else getattr(factor, "values", (factor,))
        if gamma == "median":
            shares = [f"{factor**-0.5:g}*" if factor != 1 else "" for factor in factors]
            widths = [f"{share}median" for share in shares]
        else:
            gammas = getattr(gamma, "values", (gamma,))
            # beside a number the factor does nothing, but equal candidates are fitted again
            if "median" in gammas or set(factors) != {1}:
                return ""
            widths = [f"{(2 * gamma) ** -0.5:g}" for gamma in gammas]
        labels = [f"gaussian(bandwidth={width})" for width in widths]
    return f"{number} uniform landmarks: {', '.join(sorted(labels))}"


def _map(name, make, kernel, **options):
    """Record a map; its kernel is in the same module."""
    module = make.partition(":")[0]
    return FeatureMap(
        name, make=f"{__name__}.{make}", kernel=f"{__name__}.{module}:{kernel}", **options
    )


@hookimpl
def kbench_feature_maps():
    """List the maps."""
    squared, plain = {"gamma_factor": SQUARED}, {"gamma_factor": PLAIN}
    degrees, biases = {"degree": (2, 3)}, {"bias": (0.25, 0.5, 1.0)}
    gaussian, nystroem, polynomial = "gaussian_gram", "nystroem_gram", "polynomial_gram"
    return [
        _map("identity", "_identity:Identity", "linear_gram"),
        _map("polynomial", "_polynomial:PolynomialMap", polynomial),
        _map("polynomial-sketch", "_polynomial:PolynomialSketch", polynomial, grid=degrees),
        FeatureMap(
            "additive-chi2",
            make="sklearn.kernel_approximation:AdditiveChi2Sampler",
            grid={"sample_steps": (2, 3)},
            kernel=f"{__name__}._chi2:additive_chi2_gram",
            requires="nonnegative",
            # the class is scikit-learn's, but its kernel is defined here
            depends=(f"{__name__}._chi2",),
        ),
        _map(
            "skewed-chi2",
            "_chi2:SkewedChi2Map",
            "skewed_chi2_gram",
            grid={"skewedness": (0.1, 0.3, 1.0, 3.0)},
            requires="nonnegative",
        ),
        _map("rff", "_fourier:RandomFourierFeatures", gaussian, grid=squared),
        _map("orthogonal-rff", "_fourier:OrthogonalFourierFeatures", gaussian, grid=squared),
        _map("qmc-rff", "_fourier:QMCFourierFeatures", gaussian, grid=squared),
        _map("laplace-rff", "_fourier:LaplaceFourierFeatures", "laplace_gram", grid=plain),
        _map("matern-rff", "_fourier:MaternFourierFeatures", "matern_gram", grid=plain),
        _map("random-binning", "_binning:RandomBinningFeatures", "binning_gram", grid=plain),
        _map("arc-cosine", "_arc_cosine:ArcCosineFeatures", "arc_cosine_gram", grid=biases),
        _map(
            "random-maclaurin", "_maclaurin:RandomMaclaurinFeatures", "maclaurin_gram", grid=plain
        ),
        _map("nystroem", "_nystroem:NystroemMap", nystroem, grid=squared, span=span_of_nystroem),
        _map("nystroem-kmeans", "_nystroem:kmeans_nystroem", nystroem, grid=squared),
        _map("nystroem-rpcholesky", "_nystroem:rpcholesky_nystroem", nystroem, grid=squared),
        _map("nystroem-leverage", "_nystroem:leverage_nystroem", nystroem, grid=squared),
    ]
