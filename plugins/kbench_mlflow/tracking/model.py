"""A fitted pipeline as an MLflow model in a folder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kbench.errors import StoreError
from kbench_mlflow.tracking.connection import QUIET_DEFAULTS, one_line, quiet


def save_model(pipeline: Any, folder: Path, example: Any, requirements: Sequence[str]) -> None:
    """Save a fitted pipeline as an MLflow model with signature and input example.

    It is loaded with ``mlflow.sklearn.load_model(folder)``, or served with
    ``mlflow models serve -m folder``. MLflow pickles it: load only what you trust.
    The folder must not exist; `example` are a few rows as the pipeline takes
    them, `requirements` packages for pip. A `StoreError` says why MLflow cannot
    save it.
    """
    for name, value in QUIET_DEFAULTS.items():
        os.environ.setdefault(name, value)
    with quiet(), warnings.catch_warnings(action="ignore"):
        import mlflow.sklearn
        from mlflow.models import infer_signature
    # MLflow's import sets the levels of its loggers, so they are silenced again
    with quiet(), warnings.catch_warnings(action="ignore"):
        try:
            mlflow.sklearn.save_model(
                pipeline,
                str(folder),
                signature=infer_signature(example, pipeline.predict(example)),
                input_example=example,
                pip_requirements=list(requirements),
                serialization_format="cloudpickle",
            )
        except Exception as error:  # errors of MLflow have no common base
            raise StoreError(f"MLflow cannot save this model: {one_line(error)}") from error
