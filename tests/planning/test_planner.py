import dataclasses
import sys

import pytest

from kbench import Cell, Limits, Protocol, Ref, Tune
from kbench.planning.cached_results import Validity, recall
from kbench.planning.cells import cells
from kbench.planning.current_state import Present
from kbench.planning.planned import PlannedCell, task_key
from kbench.planning.planner import Planner, line_key
from kbench.planning.suite_file import read
from kbench.records import DatasetFacts, Manifest, Problem, Result
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build

NOTHING = Manifest()
IRIS = DatasetFacts("c" * 64, n_samples=150, n_features=4)
TEXT = """
datasets = ["iris"]
feature_maps = ["rff"]
learners = ["ridge"]
"""


class NoCache:
    def recall(self, *args):
        return None


class Known:
    """A journal with one line of each task."""

    def __init__(self, results):
        self._results, self.unreadable = results, set()

    def results(self, keys):
        return {key: [line] for key, line in self._results.items() if key in keys}

    def manifests(self):
        return {NOTHING.digest: NOTHING}


def known(results=()):
    """Return the validity of results that were made from nothing that can change."""
    return Validity(Known(dict(results)), Present())


@pytest.fixture
def planner(registry):
    return Planner(registry, NoCache())


def planned(planner, registry, text=TEXT, data=IRIS, results=(), limits=None, **options):
    suite = read(text, "s", registry)
    if limits:
        suite = dataclasses.replace(suite, limits=limits)
    cells = planner.plan(suite, {"iris": data})
    recall(cells, known(results), suite.limits, **options)
    return cells


def line(key, index, status="ok", time_s=300.0, memory_mib=4096.0):
    of_task = task_key(key, index)
    limits = Limits(task_timeout_s=time_s, task_memory_mib=memory_mib)
    made = Result(of_task, key, index, status, limits=limits, manifest=NOTHING.digest)
    return {of_task: made.to_json()}


def key_of(planner, registry, text=TEXT, checksum="c" * 64):
    (cell,) = cells(read(text, "s", registry), registry)
    return planner.cell_key(cell, DatasetFacts(checksum))


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace('"rff"', '{ name = "rff", label = "renamed" }'),
        TEXT + "[limits]\ntask_timeout_s = 1\nn_splits = 2",
        'name = "another"\n' + TEXT,
    ],
)
def test_labels_limits_and_the_suite_are_not_in_a_cells_key(planner, registry, text):
    assert key_of(planner, registry, text) == key_of(planner, registry)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace('"rff"', '{ name = "rff", n_components = 11 }'),
        TEXT.replace('"rff"', '{ name = "rff", gamma = 0.1 }'),
        TEXT.replace('"rff"', '{ name = "rff", gamma = { tune = [0.1] } }'),
        TEXT.replace('"rff"', '{ name = "rff", kernel = { name = "gaussian", gamma = 2 } }'),
        TEXT.replace('"rff"', '"nystroem"'),
        TEXT.replace('"ridge"', '"linear-svm"'),
        *(
            f"{TEXT}[protocol]\n{change}"
            for change in (
                "seed = 1",
                "n_folds = 4",
                'scaling = "none"',
                'missing = "impute"',
                "inner_folds = 2",
                "threads = 2",
                'search_method = "random"',
            )
        ),
    ],
)
def test_whatever_decides_a_number_is_in_a_cells_key(planner, registry, text):
    assert key_of(planner, registry, text) != key_of(planner, registry)


def test_every_field_of_the_protocol_is_in_a_cells_key(planner, registry):
    (cell,) = cells(read(TEXT, "s", registry), registry)
    keys = {planner.cell_key(cell, DatasetFacts("x"))}
    others = {
        "cv": "holdout",
        "n_folds": 9,
        "train_size": 0.1,
        "test_size": 0.9,
        "max_train_rows": 7,
        "unlabeled_size": 0.2,
        "gram_error_rows": 7,
        "target_scale": "log",
        "threshold_metric": "mcc",
        "scaling": ("none",),
        "missing": "impute",
        "inner_folds": 9,
        "inner_cv": "official",
        "refit_maps_in_inner_folds": False,
        "block_dtype": "float32",
        "device": "cuda",
        "other_methods": "skip",
        "search_method": "random",
        "n_candidates": 99,
        "one_standard_error": True,
        "search_metric": "log_loss",
        "calibration": "sigmoid",
        "search_timeout_s": 9.0,
        "map_seeds": 9,
        "threads": 9,
        "seed": 9,
    }
    assert set(others) == {each.name for each in dataclasses.fields(Protocol)}
    for name, value in others.items():
        changed = dataclasses.replace(cell.protocol, **{name: value})
        keys.add(planner.cell_key(dataclasses.replace(cell, protocol=changed), DatasetFacts("x")))
    assert len(keys) == len(others) + 1


