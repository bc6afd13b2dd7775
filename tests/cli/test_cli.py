"""The command line as a user meets it: words, exit codes, what is imported."""

import json
import os
import re
import subprocess
import sys

import pytest

import kbench
from kbench.execution.plugins import load_registry
from kbench.planning.component_refs import runnable
from kbench.results.rows import COLUMNS
from tests.support.command_here import command
from tests.support.paths import ROOT

HEAVY = ("sklearn", "scipy", "pandas", "mlflow", "openml")
SUITE = """
datasets = ["iris"]
feature_maps = ["identity"]
learners = ["dummy-majority"]
[protocol]
n_folds = 2
"""


def kbench_(*arguments, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "kbench.cli", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "120", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def wide(monkeypatch):
    """A terminal that wraps no line of a table."""
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def beside(ran, monkeypatch, forked_sandboxes):
    """The folder in which a small suite was run, for commands in this process."""
    folder, environment, _ = ran
    monkeypatch.chdir(folder)
    for name, value in {**environment, "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    return folder


def test_version_and_help():
    assert kbench_("--version").stdout.strip() == f"kbench {kbench.__version__}"
    found = kbench_("--help")
    assert found.returncode == 0
    assert "suite" in found.stdout


def test_help_shows_every_word_of_its_texts(monkeypatch):
    from typer.main import get_command

    from kbench.cli.app import app

    monkeypatch.setenv("COLUMNS", "70")
    root = get_command(app)
    contexts = [root.context_class(root, info_name="kbench")]
    for context in contexts:  # grows by the commands of groups
        each = context.command
        for name in each.list_commands(context) if hasattr(each, "list_commands") else ():
            inner = each.get_command(context, name)
            contexts.append(root.context_class(inner, parent=context, info_name=name))
        page = "".join(each.get_help(context).split())
        for text in (each.help, *(getattr(p, "help", None) for p in each.params)):
            assert "".join((text or "").split()) in page
    assert len(contexts) > 15


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["suite", "ucy"], "no suite is named 'ucy'; did you mean 'uci'?"),
        (
            ["suite", "uci", "--store", "mlflow.db"],
            "the store must be a URI, got 'mlflow.db'; did you mean 'sqlite:///mlflow.db'?",
        ),
        (["suite"], "Missing argument 'SUITE'"),
        (["suite", "gone.toml"], "cannot read the suite file gone.toml"),
        (["suite", "uci", "--dataset", "irs"], "did you mean 'iris'?"),
        (
            ["suite", "uci", "--task-timeout", "-1"],
            "must be a finite number > 0, or inf, got -1.0",
        ),
        (["suite", "uci", "--n-splits", "0"], "--n-splits must be an integer >= 1, got 0"),
        (["results", "uci"], "there are no runs yet"),
        (["results", "uci", "--format", "xml"], "'xml' is not one of"),
        (["lst"], "No such command 'lst'"),
    ],
)
def test_a_mistake_gets_one_message_exit_code_2_and_no_traceback(
    arguments, words, tmp_path, wide, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    code, _, err = command(*arguments, capfd=capfd)
    assert code == 2
    told = " ".join(err.replace("│", " ").split())
    assert words in told
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_a_suite_file_with_six_mistakes_reports_six(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.toml").write_text(
        'datasets = ["iriss"]\n'
        'feature_maps = [{ name = "rff", n_componets = 64 }]\n'
        'learners = ["ridge", "ridge"]\n'
        'colour = "red"\n'
        '[protocol]\nn_folds = 1\nscaling = "std"\n'
    )
    code, _, err = command("suite", "wrong.toml", capfd=capfd)
    assert code == 2
    assert len(err.splitlines()) == 6, err
    assert "feature_maps[0].n_componets" in err


@pytest.fixture(scope="module")
def ran(tmp_path_factory, migrated_store):
    """A folder in which a small suite was run once."""
    import shutil

    folder = tmp_path_factory.mktemp("ran")
    shutil.copy(migrated_store, folder / "mlflow.db")
    (folder / "small.toml").write_text(SUITE)
    environment = {
        "KBENCH_STATE_DIR": str(folder / "state"),
        "KBENCH_CACHE_DIR": str(folder / "cache"),
    }
    done = kbench_("suite", "small.toml", cwd=folder, **environment)
    return folder, environment, done


@pytest.mark.slow
def test_a_run_ends_with_the_table_the_store_and_what_to_type_next(ran):
    folder, _, done = ran
    assert done.returncode == 0, done.stderr
    assert "identity" in done.stdout
    assert "0.3333" in done.stdout
    assert f"sqlite:///{folder}/mlflow.db" in done.stdout
    assert "small, 1 run (1 written now)" in done.stdout
    assert "kbench results small" in done.stdout
    assert "next to the other methods of the suite" not in done.stdout


@pytest.mark.slow
def test_a_map_is_shown_beside_what_is_known_of_its_suite(ran):
    folder, environment, _ = ran
    arguments = ["suite", "small.toml", "--add-feature-map", "rff", "--quiet"]
    found = kbench_(*arguments, cwd=folder, **environment)
    assert found.returncode == 0, found.stderr
    assert "rff + dummy-majority next to 1 other method, by accuracy" in found.stdout
    assert "identity + dummy-majority next to" not in found.stdout
    arguments += ["--feature-map", "rff"]
    found = kbench_(*arguments, cwd=folder, **environment)
    assert found.returncode == 0, found.stderr
    assert "rff + dummy-majority next to 1 other method, by accuracy" in found.stdout
    assert re.search(r"^identity \+ dummy-majority +1 +0 +1 +0 +0.0000 ", found.stdout, re.M)
    assert "iris: rank 1.5 of 2 (0.3333, identity + dummy-majority 0.3333)" in found.stdout
    assert "no result" not in found.stdout
    assert "rank\n" not in found.stdout.partition("next to")[0]  # of one method there is no rank

    # what is not known, or was measured with other splits, is counted and not shown
    arguments += ["--dataset", "wine", "--add-dataset", "wine"]
    found = kbench_(*arguments, cwd=folder, **environment)
    assert "next to" not in found.stdout.partition("\nnext:")[0]
    assert (
        "1 cell of the suite's other methods: no result for this code and data yet; "
        "`kbench suite small.toml --dataset wine --add-dataset wine` computes them"
    ) in found.stdout


@pytest.mark.slow
def test_next_commands_read_the_same_store(ran):
    folder, environment, _ = ran
    store = f"sqlite:///{folder}/mlflow.db"
    arguments = ["suite", "small.toml", "--dataset", "iris", "--store", store]
    found = kbench_(*arguments, cwd=folder, **environment)
    commands = found.stdout.partition("\nnext:\n")[2].splitlines()
    assert "these results next to the other methods of the suite" in commands[0]
    assert len(commands) == 4
    for line in commands:
        assert f" small --store {store} " in line
        assert "|" not in line


@pytest.mark.slow
def test_the_command_that_continues_a_run_has_its_filters(tmp_path):
    (tmp_path / "table.csv").write_text("x,y\n1,a\n")  # a table of one class
    (tmp_path / "away.toml").write_text(
        SUITE.replace('"iris"', '{name = "csv", path = "table.csv", target = "y"}')
    )
    environment = {
        "KBENCH_STATE_DIR": str(tmp_path / "state"),
        "KBENCH_CACHE_DIR": str(tmp_path / "cache"),
        "MLFLOW_TRACKING_URI": "http://127.0.0.1:1",
    }
    arguments = ["suite", "away.toml", "--learner", "dummy-*", "--n-splits", "1"]
    found = kbench_(*arguments, cwd=tmp_path, **environment)
    assert "  kbench suite away.toml --learner 'dummy-*' --n-splits 1  " in found.stdout


@pytest.mark.slow
def test_a_search_that_was_stopped_by_its_budget_is_told(tmp_path, migrated_store):
    import shutil

    shutil.copy(migrated_store, tmp_path / "mlflow.db")
    (tmp_path / "hasty.toml").write_text(
        'datasets = ["iris"]\nfeature_maps = ["identity"]\nlearners = ["ridge", "knn"]\n'
        "[protocol]\nn_folds = 2\nsearch_timeout_s = 1e-9\n"
    )
    environment = {
        "KBENCH_STATE_DIR": str(tmp_path / "state"),
        "KBENCH_CACHE_DIR": str(tmp_path / "cache"),
    }
    done = kbench_("suite", "hasty.toml", cwd=tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    # a path is taken whole; the neighbours are four candidates, of which one is left
    assert "in 1 cell the search stopped at its time limit" in done.stdout


def test_results_read_back_what_was_shown(beside, capfd):
    for name in ("small", "small.toml"):
        _, out, _ = command("results", name, "--format", "json", capfd=capfd)
        (row,) = json.loads(out)
        assert list(row)[: len(COLUMNS)] == list(COLUMNS)
        assert (row["dataset"], row["status"], row["n_splits_done"]) == ("iris", "ok", 2)
        assert row["accuracy"] == pytest.approx(1 / 3)
        assert row["converged"] is True


def test_a_run_again_computes_nothing_and_imports_no_mlflow(ran):
    folder, environment, _ = ran
    code = (
        "import sys, os\nsys.argv = ['kbench', 'suite', 'small.toml']\n"
        "from kbench.cli import main\n"
        "try:\n    main()\nfinally:\n"
        f"    print('LOADED', *[m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "0 tasks to compute, 2 cached" in done.stderr
    loaded = set(done.stdout.split("LOADED")[1].split())
    assert not loaded & {"sklearn", "mlflow", "openml", "pandas"}


def test_filters_splits_and_the_plan(beside, capfd):
    _, out, _ = command(
        "suite",
        "small.toml",
        "--dry-run",
        "--json",
        "--n-splits",
        3,
        "--learner",
        "dummy-majority",
        "--dataset",
        "iris",
        "--dataset",
        "wine",
        "--add-dataset",
        "wine",
        capfd=capfd,
    )
    plan = json.loads(out)
    assert [(cell["dataset"], cell["tasks"], cell["cached"]) for cell in plan["cells"]] == [
        ("iris", 1, 2),
        ("wine", 3, 0),
    ]
    assert plan["estimated_s"] > 0


def test_a_failed_cell_is_exit_code_1(beside, capfd):
    (beside / "fails.toml").write_text(
        SUITE.replace('"identity"', '{ name = "nystroem", n_components = 2.5 }')
    )
    code, out, _ = command("suite", "fails.toml", "--quiet", capfd=capfd)
    assert code == 1
    assert "error" in out
    assert "n_components" in out
    assert "--retry-failed" in out


@pytest.mark.slow
def test_the_ui_serves_the_experiment(ran):
    import socket
    import urllib.request

    folder, environment, _ = ran
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "kbench.cli", "ui", "small", "--port", str(port)],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        # lines of the server come first: addresses are printed when it answers
        lines = iter(process.stdout.readline, "")
        address = next(line for line in lines if "/#/experiments/" in line).split()[-1]
        assert address.startswith(f"http://127.0.0.1:{port}/#/experiments/")
        with urllib.request.urlopen(address.split("#")[0], timeout=60) as answer:
            body = answer.read().decode()
        assert "MLflow" in body
    finally:
        os.killpg(process.pid, 9)
        process.communicate()


@pytest.mark.slow
def test_the_example_suites_of_the_package_are_right():
    names = runnable(load_registry())
    assert {"uci", "uci-small", "uci-full"} <= set(names)
    for name in names:
        code = (
            "from kbench.registry.installed import list_plugins\n"
            "from kbench.registry.registry import build\n"
            "from kbench.planning.cells import cells\n"
            "from kbench.planning.suite_file import find, read\n"
            "r = build(list_plugins())\n"
            f"print(len(cells(read(*find({name!r}, r), r), r)))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert int(done.stdout or 0) > 0, (name, done.stderr)


def test_the_suite_uci_has_what_it_promises():
    from kbench.evaluation.search import candidates
    from kbench.evaluation.specs import EstimatorSpec
    from kbench.planning.cells import cells
    from kbench.planning.suite_file import find, read
    from kbench.records import alternatives, get_family
    from kbench.registry.installed import list_plugins
    from kbench.registry.registry import build

    registry = build(list_plugins())
    suite = read(*find("uci", registry), registry)
    planned = cells(suite, registry)
    datasets = {cell.dataset.label for cell in planned}
    assert len(datasets) == 11
    compared = {}
    for cell in planned:
        parts = []
        records = []
        for kind, ref in (("feature map", cell.feature_map), ("learner", cell.learner)):
            record = registry.get(kind, ref.name)
            space = {k: v for k, v in record.grid.items() if k not in ref.params}
            space |= {k: alternatives(v) for k, v in ref.params.items()}
            parts.append(EstimatorSpec(dict, space=space))
            records.append(record)
        found = candidates(*parts, cell.protocol, seed=0)
        texts = {repr(sorted(candidate.params.items())) for candidate in found}
        assert len(texts) == len(found) <= 42, cell.name
        compared.setdefault((get_family(*records), cell.learner.name), set()).add(len(found))
    # equal numbers within a family of maps, but for a map that has fewer
    assert compared["fourier", "ridge"] == compared["landmarks", "linear-svm"] == {36}
    assert compared["partition", "ridge"] == {7, 28, 42}
    labels = {cell.learner.label for cell in planned if cell.feature_map.label == "rff"}
    assert labels == {
        f"{name} ({way})" for name in ("linear-svm", "ridge") for way in ("ovo", "ovr")
    }
    only_on_inputs = {"kernel-svm (ovo)", "gradient-boosting", "knn", "dummy-majority"}
    for cell in planned:
        if cell.learner.label in only_on_inputs:
            assert cell.feature_map.label == "identity"


def test_the_page_on_running_and_help_name_the_same_exit_codes(wide, capfd):
    _, help_, _ = command("--help", capfd=capfd)
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    for words in ("usage or suite file", "cell failed", "interrupted"):
        assert words in page
        assert words in " ".join(help_.split())
