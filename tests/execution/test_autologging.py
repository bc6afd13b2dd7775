"""MLflow's autologging, switched on for everything, is off inside tasks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kbench_mlflow.tracking.store import Store

START_UP = """
import mlflow
mlflow.set_tracking_uri({uri!r})
mlflow.autolog(silent=True)
mlflow.sklearn.autolog(silent=True)
"""
PLUGIN = """
import mlflow
from sklearn.preprocessing import StandardScaler
from kbench import FeatureMap, hookimpl

mlflow.set_tracking_uri({uri!r})
mlflow.sklearn.autolog(silent=True)


@hookimpl
def kbench_feature_maps():
    return [FeatureMap("eager", make=StandardScaler)]
"""
SUITE = """
datasets = ["iris"]
feature_maps = [{map}]
learners = [{{ name = "logistic", C = {{ tune = [0.1, 1.0] }} }}]
[protocol]
n_folds = 2
"""


@pytest.mark.slow
@pytest.mark.parametrize("by", ["a start-up file", "a plugin"])
def test_tasks_make_no_runs_of_their_own(by, install_plugin, tmp_path, store_uri):
    other = tmp_path / "other.db"
    uri = f"sqlite:///{other}"
    environment = dict(os.environ)
    if by == "a plugin":
        install_plugin("eager_plugin", PLUGIN.format(uri=uri))
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
        feature_map = '"eager"'
    else:
        start_up = tmp_path / "start"
        start_up.mkdir()
        (start_up / "sitecustomize.py").write_text(START_UP.format(uri=uri))
        inherited = os.environ.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(start_up), inherited]))
        feature_map = '"identity"'
    (tmp_path / "trial.toml").write_text(SUITE.format(map=feature_map))
    command = [sys.executable, "-m", "kbench.cli", "suite", "trial.toml", "--store", store_uri]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert len(Store(store_uri).read("trial")) == 1
    assert _runs(store_uri) == 2  # of the cell, and of its method
    assert not other.exists() or _runs(uri) == 0
    assert not list(Path(tmp_path).glob("mlruns*"))


def _runs(uri):
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=uri)
    experiments = [each.experiment_id for each in client.search_experiments()]
    return len(client.search_runs(experiments))
