"""Default grids of all installed plugins."""

from kbench import BANDWIDTH_FACTORS
from kbench.records import Ref, Tune
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build

REGISTRY = build(list_plugins())


def factors(name, values):
    """Yield the lists of bandwidth factors in the grid of a parameter."""
    if name == "bandwidth_factor":
        yield tuple(values)
    for value in values:
        if isinstance(value, Ref):
            for inner, given in value.params.items():
                yield from factors(inner, given.values if isinstance(given, Tune) else [given])


def test_every_method_with_a_bandwidth_searches_over_the_same_factors():
    found = {
        name: lists
        for kind in ("feature map", "learner")
        for name, record in REGISTRY.all(kind).items()
        if (lists := [f for key, values in record.grid.items() for f in factors(key, values)])
    }
    assert len(found) >= 16
    for name in ("random-maclaurin", "optimized-maclaurin", "optimized-maclaurin-srht"):
        assert found.pop(name) == [(1.0, 0.5, 2.0)]  # at 1/4 the series is too long
    assert {lists for (lists,) in found.values()} == {BANDWIDTH_FACTORS}
    assert BANDWIDTH_FACTORS[0] == 1.0
