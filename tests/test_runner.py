"""Whole runs, in processes of their own, with a plugin written for the purpose."""

import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kbench import Protocol, SuiteError
from kbench.execution.sandbox import Sandbox
from kbench.planning.suite_file import read
from kbench.records import Block, Suite
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench.results.row_builders import make_row
from kbench.results.rows import COLUMNS
from kbench.runner import Options, Run, Watcher, execute, preview
from kbench.storage.journal import Journal
from kbench.storage.predictions import blob_of_seed
from kbench_mlflow.reading import row_of_run, rows_without_run
from kbench_mlflow.tracking.store import Store
from tests.support.planted import CENTROIDS

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

PLUGIN = (
    '''
"""A dataset, maps that do as they are told, and a learner."""
import os, time
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_array
from kbench import Dataset, DatasetError, DatasetSource, FeatureMap, Learner, hookimpl
from trial_helper import SHIFT


def blobs(n_samples=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % 2
    return Dataset("blobs", rng.normal(size=(n_samples, 2)) + 2 * y[:, None], y)


def holes():
    """Labels tell whether a value is ten; of those, every second one is missing."""
    import trial_helper
    y = np.arange(60) % 2
    X = np.where(y, 10.0, np.linspace(0.0, 1.0, 60))[:, None]
    X[1::4] = np.nan
    return Dataset("holes", X, y, feature_kinds=(trial_helper.KIND,))


def gone():
    raise DatasetError("the disk with these data is in a drawer; fetch it")


class Obedient(TransformerMixin, BaseEstimator):
    def __init__(self, do="work", factor=1.0, log="", seconds=0.0):
        self.do, self.factor, self.log, self.seconds = do, factor, log, seconds

    def fit(self, X, y=None):
        if self.log:
            with open(self.log, "a") as file:
                file.write(f"{self.do}\\n")
        if self.do == "hang":
            time.sleep(600)
        time.sleep(self.seconds)
        if self.do == "exit":
            os._exit(3)
        if self.do == "raise":
            raise ValueError("as I was told")
        if self.do == "slow":
            time.sleep(0.3)
        return self

    def transform(self, X):
        return X * self.factor + SHIFT

'''
    + CENTROIDS
    + """
@hookimpl
def kbench_datasets():
    return [DatasetSource(f.__name__, load=f) for f in (blobs, holes, gone)]


@hookimpl
def kbench_feature_maps():
    return [FeatureMap("obedient", make=Obedient)]


@hookimpl
def kbench_learners():
    return [Learner("centroids", classifier=Centroids)]
"""
)
SUITE = """
datasets = ["blobs", "gone"]
feature_maps = [{maps}]
learners = ["centroids"]
[protocol]
n_folds = 3
[limits]
task_timeout_s = 2
"""


class Seen(Watcher):
    """Counts what it is told."""

    def __init__(self):
        self.tasks = 0
        self.done = []
        self.notices = []

    def notice(self, text):
        self.notices.append(text)

    def on_planned(self, cells, n_tasks, metric):
        self.tasks = n_tasks

    def on_finished(self, cell, result):
        self.done.append((cell.cell.feature_map.label, result.split, result.status))


@pytest.fixture
def plugin(install_plugin, tmp_path):
    path = install_plugin("trial_plugin", PLUGIN)
    helper = path.with_name("trial_helper.py")
    helper.write_text("SHIFT = 0.0\n")
    return path


@pytest.fixture
def run_suite(plugin, store_uri):
    def run_these(*maps, jobs=2, text=SUITE, **options):
        registry = build(list_plugins())
        lines = ", ".join(maps or ('"obedient"',))
        suite = read(text.replace("{maps}", lines), "trial", registry)
        seen = Seen()
        report = execute(
            Run(suite, registry, Options(given={"store": store_uri}, jobs=jobs, **options), seen)
        )
        return report, seen

    return run_these


def shown(rows):
    return sorted(({name: row.value(name) for name in COLUMNS} for row in rows), key=str)


def rows_of(store_uri):
    store = Store(store_uri)
    return shown([*map(row_of_run, store.read("trial")), *rows_without_run(store.tags("trial"))])


def rows_shown(report):
    return shown(make_row(cell) for cell in report.cells)


