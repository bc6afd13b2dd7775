"""A third party's plugin: a map, a learner, a kernel, a data set and a suite."""

from importlib.resources import files

from kbench import DatasetSource, FeatureMap, KernelSpec, Learner, hookimpl


@hookimpl
def kbench_feature_maps():
    """List the maps."""
    return [FeatureMap("its-map", make="its_plugin._map:QuadraticMap", grid={"scale": (0.5, 2.0)})]


@hookimpl
def kbench_learners():
    """List the learners."""
    return [Learner("its-learner", classifier="its_plugin._learner:NearestMean")]


@hookimpl
def kbench_kernels():
    """List the kernels."""
    return [KernelSpec("its-kernel", make="its_plugin._kernel:RationalQuadratic")]


@hookimpl
def kbench_datasets():
    """List the data sets."""
    return [DatasetSource("its-data", load="its_plugin._data:load")]


@hookimpl
def kbench_suites():
    """List the suites."""
    return [files(__name__) / "its-suite.toml"]
