"""Commands that are killed leave nothing that is taken for results, and run again."""

import os
import time
from pathlib import Path

import pytest

from kbench_sharing import added_bundles, repository, site, zip_file
from kbench_sharing.reading import parse_bundle
from tests.support.bundles import files, known
from tests.support.kills import killed_at

N_CELLS = len(known().cells)


@pytest.fixture(scope="module")
def bundle():
    return parse_bundle(files(author="Ada"))


@pytest.fixture
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("KBENCH_STATE_DIR", str(tmp_path / "state"))


@pytest.mark.parametrize("moment", [(os, "fsync"), (Path, "replace")], ids=["writing", "renaming"])
def test_add(moment, bundle, own_state):
    killed_at(lambda: added_bundles.keep(bundle), *moment, 1)
    assert added_bundles._files() == []
    assert list(added_bundles.bundles_of_suite("shared", pytest.fail)) == []
    path, is_new = added_bundles.keep(bundle)
    assert is_new
    assert added_bundles.find(path.stem).id == bundle.id


@pytest.mark.parametrize("n", [1, 3, N_CELLS])
@pytest.mark.parametrize("moment", ["write_bytes", "rename"])
def test_publish(moment, n, bundle, tmp_path):
    repo = tmp_path / "repo"
    killed_at(lambda: repository.publish(bundle, repo), Path, moment, n)
    n_there = n - 1 if moment == "rename" else 0
    if n_there:
        assert repository.problems(repo) == (n_there, [])
    else:
        assert not list(repo.glob("results/**/*.jsonl"))
    done = repository.publish(bundle, repo)
    assert (done.n_new, done.n_kept) == (N_CELLS - n_there, n_there)
    assert repository.problems(repo) == (N_CELLS, [])


def test_what_a_killed_publish_left_is_removed_by_a_later_one(bundle, tmp_path):
    repo = tmp_path / "repo"
    killed_at(lambda: repository.publish(bundle, repo), Path, "rename", 2)
    (left,) = repo.glob(".kbench-*")
    repository.publish(bundle, repo)
    assert left.exists()  # another command may be at work
    long_ago = time.time() - 7200
    os.utime(left, (long_ago, long_ago))
    repository.publish(bundle, repo)
    assert not list(repo.glob(".kbench-*"))


@pytest.mark.parametrize("n", [1, 4])
def test_a_folder_of_a_bundle(n, bundle, tmp_path):
    killed_at(lambda: zip_file.write(tmp_path / "b", bundle.files), Path, "replace", n)
    assert not (tmp_path / "b").exists()
    zip_file.write(tmp_path / "b", bundle.files)
    assert zip_file.read_folder(tmp_path / "b") == bundle.files


def test_site(bundle, tmp_path):
    repository.publish(bundle, tmp_path / "repo")
    out = tmp_path / "site"
    killed_at(lambda: site.write_site(tmp_path / "repo", out), Path, "replace", 2)
    assert not out.exists()
    _, n_pages, _ = site.write_site(tmp_path / "repo", out)
    assert n_pages > 2
