"""README and docs are true: every command and snippet in them runs.

Fenced blocks are console, python, toml, or text, which is not run. What a
console block shows below a command is compared with what the command prints,
``...`` standing for anything. A block whose first line names a file,
``# mine.toml``, is written to that file for the commands after it. A comment
before a block changes what becomes of it:

    <!-- test: reduced --dataset iris -->  adds options to `kbench suite` and `kbench recommend`
    <!-- test: not run: needs a cluster --> with the reason
    <!-- test: first: kbench suite uci --> a command to run before it
    <!-- test: output varies -->           the output is not compared
    <!-- test: slow -->                    python that takes seconds, or needs the commands before

The default run executes Python and TOML and checks that kbench has the commands
and options; the slow one executes the commands too, page by page.
"""

from __future__ import annotations

import doctest
import html
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import traceback
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from sybil import Document
from sybil.evaluators.python import PythonEvaluator
from sybil.example import NotEvaluated
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer, FencedCodeBlockLexer
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser

from kbench.records import WORST_FIRST
from kbench.registry.features import find_features
from kbench.report.tables import answer_sentences
from kbench.results.leaderboard import leaderboard
from tests.support.command_lines import kbench_calls, known_call

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.relative_to(DOCS).parts),
]
LANGUAGES = {
    "console",
    "python",
    "toml",
    "json",
    "yaml",
    "text",
    "{toctree}",
    "{stored}",
    "{notebook}",
    "{include}",
    "{eval-rst}",
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MAX_NOT_RUN = 12
README_BYTES = 6000
MAX_WORDS = 2000
LONG = {"suites.md", "architecture.md", "plugins.md", "tables-format.md", "bundles.md", "mlflow.md"}
"""References, and pages for developers."""
SET_BY_KBENCH = {"KBENCH_SANDBOX", "KBENCH_TASK_PLUGINS", "KBENCH_COMPLETE"}
OF_THE_SYSTEM = {"Permission denied"}
WRITTEN_BY_SPHINX = {"search", "genindex", "py-modindex"}
PROMPT = re.compile(r"\w*\$ +")


def name_of(page):
    """Return the path of a page below `docs`, without its extension."""
    return page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT).with_suffix("").as_posix()


pages = pytest.mark.parametrize("page", PAGES, ids=name_of)


def marks_of(document):
    """Return the comments about each block, by where the block starts."""
    starts = [region.start for region in FencedCodeBlockLexer(".*")(document)]
    marks = {}
    for region in DirectiveInHTMLCommentLexer("test", ".*?")(document):
        following = min((start for start in starts if start > region.end), default=None)
        marks.setdefault(following, []).append(region.lexemes["arguments"].strip())
    return marks


def commands_of(block):
    """Return the commands of a console block, each with the lines of output below it."""
    found = []
    lines = iter(block.splitlines())
    for line in lines:
        prompt = PROMPT.match(line)
        if prompt:
            command = line[prompt.end() :]
            while command.endswith("\\"):
                command = command[:-1] + next(lines).strip()
            found.append((command, []))
        else:
            assert found, f"output without a command: {line!r}"
            found[-1][1].append(line)
    return found


def check_toml(text):
    """Suite files, whole or in part, are read and planned; the rest is TOML of a pyproject."""
    from kbench import Ref
    from kbench.planning.cells import cells
    from kbench.planning.component_refs import has_rules
    from kbench.planning.suite_file import read
    from kbench.registry.installed import list_plugins
    from kbench.registry.registry import build
    from kbench_tables.size_rules import Size, read_for

    table = tomllib.loads(text)
    if table.keys() <= {"project", "build-system", "tool"}:
        return
    least = {"datasets": ["iris"], "feature_maps": ["identity"], "learners": ["ridge"]}
    given = {key for block in (table, *table.get("block", ())) for key in block}
    whole = "".join(f"{key} = {value!r}\n" for key, value in least.items() if key not in given)
    registry = build(list_plugins())
    if has_rules(table):
        sized = read_for(Ref("iris"), Size(150, 4, False), text, "a-page", registry)
        assert cells(sized.suite, registry)
        return
    assert cells(read(whole + text, "a-page", registry), registry)


