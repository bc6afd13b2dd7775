import json

import pytest

from kbench.planning.fingerprint import Fingerprinter, evaluation_modules


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A plugin of five modules, one of which nothing imports."""
    root = tmp_path / "fp_plugin"
    (root / "inner").mkdir(parents=True)
    files = {
        "__init__.py": "",
        "_map.py": "from fp_plugin._helper import f\nfrom .inner import deep\n",
        "_helper.py": "import math\ndef f():\n    from fp_plugin import _lazy\n",
        "_lazy.py": "x = 1\n",
        "_unused.py": "y = 1\n",
        "_typing.py": "z = 1\n",
        "_typed.py": "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from fp_plugin import _typing\n",
        "inner/__init__.py": "",
        "inner/deep.py": "import numpy\n",
    }
    for name, text in files.items():
        (root / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return root


def of(module="fp_plugin._map"):
    return Fingerprinter(["fp_plugin"])([module])


def test_the_closure_follows_relative_and_inner_imports(package):
    assert Fingerprinter(["fp_plugin"]).reached(["fp_plugin._map"]) == [
        "fp_plugin",
        "fp_plugin._helper",
        "fp_plugin._lazy",
        "fp_plugin._map",
        "fp_plugin.inner",
        "fp_plugin.inner.deep",
    ]


def test_importing_a_module_runs_the_packages_above_it(package):
    (package / "_map.py").write_text("import fp_plugin.inner.deep\n")
    reached = Fingerprinter(["fp_plugin"]).reached(["fp_plugin._map"])
    assert reached == ["fp_plugin", "fp_plugin._map", "fp_plugin.inner", "fp_plugin.inner.deep"]


@pytest.mark.parametrize(
    "edited", ["_map.py", "_helper.py", "_lazy.py", "inner/deep.py", "__init__.py"]
)
def test_editing_a_module_or_what_it_imports_changes_the_fingerprint(package, edited):
    before = of()
    (package / edited).write_text((package / edited).read_text() + "\nedited = 1\n")
    assert of() != before


@pytest.mark.parametrize("edited", ["_map.py", "_helper.py", "_lazy.py", "__init__.py"])
def test_editing_a_docstring_or_a_comment_does_not(package, edited):
    before = of()
    path = package / edited
    path.write_text(f'"""What it is for."""\n\n{path.read_text()}\n"A string."  # A comment.\n')
    assert of() == before


def test_editing_what_it_does_not_import_does_not(package):
    before = of()
    (package / "_unused.py").write_text("y = 2\n")
    assert of() == before


def test_imports_for_type_checkers_do_not_count(package):
    assert "fp_plugin._typing" not in Fingerprinter(["fp_plugin"]).reached(["fp_plugin._typed"])


def test_nothing_is_imported(package):
    (package / "_map.py").write_text("raise RuntimeError('imported')\n")
    assert of()


def test_other_distributions_count_by_their_version(package, monkeypatch):
    before = of("fp_plugin._unused")
    (package / "_unused.py").write_text("y = 1\n")
    assert of("fp_plugin._unused") == before
    from importlib import metadata

    true_version = metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda name: "99" if name == "numpy" else true_version(name)
    )
    assert of("fp_plugin._unused") != before


def test_a_module_of_no_distribution_counts_by_its_content(package, tmp_path):
    (tmp_path / "beside_it.py").write_text("a = 1\n")
    (package / "_map.py").write_text("import beside_it\n")
    before = of()
    (tmp_path / "beside_it.py").write_text("a = 2\n")
    assert of() != before


def test_a_second_module_of_the_plugins_distribution_counts_by_its_content(package, tmp_path):
    info = tmp_path / "fp_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fp-plugin\nVersion: 1.0\n")
    (info / "RECORD").write_text("fp_plugin/__init__.py,,\nfp_second.py,,\n")
    (tmp_path / "fp_second.py").write_text("a = 1\n")
    (package / "_map.py").write_text("import fp_second\n")
    before = of()
    (tmp_path / "fp_second.py").write_text("a = 2\n")
    assert of() != before


def install(folder, name, top_level=None, record="", origin=None):
    """Write the metadata of a distribution."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"{name}-1.0.dist-info/METADATA,,\n{record}")
    if top_level:
        (info / "top_level.txt").write_text(f"{top_level}\n")
    if origin is not None:
        (info / "direct_url.json").write_text(origin)


EDITABLE = json.dumps({"url": "file:///src", "dir_info": {"editable": True}})


@pytest.mark.parametrize(
    ("metadata", "is_followed"),
    [
        # setuptools lists the modules, hatchling a .pth file only
        ({"top_level": "fp_beside", "origin": EDITABLE}, True),
        ({"record": "_fp_beside.pth,,\n", "origin": EDITABLE}, True),
        ({"record": "fp_beside/__init__.py,,\n", "origin": EDITABLE}, True),
        ({"top_level": "fp_beside"}, False),
        ({"record": "fp_beside/__init__.py,,\n"}, False),
        ({"top_level": "fp_beside", "origin": '{"url": "file:///src", "dir_info": {}}'}, False),
        ({"top_level": "fp_beside", "origin": '{"url": "https://a.org/b.whl"}'}, False),
        ({"top_level": "fp_beside", "origin": '{"dir_info": {"editable": false}}'}, False),
        ({"top_level": "fp_beside", "origin": "[]"}, False),
        ({"top_level": "fp_beside", "origin": "{"}, False),
    ],
)
def test_editable_distributions_count_by_their_code(package, tmp_path, metadata, is_followed):
    beside = tmp_path / "fp_beside"
    beside.mkdir()
    (beside / "__init__.py").write_text("")
    (beside / "deep.py").write_text("a = 1\n")
    install(tmp_path, "fp-beside", **metadata)
    (package / "_map.py").write_text("def f():\n    from fp_beside.deep import a\n")
    reached = Fingerprinter(["fp_plugin"]).reached(["fp_plugin._map"])
    assert ("fp_beside.deep" in reached) is is_followed
    before = of()
    (beside / "deep.py").write_text("a = 2\n")
    assert (of() != before) is is_followed
    assert ("fp-beside" in Fingerprinter(["fp_plugin"]).parts(["fp_plugin._map"])) is not (
        is_followed
    )


