"""Methods (a feature map with a learner), built from the records of plugins."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from kbench.errors import SuiteError
from kbench.evaluation.checked_predictions import FittedMap
from kbench.evaluation.lazy_rows import Matrix
from kbench.evaluation.metrics import Criterion
from kbench.evaluation.specs import EstimatorSpec, Nested
from kbench.records import Make, Ref, TaskType, Tune, alternatives
from kbench.registry.callables import resolve
from kbench.registry.registry import Registry

Kernel = Callable[[FittedMap, Matrix, Matrix], ArrayLike]
MetricFunction = Callable[..., Mapping[str, float]]


@dataclass(frozen=True)
class Method:
    """A feature map with a learner, and functions that measure them on the test set.

    ``kernel(map, X, Y)`` is the Gram matrix which the map approximates. Metrics are
    called as ``metrics(fitted, X, y)``; those of a map may take more arguments (see
    `kbench.FeatureMap`). `criterion` is the metric of a plugin that searches optimise.
    """

    feature_map: EstimatorSpec
    learner: EstimatorSpec
    kernel: Kernel | None = None
    map_metrics: MetricFunction | None = None
    learner_metrics: MetricFunction | None = None
    criterion: Criterion | None = None


def map_side(ref: Ref, registry: Registry) -> dict[str, Any]:
    """Return the fields of a `Method` that its feature map decides."""
    record = registry.get("feature map", ref.name)
    return {
        "feature_map": _spec(
            ref,
            record.grid,
            record.make,
            registry,
            supervised=record.supervised,
            requires=record.requires,
            label=f"feature map {ref.name!r}",
        ),
        "kernel": resolve(record.kernel) if record.kernel else None,
        "map_metrics": resolve(record.metrics) if record.metrics else None,
    }


def learner_side(ref: Ref, registry: Registry, task: TaskType = "classification") -> dict[str, Any]:
    """Return the fields of a `Method` that its learner decides, for a task.

    Raises SuiteError if the learner has no estimator for it.
    """
    record = registry.get("learner", ref.name)
    estimator = record.estimator(task)
    if estimator is None:
        raise SuiteError(f"learner {ref.name!r} is not for {task}")
    return {
        "learner": _spec(
            ref,
            record.grid,
            estimator,
            registry,
            path=record.path,
            simpler=record.simpler,
            label=f"learner {ref.name!r}",
        ),
        "learner_metrics": resolve(record.metrics) if record.metrics else None,
    }


def search_side(search_metric: str | None, registry: Registry, n_classes: int) -> dict[str, Any]:
    """Return the field of a `Method` that the protocol's `search_metric` decides.

    It is empty for a built-in metric. `n_classes` are those of the dataset.
    """
    metric = registry.all("metric").get(search_metric or "")
    if metric is None:
        return {}
    return {"criterion": Criterion.from_plugin(metric, resolve(metric.function), n_classes)}


def _spec(
    ref: Ref, grid: Mapping[str, Any], make: Make, registry: Registry, **options: Any
) -> EstimatorSpec:
    space = {
        name: _values(Tune(tuple(values)), registry)
        for name, values in grid.items()
        if name not in ref.params
    }
    preset = {}
    for name, value in ref.params.items():
        values = _values(value, registry)
        if isinstance(value, Tune) or len(values) > 1:
            space[name] = values
        else:
            (preset[name],) = values
    return EstimatorSpec(resolve(make), preset, space, **options)


def _values(value: object, registry: Registry) -> tuple[object, ...]:
    """Return the different values that a parameter may take, the first of equal ones.

    Searches inside components are expanded. Equal numbers would be compared twice.
    """
    values: list[object] = []
    for each in alternatives(value):
        made = _make_nested(each, registry)
        if not any(_is_same(made, other) for other in values):
            values.append(made)
    return tuple(values)


def _is_same(one: object, other: object) -> bool:
    """Return whether two values are one candidate; true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _make_nested(value: object, registry: Registry) -> object:
    if isinstance(value, tuple):
        return tuple(_make_nested(item, registry) for item in value)
    if not isinstance(value, Ref):
        return value
    record = registry.get_nested(value.name)
    params = {name: _make_nested(param, registry) for name, param in value.params.items()}
    return Nested(resolve(record.make), params, value.name, value.label)
