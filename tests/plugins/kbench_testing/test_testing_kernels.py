"""A planted defect of a kernel is caught by the check that names it, and by no other."""

import pytest

from kbench.kernels import Polynomial
from kbench_testing import CHECKS, components, run
from tests.support.conformance import failures, kernel_plugin
from tests.support.defective_kernels import KERNEL_DEFECTS, Distance


def test_a_good_kernel_passes_everything(plugin_of):
    outcomes = list(run(components(kernel_plugin(plugin_of, Polynomial))))
    assert {each.status for each in outcomes} == {"passed"}
    assert len(outcomes) == 1 + len(CHECKS["kernel"])


@pytest.mark.parametrize("make", KERNEL_DEFECTS, ids=lambda make: make.__name__)
def test_a_defect_of_a_kernel_is_caught_by_its_check(plugin_of, make):
    found = failures(kernel_plugin(plugin_of, make))
    assert list(found) == [KERNEL_DEFECTS[make]], found


def test_a_kernel_that_is_declared_indefinite_may_be(plugin_of):
    assert not failures(kernel_plugin(plugin_of, Distance, psd=False))
