"""What records name and declare: callables are in keys, and all else in manifests."""

import sys
from functools import partial
from importlib import import_module
from importlib.resources import files

import pytest

from kbench import DatasetSource, FeatureMap, KernelSpec, Learner, Ref
from kbench.errors import PluginError
from kbench.planning.cells import cells
from kbench.planning.current_state import Present, variable
from kbench.planning.methods import list_components, list_dependencies
from kbench.planning.planner import Planner
from kbench.planning.suite_file import read
from kbench.records import DatasetFacts, Manifest
from kbench.registry.installed import HOST
from kbench.registry.registry import build
from tests.planning.test_planner import NoCache


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A plugin in a package of its own, with a shared library beside it and a file in it."""
    files = {
        "lab_plugin/__init__.py": "import lab_shared\n",
        "lab_plugin/_map.py": "class Map:\n    a = 1\n\n\ndef f(): pass\n",
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
def lab_registry(lab, plugin_of):
    """Return a registry whose components' records are changed."""

    def registry_of(one=None, learner=None, kernel=None, data=None):
        def given(changes, field="make"):
            return {field: "lab_plugin._map:Map", **(changes or {})}

        plugin = plugin_of(
            "lab_plugin",
            kbench_feature_maps=[FeatureMap("one", **given(one))],
            kbench_learners=[Learner("learner", **given(learner, "classifier"))],
            kbench_kernels=[KernelSpec("k", **given(kernel))],
            kbench_datasets=[
                DatasetSource("data", **{"load": "lab_plugin._map:f", **(data or {})})
            ],
        )
        registry = build([plugin])
        assert not registry.plugins[0].reason, registry.plugins[0].reason
        return registry

    return registry_of


@pytest.fixture
def lab_key(lab_registry):
    """Return the key of a cell whose components' records are changed, and that of its data."""

    def key(**changes):
        registry = lab_registry(**changes)
        planner = Planner(registry, NoCache())
        (cell,) = cells(read(LAB, "s", registry), registry)
        return planner.cell_key(cell, DatasetFacts("c" * 64)), planner.origin(Ref("data"))[2]

    return key


SIDES = ["one", "learner", "kernel", "data"]
KINDS = {"one": "feature map", "learner": "learner", "kernel": "kernel", "data": "dataset"}


@pytest.fixture
def needed(lab_registry):
    """Return what a task with one component, whose record is changed, needs."""

    def of(side, **changes):
        name = "k" if side == "kernel" else side
        return list_dependencies([(KINDS[side], name)], lab_registry(**{side: changes}))

    return of


def now(needed):
    """Return the manifest of all that is needed, as it is now."""
    present = Present()
    return Manifest(
        {name: present.module(name) for name in needed.modules},
        {name: present.file(name) for name in needed.files},
        {name: variable(name) for name in needed.variables},
    )


def why(manifest):
    return list(Present().why_changed(manifest))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    "declared", ["lab_plugin:data/weights.bin", "absolute", "path", "traversable", "module"]
)
def test_a_file_that_a_component_declares_counts(lab, lab_key, needed, side, declared):
    weights = lab / "lab_plugin" / "data" / "weights.bin"
    entry = {
        "absolute": str(weights),
        "path": weights,
        "traversable": files("lab_plugin") / "data" / "weights.bin",
        "module": "lab_shared:lab_plugin/data/weights.bin",  # beside the module
    }.get(declared, declared)
    before = now(needed(side, depends=[entry]))
    (name,) = before.files
    assert why(before) == []
    weights.write_text("v")
    assert why(before) == [f"the file {name} changed"]
    weights.write_text("w")
    assert why(before) == []
    # the key has no code and no files
    assert lab_key(**{side: {"depends": [entry]}}) == lab_key()


def test_a_file_in_a_package_has_one_name_wherever_the_package_is_installed(lab, needed):
    weights = lab / "lab_plugin" / "data" / "weights.bin"
    entries = [
        "lab_plugin:data/weights.bin",
        weights,
        str(weights),
        files("lab_plugin") / "data/weights.bin",
    ]
    assert {name for entry in entries for name in needed("one", depends=[entry]).files} == {
        "lab_plugin:data/weights.bin"
    }


