"""No module that a model needs is left behind, however it is imported and installed."""

import ast
import os
import subprocess
import sys
import sysconfig
import zipfile
from site import addsitedir

import pytest

from kbench_tables.export.closure import find_imports, import_closure
from tests.support.paths import ROOT

COMPILED = sysconfig.get_config_var("EXT_SUFFIX")
LAZY = "import lazy_loader\n__getattr__, *_ = lazy_loader.attach(__name__, {})"
CALL = "from importlib import import_module\nimport_module({})"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on ``sys.path``, with a plugin."""
    write(tmp_path, {"lab_plugin/__init__.py": ""})
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def reached_by(folder, statement):
    """Return the modules that the plugin reaches beside itself."""
    write(folder, {"lab_plugin/_map.py": f"{statement}\n"})
    return import_closure(["lab_plugin._map"], ["lab_plugin"]) - {"lab_plugin", "lab_plugin._map"}


# -- statements


@pytest.mark.parametrize(
    "statement",
    [
        "import lab_plugin.inner.deep",
        "import math, lab_plugin.inner.deep as d",
        "from lab_plugin.inner import deep",
        "from lab_plugin.inner.deep import a",
        "from .inner import deep",
        "from .inner.deep import a",
        "from . import inner\nfrom .inner import deep as d",
        "from ... import nothing\nfrom .inner import deep",
        "def f():\n    from .inner import deep",
        "class C:\n    from .inner import deep",
        "try:\n    from .inner import deep\nexcept ImportError:\n    deep = None",
        "import importlib\nimportlib.import_module('lab_plugin.inner.deep')",
        CALL.format("'.inner.deep', __package__"),
        CALL.format("'.inner.deep', package='lab_plugin'"),
        CALL.format("'.deep', 'lab_plugin.inner'"),
        CALL.format("'..deep', 'lab_plugin.inner.x'"),
        CALL.format("'...deep', 'lab_plugin'") + "\nimport lab_plugin.inner.deep",
        "__import__('lab_plugin.inner.deep')",
        "from .inner import deep\nraise RuntimeError('nothing is run')",
    ],
)
@pytest.mark.parametrize("has_init", [False, True])
def test_a_module_in_a_folder_of_the_plugin_is_reached(folder, statement, has_init):
    write(folder, {"lab_plugin/inner/deep.py": "import numpy", "lab_plugin/unused.py": ""})
    if has_init:
        write(folder, {"lab_plugin/inner/__init__.py": ""})
    # importing a.b.c runs a.b
    assert reached_by(folder, statement) == {"lab_plugin.inner", "lab_plugin.inner.deep"}


def test_imports_are_followed_from_module_to_module(folder):
    write(
        folder,
        {
            "lab_plugin/one.py": "from lab_plugin import two",
            "lab_plugin/two.py": "def f():\n    from . import one, three",
            "lab_plugin/three.py": "",
        },
    )
    found = reached_by(folder, "from .one import f")
    assert found == {"lab_plugin.one", "lab_plugin.two", "lab_plugin.three"}


@pytest.mark.parametrize(
    ("export", "name"),
    [
        ("__all__ = ['helper']", "*"),
        (LAZY.format("['helper']"), "*"),
        (LAZY.format("submod_attrs={'helper': ['f', 'g']}"), "*"),
        (LAZY.format("submod_attrs={'helper': ['f'], 'other': ['g']}"), "f"),
        (LAZY.format("(), {'helper': ['f'], 'other': ['g']}"), "f"),
    ],
)
def test_what_a_package_exports_without_importing_it_is_reached(folder, export, name):
    part = {"__init__": export, "helper": "", "other": ""}
    write(folder, {f"lab_plugin/part/{each}.py": text for each, text in part.items()})
    found = reached_by(folder, f"from lab_plugin.part import {name}")
    assert found == {"lab_plugin.part", "lab_plugin.part.helper"}


def test_what_is_left_out_is_not_followed(folder):
    write(
        folder,
        {
            "lab_plugin/words/__init__.py": LAZY.format("submod_attrs={'deep': ['f']}"),
            "lab_plugin/words/deep.py": "from lab_plugin import behind",
            "lab_plugin/behind.py": "",
            "lab_plugin/_map.py": "from lab_plugin.words import f\nimport lab_plugin.words.deep",
        },
    )
    left_out = {"lab_plugin", "lab_plugin.words"}
    assert import_closure(["lab_plugin._map"], ["lab_plugin"], left_out) == {"lab_plugin._map"}


def test_statements_are_found_wherever_they_stand():
    source = b"""\
