"""Suites with rules on the size of data."""

import re
from dataclasses import replace

import pytest

from kbench import Protocol, Ref, SuiteError
from kbench.planning.cells import cells
from kbench.planning.suite_file import read
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_tables.recommend.user_data import OWN_TABLES
from kbench_tables.size_rules import Size, choose_cells, read_for

MINE = Ref("wine", {}, "mine")

TEXT = """
learners = ["ridge"]
[[feature_maps]]
name = "rff"
label = "rff"
n_components = { fraction_of_rows = 0.1, min = 20, max = 100 }
[protocol]
search_method = "random"
n_candidates = 4
n_folds = 3
[[rule]]
when = { max_rows = 1000 }
protocol = { n_folds = 5, n_candidates = 8 }
[[rule]]
when = { min_rows = 100, max_rows = 1000, sparse = true }
protocol = { n_folds = 10 }
[limits]
task_timeout_s = 60
[[block]]
[[block]]
when = { max_features = 40, sparse = false }
feature_maps = [{ name = "nystroem", label = "wide", n_components = 500 }]
[[block]]
when = { min_features = 41 }
feature_maps = ["identity"]
learners = ["linear-svm", "kernel-svm"]
protocol = { n_folds = 2 }
"""


def read_text(registry, rows=500, features=10, sparse=False, text=TEXT, **options):
    return read_for(MINE, Size(rows, features, sparse), text, "s", registry, **options)


def methods(sized, registry, **named):
    found = choose_cells(sized, registry, **named)
    assert all(cell.dataset == MINE for cell in found)
    return [f"{cell.feature_map.label} + {cell.learner.label}" for cell in found]


@pytest.mark.parametrize(
    ("rows", "features", "sparse", "expected"),
    [
        (500, 40, False, ["rff + ridge", "wide + ridge"]),
        (500, 40, True, ["rff + ridge"]),
        (500, 41, False, ["rff + ridge", "identity + linear-svm", "identity + kernel-svm"]),
    ],
)
def test_blocks_are_for_the_sizes_that_they_say(registry, rows, features, sparse, expected):
    assert methods(read_text(registry, rows, features, sparse), registry) == expected


@pytest.mark.parametrize(
    ("rows", "sparse", "n_folds", "n_candidates"),
    [
        (99, True, 5, 8),
        (100, True, 10, 8),
        (100, False, 5, 8),
        (1000, True, 10, 8),
        (1001, True, 3, 4),
    ],
)
def test_later_rules_change_the_protocol_last(registry, rows, sparse, n_folds, n_candidates):
    sized = read_text(registry, rows, 41, sparse)
    expected = Protocol(search_method="random", n_folds=n_folds, n_candidates=n_candidates)
    assert sized.suite.blocks[0].protocol == sized.shared.protocol == expected
    # a block changes what it names
    assert sized.suite.blocks[-1].protocol == replace(expected, n_folds=2)
    assert sized.suite.limits.task_timeout_s == 60


@pytest.mark.parametrize(
    ("share", "rows", "expected"),
    [
        ("fraction_of_rows = 0.1, min = 20, max = 100", 199, 20),
        ("fraction_of_rows = 0.1, min = 20, max = 100", 219, 21),
        ("fraction_of_rows = 0.1, min = 20, max = 100", 5000, 100),
        ("fraction_of_rows = 0.29", 100, 29),  # 28.999999999999996 as a product of floats
        ("fraction_of_rows = 0.25", 3, 1),
        ("fraction_of_rows = 1", 7, 7),
    ],
)
def test_a_share_of_the_rows_becomes_a_number(registry, share, rows, expected):
    text = TEXT.replace("fraction_of_rows = 0.1, min = 20, max = 100", share)
    block = read_text(registry, rows, text=text).suite.blocks[0]
    assert block.feature_maps == (Ref("rff", {"n_components": expected}, "rff"),)


def test_shares_stand_inside_of_values_too(registry):
    text = TEXT.replace(
        "{ fraction_of_rows = 0.1, min = 20, max = 100 }",
        "{ tune = [10, { fraction_of_rows = 0.1 }] }",
    )
    (rff,) = read_text(registry, text=text).suite.blocks[0].feature_maps
    assert rff.params["n_components"].values == (10, 50)


def test_named_components_are_taken_as_the_file_has_them(registry):
    sized = read_text(registry, features=50)
    named = methods(sized, registry, feature_maps=["nystroem", "rff", "rff"])
    assert named == ["rff + ridge", "wide + ridge"]
    # with its own map; of other learners there are the maps of the cells
    named = methods(sized, registry, learners=["kernel-svm", "ridge"])
    assert named == [
        "rff + ridge",
        "identity + kernel-svm",
        "identity + ridge",
    ]
    with pytest.raises(SuiteError, match="no feature map is named 'rf'; did you mean 'rff'"):
        choose_cells(sized, registry, ["rf"])


