"""Verify and load the folder of a model; its code is imported from the verified bytes."""

import hashlib
import importlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import numpy as np

from kbench.errors import ExportError
from kbench_tables.export.model import ARRAYS, FORMAT, OBJECTS, Model

_PACKAGE = re.compile(r"kbench_model_[0-9a-f]{12}")


def open_model(folder: Path, checksum: str | None = None) -> Model:
    """Return the model of a folder that `kbench export` has written.

    All files are compared with the checksums in ``model.json``, and ``model.json`` with
    `checksum`, if there is one. The code of the model then runs in this process.
    """
    listing = folder / "model.json"
    if not listing.is_file():
        raise ExportError(f"{folder} is not a model folder: it has no model.json")
    content = listing.read_bytes()
    if checksum is not None and hashlib.sha256(content).hexdigest() != checksum.lower():
        raise ExportError(f"{listing}: its SHA-256 is not {checksum!r}")
    try:
        facts = json.loads(content)
        package, files, version = facts["package"], facts["files"], facts.get("format")
        listed = {str(name): str(digest) for name, digest in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ExportError(
            f"{listing} does not list the files of a model; `kbench export` writes a valid model "
            "folder"
        ) from None
    if version != FORMAT:
        raise ExportError(
            f"{folder} was written by another version of kbench, in a format that this one does "
            "not read; export the model again"
        )
    if not isinstance(package, str) or not _PACKAGE.fullmatch(package):
        raise ExportError(f"{listing}: {package!r} is not the name of a model's package")
    contents = {name: _verify_file(folder, name, digest) for name, digest in listed.items()}
    code = {name.partition("/")[2]: c for name, c in contents.items() if name.startswith(package)}
    for path in (folder / package).rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in listed and "__pycache__" not in path.parts:
            raise ExportError(f"{folder}: {name} is not one of the exported files")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    sys.meta_path[:] = [f for f in sys.meta_path if getattr(f, "package", None) != package]
    sys.meta_path.insert(0, _Finder(package, code))
    try:
        module = importlib.import_module(f"{package}.kbench_tables.export.model")
        model: Model = module.load_files({name: code[name] for name in (OBJECTS, ARRAYS)}, package)
    except (ValueError, RuntimeError, ImportError, KeyError, AttributeError, TypeError) as error:
        raise ExportError(f"{folder} cannot be loaded: {error}") from error
    return model


def _verify_file(folder: Path, name: str, digest: str) -> bytes:
    path = PurePosixPath(name)
    is_odd = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or not name
    file = folder.joinpath(*path.parts) if not is_odd else folder
    if is_odd or not file.resolve().is_relative_to(folder.resolve()):
        raise ExportError(f"{folder / 'model.json'} lists {name!r}, which is not in the folder")
    if not file.is_file():
        raise ExportError(f"{folder}: {name} is missing")
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise ExportError(f"{folder}: {name} is not the exported file: its SHA-256 differs")
    return content


class _Finder(MetaPathFinder, Loader):
    """Imports the modules of a package from memory."""

    def __init__(self, package: str, code: Mapping[str, bytes]) -> None:
        self.package, self._code = package, code

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self.package:
            return None
        name, is_package = self._file(fullname)
        if name not in self._code:
            raise ModuleNotFoundError(f"the model has no module {fullname!r}", name=fullname)
        return spec_from_loader(fullname, self, origin=name, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        name, _ = self._file(module.__name__)
        module.__file__ = f"<{self.package}>/{name}"
        exec(compile(self._code[name], module.__file__, "exec"), module.__dict__)

    def _file(self, fullname: str) -> tuple[str, bool]:
        inner = fullname.partition(".")[2].replace(".", "/")
        init = f"{inner}/__init__.py" if inner else "__init__.py"
        return (init, True) if init in self._code else (f"{inner}.py", False)


_TRIAL = """
import importlib, json, sys, time

task = json.load(sys.stdin)
allowed = {*task["allowed"], *sys.stdlib_module_names, task["package"]}


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"{name} is not among the requirements", name=name)


sys.meta_path.insert(0, Blocker())
sys.path.insert(0, task["folder"])
import joblib
import numpy as np

try:
    model = importlib.import_module(task["package"]).load()
    X = joblib.load(task["inputs"])
    answers = {name: model.predict_encoded(X, name) for name in task["methods"]}
    rows = task["rows"] or X[:1000]
    if task["rows"]:
        answers["rows"] = model.predict(rows)
    size = len(task["rows"]) or X.shape[0]
    latency = {}
    for batch in (1, 1000):
        times = []
        started = time.perf_counter()
        while len(times) < 5 or (time.perf_counter() - started < 0.5 and len(times) < 200):
            first = len(times) % max(size - batch + 1, 1)
            part = rows[first : first + batch]
            n = min(batch, size - first)
            start = time.perf_counter()
            model.predict(part)
            times.append((time.perf_counter() - start) / n)
        latency[str(batch)] = sorted(times)[len(times) // 2]
except Exception as error:
    print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
    sys.exit()
np.savez(task["answers"], **answers)
print(json.dumps({"latency": latency, "rows": size}))
"""


def try_out(
    folder: Path,
    package: str,
    X: Any,
    rows: list[dict[str, object]],
    methods: Iterable[str],
    requirements: Iterable[str],
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Return the predictions of a model in a new process, and its seconds per row by batch size.

    Only the standard library, `requirements` and their dependencies can be imported there.
    """
    import joblib

    with tempfile.TemporaryDirectory() as scratch:
        inputs, answers = Path(scratch) / "inputs.joblib", Path(scratch) / "answers.npz"
        joblib.dump(X, inputs)
        task = {
            "folder": str(folder),
            "package": package,
            "allowed": sorted(_list_modules(requirements)),
            "inputs": str(inputs),
            "rows": rows,
            "methods": list(methods),
            "answers": str(answers),
        }
        # -I: neither environment variables nor the current folder; -B: no files in the package
        done = subprocess.run(
            [sys.executable, "-I", "-B", "-W", "ignore", "-c", _TRIAL],
            input=json.dumps(task),
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            answer = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            answer = {"error": last}
        if "error" in answer:
            raise ExportError(
                f"the model cannot be used with {', '.join(requirements)} alone: {answer['error']}"
            )
        with np.load(answers, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}, answer["latency"]


def _list_modules(requirements: Iterable[str]) -> set[str]:
    tops: dict[str, set[str]] = {}
    for top, owners in metadata.packages_distributions().items():
        for owner in owners:
            tops.setdefault(_canonical(owner), set()).add(top)
    waiting, names = [_canonical(r.partition("==")[0]) for r in requirements], set[str]()
    while waiting:
        name = waiting.pop()
        if name in names:
            continue
        names.add(name)
        try:
            required = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        lines = [line for line in required if "extra ==" not in line.replace("extra==", "extra ==")]
        waiting += [_canonical(re.split(r"[\s<>=!~;\[(]", line, maxsplit=1)[0]) for line in lines]
    return {top for name in names for top in tops.get(name, ())}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