import a
def f():
    from b import c
    class D:
        if x:
            from .d import e
            import_module("i")
try:
    import g
except ImportError:
    import h
if TYPE_CHECKING:
    import never
else:
    import j
"""
    found = {ast.unparse(node): may_fail for node, may_fail in find_imports(source)}
    assert found == {
        "import a": False,
        "from b import c": False,
        "from .d import e": True,
        "import i": True,
        "import g": True,
        "import h": True,
        "import j": True,
    }


@pytest.mark.parametrize(
    ("block", "may_fail"),
    [
        ("try:\n    {}\nexcept (KeyError, ModuleNotFoundError):\n    pass", True),
        ("try:\n    for x in y:\n        {}\nexcept Exception:\n    pass", True),
        ("try:\n    {}\nexcept:\n    pass", True),
        ("with contextlib.suppress(ImportError):\n    {}", True),
        ("if sys.platform == 'win32':\n    {}", True),
        ("try:\n    {}\nexcept ValueError:\n    pass", False),
        ("with suppress(KeyError), open(x):\n    {}", False),
        ("for x in y:\n    {}", False),
    ],
)
@pytest.mark.parametrize("statement", ["from . import a", "import_module('.a', __package__)"])
def test_an_import_may_fail_below_an_if_or_where_its_error_is_caught(block, statement, may_fail):
    assert [each for _, each in find_imports(block.format(statement).encode())] == [may_fail]


# -- places


@pytest.mark.parametrize(
    ("files", "statement", "expected"),
    [
        # without an __init__.py
        ({"lab/helper.py": ""}, "import lab.helper as h", {"lab", "lab.helper"}),
        ({"lab/helper.py": ""}, "from lab import helper", {"lab", "lab.helper"}),
        ({"lab.py": "import lab_two", "lab_two.py": ""}, "import lab", {"lab", "lab_two"}),
        # compiled
        (
            {f"lab/__init__{COMPILED}": "\x7fELF", "lab/deep.py": ""},
            "from lab import deep",
            {"lab", "lab.deep"},
        ),
        # others that are not there, and what is no module
        ({"lab.py": ""}, "from lab import f\nimport lab_not_there, json", {"lab"}),
        # one of the plugin that is not there: it may be optional
        ({}, "from .gone import f", {"lab_plugin.gone"}),
    ],
)
def test_modules_are_reached_by_their_files(folder, files, statement, expected):
    write(folder, files)
    assert reached_by(folder, statement) == expected


def test_a_plugin_in_a_namespace_package_is_reached(folder):
    write(
        folder, {"space/part/plugin/__init__.py": "from . import a", "space/part/plugin/a.py": ""}
    )
    found = import_closure(["space.part.plugin"], ["space"])
    assert found == {"space", "space.part", "space.part.plugin", "space.part.plugin.a"}


def test_a_namespace_package_of_two_folders_is_reached_in_both(folder, monkeypatch):
    write(folder, {"one/lab/first.py": "", "two/lab/second.py": ""})
    for name in ("one", "two"):
        monkeypatch.syspath_prepend(str(folder / name))
    found = reached_by(folder, "from lab import first\nimport lab.second")
    assert found == {"lab", "lab.first", "lab.second"}


def test_a_module_in_a_zip_archive_is_reached(folder, monkeypatch):
    with zipfile.ZipFile(folder / "lab.zip", "w") as packed:
        packed.writestr("lab/__init__.py", "from . import deep")
        packed.writestr("lab/deep.py", "")
    monkeypatch.syspath_prepend(str(folder / "lab.zip"))
    assert reached_by(folder, "import lab") == {"lab", "lab.deep"}


def test_a_module_in_a_folder_of_a_pth_file_is_reached(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    write(folder, {"elsewhere/lab.py": "", "site/lab.pth": f"{folder / 'elsewhere'}\n"})
    addsitedir(str(folder / "site"))
    assert reached_by(folder, "import lab") == {"lab"}


# -- installed distributions


@pytest.mark.parametrize("file", ["lab/__init__.py", "lab.py", f"lab{COMPILED}"])
@pytest.mark.parametrize(("place", "is_followed"), [("src", True), ("site-packages", False)])
def test_what_an_installer_has_put_there_is_not_followed(
    folder, monkeypatch, file, place, is_followed
):
    write(folder, {f"{place}/{file}": ""})
    monkeypatch.syspath_prepend(str(folder / place))
    assert reached_by(folder, "def f():\n    import lab") == ({"lab"} if is_followed else set())


def test_an_installed_distribution_whose_files_are_links_is_not_followed(folder, monkeypatch):
    """As ``uv pip install --link-mode symlink`` leaves it: the files lie in a cache."""
    write(folder, {"cache/lab/__init__.py": "", "site-packages/other.py": ""})
    (folder / "site-packages" / "lab").symlink_to(folder / "cache" / "lab")
    monkeypatch.syspath_prepend(str(folder / "site-packages"))
    assert reached_by(folder, "import lab") == set()


def test_a_working_copy_that_hides_an_installed_distribution_is_followed(folder, monkeypatch):
    write(folder, {"site-packages/lab/__init__.py": "", "work/lab/__init__.py": ""})
    monkeypatch.syspath_prepend(str(folder / "site-packages"))
    assert reached_by(folder, "import lab") == set()
    monkeypatch.syspath_prepend(str(folder / "work"))
    assert reached_by(folder, "import lab") == {"lab"}


FINDER = """
import importlib.util, sys
class _EditableFinder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname in MAPPING:
            return importlib.util.spec_from_file_location(fullname, MAPPING[fullname])
