"""Learners: linear models, kernel methods and reference methods.

The classes are loaded on first use.
"""

import lazy_loader

from kbench import BANDWIDTH_FACTORS, FeatureMap, Learner, Ref, Tune, hookimpl

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_bayesian_linear": ["BayesianLinearRegression", "DirichletGPClassifier"],
        "_core_vector_machine": ["CoreVectorMachine"],
        "_gaussian_process": ["GaussianProcess"],
        "_held_out": [
            "GradientBoostingClassifier",
            "GradientBoostingRegressor",
            "MultilayerPerceptronClassifier",
            "MultilayerPerceptronRegressor",
        ],
        "_kernel_kmeans": ["KernelKMeans", "KernelKMeansMap"],
        "_kernel_perceptron": ["KernelPerceptron"],
        "_kernel_ridge": ["KernelRidgeClassifier", "KernelRidgeRegressor"],
        "_kernel_svm": ["KernelSVM"],
        "_linear_svm": ["LinearSVM"],
        "_linear_svr": ["LinearSVR"],
        "_logistic": ["LogisticClassifier"],
        "_mkl": ["MultipleKernelSVM"],
        "_references": ["MeanRegressor"],
        "_ridge": ["PathRidge", "PathRidgeClassifier"],
        "_stochastic": ["StochasticClassifier"],
        "_winnow": ["BalancedWinnow"],
    },
)

# The first value of each list is the default of its parameter: the candidate that every
# search has. The others are in rising order.

# The four values that lose the least against 19 values from 2^-5 to 2^13, over
# nine small data sets with linear, Fourier, Nystroem and polynomial features.
_C = [1.0, 2.0**-3, 2.0**3, 2.0**11]

_KERNELS = [Ref("gaussian", {"bandwidth_factor": Tune(BANDWIDTH_FACTORS)})]

# Kernels of several shapes and widths, of which a combination is learned.
_COMBINED = (
    Ref("linear"),
    Ref("polynomial"),
    *(Ref("gaussian", {"bandwidth_factor": factor}) for factor in BANDWIDTH_FACTORS),
)

# In the style of the spaces that studies of tabular data draw from, discretised: see
# `GradientBoostingClassifier`. LightGBM has the same values under its own names.
_BOOSTING = {
    "learning_rate": [0.1, 0.03, 0.3],
    "max_leaf_nodes": [31, 7, 15, 63],
    "min_samples_leaf": [20, 5, 50],
    "l2_regularization": [0.0, 0.1, 1.0, 10.0],
}
_LIGHTGBM = {
    "learning_rate": _BOOSTING["learning_rate"],
    "num_leaves": _BOOSTING["max_leaf_nodes"],
    "min_child_samples": _BOOSTING["min_samples_leaf"],
    "reg_lambda": _BOOSTING["l2_regularization"],
}

_MLP = {
    "n_layers": [2, 1, 3],
    "n_units": [128, 32, 64, 256],
    "alpha": [1e-4, 1e-6, 1e-2, 1.0],
    "learning_rate": [1e-3, 3e-4, 3e-3],
}

# Of searched parameters, which values make a simpler model.
_SIMPLER = {
    **dict.fromkeys(("C", "max_leaf_nodes", "num_leaves"), "smaller"),
    **dict.fromkeys(("alpha", "n_neighbors", "min_samples_leaf", "min_child_samples"), "larger"),
    **dict.fromkeys(("l2_regularization", "reg_lambda"), "larger"),
}


@hookimpl
def kbench_feature_maps():
    """List the maps."""
    make, grid = "kbench_learners._kernel_kmeans:KernelKMeansMap", {"kernel": _KERNELS}
    return [FeatureMap("kernel-kmeans", make, grid, family="landmarks")]


_ESTIMATORS = {
    "linear-svm": ("_linear_svm", "LinearSVM"),
    "logistic": ("_logistic", "LogisticClassifier"),
    "liblinear": ("_references", "liblinear"),
    "ridge": ("_ridge", "PathRidgeClassifier", "PathRidge"),
    "cvm": ("_core_vector_machine", "CoreVectorMachine"),
    "sgd": ("_stochastic", "StochasticClassifier"),
    "perceptron": ("_references", "perceptron"),
    "winnow": ("_winnow", "BalancedWinnow"),
    "kernel-svm": ("_kernel_svm", "KernelSVM"),
    "multiple-kernel-svm": ("_mkl", "MultipleKernelSVM"),
    "kernel-ridge": ("_kernel_ridge", "KernelRidgeClassifier", "KernelRidgeRegressor"),
    "kernel-perceptron": ("_kernel_perceptron", "KernelPerceptron"),
    "knn": ("_references", "knn", "knn_regressor"),
    "gradient-boosting": ("_held_out", "GradientBoostingClassifier", "GradientBoostingRegressor"),
    "lightgbm": ("_lightgbm", "LightGBMClassifier", "LightGBMRegressor"),
    "random-forest": ("_references", "random_forest", "random_forest_regressor"),
    "mlp": ("_held_out", "MultilayerPerceptronClassifier", "MultilayerPerceptronRegressor"),
    "linear-svr": ("_linear_svr", "", "LinearSVR"),
    "bayesian-linear": ("_bayesian_linear", "", "BayesianLinearRegression"),
    "dirichlet-gp": ("_bayesian_linear", "DirichletGPClassifier"),
    "gaussian-process": ("_gaussian_process", "", "GaussianProcess"),
    "dummy-majority": ("_references", "majority"),
    "dummy-mean": ("_references", "", "MeanRegressor"),
}
"""Modules of the learners, and their classifiers and regressors there."""


