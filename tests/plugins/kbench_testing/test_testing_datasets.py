"""A planted defect of a dataset is caught by the check that names it, and by no other."""

import numpy as np
import pytest

from kbench import DatasetError, DatasetSource
from kbench_testing import components, run
from tests.support.conformance import failures
from tests.support.defective_datasets import DATASET_DEFECTS, X_SMALL, dataset


@pytest.mark.parametrize(("load", "check"), DATASET_DEFECTS)
def test_a_defect_of_a_dataset_is_caught_by_its_check(plugin_of, load, check):
    found = failures(plugin_of(kbench_datasets=[DatasetSource("small", load=load)]))
    assert list(found) == [check], found


def test_missing_values_are_no_defect(plugin_of):
    def load():
        return dataset(X=np.where(X_SMALL > 10, np.nan, X_SMALL))

    assert not failures(plugin_of(kbench_datasets=[DatasetSource("small", load=load)]))


def test_targets_and_weights_of_regression_are_no_defect(plugin_of):
    def load():
        return dataset(y=np.arange(6) + 0.5, sample_weight=np.arange(6.0))

    assert not failures(plugin_of(kbench_datasets=[DatasetSource("small", load=load)]))


def test_a_wrong_expand_is_caught(plugin_of):
    source = DatasetSource("small", load=dataset, expand=lambda: ["a", "b"])
    assert list(failures(plugin_of(kbench_datasets=[source]))) == ["check_expand"]


def test_endings_that_imply_what_load_does_not_take_are_caught(plugin_of):
    def load(path="here"):
        return dataset()

    def found(**endings):
        source = DatasetSource("small", load=load, extensions={".psv": endings})
        return failures(plugin_of(kbench_datasets=[source]))

    assert not found()
    assert "load has no parameter 'sep'" in found(sep="|")["check_endings"]


def test_data_that_cannot_be_had_are_skipped(plugin_of):
    def load():
        raise DatasetError("the server is away")

    outcomes = list(run(components(plugin_of(kbench_datasets=[DatasetSource("far", load=load)]))))
    assert {each.status for each in outcomes[1:]} == {"skipped"}
    assert "the server is away" in outcomes[1].message