@pytest.mark.slow
def test_a_run_again_and_after_an_edit(run_suite, store_uri, plugin):
    """One test, since each run starts processes: measured, reused, redone after an edit."""
    report, seen = run_suite()
    assert (seen.tasks, len(seen.done)) == (3, 3)
    assert [cell.status for cell in report.cells] == ["ok", "unavailable"]
    assert report.cells[0].done[0].metrics["accuracy"] > 0.8
    assert "in a drawer" in report.cells[1].problem.reason
    assert not report.failed
    # rows planned = rows shown = rows in the store, with the same numbers; runs have results
    assert (report.deliveries[0].written, report.deliveries[0].problem) == (1, "")
    assert rows_of(store_uri) == rows_shown(report)
    assert [run.status for run in Store(store_uri).read("trial")] == ["ok"]

    again, seen = run_suite()
    assert seen.tasks == 0
    assert again.deliveries[0].written == 0
    assert [make_row(c) for c in again.cells] == [make_row(c) for c in report.cells]

    # editing a helper that the map imports redoes its cells, and nothing stale is shown
    plugin.with_name("trial_helper.py").write_text("SHIFT = 1.0\n")
    sys.modules.pop("trial_plugin"), sys.modules.pop("trial_helper")
    edited, seen = run_suite()
    assert seen.tasks == 3
    assert edited.cells[0].key == report.cells[0].key
    assert edited.cells[0].changed == "trial_helper.py changed"
    assert edited.cells[0].version != report.cells[0].version
    assert rows_of(store_uri) == rows_shown(edited)

    fresh, seen = run_suite(recompute=True)
    assert seen.tasks == 3
    assert [c.version for c in fresh.cells] == [c.version for c in edited.cells]
    key = report.cells[0].results[0].task_key
    lines = Journal().results([key])[key]
    assert [line["ended_ms"] for line in lines] == [
        each.cells[0].results[0].ended_ms for each in (fresh, edited, report)
    ]

    # predictions of the code of before are kept, and so are its results
    plugin.with_name("trial_helper.py").write_text("SHIFT = 0.0\n")
    sys.modules.pop("trial_plugin"), sys.modules.pop("trial_helper")
    reverted, seen = run_suite()
    assert seen.tasks == 0
    assert [make_row(c) for c in reverted.cells] == [make_row(c) for c in report.cells]
    assert rows_of(store_uri) == rows_shown(report)
    addresses = {each.cells[0].results[0].address for each in (report, edited, fresh)}
    assert len(addresses) == 2
    assert None not in {Journal().blob(each, blob_of_seed(0), 10**6) for each in addresses}


@pytest.mark.slow
def test_a_grid_that_changes_between_the_plan_and_a_task_is_refused(
    install_plugin, tmp_path, store_uri
):
    """What has computed the result is not what was planned, whose key it would have."""
    grid = tmp_path / "grid.json"
    grid.write_text("[1.0]")
    given = f"grid={{'factor': json.loads(open({str(grid)!r}).read())}}"
    source = PLUGIN.replace("make=Obedient", f"make=Obedient, {given}")
    path = install_plugin("trial_plugin", f"import json\n{source}")
    path.with_name("trial_helper.py").write_text("SHIFT = 0.0\n")
    text = SUITE.replace("{maps}", '"obedient"').replace('["blobs", "gone"]', '["blobs"]')

    def run_after(change):
        registry = build(list_plugins())
        suite = read(text, "trial", registry)
        grid.write_text(change)
        report = execute(Run(suite, registry, Options(given={"store": store_uri})))
        (cell,) = report.cells
        return cell

    refused = run_after("[1.0, 2.0]")
    assert refused.status == "error"
    assert {result.manifest for result in refused.in_order} == {""}
    assert "gives other records than when the run was planned" in refused.results[0].error
    # the same command again plans the new grid
    again = run_after("[1.0, 2.0]")
    assert (again.status, again.key != refused.key) == ("ok", True)
    assert again.results[0].details.chosen["feature_map.factor"] in (1.0, 2.0)
    # what was refused is not reused under its key
    grid.write_text("[1.0]")
    first = run_after("[1.0]")
    assert (first.status, first.key) == ("ok", refused.key)
    assert first.changed == "dependencies unknown"


@pytest.mark.slow
def test_a_journal_line_of_another_layout_is_computed_again(run_suite, store_uri):
    report, _ = run_suite()
    key = report.cells[0].results[1].task_key
    journal = Journal()
    ((old,),) = journal.results([key]).values()
    # the lines of a journal outlive the version that wrote them
    journal.append("result", **{k: v for k, v in old.items() if k not in ("kind", "cell_key")})
    _, seen = run_suite()
    assert seen.tasks == 0  # an older line has it
    lines = list(journal.read())
    journal.path.unlink()
    for line in lines:
        if line != old:
            journal.append(line.pop("kind"), **line)
    again, seen = run_suite()
    assert [split for _, split, _ in seen.done] == [1]
    assert seen.notices == ["1 line of the journal could not be read; its result is computed again"]
    assert again.cells[0].results[1].metrics["accuracy"] == old["metrics"]["accuracy"]
    assert again.deliveries[0].problem == ""
    assert rows_of(store_uri) == rows_shown(again)
    _, seen = run_suite()
    assert seen.tasks == 0


