"""Feature maps that learn a metric of their inputs from gradients of a first fit.

The base maps are those of other plugins, by their names.
"""

import lazy_loader

from kbench import BANDWIDTH_FACTORS, FeatureMap, Learner, Ref, hookimpl

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_map": ["LearnedMetricMap", "LearnedPartitionMap"],
        "_rfm": ["RecursiveFeatureMachineClassifier", "RecursiveFeatureMachineRegressor"],
    },
)

_FACTORS = {"bandwidth_factor": BANDWIDTH_FACTORS}


def _make_learned(base, grid, make="_map:LearnedMetricMap", **params):
    """Record a map around the one of this name, with parameters of that one."""
    return FeatureMap(
        f"{base}-learned",
        make=f"{__name__}.{make}",
        grid={"base_map": (Ref(base, params),), **grid},
        supervised=True,
        family="learned",
    )


@hookimpl
def kbench_feature_maps():
    """List a learned map around each map whose features have useful gradients."""
    fourier = ("rff", "orthogonal-rff", "qmc-rff", "sorf", "laplace-rff", "matern-rff")
    return [
        *(_make_learned(name, _FACTORS) for name in (*fourier, "nystroem")),
        _make_learned("arc-cosine", {}),
        # its roots are fitted to each column, which undoes the weights of a diagonal
        _make_learned("nbcs-rotated", {"metric": ("full", "low_rank")}, "_map:LearnedPartitionMap"),
        _make_learned("simplicial-mesh", {}, scaling="common"),
    ]


@hookimpl
def kbench_learners():
    """List the exact method that the learned maps approximate."""
    return [
        Learner(
            "rfm",
            classifier=f"{__name__}._rfm:RecursiveFeatureMachineClassifier",
            regressor=f"{__name__}._rfm:RecursiveFeatureMachineRegressor",
            multiclass="ovr",
            grid={**_FACTORS, "metric": ("full", "diagonal")},
            family="kernel",
        )
    ]
