"""A trial of an exported model in a fresh process that has only the packages it names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from kbench.errors import ExportError

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
import numpy as np

try:
    model = importlib.import_module(task["package"]).load()
    if task["sparse"]:
        import scipy.sparse

        X = scipy.sparse.load_npz(task["inputs"])
    else:
        X = np.load(task["inputs"], allow_pickle=False)
    answers = {name: model.of_encoded(X, name) for name in task["methods"]}
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
    rows: list[dict[str, Any]],
    methods: Iterable[str],
    requirements: Iterable[str],
    scratch: Path,
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Return what a model answers in a fresh process, and its seconds per row by batch size.

    Nothing can be imported there but the standard library and `requirements` with what these
    require. `scratch` is a folder for files.

    Raises
    ------
    ExportError
        The model cannot be loaded there.
    """
    is_sparse = hasattr(X, "indptr")
    inputs, answers = scratch / "inputs", scratch / "answers.npz"
    if is_sparse:
        import scipy.sparse

        inputs = inputs.with_suffix(".npz")
        scipy.sparse.save_npz(inputs, X, compressed=False)
    else:
        inputs = inputs.with_suffix(".npy")
        np.save(inputs, X, allow_pickle=False)
    task = {
        "folder": str(folder),
        "package": package,
        "allowed": sorted(_modules_of(requirements)),
        "inputs": str(inputs),
        "sparse": is_sparse,
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
    inputs.unlink()
    try:
        said = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        said = {"error": last}
    if "error" in said:
        raise ExportError(
            f"the model cannot be used with {', '.join(requirements)} alone: {said['error']}; "
            "--format joblib saves it for an environment with the same packages"
        )
    with np.load(answers, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}, said["latency"]


def _modules_of(requirements: Iterable[str]) -> set[str]:
    """Return the top-level modules of distributions and of those that they require."""
    tops: dict[str, set[str]] = {}
    for top, owners in metadata.packages_distributions().items():
        for owner in owners:
            tops.setdefault(_canonical(owner), set()).add(top)
    waiting, known = [_canonical(r.partition("==")[0]) for r in requirements], set[str]()
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        known.add(name)
        try:
            required = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        lines = [line for line in required if "extra ==" not in line.replace("extra==", "extra ==")]
        waiting += [_canonical(re.split(r"[\s<>=!~;\[(]", line, maxsplit=1)[0]) for line in lines]
    return {top for name in known for top in tops.get(name, ())}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
