"""Learners: linear, kernel and reference methods behind every comparison.

The classes are loaded on first use.
"""

import lazy_loader

from kbench import BANDWIDTH_FACTORS, FeatureMap, Learner, Ref, Search, hookimpl

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
        "_winnow": ["BalancedWinnow"],
    },
)

# The first value of each list is the default of its parameter: the candidate that every
# search has. The others are in rising order.

# The four values that lose the least against 19 values from 2^-5 to 2^13, over
# nine small data sets with linear, Fourier, Nystroem and polynomial features.
_C = [1.0, 2.0**-3, 2.0**3, 2.0**11]

_KERNELS = [Ref("gaussian", {"bandwidth_factor": Search(BANDWIDTH_FACTORS)})]

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


@hookimpl
def kbench_feature_maps():
    """List the maps."""
    return [
        FeatureMap(
            "kernel-kmeans",
            make="kbench_learners._kernel_kmeans:KernelKMeansMap",
            grid={"kernel": _KERNELS},
            family="landmarks",
        )
    ]


@hookimpl
def kbench_learners():
    """List the learners."""
    return [
        Learner(
            "linear-svm",
            family="linear",
            make="kbench_learners._linear_svm:LinearSVM",
            multiclass="ovo",
            grid={"C": _C},
            path="C",
            simpler={"C": "smaller"},
            measures="kbench_learners._linear_svm:margin_error",
            rotation_invariant=True,
        ),
        Learner(
            "logistic",
            family="linear",
            make="kbench_learners._logistic:LogisticClassifier",
            grid={"C": _C},
            multiclass="multinomial",
            path="C",
            simpler={"C": "smaller"},
            measures="kbench_learners._linear_svm:margin_error",
            rotation_invariant=True,
        ),
        Learner(
            "liblinear",
            family="linear",
            make="kbench_learners._references:liblinear",
            multiclass="ovr",
            grid={"C": [1.0, 0.1, 10.0]},
            simpler={"C": "smaller"},
            measures="kbench_learners._linear_svm:margin_error",
        ),
        Learner(
            "ridge",
            family="linear",
            make="kbench_learners._ridge:PathRidgeClassifier",
            regressor="kbench_learners._ridge:PathRidge",
            multiclass="ovr",
            grid={"alpha": [1.0, 1e-3, 1e-1, 10.0]},
            path="alpha",
            simpler={"alpha": "larger"},
            measures="kbench_learners._linear_svm:margin_error",
            rotation_invariant=True,
        ),
        Learner(
            "cvm",
            family="kernel",
            make="kbench_learners._core_vector_machine:CoreVectorMachine",
            multiclass="ovo",
            grid={"kernel": _KERNELS, "C": [1.0, 2.0**5, 2.0**10]},
            simpler={"C": "smaller"},
            kernelized=True,
        ),
        Learner(
            "sgd",
            family="linear",
            make="kbench_learners._references:sgd",
            multiclass="ovr",
            grid={"alpha": [1e-4, 1e-6, 1e-5, 1e-3]},
            simpler={"alpha": "larger"},
        ),
        Learner(
            "perceptron",
            family="linear",
            make="kbench_learners._references:perceptron",
            multiclass="ovr",
            grid={"alpha": [0.0, 1e-5, 1e-4, 1e-3], "averaged": [False, True]},
            simpler={"alpha": "larger"},
        ),
        Learner(
            "winnow",
            family="linear",
            make="kbench_learners._winnow:BalancedWinnow",
            multiclass="ovr",
            grid={"learning_rate": [0.1, 0.03, 0.3, 1.0], "norm": ["l2", "l1", "max"]},
        ),
        Learner(
            "kernel-svm",
            family="kernel",
            make="kbench_learners._kernel_svm:KernelSVM",
            multiclass="ovo",
            grid={"kernel": _KERNELS, "C": _C},
            path="C",
            simpler={"C": "smaller"},
            kernelized=True,
        ),
        Learner(
            "multiple-kernel-svm",
            family="kernel",
            make="kbench_learners._mkl:MultipleKernelSVM",
            multiclass="ovo",
            grid={"kernels": [_COMBINED], "method": ["alignf", "margin"], "C": _C},
            path="C",
            simpler={"C": "smaller"},
            kernelized=True,
        ),
        Learner(
            "kernel-ridge",
            family="kernel",
            make="kbench_learners._kernel_ridge:KernelRidgeClassifier",
            regressor="kbench_learners._kernel_ridge:KernelRidgeRegressor",
            multiclass="ovr",
            grid={"kernel": _KERNELS, "alpha": [1.0, 1e-3, 1e-1, 1e1, 1e3]},
            simpler={"alpha": "larger"},
            kernelized=True,
        ),
        Learner(
            "kernel-perceptron",
            family="kernel",
            make="kbench_learners._kernel_perceptron:KernelPerceptron",
            multiclass="ovr",
            grid={"kernel": _KERNELS},
            kernelized=True,
        ),
        Learner(
            "knn",
            family="neighbours",
            make="kbench_learners._references:knn",
            regressor="kbench_learners._references:knn_regressor",
            grid={
                "n_neighbors": [5, 1, 3, 7, 15],
                "weights": ["uniform", "distance"],
                "p": [2, 1],
            },
            simpler={"n_neighbors": "larger"},
        ),
        Learner(
            "gradient-boosting",
            family="trees",
            make="kbench_learners._held_out:GradientBoostingClassifier",
            regressor="kbench_learners._held_out:GradientBoostingRegressor",
            grid=_BOOSTING,
            simpler={
                "max_leaf_nodes": "smaller",
                "min_samples_leaf": "larger",
                "l2_regularization": "larger",
            },
        ),
        Learner(
            "lightgbm",
            family="trees",
            make="kbench_learners._lightgbm:LightGBMClassifier",
            regressor="kbench_learners._lightgbm:LightGBMRegressor",
            grid=_LIGHTGBM,
            simpler={
                "num_leaves": "smaller",
                "min_child_samples": "larger",
                "reg_lambda": "larger",
            },
        ),
        Learner(
            "random-forest",
            family="trees",
            make="kbench_learners._references:random_forest",
            regressor="kbench_learners._references:random_forest_regressor",
            grid={"max_features": ["sqrt", 0.3, 0.6, 1.0], "min_samples_leaf": [1, 2, 5, 10]},
            simpler={"min_samples_leaf": "larger"},
        ),
        Learner(
            "mlp",
            family="networks",
            make="kbench_learners._held_out:MultilayerPerceptronClassifier",
            regressor="kbench_learners._held_out:MultilayerPerceptronRegressor",
            grid={
                "n_layers": [2, 1, 3],
                "n_units": [128, 32, 64, 256],
                "alpha": [1e-4, 1e-6, 1e-2, 1.0],
                "learning_rate": [1e-3, 3e-4, 3e-3],
            },
            simpler={"alpha": "larger"},
        ),
        Learner(
            "linear-svr",
            family="linear",
            regressor="kbench_learners._linear_svr:LinearSVR",
            grid={"C": _C, "epsilon": [0.1, 0.0, 0.3]},
            path="C",
            simpler={"C": "smaller"},
            rotation_invariant=True,
        ),
        Learner(
            "bayesian-linear",
            family="linear",
            regressor="kbench_learners._bayesian_linear:BayesianLinearRegression",
            rotation_invariant=True,
        ),
        Learner(
            "dirichlet-gp",
            family="linear",
            make="kbench_learners._bayesian_linear:DirichletGPClassifier",
            grid={"alpha": [1e-2, 1e-4, 1e-3, 1e-1]},
            rotation_invariant=True,
        ),
        Learner(
            "gaussian-process",
            family="kernel",
            regressor="kbench_learners._gaussian_process:GaussianProcess",
            kernelized=True,
        ),
        Learner(
            "majority",
            family="baseline",
            make="kbench_learners._references:majority",
            baseline=True,
        ),
        Learner(
            "mean",
            family="baseline",
            regressor="kbench_learners._references:MeanRegressor",
            baseline=True,
        ),
    ]