def test_the_data_are_in_a_cells_key(planner, registry):
    assert key_of(planner, registry, checksum="d" * 64) != key_of(planner, registry)


def test_which_models_are_simpler_is_in_a_cells_key(planner, registry):
    before = key_of(planner, registry)
    ridge = registry.get("learner", "ridge")
    changed = dataclasses.replace(ridge, simpler={"alpha": "smaller"})
    registry._records["learner"]["ridge"] = changed
    assert key_of(planner, registry) != before


def test_the_default_grid_is_in_a_cells_key(plugin_of, planner, registry):
    before = key_of(planner, registry)
    registry._records["feature map"]["rff"] = dataclasses.replace(
        registry.get("feature map", "rff"), grid={"gamma": (7.0,)}
    )
    assert key_of(planner, registry) != before


def test_the_order_in_which_simpler_models_are_sought_is_in_a_cells_key(planner, registry):
    """The first parameter counts before the second."""
    ridge = registry.get("learner", "ridge")
    simpler = {"alpha": "larger", "gamma": "smaller"}
    keys = set()
    for names in (["alpha", "gamma"], ["gamma", "alpha"]):
        changed = dataclasses.replace(ridge, simpler={name: simpler[name] for name in names})
        registry._records["learner"]["ridge"] = changed
        keys.add(key_of(planner, registry))
    assert len(keys) == 2


def test_the_order_of_what_is_searched_is_in_a_cells_key(planner, registry):
    """Ties go to the first candidate, and a random search draws by number."""
    gamma, width = "gamma = { tune = [1.0, 2.0] }", "n_components = { tune = [4, 8] }"
    line = TEXT.replace('"rff"', '{ name = "rff", FIRST, SECOND }')
    one = line.replace("FIRST", gamma).replace("SECOND", width)
    other = line.replace("FIRST", width).replace("SECOND", gamma)
    assert key_of(planner, registry, one) != key_of(planner, registry, other)
    # what is given has no order
    one, other = (each.replace("{ tune = [4, 8] }", "4") for each in (one, other))
    assert key_of(planner, registry, one) == key_of(planner, registry, other)


def test_the_order_of_what_is_searched_in_a_component_is_in_a_cells_key(planner, registry):
    line = TEXT.replace('"rff"', '{ name = "rff", kernel = { name = "gaussian", FIRST, SECOND } }')
    gamma, C = "gamma = { tune = [1.0, 2.0] }", "C = { tune = [4.0, 8.0] }"
    values = [(gamma, C), (C, gamma), (gamma.replace("2.0", "3.0"), C)]
    texts = [line.replace("FIRST", one).replace("SECOND", other) for one, other in values]
    assert len({key_of(planner, registry, text) for text in texts}) == 3
    rff = registry.get("feature map", "rff")
    keys = set()
    for names in (["gamma", "C"], ["C", "gamma"]):
        kernel = Ref("gaussian", {name: Tune((1.0, 2.0)) for name in names})
        changed = dataclasses.replace(rff, grid={"kernel": (kernel,)})
        registry._records["feature map"]["rff"] = changed
        keys.add(key_of(planner, registry))
    assert len(keys) == 2


def test_the_order_of_a_default_grid_is_in_a_cells_key(planner, registry):
    rff = registry.get("feature map", "rff")
    grid = {"gamma": (7.0, 8.0), "kernel": (1, 2)}
    keys = set()
    for names in (["gamma", "kernel"], ["kernel", "gamma"]):
        changed = dataclasses.replace(rff, grid={name: grid[name] for name in names})
        registry._records["feature map"]["rff"] = changed
        keys.add(key_of(planner, registry))
    assert len(keys) == 2