@pytest.mark.parametrize("side", SIDES)
def test_a_module_that_a_component_declares_counts(lab, lab_key, needed, side):
    before = now(needed(side, depends=["lab_unused"]))
    assert why(before) == []
    (lab / "lab_unused.py").write_text("a = 2\n")
    assert why(before) == ["lab_unused.py changed"]
    assert lab_key(**{side: {"depends": ["lab_unused"]}}) == lab_key()


@pytest.mark.parametrize("side", SIDES)
def test_a_variable_that_a_component_reads_counts(monkeypatch, lab_key, needed, side):
    monkeypatch.delenv("LAB_VARIABLE", raising=False)
    before = now(needed(side, env_vars=["LAB_VARIABLE"]))
    for value in ("", "one", "two", "\udcff"):
        monkeypatch.setenv("LAB_VARIABLE", value)
        assert why(before) == ["the environment variable LAB_VARIABLE has another value"]
        before = now(needed(side, env_vars=["LAB_VARIABLE"]))
        assert why(before) == []
    assert lab_key(**{side: {"env_vars": ["LAB_VARIABLE"]}}) == lab_key()


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


def test_what_a_nested_map_declares_counts(lab_registry):
    text = LAB.replace('kernel = { name = "k" }', 'inner = { name = "one" }')
    registry = lab_registry(one={"depends": ["lab_unused"]})
    (cell,) = cells(read(text, "s", registry), registry)
    reached = registry.list_reached(*list_components(cell, registry))
    assert ("feature map", "one") in reached
    assert "lab_unused" in list_dependencies(reached, registry).modules


def test_arguments_of_a_partial_are_in_the_keys(lab, lab_key, needed):
    from lab_plugin._map import Map

    before = lab_key(one={"make": partial(Map, kind=1)})
    assert lab_key(one={"make": partial(Map, kind=1)}) == before
    after = lab_key(one={"make": partial(Map, kind=2)})
    assert [one != other for one, other in zip(before, after, strict=True)] == [True, False]
    assert "lab_plugin._map" in needed("one", make=partial(Map, kind=1)).modules


@pytest.mark.parametrize("side", SIDES)
def test_which_callable_a_component_names_is_in_the_keys(lab_key, side):
    field = {"data": "load", "learner": "classifier"}.get(side, "make")
    before, after = lab_key(), lab_key(**{side: {field: "lab_shared:preset"}})
    changed = [one != other for one, other in zip(before, after, strict=True)]
    assert changed == [side != "data", side == "data"]


def test_what_has_no_name_needs_the_module_of_its_plugin(lab, needed):
    """The library has the code of the lambda, the plugin the argument."""
    from lab_shared import preset

    assert needed("one", make=preset("a")).modules == {"lab_shared", "lab_plugin"}


def test_built_in_components_need_the_modules_that_define_them(lab_registry, plugin_of):
    records = [FeatureMap("one", make="lab_plugin._map:Map")]
    foreign, own = (
        build([plugin_of("lab_plugin", distribution, kbench_feature_maps=records)])
        for distribution in ("my-dist", HOST)
    )
    named = [("feature map", "one")]
    # another plugin may register and patch when it is imported
    assert list_dependencies(named, foreign).modules == {"lab_plugin._map", "lab_plugin"}
    assert list_dependencies(named, own).modules == {"lab_plugin._map"}


def test_a_name_that_a_package_exports_lazily_needs_its_module(lab, needed):
    (lab / "lab_plugin" / "__init__.py").write_text(
        "import lazy_loader\n"
        "__getattr__, *_ = lazy_loader.attach(__name__, submod_attrs={'_map': ['Map']})\n"
    )
    for make in ("lab_plugin:Map", partial(import_module("lab_plugin._map").Map)):
        assert "lab_plugin._map" in needed("one", make=make).modules


def test_a_preset_that_a_module_names_needs_the_module(lab, needed):
    (lab / "lab_unused.py").write_text("from functools import partial\nmap_ = partial(dict, a=1)\n")
    assert "lab_unused" in needed("one", make="lab_unused:map_").modules


def test_a_module_that_cannot_be_imported_is_an_error(lab, needed):
    with pytest.raises(PluginError, match="lab_gone"):
        needed("one", make="lab_gone:Map")
