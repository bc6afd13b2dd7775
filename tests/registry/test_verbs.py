"""Hooks of features: their order, what happens if one fails, and where they run."""

import os
import sys

import pytest

from kbench import hookspecs
from kbench.errors import FeatureError, SuiteError
from kbench.machine import machine_id
from kbench.registry.features import Feature, Metadata, features, find_features
from kbench.registry.verbs import Verbs
from kbench.storage.journal import Journal, state_folder
from tests.support.command_here import command
from tests.support.features_here import Site

SUITE = ("suite", "uci-small", "--dataset", "iris", "--feature-map", "identity", "--n-splits", "1")
OPTION = '[options.mine]\ncommands = ["suite"]\nhelp = "Mine."\n'


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a folder to install features into."""
    yield Site(tmp_path / "site", monkeypatch)
    find_features.cache_clear()


@pytest.fixture
def desk(site, tmp_path, monkeypatch, forked_sandboxes, store_uri):
    """Let commands run in a folder of their own, with a store that is there already."""
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    return site


@pytest.fixture
def verbs_of(site):
    """Install features of sources, each with its hooks; return their verbs and the notices."""

    def make(**sources):
        for name, (hooks, source) in sources.items():
            write(site, name, hooks, source)
        given = [each for each in features() if each.name in sources]
        notices = []
        return Verbs(notices.append, given), notices

    return make


def write(site, name, hooks, source, metadata=""):
    """Install a feature with hooks."""
    source = f"from kbench.features import hookimpl\n{source}"
    return site.write(name, source, f"hooks = {hooks!r}\n{metadata}")


def hook(name, body, arguments=""):
    """Return the source of a hook."""
    return f"@hookimpl\ndef {name}({arguments}):\n    {body}\n"


def results():
    """Return the lines of results in the journal."""
    return list(Journal(state_folder(machine_id()) / "journal.jsonl").read("result"))


LOCATION = ["kbench_location"]


# -- one call after the other


def test_hooks_are_called_in_the_order_of_names(verbs_of):
    body = hook("kbench_location", "return __name__ + options", "options")
    verbs, notices = verbs_of(zeta=(LOCATION, body), beta=(LOCATION, body), alpha=(LOCATION, body))
    answers = [
        (feature.name, found) for feature, found in verbs.each("kbench_location", options="!")
    ]
    assert answers == [("alpha", "alpha!"), ("beta", "beta!"), ("zeta", "zeta!")]
    assert not notices


def test_those_of_kbench_come_first(site):
    write(site, "aaa", ["kbench_run_notices"], hook("kbench_run_notices", "return ['mine']"))
    order = [feature.name for feature, _ in Verbs().implementing("kbench_run_notices")]
    assert order == ["sharing", "aaa"]


def test_a_hook_names_the_arguments_that_it_wants(verbs_of):
    hooks = ["kbench_result", "kbench_cell_finished"]
    source = hook("kbench_result", "return result", "result")
    source += hook("kbench_cell_finished", "return 7")
    verbs, _ = verbs_of(one=(hooks, source))
    context = {"run": 1, "cell": 2}
    assert [answer for _, answer in verbs.each("kbench_result", **context, result=3)] == [3]
    assert [answer for _, answer in verbs.each("kbench_cell_finished", **context)] == [7]


def test_none_is_no_answer(verbs_of):
    verbs, _ = verbs_of(one=(LOCATION, hook("kbench_location", "return None")))
    assert list(verbs.each("kbench_location", options={})) == []
    assert verbs.one("kbench_location", options={}) is None


def test_two_answers_where_one_is_asked_for_are_an_error(verbs_of):
    body = hook("kbench_location", "return ''")
    verbs, _ = verbs_of(one=(LOCATION, body), two=(LOCATION, body))
    with pytest.raises(FeatureError, match="'one' and 'two' both answer kbench_location"):
        verbs.one("kbench_location", options={})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('broken\\n  here')", "ValueError: broken here"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("assert False", "AssertionError: "),
    ],
)
def test_a_hook_that_raises_is_named_once_and_left_out(verbs_of, body, said):
    hooks = ["kbench_location", "kbench_run_notices"]
    source = hook("kbench_location", body) + hook("kbench_run_notices", "return ['never']")
    sound = hook("kbench_location", "return 'sound'")
    verbs, notices = verbs_of(one=(hooks, source), two=(LOCATION, sound))
    assert verbs.one("kbench_location", options={}) == "sound"
    assert verbs.one("kbench_location", options={}) == "sound"
    assert list(verbs.each("kbench_run_notices", options={})) == []
    assert notices == [f"the feature 'one' is left out: kbench_location: {said}".strip()]


def test_an_error_of_kbench_is_the_users(verbs_of):
    body = "from kbench import SuiteError; raise SuiteError('--mine is wrong')"
    hooks = ["kbench_engine", "kbench_report_sections"]
    source = hook("kbench_engine", body) + hook("kbench_report_sections", body)
    verbs, notices = verbs_of(one=(hooks, source))
    with pytest.raises(SuiteError, match="--mine is wrong"):
        verbs.one("kbench_engine", options={})
    assert not notices
    # what a section lacks was not asked for
    assert list(verbs.each("kbench_report_sections", data={})) == []
    assert "SuiteError: --mine is wrong" in notices[0]


# -- hooks that are not as they are declared


@pytest.mark.parametrize(
    ("hooks", "source", "said"),
    [
        (
            ["kbench_location", "kbench_result"],
            hook("kbench_location", "return ''"),
            "kbench_result is in its metadata only",
        ),
        (
            LOCATION,
            hook("kbench_location", "return ''") + hook("kbench_result", "pass"),
            "kbench_result is not in the `hooks` of its metadata",
        ),
        (LOCATION, "def kbench_location(): ...\n", "kbench_location is in its metadata only"),
        (
            ["kbench_location", "kbench_reslt"],
            hook("kbench_location", "return ''"),
            "there is no hook 'kbench_reslt'; did you mean 'kbench_result'?",
        ),
        (
            LOCATION,
            hook("kbench_location", "return ''") + hook("kbench_reslt", "pass"),
            "kbench_reslt",
        ),
        (LOCATION, hook("kbench_location", "return ''", "option"), "option"),
        (
            ["kbench_feature_maps"],
            hook("kbench_feature_maps", "return []"),
            "kbench_feature_maps is a hook of plugins, whose entry points are in the group",
        ),
        (
            LOCATION,
            "@hookimpl(wrapper=True)\ndef kbench_location():\n    return (yield)\n",
            "kbench_location is a wrapper",
        ),
        (LOCATION, "import no_such_module\n", "No module named 'no_such_module'"),
        (LOCATION, "raise SystemExit('bye')\n", "SystemExit: bye"),
    ],
)
def test_what_is_wrong_with_hooks_is_named_once(verbs_of, hooks, source, said):
    sound = hook("kbench_location", "return 'sound'")
    verbs, notices = verbs_of(one=(hooks, source), two=(LOCATION, sound))
    for _ in range(2):
        assert verbs.one("kbench_location", options={}) == "sound"
    (notice,) = notices
    assert notice.startswith("the feature 'one' is left out: ")
    assert said in notice


def test_a_feature_is_imported_by_a_hook_that_it_has_only(verbs_of):
    verbs, _ = verbs_of(one=(LOCATION, hook("kbench_location", "return ''")))
    list(verbs.each("kbench_run_notices", options={}))
    assert "one" not in sys.modules
    list(verbs.each("kbench_location", options={}))
    assert "one" in sys.modules


def test_a_feature_that_is_left_out_has_no_verbs():
    left_out = Feature("one", "no_such_module", "d", metadata=Metadata(("kbench_location",)))
    notices = []
    assert Verbs(notices.append, [left_out]).one("kbench_location", options={}) is None
    assert len(notices) == 1
    from dataclasses import replace

    notices = []
    verbs = Verbs(notices.append, [replace(left_out, reason="disabled")])
    assert verbs.one("kbench_location", options={}) is None
    assert not notices  # `kbench suite` says it before


def test_every_verb_says_when_it_is_called():
    verbs = [each for name, each in vars(hookspecs).items() if name.startswith("kbench_")]
    assert all(each.__doc__ for each in verbs)


# -- in runs


def test_a_broken_feature_harms_no_run(desk, capfd):
    write(desk, "one", ["kbench_result"], "import no_such_module\n")
    write(desk, "two", ["kbench_cells_planned"], hook("kbench_cells_planned", "1 / 0"))
    code, out, err = command(*SUITE, capfd=capfd)
    assert code == 0
    assert len(results()) == 1
    assert "1 cell planned: 1 ok" in out
    assert err.count("the feature 'one' is left out") == 1
    assert err.count("the feature 'two' is left out: kbench_cells_planned: ZeroDivisionError") == 1


@pytest.mark.parametrize("name", ["kbench_engine", "kbench_location", "kbench_run_notices"])
def test_a_hook_that_fails_before_a_run_is_named(desk, capfd, name):
    write(desk, "one", [name], hook(name, "1 / 0"))
    code, _, err = command(*SUITE, capfd=capfd)
    assert code == 0
    assert err.count(f"the feature 'one' is left out: {name}: ZeroDivisionError") == 1


@pytest.mark.parametrize("source", ["import no_such_module\n", hook("kbench_engine", "1 / 0")])
def test_an_option_of_a_broken_feature_is_an_error(desk, capfd, source):
    write(desk, "one", ["kbench_engine"], source, OPTION)
    code, _, err = command(*SUITE, "--mine", "here", capfd=capfd)
    assert code == 2
    assert "kbench: --mine is an option of the feature 'one', which cannot be used: " in err
    assert not results()


@pytest.mark.parametrize("name", ["kbench_engine", "kbench_cells_planned", "kbench_run_notices"])
def test_an_error_of_kbench_before_the_tasks_ends_the_command(desk, capfd, name):
    body = "from kbench import SuiteError; raise SuiteError('--mine is wrong')"
    write(desk, "one", [name], hook(name, body))
    code, _, err = command(*SUITE, capfd=capfd)
    assert code == 2
    assert err.splitlines()[-1] == "kbench: --mine is wrong"
    assert not results()


ENGINE = hook("kbench_engine", "return object()")
STRATEGY = hook("kbench_strategy", "return object()")


@pytest.mark.parametrize(("name", "source"), [("engine", ENGINE), ("strategy", STRATEGY)])
def test_two_engines_or_strategies_are_an_error(desk, capfd, name, source):
    for feature in ("one", "two"):
        write(desk, feature, [f"kbench_{name}"], source)
    code, _, err = command(*SUITE, capfd=capfd)
    assert code == 2
    assert f"the features 'one' and 'two' both answer kbench_{name}: only one of them" in err
    assert not results()


def test_a_feature_may_say_why_a_cell_is_not_computed(desk, capfd):
    body = (
        "from kbench.features import Problem\n"
        "    for cell in cells: cell.problem = Problem('skipped', 'too dear')"
    )
    write(desk, "one", ["kbench_cells_planned"], hook("kbench_cells_planned", body, "cells"))
    _, out, _ = command(*SUITE, capfd=capfd)
    assert "1 cell planned: 1 skipped" in out
    assert "too dear" in out
    assert not results()


def test_cells_that_a_strategy_adds_are_looked_at(desk, capfd):
    source = """
