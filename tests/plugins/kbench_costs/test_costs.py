"""Trials of cells, and cells that cannot fit into the memory limit."""

import ast
import itertools
import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kbench import Dataset, FeatureMap, Learner
from kbench.cli import show
from kbench.cli.plan import print_plan
from kbench.evaluation.split_view import assign
from kbench.execution import task_functions
from kbench.features import CallOutcome
from kbench.planning.planned import PlannedCell
from kbench.planning.suite_file import read
from kbench.records import Cell, Cost, DatasetFacts, Estimate, Protocol, Ref, Trial
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench.results.row_builders import make_full_row, make_row
from kbench.runner import Options, Run, Watcher, execute, preview
from kbench.storage.journal import Journal
from kbench_costs import costs, trials
from kbench_costs import prediction as cost
from kbench_costs.trials import Samples
from kbench_mlflow.reading import row_of_run
from kbench_mlflow.tracking.store import Store
from tests.support.command_here import command
from tests.support.planted import CENTROIDS

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

PLUGIN = (
    '''
"""A map with as many columns as it is told, or that does harm."""
import os, time
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_array
from kbench import Dataset, DatasetSource, FeatureMap, Learner, hookimpl


def blobs(n_samples=4000):
    rng = np.random.default_rng(0)
    y = np.arange(n_samples) % 2
    return Dataset("blobs", rng.normal(size=(n_samples, 2)) + 2 * y[:, None], y)


class Wide(TransformerMixin, BaseEstimator):
    def __init__(self, n_components=2, do="work", scale=1.0):
        self.n_components, self.do, self.scale = n_components, do, scale

    def fit(self, X, y=None):
        if self.do == "hang":
            time.sleep(600)
        if self.do == "exit":
            os._exit(3)
        return self

    def transform(self, X):
        if self.do == "sparing":
            if len(X) <= 1000:
                np.ones((len(X), self.n_components))
            return self.scale * X
        return np.repeat(self.scale * X[:, :1], self.n_components, axis=1)

'''
    + CENTROIDS.replace(
        "((X[:, None, :] - self.centres_[None]) ** 2).sum(axis=2)",
        "np.column_stack([((X - c) ** 2).sum(axis=1) for c in self.centres_])",
    )
    + """
@hookimpl
def kbench_datasets():
    return [DatasetSource("blobs", load=blobs)]


@hookimpl
def kbench_feature_maps():
    return [FeatureMap("wide", make=Wide, grid={"scale": [1.0, 0.5, 2.0]})]


@hookimpl
def kbench_learners():
    return [Learner("centroids", classifier=Centroids)]
"""
)
SUITE = """
datasets = ["blobs"]
feature_maps = [{maps}]
learners = ["centroids"]
[protocol]
n_folds = 2
inner_folds = 2
[limits]
n_splits = 1
task_timeout_s = 60
task_memory_mib = {memory}
"""


class Seen(Watcher):
    """Keeps what it is told."""

    def __init__(self):
        self.notices, self.tasks, self.predictions = [], 0, []

    def notice(self, text):
        self.notices.append(text)

    def on_predicted(self, cell, cost, n_done, n_cells):
        self.predictions.append((cell.cell.feature_map.label, cost, n_done, n_cells))

    def on_planned(self, cells, n_tasks, metric):
        self.tasks = n_tasks


@pytest.fixture
def runner(install_plugin, store_uri, monkeypatch):
    install_plugin("wide_plugin", PLUGIN)
    monkeypatch.setattr(trials, "ROWS", 3000)
    monkeypatch.setattr(costs, "FIRST_ROWS", 128)

    def make(*maps, memory=4096, **options):
        registry = build(list_plugins())
        text = SUITE.replace("{maps}", ", ".join(maps)).replace("{memory}", str(memory))
        seen = Seen()
        options = Options(given={"store": store_uri}, jobs=2, **options)
        return Run(read(text, "trial", registry), registry, options, seen), seen

    return make


def ran(runner, seen):
    return execute(runner), seen


def print_report(report):
    """Print the end of a run of the suite without filters."""
    how = {"as_json": False, "filtered": False, "ranked": True}
    show.print_report(report, ["trial"], lambda: None, **how)


