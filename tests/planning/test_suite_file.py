import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbench import DatasetSource, FeatureMap, Learner, Metric, Protocol, Ref, SuiteError, Tune
from kbench.planning.cells import cells, select
from kbench.planning.suite_file import find, read
from kbench.records.canonical import dumps, from_json, to_json
from kbench.registry.registry import build

LISTS = 'datasets = ["iris"]\nfeature_maps = ["rff"]\nlearners = ["ridge"]\n'


def names(suite, registry):
    return [cell.name for cell in cells(suite, registry)]


def problems(text, registry):
    with pytest.raises(SuiteError) as caught:
        read(text, "s", registry)
    return caught.value.problems


def test_a_product_of_three_lists(registry):
    text = 'datasets = ["iris", "wine"]\nfeature_maps = ["rff", "nystroem"]\nlearners = ["ridge"]'
    assert names(read(text, "s", registry), registry) == [
        "rff + ridge on iris",
        "nystroem + ridge on iris",
        "rff + ridge on wine",
        "nystroem + ridge on wine",
    ]


def test_the_name_is_the_stem_unless_the_file_says_otherwise(registry):
    assert read(LISTS, "stem", registry).name == "stem"
    assert read('name = "own"\n' + LISTS, "stem", registry).name == "own"


def test_six_mistakes_are_six_problems_each_with_its_place(registry):
    text = """
datasets = ["iriss"]
feature_maps = [{ name = "rff", n_componets = 64 }, "nystroem"]
learners = ["ridge", "ridge"]
colour = "red"
[protocol]
n_folds = 1
[limits]
task_timeout_s = "long"
"""
    found = problems(text, registry)
    assert len(found) == 6
    for words in (
        "datasets[0]: no dataset is named 'iriss'; did you mean 'iris'?",
        "feature_maps[0].n_componets: 'rff' has no such parameter; did you mean 'n_components'?",
        "learners[1]: the label 'ridge' is that of learners[0] too",
        "colour: no such key",
        "protocol.n_folds must be greater than or equal to 2, got 1",
        "limits.task_timeout_s must be a valid number, got 'long'",
    ):
        assert any(each.startswith(words) for each in found), (words, found)


def test_a_device_replaces_those_of_all_protocols(registry):
    text = (
        'datasets = ["iris", "wine"]\nfeature_maps = ["rff"]\nlearners = ["ridge"]\n'
        '[protocol]\ndevice = "cuda"\n[dataset_protocols.wine]\nn_folds = 3\ndevice = "torch-cpu"\n'
    )
    assert "protocol.device must be the same in all blocks" in problems(text, registry)[0]
    for device in ("cpu", "cuda"):
        suite = read(text, "s", registry, device)
        assert [each.device for each in suite.protocols] == [device, device]
        assert suite.blocks[0].dataset_protocols["wine"].n_folds == 3


def test_a_device_goes_with_the_other_keys(registry):
    text = LISTS + '[protocol]\ndevice = "cuda"\nother_methods = "skip"'
    assert read(text, "s", registry, "torch-cpu").protocols[0].other_methods == "skip"
    with pytest.raises(SuiteError) as caught:
        read(text, "s", registry, "cpu")
    (problem,) = caught.value.problems
    assert "device" in problem.partition(":")[0]
    assert 'other_methods = "skip" needs a device other than "cpu"' in problem


def test_an_unknown_device_is_one_message(registry):
    with pytest.raises(SuiteError, match="device must be 'cpu', 'torch-cpu' or 'cuda', got 'gpu'"):
        read(LISTS, "s", registry, "gpu")