class Desk:
    """A folder to work in, offline, with a place to install into, and a shell."""

    def __init__(self, folder, variables):
        """Keep what the shell starts with."""
        self.folder, self.variables = folder, {**variables, "PWD": str(folder)}

    def run(self, command):
        """Run one command; return its exit code and what it printed."""
        calls = kbench_calls(command)
        simple = len(calls) == 1 and not set("|&;<>()*?$~`") & set(command)
        with (self.folder / ".printed").open("w+b") as printed:
            code = self.kbench(calls[0], printed) if simple else self.shell(command, printed)
            printed.seek(0)
            return code, printed.read().decode()

    def kbench(self, arguments, printed):
        """Do what the installed command does, in a fork, which has the slow imports already."""
        sys.stdout.flush()
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        try:
            find_features.cache_clear()  # the page may have installed a feature
            os.environ.clear()
            os.environ.update(self.variables)
            os.chdir(self.variables["PWD"])
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            sys.argv = ["kbench", *arguments]
            (command,) = entry_points(group="console_scripts", name="kbench")
            try:
                command.load()()
                code = 0
            except SystemExit as end:
                code = end.code or 0
        except BaseException:
            traceback.print_exc()
            code = 70
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def shell(self, command, printed):
        """Run anything else; where it went and what it exported holds for what follows."""
        after = self.folder / ".after"
        done = subprocess.run(
            ["bash", "-c", f"set -eo pipefail\n{command}\nenv -0 > {shlex.quote(str(after))}"],
            cwd=self.variables["PWD"],
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
        if done.returncode == 0:
            pairs = after.read_text().split("\0")[:-1]
            self.variables = dict(pair.split("=", 1) for pair in pairs)
        return done.returncode


class Reading:
    """One page, read from top to bottom in a folder of its own."""

    def __init__(self, page, desk, commands):
        """Parse the page; `commands` says whether they are run, or only looked at."""
        self.desk, self.commands = desk, commands
        self.document = Document.parse(str(page), self.parse)
        self.marks = marks_of(self.document)
        self.document.push_evaluator(self.gate)

    def parse(self, document):
        """Yield the regions of all languages."""
        yield from CodeBlockParser("console", self.console)(document)
        yield from CodeBlockParser("toml", self.toml)(document)
        yield from PythonCodeBlockParser(doctest_optionflags=FLAGS)(document)

    def marks_before(self, example):
        """Return the comments about the block that an example is in."""
        fences = [
            region.start
            for region in FencedCodeBlockLexer(".*")(self.document)
            if region.start <= example.start
        ]
        return self.marks.get(fences[-1], [])

    def gate(self, example):
        """Write files, and leave out what is not to be run."""
        marks = self.marks_before(example)
        if any(mark.startswith("not run") for mark in marks):
            return
        if "slow" in marks and not self.commands:
            return
        if isinstance(example.region.evaluator, PythonEvaluator):
            name = self.write(example.parsed)
            if name and Path(name).name.startswith("test_"):
                compile(example.parsed, name, "exec")
                return
        raise NotEvaluated

    def write(self, text):
        """Write a block that begins with a file's name to that file."""
        named = re.match(r"# ([\w./-]+\.(?:py|toml))\n", text)
        if not named:
            return None
        path = self.desk.folder / named[1]
        assert path.resolve().is_relative_to(self.desk.folder.resolve())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return named[1]

    def toml(self, example):
        """Check a block, and write it where it names a file."""
        self.write(example.parsed)
        check_toml(example.parsed)

    def console(self, example):
        """Run the commands of a block, and compare what they print."""
        if not self.commands:
            return
        marks = self.marks_before(example)
        fewer = " ".join(m.removeprefix("reduced") for m in marks if m.startswith("reduced"))
        before = [m.removeprefix("first:").strip() for m in marks if m.startswith("first:")]
        checker = doctest.OutputChecker()
        for command, output in [*((each, []) for each in before), *commands_of(example.parsed)]:
            if fewer:
                command = re.sub(r"(kbench (?:suite|recommend) \S+)", rf"\1 {fewer}", command)
            code, got = self.desk.run(command)
            place = f"line {example.line} of {example.path}: {command}"
            assert code == 0, f"{place}\nexit code {code}\n{got}"
            want = "\n".join(output).strip()
            if want and not fewer and "output varies" not in marks:
                assert checker.check_output(want + "\n", got.strip() + "\n", FLAGS), (
                    f"{place}\nshown:\n{want}\ngot:\n{got}"
                )

    def run(self):
        """Evaluate all examples in order."""
        for example in self.document.examples():
            example.evaluate()


PIP = """#!{python}
# What a page installs is for that page only, and nothing is downloaded.
import os, subprocess, sys
what = [os.path.abspath(a.split("[")[0]) for a in sys.argv[2:] if not a.startswith("-")]
assert sys.argv[1] == "install" and all(map(os.path.isdir, what)), sys.argv
options = ["--quiet", "--upgrade", "--no-deps", "--no-build-isolation", "--target", {site!r}]
command = [sys.executable, "-m", "pip", "install", *options, *what]
raise SystemExit(subprocess.run(command).returncode)
"""


@pytest.fixture
def desk(tmp_path, monkeypatch):
    folder, site, tools = tmp_path / "work", tmp_path / "site", tmp_path / "bin"
    for each in (folder / "docs" / "images", site, tools):  # as in a checkout
        each.mkdir(parents=True)
    (tools / "pip").write_text(PIP.format(python=sys.executable, site=str(site)))
    (tools / "pip").chmod(0o755)
    paths = [str(tools), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(paths))
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("KBENCH_OFFLINE", "1")
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("BROWSER", "true")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(folder)
    return Desk(folder, dict(os.environ))


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """One journal for all pages: what one has computed, the next need not."""
    return tmp_path_factory.mktemp("shelf")


@pages
def test_snippets_run(page, desk):
    Reading(page, desk, commands=False).run()


def has_commands(page):
    text = page.read_text(encoding="utf-8")
    return "```console" in text or "<!-- test: slow" in text


@pytest.mark.slow
@pytest.mark.parametrize("page", [*filter(has_commands, PAGES)], ids=name_of)
def test_commands_run(page, desk, migrated_store, shelf):
    import matplotlib.pyplot  # noqa: F401 - for the commands, which are forks
    import mlflow  # noqa: F401
    import sklearn.svm  # noqa: F401

    shutil.copy(migrated_store, desk.folder / "mlflow.db")
    desk.variables |= {"KBENCH_STATE_DIR": str(shelf), "KBENCH_CACHE_DIR": str(shelf / "cache")}
    Reading(page, desk, commands=True).run()


@pages
def test_kbench_has_the_commands_and_options(page):
    document = Document.parse(str(page), CodeBlockParser("console", lambda example: None))
    for example in document.examples():
        for command, _ in commands_of(example.parsed):
            for call in kbench_calls(command):
                try:
                    known_call(call)
                except Exception as error:
                    pytest.fail(f"{page.name}, line {example.line}: {command}: {error}")


@pages
def test_every_block_says_what_it_is(page):
    document = Document.parse(str(page))
    for region in FencedCodeBlockLexer(".*")(document):
        line = document.line_column(region.start)
        language = region.lexemes["language"].split()
        assert language and language[0] in LANGUAGES, f"{page.name}, {line}"
        if language[0] == "text":
            assert not re.search(r"^(\$|kbench) ", region.lexemes["source"], re.MULTILINE), line


def test_what_is_not_run_is_little_and_has_a_reason():
    left_out = []
    for page in PAGES:
        for start, marks in marks_of(Document.parse(str(page))).items():
            for mark in marks:
                assert start is not None, f"{page.name}: no block after <!-- test: {mark} -->"
                known = r"not run: .{12,}|reduced .+|first: kbench .+|output varies|slow"
                assert re.fullmatch(known, mark), f"{page.name}: <!-- test: {mark} -->"
                if mark.startswith("not run"):
                    left_out.append((page.name, mark))
    assert len(left_out) <= MAX_NOT_RUN, left_out


def test_the_readme_is_short():
    assert (ROOT / "README.md").stat().st_size <= README_BYTES


def named_blocks(page):
    """Return the blocks of a page that name a file, by that name."""
    regions = FencedCodeBlockLexer(".*")(Document.parse(str(page)))
    sources = [region.lexemes["source"] for region in regions]
    named = [(re.match(r"# ([\w.]+)\n", source), source) for source in sources]
    return {match[1]: source for match, source in named if match}


@pytest.mark.slow
def test_the_plugin_written_by_hand_passes_every_check(desk):
    blocks = named_blocks(DOCS / "first-plugin.md")
    assert blocks.keys() == {"my_plugin.py", "pyproject.toml"}
    for name, source in blocks.items():
        (desk.folder / name).write_text(source, encoding="utf-8")
    code, printed = desk.run("pip install . && kbench plugin check my-plugin")
    assert code == 0, printed
    assert "feature map squares" in printed
    assert "warning" not in printed
    code, printed = desk.run("kbench suite uci --add-feature-map squares --dry-run --all --offline")
    assert code == 0, printed
    assert re.search(r"iris +squares +ridge", printed)


def test_the_table_of_the_readme_is_that_of_the_stored_run():
    board = stored_board()
    regions = FencedCodeBlockLexer("text")(Document.parse(str(ROOT / "README.md")))
    table, answer = (region.lexemes["source"] for region in regions)
    shown = [re.split(r" {2,}", line) for line in table.splitlines()[1:]]
    assert len(shown) == 8
    for feature_map, learner, rank, accuracy, seconds in shown:
        line = board[feature_map, learner]
        assert float(rank) == pytest.approx(line.rank, abs=0.0051)
        assert float(accuracy) == pytest.approx(line.mean, abs=0.000051)
        assert float(seconds) == pytest.approx(line.fit_time_s, rel=0.0006)
    # `tests/benchmarks/draw_report.py` writes it
    assert answer.splitlines() == answer_sentences(stored_leaderboard())


def stored_board():
    """Return the leaders of `docs/measured/uci.json` by their method."""
    return {line.method: line for line in stored_leaderboard().lines}


def stored_leaderboard():
    spec = importlib.util.spec_from_file_location("stored", DOCS / "extensions" / "stored.py")
    stored = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stored)
    content = stored.stored(DOCS / "measured" / "uci.json")
    return leaderboard(content.rows, content.metric)