def wide(n, do="work"):
    return f'{{ name = "wide", n_components = {n}, do = "{do}", label = "{do} {n}" }}'


@pytest.mark.slow
def test_a_run_predicts_and_keeps_what_it_predicted(runner, store_uri):
    report, seen = ran(*runner(wide(500)))
    (cell,) = report.cells
    (result,) = cell.done
    assert any("fits of 1 cell on samples" in text for text in seen.notices)
    assert seen.predictions == [("work 500", cell.cost, 1, 1)]
    assert result.predicted == cell.cost
    assert result.cpu_s > 0
    assert 0 < cell.cost.memory_mib.low < cell.cost.memory_mib.high
    row = make_row(cell)
    assert row.metrics["predicted_memory_mib"] == cell.cost.memory_mib.value
    assert row.metrics["task_time_cpu_s"] == result.cpu_s
    (stored,) = map(row_of_run, Store(store_uri).read("trial"))
    assert stored.metrics["predicted_time_s"] == cell.cost.seconds.value

    # a later process reads it from the journal; nothing is tried again
    again, seen = ran(*runner(wide(500)))
    assert again.cells[0].done[0].predicted == cell.cost
    assert (seen.tasks, seen.notices, seen.predictions) == (0, [], [])
    assert len(list(Journal().read("trials"))) == 1
    execute(runner(wide(500), recompute=True)[0])
    assert len(list(Journal().read("trials"))) == 1


@pytest.mark.slow
def test_a_hanging_map_costs_its_own_prediction(runner, monkeypatch):
    monkeypatch.setattr(costs, "TRIAL_S", 5.0)
    execute(runner(wide(3))[0])  # fetches the data
    plan = preview(runner(wide(3), wide(4), wide(5, "hang"), wide(6, "exit"))[0])
    costs_of = {cell.cell.feature_map.label: cell.cost for cell in plan.cells}
    assert costs_of["work 4"].seconds is not None
    assert costs_of["hang 5"] is None
    assert costs_of["exit 6"] is None
    assert costs_of["work 3"] is None  # known
    assert all(cell.problem is None for cell in plan.cells)


@pytest.mark.slow
def test_the_plan_shows_memory_and_time(runner, capsys):
    execute(runner(wide(3), memory=70)[0])  # fetches the data
    plan = preview(runner(wide(3), wide(400), wide(6000), memory=70)[0])
    print_plan(plan, as_json=True)
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [(cell["cached"], cell["tasks"]) for cell in cells] == [(1, 0), (0, 1), (0, 0)]
    assert cells[0]["memory_mib"] is cells[0]["time_s"] is None
    assert cells[1]["time_s"].keys() == {"value", "low", "high"}
    assert cells[1]["time_s"]["low"] < cells[1]["time_s"]["high"]
    assert cells[2]["note"].startswith("skipped: needs at least")
    print_plan(plan, as_json=False)
    printed = capsys.readouterr().out
    assert "memory of a task" in printed
    assert "skipped: needs" in " ".join(printed.split())


def test_a_plan_of_data_that_are_not_in_the_cache_predicts_nothing(runner):
    plan = preview(runner(wide(3))[0])
    assert [(cell.dataset, cell.cost) for cell in plan.cells] == [(None, None)]
    assert not Journal().path.exists()


def test_a_limited_time_is_not_spent_on_trials(runner):
    report = execute(runner(wide(3), total_s=60.0)[0])
    assert (report.cells[0].status, report.cells[0].cost) == ("ok", None)