def test_a_syntax_error_stands_alone(registry):
    (only,) = problems("datasets = [", registry)
    assert re.match(r"the file of suite '.+' is not valid TOML: Invalid value", only)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{ n_components = 3 }", "feature_maps[0].name: missing"),
        ('{ name = "iris" }', "'iris' is a dataset"),
        ('{ name = "rff", label = 3 }', "feature_maps[0].label must be a string, got 3"),
        ('{ name = "rff", gamma = { serch = [1] } }', "feature_maps[0].gamma must be a table with"),
        ('{ name = "rff", gamma = { tune = [] } }', "feature_maps[0].gamma.tune must be"),
        ('{ name = "rff", gamma = { tune = [{ expand = [1] }] } }', "`expand` has no meaning"),
        ('{ name = "rff", gamma = { tune = [{ tune = [1] }] } }', "`tune` has no meaning"),
        ('{ name = "rff", gamma = [{ tune = [1] }] }', "`tune` has no meaning inside a list"),
        (
            '{ name = "rff", kernel = { tune = [{ name = "gaussian", C = { expand = [1] } }] } }',
            "feature_maps[0].kernel.tune[0].C: `expand` has no meaning inside a list",
        ),
        (
            '{ name = "rff", kernel = { name = "gaussian", gama = { tune = [1, 2] } } }',
            "feature_maps[0].kernel.gama: 'gaussian' has no such parameter; did you mean 'gamma'?",
        ),
        (
            '{ name = "rff", gamma = 2020-01-01 }',
            "feature_maps[0].gamma must not be a date or a time, got 2020-01-01",
        ),
        ('{ name = "rff", kernel = { name = "gausian" } }', "did you mean 'gaussian'"),
        (
            '{ name = "rff", kernel = { name = "gaussian", widt = 1 } }',
            "feature_maps[0].kernel.widt: 'gaussian' has no such parameter",
        ),
        ("3", "feature_maps[0]"),
        (
            '{ name = "rff", gamma = { tune = [1.0, nan] } }',
            "feature_maps[0].gamma.tune[1] must be a finite number, got nan",
        ),
        ('{ name = "rff", gamma = -inf }', "feature_maps[0].gamma must be a finite number"),
        (
            '{ name = "rff", kernel = { name = "nystroem" } }',
            "feature_maps[0].kernel: no kernel is named 'nystroem'; 'nystroem' is a feature map",
        ),
        (
            '{ name = "rff", kernels = { tune = [{ name = "gaussian" }, { name = "ridge" }] } }',
            "feature_maps[0].kernels.tune[1]: no kernel is named 'ridge'; 'ridge' is a learner",
        ),
        (
            '{ name = "rff", kernel = { name = "gaussian", base = { name = "rff" } } }',
            "feature_maps[0].kernel.base: no kernel is named 'rff'; 'rff' is a feature map",
        ),
    ],
)
def test_a_wrong_line_is_named_with_its_place(registry, line, words):
    text = f'datasets = ["iris"]\nfeature_maps = [{line}]\nlearners = ["ridge", "ridge"]'
    assert any(words in each for each in problems(text, registry)), problems(text, registry)


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (
            'scaling = "std"',
            "protocol.scaling must be 'minmax', 'standard', 'unit_ball' or 'none', got 'std'",
        ),
        ('scaling = { tune = ["nope"] }', "protocol.scaling.tune[0]"),
        ("train_size = 0.9\ntest_size = 0.9", "more than 1 together"),
        ("unlabeled_size = -1", "protocol.unlabeled_size"),
        ('n_folds = "5"', "protocol.n_folds must be a valid integer, got '5'"),
        ('search_method = "race"', "must be 'grid', 'random' or 'racing', got 'race'"),
        (
            'refit_maps_in_inner_folds = "once"',
            "protocol.refit_maps_in_inner_folds must be a valid boolean, got 'once'",
        ),
        (
            'block_dtype = "float32"',
            'block_dtype = "float32" needs refit_maps_in_inner_folds = false',
        ),
        (
            'search_method = "racing"\nrefit_maps_in_inner_folds = false',
            'search_method = "racing" needs refit_maps_in_inner_folds = true',
        ),
        ("search_timeout_s = 0", "protocol.search_timeout_s must be greater than 0, got 0"),
        ("one_standard_error = 1", "protocol.one_standard_error must be a valid boolean, got 1"),
        (
            'cv = "loo"',
            "protocol.cv must be 'stratified', 'holdout', 'ordered', 'group_duplicates' or "
            "'official', got 'loo'",
        ),
    ],
)
def test_a_wrong_protocol_is_refused(registry, protocol, words):
    found = problems(f"{LISTS}[protocol]\n{protocol}", registry)
    assert any(words in each for each in found), found


