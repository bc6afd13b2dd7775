"""What manifests name, as it is now: each kind of change is noticed, and nothing else."""

import base64
import hashlib
import importlib
import json
import os
import shutil
import time

import pytest

from kbench.planning.current_state import CHANGED, Present, folder_digest, variable
from kbench.records import INSTALLED, NAMESPACE, Manifest
from kbench.storage.files import read_state


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on the import path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on the import path that looks like one of an installer."""
    (tmp_path / "site-packages").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    return tmp_path / "site-packages"


def write(folder, **files):
    """Write modules; two underscores stand for a folder."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py".replace("/init.py", "/__init__.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def sha_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def made(**recorded):
    importlib.invalidate_caches()
    return Present().build([recorded])


def of_modules(*names):
    """Return the manifest of what has loaded modules."""
    importlib.invalidate_caches()
    present = Present()
    sources = {name: present._source(name) for name in names}
    recorded = {name: (path and sha_of(path), str(path or "")) for name, path in sources.items()}
    return present.build([{"modules": recorded}])


def why(manifest):
    importlib.invalidate_caches()
    return list(Present().why_changed(manifest))


def test_nothing_is_known_of_a_process_that_reported_nothing():
    assert Present().build([]) is None
    assert why(Manifest()) == []


def test_code_of_a_module_counts_and_its_comments_do_not(folder):
    write(folder, lab_one="x = 1\n", lab_pack__init="", lab_pack__sub__init="y = 1\n")
    manifest = of_modules("lab_one", "lab_pack", "lab_pack.sub")
    assert why(manifest) == []
    write(folder, lab_one='"""One."""\nx = (1)  # one\n')
    assert why(manifest) == []
    write(folder, lab_one="x = 2\n", lab_pack__sub__init="y = 2\n")
    assert why(manifest) == ["lab_one.py changed", "lab_pack/sub/__init__.py changed"]
    write(folder, lab_one="x = 1\n", lab_pack__sub__init="y = 1\n")
    assert why(manifest) == []
    shutil.rmtree(folder / "lab_pack" / "sub")
    assert why(manifest) == ["lab_pack.sub is not there"]


def test_a_module_in_front_of_the_one_that_was_loaded_is_another(folder, tmp_path_factory):
    write(folder, lab_one="x = 1\n")
    manifest = of_modules("lab_one")
    front = tmp_path_factory.mktemp("front")
    write(front, lab_one="x = 2\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(front))
        assert why(manifest) == ["lab_one.py changed"]
    assert why(manifest) == []


def test_a_package_without_a_file_of_its_own_may_get_one(folder):
    write(folder, lab_space__inner="x = 1\n")
    manifest = made(
        modules={
            "lab_space": ("", ""),
            "lab_space.inner": (
                sha_of(folder / "lab_space" / "inner.py"),
                str(folder / "lab_space" / "inner.py"),
            ),
        }
    )
    assert manifest.modules["lab_space"] == NAMESPACE
    assert why(manifest) == []
    write(folder, lab_space__init="")
    assert why(manifest) == ["lab_space/__init__.py changed"]


def test_a_module_that_was_missed_counts_once_it_is_there(folder):
    write(folder, lab_pack__init="")
    manifest = made(modules={"lab_gone": (None, ""), "lab_pack.gone": (None, "")})
    assert why(manifest) == []
    write(folder, lab_pack__gone="")
    assert why(manifest) == ["lab_pack.gone was not installed"]
    write(folder, lab_gone="")
    assert why(manifest) == ["lab_gone was not installed", "lab_pack.gone was not installed"]


def test_bytes_of_a_compiled_module_count(folder):
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    file = folder / f"lab_fast{suffix}"
    file.write_bytes(b"\x7fELF 1")
    manifest = of_modules("lab_fast")
    assert why(manifest) == []
    file.write_bytes(b"\x7fELF 2")
    assert why(manifest) == [f"lab_fast{suffix} changed"]


def test_a_module_that_changed_between_its_import_and_the_end_is_never_valid(folder):
    write(folder, lab_one="x = 1\n")
    executed = sha_of(folder / "lab_one.py")
    write(folder, lab_one="x = 2\n")
    manifest = made(modules={"lab_one": (executed, str(folder / "lab_one.py"))})
    assert manifest.modules == {"lab_one": CHANGED}
    for text in ("x = 2\n", "x = 1\n"):
        write(folder, lab_one=text)
        assert why(manifest) == ["lab_one.py changed"]


def test_code_that_no_import_finds_counts_as_a_file(folder):
    (folder / "elsewhere").mkdir()
    write(folder / "elsewhere", lab_hidden="x = 1\n")
    path = folder / "elsewhere" / "lab_hidden.py"
    manifest = made(modules={"lab_hidden": (sha_of(path), str(path))})
    assert (manifest.modules, manifest.files) == ({}, {str(path): sha_of(path)})
    path.write_text("x = 2\n")
    assert why(manifest) == [f"the file {path} changed"]


# -- distributions


def install(site, version="1.0", text="x = 1\n", distribution="lab-dist"):
    """Write a distribution of one module as an installer does."""
    for old in site.glob("lab_dist-*.dist-info"):
        shutil.rmtree(old)
    info = site / f"lab_dist-{version}.dist-info"
    info.mkdir()
    write(site, lab_dist=text)
    sha = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    )
    (info / "RECORD").write_text(
        f"lab_dist.py,sha256={sha},{len(text)}\n../bin/lab,sha256=x,1\nlab_dist-1.pyc,,\n"
    )


def test_a_distribution_stands_for_its_modules(site):
    install(site)
    manifest = made(packages={"lab_dist": None})
    assert manifest.modules == {"lab_dist": INSTALLED}
    assert manifest.distributions["lab-dist"].startswith("1.0 ")
    assert set(manifest.distributions) == {"lab-dist", "python"}
    assert why(manifest) == []
    install(site, "1.1")
    assert why(manifest) == ["lab-dist 1.1 instead of 1.0"]
    install(site, text="x = 2\n")
    assert why(manifest) == ["the files of lab-dist 1.0 changed"]
    install(site)
    assert why(manifest) == []
    shutil.rmtree(site / "lab_dist-1.0.dist-info")
    assert why(manifest) == ["lab-dist is not installed"]
    (site / "lab_dist.py").unlink()
    assert why(manifest) == ["lab-dist is not installed", "lab_dist is not there"]


def test_a_package_of_several_distributions_has_no_file(site):
    # as `google` and `nvidia`, which torch loads on a GPU
    for number in "12":
        info = site / f"lab_part{number}-1.0.dist-info"
        info.mkdir()
        write(site, **{f"lab_shared__part{number}__init": "x = 1\n"})
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: lab-part{number}\nVersion: 1.0\n"
        )
        (info / "RECORD").write_text(f"lab_shared/part{number}/__init__.py,,\n")
    manifest = made(packages={"lab_shared": None})
    assert manifest.modules == {"lab_shared": INSTALLED}
    assert set(manifest.distributions) == {"lab-part1", "lab-part2", "python"}
    assert why(manifest) == []
    shutil.rmtree(site / "lab_shared")
    assert "lab_shared is not there" in why(manifest)
    for info in site.glob("*.dist-info"):
        shutil.rmtree(info)
    write(site, lab_shared__part1__init="x = 1\n")
    assert "lab_shared changed" in why(manifest)