def test_a_new_version_of_another_distribution_changes_the_fingerprint(package, tmp_path):
    (tmp_path / "fp_beside.py").write_text("a = 1\n")
    install(tmp_path, "fp_beside", "fp_beside")
    (package / "_map.py").write_text("import fp_beside\n")
    before = of()
    assert Fingerprinter(["fp_plugin"]).parts(["fp_plugin._map"])["fp_beside"] == "1.0"
    metadata = tmp_path / "fp_beside-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.0", "1.1"))
    assert of() != before


def test_a_source_folder_that_is_installed_twice_is_editable_once(package, tmp_path):
    # `pip install -e` of setuptools leaves an .egg-info in the source folder too
    (tmp_path / "fp_beside.py").write_text("a = 1\n")
    install(tmp_path, "fp-beside", "fp_beside", origin=EDITABLE)
    (tmp_path / "fp_beside.egg-info").mkdir()
    (tmp_path / "fp_beside.egg-info" / "PKG-INFO").write_text("Name: fp-beside\nVersion: 1.0\n")
    (tmp_path / "fp_beside.egg-info" / "top_level.txt").write_text("fp_beside\n")
    (package / "_map.py").write_text("import fp_beside\n")
    assert "fp_beside" in Fingerprinter(["fp_plugin"]).reached(["fp_plugin._map"])


def test_a_plugin_in_a_namespace_package_counts_by_its_code(tmp_path, monkeypatch):
    inner = tmp_path / "fp_space" / "part" / "plugin"
    inner.mkdir(parents=True)
    (inner / "__init__.py").write_text("from . import helper\n")
    (inner / "helper.py").write_text("a = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    own, module = ["fp_space"], ["fp_space.part.plugin"]
    before = Fingerprinter(own)(module)
    assert "fp_space.part.plugin.helper" in Fingerprinter(own).reached(module)
    (inner / "helper.py").write_text("a = 2\n")
    assert Fingerprinter(own)(module) != before


def test_a_compiled_module_counts_by_its_content(package):
    from importlib.machinery import EXTENSION_SUFFIXES

    compiled = package / f"_compiled{EXTENSION_SUFFIXES[0]}"
    compiled.write_bytes(b"\x7fELF one")
    (package / "_map.py").write_text("from fp_plugin import _compiled\n")
    assert "fp_plugin._compiled" in Fingerprinter(["fp_plugin"]).reached(["fp_plugin._map"])
    before = of()
    compiled.write_bytes(b"\x7fELF two")
    assert of() != before


def test_a_module_that_does_not_parse_counts_by_its_content(package):
    (package / "_helper.py").write_text("def f(:\n")
    before = of()
    (package / "_helper.py").write_text("def f(:  # mended?\n")
    assert of() != before


def test_an_import_from_beyond_the_package_is_no_reason_to_fail(package):
    (package / "_map.py").write_text("from ... import nothing\nfrom fp_plugin import _lazy\n")
    assert "fp_plugin._lazy" in Fingerprinter(["fp_plugin"]).reached(["fp_plugin._map"])


def test_what_decides_no_number_is_not_followed(package):
    (package / "_map.py").write_text(
        "import kbench, kbench.errors, kbench.messages\n"
        "from kbench import FeatureMap, hookspecs\n"
        "from kbench.records._suite import Ref\n"
        "from kbench.registry.registry import build\n"
        "from kbench.kernels import Gaussian\n"
    )
    parts = Fingerprinter(["fp_plugin", "kbench"]).parts(["fp_plugin._map"])
    reached = {name for name in parts if name.startswith("kbench")}
    assert "kbench.kernels.distances" in reached
    assert all(name.startswith("kbench.kernels") for name in reached)
    # what these import does not count either
    assert not {"pluggy", "packaging"} & parts.keys()


def test_what_decides_numbers_reaches_nothing_else_of_kbench():
    modules = evaluation_modules()
    assert {"kbench.evaluation", "kbench.evaluation.search._folds"} < set(modules)
    reached = Fingerprinter(["kbench"]).reached(modules)
    assert reached == modules
    everything = Fingerprinter(["kbench"], left_out=()).reached(modules)
    rooms = {".".join(name.split(".")[:2]) for name in everything} - {"kbench.evaluation"}
    assert rooms == {
        "kbench",
        "kbench._version",
        "kbench.errors",
        "kbench.hookspecs",
        "kbench.messages",
        "kbench.records",
        "kbench.registry",
    }


def test_what_computes_a_cell_does_not_reach_the_command_line():
    reached = Fingerprinter(["kbench"]).reached(["kbench.evaluation.evaluate"])
    assert "kbench.evaluation.search" in reached
    assert "kbench.evaluation.splits" in reached
    for module in ("kbench.cli", "kbench_mlflow.tracking", "kbench.planning", "kbench.runner"):
        assert module not in reached
