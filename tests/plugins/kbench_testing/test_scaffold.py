"""`kbench plugin new` and `kbench plugin check`: what they write, reject and print."""

import json
import subprocess
import sys
import sysconfig
import venv

import pytest
from typer.testing import CliRunner

from kbench.cli import main
from kbench.cli.app import app
from kbench_testing.scaffold import KINDS

TASK = {"learner": " (classification)", "regressor": " (regression)"}
ENTRY = {
    "feature-map": "feature map",
    "learner": "learner",
    "regressor": "learner",
    "kernel": "kernel",
    "dataset": "dataset",
    "suite": "suite",
}


def invoke(monkeypatch, capsys, *arguments):
    """Run the command line as a shell does; return exit code, output and errors."""
    monkeypatch.setattr(sys, "argv", ["kbench", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return ended.value.code or 0, out, err


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_package_passes_the_kit_as_generated(kind, here, monkeypatch, capsys):
    from kbench_testing import components, run

    name = f"brand-new-{kind}"
    code, out, _ = invoke(monkeypatch, capsys, "plugin", "new", name, f"--{kind}")
    assert code == 0
    assert f"kbench plugin check {name}" in out
    assert KINDS[kind].try_it.format(name=name) in out
    monkeypatch.syspath_prepend(str(here / name))
    found = components(name.replace("-", "_"))
    # a feature is no plugin; its run needs an installation
    expected = [f"{ENTRY.get(kind, kind)} {name}{TASK.get(kind, '')}"]
    assert [str(each) for each in found if each.kind != "plugin"] == expected
    outcomes = [each for each in run(found) if each.check != "check_run"]
    assert {each.status for each in outcomes} == {"passed"}, outcomes


def test_a_feature_map_is_the_default(here, monkeypatch, capsys):
    code, out, _ = invoke(monkeypatch, capsys, "plugin", "new", "its-map")
    assert code == 0
    assert "its_map/_map.py" in out
    assert (here / "its-map/.github/workflows/test.yml").read_text().count("${{") == 1


def test_the_generated_files_have_no_placeholder_left_and_are_tidy(here, monkeypatch, capsys):
    for kind in KINDS:
        invoke(monkeypatch, capsys, "plugin", "new", f"tidy-{kind}", f"--{kind}")
    texts = [p.read_text() for p in here.rglob("*") if p.is_file()]
    assert len(texts) == 7 * len(KINDS)
    assert not [text for text in texts if "$name" in text or "$package" in text]
    for command in (["check"], ["format", "--check"]):
        tidy = [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "100", "."]
        done = subprocess.run(tidy, capture_output=True, text=True, cwd=here, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MyMap", "try 'mymap'"),
        ("my map", "try 'my-map'"),
        ("my_map", "try 'my-map'"),
        ("../evil", "try 'evil'"),
        ("9lives", "begin with a letter"),
        ("", "begin with a letter"),
        ("rff", "a feature map called 'rff'"),
        ("iris", "a dataset called 'iris'"),
        ("uci", "a suite called 'uci'"),
        ("balcan", "a plugin called 'balcan'"),
        ("numpy", "would hide another"),
        ("json", "would hide another"),
        ("class", "would hide another"),
        ("kbench-nbcs", "would hide another"),
    ],
)
def test_a_bad_name_is_one_message_and_writes_nothing(name, words, here, monkeypatch, capsys):
    code, out, err = invoke(monkeypatch, capsys, "plugin", "new", name)
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1
    assert not out
    assert not list(here.iterdir())


def test_an_existing_folder_is_left_alone(here, monkeypatch, capsys):
    (here / "my-map").mkdir()
    code, _, err = invoke(monkeypatch, capsys, "plugin", "new", "my-map")
    assert (code, "exists" in err) == (2, True)
    assert not list((here / "my-map").iterdir())


def test_a_fault_leaves_nothing_half_written(here, monkeypatch, capsys):
    from pathlib import Path

    write = Path.write_text

    def full(self, *args, **kwargs):
        if self.name == "__init__.py":
            raise OSError(28, "No space left on device")
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", full)
    code, _, err = invoke(monkeypatch, capsys, "plugin", "new", "my-map")
    assert code == 2
    assert "No space left" in err
    assert not list(here.iterdir())


def test_two_kinds_at_once_are_refused(here, monkeypatch, capsys):
    code, _, err = invoke(monkeypatch, capsys, "plugin", "new", "my-map", "--kernel", "--suite")
    assert code == 2
    assert "--kernel and --suite" in err
    assert not list(here.iterdir())


# ---------------------------------------------------------------------------
# kbench plugin check
# ---------------------------------------------------------------------------

BROKEN = """
import numpy as np
from kbench import Dataset, DatasetSource, hookimpl


def load():
    return Dataset("odd", X=np.eye(4), y=np.array([1, 2, 1, 2]))


@hookimpl
def kbench_datasets():
    return [DatasetSource("odd", load=load)]
"""


def test_check_says_what_is_wrong_and_ends_with_1(install_plugin):
    install_plugin("broken_plugin", BROKEN)
    done = CliRunner().invoke(app, ["plugin", "check", "broken-plugin"])
    assert done.exit_code == 1
    assert "FAILED   dataset odd" in done.output
    assert "check_labels" in done.output
    assert "0..k-1" in done.output
    assert "1 failed" in done.output


def test_check_names_a_missing_dependency_once(install_plugin):
    install_plugin(
        "needy_plugin",
        "from kbench import FeatureMap, hookimpl\n\n\n@hookimpl\ndef kbench_feature_maps():\n"
        '    return [FeatureMap("needy", make="needy_plugin_map:Map")]\n',
    )
    install_plugin("needy_plugin_map", "import not_installed_at_all\n")
    done = CliRunner().invoke(app, ["plugin", "check", "needy-plugin"])
    assert done.exit_code == 1
    assert done.output.count("'not_installed_at_all', which is not installed") == 1


@pytest.mark.parametrize("name", ["datasets", "kbench_datasets"])
def test_check_of_a_good_plugin_ends_with_0(name):
    done = CliRunner().invoke(app, ["plugin", "check", name])
    assert done.exit_code == 0
    assert "dataset iris" in done.output
    assert "FAILED" not in done.output


def test_check_as_json():
    done = CliRunner().invoke(app, ["plugin", "check", "suites", "--json"])
    found = json.loads(done.stdout)
    assert found["counts"]["failed"] == 0
    assert {"component": "suite uci", "check": "check_suite", "status": "passed"} in found["checks"]


def test_check_of_an_unknown_plugin_ends_with_2(monkeypatch, capsys):
    code, _, err = invoke(monkeypatch, capsys, "plugin", "check", "baseline")
    assert code == 2
    assert "did you mean 'baselines'" in err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("json", "plugin 'json' is left out: has no hook"),
        ("rude_package.part", "RuntimeError: not today"),
        ("no_such_package.part", "no plugin, module or distribution is named"),
        (".relative", "no plugin, module or distribution is named"),
        ("", "no plugin, module or distribution is named"),
    ],
)
def test_check_of_what_cannot_be_loaded_ends_with_2(
    install_plugin, monkeypatch, capsys, name, words
):
    install_plugin("rude_package", 'raise RuntimeError("not today")\n')
    code, out, err = invoke(monkeypatch, capsys, "plugin", "check", name)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_a_component_that_ends_the_program_fails_its_check(install_plugin):
    ending = BROKEN.replace("return Dataset(", "raise SystemExit(0)\n    return Dataset(")
    install_plugin("ending_plugin", ending)
    done = CliRunner().invoke(app, ["plugin", "check", "ending-plugin"])
    assert done.exit_code == 1
    assert "raised SystemExit" in done.output


