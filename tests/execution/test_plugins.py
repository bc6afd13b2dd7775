"""Third-party plugins are imported in sandboxed processes; a command reads descriptions."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kbench import PluginError, Ref
from kbench.execution import descriptions
from kbench.execution.plugins import add_known_failures, import_registry, load_registry
from kbench.planning.planner import Planner
from kbench.planning.suite_file import read
from kbench.records import DatasetFacts
from kbench.registry.callables import Reference, outline
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench.report.content import ReportData
from kbench.runner import Options, Run, execute
from kbench.storage.datacache import DataCache
from kbench_reporting.pictures import given_picture
from tests.support.command_here import command
from tests.support.planted import plant, run_text, statuses, suite_text
from tests.support.report_rows import grid

GOOD = '''
import json
from functools import partial
from pathlib import Path
from kbench import (
    DatasetSource, FeatureMap, Figure, KernelSpec, Learner, Ref, hookimpl
)


class Map:
    """Features of A. Nybody. They are good."""

    def __init__(self, gamma=1.0, degree=3, kernel=None):
        """Keep."""


def load(path, target="y"):
    """A table."""


def span(params):
    return f"span of {params.get('degree', 3)}"


def draw(results):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.text(0.1, 0.1, f"{len(results)} rows")
    return figure


@hookimpl
def kbench_datasets():
    return [DatasetSource("own", load=load, expand=load, extensions={".own": {"target": "z"}})]


@hookimpl
def kbench_kernels():
    return [KernelSpec("own-kernel", make=partial(Map, gamma=2.0), psd=False)]


@hookimpl
def kbench_feature_maps():
    grid = {"gamma": (0.5, 1), "kernel": [Ref("own-kernel", {"gamma": 1.0}), None]}
    return [
        FeatureMap("own-map", make=Map, grid=grid, requires="unit_ball", span=span),
        FeatureMap("own-later", make="good_plugin_later:Later", depends=["json"]),
    ]


@hookimpl
def kbench_learners():
    given = {"simpler": {"gamma": "smaller"}, "rotation_invariant": True}
    return [Learner("own-learner", classifier=Map, **given)]


@hookimpl
def kbench_figures():
    return [Figure("own-figure", "A title", draw=draw)]


@hookimpl
def kbench_suites():
    return [Path(__file__).with_name("own-suite.toml")]
'''
LATER = '''
import good_plugin_gone

class Later:
    """Imported on use."""
'''
SUITE = """description = "A suite of one's own."
datasets = ["own"]
feature_maps = ["own-map"]
learners = ["own-learner"]
"""
ONE = """
from kbench import FeatureMap, hookimpl

@hookimpl
def kbench_feature_maps():
    return [FeatureMap("one", make=dict)]
