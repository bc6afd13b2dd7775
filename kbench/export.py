"""A cell becomes a model to use: searched and fitted on all rows, saved, loaded, compared.

The pipeline takes the table as its user has it; see `kbench.exported`.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import kbench
from kbench import search as searches
from kbench import task
from kbench.errors import DatasetError, ExportError
from kbench.preprocessing import missing_rows, refuse_missing
from kbench.records import Cell, Dataset, Ref
from kbench.registry import Registry, how_to_get
from kbench.results import Row
from kbench.splits import derive_seed

FORMATS = ("skops", "joblib")
TRUST = (
    "A model file can run code while it is loaded. Load only files that you or people you trust "
    "have written; skops loads no type that is not named, joblib loads whatever is there."
)
EXAMPLE_ROWS = 5

# as a 64-bit number is written
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class Fitted:
    """A pipeline that was fitted on all rows of a dataset.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        From the user's columns to the names of classes.
    table : DataFrame, ndarray or CSR matrix
        All rows as the pipeline takes them.
    dataset : Dataset
        In canonical form.
    chosen : mapping
        The parameters that the search on all rows chose.
    raw : bool
        Whether `table` was read from the user's own file.
    """

    pipeline: Any
    table: Any
    dataset: Dataset
    chosen: Mapping[str, Any]
    raw: bool


def check_format(form: str) -> None:
    """Refuse a format whose package is not installed, before anything is fitted.

    Raises
    ------
    ExportError
        Says what to install.
    """
    if form not in FORMATS:
        raise ExportError(f"no format is called {form!r}; there are: {', '.join(FORMATS)}")
    if form == "skops":
        try:
            import skops.io  # noqa: F401
        except ModuleNotFoundError as error:
            raise ExportError(
                f"--format skops needs the package 'skops'{how_to_get('skops')}; "
                "--format joblib needs nothing"
            ) from error


def refit(cell: Cell, dataset: Dataset, registry: Registry) -> Fitted:
    """Search and fit the method of a cell on all rows of its dataset.

    Parameters
    ----------
    cell : Cell
        Its map, learner and protocol.
    dataset : Dataset
        In canonical form.
    registry : Registry

    Returns
    -------
    Fitted

    Raises
    ------
    DatasetError
        The inputs are a Gram matrix, or values are missing that the protocol
        does not say how to treat.
    """
    from sklearn.pipeline import Pipeline
    from threadpoolctl import threadpool_limits

    from kbench.exported import NamedClasses, Prepared, TableEncoder

    if dataset.pairwise:
        raise DatasetError(
            f"{dataset.name} is a Gram matrix: a model of it has no inputs that could be given"
        )
    protocol = cell.protocol
    if protocol.missing == "error":
        refuse_missing(dataset)
    X, y = dataset.X, np.asarray(dataset.y)
    if protocol.missing == "drop_rows":
        kept = np.flatnonzero(~missing_rows(X))
        own = dataset.row_ids if dataset.row_ids is not None else np.arange(len(y))
        dataset = replace(dataset, X=X[kept], y=y[kept], row_ids=own[kept], splits=())
        X, y = dataset.X, dataset.y
    impute = list(dataset.feature_kinds) if protocol.missing == "impute" else None
    data = searches.Data(X, y, None, impute)
    map_ = task.map_side(cell.feature_map, registry)["feature_map"]
    learner_ = task.learner_side(cell.learner, registry)["learner"]
    seed = derive_seed(protocol.seed, dataset.checksum, "export")
    with threadpool_limits(limits=protocol.threads):
        best = searches.search(map_, learner_, data, protocol, seed).best
        prepared = Prepared(best.preprocess, map_.requires, impute).fit(data.X)
        inputs = prepared.transform(data.X)
        feature_map = searches.fit_map(
            map_.build(best.feature_map, derive_seed(seed, "map")),
            map_.supervised,
            inputs,
            data.y,
            None,
        )
        learner = learner_.build(best.learner, derive_seed(seed, "learner"))
        classes = NamedClasses(learner, _typed(dataset.target_names))
        # what its own fit would do, with the very estimator that was fitted
        classes.estimator_ = learner.fit(feature_map.transform(inputs), data.y)
    steps = [("prepare", prepared), ("feature_map", feature_map), ("learner", classes)]
    table: Any = X
    raw = None
    if not hasattr(X, "indptr"):
        raw = raw_table(cell, dataset)
        columns = columns_of(dataset, None if raw is None else [str(c) for c in raw.columns])
        steps.insert(0, ("encode", TableEncoder(columns)))
        table = _decoded(dataset, columns) if raw is None else raw
    chosen = {name: getattr(value, "label", value) for name, value in best.params.items()}
    return Fitted(Pipeline(steps), table, dataset, chosen, raw is not None)


def read_table(ref: Ref) -> Any:
    """Read a user's own table as its user would; None for other datasets."""
    import pandas

    params = ref.params
    if ref.name == "csv":
        frame = pandas.read_csv(
            params["path"],
            sep=params.get("delimiter", ","),
            index_col=False,
            na_values=["?"],
            skipinitialspace=True,
            low_memory=False,
        )
    elif ref.name == "parquet":
        frame = pandas.read_parquet(params["path"])
    else:
        return None
    frame.columns = [str(name) for name in frame.columns]
    return frame