@pytest.mark.slow
def test_a_cell_that_cannot_fit_is_skipped_until_the_limit_is_raised(runner, store_uri, capfd):
    report, seen = ran(*runner(wide(12_000), wide(5), memory=150))
    large, small = report.cells
    assert (large.status, small.status, seen.tasks) == ("skipped", "ok", 1)
    assert report.failed
    words = large.problem.reason
    assert words.startswith("needs at least ")
    said = re.search(
        r", the limit is 150 MiB; n_components up to about ([\d,]+) should fit$", words
    )
    largest = int(said[1].replace(",", ""))
    # a run is for what was computed; the row of the other is shown below
    assert len(Store(store_uri).read("trial")) == 1
    assert make_full_row(large, "here").error == words
    print_report(report)
    printed = " ".join(capfd.readouterr().out.split())
    assert "1 skipped" in printed
    assert words in printed
    # the limit that would suffice, and not the same one again
    higher = re.search(r"--memory-limit (\d+) compute 1 cell with \d GiB of memory", printed)
    assert int(higher[1]) > large.cost.memory_mib.value
    assert "--retry-failed" not in printed
    _, printed, _ = command("results", "trial", "--store", store_uri, capfd=capfd)
    assert f"skipped: work 12000 + centroids on blobs: {words}" in printed

    # an estimate: what the allocator gives back in time differs by a third between runs
    narrower = make_row(execute(runner(wide(largest), memory=1000)[0]).cells[0])
    assert 0.5 * 150 < narrower.metrics["peak_memory_mib"] < 1.5 * 150

    raised, seen = ran(*runner(wide(12_000), wide(5), memory=1000))
    assert raised.cells[0].problem is None
    assert [cell.status for cell in raised.cells] == ["ok", "ok"]
    assert seen.tasks == 1
    assert {run.status for run in Store(store_uri).read("trial")} == {"ok"}


def test_a_cell_is_skipped_whose_task_cannot_end_before_its_timeout(runner, monkeypatch, capfd):
    def predict(self, cells):
        memory = Estimate(10.0, 9.0, 11.0)
        times = {"work 3": Estimate(500.0, 400.0, 600.0), "work 4": Estimate(100.0, 50.0, 200.0)}
        labels = {cell.key: cell.cell.feature_map.label for cell in cells}
        return {key: costs.Prediction(Cost(memory, times[label])) for key, label in labels.items()}

    monkeypatch.setattr(costs._Costs, "predict", predict)
    report = execute(runner(wide(3), wide(4))[0])
    assert [cell.status for cell in report.cells] == ["skipped", "ok"]
    reason = report.cells[0].problem.reason
    assert "500 s" in reason or "8.3 min" in reason
    assert "task_timeout=60" in reason
    assert "task_timeout=600" in reason
    print_report(report)
    printed = capfd.readouterr().out
    assert "skipped" in printed
    assert "--memory-limit" not in printed
    assert "--retry-failed" not in printed


METHODS = """
datasets = [{ name = "polytope", n_samples = 7000 }]
feature_maps = ["identity"]
[protocol]
cv = "holdout"
inner_folds = 3
[limits]
n_splits = 1
[[block]]
learners = [
    { name = "kernel-svm", kernel = { name = "gaussian" }, C = { tune = [1.0, 64.0] } },
    { name = "knn", n_neighbors = { tune = [5, 1, 21] } },
    { name = "gradient-boosting", learning_rate = 0.1 },
]
[[block]]
feature_maps = [{ name = "rff", n_components = 256, bandwidth_factor = { tune = [1.0, 2.0] } }]
learners = [{ name = "linear-svm", C = { tune = [1.0, 16.0, 256.0] } }]
"""


OUTER = "refit_maps_in_inner_folds = false"