@pytest.mark.parametrize(
    ("given", "metric"),
    [
        ("", None),
        ('metric = "expected_error"', Metric("expected_error", "lower")),
        (
            'metric = { name = "margin_error", better = "lower" }',
            Metric("margin_error", "lower"),
        ),
    ],
)
def test_a_suite_says_what_it_compares(registry, given, metric):
    assert read(f"{given}\n{LISTS}", "s", registry).metric == metric


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ('"expected_eror"', "did you mean 'expected_error'"),
        ("3", "metric: got 3; must be the name of a metric, such as"),
        ('{ name = "x" }', "metric.better: missing"),
        ('{ name = "x", better = "low" }', "metric.better must be 'higher' or 'lower', got 'low'"),
        ('{ name = "X y", better = "lower" }', "metric.name: got 'X y'"),
        ('{ nam = "x", better = "lower" }', "metric.nam: no such key; did you mean 'name'"),
        ('"ece"', "'ece' is never for ranking"),
        ('{ name = "ece", better = "lower" }', "is never for ranking"),
    ],
)
def test_a_metric_that_is_none_is_refused(registry, given, words):
    found = problems(f"metric = {given}\n{LISTS}", registry)
    assert any(words in each for each in found), found


def test_a_metric_that_ranks_nothing_guides_no_search(registry):
    found = problems(f'{LISTS}[protocol]\nsearch_metric = "ece"', registry)
    assert len(found) == 1
    assert "never for ranking" in found[0]
    (unknown,) = problems(f'{LISTS}[protocol]\nsearch_metric = "unheard"', registry)
    assert unknown.count("roc_auc") == 1
    assert not re.search(r"\bece\b", unknown), unknown


@pytest.mark.parametrize(
    ("line", "key", "name"),
    [
        ("[limits]\ntime_s = 2", "limits.time_s", "task_timeout_s"),
        ("[limits]\nmemory_mb = 2", "limits.memory_mb", "task_memory_mib"),
        ('budget = "seconds"', "budget", "equal_budget"),
    ],
)
def test_a_key_that_is_like_part_of_another_is_answered_by_that_one(registry, line, key, name):
    parts = (LISTS, line) if "[" in line else (line, LISTS)
    (problem,) = problems("\n".join(parts), registry)
    assert problem == f"{key}: no such key; did you mean {name!r}?"


def test_a_suite_says_which_budgets_are_equal(registry):
    def budget(line):
        return read(f"{line}\n{LISTS}", "s", registry).equal_budget

    assert budget("") == ""
    assert budget('equal_budget = "candidates"') == "candidates"
    (problem,) = problems(f'equal_budget = "hours"\n{LISTS}', registry)
    assert problem == "equal_budget must be 'candidates' or 'seconds', got 'hours'"


def test_missing_lists_are_named(registry):
    assert problems('datasets = ["iris"]', registry) == (
        "feature_maps: missing; a list of feature_maps is needed",
        "learners: missing; a list of learners is needed",
    )


def test_threads_may_be_all_cores_of_the_machine(registry, monkeypatch):
    monkeypatch.setattr("kbench.planning.schema.physical_cores", lambda: 6)
    suite = read(LISTS + '[protocol]\nthreads = "all"', "all", registry)
    assert {block.protocol.threads for block in suite.blocks} == {6}


def test_blocks_of_other_threads_are_refused(registry):
    text = """
datasets = ["iris"]
feature_maps = ["identity"]
learners = ["ridge"]
[[block]]
[[block]]
feature_maps = ["rff"]
protocol = { threads = 2 }
"""
    with pytest.raises(SuiteError, match="threads must be the same in all blocks, got 1, 2"):
        read(text, "mixed", registry)


def test_blocks_share_the_lists_at_the_top_and_may_have_their_own_protocol(registry):
    text = """
datasets = ["iris", "wine"]
[protocol]
n_folds = 3
[[block]]
feature_maps = ["rff"]
learners = ["ridge"]
[[block]]
datasets = ["wine"]
feature_maps = ["nystroem"]
learners = ["ridge"]
protocol = { n_folds = 7 }
"""
    suite = read(text, "s", registry)
    assert [(c.name, c.protocol.n_folds) for c in cells(suite, registry)] == [
        ("rff + ridge on iris", 3),
        ("rff + ridge on wine", 3),
        ("nystroem + ridge on wine", 7),
    ]


