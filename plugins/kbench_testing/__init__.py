"""The conformance kit: tests of the rules that every plugin must keep.

In a test module of the plugin::

    from kbench_testing import parametrize_with_checks

    @parametrize_with_checks("my-plugin")
    def test_conformance(component, check):
        check(component)

One case per component and check. A failure says what is wrong and how to correct
it; something that is only missing is a `ConformanceWarning`. ``kbench plugin check my-plugin``
runs the same from the command line.
"""

from kbench_testing._cases import (
    CHECKS,
    CheckResult,
    checks_of,
    components,
    parametrize_with_checks,
    run,
)
from kbench_testing._kernels import Mercer, is_psd
from kbench_testing._subject import ConformanceWarning, Nonconforming, Subject

__all__ = [
    "CHECKS",
    "CheckResult",
    "ConformanceWarning",
    "Mercer",
    "Nonconforming",
    "Subject",
    "checks_of",
    "components",
    "is_psd",
    "parametrize_with_checks",
    "run",
]
