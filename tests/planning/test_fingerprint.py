import pytest

from kbench.planning.fingerprint import Fingerprinter


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


@pytest.mark.parametrize(
    "edited", ["_map.py", "_helper.py", "_lazy.py", "inner/deep.py", "__init__.py"]
)
def test_editing_a_module_or_what_it_imports_changes_the_fingerprint(package, edited):
    before = of()
    (package / edited).write_text((package / edited).read_text() + "\n# edited\n")
    assert of() != before


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


def test_what_computes_a_cell_does_not_reach_the_command_line():
    reached = Fingerprinter(["kbench"]).reached(["kbench.evaluation.evaluate"])
    assert "kbench.evaluation.search" in reached
    assert "kbench.evaluation.splits" in reached
    for module in ("kbench.cli", "kbench.tracking", "kbench.planning", "kbench.runner"):
        assert module not in reached
