"""Learners: linear, kernel and reference methods behind every comparison.

The classes are loaded on first use.
"""

import lazy_loader

from kbench import BANDWIDTH_FACTORS, FeatureMap, Learner, Ref, Search, hookimpl

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_bayesian_linear": ["BayesianLinearRegression"],
        "_core_vector_machine": ["CoreVectorMachine"],
        "_gaussian_process": ["GaussianProcess"],
        "_kernel_kmeans": ["KernelKMeans", "KernelKMeansMap"],
        "_kernel_perceptron": ["KernelPerceptron"],
        "_kernel_ridge": ["KernelRidgeClassifier", "KernelRidgeRegressor"],
        "_kernel_svm": ["KernelSVM"],
        "_linear_svm": ["LinearSVM"],
        "_linear_svr": ["LinearSVR"],
        "_logistic": ["LogisticClassifier"],
        "_mean": ["MeanRegressor"],
        "_mkl": ["MultipleKernelSVM"],
        "_ridge": ["PathRidge", "PathRidgeClassifier"],
        "_winnow": ["BalancedWinnow"],
    },
)

# The four values that lose the least against 19 values from 2^-5 to 2^13, over
# nine small data sets with linear, Fourier, Nystroem and polynomial features.
_C = [2.0**-3, 1.0, 2.0**3, 2.0**11]

_KERNELS = [Ref("gaussian", {"bandwidth_factor": Search(BANDWIDTH_FACTORS)})]

# Kernels of several shapes and widths, of which a combination is learned.
_COMBINED = (
    Ref("linear"),
    Ref("polynomial"),
    *(Ref("gaussian", {"bandwidth_factor": factor}) for factor in BANDWIDTH_FACTORS),
)


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
            grid={"C": [0.1, 1.0, 10.0]},
            simpler={"C": "smaller"},
            measures="kbench_learners._linear_svm:margin_error",
        ),
        Learner(
            "ridge",
            family="linear",
            make="kbench_learners._ridge:PathRidgeClassifier",
            regressor="kbench_learners._ridge:PathRidge",
            multiclass="ovr",
            grid={"alpha": [1e-3, 1e-1, 1.0, 10.0]},
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
            grid={"kernel": _KERNELS, "C": [2.0, 2.0**6, 2.0**10]},
            simpler={"C": "smaller"},
            kernelized=True,
        ),
        Learner(
            "perceptron", family="linear", make="sklearn.linear_model:Perceptron", multiclass="ovr"
        ),
        Learner(
            "winnow",
            family="linear",
            make="kbench_learners._winnow:BalancedWinnow",
            multiclass="ovr",
            grid={"learning_rate": [0.03, 0.1, 0.3, 1.0]},
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
            grid={"kernel": _KERNELS, "alpha": [1e-3, 1e-1, 1e1, 1e3]},
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
            grid={"n_neighbors": [1, 3, 7, 15]},
            simpler={"n_neighbors": "larger"},
        ),
        Learner(
            "gradient-boosting",
            family="trees",
            make="kbench_learners._references:gradient_boosting",
            regressor="kbench_learners._references:gradient_boosting_regressor",
        ),
        Learner(
            "linear-svr",
            family="linear",
            regressor="kbench_learners._linear_svr:LinearSVR",
            grid={"C": _C, "epsilon": [0.0, 0.1, 0.3]},
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
            regressor="kbench_learners._mean:MeanRegressor",
            baseline=True,
        ),
    ]
