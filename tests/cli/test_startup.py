"""What a command imports before it has anything to compute."""

import os
import subprocess
import sys

import pytest

import kbench
from kbench.cli import main
from tests.support.commands_in_turn import completed, in_turn

NUMERIC = {"numpy", "scipy", "pandas", "sklearn", "matplotlib", "mlflow", "openml", "distributed"}
SCREEN = {"typer", "rich", "pydantic"}


def loaded_by(code, **environment):
    """Run Python code in a new process; return what it printed and the modules that it loaded."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('LOADED', *sys.modules, file=sys.stderr))\n" + code
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("LOADED")]
    return done.stdout, set(line.split()[1:])


def of_command(*arguments, **environment):
    """Run a command, and return the same."""
    code = f"from kbench.cli import main\nsys.argv = ['kbench', *{list(arguments)!r}]\nmain()\n"
    return loaded_by(code, **environment)


def test_importing_kbench_loads_nothing_heavy():
    _, loaded = loaded_by("import kbench\n")
    assert "kbench" in loaded
    assert not loaded & (NUMERIC | SCREEN)


def test_what_a_plugin_imports_loads_nothing_heavy():
    _, loaded = loaded_by("from kbench import FeatureMap, SuiteError, hookimpl\n")
    assert not loaded & (NUMERIC | SCREEN)


def test_every_public_name_is_there():
    for name in dir(kbench):
        assert getattr(kbench, name) is not None
    assert dir(kbench) == sorted([*kbench.__all__, "find_leakage", "recommend"])  # of features
    assert len(set(kbench.__all__)) == len(kbench.__all__)
    with pytest.raises(AttributeError, match="FeatureMapp"):
        _ = kbench.FeatureMapp


def test_the_version_is_there_before_any_command():
    printed, loaded = of_command("--version")
    assert printed == f"kbench {kbench.__version__}\n"
    assert not loaded & (NUMERIC | SCREEN)
    assert "kbench.cli.app" not in loaded


def test_the_version_beside_other_words_is_the_same(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["kbench", "--version"])
    main()
    alone = capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["kbench", "--version", "list"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert capsys.readouterr().out == alone == f"kbench {kbench.__version__}\n"


def test_looking_round_loads_nothing_that_computes():
    commands = (
        ["--help"],
        ["suite", "--help"],
        ["bundle", "--help"],
        ["list"],
        ["list", "--json"],
        ["list", "nothing"],
        ["list", "suites"],
        ["suite"],
    )
    for arguments, (_, loaded) in zip(commands, in_turn(*((c, {}) for c in commands)), strict=True):
        assert "typer" in loaded
        assert not loaded & NUMERIC, arguments


def test_a_list_is_printed_without_rich():
    printed, loaded = of_command("list", "suites")
    assert "uci-small" in printed
    assert "rich" not in loaded


def test_a_name_that_is_wrong_loads_numpy_at_most():
    _, loaded = of_command("suite", "ucy")
    assert loaded & NUMERIC <= {"numpy"}


def test_completion_loads_nothing_that_computes():
    found = {
        "kbench suite u": "uci-small",
        "kbench results u": "uci-small",
        "kbench suite uci --feature-map ny": "nystroem-kmeans",
    }
    for word, (printed, loaded) in zip(found.values(), completed(*found), strict=True):
        assert word in printed
        assert not loaded & NUMERIC


def test_tables_and_pictures_are_completed():
    found = {
        "kbench report uci --table sc": "scores",
        "kbench plot uci me": "metric-vs-fit-time",
    }
    for word, (printed, _) in zip(found.values(), completed(*found), strict=True):
        assert word in printed


def test_the_option_for_help_has_no_type():
    from typer.testing import CliRunner

    from kbench.cli.app import app

    text = CliRunner().invoke(app, ["results", "--help"]).stdout
    assert "--help" in text
    assert "bool" not in text


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["results", "uci"], "reading results ..."),
        (["suite", "no-such-suite"], "reading the suite ..."),
        (["report", "uci", "--quiet"], ""),
    ],
)
def test_a_terminal_gets_a_line_before_anything_heavy_is_loaded(arguments, line, tmp_path):
    code = (
        "import sys\n"
        "class Screen:\n"
        "    isatty = lambda self: True\n"
        "    flush = lambda self: None\n"
        "    def write(self, text):\n"
        "        if text.strip():\n"
        "            print(text.strip(), 'numpy' in sys.modules, 'mlflow' in sys.modules)\n"
        "        return len(text)\n"
        "err, sys.stderr = sys.stderr, Screen()\n"
        "atexit.register(lambda: setattr(sys, 'stderr', err))\n"
        "from kbench.cli import main\n"
        f"sys.argv = ['kbench', *{arguments!r}]\n"
        "main()\n"
    )
    printed, _ = loaded_by(code, MLFLOW_TRACKING_URI=f"sqlite:///{tmp_path}/none.db", NO_COLOR="1")
    first = printed.splitlines()[0]
    if line:
        assert line in first
        assert first.endswith("False False")
    else:
        assert "..." not in first


def test_reading_tables_loads_no_scikit_learn():
    """The processes of the tasks import it while a command reads the user's file."""
    _, loaded = loaded_by("import kbench_files._files, kbench_tables.recommend.user_data\n")
    assert "kbench.tables.cell_values" in loaded
    assert not loaded & (NUMERIC - {"numpy"})