@pytest.mark.parametrize("field", ["make", "kernel", "metrics"])
def test_what_a_record_names_is_in_a_cells_key(planner, registry, field):
    """Two classes of one module have the same code."""
    rff = registry.get("feature map", "rff")
    keys = {key_of(planner, registry)}
    for name in ("One", "Two"):
        changed = dataclasses.replace(rff, **{field: f"{rff.make.__module__}:{name}"})
        registry._records["feature map"]["rff"] = changed
        keys.add(key_of(planner, registry))
    assert len(keys) == 3


def test_a_nested_components_record_is_in_a_cells_key(planner, registry):
    text = TEXT.replace('"rff"', '{ name = "rff", kernel = { name = "gaussian" } }')
    before = key_of(planner, registry, text)
    gaussian = registry.get("kernel", "gaussian")
    module = gaussian.make.__module__
    changed = dataclasses.replace(gaussian, make=f"{module}:Other")
    registry._records["kernel"]["gaussian"] = changed
    assert key_of(planner, registry, text) != before
    assert key_of(planner, registry) == key_of(planner, registry)
    registry._records["kernel"]["gaussian"] = dataclasses.replace(gaussian, make=f"{module}:Thing")
    assert key_of(planner, registry, text) == before


def test_which_function_loads_a_dataset_is_in_the_code_of_its_source(planner, registry):
    before = planner.origin(Ref("iris"))
    iris = registry.get("dataset", "iris")
    changed = dataclasses.replace(iris, load=f"{iris.load.__module__}:another")
    registry._records["dataset"]["iris"] = changed
    assert planner.origin(Ref("iris")) != before


@pytest.mark.parametrize(
    ("protocol", "n_missing", "is_in"),
    [
        ('missing = "impute"', 3, True),
        ('missing = "impute"', 0, False),
        ('missing = "drop_rows"', 3, False),
    ],
)
def test_kinds_of_columns_are_in_a_cells_key_where_they_decide_how_to_impute(
    planner, registry, protocol, n_missing, is_in
):
    keys = set()
    for kinds in (("numeric", "numeric"), ("numeric", "onehot")):
        data = dataclasses.replace(
            IRIS, n_missing=n_missing, missing={"a": n_missing}, feature_kinds=kinds
        )
        text = f"{TEXT}[protocol]\n{protocol}"
        (one,) = planned(planner, registry, text, data)
        keys.add(one.key)
    assert len(keys) == 1 + is_in


def test_splits_that_are_known_are_not_planned_again(planner, registry):
    key = key_of(planner, registry)
    (one,) = planned(planner, registry, results={**line(key, 0), **line(key, 3)})
    assert one.missing == [1, 2, 4]
    assert one.status == "skipped"


def test_more_splits_are_added_to_those_that_are_known(planner, registry):
    key = key_of(planner, registry)
    results = {k: v for i in range(5) for k, v in line(key, i).items()}
    (one,) = planned(planner, registry, results=results)
    assert (one.missing, one.status) == ([], "ok")
    (one,) = planned(planner, registry, results=results, limits=Limits(n_splits=7))
    assert one.missing == [5, 6]


@pytest.mark.parametrize("n_known", [5, 16, 40])
def test_asking_for_fewer_splits_loses_none_that_are_known(planner, registry, n_known):
    key = key_of(planner, registry)
    results = {k: v for i in range(n_known) for k, v in line(key, i).items()}
    (one,) = planned(planner, registry, results=results, limits=Limits(n_splits=2))
    assert (one.n_splits, sorted(one.results), one.missing) == (n_known, list(range(n_known)), [])
    assert one.status == "ok"


def test_splits_beyond_those_asked_for_count_without_a_gap_only(planner, registry):
    key = key_of(planner, registry)
    results = {k: v for i in (0, 1, 2, 4) for k, v in line(key, i).items()}
    (one,) = planned(planner, registry, results=results, limits=Limits(n_splits=2))
    assert (one.n_splits, sorted(one.results)) == (3, [0, 1, 2])
    results = {**line(key, 0), **line(key, 2)}
    (one,) = planned(planner, registry, results=results, limits=Limits(n_splits=2))
    assert (one.n_splits, sorted(one.results), one.missing) == (2, [0], [1])


