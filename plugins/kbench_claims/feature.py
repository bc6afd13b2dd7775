"""The hooks of claims."""

from collections.abc import Sequence

from kbench import features
from kbench.features import hookimpl


@hookimpl
def kbench_report_sections(data: features.ReportData) -> Sequence[features.Section]:
    """Report sources of variance, optimistic searches, and unreliable results."""
    from kbench_claims.sections import sections

    return sections(data)
