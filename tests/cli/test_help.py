"""Help pages: examples that parse, whole words at any width, and no colour where none is wanted."""

import shlex

import pytest
from typer.main import get_command

from kbench.cli.app import CORE as CORE_COMMANDS
from kbench.cli.app import app
from kbench.cli.echo import echo
from kbench.cli.printing import console, print_failure
from kbench.registry.features import working
from tests.support.command_here import command
from tests.support.command_lines import all_commands, kbench_calls, known_call

EXAMPLES = {words: getattr(found, "examples", ()) for words, found in all_commands()}


def test_each_command_has_examples():
    assert len(EXAMPLES) > 20
    assert all(EXAMPLES.values())


@pytest.mark.parametrize("words", EXAMPLES)
def test_examples_parse_and_stand_at_the_end_of_the_page(words, capfd):
    page = command(*words.split(), "--help", capfd=capfd)[1]
    examples = page.partition("\nExamples:\n")[2].splitlines()
    assert [line.strip() for line in examples] == [
        text for pair in EXAMPLES[words] for text in pair
    ]
    for meaning, line in EXAMPLES[words]:
        assert meaning.endswith(":")
        assert shlex.split(line)[: 1 + len(words.split())] == ["kbench", *words.split()]
        for call in kbench_calls(line):
            known_call(call)


def test_an_option_that_is_not_there_does_not_parse():
    with pytest.raises(Exception, match="No such option"):
        known_call(["suite", "uci", "--no-such-option"])


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("words", ["", "suite", "report", "data", "data fetch"])
def test_pages_fit_and_break_no_word(words, width, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    known = set(command(*words.split(), "--help", capfd=capfd)[1].split())
    monkeypatch.setenv("COLUMNS", str(width))
    page, _, examples = command(*words.split(), "--help", capfd=capfd)[1].partition("Examples:")
    assert max(map(len, page.splitlines())) <= width
    for word in {*page.split(), *examples.split()} - known:
        # a line may end at the hyphen of a word
        assert any(whole.startswith(word) or whole.endswith(word) for whole in known)
        assert word.endswith("-") or f"-\n{word}" in page.replace(" ", "")
    assert "<bool>" not in page


class Terminal:
    """A stream that says that it is a terminal."""

    def __init__(self):
        self.written = ""

    def write(self, text):
        self.written += text
        return len(text)

    def flush(self):
        """Do nothing."""

    def isatty(self):
        return True


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_respect_no_color(no_color, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    echo("FAILED", fg="red")
    print_failure(console(), "error", "a cell", "why")
    assert "FAILED" in screen.written
    assert "a cell: why" in screen.written
    assert ("\x1b[31m" in screen.written) == (not no_color)


def test_the_list_of_commands_has_the_first_sentence_of_each_page():
    root = get_command(app)
    context = root.context_class(root, info_name="kbench")
    said = {name: about.help for name, about in CORE_COMMANDS.items()}
    said |= {
        name: command.help
        for feature in working()
        for name, command in feature.metadata.commands.items()
    }
    assert list(said) != []
    for name, line in said.items():
        group, _, last = name.rpartition(" ")
        above = root.get_command(context, group) if group else root
        found = above.get_command(context, last)
        assert found.get_short_help_str(limit=1000) == line, name