def _learner(name, family, grid, multiclass="", **options):
    module, *estimators = _ESTIMATORS[name]
    makes = zip(("classifier", "regressor"), estimators, strict=False)
    options |= {field: f"{__name__}.{module}:{each}" for field, each in makes if each}
    simpler = {parameter: _SIMPLER[parameter] for parameter in grid if parameter in _SIMPLER}
    options = {"simpler": simpler, "uses_kernel": family == "kernel", **options}
    return Learner(name, family=family, grid=grid, multiclass=multiclass, **options)


@hookimpl
def kbench_learners():
    """List the learners."""
    margins = {"metrics": f"{__name__}._linear_svm:margin_error"}
    invariant = {"rotation_invariant": True}
    exact = {**margins, **invariant}
    perceptron = {"alpha": [0.0, 1e-5, 1e-4, 1e-3], "averaged": [False, True]}
    winnow = {"learning_rate": [0.1, 0.03, 0.3, 1.0], "norm": ["l2", "l1", "max"]}
    kernels = {"kernels": [_COMBINED], "method": ["alignf", "margin"], "C": _C}
    kernel_ridge = {"kernel": _KERNELS, "alpha": [1.0, 1e-3, 1e-1, 1e1, 1e3]}
    neighbours = {"n_neighbors": [5, 1, 3, 7, 15], "weights": ["uniform", "distance"], "p": [2, 1]}
    forest = {"max_features": ["sqrt", 0.3, 0.6, 1.0], "min_samples_leaf": [1, 2, 5, 10]}
    alphas = {"alpha": [1e-2, 1e-4, 1e-3, 1e-1]}
    return [
        _learner("linear-svm", "linear", {"C": _C}, "ovo", path="C", **exact),
        _learner("logistic", "linear", {"C": _C}, "multinomial", path="C", **exact),
        _learner(
            "liblinear", "linear", {"C": [1.0, 0.1, 10.0]}, "ovr", compares_rows=True, **margins
        ),
        _learner(
            "ridge", "linear", {"alpha": [1.0, 1e-3, 1e-1, 10.0]}, "ovr", path="alpha", **exact
        ),
        _learner("cvm", "kernel", {"kernel": _KERNELS, "C": [1.0, 2.0**5, 2.0**10]}, "ovo"),
        _learner("sgd", "linear", {"alpha": [1e-4, 1e-6, 1e-5, 1e-3]}, "ovr", path="alpha"),
        _learner("perceptron", "linear", perceptron, "ovr"),
        _learner("winnow", "linear", winnow, "ovr"),
        _learner("kernel-svm", "kernel", {"kernel": _KERNELS, "C": _C}, "ovo", path="C"),
        _learner("multiple-kernel-svm", "kernel", kernels, "ovo", path="C"),
        _learner("kernel-ridge", "kernel", kernel_ridge, "ovr"),
        _learner("kernel-perceptron", "kernel", {"kernel": _KERNELS}, "ovr"),
        _learner("knn", "neighbours", neighbours),
        _learner("gradient-boosting", "trees", _BOOSTING),
        _learner("lightgbm", "trees", _LIGHTGBM, depends=["lightgbm"]),
        _learner("random-forest", "trees", forest),
        _learner("mlp", "networks", _MLP),
        _learner(
            "linear-svr", "linear", {"C": _C, "epsilon": [0.1, 0.0, 0.3]}, path="C", **invariant
        ),
        _learner("bayesian-linear", "linear", {}, **invariant),
        _learner("dirichlet-gp", "linear", alphas, simpler={}, **invariant),
        _learner("gaussian-process", "kernel", {}),
        _learner("dummy-majority", "baseline", {}, baseline=True),
        _learner("dummy-mean", "baseline", {}, baseline=True),
    ]