def test_a_file_that_was_edited_after_the_installation_is_noticed(site):
    install(site)
    manifest = made(packages={"lab_dist": None})
    later = time.time_ns() + 10**10
    os.utime(site / "lab_dist.py", ns=(later, later))
    assert why(manifest) == []  # touched, with the content that RECORD has
    write(site, lab_dist="x = 2\n")
    os.utime(site / "lab_dist.py", ns=(later, later))
    assert why(manifest) == ["the files of lab-dist 1.0 changed"]
    (site / "lab_dist.py").unlink()
    assert why(manifest) == ["the files of lab-dist 1.0 changed", "lab_dist is not there"]


def test_hosts_compare_versions_only(site):
    install(site)
    manifest = made(packages={"lab_dist": None}).across_hosts()
    install(site, text="x = 2\n")
    assert why(manifest) == []


def test_a_module_in_front_of_an_installed_one_is_another(site, folder):
    install(site)
    manifest = made(packages={"lab_dist": None})
    write(folder, lab_dist="x = 2\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        assert why(manifest) == ["lab_dist.py changed"]


def test_code_that_was_read_in_a_working_copy_may_be_installed_since(site, folder):
    write(folder, lab_dist="x = 1\n")
    manifest = made(
        modules={"lab_dist": (sha_of(folder / "lab_dist.py"), str(folder / "lab_dist.py"))}
    )
    (folder / "lab_dist.py").unlink()
    install(site)
    assert why(manifest) == []
    install(site, text="x = 2\n")
    assert why(manifest) == ["lab_dist.py changed"]


def test_an_installed_module_without_a_distribution_is_hashed(site):
    write(site, lab_alone="x = 1\n")
    manifest = made(packages={"lab_alone": None})
    assert set(manifest.distributions) == {"python"}
    assert why(manifest) == []
    write(site, lab_alone="x = 2\n")
    assert why(manifest) == ["lab_alone.py changed"]


# -- files, folders and variables


def test_a_file_in_a_package_has_one_name_wherever_the_package_lies(folder, tmp_path_factory):
    write(folder, lab_pack__init="", lab_pack__sub__init="")
    weights = folder / "lab_pack" / "sub" / "weights.bin"
    weights.write_text("w")
    outside = folder / "table.csv"
    outside.write_text("t")
    manifest = made(files={str(weights): sha_of(weights), str(outside): sha_of(outside)})
    assert set(manifest.files) == {"lab_pack:sub/weights.bin", str(outside)}
    assert why(manifest) == []
    moved = tmp_path_factory.mktemp("moved")
    shutil.move(folder / "lab_pack", moved / "lab_pack")
    assert why(manifest) == ["the file lab_pack:sub/weights.bin is not there"]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(moved))
        assert why(manifest) == []
        (moved / "lab_pack" / "sub" / "weights.bin").write_text("v")
        assert why(manifest) == ["the file lab_pack:sub/weights.bin changed"]


