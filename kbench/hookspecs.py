"""Hooks that a plugin may implement: they take no arguments and return lists of records.

A plugin is a module with functions of these names, marked with
``kbench.hookimpl``, and one entry-point line in its distribution::

    [project.entry-points.kbench]
    my-plugin = "my_plugin"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pluggy

from kbench.records import DatasetSource, FeatureMap, Figure, KernelSpec, Learner, Measure

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

hookspec = pluggy.HookspecMarker("kbench")
hookimpl = pluggy.HookimplMarker("kbench")


@hookspec
def kbench_datasets() -> Sequence[DatasetSource]:  # type: ignore[empty-body]
    """List sources of datasets."""


@hookspec
def kbench_kernels() -> Sequence[KernelSpec]:  # type: ignore[empty-body]
    """List kernels that suite files can name."""


@hookspec
def kbench_feature_maps() -> Sequence[FeatureMap]:  # type: ignore[empty-body]
    """List explicit feature maps."""


@hookspec
def kbench_learners() -> Sequence[Learner]:  # type: ignore[empty-body]
    """List classifiers and regressors."""


@hookspec
def kbench_measures() -> Sequence[Measure]:  # type: ignore[empty-body]
    """List measures of predictions."""


@hookspec
def kbench_figures() -> Sequence[Figure]:  # type: ignore[empty-body]
    """List figures for reports."""


@hookspec
def kbench_suites() -> Sequence[Traversable]:  # type: ignore[empty-body]
    """List suite files (``.toml``), as ``importlib.resources`` gives them."""


@hookspec
def kbench_dashboards() -> Sequence[Traversable]:  # type: ignore[empty-body]
    """List files of report sections, charts and MLflow views."""
