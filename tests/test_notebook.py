"""The notebook of the documentation: it runs, and its kept outputs are those of its code.

With KBENCH_TEST_NOTEBOOK=FILE the executed notebook is written to FILE, to be kept.
"""

import json
import os
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "docs" / "tutorial.ipynb"


def cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def forms(cell):
    """Return the kinds of a cell's outputs, each with its forms."""
    return [
        (output["output_type"], output.get("name", ""), sorted(output.get("data", ())))
        for output in cell["outputs"]
    ]


def test_outputs_are_kept_and_none_is_an_error():
    kept = cells(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    assert all(cell["outputs"] for cell in kept)
    kinds = {(kind, name) for cell in kept for kind, name, _ in forms(cell)}
    assert kinds <= {("display_data", ""), ("execute_result", ""), ("stream", "stdout")}
    assert "/tmp/" not in NOTEBOOK.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_notebook_runs_anew_and_shows_the_same_kinds_of_outputs(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    monkeypatch.setenv("KBENCH_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("KBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("KBENCH_OFFLINE", "1")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    kept = [forms(cell) for cell in cells(notebook)]
    resources = {"metadata": {"path": str(tmp_path)}}
    # raises at the first cell that does
    client(notebook, timeout=1200, kernel_name="python3", resources=resources).execute()
    if file := os.environ.get("KBENCH_TEST_NOTEBOOK"):
        nbformat.write(notebook, file)
        return
    assert [forms(cell) for cell in cells(notebook)] == kept