def test_a_dataset_may_have_its_own_protocol(registry):
    text = """
datasets = ["iris", "wine"]
feature_maps = ["rff"]
learners = ["ridge"]
[protocol]
n_folds = 4
[[block]]
protocol = { search_method = "random", n_candidates = 7 }
[[block]]
datasets = ["wine"]
feature_maps = ["nystroem"]
[dataset_protocols.wine]
cv = "group_duplicates"
n_folds = 3
"""
    suite = read(text, "s", registry)
    seen = {
        (cell.feature_map.label, cell.dataset.label): (
            cell.protocol.cv,
            cell.protocol.n_folds,
            cell.protocol.n_candidates,
        )
        for cell in cells(suite, registry)
    }
    assert seen == {
        ("rff", "iris"): ("stratified", 4, 7),
        ("rff", "wine"): ("group_duplicates", 3, 7),
        ("nystroem", "wine"): ("group_duplicates", 3, 12),
    }


OF_ONE = """
datasets = ["iris", "wine"]
[[block]]
feature_maps = ["rff"]
learners = ["ridge"]
[[block]]
feature_maps = ["nystroem"]
learners = ["ridge"]
[dataset_protocols.wine]
n_folds = 3
"""


def test_what_is_added_runs_under_the_protocols_of_the_block(registry):
    suite = read(OF_ONE, "s", registry)
    added = select(suite, registry, add=((), ("identity",), ()))
    new = [cell for cell in cells(added, registry) if cell.feature_map.name == "identity"]
    assert [(cell.dataset.label, cell.protocol.n_folds) for cell in new] == [
        ("iris", 5),
        ("wine", 3),
    ]
    text = OF_ONE.replace('"wine"]', '{ name = "iris", label = "b" }]').replace(".wine]", ".b]")
    added = select(read(text, "s", registry), registry, add=(("wine",), (), ()))
    new = [cell for cell in cells(added, registry) if cell.dataset.name == "wine"]
    assert [(cell.feature_map.name, cell.protocol.n_folds) for cell in new] == [
        ("rff", 5),
        ("nystroem", 5),
    ]


def test_keys_of_a_dataset_go_together_with_those_at_the_top(registry):
    text = (
        LISTS
        + """
[protocol]
cv = "official"
n_folds = 7
[dataset_protocols.iris]
inner_cv = "official"
"""
    )
    assert "protocol.n_folds has an effect only" in problems(text, registry)[0]
    (cell,) = cells(read(text.replace("n_folds = 7", ""), "s", registry), registry)
    assert (cell.protocol.cv, cell.protocol.inner_cv) == ("official", "official")
    text = text.replace('inner_cv = "official"', 'cv = "stratified"')
    (cell,) = cells(read(text, "s", registry), registry)
    assert (cell.protocol.cv, cell.protocol.n_folds) == ("stratified", 7)


def test_mistakes_in_the_protocol_of_a_dataset(registry):
    text = LISTS + "[dataset_protocols.irs]\nn_folds = 4\n"
    assert problems(text, registry) == (
        "dataset_protocols.irs: no dataset of the suite has this label; did you mean 'iris'?",
    )
    text = LISTS + "[dataset_protocols.iris]\nn_fold = 4\n"
    assert "dataset_protocols.iris.n_fold: no such key" in problems(text, registry)[0]
    text = LISTS + "[dataset_protocols.iris]\nn_candidates = 4\n"
    assert problems(text, registry) == (
        'dataset_protocols.iris.n_candidates has an effect only with search_method = "random" '
        'or search_method = "racing"; search_method is "grid"',
    )
    text = LISTS + '[dataset_protocols.iris]\ncv = "ordered"\n[limits]\nn_splits = 3\n'
    assert problems(text, registry) == ('limits.n_splits must be 1 with cv = "ordered", got 3',)
    text = LISTS + '[dataset_protocols.iris]\ninner_cv = "official"\n'
    assert problems(text, registry) == (
        'dataset_protocols.iris: inner_cv = "official" needs cv = "official"',
    )


def test_a_block_without_a_list_that_is_not_at_the_top_is_refused(registry):
    text = '[[block]]\ndatasets = ["iris"]\nfeature_maps = ["rff"]'
    assert any(each.startswith("block[0].learners: missing") for each in problems(text, registry))