def test_without_learners_at_the_top_those_of_the_cells_are_taken(registry):
    text = TEXT.replace('learners = ["ridge"]', "", 1).replace("[[block]]\n", "", 1)
    text = text.replace("n_components = 500 }]", 'n_components = 500 }]\nlearners = ["ridge"]')
    sized = read_text(registry, text=text)
    assert methods(sized, registry, feature_maps=["rff"]) == ["rff + ridge"]


def test_all_mistakes_are_told_at_once_with_their_places(registry):
    text = """
datasets = ["iris"]
learners = ["ridge"]
feature_maps = [
    { name = "rff", n_components = { fraction_of_rows = 2.0, mix = 3 } },
    { name = "rfff", n_components = { fraction_of_rows = 0.5, min = 30, max = 20 } },
]
[[rule]]
when = { max_row = 10 }
protocol = { n_folds = 1 }
[[rule]]
protocol = { n_fold = 1 }
[[block]]
when = { min_rows = 10, max_rows = 9 }
[[block]]
when = { sparse = "no", max_features = -1 }
learners = ["ridge", "ridge"]
colour = "red"
[dataset_protocols.iris]
n_folds = 3
"""
    with pytest.raises(SuiteError) as caught:
        read_text(registry, text=text)
    found = caught.value.problems
    expected = [
        "feature_maps[0].n_components.fraction_of_rows must be less than or equal to 1, got 2.0",
        "feature_maps[0].n_components.mix: no such key; did you mean 'min'?",
        "feature_maps[1].n_components: min is more than max",
        "datasets: a suite with rules on size has no datasets; it is read for one",
        "dataset_protocols: a suite with rules on size has no datasets; it is read for one",
        "rule[0].when.max_row: no such key; did you mean 'max_rows'?",
        "rule[0].protocol.n_folds must be greater than or equal to 2, got 1",
        "rule[1].when: missing",
        "rule[1].protocol.n_fold: no such key; did you mean 'n_folds'?",
        "block[0].when: min_rows is more than max_rows",
        "block[1].when.max_features must be greater than or equal to 0, got -1",
        "block[1].when.sparse must be a valid boolean, got 'no'",
        "block[1].colour: no such key; available: ",
        "feature_maps[1]: no feature map is named 'rfff'; did you mean 'rff'?",
        "block[1].learners[1]: the label 'ridge' is that of block[1].learners[0] too",
    ]
    for words in expected:
        assert [each for each in found if each.startswith(words)], (words, found)
    assert len(found) == len(expected)


def test_rules_that_do_not_fit_together_are_told(registry):
    text = TEXT.replace("n_folds = 10", "train_size = 0.9")
    with pytest.raises(SuiteError, match="protocol: train_size and test_size are more than 1"):
        read_text(registry, sparse=True, text=text)


def test_two_cells_of_one_name_may_be_for_different_sizes(registry):
    text = TEXT.replace("[[block]]\n[[block]]", "[[block]]\nwhen = { max_rows = 9 }\n[[block]]")
    text += "[[block]]\nwhen = { min_rows = 10 }\n"
    assert methods(read_text(registry, text=text), registry)[-1] == "rff + ridge"
    text = text.replace("{ max_rows = 9 }", "{ max_rows = 900 }")
    with pytest.raises(SuiteError, match="plans 'rff \\+ ridge on mine' twice"):
        read_text(registry, text=text)


def test_lines_of_components_that_are_not_installed_can_be_left_out(registry):
    text = TEXT.replace('["identity"]', '["gone"]').replace('"linear-svm"', '"lost", "linear-svm"')
    text += '[[block]]\nfeature_maps = ["identity"]\n'
    sized = read_text(registry, features=41, text=text, installed_only=True)
    assert methods(sized, registry) == ["rff + ridge", "identity + ridge"]
    with pytest.raises(SuiteError, match="'gone'"):
        read_text(registry, features=41, text=text)


@pytest.mark.parametrize(
    "rule",
    [
        "[[rule]]\nwhen = { sparse = true }\nprotocol = { n_folds = 2 }",
        "[[block]]\nwhen = {}",
        "[[block]]\nlearners = [{ name = 'ridge', C = { fraction_of_rows = 0.5 } }]",
    ],
)
def test_such_a_suite_is_not_run_by_itself(registry, rule):
    plain = 'datasets = ["iris"]\nfeature_maps = ["rff"]\nlearners = ["ridge"]\n'
    assert cells(read(plain, "s", registry), registry)
    with pytest.raises(SuiteError) as caught:
        read(plain + rule, "s", registry)
    (only,) = caught.value.problems
    assert "the suite 's' has rules on the size of data and cannot be run by itself" in only
    assert "`kbench recommend FILE --target COLUMN`" in only


@pytest.mark.parametrize("name", OWN_TABLES.values())
def test_own_tables_have_no_mistake_at_any_size(name):
    registry = build(list_plugins())
    text = registry.get("suite", name).read_text(encoding="utf-8")
    for rows in [int(n) for n in re.findall(r"max_rows = ([\d_]+)", text)]:
        for size in (Size(rows, 1, False), Size(rows + 1, 1, True)):
            assert len(cells(read_for(MINE, size, text, "s", registry).suite, registry)) > 6