"""


HELPED = "from one_helper import NAME\n" + ONE.replace('"one"', "NAME")


@pytest.fixture
def good(install_plugin):
    path = install_plugin("good_plugin", GOOD)
    (path.parent / "own-suite.toml").write_text(SUITE)
    (path.parent / "good_plugin_later.py").write_text(LATER)
    return path


@pytest.fixture
def made(monkeypatch):
    """Return the names of the plugins that are described from now on."""
    names = []
    make = descriptions._describe

    def counted(plugin):
        names.append(plugin.name)
        return make(plugin)

    monkeypatch.setattr(descriptions, "_describe", counted)
    return names


def reasons():
    return {each.name: each.reason for each in load_registry().plugins if each.reason}


def test_records_are_the_same_and_nothing_is_imported(good):
    described, imported = load_registry(), build(list_plugins())
    del sys.modules["good_plugin"]
    assert load_registry().all("feature map")["own-map"].requires == "unit_ball"
    assert "good_plugin" not in sys.modules
    for kind in ("dataset", "kernel", "feature map", "learner", "figure", "suite"):
        assert list(described.all(kind)) == list(imported.all(kind))
    ours = described.get("feature map", "own-map")
    assert ours.grid["gamma"] == (0.5, 1)
    assert ours.grid["kernel"] == (Ref("own-kernel", {"gamma": 1.0}), None)
    assert described.get("feature map", "own-later").depends == ("json",)
    assert ours.metrics is None
    assert described.get("dataset", "own").extensions == {".own": {"target": "z"}}
    assert described.get("learner", "own-learner").simpler == {"gamma": "smaller"}
    assert described.get("kernel", "own-kernel").psd is False
    assert described.get("suite", "own-suite").read_text(encoding="utf-8") == SUITE


def test_the_code_of_a_described_plugin_never_runs_here(good):
    make = load_registry().get("feature map", "own-map").make
    assert isinstance(make, Reference)
    assert make.summary == "Features of A. Nybody."
    with pytest.raises(PluginError, match="runs in sandboxed processes only"):
        make()


def test_keys_of_cells_are_those_of_an_imported_plugin(good, tmp_path):
    facts = {"own": DatasetFacts("c" * 64, n_samples=90, n_features=4, n_classes=3)}
    keys = []
    for registry in (load_registry(), build(list_plugins())):
        (cell,) = Planner(registry, DataCache(tmp_path)).plan(read(SUITE, "s", registry), facts)
        keys.append((cell.key, cell.equivalence))
    assert keys[0] == keys[1]
    assert keys[0][1]


def test_spans_of_all_cells_are_asked_for_at_once(good, tmp_path, monkeypatch):
    facts = {"own": DatasetFacts("c" * 64, n_samples=90, n_features=4, n_classes=3)}
    text = SUITE.replace('["own-map"]', '[{ name = "own-map", degree = { expand = [1, 2, 3] } }]')
    asked = []
    call = Reference.call
    monkeypatch.setattr(Reference, "call", lambda *given: asked.append(given) or call(*given))
    registry = load_registry()
    planner = Planner(registry, DataCache(tmp_path))
    planner.plan(read(text, "s", registry), facts)
    cells = planner.plan(read(text, "s", registry), facts)
    assert len({cell.equivalence for cell in cells}) == len(cells) == 3
    assert len(asked) == 1


def test_an_outline_comes_from_a_sandboxed_process(good, capfd):
    code, out, err = command("show", "own-map", capfd=capfd)
    assert code == 0, err
    for words in ("source: good_plugin.Map", "degree (default 3)", "searched over [0.5, 1]"):
        assert words in out
    code, _, err = command("show", "own-later", capfd=capfd)
    assert code == 2
    assert "good_plugin_later:Later needs the package 'good_plugin_gone'" in err
    partial = outline(load_registry().get("kernel", "own-kernel").make)
    assert (partial.source, partial.parameters[0].default) == ("good_plugin.Map", "2.0")


@pytest.mark.slow
def test_a_wrong_parameter_of_a_described_component_is_named(good, tmp_path, capfd):
    (tmp_path / "x.toml").write_text(SUITE.replace('"own-map"', '{ name = "own-map", dgree = 2 }'))
    code, _, err = command("suite", tmp_path / "x.toml", capfd=capfd)
    assert code == 2
    assert "feature_maps[0].dgree: 'own-map' has no such parameter" in err
    assert "did you mean 'degree'?" in err


@pytest.mark.slow
def test_a_figure_is_drawn_in_a_sandboxed_process(good):
    figure = load_registry().get("figure", "own-figure")
    picture = given_picture(figure, ReportData("s", grid(2, 2)), "svg")
    assert b"4 rows" in picture
    assert "good_plugin" not in sys.modules


def test_a_figure_that_fails_names_the_plugin(install_plugin):
    source = ONE.replace("FeatureMap", "Figure").replace("kbench_feature_maps", "kbench_figures")
    install_plugin("bad_figure", source.replace("make=dict", "title='t', draw='json:loads'"))
    figure = load_registry().get("figure", "one")
    with pytest.raises(PluginError, match=r"draw of figure 'one' \(plugin 'bad-figure'\) failed"):
        given_picture(figure, ReportData("s", grid(2, 2)), "svg")


# -- attacks at import


ATTACKS = {
    "leaver": ("import os; os._exit(0)", "its import failed: ended with exit code 0 and no result"),
    "crasher": (
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "its import failed: killed by SIGSEGV",
    ),
    "killer": (
        "import os, signal; os.kill(os.getppid(), signal.SIGKILL); signal.pause()",
        "its import failed: the sandbox's supervisor ended",
    ),
    "interrupter": ("raise KeyboardInterrupt", "its import failed: KeyboardInterrupt"),
    "exiter": ("raise SystemExit(3)", "SystemExit: 3"),
    "painter": (r"raise ValueError('red \x1b[31m\nline')", "ValueError: red \ufffd[31m line"),
    "unfinished": ("def broken(:", "SyntaxError: "),
}


@pytest.mark.slow
def test_plugins_that_do_harm_at_import_are_named_and_left_out(install_plugin, capfd):
    for name, (source, _) in ATTACKS.items():
        install_plugin(name, source + "\n" + ONE)
    code, out, err = command("list", "plugins", capfd=capfd)
    assert code == 0
    for name, (_, reason) in ATTACKS.items():
        (line,) = [line for line in out.splitlines() if line.split()[0] == name]
        assert f"LEFT OUT: {reason}" in line
    assert len(out.splitlines()) == 1 + len(list_plugins())
    assert "\x1b" not in out + err


def test_a_plugin_that_ends_its_process_ends_no_command(install_plugin):
    install_plugin("harmful", "import os; os._exit(0)")
    words = [sys.executable, "-m", "kbench.cli", "list", "feature-maps"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "nystroem" in done.stdout
    assert "left out: harmful (why: `kbench list plugins`)" in done.stderr


def test_a_plugin_whose_import_hangs_costs_its_limit_once(install_plugin, monkeypatch, made):
    path = install_plugin("sleeper", "import time; time.sleep(3600)")
    with monkeypatch.context() as patch:
        patch.setattr(descriptions, "IMPORT_S", 0.5)
        for _ in range(2):
            assert reasons() == {"sleeper": "its import takes longer than 0.5 s"}
        assert made == ["sleeper"]
        later = time.time() + descriptions.AGAIN_S + 60
        patch.setattr(time, "time", lambda: later)
        assert reasons()
        assert made == ["sleeper"] * 2
    path.write_text(ONE)
    assert not reasons()


def test_a_plugin_that_changes_the_folder_moves_nothing(install_plugin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    install_plugin("mover", "import os; os.chdir('/')\n" + ONE)
    assert "one" in load_registry().all("feature map")
    assert "one" in import_registry().all("feature map")
    assert Path.cwd() == tmp_path


def test_what_a_plugin_prints_at_import_is_not_in_the_output(install_plugin, capfd):
    install_plugin("chatty", "import os; print('hello'); os.write(1, b'hello')\n" + ONE)
    code, out, err = command("list", "feature-maps", capfd=capfd)
    assert code == 0
    assert "  one " in out
    assert "hello" not in out + err


def test_a_plugin_with_wrong_records_is_left_out(install_plugin):
    wrong = {
        "value": "FeatureMap('x', make=42)",
        "taken": "FeatureMap('rff', make=dict)",
        "type": "FeatureMap('x', make=dict), 3",
    }
    for name, record in wrong.items():
        install_plugin(name, ONE.replace('FeatureMap("one", make=dict)', record))
    why = reasons()
    assert why["value"].startswith("make of feature map 'x' must be a class, a function or")
    assert why["taken"].startswith("gives a feature map called 'rff', as does 'baselines'")
    assert why["type"].startswith("kbench_feature_maps returned a int where FeatureMap goes")
    assert "x" not in load_registry().all("feature map")


FORGE = """
import json
written = json.dumps
json.dumps = lambda value, **given: {answer!r} if "records" in value else written(value, **given)
"""


def test_an_answer_that_a_plugin_forges_is_refused(install_plugin):
    for records in ([3], {"a": 1}, [{"kind": "feature map", "fields": {"name": "x"}}]):
        answer = json.dumps({"reason": "", "records": records})
        install_plugin("forger", FORGE.format(answer=answer) + ONE)
        assert "its process gave" in reasons()["forger"]


# -- the cache of descriptions


def test_a_description_is_made_once_and_again_after_an_edit(install_plugin, made):
    path = install_plugin("one_plugin", ONE)
    for _ in range(2):
        assert "one" in load_registry().all("feature map")
    assert len(made) == 1
    path.write_text(ONE.replace('"one"', '"two"'))
    assert "two" in load_registry().all("feature map")
    assert len(made) == 2
    path.write_text("raise RuntimeError('now broken')")
    for _ in range(2):
        assert reasons() == {"one-plugin": "RuntimeError: now broken"}
    assert len(made) == 3


def test_the_files_that_a_plugin_imports_count_too(install_plugin, made):
    path = install_plugin(
        "one_plugin", "from one_helper import NAME\n" + ONE.replace('"one"', "NAME")
    )
    helper = path.with_name("one_helper.py")
    assert "needs the package 'one_helper'" in reasons()["one-plugin"]
    helper.write_text("NAME = 'first'")  # a module that was missing
    assert "first" in load_registry().all("feature map")
    helper.write_text("NAME = 'other'")  # of the same size
    assert "other" in load_registry().all("feature map")
    helper.unlink()
    assert "needs the package 'one_helper'" in reasons()["one-plugin"]
    assert len(made) == 4


def test_a_module_that_was_loaded_at_the_start_of_python_counts_too(
    install_plugin, made, monkeypatch
):
    """As by a file `.pth`, which may import what it likes."""
    # its bytecode is that of an edit of the same size in the same second
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    path = install_plugin("one_plugin", HELPED)
    path.with_name("one_helper.py").write_text("NAME = 'first'")
    path.with_name("sitecustomize.py").write_text("import one_helper")
    assert "first" in load_registry().all("feature map")
    path.with_name("one_helper.py").write_text("NAME = 'other'")
    assert "other" in load_registry().all("feature map")


def test_a_module_that_hides_another_is_noticed(install_plugin, tmp_path, monkeypatch):
    path = install_plugin(
        "one_plugin", "from one_helper import NAME\n" + ONE.replace('"one"', "NAME")
    )
    path.with_name("one_helper.py").write_text("NAME = 'first'")
    assert "first" in load_registry().all("feature map")
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "one_helper.py").write_text("NAME = 'hiding'")
    monkeypatch.syspath_prepend(str(tmp_path / "before"))
    assert "hiding" in load_registry().all("feature map")


def test_a_new_file_in_a_folder_of_suites_is_noticed(install_plugin):
    source = ONE.replace("kbench_feature_maps", "kbench_suites").replace(
        '[FeatureMap("one", make=dict)]', "sorted(Path(__file__).parent.glob('*.toml'))"
    )
    path = install_plugin("lister", "from pathlib import Path\n" + source)
    path.with_name("a.toml").write_text(SUITE)
    assert "a" in load_registry().all("suite")
    path.with_name("b.toml").write_text(SUITE)
    assert {"a", "b"} <= set(load_registry().all("suite"))


def test_a_damaged_description_is_made_again(install_plugin, private_folders, made):
    install_plugin("one_plugin", ONE)
    load_registry()
    (file,) = private_folders.glob("state/*/plugins/*.json")
    content = file.read_bytes()
    for damaged in (b"", b"00000000\n{}", b"\xff\xfe", content.replace(b'"one"', b'"two"')):
        file.write_bytes(damaged)
        made.clear()
        assert "one" in load_registry().all("feature map")
        assert made == ["one-plugin"]
        assert file.read_bytes() == content


def test_a_folder_that_cannot_be_written_costs_time_only(install_plugin, monkeypatch, tmp_path):
    install_plugin("one_plugin", ONE)
    (tmp_path / "file").touch()
    monkeypatch.setenv("KBENCH_STATE_DIR", str(tmp_path / "file" / "state"))
    assert "one" in load_registry().all("feature map")


# -- left out by hand


def test_a_plugin_can_be_left_out_by_hand(install_plugin, monkeypatch, made, capfd):
    install_plugin("one_plugin", ONE)
    monkeypatch.setenv("KBENCH_DISABLE_PLUGINS", "nbcs, one-plugin")
    why = "disabled by KBENCH_DISABLE_PLUGINS"
    assert reasons() == {"nbcs": why, "one-plugin": why}
    assert not made
    assert not build(list_plugins()).all("feature map").keys() & {"one", "nbcs"}
    assert not capfd.readouterr().err


def test_an_unknown_name_among_them_is_a_warning(monkeypatch, capfd):
    monkeypatch.setenv("KBENCH_DISABLE_PLUGINS", "nbc,,\x1b[1m")
    code, out, err = command("list", "feature-maps", capfd=capfd)
    assert code == 0
    assert "nystroem" in out
    assert "KBENCH_DISABLE_PLUGINS: no plugin is named 'nbc'; did you mean 'nbcs'?" in err
    assert "no plugin is named '\\x1b[1m'; available: balcan, baselines" in err


# -- processes that run plugins


def test_tasks_leave_out_what_could_not_be_described(install_plugin):
    install_plugin("harmful", "import os; os._exit(0)")
    load_registry()
    (left_out,) = [p for p in add_known_failures(list_plugins()) if p.reason]
    assert left_out.name == "harmful"
    assert [p.name for p in import_registry().plugins if p.reason] == ["harmful"]


def test_a_check_of_a_plugin_that_ends_its_process_says_so(install_plugin, capfd):
    install_plugin("harmful", "import os; os._exit(0)")
    code, _, err = command("plugin", "check", "harmful", capfd=capfd)
    assert code == 2
    assert "plugin 'harmful' is left out: its import failed: ended with exit code 0" in err


@pytest.mark.slow
def test_a_suite_runs_beside_a_plugin_that_ends_its_process(
    tmp_path, monkeypatch, store_uri, install_plugin
):
    install_plugin("harmful", "import os; os._exit(0)")
    site = plant(tmp_path / "site", monkeypatch)
    assert (site / "harmful.py").exists()
    text = suite_text("work", n_splits=1)
    report, _ = run_text(text, store_uri)
    assert statuses(report) == {"work": "ok"}
    # as in a process that has imported the plugin
    registry = build(add_known_failures(list_plugins()))
    again = execute(
        Run(
            read(text, "planted", registry),
            registry,
            Options(given={"store": store_uri}, recompute=True),
        )
    )
    (one,), (other,) = report.cells, again.cells
    assert one.key == other.key
    assert one.results[0].metrics["accuracy"] == other.results[0].metrics["accuracy"]


@pytest.mark.slow
def test_listing_stays_cheap_beside_a_plugin(install_plugin):
    def cpu_s():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "kbench.cli", "list"],
            check=True,
            capture_output=True,
            env=os.environ,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    alone = min(cpu_s() for _ in range(4))
    source = "import sklearn.svm, pandas\n" + ONE
    install_plugin("one_plugin", source)
    cpu_s()  # the first time it is imported, in a sandbox, and described
    # to import scikit-learn and pandas would take more than twice as long as all of this
    assert min(cpu_s() for _ in range(4)) < 1.5 * alone
