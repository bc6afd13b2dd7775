"""Mutation testing of the code that decides numbers: 300 seeded mutants, an hour of one core.

    pip install cosmic-ray
    python tests/benchmarks/mutants.py --out mutants.jsonl

A mutant is a copy of kbench with one change. It is killed where a test of its room fails or
takes too long; a survivor is a test that is missing, or changes nothing. `MUTANTS.md` has the
last counts and the survivors that change nothing.

The operators are those of cosmic-ray and three more: a statement, an argument or a call is
removed. A place of the source counts once, however many operators change it. Annotations are
not changed: nothing reads them. The working tree is copied first and never changed. Each
mutant is tested in a fork of a process that has imported numpy and scikit-learn.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import functools
import importlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

ROOT = Path(__file__).parents[2]
IMPORTED_FROM = (".", "plugins", "suites", "dashboards")

ROOMS = {
    "kbench/evaluation": ("tests/evaluation", "kbench/evaluation"),
    "kbench/results/stats": (
        "tests/results/test_stats.py",
        "tests/results/test_fronts.py",
        "tests/results/test_certain_places.py",
        "tests/plugins/kbench_compare/test_comparison.py",
        "kbench/results/stats",
    ),
    "kbench/planning/digests.py": ("tests/planning/test_syntax.py", "kbench/planning/digests.py"),
    "kbench/storage/journal.py": ("tests/storage/test_journal.py", "kbench/storage/journal.py"),
}
"""Modules or packages that are mutated, each with the tests that must notice."""

KEPT_CALLS = re.compile(r"(bool|float|int|list|str|tuple|len|[A-Z]\w*)$")
"""Calls that are not removed: their argument is as good, or nothing runs without them."""

SHARED = ("datasets", "dummy", "kernel_approximation", "linear_model", "model_selection", "svm")
"""Modules of scikit-learn that are imported once, for all forks."""

Position = tuple[int, int]


@dataclass(frozen=True)
class Mutant:
    """One change of one file: an operator, and the number of the place that it changes."""

    path: str
    line: int
    operator: str
    occurrence: int


@functools.cache
def operators() -> dict[str, Any]:
    """Return all operators by name, or end with a message where cosmic-ray is missing."""
    try:
        from cosmic_ray.operators.operator import Operator
        from cosmic_ray.plugins import get_operator, operator_names
    except ImportError:
        sys.exit("cosmic-ray is not installed; run: pip install cosmic-ray")
    from parso.python.tree import Name

    class RemoveStatement(Operator):
        """Replace a statement by ``pass``, and what is returned by None.

        The first assignment of a name is left: without it the name is not defined.
        """

        def mutation_positions(self, node: Any) -> Iterator[tuple[Position, Position]]:
            if node.parent is None or node.parent.type != "simple_stmt":
                return
            if node.type in ("atom_expr", "return_stmt") or (
                node.type == "expr_stmt" and not self._is_first(node)
            ):
                yield node.start_pos, node.end_pos

        def mutate(self, node: Any, index: int) -> Any:
            text = "return None" if node.type == "return_stmt" else "pass"
            return Name(text, node.start_pos, node.get_first_leaf().prefix)

        def _is_first(self, node: Any) -> bool:
            function = node.search_ancestor("funcdef")
            if node.children[0].type != "name" or function is None:
                return node.children[0].type == "name"
            before = function.get_code().splitlines()[: node.start_pos[0] - function.start_pos[0]]
            return not re.search(rf"\b{node.children[0].value}\b", "\n".join(before))

        @classmethod
        def examples(cls) -> tuple[()]:
            return ()

    class RemoveArgument(Operator):
        """Remove a keyword argument of a call."""

        def mutation_positions(self, node: Any) -> Iterator[tuple[Position, Position]]:
            for child in self._arguments(node):
                yield child.start_pos, child.end_pos

        def mutate(self, node: Any, index: int) -> Any:
            child = self._arguments(node)[index]
            at = node.children.index(child)
            following = node.type == "arglist" and at + 1 < len(node.children)
            del node.children[at : at + 1 + following]
            return node

        def _arguments(self, node: Any) -> list[Any]:
            if node.type not in ("arglist", "trailer"):
                return []
            return [child for child in node.children if child.type == "argument"]

        @classmethod
        def examples(cls) -> tuple[()]:
            return ()

    class RemoveCall(Operator):
        """Replace a call with one argument by the argument."""

        def mutation_positions(self, node: Any) -> Iterator[tuple[Position, Position]]:
            if node.type != "atom_expr" or node.children[-1].type != "trailer":
                return
            trailer = node.children[-1].children
            called = "".join(child.get_code() for child in node.children[:-1]).strip()
            is_call = trailer[0].value == "(" and len(trailer) == 3
            one = is_call and trailer[1].type not in ("arglist", "argument")
            if one and not KEPT_CALLS.match(called):
                yield node.start_pos, node.end_pos

        def mutate(self, node: Any, index: int) -> Any:
            argument = node.children[-1].children[1].get_code()
            return Name(f"({argument})", node.start_pos, node.get_first_leaf().prefix)

        @classmethod
        def examples(cls) -> tuple[()]:
            return ()

    theirs = {name: get_operator(name) for name in operator_names()}
    plain = {name: made() for name, made in theirs.items() if not made.arguments()}
    return plain | {made.__name__: made() for made in (RemoveStatement, RemoveArgument, RemoveCall)}


def places(path: str) -> dict[tuple[Position, Position], list[Mutant]]:
    """Return all mutants of a file by the place that they change."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path

    tree = get_ast_from_path(ROOT / path)
    nodes = list(ast_nodes(tree))
    annotations = [span for node in nodes for span in _annotations(node)]
    found: dict[tuple[Position, Position], list[Mutant]] = {}
    for name, operator in operators().items():
        spans = (span for node in nodes for span in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(spans):
            if not any(first <= start < last for first, last in annotations):
                mutant = Mutant(path, start[0], name, occurrence)
                found.setdefault((start, end), []).append(mutant)
    return found


def _annotations(node: Any) -> Iterator[tuple[Position, Position]]:
    children = getattr(node, "children", [])
    at = {"tfpdef": 2, "annassign": 1}.get(node.type)
    if node.type == "funcdef" and children[3].type == "operator" and children[3].value == "->":
        at = 4
    if at is not None:
        yield children[at].start_pos, children[at].end_pos


def drawn(number: int, seed: int) -> list[Mutant]:
    """Draw mutants of different places, in the order of the files."""
    paths = sorted(
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in ([ROOT / room] if room.endswith(".py") else (ROOT / room).rglob("*.py"))
    )
    choices = [mutants for path in paths for _, mutants in sorted(places(path).items())]
    rng = random.Random(seed)
    mutants: list[Mutant] = []
    for choice in rng.sample(choices, len(choices)):
        options = (each for each in rng.sample(choice, len(choice)) if _is_valid(each))
        mutants += itertools.islice(options, 1)
        if len(mutants) == number:
            break
    mutants.sort(key=lambda mutant: (mutant.path, mutant.line))
    print(f"{len(choices)} places in {len(paths)} files, {len(mutants)} drawn", flush=True)
    return mutants


def _is_valid(mutant: Mutant) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            source, code = changed(mutant)
            compile(code, mutant.path, "exec")
        except SyntaxError:
            return False
    return code != source


def changed(mutant: Mutant) -> tuple[str, str]:
    """Return the source of a mutant's file and that of the mutant."""
    from cosmic_ray.mutating import mutate_code

    source = (ROOT / mutant.path).read_text()
    return source, mutate_code(source, operators()[mutant.operator], mutant.occurrence)


def room_of(path: str) -> str:
    """Return the key of `ROOMS` that a file belongs to."""
    return next(room for room in ROOMS if path.startswith(room))


def tests_of(path: str, tree: Path) -> list[list[str]]:
    """Return the tests of a file in the order to run them: those that bear its name, then all."""
    tests = ROOMS[room_of(path)]
    names = {f"test_{part.removesuffix('.py')}.py" for part in Path(path).parts}
    own = sorted(
        str(found.relative_to(tree))
        for test in tests
        for found in (tree / test).rglob("test_*.py")
        if found.name in names
    )
    return [own, [*tests]] if own else [[*tests]]


def run_tests(tree: Path, tests: list[str], limit_s: float) -> str:
    """Run tests of a tree in a fork: "survived", "killed" or "timed out"."""
    pid = os.fork()
    if not pid:
        os.setsid()
        os.chdir(tree)
        sink = os.open(tree / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        folders = [str(tree / folder) for folder in IMPORTED_FROM]
        sys.path[:0] = folders
        os.environ["PYTHONPATH"] = os.pathsep.join(folders)
        import pytest

        options = ["-x", "-n0", "-pno:cacheprovider", "--hypothesis-profile=mutants"]
        os._exit(int(pytest.main([*options, f"--basetemp={tree / 'scratch'}", *tests])))
    deadline = time.monotonic() + limit_s
    status = None
    while status is None and time.monotonic() < deadline:
        time.sleep(0.02)
        done, code = os.waitpid(pid, os.WNOHANG)
        status = code if done else None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if status is None:
        os.waitpid(pid, 0)
        return "timed out"
    return "killed" if status else "survived"


def limits_of(tree: Path, rooms: Iterable[str]) -> dict[str, float]:
    """Run the tests of rooms unchanged, and return the seconds that a mutant's tests may take."""
    limits = {}
    for room in rooms:
        start = time.monotonic()
        if run_tests(tree, list(ROOMS[room]), 600) != "survived":
            sys.exit(f"{room}, unchanged:\n" + (tree / "output.txt").read_text())
        limits[room] = 10 + 3 * (time.monotonic() - start)
        print(f"{room}: limit {limits[room]:.0f} s", flush=True)
    return limits


def tested(mutant: Mutant, tree: Path, limit_s: float) -> dict[str, Any]:
    """Test a mutant in a tree, and return what is kept of it."""
    source, code = changed(mutant)
    start = time.monotonic()
    (tree / mutant.path).write_text(code)
    outcomes = (run_tests(tree, tests, limit_s) for tests in tests_of(mutant.path, tree))
    outcome = next((each for each in outcomes if each != "survived"), "survived")
    (tree / mutant.path).write_text(source)
    diff = [
        line
        for line in difflib.unified_diff(source.splitlines(), code.splitlines(), n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    took = round(time.monotonic() - start, 1)
    return asdict(mutant) | {"outcome": outcome, "seconds": took, "diff": diff}


def survivors(path: Path) -> list[Mutant]:
    """Return the mutants that survived in an earlier run, given its ``--out``."""
    lines = map(json.loads, path.read_text().splitlines())
    fields = Mutant.__dataclass_fields__
    return [
        Mutant(**{name: line[name] for name in fields})
        for line in lines
        if line["outcome"] == "survived"
    ]


def share_imports() -> None:
    """Import what all forks need, and register the profile of hypothesis that they use."""
    import hypothesis

    for name in ("pytest", "pandas", "scipy.stats", *(f"sklearn.{part}" for part in SHARED)):
        importlib.import_module(name)
    # a failure is enough: the smallest example takes longer
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "mutants", deadline=None, derandomize=True, database=None, phases=phases
    )


def main() -> None:
    """Draw mutants, test them, and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=300, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="test those whose path contains this text")
    parser.add_argument("--again", type=Path, help="test the survivors of an earlier --out")
    parser.add_argument("--out", type=Path, required=True, help="one JSON object per mutant")
    args = parser.parse_args()
    operators()
    mutants = survivors(args.again) if args.again else drawn(args.number, args.seed)
    mutants = [mutant for mutant in mutants if args.only in mutant.path]
    share_imports()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, args.out.open("w") as out:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        limits = limits_of(tree, dict.fromkeys(room_of(mutant.path) for mutant in mutants))
        # a mutant may have the size and the second of the file before it
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        for number, mutant in enumerate(mutants, start=1):
            line = tested(mutant, tree, limits[room_of(mutant.path)])
            out.write(json.dumps(line) + "\n")
            out.flush()
            counts[line["outcome"]] += 1
            where = f"{mutant.path}:{mutant.line}"
            print(f"{number}/{len(mutants)} {line['outcome']} {where}", flush=True)
            if line["outcome"] == "survived":
                print("\n".join(line["diff"]), flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
