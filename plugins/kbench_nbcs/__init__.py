"""Nested barycentric coordinates (NBCS) as an explicit feature map."""

import lazy_loader

from kbench import FeatureMap, Figure, hookimpl

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_figures": ["draw_decision_boundary", "draw_simplices", "five_gon"],
        "_map": ["NestedBarycentricMap"],
        "_margins": ["margin_metrics"],
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
    depths = {"depth": (2, 3, 4, 5)}
    nested, mesh = "kbench_nbcs._map", "kbench_nbcs._mesh"
    shared = {"metrics": f"{nested}:metrics", "family": "partition"}
    of_mesh = {"kernel": f"{mesh}:mesh_gram", "metrics": f"{mesh}:metrics", "family": "partition"}
    with_labels = {"supervised": True, "tasks": ("classification",)}
    rotated = {"depth": (1, 2), "n_roots": (4, 16)}
    return [
        FeatureMap("nbcs", f"{nested}:NestedBarycentricMap", depths, **shared),
        FeatureMap("nbcs-adaptive", f"{nested}:adaptive_map", depths, **with_labels, **shared),
        FeatureMap("nbcs-rotated", f"{nested}:rotated_map", rotated, **shared),
        FeatureMap("simplicial-mesh", f"{mesh}:SimplicialMeshMap", **of_mesh),
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
    return [*figures, Figure("accuracy-vs-cost", curves, draw, ("map-curves",))]
