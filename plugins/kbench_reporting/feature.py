"""The hooks of reports: the page and the figures of a suite's results."""

from kbench import features
from kbench.features import hookimpl


@hookimpl
def kbench_report_page(
    data: features.ReportData, registry: features.Registry, lead: features.Lead | None
) -> str:
    """Write the page."""
    from kbench_reporting.page import page

    return page(data, registry, lead)


@hookimpl
def kbench_report_picture(
    kind: str, data: features.ReportData, registry: features.Registry, form: str
) -> bytes:
    """Draw a figure."""
    from kbench_reporting.pictures import picture

    return picture(kind, data, registry, form)