@pytest.mark.parametrize("status", ["timed_out", "error"])
def test_a_failure_beyond_the_splits_asked_for_is_not_theirs(planner, registry, status):
    key = key_of(planner, registry)
    results = {**line(key, 0), **line(key, 1), **line(key, 2, status)}
    (one,) = planned(planner, registry, results=results, limits=Limits(n_splits=2))
    assert (one.n_splits, one.status) == (2, "ok")


def test_datasets_of_one_key_keep_the_same_splits(planner, registry):
    key = key_of(planner, registry)
    results = {k: v for i in range(5) for k, v in line(key, i).items()}
    text = TEXT.replace('"iris"', '"iris", { name = "iris", label = "again" }')
    suite = dataclasses.replace(read(text, "s", registry), limits=Limits(n_splits=2))
    cells = planner.plan(suite, {"iris": IRIS, "again": IRIS})
    recall(cells, known(results), suite.limits)
    assert [each.n_splits for each in cells] == [5, 5]


@pytest.mark.parametrize("status", ["timed_out", "out_of_memory", "crashed"])
def test_after_a_limit_or_a_crash_the_other_splits_are_skipped(planner, registry, status):
    key = key_of(planner, registry)
    (one,) = planned(planner, registry, results=line(key, 0, status))
    assert (one.missing, one.status) == ([], status)


def test_after_an_error_the_other_splits_are_computed(planner, registry):
    key = key_of(planner, registry)
    (one,) = planned(planner, registry, results=line(key, 0, "error"))
    assert (one.missing, one.status) == ([1, 2, 3, 4], "error")


@pytest.mark.parametrize(
    ("status", "limits", "again"),
    [
        ("timed_out", Limits(task_timeout_s=301.0), True),
        ("timed_out", Limits(task_memory_mib=9999.0), False),
        ("out_of_memory", Limits(task_memory_mib=9999.0), True),
        ("out_of_memory", Limits(task_timeout_s=301.0), False),
        ("timed_out", Limits(task_timeout_s=1.0), False),
        ("crashed", Limits(task_timeout_s=301.0, task_memory_mib=9999.0), False),
    ],
)
def test_a_failure_is_repeated_when_the_limit_it_hit_is_raised(
    planner, registry, status, limits, again
):
    key = key_of(planner, registry)
    (one,) = planned(planner, registry, results=line(key, 0, status), limits=limits)
    assert (0 in one.missing) is again


@pytest.mark.parametrize(
    "other",
    [
        {"cell_key": ...},
        {"split": ...},
        {"status": ...},
        {"status": "done"},
        {"metrics": {"accuracy": None}},
        {"details": "none"},
    ],
)
def test_a_line_of_another_layout_is_passed_over_and_its_split_computed_again(
    planner, registry, other
):
    key = key_of(planner, registry)
    results = {k: v for i in range(5) for k, v in line(key, i).items()}
    changed = results[task_key(key, 2)] | other
    results[task_key(key, 2)] = {k: v for k, v in changed.items() if v is not ...}
    (one,) = planned(planner, registry, results=results)
    assert (one.missing, one.status) == ([2], "skipped")
    assert recall([one], known(results)) == 1
    # nor does it belong to a cell that was asked for less
    (one,) = planned(planner, registry, results=results, limits=Limits(n_splits=2))
    assert (one.n_splits, sorted(one.results)) == (2, [0, 1])


def test_results_in_damaged_lines_are_counted_where_they_are_computed_again(planner, registry):
    key = key_of(planner, registry)
    (one,) = planned(planner, registry)
    validity = known({k: v for i in (0, 1) for k, v in line(key, i).items()})
    # beyond the planned splits, of other cells
    validity.journal.unreadable = {task_key(key, i) for i in (2, 3, 7)} | {"other"}
    assert recall([one], validity) == 2
    assert recall([one, one], validity) == 2
    stopped = known(line(key, 0, "crashed"))
    stopped.journal.unreadable = {task_key(key, 1)}
    assert recall(planned(planner, registry), stopped) == 0


def test_a_path_that_is_no_text_is_in_a_cells_key(planner, registry):
    (cell,) = cells(read(TEXT, "s", registry), registry)
    keys = {
        line_key(dataclasses.replace(cell, dataset=Ref("csv", {"path": path})))
        for path in ("a", "a\udcff", "a\udcfe")
    }
    assert len(keys) == 3


