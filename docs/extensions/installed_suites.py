"""The table of the suites that kbench brings: ``.. installed-suites::``.

Counts come from the suite files. CPU times are sums over the tasks of the bundles in
`docs/results`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from components import Lines, built_ins
from gallery import table

from kbench.errors import SuiteError
from kbench.planning.cells import cells
from kbench.planning.suite_file import find, read
from kbench_listing.installed import find_summary
from kbench_sharing.reading import read_bundle

RESULTS = Path(__file__).parent.parent / "results"
WHERE = {"openml": "from OpenML", "csv": "in files that you provide"}
HEAD = ("suite", "purpose", "datasets", "methods", "cells", "CPU time of stored results")


def cpu_times() -> dict[str, str]:
    """Return what the stored results of each suite took, by its name."""
    times = {}
    for path in sorted(RESULTS.glob("*.zip")):
        bundle = read_bundle(path)
        seconds = sum(
            result.cpu_s for splits in bundle.results.values() for result in splits.values()
        )
        times[bundle.manifest.suite] = f"{seconds:.0f} s for {len(bundle.cells)} cells"
    return times


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the row of each suite that has datasets."""
    registry, times = built_ins(), cpu_times()
    for name in registry.all("suite"):
        text, stem = find(name, registry)
        try:
            planned = cells(read(text, stem, registry), registry)
        except SuiteError:  # methods for `kbench recommend`, without datasets
            continue
        sources = Counter({cell.dataset.label: cell.dataset.name for cell in planned}.values())
        where = [f"{sources[source]} {words}" for source, words in WHERE.items() if sources[source]]
        yield (
            f"``{name}``",
            find_summary(text),
            ", ".join([str(sources.total()), *where]),
            str(len({cell.method for cell in planned})),
            str(len(planned)),
            times.get(name, "not measured"),
        )


class InstalledSuites(Lines):
    """The table."""

    def lines(self) -> Iterator[str]:
        """Yield it."""
        return table(HEAD, rows())


def setup(app):
    """Add the directive."""
    app.add_directive("installed-suites", InstalledSuites)
    return {"version": "1", "parallel_read_safe": True}
