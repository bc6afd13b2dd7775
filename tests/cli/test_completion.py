"""What bash, zsh and fish complete, and that no name from a store becomes code."""

import os
import pty
import select
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from kbench.cli import completion
from kbench_mlflow.known_stores import list_stored_suites

FOUND = [
    ("kbench suite uci-s", "uci-small"),
    ("kbench suite uci --feature-map nystroem-k", "nystroem-kmeans"),
    ("kbench suite uci --dataset son", "sonar"),
    ("kbench report uci --table sco", "scores"),
    ("kbench plot uci metric-vs-fe", "metric-vs-features"),
    ("kbench results my-t", "my-trial"),
    ("kbench compare my-t", "my-trial"),
    ("kbench bundle pub", "publish"),
    ("kbench rescore uci --metric f1_ma", "f1_macro"),
]
HOSTILE = ["my-t$(touch harm)", "my-t`touch harm`", "my-t\\$(touch harm)", "my-t'; touch harm; '"]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """Return a folder with a store that has a suite, others with hostile names, and no runs."""
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        database.executescript(
            "CREATE TABLE experiments (experiment_id INT, name TEXT, lifecycle_stage TEXT);"
            "CREATE TABLE runs (run_uuid TEXT, experiment_id INT, lifecycle_stage TEXT);"
            "CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);"
        )
        names = ["my-trial", *HOSTILE, "my-test-without-runs", "my-torn\nmy-tail"]
        for number, name in enumerate(names):
            stage = "deleted" if "without" in name else "active"
            database.execute("INSERT INTO experiments VALUES (?, ?, 'active')", (number, name))
            database.execute("INSERT INTO runs VALUES (?, ?, ?)", (f"r{number}", number, stage))
            database.execute("INSERT INTO tags VALUES ('kbench.cell_key', 'k', ?)", (f"r{number}",))
    database.close()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    return tmp_path


def test_stored_suites_are_those_with_runs(desk):
    assert set(list_stored_suites()) == {"my-trial", *HOSTILE, "my-torn\nmy-tail"}
    assert list_stored_suites("sqlite:///elsewhere.db") == []
    assert list_stored_suites("http://nowhere.invalid") == []
    (desk / "broken.db").write_text("no database")
    assert list_stored_suites(f"sqlite:///{desk}/broken.db") == []


def test_names_that_a_shell_would_evaluate_are_not_offered(desk):
    context = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)))
    assert completion.complete_stored_suites(context, "my-t") == ["my-trial"]
    context.params["store"] = f"sqlite:///{desk}/elsewhere.db"
    assert "uci-small" in completion.complete_stored_suites(context, "uci")


def script(shell):
    """Return what `kbench --show-completion` prints for a shell."""
    done = subprocess.run(
        ["kbench"],
        env={**os.environ, "_KBENCH_COMPLETE": f"source_{shell}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "kbench" in done.stdout
    return done.stdout


def by_bash(line):
    words = shlex.split(line)
    code = (
        f"{script('bash')}\nCOMP_WORDS=({shlex.join(words)})\nCOMP_CWORD={len(words) - 1}\n"
        '_kbench_completion kbench\nprintf "%s\\n" "${COMPREPLY[@]}"'
    )
    return printed(["bash", "-c", code]).split()


def by_fish(line):
    code = f"{script('fish')}\ncomplete -C {shlex.quote(line)}"
    return [found.split("\t")[0] for found in printed(["fish", "-N", "-c", code]).splitlines()]


def printed(call):
    return subprocess.run(call, capture_output=True, text=True, check=True, timeout=300).stdout


def by_zsh(line):
    """Press the tabulator in an interactive zsh, and return the word that it completes."""
    Path("kbench.zsh").write_text(script("zsh"), encoding="utf-8")
    child, terminal = pty.fork()
    if not child:
        os.environ.update(TERM="dumb", ZDOTDIR=str(Path.cwd()), PS1="")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    try:
        begin = "unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D; . ./kbench.zsh"
        os.write(terminal, f"{begin}; echo rea''dy\n".encode())
        until(terminal, "ready")
        os.write(terminal, f"{line}\t".encode())
        time.sleep(0.2)  # the keys before have been taken as one line
        os.write(terminal, b"\x01echo '<'\x05'>'\n")
        shown = until(terminal, ">\r\n")
        return shown.rpartition("<")[2].partition(">")[0].split()[-1:]
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def until(terminal, text):
    """Read from a terminal until a text appears."""
    seen = b""
    while text.encode() not in seen:
        assert select.select([terminal], [], [], 120)[0], seen
        seen += os.read(terminal, 4096)
    return seen.decode(errors="replace")


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_names(shell, desk):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    complete = {"bash": by_bash, "zsh": by_zsh, "fish": by_fish}[shell]
    for line, expected in FOUND:
        assert expected in complete(line), line
    for line in ("kbench results my-t", "kbench compare my-t"):
        assert complete(line) == ["my-trial"]
    assert not (desk / "harm").exists()
