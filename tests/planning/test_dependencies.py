"""Modules, files, variables and arguments that decide a component's numbers are in its keys."""

import sys
from functools import partial
from importlib import import_module
from importlib.resources import files

import pytest

from kbench import DatasetSource, FeatureMap, KernelSpec, Learner, Ref
from kbench.errors import PluginError
from kbench.planning.cells import cells
from kbench.planning.planner import Planner
from kbench.planning.suite_file import read
from kbench.records import DatasetFacts
from kbench.registry.registry import build
from tests.planning.test_planner import NoCache


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A plugin in a package of its own, with a shared library beside it and a file in it."""
    files = {
        "lab_plugin/__init__.py": "import lab_shared\n",
        "lab_plugin/_map.py": "class Map:\n    a = 1\n",
        "lab_plugin/data/weights.bin": "w",
        "lab_shared.py": "def preset(kind):\n    return lambda **params: (kind, params)\n",
        "lab_unused.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [n for n in sys.modules if n.startswith("lab_")]:
        del sys.modules[name]


LAB = """
datasets = ["data"]
feature_maps = ["one"]
learners = [{ name = "learner", kernel = { name = "k" } }]
"""


@pytest.fixture
def lab_key(lab, plugin_of):
    """Return the key of a cell whose components' records are changed."""

    def key(one=None, learner=None, kernel=None, data=None, text=LAB):
        def given(changes):
            return {"make": "lab_plugin._map:Map", **(changes or {})}

        plugin = plugin_of(
            "lab_plugin",
            kbench_feature_maps=[FeatureMap("one", **given(one))],
            kbench_learners=[Learner("learner", **given(learner))],
            kbench_kernels=[KernelSpec("k", **given(kernel))],
            kbench_datasets=[DatasetSource("data", load="lab_plugin._map:f", **(data or {}))],
        )
        registry = build([plugin])
        assert not registry.plugins[0].reason, registry.plugins[0].reason
        planner = Planner(registry, NoCache())
        (cell,) = cells(read(text, "s", registry), registry)
        return planner.cell_key(cell, DatasetFacts("c" * 64)), planner.source_code(Ref("data"))

    return key


SIDES = ["one", "learner", "kernel", "data"]


def assert_one_differs(before, after, side):
    """Assert that the key of the cell differs, or that of the data."""
    changed = [one != other for one, other in zip(before, after, strict=True)]
    assert changed == [side != "data", side == "data"]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    "declared", ["lab_plugin:data/weights.bin", "absolute", "path", "traversable", "module"]
)
def test_a_file_that_a_component_declares_is_in_the_keys(lab, lab_key, side, declared):
    weights = lab / "lab_plugin" / "data" / "weights.bin"
    entry = {
        "absolute": str(weights),
        "path": weights,
        "traversable": files("lab_plugin") / "data" / "weights.bin",
        "module": "lab_shared:lab_plugin/data/weights.bin",  # beside the module
    }.get(declared, declared)
    none = lab_key()
    before = lab_key(**{side: {"depends": [entry]}})
    assert_one_differs(none, before, side)
    weights.write_text("v")
    assert_one_differs(before, lab_key(**{side: {"depends": [entry]}}), side)
    assert lab_key() == none
    weights.write_text("w")
    assert lab_key(**{side: {"depends": [entry]}}) == before


def test_a_file_in_a_package_has_one_name_wherever_the_package_is_installed(lab, lab_key):
    weights = lab / "lab_plugin" / "data" / "weights.bin"
    entries = [
        "lab_plugin:data/weights.bin",
        weights,
        str(weights),
        files("lab_plugin") / "data/weights.bin",
    ]
    assert len({lab_key(one={"depends": [entry]}) for entry in entries}) == 1


@pytest.mark.parametrize("side", SIDES)
def test_a_module_that_a_component_declares_is_in_the_keys(lab, lab_key, side):
    before = lab_key(**{side: {"depends": ["lab_unused"]}})
    (lab / "lab_unused.py").write_text("a = 2\n")
    assert_one_differs(before, lab_key(**{side: {"depends": ["lab_unused"]}}), side)


