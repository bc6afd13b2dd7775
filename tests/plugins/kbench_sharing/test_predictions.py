"""Predictions in a bundle: checked without data, and measured again where the data are."""

import base64
import json

import numpy as np
import pytest

from kbench.errors import BundleError, KbenchError
from kbench.evaluation.checked_predictions import Predictions
from kbench.evaluation.metrics import COMPUTE
from kbench.evaluation.targets import Truth
from kbench.execution.plugins import load_registry
from kbench.planning.planned import task_key
from kbench.storage.journal import Journal
from kbench.storage.predictions import pack
from kbench_sharing.predictions import differing
from kbench_sharing.reading import parse_bundle
from kbench_sharing.writing import build_files
from tests.support.bundles import SUITE, dumped, files, known, lines, signed

LABELS = np.repeat([0, 1, 2], 10)


def probabilities(labels):
    made = np.full((len(labels), 3), 0.1)
    made[np.arange(len(labels)), labels] = 0.8
    return made


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    """A journal with the predictions of two splits of each cell."""
    made = Journal(tmp_path_factory.mktemp("state") / "journal.jsonl")
    for cell in known().cells:
        for split in (0, 1):
            key = task_key(cell.key, split)
            given = Predictions(LABELS, probabilities(LABELS))
            made.save_blob(cell.results[split].address, "predictions", pack(given, key))
    return made


@pytest.fixture(scope="module")
def honest(journal):
    return dict(build_files(known(), SUITE, load_registry(), author="Ada", predictions=journal))


def test_predictions_come_back_as_they_were_kept(honest, journal):
    bundle = parse_bundle(honest)
    assert len(bundle.predictions) == 2 * len(known().cells)
    for cell in known().cells:
        (given,) = bundle.predictions[cell.key, 1]
        assert np.array_equal(given.predicted, LABELS)
        assert np.array_equal(given.probabilities, probabilities(LABELS))
    again = build_files(known(), SUITE, load_registry(), author="Ada", predictions=journal)
    assert again == honest
    assert not parse_bundle(build_files(known(), SUITE, load_registry())).predictions


def test_a_training_part_without_a_rare_class_is_read(honest):
    key = task_key(first_key(), 0)
    two = Predictions(np.repeat([0, 2], 15), np.full((30, 2), 0.5))
    made = forged(honest, lambda line: line.update(data=encoded(two, key)))
    (given,) = parse_bundle(made).predictions[first_key(), 0]
    assert given.probabilities.shape == (30, 2)


def first_key():
    """Return the key of the first cell of a bundle, which has its cells in order."""
    return lines(files()["cells.jsonl"])[0]["key"]


def encoded(predictions, key):
    return base64.b64encode(pack(predictions, key)).decode()


def forged(honest, change):
    values = lines(honest["predictions.jsonl"])
    change(values[0])
    return signed({**honest, "predictions.jsonl": dumped(values)})


def of(predictions):
    """Return a change of the predictions of the first split."""
    return lambda line: line.update(data=encoded(predictions, task_key(first_key(), 0)))


def not_one(labels):
    made = probabilities(labels)
    made[3] = 0.9
    return made


HOSTILE = {
    "no base64": (lambda line: line.update(data="%%%"), "that are not base64"),
    "no predictions": (
        lambda line: line.update(data=base64.b64encode(b"\x80\x04pickle").decode()),
        "the kept predictions cannot be used",
    ),
    "cut off": (lambda line: line.update(data=line["data"][:-40]), "not base64|cannot be used"),
    "too large": (
        lambda line: line.update(data=base64.b64encode(bytes(10**6)).decode()),
        "has too many bytes for the predictions of its split",
    ),
    "of another split": (lambda line: line.update(split=1), "are those of another task|seed"),
    "of a split without a result": (lambda line: line.update(split=77), "split without a result"),
    "of a cell that is not there": (lambda line: line.update(cell=99), "to a cell that the bundle"),
    "another seed": (lambda line: line.update(seed=1), "has the seed 1, expected 0"),
    "a field more": (lambda line: line.update(run="rm"), "Extra inputs are not permitted"),
    "a negative number": (lambda line: line.update(split=-1), "greater than or equal to 0"),
    "too few rows": (of(Predictions(LABELS[:29])), "expected 30 rows"),
    "a label that is not there": (of(Predictions(np.full(30, 7))), "label"),
    "labels that are no integers": (of(Predictions(LABELS + 0.5)), "label"),
    "probabilities of four classes": (
        of(Predictions(LABELS, np.full((30, 4), 0.25))),
        "the kept predictions cannot be used",
    ),
    "probabilities beyond one": (of(Predictions(LABELS, not_one(LABELS))), "sum|probabilit"),
    "a NaN": (of(Predictions(LABELS, np.full((30, 3), np.nan))), "the value nan"),
    "an infinite decision": (of(Predictions(LABELS, None, np.full((30, 3), np.inf))), "inf|finite"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_predictions_are_refused_with_their_own_sentence(kind, honest):
    change, sentence = HOSTILE[kind]
    with pytest.raises(BundleError, match=sentence) as refused:
        parse_bundle(forged(honest, change))
    assert "of predictions.jsonl" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


def test_a_bomb_of_predictions_is_not_unpacked(honest):
    """A body of 100 MiB of zeros says that it has 30 labels."""
    import zlib

    header = {
        "task_key": task_key(first_key(), 0),
        "arrays": [["predicted", "|i1", [30]]],
    }
    body = zlib.compress(bytes(100 << 20), 9)[:600]
    data = b"kbench predictions 1\n" + json.dumps(header).encode() + b"\n" + body
    bomb = forged(honest, lambda line: line.update(data=base64.b64encode(data).decode()))
    with pytest.raises(BundleError, match="they are cut or too long"):
        parse_bundle(bomb)


def test_predictions_twice_are_refused(honest):
    values = lines(honest["predictions.jsonl"])
    twice = signed({**honest, "predictions.jsonl": dumped([values[0], *values])})
    with pytest.raises(BundleError, match="has the seed 0, expected 1"):
        parse_bundle(twice)


def test_a_metric_that_the_predictions_do_not_have_is_found(honest):
    bundle = parse_bundle(honest)
    key = known().cells[0].key
    result, seeds = bundle.results[key][0], bundle.predictions[key, 0]
    truth = Truth(np.roll(LABELS, 2), classes=np.arange(3), task="classification")
    names = ("accuracy", "log_loss", "balanced_accuracy")
    exact = {name: COMPUTE[name](truth, seeds[0]) for name in names}
    right = result.model_copy(update={"metrics": {**exact, "n_test": 30.0, "fit_time_s": 0.1}})
    assert differing(right, seeds, truth) is None
    for name in exact:
        wrong = {**right.metrics, name: exact[name] + 1 / 30}
        found = differing(right.model_copy(update={"metrics": wrong}), seeds, truth)
        assert found == (name, exact[name] + 1 / 30, exact[name])
    other = Truth(np.zeros(31, dtype=int), classes=np.arange(3), task="classification")
    with pytest.raises(KbenchError):
        differing(right, seeds, other)