"""


def test_a_module_that_only_a_finder_of_an_editable_install_knows_is_followed(folder, monkeypatch):
    files = {"lab": "src/a/__init__.py", "lab.deep": "src/elsewhere/deep.py"}
    write(folder, dict.fromkeys(files.values(), ""))
    finder = {"MAPPING": {name: str(folder / file) for name, file in files.items()}}
    exec(FINDER, finder)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder["_EditableFinder"]])
    assert reached_by(folder, "from lab import deep") == {"lab", "lab.deep"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "build"),
    [
        ("src", "[tool.setuptools.packages.find]\nwhere = ['src']\n"),  # a static .pth file
        (".", "[tool.setuptools]\npackages = ['lab']\n"),  # a finder hook
        ("odd", "[tool.setuptools]\npackages = ['lab']\npackage-dir = {lab = 'odd/lab'}\n"),
    ],
)
def test_what_setuptools_installs_as_editable_is_followed(folder, layout, build):
    pytest.importorskip("setuptools", minversion="70.1")  # which builds wheels itself
    pyproject = (
        "[build-system]\nrequires = ['setuptools']\nbuild-backend = 'setuptools.build_meta'\n"
        "[project]\nname = 'lab'\nversion = '1.0'\n" + build
    )
    files = {"pyproject.toml": pyproject}
    files |= {f"{layout}/lab/{name}.py": "" for name in ("__init__", "deep")}
    write(folder / "project", files)
    home = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    python = str(home / "bin" / "python")
    packages = next((home / "lib").iterdir()) / "site-packages"
    # the tools of this environment, below what is installed into the new one
    (packages / "zz_tools.pth").write_text("\n".join(p for p in sys.path if "-packages" in p))
    options = ["-q", "--no-deps", "--no-build-isolation", "-e", str(folder / "project")]
    done = subprocess.run(
        [python, "-m", "pip", "install", *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    assert done.returncode == 0, done.stderr
    write(folder, {"lab_plugin/_map.py": "def f():\n    from lab.deep import a\n"})
    script = (
        f"import sys; sys.path[:0] = {[str(folder), str(ROOT), str(ROOT / 'plugins')]}\n"
        "from kbench_tables.export.closure import import_closure\n"
        "print(*sorted(import_closure(['lab_plugin._map'], ['lab_plugin'])))"
    )
    found = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["lab", "lab.deep", "lab_plugin", "lab_plugin._map"]
