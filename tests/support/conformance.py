"""Plugins of one component, and what the conformance kit finds wrong with them."""

from kbench import FeatureMap, KernelSpec, Learner
from kbench_testing import components, run
from tests.support.defective_maps import gaussian_gram


def failures(plugin, **options):
    outcomes = list(run(components(plugin, **options), slow=False))
    return {each.check: each.message for each in outcomes if each.status == "failed"}


def map_plugin(plugin_of, make, **record):
    record = {"grid": {"gamma": (0.1, 1.0)}, "kernel": gaussian_gram, **record}
    return plugin_of(kbench_feature_maps=[FeatureMap("my-map", make=make, **record)])


def learner_plugin(plugin_of, make, **record):
    record = {"grid": {"shrink": (0.0, 0.5)}, "path": "shrink", **record}
    return plugin_of(kbench_learners=[Learner("my-learner", classifier=make, **record)])


def kernel_plugin(plugin_of, make, **record):
    return plugin_of(kbench_kernels=[KernelSpec("my-kernel", make=make, **record)])