@pytest.mark.slow
def test_other_kinds_of_the_same_columns_are_computed_again(run_suite, plugin):
    """The data are the same, and what is imputed is not."""
    helper = plugin.with_name("trial_helper.py")
    text = SUITE.replace("blobs", "holes") + '[protocol]\nmissing = "impute"\nn_folds = 3\n'
    text = text.replace("[protocol]\nn_folds = 3\n", "", 1)
    found = []
    for kind in ("numeric", "onehot"):
        helper.write_text(f"SHIFT = 0.0\nKIND = {kind!r}\n")
        for module in ("trial_plugin", "trial_helper"):
            sys.modules.pop(module, None)
        report, seen = run_suite(text=text)
        accuracies = [result.metrics["accuracy"] for result in report.cells[0].done]
        found.append((seen.tasks, report.cells[0].dataset.checksum, accuracies))
    assert [tasks for tasks, _, _ in found] == [3, 3]
    assert found[0][1] == found[1][1]
    assert found[1][2] == [1.0] * 3
    assert max(found[0][2]) < 0.9


@pytest.mark.slow
def test_two_labels_of_one_thing_are_two_rows_that_are_computed_once(run_suite, store_uri):
    maps = [f'{{ name = "obedient", label = "{label}" }}' for label in ("one", "two")]
    report, seen = run_suite(*maps)
    assert (seen.tasks, len(seen.done)) == (3, 3)
    assert len({cell.key for cell in report.cells if not cell.problem}) == 1
    stored = {(row["feature_map"], row["dataset"]) for row in rows_of(store_uri)}
    assert stored == {(label, data) for label in ("one", "two") for data in ("blobs", "gone")}
    again, seen = run_suite(*maps)
    assert (seen.tasks, again.deliveries[0].written) == (0, 0)
    assert rows_of(store_uri) == rows_shown(again)


@pytest.mark.slow
def test_a_store_that_is_gone_gets_everything_again(run_suite, store_uri, migrated_store):
    """Nothing is computed, and a dataset is still to be fetched: delivery has begun early."""
    report, _ = run_suite()
    shutil.copy(migrated_store, store_uri.removeprefix("sqlite:///"))
    for line in ("-wal", "-shm"):
        Path(store_uri.removeprefix("sqlite:///") + line).unlink(missing_ok=True)
    again, seen = run_suite()
    assert seen.tasks == 0
    assert again.deliveries[0].written == 1
    assert rows_of(store_uri) == rows_shown(report)


@pytest.mark.slow
def test_what_is_known_reaches_a_store_that_never_saw_the_suite(run_suite, store_uri, tmp_path):
    run_suite()
    journal = Journal()
    kept = [line for line in journal.path.read_text().splitlines() if '"delivered"' not in line]
    journal.path.write_text("\n".join(kept) + "\n")
    Path(store_uri.removeprefix("sqlite:///")).rename(tmp_path / "old.db")
    again, seen = run_suite()
    assert (seen.tasks, again.deliveries[0].written) == (0, 1)
    assert len(rows_of(store_uri)) == 2


@pytest.mark.slow
def test_each_failure_costs_its_own_cell_only(run_suite, store_uri):
    # a text that hangs would be found before the run, in a trial of some seconds
    given = ('do = "work"', "seconds = 600", 'do = "exit"', 'do = "raise"')
    maps = [f'{{ name = "obedient", {parameter} }}' for parameter in given]
    report, seen = run_suite(*maps)
    found = {
        cell.cell.feature_map.label: cell.status
        for cell in report.cells
        if cell.cell.dataset.label == "blobs"
    }
    assert found == {
        "obedient(do=work)": "ok",
        "obedient(seconds=600)": "timed_out",
        "obedient(do=exit)": "crashed",
        "obedient(do=raise)": "error",
    }
    assert report.failed
    statuses = [status for label, _, status in seen.done if label == "obedient(seconds=600)"]
    assert 1 <= len(statuses) <= 2  # the splits after the first are skipped
    assert len(rows_of(store_uri)) == len(report.cells) == 8
    runs = Store(store_uri).read("trial")
    errors = {each.name: each.tags.get("kbench.error", "") for each in runs}
    assert "as I was told" in errors["obedient(do=raise) + centroids on blobs"]

    # nothing is tried again unasked, and a raised limit repeats what had hit it
    _, seen = run_suite(*maps)
    assert seen.tasks == 0
    _, seen = run_suite(*maps[:2], text=SUITE.replace("timeout_s = 2", "timeout_s = 2.5"))
    assert {label for label, _, _ in seen.done} == {"obedient(seconds=600)"}


