"""Arrays that grow in memory and in files."""

import numpy as np
import pytest

from kbench import DatasetError
from kbench.tables import limits
from kbench.tables.limits import GrowingArray, spilling_to


class Folder:
    def __init__(self, folder):
        self.folder, self.files = folder, []

    def new_file(self):
        self.files.append(self.folder / f"{len(self.files)}.npy")
        return self.files[-1]

    def refusal(self, error):
        return DatasetError(f"refused: {error.strerror}")


def grown(dtype, width, blocks):
    rows = GrowingArray(dtype, width)
    for block in blocks:
        rows.append(block)
    return rows.array()


@pytest.mark.parametrize("width", [None, 3])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_arrays_in_files_equal_those_in_memory(tmp_path, monkeypatch, width, dtype):
    monkeypatch.setattr(limits, "SPILL", 100)
    shape = () if width is None else (width,)
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(n, *shape)) * 9 for n in (4, 0, 2000, 7)]
    plain = grown(dtype, width, blocks)
    folder = Folder(tmp_path)
    with spilling_to(folder):
        in_file = grown(dtype, width, blocks)
    assert len(folder.files) == 1
    assert (in_file.dtype, in_file.shape) == (plain.dtype, plain.shape) == (dtype, (2011, *shape))
    np.testing.assert_array_equal(in_file, plain)
    np.testing.assert_array_equal(np.load(folder.files[0]), plain)
    assert type(in_file) is np.ndarray
    assert not in_file.flags.writeable


def test_small_arrays_stay_in_memory(tmp_path):
    folder = Folder(tmp_path)
    with spilling_to(folder):
        assert grown("float64", 2, [np.ones((5, 2))]).flags.writeable
        assert grown("float64", 2, []).shape == (0, 2)
    assert folder.files == []


def test_a_folder_that_is_gone_is_refused_by_its_owner(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "SPILL", 1)
    with (
        spilling_to(Folder(tmp_path / "none")),
        pytest.raises(DatasetError, match="refused: No such file or directory"),
    ):
        grown("float64", None, [np.ones(3)])