def test_a_file_that_was_not_there_counts_once_it_is(folder):
    file = folder / "settings.ini"
    manifest = made(files={str(file): None})
    assert why(manifest) == []
    file.touch()
    assert why(manifest) == [f"the file {file} was not there"]


def test_a_file_that_changed_between_its_reading_and_the_end_is_never_valid(folder):
    small, large = (folder / name for name in ("small", "large"))
    for file in (small, large):
        file.write_text("before")
    recorded = {str(small): sha_of(small), str(large): read_state(large)}
    assert CHANGED not in made(files=recorded).files.values()
    for file in (small, large):
        file.write_text("after")
    manifest = made(files=recorded)
    assert manifest.files == {str(file): CHANGED for file in (small, large)}
    small.write_text("before")
    assert len(why(manifest)) == 2


def test_names_in_a_folder_that_was_listed_count(folder):
    shelf = folder / "shelf"
    shelf.mkdir()
    (shelf / "a.csv").write_text("1")
    manifest = made(files={str(shelf): folder_digest(shelf)})
    (shelf / "a.csv").write_text("2")
    (shelf / "__pycache__").mkdir()
    assert why(manifest) == []
    (shelf / ".b.csv").touch()
    assert why(manifest) == [f"the file {shelf} changed"]
    shutil.rmtree(shelf)
    assert why(manifest) == [f"the file {shelf} is not there"]


def test_values_of_variables_count(monkeypatch):
    names = ("LAB_SET", "LAB_EMPTY", "LAB_UNSET", "LAB_BYTES")
    for name, value in zip(names, ("one", "", None, "\udcff"), strict=True):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    manifest = made(variables={name: variable(name) for name in names})
    assert len(set(manifest.variables.values())) == 4
    assert why(manifest) == []
    for name, value in zip(names, ("two", None, "", "\udcfe"), strict=True):
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
        assert f"the environment variable {name} has another value" in why(manifest)


def test_what_two_processes_read_otherwise_is_never_valid(folder):
    one, other = ({"variables": {"LAB_SET": each}} for each in ("1", "2"))
    assert why(Present().build([one, other])) == [
        "the environment variable LAB_SET has another value"
    ]


@pytest.mark.parametrize("part", ["modules", "files", "variables", "distributions"])
def test_names_that_nothing_can_have_are_not_there(part):
    """A plugin may open any text, and a manifest may come from elsewhere."""
    for prefix in ("", "a", "a.", "kbench.", "kbench:", "/"):
        for name in ("", "\0", "\ud800", "..", "x" * 5000, "b\n"):
            assert why(Manifest(**{part: {f"{prefix}{name}b": "1"}}))


def test_the_version_of_python_counts(monkeypatch):
    from kbench.planning import current_state

    manifest = made(modules={})
    monkeypatch.setattr(current_state, "python", lambda: "4.0")
    (reason,) = why(manifest)
    assert reason.startswith("python 4.0 instead of 3.")


def test_each_name_is_looked_up_once(folder):
    write(folder, lab_one="x = 1\n")
    manifest = of_modules("lab_one")
    present = Present()
    assert present.why_changed(manifest) == ()
    write(folder, lab_one="x = 2\n")
    assert present.why_changed(manifest) == ()
    assert why(manifest) == ["lab_one.py changed"]


def test_a_manifest_is_built_once_for_tasks_that_report_the_same():
    present, recorded = Present(), [{"packages": {"numpy": None, "sklearn": None}}]
    manifest = present.build(recorded)
    assert present.build(json.loads(json.dumps(recorded))) is manifest
    assert {"numpy", "scikit-learn"} < manifest.distributions.keys()
    assert present.build([{"packages": {"numpy": None}}]) != manifest


def test_an_edit_while_tasks_run_is_noticed_and_forgotten_once_undone(folder):
    write(folder, lab_one="x = 1\n", lab_table="1\n")
    code, table = folder / "lab_one.py", folder / "lab_table.py"
    importlib.invalidate_caches()
    of_code = [{"modules": {"lab_one": (sha_of(code), str(code))}}]
    of_table = [{"files": {str(table): sha_of(table)}}]
    present = Present()
    assert CHANGED not in present.build(of_table).files.values()
    write(folder, lab_one="x = 2\n", lab_table="2\n")
    assert present.build(of_table).files == {str(table): CHANGED}
    assert present.build(of_code).modules == {"lab_one": CHANGED}
    write(folder, lab_one="x = 1\n")
    assert present.build(of_code).modules != {"lab_one": CHANGED}