def raw_table(cell: Cell, dataset: Dataset) -> Any:
    """Return the rows and columns of a user's own table; None for other datasets."""
    frame, params = read_table(cell.dataset), cell.dataset.params
    if frame is None:
        return None
    rows = dataset.row_ids if dataset.row_ids is not None else np.arange(len(dataset.y))
    left_out = {params["target"], *params.get("ignore", ())}
    return frame.iloc[rows].drop(columns=list(left_out)).reset_index(drop=True)


def columns_of(
    dataset: Dataset, header: Sequence[str] | None = None
) -> list[tuple[str, list[str] | None]]:
    """Return the columns of the table that a dataset was made of, by its feature names.

    Parameters
    ----------
    dataset : Dataset
        Nominal features are called ``column=category``.
    header : sequence of str, optional
        Names of the columns in their order, where they are known; otherwise
        the column's name ends at the first ``=``.

    Returns
    -------
    list of (str, list of str or None)
        As `kbench.exported.TableEncoder` takes them.
    """
    names, kinds = list(dataset.feature_names), list(dataset.feature_kinds)
    known = iter(header) if header is not None else None
    columns: list[tuple[str, list[str] | None]] = []
    at = 0
    while at < len(names):
        column = next(known, names[at]) if known is not None else names[at]
        if kinds[at] == "numeric":
            columns.append((column, None))
            at += 1
            continue
        if known is None:
            column = names[at].partition("=")[0]
        start = f"{column}="
        categories = []
        while at < len(names) and kinds[at] == "nominal" and names[at].startswith(start):
            categories.append(names[at].removeprefix(start))
            at += 1
        if not categories:  # an indicator that is a column of its own
            columns.append((names[at], None))
            at += 1
        else:
            columns.append((column, categories))
    return columns


def _decoded(dataset: Dataset, columns: Sequence[tuple[str, Sequence[str] | None]]) -> Any:
    """Write a dataset as the table that it was made of."""
    import pandas

    X = np.asarray(dataset.X)
    found: dict[str, Any] = {}
    at = 0
    for name, categories in columns:
        if categories is None:
            found[name] = X[:, at]
            at += 1
            continue
        block = X[:, at : at + len(categories)]
        at += len(categories)
        named = np.array([*categories, None], dtype=object)
        codes = np.where(
            np.isnan(block).any(axis=1), len(categories), np.nan_to_num(block).argmax(1)
        )
        found[name] = named[codes]
    return pandas.DataFrame(found)


def _typed(names: Sequence[str]) -> np.ndarray:
    """Return class names as a table's user knows them: whole numbers and truth values too."""
    if all(_WHOLE.fullmatch(name) for name in names):
        return np.array([int(name) for name in names])
    if set(names) <= {"False", "True"}:
        return np.array([name == "True" for name in names])
    return np.array(names)


# ---------------------------------------------------------------------------
# The folder
# ---------------------------------------------------------------------------


