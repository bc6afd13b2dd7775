"""`kbench list` and `kbench show`."""

import json
import re

import pytest

from kbench.cli.completion import metrics
from kbench_listing.installed import _anything
from tests.support.command_here import command


@pytest.fixture
def wide(monkeypatch):
    """A terminal that wraps no line of a table."""
    monkeypatch.setenv("COLUMNS", "120")


def test_list_as_json_has_every_kind(capfd):
    found = json.loads(command("list", "--json", capfd=capfd)[1])
    assert set(found) == {
        *("datasets", "kernels", "feature-maps", "learners", "metrics", "suites", "plugins"),
    }
    assert "uci" in [each["name"] for each in found["suites"]]
    assert "gaussian" in [each["name"] for each in found["kernels"]]


def test_list_says_what_each_thing_is(wide, capfd):
    found = json.loads(command("list", "--json", capfd=capfd)[1])
    # a sentence for each of kbench's own, scikit-learn's classes among them
    silent = [each["name"] for rows in found.values() for each in rows if not each["description"]]
    assert silent == []
    (uci,) = [each for each in found["suites"] if each["name"] == "uci"]
    _, listed, _ = command("list", capfd=capfd)
    assert re.search(rf"^ *uci +suites +{re.escape(uci['description'])}$", listed, re.M)
    row = r"^ *perceptron +learners +linear +classification +Rosenblatt's perceptron, .*\.$"
    assert re.search(row, listed, re.M)
    assert re.search(r"^ *rff +baselines +fourier +\S", listed, re.M)


def test_a_broken_plugin_is_named_and_breaks_nothing(install_plugin, wide, capfd):
    install_plugin("broken_plugin", "raise RuntimeError('half written')\n", "broken-dist")
    code, out, _ = command("list", "plugins", capfd=capfd)
    assert code == 0
    assert "LEFT OUT: RuntimeError: half written" in out
    _, out, err = command("list", "feature-maps", capfd=capfd)
    assert "nystroem" in out
    assert "left out: broken-plugin" in err


@pytest.mark.parametrize("name", ["rff", "linear-svm", "iris", "gaussian", "uci"])
def test_show_tells_parameters_source_and_plugin(name, wide, capfd):
    code, out, err = command("show", name, capfd=capfd)
    assert code == 0, err
    assert "plugin: " in out


def test_show_tells_the_meaning_of_a_parameter(wide, capfd):
    _, found, _ = command("show", "rff", capfd=capfd)
    assert "n_components" in found
    assert "default" in found
    assert "searched over" in found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "nystrom"], "no component is named 'nystrom'; did you mean 'nystroem'?"),
        (["list", "maps"], "'maps' cannot be listed; did you mean 'feature-maps'?"),
        (["list", "xyz"], "'xyz' cannot be listed; available: datasets, feature-maps, kernels"),
        (["list", "lerners"], "'lerners' cannot be listed; did you mean 'learners'?"),
    ],
)
def test_a_wrong_name_gets_one_message(arguments, words, capfd):
    code, out, err = command(*arguments, capfd=capfd)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_names_are_completed(capfd):
    assert _anything("ri") == ["ridge"]
    assert "f1_macro" in _anything("f1_") == sorted(metrics("f1_"))
    # figures and dashboards are no components
    assert "metric-vs-fit-time" not in _anything("metric-vs-f")
