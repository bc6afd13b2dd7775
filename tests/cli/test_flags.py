"""Options that messages name: arguments in Python, flags of the command that runs."""

import ast
import inspect
import re
from pathlib import Path

import pytest
import typer
from typer.main import get_command

import kbench
from kbench.api.result_set import Results
from kbench.cli.echo import put_flags
from kbench.errors import SuiteError
from kbench.messages import option
from kbench_tables.recommend.frame import Recommendation
from tests.support.command_here import command

ROOT = Path(kbench.__file__).parents[1]


def own(
    keep: str = "",
    time_limit: float = 0.0,
    date: str = "",
    delimiter: str = "",
    group_by: str = typer.Option("", "--group"),
    recompute: bool = typer.Option(False, "--recompute"),
    params: list[str] = typer.Option((), "--param"),  # noqa: B008
):
    """Do nothing."""


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (option("keep", "price"), "--keep price"),
        (option("keep", "a 'b'"), """--keep 'a '"'"'b'"'"''"""),
        (option("keep", ["a", "b c"]), "--keep a --keep 'b c'"),
        (option("params", ["C=1"]), "--param C=1"),
        (option("keep", "a`b"), "`keep='a`b'`"),
        (option("delimiter", "\t"), "--delimiter $'\\t'"),
        (f"say {option('time_limit', 120)}; more", "say --time-limit 120; more"),
        (option("date", "d=%Y%m%d"), "--date d=%Y%m%d"),
        (f"not {option('group')} and {option('recompute', True)}", "not --group and --recompute"),
        (f"say {option('drop', ['a'])}", "say `drop=['a']`"),  # the command has none
        ("`kbench recommend` and `keep it`", "`kbench recommend` and `keep it`"),
    ],
)
def test_a_command_shows_its_flags(told, expected):
    made = typer.Typer()
    made.command()(own)
    assert put_flags(told) == told
    with get_command(made).make_context("own", []):
        assert put_flags(told) == expected


def test_an_error_is_said_in_the_words_of_who_asked(capfd):
    code, _, err = command("suite", "uci-small", "--task-timeout", "-1", capfd=capfd)
    assert (code, err) == (
        2,
        "kbench: --task-timeout must be a finite number > 0, or inf, got -1.0\n",
    )
    with pytest.raises(SuiteError, match="`task_timeout` must be a finite number > 0, or inf"):
        kbench.run_suite("uci-small", task_timeout=-1)


IN_PYTHON = {
    name
    for function in (
        *(kbench.recommend, kbench.run_suite, kbench.load_results, kbench.find_leakage),
        *(Recommendation.export, Results.table, Results.plot, Results.compare),
    )
    for name in inspect.signature(function).parameters
}
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
COMMAND = re.compile(r"`?kbench [a-z]+ [^`]*|`")
COMMANDS = {"cli", "commands", "commands.py", "command.py", "kbench_testing", "predicting.py"}
WORDS_OF_COMMANDS = {("plugins/kbench_mlflow/feature.py", "store")}


def messages(path):
    """Yield the strings of a file that are no docstrings."""
    tree = ast.parse(path.read_text())
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def test_only_commands_say_flags_of_what_python_has_too():
    files = [*(ROOT / "kbench").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]
    said = {
        (file.relative_to(ROOT).as_posix(), flag)
        for file in files
        if not COMMANDS & set(file.parts)
        for text in messages(file)
        for flag in FLAG.findall(COMMAND.sub("", text))
        if flag.replace("-", "_") in IN_PYTHON
    }
    assert said == WORDS_OF_COMMANDS