# ---------------------------------------------------------------------------
# Installed, as a user would
# ---------------------------------------------------------------------------


def installed_beside(folder, *packages):
    """Make a venv that sees this one's packages, and install packages into it."""
    venv.create(folder, with_pip=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    # addsitedir reads the .pth files there too: an editable checkout counts
    first = sysconfig.get_path("purelib")
    (site / "first.pth").write_text(f"import site; site.addsitedir({first!r})\n")
    python = str(folder / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, *map(str, packages)], check=True, timeout=300)

    def run(*arguments, cwd):
        return subprocess.run(
            [python, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=300
        )

    return run


@pytest.mark.slow
def test_generated_packages_install_and_pass_their_own_tests(here, monkeypatch, capsys, tmp_path):
    names = []
    for kind in KINDS:
        names.append(f"fresh-{kind}")
        invoke(monkeypatch, capsys, "plugin", "new", names[-1], f"--{kind}")
    run = installed_beside(tmp_path / "venv", *(here / name for name in names))
    listed = run("-m", "kbench.cli", "list", cwd=tmp_path)
    for name in names:
        assert f"  {name}" in listed.stdout, listed
        done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=here / name)
        assert done.returncode == 0, done.stdout + done.stderr
        checked = run("-m", "kbench.cli", "plugin", "check", name, cwd=tmp_path)
        assert checked.returncode == 0, checked.stdout + checked.stderr