def rows_of(page, heading):
    """Return the names in the first column of the first table below a heading."""
    section = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1]
    (cells,) = re.findall(r"^\|.*(?:\n\|.*)+", section, re.MULTILINE)[:1]
    return [re.match(r"\| `(\w+)`", line)[1] for line in cells.splitlines()[2:]]


def test_every_status_is_described_the_worst_first():
    assert tuple(rows_of("reference/lists.md", "Statuses")) == WORST_FIRST


def test_every_environment_variable_is_described():
    listed = rows_of("reference/lists.md", "Environment variables")
    source = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("kbench", "plugins")
        for path in (ROOT / folder).rglob("*.py")
    )
    read = set(re.findall(r"\b(KBENCH_[A-Z_]+)\b", source))
    assert read - SET_BY_KBENCH == {name for name in listed if name.startswith("KBENCH_")}
    assert all(f'"{name}"' in source for name in listed)


def test_messages_in_the_headings_are_those_of_the_code():
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "kbench").rglob("*.py"))
    source += "".join(path.read_text(encoding="utf-8") for path in (ROOT / "plugins").rglob("*.py"))
    of_strings = re.sub(r'"\s*f?"', "", source)  # parts of a string on several lines
    text = (DOCS / "troubles.md").read_text(encoding="utf-8")
    for message in re.findall(r"^### `(.+)`$", text, re.MULTILINE):
        assert message in of_strings or message in OF_THE_SYSTEM, message


