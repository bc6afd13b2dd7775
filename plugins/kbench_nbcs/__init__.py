"""Nested barycentric coordinates (NBCS) as an explicit feature map."""

import lazy_loader

from kbench import FeatureMap, Figure, hookimpl

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_figures": ["draw_decision_boundary", "draw_simplices", "five_gon"],
        "_map": ["NestedBarycentricMap"],
        "_margins": ["margin_measures"],
        "_mesh": ["SimplicialMeshMap"],
        "_mesh_cells": ["mesh_kernel", "rotated_mesh_kernel"],
        "_theory": [
            *("ConvexApproximation", "approximate_convex_body", "hinge_bound"),
            *("margin_error_bound", "refine_weights", "theory_stages", "vc_bound"),
        ],
    },
)


@hookimpl
def kbench_feature_maps() -> list[FeatureMap]:
    """List the paper's uniform and adaptive map, rotated roots, and the mesh."""
    return [
        FeatureMap(
            "nbcs",
            make="kbench_nbcs._map:NestedBarycentricMap",
            grid={"depth": (2, 3, 4, 5)},
            measures="kbench_nbcs._map:measures",
            family="partition",
        ),
        FeatureMap(
            "nbcs-adaptive",
            make="kbench_nbcs._map:adaptive_map",
            grid={"depth": (2, 3, 4, 5)},
            supervised=True,
            tasks=("classification",),
            measures="kbench_nbcs._map:measures",
            family="partition",
        ),
        FeatureMap(
            "nbcs-rotated",
            make="kbench_nbcs._map:rotated_map",
            grid={"depth": (1, 2), "n_roots": (4, 16)},
            measures="kbench_nbcs._map:measures",
            family="partition",
        ),
        FeatureMap(
            "simplicial-mesh",
            make="kbench_nbcs._mesh:SimplicialMeshMap",
            kernel="kbench_nbcs._mesh:mesh_gram",
            measures="kbench_nbcs._mesh:measures",
            family="partition",
        ),
    ]


@hookimpl
def kbench_figures() -> list[Figure]:
    """List the paper's figures, and the curves of a suite."""
    titles = {
        "two-polytopes": "One weight vector: an open polytope, two disjoint polytopes (Figure 2)",
        "convex-body": "A convex polygon approximated from outside, stage by stage (Figure 3)",
        "learnt-polygon": "A random 5-gon learnt stage by stage (Figure 4)",
    }
    figures = [
        Figure(
            f"nbcs-{name}",
            title,
            f"kbench_nbcs._figures:figure_{name.replace('-', '_')}",
            ("nbcs-large", "nbcs-medium"),
        )
        for name, title in titles.items()
    ]
    curves = "Accuracy against search and fit time, by size of the map"
    draw = "kbench_nbcs._figures:figure_curves"
    return [*figures, Figure("map-curves", curves, draw, ("map-curves",))]
