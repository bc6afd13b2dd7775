"""What a process loads and reads for a task is recorded, whatever its form."""

import hashlib
import os
import sys

import pytest

from kbench.execution.sandbox import Sandbox
from kbench.planning.current_state import Present

PRIVATE = """
from kbench.execution import recording
from kbench.registry.dependencies import Dependencies
import importlib

def call(payload):
    needed = {name: frozenset(values) for name, values in payload.get("needed", {}).items()}
    needed["modules"] = needed.get("modules", frozenset()) | {payload["module"]}
    recording.begin(Dependencies(**needed))
    module = importlib.import_module(payload["module"])
    return getattr(module, payload["function"])(*payload.get("arguments", ()))
"""
FORMS = '''
"""Imports in many forms, each in a function that a task calls."""

import importlib
import importlib.util
import sys
from importlib import import_module as load
from importlib.util import find_spec

import lab.early

def statement():
    import lab.leaf

def from_package():
    from lab import leaf

def star():
    import lab.starred

def relative():
    from . import leaf

def cached():
    # loaded for another module before this function imports it
    assert "lab.cached" in sys.modules
    import lab.cached

def with_level():
    __import__("leaf", globals(), locals(), ("x",), 1)

def by_name():
    return importlib.import_module("lab.leaf").x

def by_alias():
    return load(".leaf", "lab").x

def lazily():
    import lab.lazy
    assert lab.lazy.Late is sys.modules['lab.late']

def by_spec():
    spec = importlib.util.spec_from_file_location("lab_loaded", sys.argv[0] or "x")
    assert find_spec("lab.leaf") is not None

def looked_for():
    return find_spec("lab_gone"), importlib.util.find_spec("lab.gone")

def tried():
    try:
        import lab_gone
    except ImportError:
        pass
    try:
        from lab import gone
    except ImportError:
        pass

def from_path(path):
    spec = importlib.util.spec_from_file_location("lab_from_path", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

def nothing():
    pass

def hang():
    import time
    import lab.leaf
    open(lab.leaf.__file__.replace("leaf.py", "weights.txt")).close()
    time.sleep(60)
'''
READS = '''
"""Readings of files, folders and variables."""

import os
import pathlib

def opened(path):
    with open(path) as file:
        file.read()

def by_path(path):
    pathlib.Path(path).read_bytes()

def by_numpy(path):
    import numpy
    numpy.load(path)

def mapped(path):
    import numpy
    # for update, by default
    numpy.memmap(path, dtype="u1", shape=(1,))[0]

def updated(path):
    with open(path, "r+") as file:
        file.read()

def in_a_thread_of_a_library(path):
    import concurrent.futures, numpy
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        list(pool.map(numpy.loadtxt, [path]))

def compressed(path):
    import bz2
    try:
        bz2.open(path).read()
    except OSError:  # it is none
        pass

def by_descriptor(path):
    os.close(os.open(path, os.O_RDONLY))

def listed(path):
    os.listdir(path)

def iterated(path):
    list(pathlib.Path(path).iterdir())

def globbed(path):
    list(pathlib.Path(path).glob("*.csv"))

def walked(path):
    list(os.walk(path))

def version(name):
    import importlib.metadata
    return importlib.metadata.version(name)

def exists(path):
    return os.path.exists(path), pathlib.Path(path).is_file()

def own(folder):
    """Write files, and read them again."""
    path = pathlib.Path(folder, "scratch", "a.txt")
    path.parent.mkdir()
    path.write_text("mine")
    assert path.read_text() == "mine"
    assert os.listdir(path.parent) == ["a.txt"]
    with open(os.path.join(folder, "b.txt"), "w+") as file:
        file.write("too")
    open(os.path.join(folder, "b.txt")).close()

def by_item():
    return os.environ["LAB_SET"]

def by_get():
    return os.environ.get("LAB_SET")

def by_names():
    return [os.environ[name] for name in os.environ if name == "LAB_SET"]

def by_getenv():
    return os.getenv("LAB_SET")

def asked_for():
    return os.getenv("LAB_UNSET", "0")

def contained():
    return "LAB_UNSET" in os.environ

def copied():
    dict(os.environ), os.environ.copy(), {**os.environ}, list(os.environ.items())
    [name for name, value in os.environ.items() if value == "never"]

def handed_on():
    import subprocess, sys
    subprocess.run([sys.executable, "-c", ""], env={**os.environ, "X": "1"}, check=True)

def assigned():
    os.environ["LAB_OWN"] = "1"
    return os.environ["LAB_OWN"]
'''
LAB = {
    "lab_tasks.py": PRIVATE,
    "lab/__init__.py": "",
    "lab/early.py": "import lab.cached\n",
    "lab/cached.py": "",
    "lab/leaf.py": "x = 1\n",
    "lab/starred.py": "from lab.stars import *\n",
    "lab/stars/__init__.py": "__all__ = ['one']\n",
    "lab/stars/one.py": "",
    "lab/lazy.py": (
        "import importlib\n"
        "def __getattr__(name):\n"
        "    if name != 'Late':\n        raise AttributeError(name)\n"
        "    return importlib.import_module('lab.late')\n"
    ),
    "lab/late.py": "",
    "lab/forms.py": FORMS,
    "lab/reads.py": READS,
    "lab/unused.py": "",
    "kbench_of_others.py": READS,
    "lab/weights.txt": "w",
}


