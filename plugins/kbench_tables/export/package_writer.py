"""The folder of a model that needs numpy, scipy and scikit-learn, but not kbench."""

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from kbench.errors import ExportError
from kbench.features import import_registry
from kbench.records import Cell
from kbench_tables.export import bundle_code, plain_objects
from kbench_tables.export.fit import Fitted
from kbench_tables.export.model import ARRAYS, OBJECTS, Facts, Model, encoded_answers, versions

# Number of synthetic rows that a model predicts when it is loaded.
TRIAL_ROWS = 8

# Parameters of a dataset that describe the format of a text file, with their default values.
DIALECT = {
    "delimiter": ",",
    "decimal": ".",
    "thousands": "",
    "encoding": "utf-8",
    "na_values": (),
    "keep_totals": False,
}

_INIT = '''"""{title}: a model that kbench has exported. `load` returns it."""

from pathlib import Path

from .kbench_tables.export.model import Model, load_folder

CHECKSUMS = {checksums}


def load() -> Model:
    """Return the model; its data are compared with `CHECKSUMS`."""
    return load_folder(Path(__file__).parent, __name__, CHECKSUMS)
'''
_SCRIPT = '''"""Predict the rows of a CSV file: python predict.py FILE -o FILE; see --help."""

import sys

from {package} import load
from {package}.{module} import {reader}
from {package}.kbench_tables.export.predicting import main

if __name__ == "__main__":
    sys.exit(main(load, {reader}))
'''


def package_name(checksum: str, key: str) -> str:
    """Return the name of a model's package: one for each cell and its data.

    >>> package_name("ab", "cd")
    'kbench_model_b09c5477abec'
    """
    return "kbench_model_" + hashlib.sha256(f"{checksum} {key}".encode()).hexdigest()[:12]


def write_package(
    folder: Path, package: str, cell: Cell, fitted: Fitted, owners: Mapping[str, str]
) -> Facts:
    """Write the package of a model, its script and its requirements; return facts about them.

    `owners` has the distributions of plugins by their top-level modules.
    """
    names: set[str] = set()

    def own(module: str) -> str | None:
        if module.partition(".")[0] not in {*owners, *bundle_code.OWN}:
            return None
        names.add(module)
        return f".{module}"

    facts = {
        "cell": cell.name,
        "task": fitted.dataset.task,
        "columns": _describe_columns(fitted),
        "dialect": _dialect(cell),
        "target_column": cell.dataset.params.get("target"),
        "left_out": list(cell.dataset.params.get("drop", ())),
        "takes_missing": cell.protocol.missing in ("impute", "impute_with_indicators"),
        "versions": versions(),
    }
    model = Model(fitted.pipeline, facts, fitted.intervals)
    trial = _trial(fitted.dataset.X)
    parts = {
        "pipeline": fitted.pipeline,
        "intervals": fitted.intervals,
        "trial": trial,
        "answers": encoded_answers(model, trial),
    }
    try:
        written, arrays = plain_objects.dump(parts, own)
    except plain_objects.NotPlainError as error:
        raise ExportError(f"this model cannot be saved without pickle: {error}") from error
    sources = import_registry().all("dataset").values()
    module, _, reader = next(s.text_blocks for s in sources if s.text_blocks).partition(":")
    code = bundle_code.collect_code({*names, module}, {*owners, module.partition(".")[0]})
    facts["needed"] = list(code.needed)
    target = folder / package
    for path, content in code.files.items():
        _write(target / path, content)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    document = json.dumps({"facts": facts, "model": written}, separators=(",", ":"))
    data = {OBJECTS: document.encode(), ARRAYS: buffer.getvalue()}
    for name, content in data.items():
        _write(target / name, content)
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in data.items()}
    title = "".join(c for c in cell.name if c.isprintable() and c not in '"\\')
    init = _INIT.format(title=title, checksums=json.dumps(checksums, indent=4))
    _write(target / "__init__.py", init.encode())
    _write(
        folder / "predict.py",
        _SCRIPT.format(package=package, module=module, reader=reader).encode(),
    )
    requirements = _requirements(code)
    _write(folder / "requirements.txt", "".join(f"{r}\n" for r in requirements).encode())
    return {
        "package": package,
        "requirements": requirements,
        "optional": list(code.optional),
        "licences": dict(_licences(target, code, owners)),
        "versions": facts["versions"],
        "columns_named": model.encoder is not None,
        "has_probabilities": model.has_probabilities,
    }


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _requirements(code: bundle_code.Code) -> list[str]:
    owners = metadata.packages_distributions()
    names = ["numpy", "scipy", "scikit-learn"]
    names += [owners[top][0] if top in owners else top for top in code.needed]
    return [f"{name}=={metadata.version(name)}" for name in names]


def _licences(
    target: Path, code: bundle_code.Code, owners: Mapping[str, str]
) -> Iterator[tuple[str, Facts]]:
    """Write the licence files of all distributions of the code; yield their names."""
    tops = {path.partition("/")[0].removesuffix(".py") for path in code.files}
    distributions = {*code.distributions, *(owners[top] for top in tops if top in owners)}
    for name in sorted(distributions - {"unknown", ""}):
        texts = bundle_code.license_files(name)
        for file, content in texts.items():
            _write(target / "LICENSES" / name / file, content)
        yield name, {"licence": bundle_code.license_expression(name), "files": sorted(texts)}


def _dialect(cell: Cell) -> Facts:
    params = {**cell.dataset.params}
    return {
        name: list(params.get(name, value)) if name == "na_values" else params.get(name, value)
        for name, value in DIALECT.items()
    }


def _describe_columns(fitted: Fitted) -> Facts:
    encoder = fitted.pipeline.named_steps.get("encode")
    if encoder is None:
        return {}
    X, categories = fitted.dataset.X, dict(encoder.columns)
    seen = {}
    for name, place in encoder.places().items():
        first = np.asarray(X[:, place.start], dtype=np.float64)
        present, is_codes = first[~np.isnan(first)], name in encoder.coded
        kind = "codes" if is_codes else "number" if categories[name] is None else "indicators"
        has_range = kind == "number" and len(present)
        seen[name] = {
            "kind": kind,
            "low": float(present.min()) if has_range else None,
            "high": float(present.max()) if has_range else None,
            "missing": len(present) < len(first),
        }
    return seen


def _trial(X: Any) -> Any:
    """Return synthetic rows between the smallest and the largest values of the columns."""
    if hasattr(X, "indptr"):
        low, high = X.min(axis=0).toarray()[0], X.max(axis=0).toarray()[0]
    else:
        with np.errstate(all="ignore"):
            low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    low, high = (np.nan_to_num(np.asarray(end, dtype=np.float64)) for end in (low, high))
    steps = (np.arange(TRIAL_ROWS)[:, None] * (1 + np.arange(len(low)) % 7)) % TRIAL_ROWS
    rows = low + (high - low) * steps / (TRIAL_ROWS - 1)
    whole = np.all(
        np.equal(np.mod(X[:100].toarray() if hasattr(X, "indptr") else X[:100], 1), 0), axis=0
    )
    rows[:, whole] = np.round(rows[:, whole])
    if hasattr(X, "indptr"):
        from scipy.sparse import csr_matrix

        return csr_matrix(rows)
    return rows


def hash_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of all files of a folder, by their paths in it."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
