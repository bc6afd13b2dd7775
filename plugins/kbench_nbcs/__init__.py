"""Nested barycentric coordinates (NBCS) as an explicit feature map."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kbench import FeatureMap, Figure, hookimpl

_HOMES = {
    "ConvexApproximation": "_theory",
    "NestedBarycentricMap": "_map",
    "SimplicialMeshMap": "_mesh",
    "approximate_convex_body": "_theory",
    "draw_decision_boundary": "_figures",
    "draw_simplices": "_figures",
    "five_gon": "_figures",
    "hinge_bound": "_theory",
    "margin_error_bound": "_theory",
    "margin_measures": "_margins",
    "mesh_kernel": "_mesh_kernel",
    "refine_weights": "_theory",
    "rotated_mesh_kernel": "_mesh_kernel",
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
            grid={"depth": (1, 2), "n_roots": (4, 16)},
            measures="kbench_nbcs._map:measures",
        ),
        FeatureMap(
            "nbcs-adaptive",
            make="kbench_nbcs._map:adaptive_map",
            grid={"depth": (2, 3)},
            supervised=True,
            measures="kbench_nbcs._map:measures",
        ),
        FeatureMap(
            "simplicial-mesh",
            make="kbench_nbcs._mesh:SimplicialMeshMap",
            kernel="kbench_nbcs._mesh:mesh_gram",
            measures="kbench_nbcs._mesh:measures",
        ),
    ]


@hookimpl
def kbench_figures() -> list[Figure]:
    """List the paper's figures, and the curves of a suite."""
    suites = ("nbcs-large", "nbcs-medium")
    return [
        Figure(name, title, f"kbench_nbcs._figures:{draw}", suites)
        for name, title, draw in (
            (
                "nbcs-two-polytopes",
                "One weight vector: an open polytope, two disjoint polytopes (Figure 2)",
                "figure_two_polytopes",
            ),
            (
                "nbcs-convex-body",
                "A convex polygon approximated from outside, stage by stage (Figure 3)",
                "figure_convex_body",
            ),
            (
                "nbcs-learnt-polygon",
                "A random 5-gon learnt stage by stage (Figure 4)",
                "figure_learnt_polygon",
            ),
        )
    ] + [
        Figure(
            "map-curves",
            "Accuracy against search and fit time, by size of the map",
            "kbench_nbcs._curves:figure_curves",
            ("map-curves",),
        )
    ]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
