"""The fastest method of each dataset: ``kbench fastest SUITE``, and a section of the report."""

from kbench.features import Column, Query, Section, Table, echo, hookimpl, read_results, write

COLUMNS = [Column("dataset"), Column("method"), Column("fit_time_s", "fit time (s)", numeric=True)]


def table_of(rows):
    fastest = {}
    for row in sorted(rows, key=lambda row: row.metrics.get("fit_time_s", float("inf"))):
        if row.status == "ok":
            found = {"method": " + ".join(row.method), "fit_time_s": row.metrics["fit_time_s"]}
            fastest.setdefault(row.dataset, {"dataset": row.dataset, **found})
    return Table("fastest", "The fastest method of each dataset", COLUMNS, [*fastest.values()])


def fastest(suite: str) -> None:
    """Print the fastest method of each dataset."""
    echo(write(table_of(read_results(Query(suite)).rows), "markdown"))


@hookimpl
def kbench_report_sections(data):
    return [Section("fastest", "Fastest methods", tables=[table_of(data.rows)])]
