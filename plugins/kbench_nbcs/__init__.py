"""Nested barycentric coordinates (NBCS) as an explicit feature map."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kbench import FeatureMap, hookimpl

_HOMES = {
    "ConvexApproximation": "_theory",
    "NestedBarycentricMap": "_map",
    "approximate_convex_body": "_theory",
    "hinge_bound": "_theory",
    "margin_error_bound": "_theory",
    "margin_measures": "_theory",
    "refine_weights": "_theory",
    "theory_stages": "_theory",
    "vc_bound": "_theory",
}
__all__ = list(_HOMES)


@hookimpl
def kbench_feature_maps() -> list[FeatureMap]:
    """List the uniform and the adaptive map."""
    return [
        FeatureMap(
            "nbcs",
            make="kbench_nbcs._map:NestedBarycentricMap",
            grid={"depth": (2, 3)},
            measures="kbench_nbcs._map:measures",
        ),
        FeatureMap(
            "nbcs-adaptive",
            make="kbench_nbcs._map:adaptive_map",
            grid={"depth": (2, 3)},
            supervised=True,
            measures="kbench_nbcs._map:measures",
        ),
    ]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