def test_the_page_on_the_report_lists_every_table():
    from kbench.report.tables import table_names

    rows = (ROOT / "docs" / "report.md").read_text(encoding="utf-8").split("## Tables")[1]
    listed = re.findall(r"^\| (`.*?`) \|", rows.split("###")[0], re.MULTILINE)
    assert set(re.findall(r"`(.*?)`", " ".join(listed))) == table_names().keys()


def toctree(page="index"):
    """Return the pages that a page lists, and those that its pages list."""
    path = DOCS / f"{page}.md"
    listed = []
    regions = FencedCodeBlockLexer("{toctree}")(Document.parse(str(path))) if path.exists() else ()
    for region in regions:
        for line in region.lexemes["source"].splitlines():
            if line and not line.startswith(":"):
                name = (path.parent / line).relative_to(DOCS).as_posix()
                listed += [name, *toctree(name)]
    return listed


def heading_of(name):
    """Return the first heading of a page, which may be that of the file it includes."""
    markdown = DOCS / f"{name}.md"
    if not markdown.exists():
        return (DOCS / f"{name}.rst").read_text(encoding="utf-8").splitlines()[0]
    text = markdown.read_text(encoding="utf-8")
    included = re.match(r"```\{include\} (\S+)", text)
    if included:
        text = (markdown.parent / included[1]).read_text(encoding="utf-8")
    return re.search(r"^# (.+)$", text, re.MULTILINE)[1]


def test_every_page_is_in_the_toctree_under_a_name_of_its_own():
    listed = toctree()
    pages = {name_of(page) for page in PAGES if page.is_relative_to(DOCS)}
    pages |= {f"reference/{page.stem}" for page in (DOCS / "reference").glob("*.rst")}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages - {"index"}
    assert not WRITTEN_BY_SPHINX & set(listed)


@pytest.mark.slow
def test_the_built_site_has_every_page_under_its_heading(tmp_path):
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*build, "-d", tmp_path / "doctrees", ROOT / "docs", tmp_path / "site"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for name in toctree():
        built = (tmp_path / "site" / f"{name}.html").read_text(encoding="utf-8")
        headings = re.findall(r"<h1>(.*?)<a ", built)
        assert [html.unescape(re.sub(r"<.*?>", "", h)) for h in headings] == [heading_of(name)]


def test_pages_are_short():
    for page in PAGES:
        if page.name not in LONG:
            assert len(page.read_text(encoding="utf-8").split()) <= MAX_WORDS, page.name