def make_cost(memory, seconds):
    return Cost(*(Estimate(value, value, value) for value in (memory, seconds)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seconds", "memory", "word"),
    [(0.2, 90.0, "other cell"), (0.9, 90.0, ""), (0.2, 9000.0, "")],
    ids=["much cheaper", "little cheaper", "too large"],
)
def test_an_option_that_is_much_cheaper_is_named(runner, monkeypatch, seconds, memory, word):
    run, seen = runner(wide(3), wide(4))
    ran(run, seen)  # fetches the data
    monkeypatch.setattr(costs, "LONG_TASK_S", 0.0)
    monkeypatch.setattr(costs, "SHARE", 1e6)
    monkeypatch.setattr(costs, "MAX_S", 0.0)
    tried = []

    def variant(self, subject, name, cell, make_trials):
        tried.append((name, cell.protocol.refit_maps_in_inner_folds))
        known = subject.cost().seconds.value
        return make_cost(memory, seconds * known)

    monkeypatch.setattr(costs._Costs, "_variant", variant)
    run, seen = runner(wide(5), wide(6))
    preview(run)
    assert set(tried) == {(OUTER, False)}
    said = [notice for notice in seen.notices if OUTER in notice]
    assert len(said) == bool(word)
    for notice in said:
        pattern = (
            rf"a task needs .* and .*; with {OUTER} in \[protocol\], .* of CPU time and 90 MiB"
        )
        assert re.search(pattern + r" \(as in 1 other cell\)$", notice)


@pytest.mark.slow
def test_a_refusal_names_the_option_that_fits(runner, monkeypatch):
    ran(*runner(wide(3), memory=150))  # fetches the data
    monkeypatch.setattr(costs, "LONG_TASK_S", 0.0)
    monkeypatch.setattr(costs, "SHARE", 1e6)
    monkeypatch.setattr(costs, "MAX_S", 0.0)
    monkeypatch.setattr(Cost, "exceeds", lambda self, limit: self.memory_mib.value != 90.0)
    monkeypatch.setattr(costs._Costs, "_is_over", lambda self, subject: True)
    monkeypatch.setattr(costs, "get_width", lambda cell: None)
    monkeypatch.setattr(costs._Costs, "_variant", lambda *given: make_cost(90.0, 1e-3))
    plan = preview(runner(wide(5), memory=150)[0])
    assert re.search(
        r"^needs .* \(and [\d.]+ m?s of CPU time\), "
        r"the limit is 150 MiB; max_train_rows up to about [\d,]+ should fit; "
        rf"with {OUTER} in \[protocol\], 0.001 s of CPU time and 90 MiB$",
        plan.cells[0].problem.reason,
    )


@pytest.mark.parametrize(
    ("given", "supervised", "path", "expected"),
    [
        ({}, False, "alpha", [OUTER, f'{OUTER} and block_dtype = "float32"']),
        ({}, False, None, [OUTER]),
        ({"refit_maps_in_inner_folds": False}, False, "alpha", ['block_dtype = "float32"']),
        ({}, True, "alpha", []),
        ({"search_method": "racing"}, False, "alpha", []),
    ],
)
def test_options_are_those_that_the_protocol_allows(given, supervised, path, expected):
    records = {
        "feature map": FeatureMap("map", make=object, supervised=supervised),
        "learner": Learner("learner", classifier=object, path=path),
    }
    cell = Cell(Ref("data"), Ref("map"), Ref("learner"), Protocol(**given))
    planned = SimpleNamespace(cell=cell, dataset=None)
    found = trials.alternatives(planned, SimpleNamespace(get=lambda kind, name: records[kind]))
    assert [name for name, _ in found] == expected
    assert all(not each.protocol.refit_maps_in_inner_folds for _, each in found)


@pytest.mark.slow
def test_predicted_cpu_times_are_close_to_those_measured(store_uri, monkeypatch):
    """Kernel SVM and k-NN grow with the pairs of rows; boosting stops early on many rows only."""
    monkeypatch.setattr(trials, "ROWS", 5000)
    registry = build(list_plugins())
    options = Options(given={"store": store_uri})
    report = execute(Run(read(METHODS, "methods", registry), registry, options))
    for cell in report.cells:
        (result,) = cell.done
        seconds = cell.cost.seconds
        if cell.cell.learner.name == "gradient-boosting":
            assert seconds.low / 1.5 < result.cpu_s < seconds.high
        else:
            assert 0.4 < seconds.value / result.cpu_s < 2.5, cell.cell.name


@pytest.mark.slow
def test_a_sample_must_show_that_a_cell_cannot_fit(runner):
    """A map that needs less for each row of many is not skipped."""
    report = execute(runner(wide(6000, "sparing"), memory=80)[0])
    assert report.cells[0].status == "ok"


@pytest.mark.parametrize(
    ("width", "seconds", "rows"),
    [
        (None, 2.0, [1024, 256]),
        (256, 2.0, [1024, 2048]),
        (1000, 2.0, [2000, 4000]),
        (100_000, 2.0, [4096, 8192]),  # it may take too long
        (1000, 0.0, [2000, 20_000]),
        (None, 0.4, [1024, 4096, 20_000]),  # the same for any rows, as far as two trials show
    ],
)
def test_samples_have_more_rows_than_an_embedding_has_columns(monkeypatch, width, seconds, rows):
    """A ridge of more columns than rows solves another system: its cost would mislead."""
    made = []

    def trial(self, subject, n_rows):
        made.append(n_rows)
        subject.trials.append(Trial(n_rows, False, "ok", seconds, 1.0))
        return subject.trials[-1]

    monkeypatch.setattr(costs._Costs, "_trial", trial)
    params = {} if width is None else {"n_components": width}
    cell = Cell(Ref("data"), Ref("rff", params), Ref("ridge"), Protocol())
    growth = cost.PAIRS, cost.PAIRS
    subject = costs._Subject("key", cell, None, SimpleNamespace(n_rows=20_000), [], growth)
    costs._Costs._grow(costs._Costs.__new__(costs._Costs), subject)
    assert made == rows


class Widths:
    """Makes planned cells of one method and many rows, and lists them as its family."""

    def __init__(self, monkeypatch):
        self.cells = []
        monkeypatch.setattr(costs, "family", lambda run, planned: self.cells)

    def planned(self, width, data="large"):
        protocol = Protocol(refit_maps_in_inner_folds=False)
        cell = Cell(Ref(data), Ref("rff", {"n_components": width}), Ref("ridge"), protocol)
        facts = DatasetFacts("c" * 64, n_samples=200_000, n_features=3)
        self.cells.append(PlannedCell(cell, f"{data} {width}", facts, 5))
        return self.cells[-1]


@pytest.fixture
def widths(monkeypatch):
    return Widths(monkeypatch)


@pytest.fixture
def predictor():
    found = costs._Costs.__new__(costs._Costs)
    found._run, found._known = SimpleNamespace(registry=build(list_plugins())), {}
    return found


def test_a_wide_embedding_grows_as_the_next_narrower_one_of_the_same_data(
    widths, predictor, monkeypatch
):
    asked = []
    monkeypatch.setattr(costs._Costs, "_work", lambda self, *args: asked.append(args))
    monkeypatch.setattr(costs, "task_cost", lambda run, planned: pytest.fail("it has trials"))
    for key, seconds in (("large 64", 0.1), ("large 256", 0.2), ("other 512", 0.3)):
        predictor._known[key] = [Trial(1024, False, "ok", seconds, 1.0)]
    for width, data in ((64, "large"), (256, "large"), (512, "other"), (2048, "large")):
        widths.planned(width, data)
    wide = widths.planned(1024)
    predictor._predict_wide(wide)
    assert asked == [(wide, 0, (predictor._known["large 256"], 4.0))]
    # no narrower one has trials
    predictor._known.clear()
    predictor._predict_wide(wide)
    assert asked[1:] == [(wide, 0)]


def test_a_wide_embedding_with_a_long_trial_has_none(widths, predictor, monkeypatch):
    usual = Cost(Estimate(300.0, 100.0, 900.0), Estimate(90.0, 30.0, 270.0))
    monkeypatch.setattr(costs, "task_cost", lambda run, planned: usual)
    narrow, wide = widths.planned(1024), widths.planned(4096)
    narrow.cost = Cost(Estimate(130.0, 120.0, 140.0))
    # one matrix, or blocks in passes: Hessians are more than that
    for blocks_mib in (0.0, 50.0):
        predictor._known[narrow.key] = [Trial(2048, False, "ok", 1.1, 70.0, 1, blocks_mib)]
        assert predictor._predict_wide(wide).cost == usual
    # nor does a list without trials, of another limit, bring one
    predictor._known[wide.key] = []
    assert predictor._predict_wide(wide).cost == usual
    # blocks and matrices of the columns are known: three folds and the solution have eight of them
    predictor._known[narrow.key] = [Trial(2048, False, "ok", 1.1, 70.0, 1, 50.0, from_sums=True)]
    found = predictor._predict_wide(wide).cost
    assert found.seconds == usual.seconds
    assert 0.7 < found.memory_mib.value / (130 + 8 * (4096**2 - 1024**2) * 8 / 2**20) < 1.3


@pytest.mark.parametrize(
    ("declared", "time_pairs", "memory_pairs"),
    [
        ({"family": "linear"}, cost.PAIRS, cost.PAIRS),
        ({"compares_rows": True}, cost.PAIRS_OF_KERNEL, cost.PAIRS),
        ({"family": "neighbours"}, cost.PAIRS_OF_KERNEL, cost.PAIRS),
        ({"uses_kernel": True}, cost.PAIRS_OF_KERNEL, cost.PAIRS_OF_KERNEL),
    ],
)
def test_learners_declare_that_their_cost_grows_faster_than_the_rows(
    declared, time_pairs, memory_pairs
):
    record = Learner("their-own", classifier=object, **declared)
    of = costs._Costs.__new__(costs._Costs)
    of._run = SimpleNamespace(registry=SimpleNamespace(get=lambda kind, name: record))
    of._known = {}
    cell = Cell(Ref("data"), Ref("identity"), Ref("their-own"), Protocol())
    assert of._subject("key", cell, None, None).growth == (time_pairs, memory_pairs)


@pytest.mark.parametrize("name", ["liblinear", "knn"])
def test_the_time_of_these_learners_grows_faster_than_the_rows(name):
    of = costs._Costs.__new__(costs._Costs)
    of._run, of._known = SimpleNamespace(registry=build(list_plugins())), {}
    cell = Cell(Ref("data"), Ref("identity"), Ref(name), Protocol())
    assert of._subject("key", cell, None, None).growth == (cost.PAIRS_OF_KERNEL, cost.PAIRS)


def test_costs_name_no_method():
    """The record of a method has its peculiarities, where third parties can declare them too."""
    registry, folder = build(list_plugins()), Path(costs.__file__).parent
    methods = {*registry.all("feature map"), *registry.all("learner")}
    nodes = (node for path in folder.glob("*.py") for node in ast.walk(ast.parse(path.read_text())))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    assert "nystroem" in methods
    assert not methods & texts


def test_what_decides_how_rows_are_computed_is_there():
    for module, name, least in task_functions.OF_ALL_ROWS:
        assert getattr(module, name) >= least


def dataset(n=100, weighted=False):
    y = np.r_[np.zeros(n - 1, dtype=int), 1]  # one row of the second class
    weight = np.arange(1.0, n + 1) if weighted else None
    return Dataset("x", X=np.arange(float(n))[:, None], y=y, sample_weight=weight)


def test_samples_are_nested_and_have_every_class():
    whole = assign(dataset(), Protocol(cv="holdout", test_size=0.2), 0)
    samples = Samples.of(whole)
    parts = [samples.first(n) for n in (5, 20, 80)]
    assert [len(part.visible.train) for part in parts] == [5, 20, 80]
    assert [len(part.visible.test) for part in parts] == [2, 5, 20]
    for smaller, larger in itertools.pairwise(parts):
        assert set(smaller.visible.train) <= set(larger.visible.train)
        assert set(smaller.visible.test) <= set(larger.visible.test)
    for part in parts:
        assert set(part.visible.y_train) == set(whole.visible.y_train)
    assert 20 / samples.n_rows == 0.25
    assert [len(samples.first(5, least).visible.test) for least in (10, 1000)] == [10, 20]


def test_samples_keep_labels_and_weights_with_their_rows():
    data = dataset(weighted=True)
    whole = assign(data, Protocol(cv="holdout", test_size=0.2, unlabeled_size=20), 0)
    part = Samples.of(whole).first(30)
    visible = part.visible
    assert np.array_equal(visible.y_train, data.y[visible.train])
    assert np.array_equal(visible.weight_train, data.sample_weight[visible.train])
    assert np.array_equal(part.y_test, data.y[visible.test])
    assert np.array_equal(part.weight_test, data.sample_weight[visible.test])
    assert len(visible.unlabeled) == 10


def test_maps_are_fitted_on_as_many_rows_without_labels_as_the_task_has():
    """A map that is fitted on few rows without labels has few cells, however many have labels."""
    few = Protocol(cv="holdout", test_size=0.2, unlabeled_size=20)
    labeled = replace(few, unlabeled_size=0)
    for protocol, n_rows, pool in ((few, 20, "unlabeled"), (labeled, 50, "train")):
        whole = assign(dataset(), protocol, 0)
        samples = Samples.of(whole)
        more = samples.first(30, of_map=50).visible.unlabeled
        assert len(more) == n_rows
        assert set(more) <= set(getattr(whole.visible, pool))
    assert set(samples.first(30).visible.train) < set(more)
    many = Samples.of(assign(dataset(), replace(few, unlabeled_size=60), 0))
    # 20 training rows: a tenth, and a half
    assert [len(many.first(n, of_map=20).visible.unlabeled) for n in (2, 10)] == [20, 30]


@pytest.mark.parametrize(
    ("name", "n_rows"), [("nbcs", 80), ("mondrian", 80), ("rff", 0), ("identity", 0)]
)
def test_a_trial_fits_partitions_on_many_rows(name, n_rows):
    """They have more cells on more rows: a map of the sample would hide how many."""
    seen = []

    class Sandbox:
        def run(self, function, payload, converse, **limits):
            seen.append(converse._assignment.visible)
            return CallOutcome("ok", value={})

    of = costs._Costs.__new__(costs._Costs)
    registry, parents = (
        build(list_plugins()),
        SimpleNamespace(using=lambda _: nullcontext(Sandbox())),
    )
    of._run = SimpleNamespace(registry=registry, session=SimpleNamespace(parents=parents))
    of._limits = SimpleNamespace(task_timeout_s=9.0, task_memory_mib=100.0)
    of._cache = SimpleNamespace(root="")
    of._planner = SimpleNamespace(present=SimpleNamespace(build=lambda _: None))
    task = SimpleNamespace(checksum="", kinds=(), split_index=0, plugins=())
    samples = Samples.of(assign(dataset(), Protocol(cv="holdout", test_size=0.2), 0))
    cell = Cell(Ref("data"), Ref(name), Ref("ridge"), Protocol())
    of._trial(costs._Subject("key", cell, task, samples, [], (cost.PAIRS, cost.PAIRS)), 20)
    assert [(len(each.train), len(each.unlabeled)) for each in seen] == [(20, n_rows)]


STREAMED = """
datasets = [{ name = "hypersphere-shells", label = "shells", n_samples = 25000, n_features = 8 }]
feature_maps = [{ name = "rff", n_components = 1000, bandwidth_factor = 1.0 }]
learners = [{ name = "ridge", alpha = 1.0 }]
[protocol]
cv = "holdout"
test_size = 0.1
[limits]
n_splits = 1
"""


@pytest.mark.slow
def test_memory_of_passes_over_blocks_is_predicted(store_uri):
    """Trials have smaller blocks: half as much was predicted as was needed."""
    registry = build(list_plugins())
    run = Run(read(STREAMED, "trial", registry), registry, Options(given={"store": store_uri}))
    (cell,) = execute(run).cells
    (result,) = cell.done
    assert "shared_pass" in result.metrics  # in blocks
    needed = result.metrics["peak_memory_mib"]
    assert 1 / 1.3 < result.predicted.memory_mib.value / needed < 1.3


@pytest.mark.slow
def test_an_interrupted_run_leaves_cells_that_were_not_run(runner, capsys):
    """They are neither skipped nor failed, and no results are offered where there are none."""

    class Ends(Seen):
        def on_finished(self, cell, result):
            raise KeyboardInterrupt

    made = runner(*map(wide, range(3, 9)))[0]  # two slots have begun two of them
    made.watch = Ends()
    report = execute(made)
    assert report.interrupted
    statuses = [cell.status for cell in report.cells]
    assert set(statuses) == {"not_run", "ok"}
    print_report(report)
    printed = capsys.readouterr().out
    assert "skipped" not in printed
    assert re.search(r"kbench suite trial +continue where this run stopped", printed)
