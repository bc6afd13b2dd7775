"""What the results of compiled maps depend on."""

import pytest

import kbench
from kbench.machine import machine_id
from kbench.storage.journal import Journal, state_folder

SUITE = """
datasets = ["iris"]
feature_maps = ["nbcs-rotated"]
learners = ["ridge"]
protocol = { n_folds = 2, inner_folds = 2 }
"""


@pytest.mark.slow
def test_compiled_code_does_not_depend_on_what_numba_looks_at(tmp_path):
    """Numba asks all distributions for extensions when it compiles for the first time."""
    (tmp_path / "compiled.toml").write_text(SUITE)
    results = kbench.run_suite(tmp_path / "compiled.toml", n_splits=1, progress=False)
    assert len(results)
    text = Journal(state_folder(machine_id()) / "journal.jsonl").path.read_text()
    manifest = next(line for line in text.splitlines() if '"kind":"manifest"' in line)
    assert '"numba"' in manifest
    assert '"pytest"' not in manifest
