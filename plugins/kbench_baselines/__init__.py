"""Explicit feature maps of the literature, some of them from scikit-learn.

Maps with a bandwidth share the parameters `bandwidth` and `bandwidth_factor` with the
kernels of `kbench.kernels`, see `kbench.kernels.distances`.
"""

import lazy_loader

from kbench import BANDWIDTH_FACTORS, FeatureMap, Ref, Tune, hookimpl

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_arc_cosine": ["ArcCosineFeatures"],
        "_base": ["Identity"],
        "_chi2": ["AdditiveChi2Map", "SkewedChi2Map"],
        "_fourier": [
            "LaplaceFourierFeatures",
            "MaternFourierFeatures",
            "OrthogonalFourierFeatures",
            "QMCFourierFeatures",
            "RandomFourierFeatures",
        ],
        "_leverage_fourier": ["LeverageFourierFeatures"],
        "_maclaurin": ["OptimizedMaclaurinFeatures", "RandomMaclaurinFeatures"],
        "_nystroem": ["NystroemMap"],
        "_partitions": ["MondrianFeatures", "RandomBinningFeatures", "RandomTreesFeatures"],
        "_polynomial": ["PolynomialMap", "PolynomialSketch", "SplineFeatures"],
        "_sketches": ["ProductSketch"],
        "_structured": ["FastfoodFeatures", "StructuredOrthogonalFeatures"],
    },
)

_FACTORS = {"bandwidth_factor": BANDWIDTH_FACTORS}

_SERIES = {"bandwidth_factor": (1.0, 0.5, 2.0)}
"""Not a quarter: exp(x.z / bandwidth^2) would be up to exp(16), too much for a random series."""


def span_of_nystroem(params):
    """Describe what Nystroem features span, by the parameters of a suite line.

    That is the number of landmarks, and the kernels as a map with a kernel object
    describes them. Empty if they cannot be written like that, and if the landmarks
    are not uniform or have their own seed. Several values of a parameter are a `Tune`.
    """
    number, kernel = params.get("n_components", 300), params.get("kernel", "rbf")
    if not isinstance(number, int) or params.get("random_state") is not None:
        return ""
    if params.get("landmarks", "uniform") != "uniform":
        return ""
    if kernel == "rbf":
        kernels = [
            Ref("gaussian", {"bandwidth": bandwidth, "bandwidth_factor": factor})
            for bandwidth in _values(params.get("bandwidth", "median"))
            for factor in _values(params.get("bandwidth_factor", Tune(BANDWIDTH_FACTORS)))
        ]
    elif params.keys() & {"bandwidth", "bandwidth_factor"}:
        return ""  # these are not parameters of a kernel object: equal candidates are fitted again
    else:
        kernels = _values(kernel)
        if not all(isinstance(kernel, Ref) for kernel in kernels):
            return ""
    return f"{number} uniform landmarks: {', '.join(sorted(map(_write_kernel, kernels)))}"


def _values(given):
    return given.values if isinstance(given, Tune) else (given,)


def _write_kernel(kernel):
    """Write a kernel, a Gaussian one in the same way however its bandwidth is given."""
    given = {"bandwidth": "median", "bandwidth_factor": 1.0, **kernel.params}
    bandwidth, factor = given["bandwidth"], given["bandwidth_factor"]
    if kernel.name != "gaussian" or not isinstance(factor, int | float):
        return kernel.label
    if isinstance(bandwidth, int | float):
        return f"gaussian(bandwidth={bandwidth * factor:g})"
    return f"gaussian(bandwidth={factor:g} {bandwidth})"


FAMILIES = {
    **dict.fromkeys(("rff", "orthogonal-rff", "qmc-rff", "laplace-rff", "matern-rff"), "fourier"),
    **dict.fromkeys(("fastfood", "sorf", "leverage-rff"), "fourier"),
    **dict.fromkeys(
        ("nystroem", "nystroem-kmeans", "nystroem-rpcholesky", "nystroem-leverage"), "landmarks"
    ),
    **dict.fromkeys(("polynomial", "tensor-sketch", "random-maclaurin"), "polynomial"),
    **{f"polynomial-sketch-{by}": "polynomial" for by in ("rademacher", "srht", "countsketch")},
    **dict.fromkeys(("optimized-maclaurin", "optimized-maclaurin-srht"), "polynomial"),
    **dict.fromkeys(("additive-chi2", "skewed-chi2"), "chi-squared"),
    **dict.fromkeys(("random-binning", "mondrian", "random-trees-embedding"), "partition"),
    "splines": "additive",
    "identity": "inputs",
}