def write(
    folder: Path, cell: Cell, key: str, fitted: Fitted, row: Row | None, form: str, mlflow: bool
) -> int:
    """Save a fitted pipeline with its card, load it again, compare its predictions.

    The folder is written under another name and renamed: it is there as a
    whole or not at all.

    Parameters
    ----------
    folder : Path
        Must not exist.
    cell : Cell
    key : str
        Its cell key.
    fitted : Fitted
    row : dict or None
        Its results row, where it was measured.
    form : {"skops", "joblib"}
    mlflow : bool
        Save it as an MLflow model too.

    Returns
    -------
    int
        Number of rows on which the loaded model predicts the same.

    Raises
    ------
    ExportError
        The folder cannot be written, or the loaded model predicts otherwise.
    """
    refuse_existing(folder)
    temporary = folder.absolute().with_name(f".{folder.name}-{secrets.token_hex(4)}")
    try:
        temporary.mkdir(parents=True)
        file = temporary / f"model.{form}"
        expected = _answers(fitted.pipeline, fitted.table)
        trusted = _dump(fitted.pipeline, file, form)
        loaded = _load(file, form, trusted)
        _compare(expected, _answers(loaded, fitted.table), form)
        _compare_with_canonical(fitted, expected["predict"])
        if mlflow:
            from kbench.tracking.model import save_model

            example = fitted.table[:EXAMPLE_ROWS]
            save_model(fitted.pipeline, temporary / "mlflow", example, _requirements())
        facts = _facts(cell, key, fitted, row, file, trusted)
        (temporary / "model.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
        (temporary / "README.md").write_text(_card(facts, fitted, mlflow), "utf-8")
        temporary.rename(folder.absolute())
    except OSError as error:
        raise ExportError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return len(fitted.dataset.y)


def refuse_existing(folder: Path) -> None:
    """Raise where something is in the way of a folder: nothing is ever overwritten."""
    if folder.exists() or folder.is_symlink():
        raise ExportError(f"-o {folder}: it exists; name another folder, or remove it first")


def _dump(pipeline: Any, file: Path, form: str) -> list[str]:
    """Write a pipeline; return the types that skops must be told to trust."""
    if form == "joblib":
        import joblib

        joblib.dump(pipeline, file, compress=3)
        return []
    import skops.io

    try:
        skops.io.dump(pipeline, file)
        return sorted(skops.io.get_untrusted_types(file=file))
    except Exception as error:  # what skops cannot take apart has no common base
        first = str(error).strip().splitlines()
        raise ExportError(
            f"skops cannot save this model: {first[0] if first else type(error).__name__}; "
            "--format joblib can"
        ) from error


def _load(file: Path, form: str, trusted: Sequence[str]) -> Any:
    if form == "joblib":
        import joblib

        return joblib.load(file)
    import skops.io

    return skops.io.load(file, trusted=list(trusted))


def _answers(pipeline: Any, table: Any) -> dict[str, np.ndarray]:
    names = ("predict", "predict_proba", "decision_function")
    return {
        name: np.asarray(getattr(pipeline, name)(table))
        for name in names
        if hasattr(pipeline, name)
    }


def _compare(
    expected: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray], form: str
) -> None:
    same = expected.keys() == found.keys() and all(
        np.array_equal(expected[name], found[name], equal_nan=expected[name].dtype.kind == "f")
        for name in expected
    )
    if not same:
        raise ExportError(f"the model predicts otherwise once it is loaded from {form}")


def _compare_with_canonical(fitted: Fitted, predicted: np.ndarray) -> None:
    """Make sure that the encoder gives what the method was fitted on."""
    steps = fitted.pipeline[1:] if "encode" in fitted.pipeline.named_steps else fitted.pipeline
    if not np.array_equal(steps.predict(fitted.dataset.X), predicted):
        raise ExportError("the table does not give the inputs on which the method was measured")


def _requirements() -> list[str]:
    names = ("kbench-core", "scikit-learn", "numpy", "scipy", "pandas")
    return [f"{name}=={metadata.version(name)}" for name in names]


