"""Which cells an edit of kbench's or a built-in plugin's code computes again."""

import ast
import contextlib
import shutil

import pytest

from kbench.planning.current_state import Present
from kbench.planning.suite_file import read
from kbench.registry.dependencies import find_source
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench.runner import Options, Run, execute
from kbench.storage.journal import Journal

SUITE = """
[limits]
n_splits = 1

[protocol]
inner_folds = 2
search_method = "random"
n_candidates = 2

[[block]]
datasets = [{ name = "two-moons", n_samples = 60 }]
feature_maps = ["rff", "nbcs"]
learners = ["linear-svm", "ridge"]

[[block]]
datasets = [{ name = "two-moons", n_samples = 60 }]
feature_maps = ["rff"]
learners = ["winnow"]

[[block]]
datasets = [{ name = "two-moons", n_samples = 60 }]
feature_maps = ["identity"]
learners = [{ name = "kernel-svm", kernel = { name = "gaussian" } }]

[[block]]
datasets = [{ name = "two-moons", n_samples = 60 }]
feature_maps = [{ name = "rff", label = "raced" }]
learners = ["ridge"]
protocol = { search_method = "racing" }

[[block]]
datasets = [{ name = "two-moons", n_samples = 60 }]
feature_maps = [{ name = "rff", label = "calibrated" }]
learners = ["ridge"]
protocol = { calibration = "sigmoid" }
"""
FOURIER = {*(f"rff + {each}" for each in ("linear-svm", "ridge", "winnow"))}
FOURIER |= {"raced + ridge", "calibrated + ridge"}
NBCS = {"nbcs + linear-svm", "nbcs + ridge"}
EVERY = {*FOURIER, *NBCS, "identity + kernel-svm"}


@pytest.fixture(scope="module")
def manifests(tmp_path_factory, fork_sandboxes):
    """Run the suite; return what the result of each cell was made from."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        fork_sandboxes(patch)
        patch.setenv("KBENCH_STATE_DIR", str(folder / "state"))
        patch.setenv("KBENCH_CACHE_DIR", str(folder / "cache"))
        patch.setenv("KBENCH_DISABLE_PLUGINS", "mlflow,sharing,costs,dask,leakage")
        registry = build(list_plugins())
        report = execute(Run(read(SUITE, "reruns", registry), registry, Options(jobs=1)))
        known = Journal().manifests()
    found = {}
    for cell in report.cells:
        assert cell.status == "ok", [result.error for result in cell.in_order]
        found[f"{cell.cell.feature_map.label} + {cell.cell.learner.name}"] = known[cell.manifest]
    assert found.keys() == EVERY
    return found


@pytest.fixture(scope="module")
def copied(tmp_path_factory, manifests):
    """Copy the sources of kbench and of the plugins that were used."""
    folder = tmp_path_factory.mktemp("code")
    for package in {name.partition(".")[0] for each in manifests.values() for name in each.modules}:
        if package.startswith("kbench"):
            shutil.copytree(
                find_source(package, {}).parent,
                folder / package,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
    return folder


@pytest.fixture
def edit(copied):
    """Rewrite modules of the copy until the test ends."""
    with contextlib.ExitStack() as stack:

        def rewrite(module, how):
            path = file_of(copied, module)
            source = path.read_text("utf-8")
            stack.callback(path.write_text, source, "utf-8")
            edited = how(source)
            assert ast.dump(ast.parse(edited)) != ast.dump(ast.parse(source))
            path.write_text(edited, "utf-8")

        yield rewrite


@pytest.fixture
def again(manifests, copied):
    """Return the cells that are computed again with the code of the copy."""

    def changed():
        present = present_of(copied)
        return {cell for cell, manifest in manifests.items() if present.why_changed(manifest)}

    return changed


def present_of(code):
    present = Present()
    for package in code.iterdir():
        present._sources[package.name] = package / "__init__.py"
    return present


def modules_of(manifests):
    """List the modules of kbench and its plugins on which results depend."""
    names = {name for each in manifests.values() for name in each.modules}
    return sorted(name for name in names if name.startswith("kbench"))


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


@pytest.mark.slow
def test_describing_every_module_otherwise_computes_nothing_again(manifests, edit, again):
    modules = modules_of(manifests)
    assert {
        *("kbench.evaluation.splits", "kbench.kernels.distances", "kbench_nbcs._map"),
        *("kbench_baselines._fourier", "kbench_learners._winnow"),
    } < set(modules)
    for module in modules:
        edit(module, described_otherwise)
    assert again() == set()


def test_a_constant_of_every_module_counts(manifests, copied, edit):
    for module in modules_of(manifests):
        edit(module, with_another_constant)
    present = present_of(copied)
    for manifest in manifests.values():
        now = present.refresh(manifest)
        same = {name for name, value in manifest.modules.items() if now.modules[name] == value}
        assert not {name for name in same if name.startswith("kbench")}
        assert {"numpy", "scipy", "sklearn"} <= same
        assert {"python", "numpy", "scipy", "scikit-learn"} <= manifest.distributions.keys()
        assert now.distributions == manifest.distributions


@pytest.mark.parametrize(
    ("module", "affected"),
    [
        ("kbench.evaluation.splits", EVERY),
        ("kbench.evaluation.search._racing", {"raced + ridge"}),
        ("kbench.evaluation.calibration", {"calibrated + ridge"}),
        ("kbench_nbcs._forest", NBCS),
        ("kbench_baselines._fourier", FOURIER),
        ("kbench_learners._newton", {n for n in EVERY if "linear-svm" in n or "ridge" in n}),
        ("kbench_learners._winnow", {"rff + winnow"}),
        # which fits of many rows use only
        ("kbench_learners._winnow_compiled", set()),
        # maps take the median distance from the package of kernels
        ("kbench.kernels.histograms", {*FOURIER, "identity + kernel-svm"}),
    ],
)
def test_editing_a_constant_computes_exactly_the_affected_cells_again(
    edit, again, module, affected
):
    edit(module, with_another_constant)
    assert again() == affected


def test_editing_what_decides_no_number_computes_nothing_again(edit, again):
    for module in (
        *("kbench", "kbench._version", "kbench.errors", "kbench.hookspecs", "kbench.messages"),
        "kbench.parameters",
        *("kbench.records", "kbench.records._suite", "kbench.registry.registry"),
        *("kbench.cli.app", "kbench.runner", "kbench_nbcs._figures"),
        # these start tasks and read their answers
        *("kbench.execution.recording", "kbench.planning.current_state", "kbench.storage.journal"),
    ):
        edit(module, with_another_constant)
    assert again() == set()
