"""Find words of a private dialect, and long sentences, in what users read.

`python tests/support/words.py FILE...` prints what it finds in these files, or in all of them;
``--count`` prints how often each word is found. The words are in ``lexicon.toml``.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

PRODUCT = ("kbench", "plugins", "suites", "dashboards")
KINDS = ("help", "message", "docs", "docstring", "suite", "page")

DEVELOPMENT = {
    "docs/architecture.md",
    "docs/contributing.md",
    "docs/features.md",
    "docs/write_a_feature.md",
}
"""Pages for developers, whose sentences may be long; all pages in ``docs/development`` too."""

MAX_WORDS = 35


@dataclass(frozen=True)
class Text:
    """A piece of prose: code in it is replaced by signs of the same length."""

    kind: str
    file: str
    line: int
    prose: str


@dataclass(frozen=True)
class Finding:
    """A word that the lexicon has, or a long sentence."""

    file: str
    line: int
    found: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.found!r}: {self.remedy}"


@dataclass(frozen=True)
class Word:
    """An entry of the lexicon."""

    pattern: re.Pattern[str]
    use: str
    kinds: tuple[str, ...]
    allowed: tuple[re.Pattern[str], ...]
    files: tuple[str, ...]

    def find(self, text: Text) -> Iterator[Finding]:
        if text.kind not in self.kinds or text.file in self.files:
            return
        prose = text.prose.lower()
        matches = list(_whole(self.pattern, prose))
        allowed = [hit for one in self.allowed for hit in _whole(one, prose)] if matches else []
        for match in matches:
            if not any(hit.start() < match.end() and match.start() < hit.end() for hit in allowed):
                line = text.line + text.prose.count("\n", 0, match.start())
                yield Finding(text.file, line, " ".join(match[0].split()), f"write {self.use}")


@cache
def read_lexicon() -> tuple[tuple[Word, ...], tuple[str, ...]]:
    """Return the words, and the beginnings of sentences that may be long."""
    table = tomllib.loads((HERE / "lexicon.toml").read_text())
    words = tuple(
        Word(
            _compile(entry["word"]),
            entry["use"],
            tuple(entry.get("kinds", KINDS)),
            tuple(map(_compile, entry.get("except", ()))),
            tuple(entry.get("files", ())),
        )
        for entry in table["entry"]
    )
    return words, tuple(entry["start"] for entry in table.get("long", ()))


def _compile(pattern: str) -> re.Pattern[str]:
    # lower case, and no look behind: a search for first letters is several times faster
    lower = re.sub(r"\\.|[A-Z]", lambda m: m[0] if m[0][0] == "\\" else m[0].lower(), pattern)
    return re.compile(rf"(?:{lower})(?![\w-])".replace(" ", r"\s+"))


def _whole(pattern: re.Pattern[str], prose: str) -> Iterator[re.Match[str]]:
    for match in pattern.finditer(prose):
        if not re.match(r"[\w-]", prose[max(match.start() - 1, 0) : match.start()]):
            yield match


def find_words(text: Text) -> list[Finding]:
    """Return the findings of one text."""
    words, long = read_lexicon()
    findings = [finding for word in words for finding in word.find(text)]
    if text.kind == "docs" and text.file not in DEVELOPMENT:
        findings += _find_long(text, long)
    return sorted(findings, key=lambda finding: finding.line)


def _find_long(text: Text, listed: tuple[str, ...]) -> Iterator[Finding]:
    for block in re.finditer(r"(?:(?!\n\s*(?:\n|[-*+] |\d+\. |\||#|:|$)).)+", text.prose, re.S):
        pieces = block[0].split("|") if block[0].lstrip().startswith("|") else [block[0]]
        for sentence in (s for piece in pieces for s in re.split(r"(?<=[.!?:;])[*_)]*\s", piece)):
            n = len(re.findall(r"[^\W_][\w'’.,^-]*|`[^`]*`", sentence))
            if n > MAX_WORDS and not " ".join(sentence.split()).startswith(listed or ("\0",)):
                start = block.start() + block[0].index(sentence)
                line = text.line + text.prose.count("\n", 0, start) + sentence[:1].count("\n")
                start_words = " ".join(sentence.split()[:6])
                yield Finding(
                    text.file, line, f"{start_words} ...", f"{n} words: split the sentence"
                )


def collect_texts(files: list[str] | None = None) -> Iterator[Text]:
    """Yield what users read: of these files, or of all."""
    wanted = None if files is None else {str(Path(f).resolve()) for f in files}
    for path in sorted([ROOT / "README.md", *_pages(), *_product()]):
        if wanted is None or str(path) in wanted:
            yield from _of_file(path)
    if wanted is None:
        yield from _help()


def _pages() -> Iterator[Path]:
    return (path for path in (ROOT / "docs").rglob("*") if path.suffix in (".md", ".py", ".rst"))


def _product() -> Iterator[Path]:
    for folder in PRODUCT:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".toml", ".j2", ".js", ".tmpl", ".json"):
                yield path


def _of_file(path: Path) -> Iterator[Text]:
    file, content = path.relative_to(ROOT).as_posix(), path.read_text()
    if path.suffix in (".md", ".rst"):
        yield Text("docs", file, 1, hide_code(content))
    elif path.suffix == ".py":
        yield from texts_of_python(file, content)
    elif path.suffix == ".toml":
        kind = "suite" if file.startswith("suites/") else "message"
        for match in re.finditer(r'"""(.*?)"""|"([^"\n]*)"|#([^\n]*)', content, re.S):
            value = next(filter(None, match.groups()), "")
            if _is_prose(value):
                yield Text(kind, file, 1 + content.count("\n", 0, match.start()), value)
    elif path.suffix in (".js", ".json"):
        for match in re.finditer(r'"([^"\n]*)"|`([^`]*)`', content):
            if _is_prose(match[1] or match[2] or ""):
                line = 1 + content.count("\n", 0, match.start())
                yield Text("page", file, line, match[1] or match[2])
    else:
        hidden = re.sub(
            r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<!--.*?-->|<[^<>]*>", _blank, content, flags=re.S
        )
        yield Text("page", file, 1, hide_code(hidden))


def texts_of_python(file: str, content: str) -> Iterator[Text]:
    """Yield docstrings of public names, and the strings that are sentences."""
    nodes: list[tuple[ast.AST, bool]] = [(ast.parse(content), True)]
    while nodes:
        node, public = nodes.pop()
        kind, prose = "message", None
        children: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            children = ()
        elif isinstance(node, ast.Constant):
            prose = node.value if isinstance(node.value, str) and _is_prose(node.value) else None
        elif isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else "@" for v in node.values)
            joined = "".join(map(str, parts))
            prose = joined if _is_prose(joined) else None
            children = (v for v in node.values if not isinstance(v, ast.Constant))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            public = public and not re.match(r"_(?!_)", getattr(node, "name", ""))
            kind, prose = "docstring", ast.get_docstring(node, clean=False) if public else None
            for name, line, below in _attributes(node) if public else ():
                if not name.startswith("_"):
                    yield Text(kind, file, line, hide_code(below))
        if prose:
            line = node.body[0].lineno if kind == "docstring" else node.lineno
            yield Text(kind, file, line, hide_code(prose))
        nodes += [(child, public) for child in children]


def _attributes(node: ast.AST) -> Iterator[tuple[str, int, str]]:
    """Yield the names that a module or a class assigns, with the docstrings below them."""
    body = node.body if isinstance(node, ast.Module | ast.ClassDef) else []
    for assigned, below in itertools.pairwise(body):
        match assigned, below:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(
                target=ast.Name(id=name)
            ), (ast.Expr(value=ast.Constant(value=str(text)))):
                yield name, below.lineno, text


def _is_prose(value: str) -> bool:
    if re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|WITH|DROP|ALTER)\b", value):
        return False
    return len(re.findall(r"(?<![\w.-])[A-Za-z][a-z]+(?![\w(=-])", value)) >= 2 and " " in value


def hide_code(prose: str) -> str:
    """Replace code, links, tests and names of options by signs, which keep every line."""
    prose = re.sub(
        r"^( *)(```+|~~~+)(?!\{(?:note|tip|warning)).*?^\1\2", _blank, prose, flags=re.S | re.M
    )
    prose = re.sub(r"<!--.*?-->", _blank, prose, flags=re.S)
    prose = re.sub(r"^ *(>>>|\.\.\. )[^\n]*(\n *[^\s>][^\n]*)*", _blank, prose, flags=re.M)
    prose = re.sub(r"::[ ]*\n\s*\n(( +)[^\n]*\n?(\2[^\n]*\n?|\s*\n)*)", _blank, prose)
    prose = re.sub(r"(`+)[^`]+?\1", lambda m: re.sub(r"[^`\n]", "x", m[0]), prose, flags=re.S)
    prose = re.sub(r"\]\([^)\s]*\)", lambda m: "]" + " " * (len(m[0]) - 1), prose)
    return re.sub(r"https?://\S+", lambda m: "x" * len(m[0]), prose)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _help() -> Iterator[Text]:
    from tests.support.command_lines import all_commands

    for words, found in all_commands():
        name = f"kbench {words} --help"
        yield Text("help", name, 0, hide_code(found.help or ""))
        for parameter in found.params:
            yield Text("help", name, 0, hide_code(getattr(parameter, "help", None) or ""))
        for pair in getattr(found, "examples", ()):
            yield Text("help", name, 0, pair[0])


def main(arguments: list[str]) -> None:
    sys.path.insert(0, str(ROOT))
    files = [name for name in arguments if not name.startswith("--")]
    findings = [f for text in collect_texts(files or None) for f in find_words(text)]
    if "--count" in arguments:
        for (found, remedy), n in Counter(
            (f.found.lower(), f.remedy) for f in findings
        ).most_common():
            print(n, found, "->", remedy)
    else:
        print(*findings, sep="\n")
    print(len(findings), "found", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