@pytest.mark.parametrize("side", SIDES)
def test_an_environment_variable_that_a_component_reads_is_in_the_keys(monkeypatch, lab_key, side):
    monkeypatch.delenv("LAB_VARIABLE", raising=False)
    none = lab_key()
    seen = [lab_key(**{side: {"reads_env": ["LAB_VARIABLE"]}})]
    for value in ("", "one", "two", "\udcff"):
        monkeypatch.setenv("LAB_VARIABLE", value)
        seen.append(lab_key(**{side: {"reads_env": ["LAB_VARIABLE"]}}))
        assert_one_differs(seen[-2], seen[-1], side)
    assert len(set(seen)) == 5
    assert lab_key() == none


@pytest.mark.parametrize(
    "entry", ["lab_plugin:data/gone.bin", "lab_plugin:data", "/no/such/file", "no_package:file"]
)
def test_a_declared_file_that_cannot_be_read_is_an_error_that_names_the_plugin(lab_key, entry):
    with pytest.raises(PluginError) as error:
        lab_key(one={"depends": [entry]})
    assert "the plugin 'lab_plugin'" in str(error.value)
    assert (
        f"feature map 'one' depends on the file {entry!r}, which cannot be read: /"
        in str(error.value)
        or entry == "no_package:file"
    )


def test_a_declared_module_that_is_not_found_is_an_error(lab_key):
    with pytest.raises(PluginError, match=r"there is no module 'lab_plugin\._gone'"):
        lab_key(one={"depends": ["lab_plugin._gone"]})


def test_what_a_nested_map_depends_on_is_in_the_keys(lab, lab_key):
    text = LAB.replace('kernel = { name = "k" }', 'inner = { name = "one" }')
    before = lab_key(text=text, one={"depends": ["lab_unused"]})
    (lab / "lab_unused.py").write_text("a = 3\n")
    assert lab_key(text=text, one={"depends": ["lab_unused"]}) != before


def test_arguments_of_a_partial_and_the_code_of_what_it_calls_are_in_the_keys(lab, lab_key):
    from lab_plugin._map import Map

    before = lab_key(one={"make": partial(Map, kind=1)})
    assert lab_key(one={"make": partial(Map, kind=1)}) == before
    assert_one_differs(before, lab_key(one={"make": partial(Map, kind=2)}), "one")
    (lab / "lab_plugin" / "_map.py").write_text("class Map:\n    a = 2\n")
    assert lab_key(one={"make": partial(Map, kind=1)})[0] != before[0]


def test_what_has_no_name_counts_with_the_module_of_its_plugin(lab, lab_key):
    """The library has the code of the lambda, the plugin the argument."""
    from lab_shared import preset

    named = {"make": "lab_shared:preset"}

    def keys():
        makes = ({"make": preset("a")}, named)
        return [lab_key(one=one, learner=named, kernel=named)[0] for one in makes]

    before = keys()
    (lab / "lab_plugin" / "__init__.py").write_text("import lab_shared\nKIND = 'b'\n")
    after = keys()
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, True]


def test_a_name_that_a_package_exports_lazily_counts_with_its_module(lab, lab_key):
    (lab / "lab_plugin" / "__init__.py").write_text(
        "import lazy_loader\n"
        "__getattr__, *_ = lazy_loader.attach(__name__, submod_attrs={'_map': ['Map']})\n"
    )
    named = {"make": "lab_shared:preset"}
    for make in ("lab_plugin:Map", partial(import_module("lab_plugin._map").Map)):
        (lab / "lab_plugin" / "_map.py").write_text("class Map:\n    a = 1\n")
        before = lab_key(one={"make": make}, learner=named, kernel=named)
        (lab / "lab_plugin" / "_map.py").write_text("class Map:\n    a = 2\n")
        assert lab_key(one={"make": make}, learner=named, kernel=named)[0] != before[0]


def test_a_preset_that_a_module_names_counts_with_its_arguments(lab, lab_key):
    (lab / "lab_unused.py").write_text("from functools import partial\nmap_ = partial(dict, a=1)\n")
    before = lab_key(one={"make": "lab_unused:map_"})
    (lab / "lab_unused.py").write_text("from functools import partial\nmap_ = partial(dict, a=2)\n")
    assert_one_differs(before, lab_key(one={"make": "lab_unused:map_"}), "one")
