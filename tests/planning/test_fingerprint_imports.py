"""No module that decides a number is left out of a fingerprint, however it is found."""

import json
import os
import shutil
import site
import subprocess
import sys
import sysconfig
import zipfile

import pytest

from kbench.errors import PluginError
from kbench.planning.fingerprint import Fingerprinter
from tests.planning.test_fingerprint import EDITABLE, install


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on ``sys.path``, with a plugin."""
    write(tmp_path, {"fpi_plugin/__init__.py": "", "fpi_plugin/_map.py": ""})
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def of():
    return Fingerprinter(["fpi_plugin"])(["fpi_plugin._map"])


def reached():
    return Fingerprinter(["fpi_plugin"]).reached(["fpi_plugin._map"])


def import_it(folder, statement):
    write(folder, {"fpi_plugin/_map.py": statement + "\n"})


def assert_counts(path, old="a = 1\n", new="a = 2\n"):
    path.write_text(old)
    before = of()
    path.write_text(new)
    assert of() != before


# -- folders without __init__.py


@pytest.mark.parametrize(
    "statement",
    [
        "import fpi_plugin.inner.deep",
        "from fpi_plugin.inner import deep",
        "from fpi_plugin.inner.deep import a",
        "from .inner import deep",
        "from .inner.deep import a",
        "from . import inner\nfrom .inner import deep as d",
        "def f():\n    from .inner import deep",
        "class C:\n    from .inner import deep",
        "try:\n    from .inner import deep\nexcept ImportError:\n    deep = None",
        "import importlib\nimportlib.import_module('fpi_plugin.inner.deep')",
        "from importlib import import_module\nimport_module('.inner.deep', __package__)",
        "from importlib import import_module\nimport_module('.inner.deep', package='fpi_plugin')",
        "from importlib import import_module\nimport_module('.deep', 'fpi_plugin.inner')",
        "from importlib import import_module\nimport_module('..deep', 'fpi_plugin.inner.x')",
        "__import__('fpi_plugin.inner.deep')",
    ],
)
@pytest.mark.parametrize("has_init", [False, True])
def test_a_module_in_a_folder_of_the_plugin_counts(folder, statement, has_init):
    write(folder, {"fpi_plugin/inner/deep.py": "a = 1\n"})
    if has_init:
        write(folder, {"fpi_plugin/inner/__init__.py": ""})
    import_it(folder, statement)
    assert "fpi_plugin.inner.deep" in reached()
    assert_counts(folder / "fpi_plugin" / "inner" / "deep.py")


@pytest.mark.parametrize(
    "statement",
    ["import fpi_lab.helper", "from fpi_lab import helper", "import fpi_lab.helper as h"],
)
def test_a_folder_without_init_beside_the_plugin_counts(folder, statement):
    write(folder, {"fpi_lab/helper.py": ""})
    import_it(folder, statement)
    assert_counts(folder / "fpi_lab" / "helper.py")


def test_a_namespace_package_of_two_folders_counts_in_both(folder, monkeypatch):
    write(folder, {"one/fpi_lab/first.py": "", "two/fpi_lab/second.py": ""})
    for name in ("one", "two"):
        monkeypatch.syspath_prepend(str(folder / name))
    import_it(folder, "from fpi_lab import first, second")
    assert_counts(folder / "one" / "fpi_lab" / "first.py")
    assert_counts(folder / "two" / "fpi_lab" / "second.py")


# -- other ways to find a module


def test_a_module_in_a_zip_archive_counts(folder, monkeypatch):
    archive = folder / "lab.zip"

    def pack(text):
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("fpi_zipped/__init__.py", "")
            packed.writestr("fpi_zipped/deep.py", text)

    pack("a = 1\n")
    monkeypatch.syspath_prepend(str(archive))
    import_it(folder, "from fpi_zipped import deep")
    assert {"fpi_zipped", "fpi_zipped.deep"} < set(reached())
    before = of()
    pack("a = 2\n")
    assert of() != before


def test_a_module_in_a_folder_of_a_pth_file_counts(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    write(folder, {"elsewhere/fpi_there.py": "", "site/lab.pth": f"{folder / 'elsewhere'}\n"})
    site.addsitedir(str(folder / "site"))
    import_it(folder, "import fpi_there")
    assert_counts(folder / "elsewhere" / "fpi_there.py")


def test_a_linked_file_counts_by_its_content(folder):
    write(folder, {"shared/real.py": ""})
    (folder / "fpi_plugin" / "linked.py").symlink_to(folder / "shared" / "real.py")
    import_it(folder, "from . import linked")
    assert_counts(folder / "shared" / "real.py")


def test_a_package_whose_init_is_compiled_has_modules(folder):
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    write(folder, {f"fpi_plugin/fast/__init__{suffix}": "\x7fELF", "fpi_plugin/fast/deep.py": ""})
    import_it(folder, "from .fast import deep")
    assert_counts(folder / "fpi_plugin" / "fast" / "deep.py")
    assert_counts(folder / "fpi_plugin" / "fast" / f"__init__{suffix}", "\x7fELF1", "\x7fELF2")


@pytest.mark.parametrize(
    "export",
    [
        "__all__ = ['helper']",
        "import lazy_loader\n__getattr__, *_ = lazy_loader.attach(__name__, ['helper'])",
        "import lazy_loader\n__getattr__, *_ = "
        "lazy_loader.attach(__name__, submod_attrs={'helper': ['f', 'g']})",
    ],
)
def test_all_exports_of_a_package_count_where_all_are_imported(folder, export):
    write(folder, {"fpi_plugin/part/__init__.py": export, "fpi_plugin/part/helper.py": ""})
    import_it(folder, "from fpi_plugin.part import *")
    assert_counts(folder / "fpi_plugin" / "part" / "helper.py")


def test_what_a_package_exports_lazily_counts(folder):
    export = (
        "import lazy_loader\n__getattr__, *_ = "
        "lazy_loader.attach(__name__, submod_attrs={'helper': ['f']})"
    )
    write(
        folder,
        {
            "fpi_plugin/part/__init__.py": export,
            "fpi_plugin/part/helper.py": "",
            "fpi_plugin/part/other.py": "",
        },
    )
    import_it(folder, "from fpi_plugin.part import f")
    assert "fpi_plugin.part.other" not in reached()
    assert_counts(folder / "fpi_plugin" / "part" / "helper.py")


# -- installed distributions


def test_two_editable_distributions_count_by_their_code(folder):
    write(folder, {"fpi_one.py": "", "fpi_two/__init__.py": "", "fpi_two/deep.py": ""})
    install(folder, "fpi-one", "fpi_one", origin=EDITABLE)
    install(folder, "fpi-two", record="__editable__.fpi_two.pth,,\n", origin=EDITABLE)
    import_it(folder, "import fpi_one\nfrom fpi_two import deep")
    assert_counts(folder / "fpi_one.py")
    assert_counts(folder / "fpi_two" / "deep.py")


def test_an_installed_distribution_whose_files_are_links_counts_by_its_version(folder, monkeypatch):
    """As ``uv pip install --link-mode symlink`` leaves it: the files lie in a cache."""
    write(folder, {"cache/fpi_lab/__init__.py": "", "site/other.py": ""})
    (folder / "site" / "fpi_lab").symlink_to(folder / "cache" / "fpi_lab")
    install(folder / "site", "fpi-lab", "fpi_lab")
    monkeypatch.syspath_prepend(str(folder / "site"))
    import_it(folder, "import fpi_lab")
    assert "fpi_lab" not in reached()


def test_a_working_copy_that_hides_an_installed_distribution_counts(folder, monkeypatch):
    write(folder, {"site/fpi_lab/__init__.py": "", "work/fpi_lab/__init__.py": ""})
    install(folder / "site", "fpi-lab", "fpi_lab")
    monkeypatch.syspath_prepend(str(folder / "site"))
    import_it(folder, "import fpi_lab")
    assert "fpi_lab" not in reached()
    monkeypatch.syspath_prepend(str(folder / "work"))
    assert_counts(folder / "work" / "fpi_lab" / "__init__.py")


def test_a_source_folder_with_its_metadata_counts(folder):
    """``python setup.py develop``, or a source folder on PYTHONPATH, leaves an .egg-info."""
    write(
        folder,
        {
            "fpi_lab.py": "",
            "fpi_lab.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: fpi-lab\nVersion: 1.0\n",
            "fpi_lab.egg-info/top_level.txt": "fpi_lab\n",
        },
    )
    import_it(folder, "import fpi_lab")
    assert_counts(folder / "fpi_lab.py")


FINDER = """
import importlib.util, sys
MAPPING = {MAPPING}
class _EditableFinder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        for name, file in MAPPING.items():
            if fullname == name:
                return importlib.util.spec_from_file_location(fullname, file)