from dataclasses import replace
looked_at = []

@hookimpl
def kbench_cells_planned(run, cells):
    looked_at.append([cell.cell.name for cell in cells])

@hookimpl
def kbench_strategy(run):
    return Another(run)

class Another:
    n_tasks, cuts_off = 2, False

    def __init__(self, run):
        self.run, self.told = run, []

    def steps(self):
        first = self.run.cells[0]
        yield first, 0
        name = "dummy-majority"
        learner = replace(first.cell.learner, name=name, params={}, label=name)
        yield self.run.add(replace(first.cell, learner=learner)), 0

    def tell(self, cell, result):
        self.told.append(result)

    def kept(self, cells):
        return list(cells)
"""
    write(desk, "one", ["kbench_cells_planned", "kbench_strategy"], source)
    code, out, err = command(*SUITE, capfd=capfd)
    assert code == 0, err
    assert len(results()) == 2
    assert sys.modules["one"].looked_at == [
        ["identity + linear-svm (ovo) on iris"],
        ["identity + dummy-majority on iris"],
    ]
    assert "dummy-majority" in out


def test_verbs_never_run_in_tasks(desk, capfd, monkeypatch, tmp_path):
    trace = tmp_path / "trace"
    monkeypatch.setenv("TRACE", str(trace))
    leave = "import os\nwith open(os.environ['TRACE'], 'a') as f: f.write(f'{os.getpid()}\\n')\n"
    write(desk, "one", ["kbench_result"], leave + hook("kbench_result", "pass"))
    code, _, _ = command(*SUITE, capfd=capfd)
    assert code == 0
    assert trace.read_text().split() == [str(os.getpid())]


def test_a_disabled_feature_is_named_by_a_run(desk, capfd, monkeypatch):
    monkeypatch.setenv("KBENCH_DISABLE_PLUGINS", "mlflow")
    find_features.cache_clear()
    code, out, err = command(*SUITE, capfd=capfd)
    assert code == 0
    assert len(results()) == 1
    assert "the feature 'mlflow' is left out: disabled by KBENCH_DISABLE_PLUGINS" in err
    assert "journal:" in out


def test_a_disabled_feature_is_no_unknown_plugin(monkeypatch, capfd):
    monkeypatch.setenv("KBENCH_DISABLE_PLUGINS", "mlflow")
    _, _, err = command("list", "suites", capfd=capfd)
    assert "no plugin is named" not in err


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise RuntimeError('no service')", "kbench_run_notices: RuntimeError: no service"),
        ("return 5", "kbench_run_notices: returned 5, not strings"),
        ("return 'abc'", "kbench_run_notices: returned 'abc', not strings"),
    ],
)
def test_notices_that_are_none_leave_their_feature_out_by_name(site, registry, body, reason):
    from kbench.api.inputs import collect_notices
    from kbench.runner import Options

    write(site, "aaa", ["kbench_run_notices"], hook("kbench_run_notices", body))
    left_out = []
    said = collect_notices(registry, Options(), Verbs(left_out.append))
    assert left_out == [f"the feature 'aaa' is left out: {reason}"]
    assert "a" not in said


def test_a_result_cannot_be_changed_by_who_is_told_of_it():
    from kbench.records import Result

    result = Result("task", "cell", 0, "ok", {"accuracy": 0.5})
    with pytest.raises(TypeError):
        result.metrics["accuracy"] = 2.0
