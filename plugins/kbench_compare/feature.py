"""The hook of this feature: `Results.compare` of Python."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench.features import Labels, Metric, Row


@hookimpl
def kbench_compared_results(
    a: "Sequence[Row]", b: "Sequence[Row]", metric: "Metric", thresholds: Mapping[str, float]
) -> "tuple[list[dict[str, object]], list[Labels]]":
    """Compare cell by cell, as the command does."""
    from kbench_compare.comparison import Noise, compare

    comparison = compare(a, b, metric, Noise(**thresholds))
    return comparison.rows(), [labels for labels, _ in comparison.regressions(["metric"])]