def test_each_makes_one_line_per_value_and_search_stays_one(registry):
    text = LISTS.replace(
        '["rff"]',
        '[{ name = "rff", n_components = { expand = [1, 2] }, gamma = { tune = [3, 4] }}]',
    )
    maps = read(text, "s", registry).blocks[0].feature_maps
    assert [ref.params for ref in maps] == [
        {"n_components": n, "gamma": Tune((3, 4))} for n in (1, 2)
    ]


def test_each_with_a_label_keeps_the_lines_apart(registry):
    line = '[{ name = "rff", label = "mine", gamma = { expand = [1, 2] } }]'
    maps = read(LISTS.replace('["rff"]', line), "s", registry).blocks[0].feature_maps
    assert [ref.label for ref in maps] == ["mine(gamma=1)", "mine(gamma=2)"]


def test_parameters_of_components_may_be_searched_or_make_entries(registry):
    kernel = '{ name = "gaussian", gamma = { expand = [1, 2] }, C = { tune = [3, 4] } }'
    line = f'[{{ name = "rff", label = "mine", n_components = 5, kernel = {kernel} }}]'
    maps = read(LISTS.replace('["rff"]', line), "s", registry).blocks[0].feature_maps
    kernels = [Ref("gaussian", {"gamma": gamma, "C": Tune((3, 4))}) for gamma in (1, 2)]
    assert [ref.params for ref in maps] == [{"n_components": 5, "kernel": k} for k in kernels]
    assert maps[1].label == "mine(kernel=gaussian(gamma=2, C=tune[3, 4]))"
    line = f'[{{ name = "rff", kernel = {{ tune = [{kernel.replace("expand", "tune")}] }} }}]'
    (only,) = read(LISTS.replace('["rff"]', line), "s", registry).blocks[0].feature_maps
    both = Ref("gaussian", {"gamma": Tune((1, 2)), "C": Tune((3, 4))})
    assert only.params == {"kernel": Tune((both,))}


def test_a_kernelized_learner_is_planned_with_identity_only(registry):
    text = """
datasets = ["iris"]
feature_maps = ["rff", "nystroem"]
learners = ["kernel-svm", "ridge"]
"""
    assert names(read(text, "s", registry), registry) == [
        "identity + kernel-svm on iris",
        "rff + ridge on iris",
        "nystroem + ridge on iris",
    ]


def test_two_cells_that_no_table_could_tell_apart_are_refused(registry):
    block = '[[block]]\nfeature_maps = ["rff"]\nlearners = ["ridge"]\n'
    text = 'datasets = ["iris"]\n' + block + block + "protocol = { seed = 1 }"
    assert "plans 'rff + ridge on iris' twice" in problems(text, registry)[0]


def test_a_map_that_uses_the_targets_is_not_shared_by_inner_folds(plugin_of):
    make = "sklearn.dummy:DummyClassifier"
    maps = [FeatureMap("aware", make=make, supervised=True), FeatureMap("blind", make=make)]
    registry = build(
        [
            plugin_of(
                kbench_datasets=[DatasetSource("iris", load="x:load")],
                kbench_feature_maps=maps,
                kbench_learners=[Learner("a", classifier=make), Learner("b", classifier=make)],
            )
        ]
    )
    text = 'datasets = ["iris"]\nfeature_maps = ["blind", "aware"]\nlearners = ["a", "b"]\n'
    assert problems(text + "[protocol]\nrefit_maps_in_inner_folds = false", registry) == (
        "feature map 'aware' uses the targets, and refit_maps_in_inner_folds = false in [protocol] "
        "would show it those of the inner test rows; set refit_maps_in_inner_folds = true",
    )
    assert read(text, "s", registry)


def test_a_dataset_label_means_one_thing_in_the_whole_file(registry):
    block = '[[block]]\ndatasets = [{{ name = "{}", label = "L" }}]\nlearners = ["{}"]\n'
    text = 'feature_maps = ["rff"]\n' + block.format("iris", "ridge")
    assert read(text + block.format("iris", "linear-svm"), "s", registry)
    found = problems(text + block.format("wine", "linear-svm"), registry)
    assert found == ("the dataset label 'L' means two things; give one of them a different label",)


