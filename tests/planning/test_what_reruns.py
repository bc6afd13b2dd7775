"""Which cells an edit of kbench's or a built-in plugin's code computes again."""

import ast
import shutil

import pytest

from kbench.planning.cells import cells
from kbench.planning.planner import Planner
from kbench.planning.suite_file import read
from kbench.records import DatasetFacts
from kbench.registry.installed import installed
from kbench.registry.registry import build
from kbench.registry.source import source_of
from tests.planning.test_planner import NoCache

SUITE = """
[[block]]
datasets = ["iris"]
feature_maps = ["rff", "nbcs"]
learners = ["linear-svm", "ridge", "winnow"]

[[block]]
datasets = ["iris"]
feature_maps = ["identity"]
learners = [{ name = "kernel-svm", kernel = { name = "gaussian" } }]
"""
EVERY = {
    *(f"{map_} + {learner}" for map_ in ("rff", "nbcs") for learner in ("linear-svm", "ridge")),
    *("rff + winnow", "nbcs + winnow", "identity + kernel-svm"),
}


@pytest.fixture(scope="module")
def builtin():
    return build(installed())


@pytest.fixture(scope="module")
def suite(builtin):
    return cells(read(SUITE, "s", builtin), builtin)


@pytest.fixture
def code(tmp_path, builtin):
    """Copy the sources of kbench and of its plugins."""
    for package in Planner(builtin, NoCache()).packages:
        shutil.copytree(
            source_of(package, {}).parent,
            tmp_path / package,
            ignore=lambda folder, names: [n for n in names if n == "__pycache__"],
        )
    return tmp_path


@pytest.fixture
def planner_of(code, builtin, suite):
    """Make planners of what the copy says now, which have planned the suite."""

    def make():
        planner = Planner(builtin, NoCache())
        for package in planner.packages:
            planner._fingerprint._sources[package] = code / package / "__init__.py"
        data = DatasetFacts("c" * 64)
        keys = {
            f"{cell.feature_map.name} + {cell.learner.name}": planner.cell_key(cell, data)
            for cell in suite
        }
        return planner, keys

    return make


def file_of(code, module):
    path = code.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def described_otherwise(source):
    """Rewrite a source with other docstrings, comments and formatting."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if is_text(node):
            node.value.value += " Edited."
        elif (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is None
        ):
            node.body.insert(0, ast.Expr(ast.Constant("Now it is described.")))
    lines = ast.unparse(ast.fix_missing_locations(tree)).splitlines()
    return "# The same code.\n\n" + "\n".join(lines) + "\n\n\n# The end.\n"


def with_another_constant(source):
    """Rewrite a source with one of its numbers or strings changed, or one more."""
    tree = ast.parse(source)
    texts = {id(node.value) for node in ast.walk(tree) if is_text(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in texts:
            if isinstance(node.value, str):
                node.value += "x"
                return ast.unparse(tree)
            if type(node.value) in (int, float):
                node.value += 1
                return ast.unparse(tree)
    return source + "\nADDED = 1\n"


def edit_constant(code, module):
    path = file_of(code, module)
    path.write_text(with_another_constant(path.read_text("utf-8")), "utf-8")


def modules_in(planner):
    """List the modules of kbench and its plugins on which the planned cells depend."""
    return planner._fingerprint.reached(planner.dependencies.modules)


def test_describing_every_module_otherwise_computes_nothing_again(code, planner_of):
    planner, before = planner_of()
    assert before.keys() == EVERY
    modules = modules_in(planner)
    assert {
        *("kbench.evaluation.splits", "kbench.kernels.distances", "kbench_nbcs._map"),
        *("kbench_baselines._fourier", "kbench_learners._winnow_compiled"),
    } < set(modules)
    for module in modules:
        path = file_of(code, module)
        source = path.read_text("utf-8")
        edited = described_otherwise(source)
        assert ast.dump(ast.parse(edited)) != ast.dump(ast.parse(source))
        path.write_text(edited, "utf-8")
    planner, after = planner_of()
    assert modules_in(planner) == modules
    assert after == before


def test_a_constant_of_every_module_counts(code, planner_of):
    planner, _ = planner_of()
    before = planner._fingerprint.parts(planner.dependencies.modules)
    for module in modules_in(planner):
        edit_constant(code, module)
    planner, _ = planner_of()
    after = planner._fingerprint.parts(planner.dependencies.modules)
    same = {name for name in before if before[name] == after.get(name)}
    assert same == {"numpy", "scipy", "scikit-learn", "numba", "python"} & before.keys()


@pytest.mark.parametrize(
    ("module", "affected"),
    [
        ("kbench.evaluation.splits", EVERY),
        ("kbench.evaluation.search._halving", EVERY),
        ("kbench_nbcs._descent", {name for name in EVERY if "nbcs" in name}),
        ("kbench_baselines._frequencies", {name for name in EVERY if "rff" in name}),
        ("kbench_learners._newton", {n for n in EVERY if "linear-svm" in n or "ridge" in n}),
        # which is imported in a function only
        ("kbench_learners._winnow_compiled", {name for name in EVERY if "winnow" in name}),
        # maps take the median distance from the package of kernels
        ("kbench.kernels.histograms", {n for n in EVERY if "kernel-svm" in n or "rff" in n}),
    ],
)
def test_editing_a_constant_computes_exactly_the_affected_cells_again(
    code, planner_of, module, affected
):
    _, before = planner_of()
    edit_constant(code, module)
    _, after = planner_of()
    assert {name for name in EVERY if before[name] != after[name]} == affected


def test_editing_what_decides_no_number_computes_nothing_again(code, planner_of):
    _, before = planner_of()
    for module in (
        *("kbench", "kbench._version", "kbench.errors", "kbench.hookspecs", "kbench.messages"),
        "kbench.parameters",
        *("kbench.records", "kbench.records._suite", "kbench.registry.registry"),
        *("kbench.cli.app", "kbench.runner", "kbench_nbcs._figures"),
    ):
        edit_constant(code, module)
    assert planner_of()[1] == before