def test_what_a_line_says_besides_does_no_harm(planner, registry):
    key = key_of(planner, registry)
    results = {k: v | {"gpu": "none"} for i in range(5) for k, v in line(key, i).items()}
    (one,) = planned(planner, registry, results=results)
    assert (one.missing, one.status, one.is_finished) == ([], "ok", True)


def test_failures_are_repeated_when_asked(planner, registry):
    key = key_of(planner, registry)
    results = {**line(key, 0), **line(key, 1, "crashed")}
    (one,) = planned(planner, registry, results=results, retry_failed=True)
    assert one.missing == [1, 2, 3, 4]


def test_missing_values_without_a_policy_are_a_problem_before_anything_runs(planner, registry):
    holes = dataclasses.replace(IRIS, n_missing=3, missing={"age": 3})
    (one,) = planned(planner, registry, data=holes)
    assert one.problem.status == "error"
    assert "3 missing values in age (3)" in one.problem.reason
    assert one.missing == []
    text = TEXT + '[protocol]\nmissing = "impute"'
    (one,) = planned(planner, registry, text, data=holes)
    assert one.problem is None


def test_official_splits_are_as_many_as_the_data_have(planner, registry):
    text = TEXT + '[protocol]\ncv = "official"'
    (one,) = planned(planner, registry, text, data=dataclasses.replace(IRIS, n_splits=3))
    assert one.n_splits == 3
    (one,) = planned(planner, registry, text)
    assert "comes without splits" in one.problem.reason


def test_an_ordered_holdout_is_one_split(planner, registry):
    text = TEXT + '[protocol]\ncv = "ordered"\n'
    (one,) = planned(planner, registry, text, limits=Limits(n_splits=7))
    assert one.n_splits == 1


def test_a_cell_without_data_is_planned_all_the_same(planner, registry):
    suite = read(TEXT, "s", registry)
    (one,) = planner.plan(suite, {"iris": Problem("unavailable", "no network")})
    assert (one.status, one.missing, one.n_splits) == ("unavailable", [], 5)
    assert one.key == line_key(one.cell)


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [
        (["ok", "ok"], "ok"),
        (["ok", "error"], "error"),
        (["error", "timed_out"], "timed_out"),
        (["timed_out", "crashed"], "crashed"),
    ],
)
def test_a_cells_status_is_its_worst_splits(statuses, worst):
    results = {i: Result(f"t{i}", "k", i, status) for i, status in enumerate(statuses)}
    cell = Cell(Ref("iris"), Ref("rff"), Ref("ridge"), Protocol())
    assert PlannedCell(cell, "k", IRIS, 2, None, results).status == worst


def test_rotations_of_one_map_are_known_for_learners_that_do_not_see_rotations():
    registry = build(list_plugins())
    planner = Planner(registry, NoCache())
    text = """
datasets = ["iris"]
feature_maps = [
    { name = "nystroem", n_components = 50, bandwidth_factor = { tune = [1.0, 0.5] } },
    { name = "balcan-f2", n_landmarks = 50, kernel = { tune = [
        { name = "gaussian", bandwidth_factor = 0.5 },
        { name = "gaussian", bandwidth = "median" },
    ] } },
    { name = "balcan-f2", label = "nested", n_landmarks = 50, kernel = NESTED },
    { name = "balcan-f2", label = "more", n_landmarks = 60 },
    { name = "balcan-f2", label = "default", n_landmarks = 300 },
    { name = "balcan-f2", label = "turned", n_landmarks = 300, basis = "eigen" },
    { name = "balcan-f2", label = "greedy", n_landmarks = 300, sampling = "greedy" },
    "nystroem",
    "rff",
]
learners = ["ridge", "winnow"]
""".replace("NESTED", '{ name = "gaussian", bandwidth_factor = { tune = [0.5, 1] } }')
    by_learner = {"ridge": {}, "winnow": {}}
    for each in planned(planner, registry, text):
        label = each.cell.learner.name
        by_learner[label].setdefault(each.equivalence, []).append(each.cell.feature_map.label)
    assert set(by_learner["winnow"]) == {""}
    assert sorted(map(len, by_learner["ridge"].values())) == [1, 2, 3, 3]
    assert by_learner["ridge"][""] == ["greedy", "rff"]
    assert ["default", "turned", "nystroem"] in by_learner["ridge"].values()


