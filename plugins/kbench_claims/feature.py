"""The hooks of claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench.features import ReportData, Section


@hookimpl
def kbench_report_sections(data: ReportData) -> Sequence[Section]:
    """Report sources of variance, optimistic searches, and unreliable results."""
    from kbench_claims.sections import sections

    return sections(data)
