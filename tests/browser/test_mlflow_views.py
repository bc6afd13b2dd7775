"""MLflow's real page in a real browser: it opens ready, with the numbers of the store.

This pins the format of MLflow's saved views, which is documented nowhere.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from importlib.resources import files
from statistics import geometric_mean, mean
from urllib.parse import urlsplit

import pytest

from kbench.records import ACCURACY as ACCURACY_METRIC
from kbench_mlflow.reading import row_of_run
from kbench_mlflow.runs import method_runs
from kbench_mlflow.tracking.store import Store
from kbench_mlflow.tracking.views import View, ui_address
from tests.support.tracking_runs import FAILED, a_free_port, a_run, live

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no browser: neither chromium nor google-chrome is on the PATH"
    ),
]
WAIT_MS = 90_000
ACCURACY, FIT = "metrics.`accuracy`", "metrics.`fit_time_s`"
NAME = "attributes.`Run Name`"
VIEWS = {
    name: View.of(
        f"{name}.view.json", files("kbench_dashboards").joinpath(f"{name}.view.json").read_text()
    )
    for name in ("methods", "charts", "datasets", "searches")
}
HTML = "<title>The report</title><h1 id=h></h1><script>h.textContent='6 times 7 is ' + 6*7</script>"


def cells():
    """Two methods on two datasets."""
    found = {}
    for i, feature_map in enumerate(("identity", "rff(n_components=64)")):
        for j, dataset in enumerate(("iris", "wine")):
            name = f"{feature_map} + ridge on {dataset}"
            accuracy, seconds = 0.8125 + i / 16 + j / 64, 0.25 * (i + 1) + 0.5 * j
            found[name] = a_run(
                key=name,
                name=name,
                params={"dataset": dataset, "feature_map": feature_map, "learner": "ridge"},
                metrics={
                    "accuracy": accuracy,
                    "fit_time_s": seconds,
                    "predict_time_s": 0.125,
                    "search_time_s": 2.0 + i + j,
                    "n_candidates": 5.0,
                    "chosen.log10.learner.alpha": i - 2.0,
                    **({"chosen.feature_map.factor": 0.5 + j} if i else {}),
                },
                by_split={},
                dataset=None,
            )
    return found


@pytest.fixture(scope="module")
def served(migrated_store, tmp_path_factory):
    """Serve a store with cells, a failure, a superseded run and a report."""
    folder = tmp_path_factory.mktemp("served")
    store = Store(f"sqlite:///{shutil.copy(migrated_store, folder / 'mlflow.db')}")
    experiment = store.experiment("trial")
    for run in cells().values():
        store.log(experiment, run)
    one = next(iter(cells().values()))
    old = a_run(key="old", name=one.name, params=one.params, metrics={"accuracy": 0.0})
    store.log(experiment, old)
    assert store.supersede(experiment, "m1", {one.name: [one.key]}) == 1
    labels = {"dataset": "wdbc", "feature_map": "identity", "learner": "ridge"}
    store.log(experiment, replace(FAILED, name="failed", params=labels))
    report = store.log_report(experiment, "m1", {"report.html": HTML})
    rows = [row_of_run(run) for run in store.cells(experiment, "m1")]
    assert store.log_methods(experiment, "m1", method_runs(rows, ACCURACY_METRIC)) == 2
    store.present(experiment, {view.key: view for view in VIEWS.values()})
    assert len(live(store, experiment)) == 9
    port = a_free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store.uri]
    command += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    environment = {
        **os.environ,
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "NO_PROXY": "127.0.0.1",
    }
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "server.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.3)
        yield address, experiment, report
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        one = started.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield one
        one.close()


@pytest.fixture
def page(browser):
    """Return an empty page that keeps the requests it makes."""
    yield from a_page(browser, 1900, 1200)


@pytest.fixture
def laptop(browser):
    """Return an empty page of a window so small that MLflow's assistant takes a quarter of it."""
    yield from a_page(browser, 1400, 900)


def a_page(browser, width, height):
    context = browser.new_context(viewport={"width": width, "height": height})
    one = context.new_page()
    one.set_default_timeout(WAIT_MS)
    one.hosts = set()
    one.on("request", lambda request: one.hosts.add(urlsplit(request.url).hostname))
    yield one
    context.close()


ROWS = """() => {
  const rows = {};
  for (const cell of document.querySelectorAll(".ag-row [col-id]")) {
    const row = cell.closest(".ag-row").getAttribute("row-id");
    (rows[row] ??= {})[cell.getAttribute("col-id")] = cell.textContent;
  }
  return Object.values(rows);
}"""


def picture(page, name):
    """Keep what was seen where a person asked for it."""
    folder = os.environ.get("KBENCH_TEST_PICTURES")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png")


