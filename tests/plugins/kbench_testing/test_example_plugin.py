"""A third party's package, really installed: it is there, conforms and runs.

Its results stand beside the built-ins' existing ones, which are not run again.
"""

import csv
import io
import json
import os
import subprocess
import sys
import sysconfig
import venv

import pytest

from tests.support.paths import SUPPORT

PACKAGE = SUPPORT / "example_plugin"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the command line of a venv that has the package."""
    folder = tmp_path_factory.mktemp("example") / "venv"
    venv.create(folder, with_pip=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    first = sysconfig.get_path("purelib")
    (site / "first.pth").write_text(f"import site; site.addsitedir({first!r})\n")
    python = str(folder / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, str(PACKAGE)], check=True, timeout=300)
    return python


@pytest.fixture
def kbench(private_folders, tmp_path):
    """Run kbench with private folders; return its output."""

    def run(python, *arguments, code=0):
        done = subprocess.run(
            [python, "-m", "kbench.cli", *arguments],
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_it_is_listed_with_no_configuration(installed, kbench):
    listed = kbench(installed, "list")
    for name in ("its-map", "its-learner", "its-kernel", "its-data", "its-suite"):
        assert f"  {name}" in listed
    assert "LEFT OUT" not in listed
    assert "its-map" not in kbench(sys.executable, "list")


def test_it_conforms(installed, kbench):
    said = kbench(installed, "plugin", "check", "its-plugin")
    for kind in ("feature map", "learner", "kernel", "dataset"):
        assert f"ok       {kind} its-" in said
    assert "FAILED" not in said
    assert "feature map its-map" in kbench(installed, "plugin", "check", "its_plugin", "--quick")


def test_its_results_stand_beside_those_of_the_built_ins(installed, kbench):
    few = ("--dataset", "iris", "--dataset", "wine", "--learner", "ridge")
    kbench(sys.executable, "suite", "uci", *few, "--feature-map", "identity")
    both = ("--add-feature-map", "its-map", "--feature-map", "i*")
    lines = kbench(installed, "suite", "uci", *few, *both, "--json").splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    started = {each["cell"] for each in events if each["event"] == "started"}
    assert started == {f"its-map + ridge (ovr) on {name}" for name in ("iris", "wine")}
    table = kbench(installed, "results", "uci", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(table[table.index("dataset") :])))
    assert {row["feature_map"] for row in rows} >= {"identity", "its-map"}


def test_its_suite_runs(installed, kbench):
    said = kbench(installed, "suite", "its-suite")
    assert "its-map" in said