def write(folder):
    for name, text in LAB.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A folder on the import path of a warm sandbox that records a package in it."""
    folder = tmp_path_factory.mktemp("lab")
    write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_SET", "one")
        patch.syspath_prepend(str(folder))
        preload = ["kbench.execution.recording", "numpy", "lab_tasks", "lab.forms", "lab.reads"]
        own = ["kbench", "lab", "kbench_of_others"]
        with Sandbox(preload=preload, record=own) as sandbox:
            yield folder, sandbox


@pytest.fixture
def recorded(lab):
    """Return what a task of the warm sandbox reports."""
    _, sandbox = lab

    def run(function, *arguments, module="lab.forms", status="ok", time_s=30.0, **needed):
        payload = {
            "module": module,
            "function": function,
            "arguments": [str(each) for each in arguments],
            "needed": needed,
        }
        outcome = sandbox.run("lab_tasks:call", payload, time_s=time_s)
        assert outcome.status == status, outcome.error
        return joined(outcome.recorded)

    return run


def joined(reports):
    parts = ("modules", "packages", "files", "variables", "written", "distributions")
    found = {part: {} for part in parts}
    for report in reports:
        for part, values in report.items():
            found[part] |= values
    return found


def sha(content):
    return hashlib.sha256(content).hexdigest()


# -- modules

USUAL = {"lab", "lab.forms", "lab.early", "lab.cached"}
"""What the module of the forms loads itself."""


@pytest.mark.parametrize(
    ("form", "more"),
    [
        ("nothing", set()),
        *((form, {"lab.leaf"}) for form in ("statement", "from_package", "relative")),
        *((form, {"lab.leaf"}) for form in ("with_level", "by_name", "by_alias", "by_spec")),
        ("star", {"lab.starred", "lab.stars", "lab.stars.one"}),
        ("cached", set()),
        ("lazily", {"lab.lazy", "lab.late"}),
    ],
)
def test_a_module_is_recorded_in_whatever_form_it_is_imported(lab, recorded, form, more):
    folder, _ = lab
    found = recorded(form)
    assert set(found["modules"]) == USUAL | more
    assert set(found["packages"]) == {"numpy", "scipy", "sklearn"}
    digest, path = found["modules"]["lab.early"]
    assert path == str(folder / "lab" / "early.py")
    assert digest == sha((folder / "lab" / "early.py").read_bytes())


@pytest.mark.parametrize("form", ["looked_for", "tried"])
def test_a_module_that_is_not_there_is_recorded(recorded, form):
    modules = recorded(form)["modules"]
    assert {name for name, value in modules.items() if value == [None, ""]} == {
        "lab_gone",
        "lab.gone",
    }


def test_a_module_that_a_task_loads_from_a_path_is_recorded(tmp_path, recorded):
    (tmp_path / "anything.py").write_text("x = 1\n")
    found = recorded("from_path", tmp_path / "anything.py")
    assert found["modules"]["lab_from_path"] == [sha(b"x = 1\n"), str(tmp_path / "anything.py")]
    manifest = Present().build([found])
    assert manifest.files[str(tmp_path / "anything.py")] == sha(b"x = 1\n")


def test_what_only_another_task_needs_is_not_recorded(recorded):
    found = recorded("by_getenv", module="lab.reads")
    assert set(found["modules"]) == {"lab", "lab.reads"}
    assert found["files"] == {}


def test_what_a_killed_task_has_loaded_is_recorded(lab, recorded):
    folder, _ = lab
    found = recorded("hang", status="timed_out", time_s=1.0)
    assert set(found["modules"]) == USUAL | {"lab.leaf"}
    assert set(found["files"]) == {str(folder / "lab" / "weights.txt")}


def test_the_bytes_that_are_executed_count_and_not_those_of_stale_bytecode(tmp_path, monkeypatch):
    """A source of the same size and time as before is executed as it is."""
    write(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    payload = {"module": "lab.forms", "function": "by_name"}
    file = tmp_path / "lab" / "leaf.py"
    os.utime(file, (10**9, 10**9))
    for text in ("x = 1\n", "x = 2\n"):
        file.write_text(text)
        os.utime(file, (10**9, 10**9))
        with Sandbox(record=["kbench", "lab"]) as sandbox:
            outcome = sandbox.run("lab_tasks:call", payload, time_s=60)
        assert f"x = {outcome.value}\n" == text, outcome.error
        assert joined(outcome.recorded)["modules"]["lab.leaf"][0] == sha(text.encode())


# -- files, folders and variables


@pytest.mark.parametrize(
    "way",
    [
        *("opened", "by_path", "by_descriptor", "mapped", "updated", "compressed"),
        "in_a_thread_of_a_library",
    ],
)
def test_a_file_is_recorded_however_it_is_read(tmp_path, recorded, way):
    (tmp_path / "table.csv").write_text("1")
    found = recorded(way, tmp_path / "table.csv", module="lab.reads")
    assert found["files"] == {str(tmp_path / "table.csv"): sha(b"1")}


def test_a_plugin_of_others_is_not_taken_for_a_built_in_one_by_its_name(tmp_path, recorded):
    (tmp_path / "table.csv").write_text("1")
    found = recorded("opened", tmp_path / "table.csv", module="kbench_of_others")
    assert found["files"] == {str(tmp_path / "table.csv"): sha(b"1")}
    assert set(recorded("by_get", module="kbench_of_others")["variables"]) == {"LAB_SET"}


def test_a_file_that_a_library_reads_for_a_component_is_recorded(tmp_path, recorded):
    import numpy as np

    np.save(tmp_path / "weights.npy", np.arange(3))
    found = recorded("by_numpy", tmp_path / "weights.npy", module="lab.reads")
    assert set(found["files"]) == {str(tmp_path / "weights.npy")}


def test_what_metadata_say_of_a_distribution_counts_as_that_distribution(recorded):
    found = recorded("version", "rich", module="lab.reads")
    assert set(found["distributions"]) == {"rich"}
    made = Present().build([found])
    assert made.distributions["rich"] == Present().distribution("rich")


def test_folders_in_which_python_looks_for_distributions_are_not_recorded(tmp_path, monkeypatch):
    write(tmp_path / "lab")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.syspath_prepend(tmp_path / "lab")
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # of a notebook
    payload = {"module": "lab.reads", "function": "version", "arguments": ["rich"]}
    with Sandbox(preload=["numpy", "lab_tasks"], record=["kbench", "lab"]) as sandbox:
        found = joined(sandbox.run("lab_tasks:call", payload, time_s=30.0).recorded)
        folders = {path for path, state in found["files"].items() if state is not None}
        assert (folders, set(found["distributions"])) == (set(), {"rich"})
        payload |= {"function": "listed", "arguments": ["."]}
        listed = sandbox.run("lab_tasks:call", payload, time_s=30.0)
        assert set(joined(listed.recorded)["files"]) == {str(tmp_path / "work")}


def test_the_state_of_a_large_file_is_recorded(tmp_path, recorded):
    with (tmp_path / "large.bin").open("wb") as file:
        file.truncate(2**20 + 1)
    found = recorded("by_path", tmp_path / "large.bin", module="lab.reads")
    (state,) = found["files"].values()
    assert state[2] == 2**20 + 1
    manifest = Present().build([found])
    assert manifest.files == {str(tmp_path / "large.bin"): sha(bytes(2**20 + 1))}


@pytest.mark.parametrize("way", ["listed", "iterated", "globbed", "walked"])
def test_a_folder_is_recorded_however_it_is_listed(tmp_path, recorded, way):
    (tmp_path / "table.csv").touch()
    found = recorded(way, tmp_path, module="lab.reads")
    assert set(found["files"]) == {str(tmp_path)}
    manifest = Present().build([found])
    assert Present().why_changed(manifest) == ()
    (tmp_path / "new.csv").touch()
    assert Present().why_changed(manifest) == (f"the file {tmp_path} changed",)


def test_a_file_that_is_not_there_is_recorded(tmp_path, recorded):
    found = recorded("exists", tmp_path / "gone", module="lab.reads")
    assert found["files"] == {str(tmp_path / "gone"): None}


def test_what_a_task_has_written_itself_is_not_recorded(tmp_path, recorded):
    found = recorded("own", tmp_path, module="lab.reads")
    assert Present().build([found]).files == {}


@pytest.mark.parametrize("way", ["by_item", "by_get", "by_getenv", "by_names"])
def test_a_variable_is_recorded_however_it_is_read(recorded, way):
    assert recorded(way, module="lab.reads")["variables"] == {"LAB_SET": sha(b"one")}


@pytest.mark.parametrize("way", ["asked_for", "contained"])
def test_a_variable_that_is_not_set_is_recorded(recorded, way):
    assert recorded(way, module="lab.reads")["variables"] == {"LAB_UNSET": None}


@pytest.mark.parametrize("way", ["copied", "handed_on", "assigned"])
def test_copies_of_all_variables_and_own_ones_are_not_recorded(recorded, way):
    assert recorded(way, module="lab.reads")["variables"] == {}


def test_what_components_declare_is_recorded(lab, tmp_path, recorded):
    folder, _ = lab
    declared = {
        "modules": ["lab.unused"],
        "files": ["lab:weights.txt", str(tmp_path / "gone")],
        "variables": ["LAB_SET", "LAB_UNSET"],
    }
    found = recorded("nothing", **declared)
    assert set(found["modules"]) == USUAL | {"lab.unused"}
    assert found["files"] == {
        str(folder / "lab" / "weights.txt"): sha(b"w"),
        str(tmp_path / "gone"): None,
    }
    assert found["variables"] == {"LAB_SET": sha(b"one"), "LAB_UNSET": None}