def test_methods_open_with_metric_columns_and_the_numbers_of_the_store(page, served):
    address, experiment, _ = served
    page.goto(ui_address(address, experiment, VIEWS["methods"]))
    page.wait_for_selector(f'.ag-row [col-id="{ACCURACY}"]')
    page.wait_for_function(f"({ROWS})().filter(row => row[{ACCURACY!r}]).length >= 2")
    picture(page, "methods")
    shown = {row[NAME]: row for row in page.evaluate(ROWS) if row.get(NAME)}
    runs = cells()
    for feature_map in ("identity", "rff(n_components=64)"):
        (row,) = (row for text, row in shown.items() if f"{feature_map} + ridge" in text)
        of_map = [run.metrics for run in runs.values() if run.params["feature_map"] == feature_map]
        assert float(row[ACCURACY]) == pytest.approx(mean(each["accuracy"] for each in of_map))
        seconds = geometric_mean(each["fit_time_s"] for each in of_map)
        assert float(row[FIT]) == pytest.approx(seconds)
    page.get_by_text("2 matching runs").first.wait_for()  # no cell, no superseded run, no report
    text = page.inner_text("body")
    assert "first 100 loaded runs only" in text
    assert VIEWS["methods"].name in text
    assert page.hosts == {"127.0.0.1"}


def test_charts_open_with_a_point_per_method(page, served):
    address, experiment, _ = served
    page.goto(ui_address(address, experiment, VIEWS["charts"]))
    page.wait_for_selector(".js-plotly-plot .bars .point")
    page.wait_for_selector(".js-plotly-plot .scatterlayer .point")
    page.wait_for_timeout(1000)
    picture(page, "charts")
    bars = page.query_selector_all(".js-plotly-plot .bars .point")
    assert len(bars) in (2, 4)  # two charts of bars, the lower one drawn when it is seen
    (points, *_) = page.query_selector_all(".js-plotly-plot .scatterlayer")
    assert len(points.query_selector_all(".point")) == 2
    text = page.inner_text("body")
    assert re.search(r"Methods\s*\(4\)", text)
    assert "fit_time_s vs. accuracy" in text
    assert page.hosts == {"127.0.0.1"}


def test_datasets_are_columns_of_methods(laptop, served):
    address, experiment, _ = served
    laptop.goto(ui_address(address, experiment, VIEWS["datasets"]))
    columns = {name: f"metrics.`{name}: accuracy`" for name in ("iris", "wine")}
    # both are drawn: the table draws columns only where they are seen
    for column in columns.values():
        laptop.wait_for_function(f"({ROWS})().filter(row => row[{column!r}]).length == 2")
    laptop.get_by_text("MLflow Assistant").first.wait_for()
    picture(laptop, "datasets")
    rows = {row[NAME]: row for row in laptop.evaluate(ROWS) if row.get(NAME)}
    for run in cells().values():
        labels = run.params
        (row,) = (row for text, row in rows.items() if f"{labels['feature_map']} + ridge" in text)
        shown = float(row[columns[labels["dataset"]]])
        assert shown == pytest.approx(run.metrics["accuracy"])
    for column in columns.values():
        box = laptop.locator(f'.ag-row [col-id="{column}"]').first.bounding_box()
        assert box["x"] + box["width"] <= assistant_left(laptop)


def test_each_dataset_has_a_chart_of_all_methods(laptop, served):
    address, experiment, _ = served
    view = replace(VIEWS["datasets"], mode="chart")
    laptop.goto(ui_address(address, experiment, view))
    title = laptop.get_by_text("iris: accuracy", exact=True).first
    place = title.bounding_box()
    laptop.mouse.move(place["x"], place["y"] + 100)
    for dataset in ("iris", "wine"):
        laptop.get_by_text(f"{dataset}: accuracy", exact=True).first.wait_for()
        accuracies = sorted(
            run.metrics["accuracy"] for run in cells().values() if run.params["dataset"] == dataset
        )
        laptop.wait_for_function(
            "wanted => [...document.querySelectorAll('.js-plotly-plot')].some(plot =>"
            " plot.querySelectorAll('.bars .point').length == wanted.length"
            " && String(plot.data.flatMap(trace => [...trace.x]).map(Number).sort()) == wanted)",
            arg=accuracies,
        )
        picture(laptop, f"{dataset}-chart")
        laptop.mouse.wheel(0, 600)  # a chart is drawn when it is seen


def test_searches_open_with_parallel_coordinates_of_chosen_values(laptop, served):
    address, experiment, _ = served
    laptop.goto(ui_address(address, experiment, VIEWS["searches"]))
    labels = "() => [...document.querySelectorAll('.parcoords')].map(each => each.textContent)"
    laptop.wait_for_function(f"({labels})().length == 2")
    wait_for_text(laptop, r"Chosen values\s*\(2\)")
    picture(laptop, "searches")
    both, one = laptop.evaluate(labels)
    assert "factor" in both
    assert "factor" not in one
    for text in (both, one):
        assert "alpha" in text
        assert "search_time_s" in text
        assert "accuracy" in text


def wait_for_text(page, pattern):
    """Wait until the page shows a text, which may be spread over elements."""
    page.wait_for_function("it => new RegExp(it).test(document.body.innerText)", arg=pattern)


def assistant_left(page):
    """Return where MLflow's assistant begins."""
    return page.get_by_text("MLflow Assistant").first.bounding_box()["x"]


def test_the_report_is_previewed_with_its_scripts(page, served):
    address, experiment, report = served
    page.goto(f"{address}/#/experiments/{experiment.id}/runs/{report}/artifacts/report.html")
    frame = page.wait_for_selector("iframe[sandbox]")
    assert frame.get_attribute("sandbox") == "allow-scripts"
    heading = frame.content_frame().wait_for_selector("h1")
    assert heading.inner_text() == "6 times 7 is 42"
    picture(page, "report")
    assert page.hosts <= {"127.0.0.1", None, ""}
