"""The contracts of the structure: what may import what, and how large the core may be.

No limit here may be raised. Who needs a line in the core removes another one, or writes a
feature.
"""

from kbench.features import __dir__ as public_names
from tests.support import size, structure
from tests.support.paths import ROOT

LINES = 31_740
"""Lines of Python in kbench/, with docstrings; the plan has 28,000."""

RUNNER_LINES, LOOP_LINES, RUNNER_IMPORTS = 400, 250, 10
ARROWS, FLOORS = 45, 9

FILES, CODE, ALL_LINES, STATEMENTS = 394, 50_650, 80_800, 44_240
"""The whole product; `CODE` is lines without docstrings, comments and blank lines."""

ANY, DICT_ANY, PARAMETERS = 590, 57, 12

MANY_PARAMETERS = {
    "kbench/api/functions.py:run_suite",
    "plugins/kbench_files/_files.py:load_table",
    "plugins/kbench_tables/recommend/frame.py:recommend",
}
"""Functions with more, beside commands and the constructors of estimators."""


def test_the_core_knows_no_feature():
    assert structure.from_core(ROOT) == []
    assert structure.named_packages(ROOT) == []


def test_features_do_not_know_each_other():
    assert structure.between_packages(ROOT) == []


def test_every_package_has_an_owner():
    folders = [*(ROOT / "plugins").glob("kbench_*"), *(ROOT / "suites").glob("kbench_*")]
    assert {folder.name for folder in folders} <= set(structure.OWNERS)


def test_the_core_is_small():
    assert structure.lines(ROOT) <= LINES
    assert structure.lines(ROOT, "kbench/runner") <= RUNNER_LINES
    assert len((ROOT / "kbench/runner/loop.py").read_text().splitlines()) <= LOOP_LINES


def test_the_product_does_not_grow():
    now = size.measured(ROOT)
    assert now.files <= FILES
    assert now.code <= CODE
    assert now.lines <= ALL_LINES
    assert now.statements <= STATEMENTS
    assert now.any <= ANY
    assert now.dict_any <= DICT_ANY


def test_modules_of_the_core_have_their_own_names():
    assert size.same_names(ROOT / "kbench") == {}


def test_functions_have_few_parameters():
    """Commands have their options, and constructors of estimators their parameters."""
    long = set(size.long_signatures(ROOT, PARAMETERS))
    commands = {name for name in long if "/cli/" in name or "/command" in name}
    constructors = {name for name in long if name.endswith(":__init__")}
    assert long - commands - constructors <= MANY_PARAMETERS


def test_the_floor_plan_is_simple():
    relations = structure.arrows(ROOT)
    assert len(relations) <= ARROWS
    assert 0 < structure.floors(relations) <= FLOORS
    imported = {b for a, b in structure.imports(ROOT) if a.startswith("kbench.runner")}
    outside = {name for name in imported if not name.startswith("kbench.runner")}
    assert len(outside) <= RUNNER_IMPORTS


def test_a_crossing_import_is_seen(tmp_path):
    for name, text in (
        ("kbench/core.py", "def f():\n    import kbench_mlflow.reading\n"),
        ("plugins/kbench_mlflow/reading.py", "from kbench_dask import worker\n"),
        ("plugins/kbench_dask/worker.py", "NAME = 'kbench_mlflow'\n"),
        ("kbench/name.py", "NAME = 'kbench_dask.worker:f'\n"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert structure.from_core(tmp_path) == [("kbench.core", "kbench_mlflow.reading")]
    assert structure.between_packages(tmp_path) == [("kbench_mlflow.reading", "kbench_dask.worker")]
    assert structure.named_packages(tmp_path) == [("kbench.name", "kbench_dask.worker:f")]


def test_a_circle_has_no_floors():
    assert structure.floors({("a", "b"), ("b", "c")}) == 3
    assert structure.floors({("a", "b"), ("b", "a")}) == -1


def test_all_that_features_may_use_is_there():
    import kbench.features

    for name in public_names():
        assert getattr(kbench.features, name) is not None
