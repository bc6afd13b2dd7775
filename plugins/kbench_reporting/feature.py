"""The hooks of reports: the page and the figures of a suite's results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench.features import Lead, Registry, ReportData


@hookimpl
def kbench_report_page(data: ReportData, registry: Registry, lead: Lead | None) -> str:
    """Write the page."""
    from kbench_reporting.page import page

    return page(data, registry, lead)


@hookimpl
def kbench_report_picture(kind: str, data: ReportData, registry: Registry, form: str) -> bytes:
    """Draw a figure."""
    from kbench_reporting.pictures import picture

    return picture(kind, data, registry, form)
