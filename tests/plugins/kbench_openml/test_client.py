"""The openml client's cache: never trusted, written by one process at a time."""

import multiprocessing
import os
import pickle

from kbench_openml._source import load
from tests.support.openml_server import OpenMLServer


def _fetch(results):
    data = load(data_id=61)
    results.put(data.checksum)


def test_several_processes_fetch_a_dataset_once(connect_openml):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with OpenMLServer() as server:
        connect_openml(server)
        workers = [context.Process(target=_fetch, args=(results,)) for _ in range(3)]
        for worker in workers:
            worker.start()
        checksums = {results.get(timeout=30) for _ in workers}
        for worker in workers:
            worker.join()
        downloads = [path for path in server.requests if "download" in path]
    assert len(checksums) == 1
    assert len(downloads) == 1


class _Bomb:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_pickles_in_the_cache_are_not_read(connect_openml, tmp_path):
    bomb = pickle.dumps(_Bomb(str(tmp_path / "it ran")))
    with OpenMLServer() as server:
        cache = connect_openml(server)
        load(task_id=1061)
        for name in (
            *("datasets/61/dataset.pkl.py3", "datasets/61/qualities.xml.pkl"),
            *("datasets/61/features.xml.pkl", "tasks/1061/datasplits.pkl.py3"),
        ):
            (cache / name).write_bytes(bomb)
        load(task_id=1061)
        load(data_id=61)
    assert not (tmp_path / "it ran").exists()


def test_no_pickles_are_written(connect_openml):
    with OpenMLServer() as server:
        cache = connect_openml(server)
        load(task_id=1061)
        kept = {path.name for path in cache.rglob("*") if path.is_file()}
    assert "dataset.arff" in kept
    assert not {name for name in kept if "pkl" in name or "pickle" in name}