UNBIASED = {
    *("rff", "orthogonal-rff", "qmc-rff", "laplace-rff", "matern-rff", "fastfood", "leverage-rff"),
    *("random-binning", "mondrian", "arc-cosine", "skewed-chi2"),
    *("random-maclaurin", "tensor-sketch"),
    *("polynomial-sketch-rademacher", "polynomial-sketch-srht", "polynomial-sketch-countsketch"),
}
"""Random maps whose inner products average to their kernel."""


def _map(name, make, kernel=None, **options):
    """Record a map; its kernel is in the same module, unless the module is named."""
    if kernel is not None:
        module = "" if ":" in kernel else make.partition(":")[0] + ":"
        options["kernel"] = f"{__name__}.{module}{kernel}"
    return FeatureMap(
        name,
        make=f"{__name__}.{make}",
        family=FAMILIES.get(name, ""),
        unbiased=name in UNBIASED,
        **options,
    )


@hookimpl
def kbench_feature_maps():
    """List the maps."""
    degrees, biases = {"degree": (2, 3)}, {"bias": (0.25, 0.5, 1.0)}
    depths = {"max_depth": (5, 3, 7, 9)}
    gaussian, nystroem, polynomial = "gaussian_gram", "nystroem_gram", "polynomial_gram"
    elsewhere = f"_fourier:{gaussian}"
    structured = {"grid": _FACTORS, "depends": (f"{__name__}._fourier",)}
    sketch, maclaurin = "product_sketch_gram", "optimized_maclaurin_gram"
    return [
        _map("identity", "_base:Identity", "linear_gram"),
        _map("polynomial", "_polynomial:PolynomialMap", polynomial),
        _map("tensor-sketch", "_polynomial:PolynomialSketch", polynomial, grid=degrees),
        _map(
            "additive-chi2",
            "_chi2:AdditiveChi2Map",
            "additive_chi2_gram",
            grid={"sample_steps": (2, 3)},
            requires="nonnegative",
        ),
        _map(
            "skewed-chi2",
            "_chi2:SkewedChi2Map",
            "skewed_chi2_gram",
            grid={"skewedness": (0.1, 0.3, 1.0, 3.0)},
            requires="nonnegative",
        ),
        _map("rff", "_fourier:RandomFourierFeatures", gaussian, grid=_FACTORS),
        _map("orthogonal-rff", "_fourier:OrthogonalFourierFeatures", gaussian, grid=_FACTORS),
        _map("qmc-rff", "_fourier:QMCFourierFeatures", gaussian, grid=_FACTORS),
        _map("laplace-rff", "_fourier:LaplaceFourierFeatures", "laplace_gram", grid=_FACTORS),
        _map("matern-rff", "_fourier:MaternFourierFeatures", "matern_gram", grid=_FACTORS),
        _map("fastfood", "_structured:FastfoodFeatures", elsewhere, **structured),
        _map("sorf", "_structured:StructuredOrthogonalFeatures", elsewhere, **structured),
        _map("leverage-rff", "_leverage_fourier:LeverageFourierFeatures", elsewhere, grid=_FACTORS),
        _map("random-binning", "_partitions:RandomBinningFeatures", "binning_gram", grid=_FACTORS),
        _map("mondrian", "_partitions:MondrianFeatures", "binning_gram", grid=_FACTORS),
        _map("random-trees-embedding", "_partitions:RandomTreesFeatures", grid=depths),
        _map("splines", "_polynomial:SplineFeatures", grid={"n_knots": (5, 3, 9, 17)}),
        _map("arc-cosine", "_arc_cosine:ArcCosineFeatures", "arc_cosine_gram", grid=biases),
        _map(
            "random-maclaurin", "_maclaurin:RandomMaclaurinFeatures", "maclaurin_gram", grid=_SERIES
        ),
        _map("polynomial-sketch-rademacher", "_sketches:ProductSketch", sketch, grid=degrees),
        _map("polynomial-sketch-srht", "_sketches:srht_product_sketch", sketch, grid=degrees),
        _map(
            "polynomial-sketch-countsketch",
            "_sketches:countsketch_product_sketch",
            sketch,
            grid=degrees,
        ),
        _map(
            "optimized-maclaurin", "_maclaurin:OptimizedMaclaurinFeatures", maclaurin, grid=_SERIES
        ),
        _map("optimized-maclaurin-srht", "_maclaurin:srht_maclaurin", maclaurin, grid=_SERIES),
        _map("nystroem", "_nystroem:NystroemMap", nystroem, grid=_FACTORS, span=span_of_nystroem),
        _map("nystroem-kmeans", "_nystroem:kmeans_nystroem", nystroem, grid=_FACTORS),
        _map("nystroem-rpcholesky", "_nystroem:rpcholesky_nystroem", nystroem, grid=_FACTORS),
        _map("nystroem-leverage", "_nystroem:leverage_nystroem", nystroem, grid=_FACTORS),
    ]