# -- what records, data and the suite say is in keys, and nothing else ------------------------

MAPS = """
from kbench import FeatureMap, hookimpl


@hookimpl
def kbench_feature_maps():
    return [
        FeatureMap("one", make="mutant_one:One", grid={"gamma": (1.0,)}),
        FeatureMap("two", make="mutant_two:Two"),
    ]
"""
ONE = """
from mutant_helper import FACTOR


class One:
    factor = FACTOR

    def fit(self):
        from mutant_lazy import SHIFT
"""
MUTATED = """
datasets = ["iris", "wine"]
feature_maps = ["one", { name = "two", width = WIDTH }]
learners = ["dummy-majority"]
"""


@pytest.fixture
def keys_of(install_plugin, monkeypatch):
    """Write a plugin of five files and return the keys of a suite's cells, by name."""
    # compiled files are treated as those of a text of the same length and second
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = install_plugin("mutant_plugin", MAPS)
    files = {
        "mutant_plugin": MAPS,
        "mutant_one": ONE,
        "mutant_two": "class Two: pass\n",
        "mutant_helper": "FACTOR = 1\n",
        "mutant_lazy": "SHIFT = 1\n",
    }
    (path.with_name("mutant_plugin-1.0.dist-info") / "RECORD").write_text(
        "".join(f"{name}.py,,\n" for name in files)
    )

    def keys(width=1, wine="w" * 64, **changed):
        for name, text in (files | changed).items():
            path.with_name(f"{name}.py").write_text(text)
        sys.modules.pop("mutant_plugin", None)
        registry = build(list_plugins())
        suite = read(MUTATED.replace("WIDTH", str(width)), "s", registry)
        data = {"iris": IRIS, "wine": dataclasses.replace(IRIS, checksum=wine)}
        planned = Planner(registry, NoCache()).plan(suite, data)
        return {(each.cell.dataset.label, each.cell.feature_map.name): each.key for each in planned}

    return keys


@pytest.mark.parametrize(
    ("change", "affected"),
    [
        # code is in what results record of themselves
        ({"mutant_two": "class Two: fast = True\n", "mutant_lazy": "SHIFT = 2\n"}, set()),
        ({"mutant_one": ONE + "\nx = 1\n", "mutant_helper": "FACTOR = 2\n"}, set()),
        (
            {"mutant_plugin": MAPS.replace("_two:Two", "_two:Too")},
            {("iris", "two"), ("wine", "two")},
        ),
        ({"mutant_plugin": MAPS.replace("1.0,", "1.0, 2.0")}, {("iris", "one"), ("wine", "one")}),
        ({"mutant_plugin": '"""Two maps."""\n' + MAPS}, set()),
        ({"wine": "v" * 64}, {("wine", "one"), ("wine", "two")}),
        ({"width": 2}, {("iris", "two"), ("wine", "two")}),
        ({}, set()),
    ],
)
def test_exactly_the_affected_cells_have_other_keys(keys_of, change, affected):
    before, after = keys_of(), keys_of(**change)
    assert {cell for cell in before if before[cell] != after[cell]} == affected


def test_a_method_has_the_family_of_its_map_or_of_its_learner_on_the_inputs():
    registry = build(list_plugins())
    text = """
[[block]]
datasets = ["iris", "wine"]
feature_maps = ["identity", "rff", "arc-cosine"]
learners = ["ridge", "knn", "kernel-svm"]
"""
    families = {
        (cell.cell.dataset.label, cell.cell.feature_map.name, cell.cell.learner.name): cell.family
        for cell in Planner(registry, NoCache()).plan(read(text, "s", registry), {"iris": IRIS})
    }
    # also where the data cannot be had
    for data in ("iris", "wine"):
        assert families[data, "identity", "ridge"] == "inputs"
        assert families[data, "identity", "knn"] == "neighbours"
        assert families[data, "identity", "kernel-svm"] == "kernel"
        assert {families[data, "rff", learner] for learner in ("ridge", "knn")} == {"fourier"}
        assert families[data, "arc-cosine", "ridge"] == ""
