"""Plugins of one component, and what the conformance kit finds wrong with them."""

import pytest

from kbench import FeatureMap, KernelSpec, Learner
from kbench_testing import Nonconforming, checks_of, components, run
from tests.support.defective_maps import gaussian_gram


def failures(plugin, **options):
    outcomes = list(run(components(plugin, **options), slow=False))
    return {each.check: each.message for each in outcomes if each.status == "failed"}


def sklearn_failure(plugin):
    """Return the message of the one slow check, without the others."""
    component = components(plugin)[1]
    (check,) = (each for each in checks_of(component) if each.__name__ == "check_sklearn")
    with pytest.raises(Nonconforming) as raised:
        check(component)
    return str(raised.value)


def map_plugin(plugin_of, make, **record):
    record = {"grid": {"gamma": (0.1, 1.0)}, "kernel": gaussian_gram, **record}
    return plugin_of(kbench_feature_maps=[FeatureMap("my-map", make=make, **record)])


def learner_plugin(plugin_of, make, **record):
    record = {"grid": {"shrink": (0.0, 0.5)}, "path": "shrink", **record}
    return plugin_of(kbench_learners=[Learner("my-learner", classifier=make, **record)])


def kernel_plugin(plugin_of, make, **record):
    return plugin_of(kbench_kernels=[KernelSpec("my-kernel", make=make, **record)])
