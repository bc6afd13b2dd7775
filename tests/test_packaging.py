"""The package as others install it: sdist, wheel, entry points, what is inside.

Everything is built without build isolation and without dependencies, and
installed into a venv that sees this one's packages, so that no network is used.
"""

import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "kbench",
    "kbench_balcan",
    "kbench_baselines",
    "kbench_claims",
    "kbench_compare",
    "kbench_costs",
    "kbench_dashboards",
    "kbench_dask",
    "kbench_datasets",
    "kbench_files",
    "kbench_leakage",
    "kbench_learned",
    "kbench_learners",
    "kbench_listing",
    "kbench_mlflow",
    "kbench_nbcs",
    "kbench_openml",
    "kbench_reporting",
    "kbench_rescoring",
    "kbench_sharing",
    "kbench_suites",
    "kbench_tables",
    "kbench_testing",
    "kbench_zero_one",
)

pytestmark = pytest.mark.slow


def run(*command, cwd=None):
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the sdist from the checkout and the wheel from the sdist."""
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("these tests need the checkout")
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation"]
    run(*build, "--sdist", "--outdir", folder, ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        # the first releases of Python 3.11 have no filters
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        archive.extractall(folder / "source")
    (source,) = (folder / "source").iterdir()
    run(*build, "--wheel", "--outdir", folder, source)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def empty_venv(tmp_path_factory):
    """Make a venv that sees this one's packages, but not this checkout."""

    def make(name):
        folder = tmp_path_factory.mktemp(name) / "venv"
        venv.create(folder, with_pip=True)
        site = next((folder / "lib").glob("python*")) / "site-packages"
        # not `addsitedir`: the .pth files there would bring in the editable checkout
        (site / "first.pth").write_text(sysconfig.get_path("purelib") + "\n")
        return folder

    return make


def test_the_sdist_has_everything_that_builds_and_tests_need(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"} <= names
    for package in PACKAGES:
        assert any(f"{package}/__init__.py" in name for name in names), package
    assert {"tests/conftest.py", "docs/index.md", "docs/running.md"} <= names
    assert not [name for name in names if name.startswith("docs/_build")]


def test_the_wheel_has_the_packages_at_its_top_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)
    assert "kbench_suites/uci.toml" in names
    assert any(name.startswith("kbench_testing/scaffold/templates/") for name in names)
    assert "kbench_reporting/templates/page.html.j2" in names
    assert {f"kbench_{name}/feature.toml" for name in ("mlflow", "tables")} <= set(names)
    assert "kbench/features/__init__.pyi" in names
    assert not [name for name in names if name.endswith(".md") and "dist-info" not in name]


def test_a_wheel_in_an_empty_venv_lists_its_plugins(built, empty_venv, tmp_path):
    folder = empty_venv("wheel")
    run(folder / "bin/python", "-m", "pip", "install", "-q", "--no-deps", built[1])
    listed = run(folder / "bin/kbench", "list", cwd=tmp_path)
    for word in ("nystroem", "linear-svm", "iris", "uci"):
        assert word in listed
    assert "LEFT OUT" not in listed
    where = run(
        folder / "bin/python", "-P", "-c", "import kbench; print(kbench.__file__)", cwd=tmp_path
    )
    assert str(folder) in where


def test_a_plain_editable_install_finds_every_package(empty_venv, tmp_path):
    folder = empty_venv("editable")
    python = folder / "bin/python"
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "-e", ROOT)
    code = f"import {', '.join(PACKAGES)}; print(kbench_suites.__file__)"
    assert str(ROOT) in run(python, "-P", "-c", code, cwd=tmp_path)
