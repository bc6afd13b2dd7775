"""The conformance kit: what every plugin must keep, as tests.

In a test module of the plugin::

    from kbench.testing import parametrize_with_checks

    @parametrize_with_checks("my-plugin")
    def test_conformance(component, check):
        check(component)

One case per component and check. A failure says what is wrong and how to mend
it; what is only missing is a `ConformanceWarning`. ``kbench check my-plugin``
runs the same from the command line.
"""

from kbench.testing._cases import (
    CHECKS,
    Outcome,
    checks_of,
    components,
    parametrize_with_checks,
    run,
)
from kbench.testing._component import Component, ConformanceWarning, Nonconforming

__all__ = [
    "CHECKS",
    "Component",
    "ConformanceWarning",
    "Nonconforming",
    "Outcome",
    "checks_of",
    "components",
    "parametrize_with_checks",
    "run",
]