def test_a_misspelt_parameter_is_found_before_anything_runs(run_suite, store_uri):
    with pytest.raises(SuiteError, match=r"feature_maps\[1\]\.facter.*did you mean 'factor'"):
        run_suite('"obedient"', '{ name = "obedient", label = "x", facter = 2 }')
    assert not Journal().path.exists()
    assert rows_of(store_uri) == []


def test_a_plan_computes_and_fetches_nothing(plugin, store_uri):
    registry = build(list_plugins())
    suite = read(SUITE.replace("{maps}", '"obedient"'), "trial", registry)
    report = preview(Run(suite, registry, Options(given={"store": store_uri})))
    assert [len(cell.missing) for cell in report.cells] == [3, 3]
    assert report.deliveries == ()
    assert not Journal().path.exists()


def test_a_plan_checks_the_components_that_have_no_results(run_suite, store_uri, monkeypatch):
    text = SUITE.replace(', "gone"', "")
    run_suite(text=text)
    registry, options = build(list_plugins()), Options(given={"store": store_uri})

    def plan(maps):
        suite = read(text.replace("{maps}", maps), "trial", registry)
        return preview(Run(suite, registry, options))

    with pytest.raises(SuiteError, match="did you mean 'factor'"):
        plan('"obedient", { name = "obedient", label = "x", facter = 2 }')
    monkeypatch.setattr(Sandbox, "run", None)
    assert all(cell.is_finished for cell in plan('"obedient"').cells)


class Releases(Seen):
    """Lets go of a lock once it is told that somebody waits for it."""

    def __init__(self):
        super().__init__()
        self.notices = []
        self.delivered = []
        self.release = threading.Event()

    def notice(self, text):
        self.notices.append(text)
        if text.startswith("waiting for"):
            self.release.set()

    def on_finished(self, cell, result):
        super().on_finished(cell, result)
        self.delivered.append(len(list(Journal().read("delivered"))))


@pytest.mark.parametrize(
    ("timing", "held_shared", "words"),
    [
        ("exclusive", True, "exclusive timing needs the machine alone"),
        pytest.param(
            "shared", False, "which holds this machine exclusively", marks=pytest.mark.slow
        ),
        pytest.param("shared", True, "", marks=pytest.mark.slow),
    ],
)
def test_exclusive_timing_has_the_machine_alone(plugin, store_uri, timing, held_shared, words):
    registry = build(list_plugins())
    suite = read(SUITE.replace("{maps}", '"obedient"'), "trial", registry)
    watcher, held = Releases(), threading.Event()

    def another():
        with Journal().lock("computing", shared=held_shared):
            held.set()
            watcher.release.wait(60)

    thread = threading.Thread(target=another)
    thread.start()
    held.wait()
    report = execute(
        Run(suite, registry, Options(given={"store": store_uri}, timing=timing), watcher)
    )
    waited = watcher.release.is_set()
    watcher.release.set()
    thread.join()
    assert waited is bool(words)
    assert words in "".join(watcher.notices)
    assert report.deliveries[0].written == 1  # the other cell has no data
    (stored,) = [each for each in Store(store_uri).read("trial") if each.status == "ok"]
    tag = stored.tags.get("kbench.timing")
    if timing == "exclusive":
        assert tag == "exclusive"
        assert watcher.delivered == [0, 0, 0]  # nothing is written while times are taken
    else:
        assert tag is None


@pytest.mark.slow
def test_known_times_of_ordinary_runs_stay_and_are_told(run_suite, store_uri, monkeypatch):
    run_suite()
    told = []
    monkeypatch.setattr(Seen, "notice", lambda self, text: told.append(text))
    _, seen = run_suite(jobs=1, timing="exclusive")
    assert seen.tasks == 0
    assert any("3 cached results keep the times of an ordinary run" in text for text in told)


