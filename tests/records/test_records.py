import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kbench import Cell, Dataset, Protocol, Ref, Split, Tune
from kbench.records import DatasetFacts


def make(X=((0.0, 1.0), (1.0, 0.0)), y=(0, 1), **fields):
    return Dataset("d", np.array(X), np.array(y), **fields)


def test_a_dataset_fills_in_what_is_not_given():
    data = make()
    assert data.feature_names == ("x0", "x1")
    assert data.feature_kinds == ("numeric", "numeric")
    assert data.target_names == ("0", "1")
    assert data.dataset_family == "d"


def test_the_checksum_is_of_the_content_not_of_names():
    assert make().checksum == make(feature_names=["a", "b"], source="elsewhere").checksum


@pytest.mark.parametrize(
    "other",
    [
        make(X=((0.0, 1.0), (1.0, 2.0))),
        make(y=(1, 0)),
        make(X=((0.0, 1.0, 0.0), (1.0, 0.0, 0.0))),
        make(pairwise=True),
        make(splits=[Split(0, np.array([0]), np.array([1]))]),
        Dataset("d", np.array(((0, 1), (1, 0)), dtype=np.float32), np.array((0, 1))),
    ],
)
def test_whatever_can_change_a_number_changes_the_checksum(other):
    assert other.checksum != make().checksum


def test_the_checksum_of_sparse_data_does_not_depend_on_the_index_width():
    X = scipy.sparse.csr_matrix(np.eye(3))
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    y = np.array([0, 1, 0])
    assert Dataset("d", X, y).checksum == Dataset("d", wide, y).checksum


def test_a_split_is_known_by_its_rows():
    one = Split(0, np.array([0, 1]), np.array([2]))
    assert one.digest == Split(7, np.array([0, 1], dtype=np.int32), np.array([2])).digest
    # the same numbers dealt out otherwise are another split
    assert one.digest != Split(0, np.array([0]), np.array([1, 2])).digest
    assert one.digest != Split(0, np.array([0]), np.array([2]), np.array([1])).digest


@pytest.mark.parametrize(
    ("ref", "label"),
    [
        (Ref("rff"), "rff"),
        (Ref("rff", {"n_components": 64, "gamma": 0.5}), "rff(n_components=64, gamma=0.5)"),
        (
            Ref("f1", {"kernel": Ref("gaussian", {"bandwidth": 1.0})}),
            "f1(kernel=gaussian(bandwidth=1))",
        ),
        (Ref("rff", {"gamma": Tune((0.1, "median"))}), "rff(gamma=tune[0.1, median])"),
        (Ref("x", {"flag": True, "sizes": (1, 2)}), "x(flag=true, sizes=[1, 2])"),
        (Ref("x", {"a": 1}, label="mine"), "mine"),
    ],
)
def test_labels_say_what_was_given(ref, label):
    assert ref.label == label


@given(st.dictionaries(st.text(min_size=1), st.integers() | st.booleans(), max_size=4))
def test_different_parameters_have_different_labels(params):
    changed = {**params, "another": 1}
    assert Ref("m", params).label != Ref("m", changed).label or "another" in params


def test_a_cell_is_named_for_people():
    cell = Cell(Ref("iris"), Ref("rff"), Ref("ridge"), Protocol())
    assert cell.name == "rff + ridge on iris"


def test_facts_of_a_dataset_come_back_from_json():
    facts = DatasetFacts(
        "c" * 64,
        name="iris",
        n_samples=150,
        class_counts=(50, 50, 50),
        missing={"age": 3},
        feature_names=("a", "b"),
    )
    written = json.loads(json.dumps(dataclasses.asdict(facts)))
    assert DatasetFacts.from_json(written) == facts
    # another version of kbench may know more, or less
    assert DatasetFacts.from_json(written | {"files": 3}) == facts
    assert DatasetFacts.from_json({"checksum": "x"}) == DatasetFacts("x")
    with pytest.raises(TypeError, match="checksum"):
        DatasetFacts.from_json({"name": "iris"})
