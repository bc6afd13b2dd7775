"""Methods are what records and suite lines say."""

import functools

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

from kbench import FeatureMap, KernelSpec, Learner
from kbench.evaluation.method import Method, learner_side, map_side
from kbench.evaluation.specs import Candidate, Nested
from kbench.records import Ref, Tune
from kbench.registry.registry import build

gram, of_map, of_learner = np.dot, np.sum, np.mean


def registry(plugin_of):
    return build(
        [
            plugin_of(
                kbench_feature_maps=[
                    FeatureMap(
                        "full",
                        make=FunctionTransformer,
                        grid={"gamma": (0.1, 1.0), "kernel": (Ref("rbf", {"a": 1}), "linear")},
                        kernel=gram,
                        metrics=of_map,
                        supervised=True,
                        requires="unit_ball",
                    ),
                    FeatureMap("bare", make=FunctionTransformer),
                ],
                kbench_learners=[
                    Learner(
                        "full",
                        classifier=LogisticRegression,
                        grid={"C": (1.0, 2.0)},
                        path="C",
                        simpler={"C": "smaller"},
                        metrics=of_learner,
                    ),
                    Learner("bare", classifier=LogisticRegression),
                ],
                kbench_kernels=[KernelSpec("rbf", make=functools.partial)],
            )
        ]
    )


def test_a_method_has_all_that_its_records_say(plugin_of):
    found = registry(plugin_of)
    method = Method(**map_side(Ref("full"), found), **learner_side(Ref("full"), found))
    assert (method.kernel, method.map_metrics, method.learner_metrics) == (
        gram,
        of_map,
        of_learner,
    )
    map_, learner = method.feature_map, method.learner
    assert (map_.make, map_.supervised, map_.requires) == (FunctionTransformer, True, "unit_ball")
    assert map_.label == "feature map 'full'"
    rbf = Nested(functools.partial, {"a": 1}, "rbf", "rbf(a=1)")
    assert map_.space == {"gamma": (0.1, 1.0), "kernel": (rbf, "linear")}
    assert (learner.make, learner.path, learner.simpler) == (
        LogisticRegression,
        "C",
        {"C": "smaller"},
    )
    assert (learner.label, learner.space) == ("learner 'full'", {"C": (1.0, 2.0)})


def test_a_method_has_nothing_that_its_records_do_not_say(plugin_of):
    found = registry(plugin_of)
    method = Method(**map_side(Ref("bare"), found), **learner_side(Ref("bare"), found))
    assert (method.kernel, method.map_metrics, method.learner_metrics) == (None, None, None)
    assert (method.feature_map.supervised, method.feature_map.requires) == (False, None)
    assert (method.learner.path, method.learner.simpler) == (None, {})


def test_parameters_of_a_line_replace_the_grid(plugin_of):
    rbf = Ref("rbf", {"a": 2, "of": (Ref("rbf"), 3)})
    line = Ref("full", {"gamma": Tune((5.0, rbf)), "kernel": rbf, "width": 7})
    spec = map_side(line, registry(plugin_of))["feature_map"]
    inner = Nested(functools.partial, {}, "rbf", "rbf")
    nested = Nested(functools.partial, {"a": 2, "of": (inner, 3)}, "rbf", rbf.label)
    assert spec.params == {"kernel": nested, "width": 7}
    assert spec.space == {"gamma": (5.0, nested)}


def test_searches_inside_components_are_searched(plugin_of):
    found = registry(plugin_of)

    def rbf(**params):
        return Nested(functools.partial, params, "rbf", Ref("rbf", params).label)

    wide = Ref("rbf", {"a": Tune((1.0, 2.0)), "b": Tune((3, 4))})
    spec = map_side(Ref("full", {"gamma": 1.0, "kernel": wide}), found)["feature_map"]
    assert spec.params == {"gamma": 1.0}
    assert spec.space == {"kernel": tuple(rbf(a=a, b=b) for a in (1.0, 2.0) for b in (3, 4))}
    of_several = Tune((Ref("rbf", {"a": Tune((1.0, 2.0))}), Ref("rbf", {"c": 5}), "linear"))
    spec = map_side(Ref("full", {"gamma": 1.0, "kernel": of_several}), found)["feature_map"]
    assert spec.space == {"kernel": (rbf(a=1.0), rbf(a=2.0), rbf(c=5), "linear")}
    inner = Ref("rbf", {"of": Ref("rbf", {"a": Tune((1, 2))})})
    spec = map_side(Ref("full", {"gamma": 1.0, "kernel": (inner, 3)}), found)["feature_map"]
    assert [kernels[0].params["of"] for kernels in spec.space["kernel"]] == [rbf(a=1), rbf(a=2)]
    record = found.get("feature map", "full")
    record.grid["kernel"] = (Ref("rbf", {"a": Tune((1, 2))}), "linear")
    assert map_side(Ref("full"), found)["feature_map"].space["kernel"] == (
        rbf(a=1),
        rbf(a=2),
        "linear",
    )


def test_candidates_have_the_parameters_of_nested_components_as_values():
    def kernel(**params):
        return Nested(functools.partial, params, "gaussian", Ref("gaussian", params).label)

    scaled = Nested(functools.partial, {"of": kernel(a=2)}, "scaled", "scaled(of=gaussian(a=2))")
    candidate = Candidate("none", {"kernel": scaled}, {"C": 1.0, "kernel": kernel(width=0.5)})
    assert candidate.params == {
        "scaling": "none",
        "feature_map.kernel": "scaled",
        "feature_map.kernel.of": "gaussian",
        "feature_map.kernel.of.a": 2,
        "learner.C": 1.0,
        "learner.kernel": "gaussian",
        "learner.kernel.width": 0.5,
    }


def test_equal_values_of_a_search_are_one_candidate(plugin_of):
    given = Ref("full", {"gamma": Tune((1.0, 1, 0.5, 1.0)), "kernel": Tune((True, 1, "a", "a"))})
    space = map_side(given, registry(plugin_of))["feature_map"].space
    assert space["gamma"] == (1.0, 0.5)
    assert [repr(value) for value in space["kernel"]] == ["True", "1", "'a'"]
    twice = Tune((Ref("rbf", {"a": Tune((1, 2))}), Ref("rbf", {"a": Tune((2, 3))})))
    kernels = map_side(Ref("full", {"kernel": twice}), registry(plugin_of))["feature_map"].space
    assert [kernel.params["a"] for kernel in kernels["kernel"]] == [1, 2, 3]