def test_what_exclusive_timing_refuses():
    with pytest.raises(SuiteError, match="one task at a time, got 2"):
        Options(jobs=2, timing="exclusive")


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "jobs"), [(1, 4), (2, 2), (3, 1), (8, 1)])
def test_tasks_at_a_time_leave_cores_for_their_threads(monkeypatch, threads, jobs):
    monkeypatch.setattr("kbench.machine.physical_cores", lambda: 4)
    block = Block((), (), (), Protocol(threads=threads))
    suite = Suite("threads", (block,))
    assert Options(jobs=None).resolve_jobs(suite).jobs == jobs
    assert Options(jobs=None, timing="exclusive").resolve_jobs(suite).jobs == 1
    assert Options(jobs=3).resolve_jobs(suite).jobs == 3


def start(folder, *arguments):
    command = [sys.executable, "-m", "kbench.cli", "suite", "trial.toml", *arguments]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def n_results():
    return sum(line["kind"] == "result" for line in Journal().read())


def wait_for_results(process, count):
    deadline = time.monotonic() + 60
    while n_results() < count and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.fixture
def slow_suite(plugin, tmp_path, store_uri):
    maps = ", ".join(f'{{ name = "obedient", do = "slow", factor = {i} }}' for i in range(1, 5))
    # a task sleeps for a part of a second: on a loaded machine it takes more than two
    text = SUITE.replace("{maps}", maps).replace("task_timeout_s = 2", "task_timeout_s = 60")
    (tmp_path / "trial.toml").write_text(text)
    return tmp_path


@pytest.mark.slow
def test_ctrl_c_ends_cleanly_and_the_next_run_goes_on(slow_suite, store_uri):
    process = start(slow_suite, "--store", store_uri)
    wait_for_results(process, 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    commands = [line.partition("    ")[0] for line in out.partition("next:\n")[2].splitlines()]
    assert "suite trial.toml" in commands[0]
    assert len(set(commands)) == len(commands)
    assert {run.n_splits_done for run in Store(store_uri).read("trial")} <= {3}
    before = n_results()
    assert 2 <= before < 12
    process = start(slow_suite, "--store", store_uri)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert n_results() == 12
    assert len(rows_of(store_uri)) == 8


def without_times(rows):
    """Return what does not depend on when and how often a suite was run."""
    return [{k: v for k, v in row.items() if not k.endswith(("_s", "_mib"))} for row in rows]


@pytest.mark.slow
def test_twenty_kills_at_random_moments_lose_and_double_nothing(
    slow_suite, store_uri, migrated_store, tmp_path, monkeypatch
):
    undisturbed = f"sqlite:///{shutil.copy(migrated_store, tmp_path / 'undisturbed.db')}"
    with monkeypatch.context() as patch:
        patch.setenv("KBENCH_STATE_DIR", str(tmp_path / "undisturbed"))
        process = start(slow_suite, "--store", undisturbed)
        started = time.monotonic()
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    whole = time.monotonic() - started
    chance = random.Random(0)
    kills, last = 0, 0
    while kills < 20:
        process = start(slow_suite, "--store", store_uri, "--jobs", "2")
        if n_results() < 11 and chance.random() < 0.5:  # in the middle of the tasks
            wait_for_results(process, n_results() + 1)
            time.sleep(chance.uniform(0, 0.3))
        else:  # whatever it is doing by then
            time.sleep(chance.uniform(0, 0.3 * whole))
        process.kill()
        process.communicate(timeout=60)
        kills += process.returncode == -signal.SIGKILL
        assert n_results() >= last  # what was acknowledged stays
        last = n_results()
    process = start(slow_suite, "--store", store_uri)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "not all runs are in the store" not in out, out
    lines = [line for line in Journal().read("result") if line["status"] == "ok"]
    assert len({line["task_key"] for line in lines}) == len(lines) == 12
    assert without_times(rows_of(store_uri)) == without_times(rows_of(undisturbed))
    assert len(rows_of(store_uri)) == 8


@pytest.mark.slow
def test_two_commands_at_once_share_the_work(slow_suite, store_uri):
    processes = [start(slow_suite, "--store", store_uri) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert n_results() == 12
    assert any("waiting for" in err for _, err in outputs)


@pytest.mark.slow
def test_the_last_event_of_json_lines_has_every_row(plugin, tmp_path, store_uri):
    (tmp_path / "trial.toml").write_text(SUITE.replace("{maps}", '"obedient"'))
    process = start(tmp_path, "--store", store_uri, "--json")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["event"] for event in events].count("finished") == 3
    assert events[-1]["event"] == "done"
    assert [row["status"] for row in events[-1]["rows"]] == ["ok", "unavailable"]
    assert not (Path(tmp_path) / "mlflow.db-journal").exists()
