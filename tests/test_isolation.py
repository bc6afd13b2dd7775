"""Tests do not see what a run of kbench left in the checkout, the home or the environment."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

SUITE = """
datasets = ["iris"]
feature_maps = ["identity"]
learners = ["ridge"]
[protocol]
n_folds = 3
"""
READERS = [
    "tests/cli/test_startup.py::test_completion_loads_nothing_that_computes",
    "tests/plugins/kbench_mlflow/tracking/test_addresses.py",
    "tests/plugins/kbench_listing/test_data.py",
    "kbench/api",
]
"""Tests of what looks into the folder, the cache, the state and the environment."""

SHED = ("KBENCH_", "MLFLOW_", "PYTEST_")
NO_COPY = (".git", ".venv", "_build", "__pycache__", ".*_cache", "mlruns", "mlflow.db*", "build")


def digests(folder):
    """Return the checksum of each file of a folder that a run of kbench may have written."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.slow
def test_what_a_run_left_is_not_seen(tmp_path):
    """As the README's second command after its first one, in a copy of the checkout."""
    checkout, home = tmp_path / "checkout", tmp_path / "home"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*NO_COPY))
    (checkout / "small.toml").write_text(SUITE)
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith(SHED)}
    folders = [checkout / name for name in ("", "plugins", "suites", "dashboards")]
    env |= {"HOME": str(home), "PYTHONPATH": os.pathsep.join(map(str, folders))}

    def run(*command, **variables):
        done = subprocess.run(
            command, cwd=checkout, env=env | variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    run(Path(sys.executable).with_name("kbench"), "suite", "small.toml")
    left = digests(tmp_path)
    assert checkout / "mlflow.db" in left
    assert any(home in path.parents for path in left)
    seen = {"MLFLOW_TRACKING_URI": f"sqlite:///{checkout}/mlflow.db", "KBENCH_OFFLINE": "1"}
    run(sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *READERS, **seen)
    after = {p: d for p, d in digests(tmp_path).items() if "__pycache__" not in p.parts}
    assert after == left