def test_an_unknown_suite_says_what_is_near(registry):
    with pytest.raises(SuiteError, match=r"named by its path, such as zzz\.toml"):
        find("zzz", registry)
    with pytest.raises(SuiteError, match="no suite is named"):
        find("ucy", registry)
    with pytest.raises(SuiteError, match="cannot read the suite file"):
        find("gone.toml", registry)


def test_a_suite_file_is_found_by_its_path(registry, tmp_path):
    (tmp_path / "mine.toml").write_text(LISTS)
    assert find(str(tmp_path / "mine.toml"), registry) == (LISTS, "mine")


def test_a_binary_learner_says_how_it_treats_several_classes(registry):
    record = dataclasses.replace(registry.get("learner", "ridge"), multiclass="ovr")
    registry._records["learner"]["ridge"] = record
    suite = read(LISTS, "s", registry)
    assert [ref.label for ref in suite.blocks[0].learners] == ["ridge (ovr)"]
    assert names(select(suite, registry, learners=["ridge"]), registry) == [
        "rff + ridge (ovr) on iris"
    ]
    for scheme in ("ovr", "ovo"):
        line = f'{{ name = "ridge", multiclass = "{scheme}" }}'
        (ref,) = read(LISTS.replace('"ridge"', line), "s", registry).blocks[0].learners
        assert ref == Ref("ridge", {"multiclass": scheme}, f"ridge ({scheme})")
    twice = LISTS.replace('"ridge"', '"ridge", { name = "ridge", multiclass = "ovr" }')
    problem = problems(twice, registry)[0]
    assert "the label 'ridge (ovr)' is that of learners[0] too" in problem
    searched = LISTS.replace('"ridge"', '{ name = "ridge", multiclass = { tune = ["ovr"] } }')
    (ref,) = read(searched, "s", registry).blocks[0].learners
    assert ref.label == "ridge(multiclass=tune[ovr])"
    own = LISTS.replace('"ridge"', '{ name = "ridge", label = "mine" }')
    assert read(own, "s", registry).blocks[0].learners[0].label == "mine"


TWO = """
datasets = ["iris", "wine"]
[[block]]
feature_maps = ["rff", { name = "rff", label = "rff-wide", n_components = 500 }]
learners = ["ridge"]
[[block]]
feature_maps = ["identity"]
learners = ["kernel-svm"]
"""


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"datasets": ["wine"], "feature_maps": ["rff-wide"]}, ["rff-wide + ridge on wine"]),
        # a name takes all its lines, a glob what it matches
        (
            {"datasets": ["iris"], "feature_maps": ["rff"]},
            ["rff + ridge on iris", "rff-wide + ridge on iris"],
        ),
        ({"datasets": ["i*"], "feature_maps": ["*-wide"]}, ["rff-wide + ridge on iris"]),
        ({"datasets": ["iris"], "learners": ["kernel-svm"]}, ["identity + kernel-svm on iris"]),
        # what is added can be chosen too, and what the suite has is not added again
        (
            {"datasets": ["iris"], "feature_maps": ["nystroem"], "add": [[], ["nystroem"], []]},
            ["nystroem + ridge on iris"],
        ),
        (
            {
                "datasets": ["iris"],
                "feature_maps": ["rff-wide"],
                "learners": ["linear-svm"],
                "add": [["iris"], ["rff"], ["linear-svm"]],
            },
            ["rff-wide + linear-svm on iris"],
        ),
    ],
)
def test_filters(registry, filters, expected):
    suite = select(read(TWO, "s", registry), registry, **filters)
    assert names(suite, registry) == expected


def test_a_dataset_is_added_to_every_block(registry):
    suite = read(TWO.replace(', "wine"', ""), "s", registry)
    found = names(select(suite, registry, add=[["wine"], [], []]), registry)
    assert [name for name in found if name.endswith(" on wine")] == [
        "rff + ridge on wine",
        "rff-wide + ridge on wine",
        "identity + kernel-svm on wine",
    ]


