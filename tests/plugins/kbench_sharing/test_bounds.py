"""A few bytes stand for no gigabytes: bundles are bounded before they are expanded."""

import base64
import tracemalloc

import numpy as np
import pytest

from kbench.errors import BundleError
from kbench.evaluation.outputs import Predictions
from kbench.planning.planned import task_key
from kbench.storage.predictions import packed
from kbench_sharing import container
from kbench_sharing.container import Bounds
from kbench_sharing.form import SharedPredictions
from kbench_sharing.predictions import Kept
from kbench_sharing.reading import bundle_of, read_bundle
from tests.support.bundles import dumped, files, lines, results_of, signed, with_results


@pytest.fixture(scope="module")
def honest():
    return files(author="Ada")


def written(bundle, folder):
    path = folder / "b.zip"
    path.write_bytes(container.zipped(signed(bundle)))
    return path


def repeated(bundle, n_blocks):
    """Return a bundle whose blocks repeat one result, with a long search, by a few bytes."""
    first = results_of(bundle)[0]
    first["details"]["search"] = [{"learner.C": float(i), "values": [0.9] * 40} for i in range(200)]
    _, *columns = lines(with_results(bundle, [first])["results.jsonl"])
    block = [{"n": 2000}]
    for column in columns:
        name, (value,) = column["column"], column["values"]
        splits = {"values": list(range(2000))}
        block.append({"column": name, **(splits if name == "split" else {"same": value})})
    cells = lines(bundle["cells.jsonl"])
    cells[0]["n_splits"] = 2000
    return {
        **bundle,
        "cells.jsonl": dumped(cells),
        "results.jsonl": dumped(block + [{"n": 2000}] * (n_blocks - 1)),
    }


def with_datasets(bundle, n):
    return {**bundle, "datasets.jsonl": bundle["datasets.jsonl"] * n}


def with_lists(bundle, n):
    column = {"column": "details/notes", "values": [[[]] * n] * 40}
    return {**bundle, "results.jsonl": bundle["results.jsonl"] + dumped([column])}


BOMBS = {
    "results": (lambda b: repeated(b, 1), r"makes results of more than \d+ MB, which is allowed"),
    "blocks": (lambda b: repeated(b, 101), "it has 202,000 results, more than the 200,000"),
    "datasets": (lambda b: with_datasets(b, 20_000), r"unpacks to more than the \d+ MB allowed"),
    "lists": (lambda b: with_lists(b, 8000), r"it has 3\d\d,\d\d\d lists and objects, more than"),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_refused_before_it_expands(kind, honest, tmp_path):
    make, sentence = BOMBS[kind]
    path = written(make(honest), tmp_path)
    assert path.stat().st_size < 50_000
    tracemalloc.start()
    try:
        with pytest.raises(BundleError, match=sentence):
            read_bundle(path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_more_lines_than_any_suite_has_are_not_parsed(honest):
    forged = {**honest, "plugins.jsonl": b"x\n" * 100_001}
    with pytest.raises(BundleError, match=r"plugins\.jsonl has more than 100,000 lines"):
        bundle_of(signed(forged))


def test_predictions_are_bounded_together(honest):
    bundle = bundle_of(honest)
    cell = bundle.cells[0]

    def line(split):
        data = packed(Predictions(np.zeros(30, dtype=int)), task_key(cell.key, split))
        text = base64.b64encode(data).decode()
        return f"line {split}", SharedPredictions(cell=0, split=split, seed=0, data=text)

    given = [line(split) for split in range(3)]
    assert len(Kept(given, bundle.cells, bundle.datasets, bundle.results, 3 * 240).by_unit) == 3
    with pytest.raises(BundleError, match=r"line 2: .* 30 bytes, more than the 0 allowed"):
        Kept(given, bundle.cells, bundle.datasets, bundle.results, 2 * 240)


def test_the_bounds_grow_with_the_file_up_to_the_largest():
    small, large = Bounds(12_000, is_packed=True), Bounds(1 << 30, is_packed=True)
    assert small.unpacked < small.results < 12 << 20
    assert (large.unpacked, large.results) == (1 << 30, 512 << 20)