"""


def test_a_module_that_only_a_finder_of_an_editable_install_knows_counts(folder, monkeypatch):
    files = {"fpi_hooked": "src/a/__init__.py", "fpi_hooked.deep": "src/elsewhere/deep.py"}
    write(folder, dict.fromkeys(files.values(), ""))
    finder = {}
    exec(FINDER.format(MAPPING={k: str(folder / v) for k, v in files.items()}), finder)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder["_EditableFinder"]])
    import_it(folder, "from fpi_hooked import deep")
    assert_counts(folder / "src" / "elsewhere" / "deep.py")
    assert_counts(folder / "src" / "a" / "__init__.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "build"),
    [
        ("src", "[tool.setuptools.packages.find]\nwhere = ['src']\n"),  # a static .pth file
        (".", "[tool.setuptools]\npackages = ['fpi_lab']\n"),  # a finder hook
        (
            "odd",
            "[tool.setuptools]\npackages = ['fpi_lab']\npackage-dir = {fpi_lab = 'odd/fpi_lab'}\n",
        ),
    ],
)
def test_what_setuptools_installs_as_editable_counts(folder, layout, build):
    pytest.importorskip("setuptools", minversion="70.1")  # which builds wheels itself
    project = folder / "project"
    pyproject = (
        "[build-system]\nrequires = ['setuptools']\nbuild-backend = 'setuptools.build_meta'\n"
        "[project]\nname = 'fpi-lab'\nversion = '1.0'\n" + build
    )
    code = f"{layout}/fpi_lab"
    write(
        project,
        {"pyproject.toml": pyproject, f"{code}/__init__.py": "", f"{code}/deep.py": "a = 1\n"},
    )
    home = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    python = str(home / "bin" / "python")
    packages = next((home / "lib").iterdir()) / "site-packages"
    # the tools of this environment, below what is installed into the new one
    (packages / "zz_tools.pth").write_text("\n".join(p for p in sys.path if "-packages" in p))
    done = subprocess.run(
        [
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "-e",
            str(project),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    assert done.returncode == 0, done.stderr
    shutil.rmtree(project / "build", ignore_errors=True)
    script = (
        "import sys, json; sys.path.insert(0, sys.argv[1])\n"
        "from kbench.planning.fingerprint import Fingerprinter as F\n"
        "print(json.dumps([F(['fpi_plugin'])(['fpi_plugin._map']),"
        " F(['fpi_plugin']).reached(['fpi_plugin._map'])]))"
    )

    def asked():
        command = [python, "-c", script, str(folder)]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    import_it(folder, "def f():\n    from fpi_lab.deep import a")
    before, modules = asked()
    assert {"fpi_lab", "fpi_lab.deep"} < set(modules)
    (project / code / "deep.py").write_text("a = 2\n")
    assert asked()[0] != before


# -- modules that are not found


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("import fpi_plugin.gone", "fpi_plugin.gone"),
        ("import fpi_plugin.gone.deeper", "fpi_plugin.gone"),
        ("from .gone import f", "fpi_plugin.gone"),
        ("from fpi_plugin.gone import f", "fpi_plugin.gone"),
        ("def f():\n    from .gone import f", "fpi_plugin.gone"),
        ("from .bare import gone", "fpi_plugin.bare.gone"),
        ("from ._map import x\nimport fpi_plugin._map.gone", "fpi_plugin._map.gone"),
        ("import importlib\nimportlib.import_module('fpi_plugin.gone')", "fpi_plugin.gone"),
        ("try:\n    from .gone import f\nexcept ValueError:\n    pass", "fpi_plugin.gone"),
    ],
)
def test_a_module_of_the_plugin_that_is_not_found_is_an_error(folder, statement, name):
    write(folder, {"fpi_plugin/bare/there.py": ""})
    import_it(folder, f"x = 1\n{statement}")
    with pytest.raises(PluginError, match=r"fpi_plugin\._map imports .*not found.*line") as error:
        of()
    assert name in str(error.value)
    # on the workers of a cluster it is a difference
    parts = Fingerprinter(["fpi_plugin"]).parts(["fpi_plugin._map"])
    assert parts[name] == "absent"


@pytest.mark.parametrize(
    "statement",
    [
        "try:\n    from .gone import f\nexcept ImportError:\n    f = None",
        "try:\n    from . import gone\nexcept ImportError:\n    f = None",
        "try:\n    import fpi_plugin.gone\nexcept (KeyError, ModuleNotFoundError):\n    f = None",
        "try:\n    if 1:\n        import fpi_plugin.gone\nexcept Exception:\n    f = None",
        "try:\n    import fpi_plugin.gone\nexcept:\n    f = None",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import fpi_plugin.gone",
        "import sys\nif sys.platform == 'win32':\n    from .gone import f",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .gone import T",
        "import importlib\ntry:\n    importlib.import_module('.gone', __package__)\n"
        "except ImportError:\n    pass",
        # packages that need not be installed
        "import fpi_not_installed",
        "def f():\n    from fpi_not_installed.deep import g",
        # an attribute of the package
        "from fpi_plugin import an_attribute",
    ],
)
def test_an_optional_import_is_no_error_and_counts_once_it_is_there(folder, statement):
    import_it(folder, statement)
    before = of()
    if "gone" in statement and "TYPE" not in statement:
        write(folder, {"fpi_plugin/gone.py": "f = 1\n"})
        assert of() != before


def test_a_first_module_that_does_not_exist_is_an_error(folder):
    with pytest.raises(PluginError, match=r"there is no module 'fpi_plugin\._mapp'"):
        Fingerprinter(["fpi_plugin"])(["fpi_plugin._mapp"])
