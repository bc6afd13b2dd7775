"""Learning with the 0-1 loss: the kernel, its learner, its feature map and its theory.

After Shalev-Shwartz, Shamir and Sridharan, "Learning linear and kernel predictors
with the 0-1 loss function" (IJCAI 2011). The classes are loaded on first use.
"""

import lazy_loader

from kbench import DatasetSource, FeatureMap, Figure, KernelSpec, Learner, hookimpl

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_classifier": ["ZeroOneHingeClassifier", "ZeroOneKernelClassifier"],
        "_data": ["halfspace"],
        "_features": ["ZeroOneFeatures"],
        "_kernel": ["ZeroOneKernel"],
        "_sigmoid": ["SigmoidHalfspace"],
        "_theory": ["sigmoid", "sigmoid_polynomial", "worst_case_B"],
    },
)

# The default first, then powers of 4 while B matters, then far apart: from about 4^8 on the
# ball holds nearly every labelling, and only noise-free data need it.
_B = [4.0**k for k in (3, 0, 1, 2, 4, 5, 6, 8, 10)]


@hookimpl
def kbench_kernels():
    """List the 0-1 loss kernel, equation 6."""
    return [KernelSpec("zero-one", make="kbench_zero_one._kernel:ZeroOneKernel")]


@hookimpl
def kbench_feature_maps():
    """List the feature map of Lemma 1."""
    return [
        FeatureMap(
            "zero-one-features",
            make="kbench_zero_one._features:ZeroOneFeatures",
            grid={"nu": [0.25, 0.5, 0.75]},
            kernel="kbench_zero_one._features:approximated_kernel",
            requires="unit_ball",
            family="polynomial",
        )
    ]


@hookimpl
def kbench_learners():
    """List the 0-1 learner, the hinge loss over the same ball, and sigmoids of halfspaces."""
    module = "kbench_zero_one._classifier"
    ball = {"grid": {"B": _B}, "path": "B", "metrics": f"{module}:certificates"}
    classes = {"zero-one-learner": "ZeroOneKernel", "zero-one-hinge": "ZeroOneHinge"}
    return [
        *(
            Learner(name, f"{module}:{cls}Classifier", family="kernel", uses_kernel=True, **ball)
            for name, cls in classes.items()
        ),
        Learner("sigmoid-halfspace", "kbench_zero_one._sigmoid:SigmoidHalfspace", family="linear"),
    ]


@hookimpl
def kbench_datasets():
    """List the synthetic halfspaces."""
    return [DatasetSource("halfspace", load="kbench_zero_one._data:halfspace")]


@hookimpl
def kbench_figures():
    """List the figures of suite shalev-shwartz-2011."""
    titles = {
        "transfer": "Transfer functions: the step and the sigmoid (Figure 1 of the paper)",
        "norm": "How large B must be: the norm of a polynomial against the bound of Lemma 2",
        "noise": "Test error on halfspaces with label noise, and with outliers in training",
    }
    suites = ("shalev-shwartz-2011",)
    return [
        Figure(f"zero-one-{name}", title, f"kbench_zero_one._figures:draw_{name}", suites)
        for name, title in titles.items()
    ]