def test_no_filter_removes_what_is_added(registry):
    suite = read(TWO, "s", registry)
    found = names(
        select(suite, registry, ["iris"], ["rff"], ["ridge"], [[], ["nystroem"], []]), registry
    )
    assert "nystroem + ridge on iris" in found


def test_filters_that_match_nothing_are_mistakes(registry):
    suite = read(TWO, "s", registry)
    with pytest.raises(SuiteError, match="did you mean 'wine'"):
        select(suite, registry, datasets=["wint"])
    with pytest.raises(SuiteError, match=r"'nystroem'; `add_feature_maps=\['nystroem'\]` adds it"):
        select(suite, registry, feature_maps=["nystroem"])
    with pytest.raises(SuiteError, match="no feature map is named 'nystrom'; did you mean"):
        select(suite, registry, add=[[], ["nystrom"], []])
    with pytest.raises(SuiteError, match="leave no cell"):
        select(suite, registry, feature_maps=["rff"], learners=["kernel-svm"])


values = st.recursive(
    st.integers() | st.booleans() | st.text() | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(min_size=1), inner, max_size=2).map(lambda p: Ref("n", p))
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(
    st.dictionaries(st.text(min_size=1), values | st.lists(values, min_size=1).map(tuple).map(Tune))
)
def test_the_canonical_form_comes_back(params):
    ref = Ref("name", params)
    assert from_json(to_json(ref)) == ref
    assert dumps(to_json(ref)) == dumps(to_json(from_json(to_json(ref))))


def test_the_canonical_form_of_a_protocol_has_all_of_it():
    protocol = Protocol(scaling=("minmax", "none"), train_size=0.5)
    back = Protocol(**{key: from_json(value) for key, value in to_json(protocol).items()})
    assert back == protocol


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (
            "n_candidates = 3",
            'protocol.n_candidates has an effect only with search_method = "random" or '
            'search_method = "racing"; search_method is "grid"',
        ),
        (
            "train_size = 0.5",
            'protocol.train_size has an effect only with cv = "holdout" or '
            'cv = "ordered"; cv is "stratified"',
        ),
        (
            'cv = "official"\nn_folds = 3',
            'protocol.n_folds has an effect only with cv = "stratified" or '
            'cv = "group_duplicates"; cv is "official"',
        ),
        (
            'cv = "ordered"\n[limits]\nn_splits = 3',
            'limits.n_splits must be 1 with cv = "ordered", got 3',
        ),
    ],
)
def test_a_key_without_an_effect_is_refused(registry, protocol, words):
    assert problems(f"{LISTS}[protocol]\n{protocol}", registry) == (words,)


def test_several_seeds_need_a_map_that_has_one(registry):
    text = 'datasets = ["iris"]\nfeature_maps = [{}]\nlearners = ["ridge"]\n[protocol]\n'
    (problem,) = problems(text.format('"identity"') + "map_seeds = 5", registry)
    assert problem == (
        "protocol.map_seeds has an effect only with feature maps that are drawn by a seed; the "
        "only feature map is 'identity'"
    )
    suite = read(text.format('"identity", "rff"') + "map_seeds = 5", "s", registry)
    assert suite.blocks[0].protocol.map_seeds == 5


@pytest.mark.parametrize("value", ["0", "51", "true", '"3"', "2.0"])
def test_a_number_of_seeds_is_an_integer_from_1_to_50(registry, value):
    (problem,) = problems(f"{LISTS}[protocol]\nmap_seeds = {value}", registry)
    assert problem.startswith("protocol.map_seeds must be")


def test_a_key_that_any_block_uses_may_stand_at_the_top(registry):
    blocks = """
[protocol]
n_candidates = 3
[[block]]
[[block]]
learners = ["linear-svm"]
protocol = { search_method = "random" }
"""
    assert len(read(LISTS + blocks, "s", registry).blocks) == 2
    own = blocks.replace('search_method = "random"', 'search_method = "random", n_candidates = 4')
    (problem,) = problems(LISTS + own, registry)
    assert problem.startswith("protocol.n_candidates has an effect only with")
    wrong = blocks.replace("n_candidates = 3\n", "").replace(
        'search_method = "random"', "n_candidates = 4"
    )
    (problem,) = problems(LISTS + wrong, registry)
    assert problem.startswith("block[1].protocol.n_candidates has an effect only with")
