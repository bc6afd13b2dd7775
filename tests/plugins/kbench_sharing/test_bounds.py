"""A few bytes stand for no gigabytes: bundles are bounded before they are expanded."""

import base64
import tracemalloc

import numpy as np
import pytest

from kbench.errors import BundleError
from kbench.evaluation.checked_predictions import Predictions
from kbench.planning.planned import task_key
from kbench.storage.predictions import pack
from kbench_sharing import zip_file
from kbench_sharing.bundle_records import SharedPredictions
from kbench_sharing.predictions import check_predictions
from kbench_sharing.reading import parse_bundle, read_bundle
from kbench_sharing.zip_file import most_of_predictions, most_unpacked
from tests.support.bundles import dumped, files, lines, results_of, signed, with_results


@pytest.fixture(scope="module")
def honest():
    return files(author="Ada")


def written(bundle, folder):
    path = folder / "b.zip"
    path.write_bytes(zip_file.pack_zip(signed(bundle)))
    return path


def repeated(bundle, n_blocks):
    """Return a bundle whose blocks repeat one result, by a few bytes."""
    _, *cells = lines(bundle["cells.jsonl"])
    cells = [{**cells[0], "n_splits": 100_000}, *cells]
    (block,) = lines(with_results(bundle, results_of(bundle)[5:6])["results.jsonl"])
    block = {name: values * 1000 for name, values in block.items()}
    numbers = [list(range(1000 * i, 1000 * (i + 1))) for i in range(n_blocks)]
    blocks = [{**block, "cell": [0] * 1000, "split": each} for each in numbers]
    return {**bundle, "cells.jsonl": dumped(cells[:1]), "results.jsonl": dumped(blocks)}


def with_datasets(bundle, n):
    return {**bundle, "datasets.jsonl": bundle["datasets.jsonl"] * n}


def with_lists(bundle, n):
    (block,) = lines(bundle["results.jsonl"])
    return {**bundle, "results.jsonl": dumped([{**block, "details/notes": [[[]] * n] * 40}])}


def with_candidates(bundle, n):
    (block,) = lines(bundle["results.jsonl"])
    search = {"details/search/C": [[0] * n] * 40, "details/search/values": [[0] * n] * 40}
    return {**bundle, "results.jsonl": dumped([{**block, **search}])}


def with_signs(bundle, n):
    (block,) = lines(bundle["results.jsonl"])
    signed = {"values": [-1.2345678901234567e-300], "signs": f"[[{'#' * n}]]"}
    return {**bundle, "results.jsonl": dumped([{**block, "details/search_seconds": signed}])}


BOMBS = {
    "signs": (
        lambda b: with_signs(b, 8_000_000),
        r"has more results or candidates of searches than",
    ),
    "results": (lambda b: repeated(b, 10), r"has more results or candidates of searches than"),
    "candidates": (lambda b: with_candidates(b, 10_000), r"has more results or candidates of"),
    "datasets": (lambda b: with_datasets(b, 20_000), r"unpacks to more than the \d+ MiB allowed"),
    "lists": (lambda b: with_lists(b, 8000), r"it has 3\d\d,\d\d\d lists and objects, more than"),
}


@pytest.mark.slow
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
        parse_bundle(signed(forged))


def test_predictions_are_bounded_together(honest):
    bundle = parse_bundle(honest)
    cell = bundle.cells[0]

    def line(split):
        data = pack(Predictions(np.zeros(30, dtype=int)), task_key(cell.key, split))
        text = base64.b64encode(data).decode()
        return f"line {split}", SharedPredictions(cell=0, split=split, seed=0, data=text)

    given = [line(split) for split in range(3)]
    assert len(check_predictions(given, bundle, 3 * 240)) == 3
    with pytest.raises(BundleError, match=r"line 2: .* 30 bytes, more than the 0 allowed"):
        check_predictions(given, bundle, 2 * 240)


def test_the_bounds_grow_with_the_file_up_to_the_largest():
    assert most_unpacked(12_000) < 12 << 20
    assert (most_unpacked(2 << 30), most_of_predictions(2 << 30)) == (2 << 30, 2 << 30)
