"""`kbench list metrics`."""

import json

from kbench.evaluation.definitions import METRICS
from tests.support.command_here import command

PLUGIN = """
from kbench import Metric, hookimpl

def gini(y_true, scores):
    return 0.5

@hookimpl
def kbench_metrics():
    return [Metric("gini", "higher", "twice the area minus 1", "classification", "scores", gini)]
"""


def test_metrics_are_listed_with_direction_and_definition(capfd):
    code, out, _ = command("list", "metrics", "--json", capfd=capfd)
    rows = {row["name"]: row for row in json.loads(out)["metrics"]}
    assert code == 0
    assert rows.keys() >= METRICS.keys()
    assert rows["crps"] == {
        "name": "crps",
        "plugin": "kbench",
        "description": METRICS["crps"].definition,
        "better": "lower",
        "task": "regression",
        "needs": "distribution",
    }
    assert all("\n" not in row["description"] and row["description"] for row in rows.values())


def test_a_metric_of_a_plugin_is_listed_and_shown(install_plugin, capfd):
    install_plugin("gini_plugin", PLUGIN)
    code, out, _ = command("list", "metrics", capfd=capfd)
    (line,) = [line for line in out.splitlines() if line.split()[:1] == ["gini"]]
    assert code == 0
    assert line.split(None, 5)[1:] == [
        "gini-plugin", "higher", "classification", "scores", "twice the area minus 1",
    ]  # fmt: skip
    code, out, _ = command("show", "gini", capfd=capfd)
    assert code == 0
    assert "needs: scores" in out


def test_a_name_like_that_of_a_metric_gets_a_hint(capfd):
    code, _, err = command("show", "roc_auk", capfd=capfd)
    assert code == 2
    assert "did you mean 'roc_auc'" in err