def _facts(
    cell: Cell, key: str, fitted: Fitted, row: Row | None, file: Path, trusted: list[str]
) -> dict[str, Any]:
    dataset = fitted.dataset
    return {
        "cell": cell.name,
        "cell_key": key,
        "feature_map": cell.feature_map.label,
        "learner": cell.learner.label,
        "chosen": {name: _plain(value) for name, value in fitted.chosen.items()},
        "dataset": cell.dataset.label,
        "dataset_source": dataset.source,
        "dataset_checksum": dataset.checksum,
        "n_rows": len(dataset.y),
        "classes": [each.item() for each in _typed(dataset.target_names)],
        "measured": row
        and {
            name: row[name]
            for name in ("accuracy", "accuracy_sd", "n_splits_done", "fit_time_s", "predict_time_s")
        },
        "file": file.name,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "trusted": trusted,
        "requirements": _requirements(),
        "kbench": kbench.__version__,
        "written": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _card(facts: Mapping[str, Any], fitted: Fitted, mlflow: bool) -> str:
    """Write the model's card."""
    measured = facts["measured"]
    accuracy = "not measured: `kbench suite` or `kbench run` has not computed this cell here"
    if measured and measured["accuracy"] is not None:
        spread = measured["accuracy_sd"]
        accuracy = f"{measured['accuracy']:.4f}"
        accuracy += "" if spread is None else f" ± {spread:.4f}"
        accuracy += (
            f", mean{'' if spread is None else ' and standard deviation'} over "
            f"{measured['n_splits_done']} splits; this model was then fitted on all rows"
        )
    if facts["file"].endswith("skops"):
        load = "\n".join(
            [
                "import skops.io",
                "",
                "# the types in the file beside scikit-learn's: look through them first",
                f"trusted = {json.dumps(facts['trusted'], indent=4)}",
                f'model = skops.io.load("{facts["file"]}", trusted=trusted)',
            ]
        )
    else:
        load = f'import joblib\n\nmodel = joblib.load("{facts["file"]}")'
    chosen = "\n".join(f"- {_text(k)}: {_text(v)}" for k, v in facts["chosen"].items())
    served = "\n`mlflow/` is the same as an MLflow model.\n" if mlflow else ""
    return f"""# {_text(facts["cell"])}

Exported by kbench {facts["kbench"]} on {facts["written"]}.

**{TRUST}**

```python
{load}
model.predict(table)  # names of classes
```
{served}
## Input

{_input(fitted)}

## What it is

- accuracy: {accuracy}
- data: {_text(facts["dataset_source"] or facts["dataset"])}, {facts["n_rows"]} rows,
  checksum `{facts["dataset_checksum"]}`
- classes: {_text(", ".join(map(str, facts["classes"][:20])))}
- cell key: `{facts["cell_key"]}`
- `{facts["file"]}`: SHA-256 `{facts["sha256"]}`

Chosen by inner cross-validation on all rows:

{chosen}

## Needs

{", ".join(facts["requirements"])}, and the plugins of its feature map and learner.
"""


def _input(fitted: Fitted) -> str:
    encoder = fitted.pipeline.named_steps.get("encode")
    if encoder is None:
        return (
            f"A sparse matrix with {fitted.dataset.X.shape[1]} columns, in the order of the file."
        )
    lines = [
        "A pandas data frame with these columns, in any order. Values may be missing only where",
        "the protocol says what to do with them; a category that is not listed is none of them.",
        "",
    ]
    for name, categories in encoder.columns[:100]:
        what = "number" if categories is None else "one of " + ", ".join(categories[:20])
        lines.append(f"- {_code(name)}: {_text(what)}")
    if len(encoder.columns) > 100:
        lines.append(f"- and {len(encoder.columns) - 100} more, in `model.json` of the encoder")
    return "\n".join(lines)


def _code(value: Any) -> str:
    """Write untrusted text as Markdown code, between more backticks than it has itself."""
    text = " ".join(str(value).split())
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}" if text else "(no name)"


def _text(value: Any) -> str:
    """Write untrusted text as Markdown that shows it."""
    text = " ".join(str(value).split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|!" else sign for sign in text)
