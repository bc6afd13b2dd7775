"""`Results`: the cells of a suite, as `run_suite` and `load_results` return them."""

import html
import warnings
from collections.abc import Sequence
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kbench.api.inputs import Names, names_in, read_imported, read_suite_or_empty
from kbench.errors import FeatureError, SuiteError
from kbench.execution.plugins import load_registry
from kbench.messages import plural
from kbench.parameters import check_choice
from kbench.records import Metric
from kbench.registry.verbs import Verbs
from kbench.report.content import ReportData, machine_facts
from kbench.report.pages import picture
from kbench.report.paper import select_datasets, select_methods, transpose_table
from kbench.report.tables import check_table, table_named
from kbench.report.text import FORMATS, write, write_cell
from kbench.results.imported import match_local_rows
from kbench.results.leaderboard import Leader, Leaderboard, leaderboard
from kbench.results.rows import Row, columns, find_row_task
from kbench.storage.files import write_file

if TYPE_CHECKING:
    import pandas


# Columns of `Results.imported` in a `RowPair`; the name of the metric replaces `value`.
_IMPORTED = (
    *("other.row.dataset", "other.row.feature_map", "other.row.learner"),
    *("other.author", "other.cpu"),
    *("other.row.status", "other.row.n_splits_done", "other.row.n_splits"),
    *("value", "local", "difference", "comparable"),
    *("other.verification", "other.versions", "other.source"),
)


class Plot:
    """A figure of results, which notebooks show."""

    def __init__(self, results: "Results", kind: str, methods: Names, datasets: Names) -> None:
        self._drawn = results.content(methods, datasets)
        self._kind = kind
        self.svg = self._render("svg").decode()

    def _render(self, form: str) -> bytes:
        return picture(self._kind, self._drawn, load_registry(), form)

    def save(self, path: str | Path) -> Path:
        """Write it to a file whose name ends in .pdf, .png or .svg, and return its path.

        Raises
        ------
        SuiteError
            The name ends otherwise.
        """
        path = Path(path)
        form = path.suffix.removeprefix(".").lower()
        check_choice(form, "the end of path", ("pdf", "png", "svg"), error=SuiteError)
        write_file(path, self._render(form))
        return path

    def _repr_svg_(self) -> str:
        return self.svg


class Results:
    """Results of a suite, one per planned cell; notebooks show them as a leaderboard.

    Attributes
    ----------
    suite, store, experiment : str
        Names of the suite, of the MLflow store and of the experiment in it.
    problem : str
        Why runs are not in the store yet; empty if all are.
    metric : Metric
        What the suite compares.
    others : DataFrame
        Results imported from other users' bundles (``kbench bundle add``).
    """

    def __init__(
        self,
        suite: str,
        rows: Sequence[Row],
        metric: Metric,
        *,
        store: str = "",
        experiment: str = "",
        problem: str = "",
        budget: str = "",
    ) -> None:
        self.suite, self.metric = suite, metric
        self.store, self.experiment, self.problem = store, experiment or suite, problem
        self._rows, self._budget = list(rows), budget

    def __len__(self) -> int:
        return len(self._rows)

    def to_frame(self) -> "pandas.DataFrame":
        """Return one line per cell, with the columns of ``kbench results``.

        ``attrs`` holds ``suite``, ``store``, ``experiment`` and ``problem``.
        """
        import pandas

        names = columns(self.metric, find_row_task(self._rows))
        frame = pandas.DataFrame(
            [{name: row.value(name) for name in names} for row in self._rows], columns=names
        )
        frame.attrs = {
            name: getattr(self, name) for name in ("suite", "store", "experiment", "problem")
        }
        return frame

    @property
    def imported(self) -> "pandas.DataFrame":
        """Imported results of the suite: those of the bundles that you have added.

        One row for each cell, author and CPU, without times, which depend on the machine.
        ``comparable`` is why a row may be compared with yours, or not. ``difference`` is the
        imported mean minus the ``local`` one, on the splits that both have. ``verification`` is
        ``imported``, or who recomputed it. A damaged bundle is left out with a warning.

        Examples
        --------
        >>> import kbench
        >>> imported = Results("a-suite", [], kbench.Metric("accuracy", "higher")).imported
        >>> len(imported), list(imported)[:5]
        (0, ['dataset', 'feature_map', 'learner', 'author', 'cpu'])
        """
        import pandas

        imported = read_imported(self.experiment, self.metric, partial(warnings.warn, stacklevel=4))
        pairs = match_local_rows(self._rows, imported, self.metric)
        names = [name.rpartition(".")[2] for name in _IMPORTED]
        lines = pandas.DataFrame(map(attrgetter(*_IMPORTED), pairs), columns=names)
        return lines.rename(columns={"value": self.metric.name})

    def content(self, methods: Names = None, datasets: Names = None) -> ReportData:
        """Return what reports, tables and figures of some methods and datasets are made of."""
        selected = select_methods(self._rows, names_in(methods))
        wanted = select_datasets(self._rows, names_in(datasets))
        rows = [row for row in self._rows if row.method in selected and row.dataset in wanted]
        return ReportData(
            self.experiment,
            sorted(rows, key=lambda row: wanted.index(row.dataset)),
            read_suite_or_empty(self.suite, load_registry()).published,
            machine_facts(self._rows[0].machine) if self._rows else {},
            self.store,
            metric=self.metric,
            budget=self._budget,
            order=selected if methods else (),
        )

    def table(
        self,
        name: str = "scores",
        *,
        methods: Names = None,
        datasets: Names = None,
        transpose: bool = False,
        format: str | None = None,
    ) -> Any:
        """Return a table of the report.

        Parameters
        ----------
        name : str, default "scores"
            One of the tables that ``kbench report SUITE --list-tables`` prints.
        methods, datasets : str or sequence of str, optional
            Only these, in this order, also as patterns.
        transpose : bool, default False
            Methods as rows, datasets as columns.
        format : {"csv", "json", "latex", "markdown"}, optional
            Format of a string; a data frame by default.

        Returns
        -------
        DataFrame or str

        Raises
        ------
        SuiteError
            There is no such table, form, method or dataset.
        FeatureError
            The feature that has the table fails.
        """
        import pandas

        check_table(name)
        forms = tuple(form for form in FORMATS if form != "table")
        check_choice(format, "format", (None, *forms), error=SuiteError)
        made = table_named(name, self.content(methods, datasets))
        made = transpose_table(made) if transpose else made
        if format is not None:
            return write(made, format)
        names = [column.name for column in made.columns]
        return pandas.DataFrame([[row[name] for name in names] for row in made.rows], columns=names)

    def plot(
        self, kind: str = "metric-vs-fit-time", *, methods: Names = None, datasets: Names = None
    ) -> Plot:
        """Draw a figure, as ``kbench plot`` does.

        Parameters
        ----------
        kind : str, default "metric-vs-fit-time"
            A kind of ``kbench plot``, such as metric-vs-fit-time, scaling or ranks.
        methods, datasets : str or sequence of str, optional
            Only these, also as patterns.

        Returns
        -------
        Plot
            Notebooks show it; ``save`` writes it to a file.
        """
        return Plot(self, kind, methods, datasets)

    def compare(
        self, other: Self, *, alpha: float = 0.05, time_factor: float = 2.0, time_noise: float = 0.1
    ) -> "pandas.DataFrame":
        """Compare cell by cell with newer results, as ``kbench compare`` does.

        Parameters
        ----------
        other : Results
            The newer results; their cells are side B.
        alpha : float, default 0.05
            Level of the tests, over all cells together.
        time_factor : float, default 2
            A time has changed only if the ratio is larger than this.
        time_noise : float, default 0.1
            Relative standard deviation of a cell's time from run to run.

        Returns
        -------
        DataFrame
            One line per cell; ``attrs["regressions"]`` names the cells of `other` that are
            worse by the metric of the suite.

        Raises
        ------
        SuiteError
            The two compare other metrics, or were measured on other splits.
        FeatureError
            The feature that compares results fails, or is left out.
        """
        import pandas

        if not isinstance(other, Results):
            raise SuiteError(f"other must be Results, got {type(other).__name__}")
        if self.metric != other.metric:
            raise SuiteError(
                f"these results compare {self.metric.name}, `other` compares {other.metric.name}"
            )
        comparison = Verbs().one(
            "kbench_compared_results",
            a=self._rows,
            b=other._rows,
            metric=self.metric,
            thresholds={"alpha": alpha, "time_factor": time_factor, "time_noise": time_noise},
        )
        if comparison is None:
            raise FeatureError("no feature compares results: the one of kbench is left out")
        lines, worse = comparison
        frame = pandas.DataFrame(lines)
        frame.attrs["regressions"] = [
            f"{feature_map} + {learner} on {dataset}" for dataset, feature_map, learner in worse
        ]
        return frame

    @cached_property
    def _leaders(self) -> Leaderboard:
        return leaderboard(self._rows, self.metric)

    def __repr__(self) -> str:
        lines = [f"{self.experiment}: {plural(len(self), 'cell')}"]
        lines += ["  ".join(filter(None, cells)) for cells in map(self._cells, self._ranked_lines)]
        return "\n".join(lines)

    @property
    def _ranked_lines(self) -> list[Leader]:
        return [line for line in self._leaders.lines if line.mean is not None]

    def _cells(self, line: Leader) -> list[str]:
        low, high = (write_cell(self.metric.name, end) for end in (line.low, line.high))
        return [
            "" if line.place is None else str(line.place),
            *line.method,
            write_cell(self.metric.name, line.mean),
            f"[{low}, {high}]" if low and high else "",
            "" if line.wins is None else str(line.wins),
            write_cell("fit_time_s", line.fit_time_s),
        ]

    def _repr_html_(self) -> str:
        """Return the leaderboard, the best in bold; a table of cells where none is ranked."""
        title = html.escape(f"{self.experiment}: {plural(len(self), 'cell')}")
        if not self._ranked_lines:
            return f"<div><strong>{title}</strong>{self.to_frame()._repr_html_()}</div>"  # type: ignore[operator]
        heads = ("rank", "feature map", "learner", self.metric.name, "95 % interval", "wins",
                 "fit time (s)")  # fmt: skip
        head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
        lines = []
        for line in self._ranked_lines:
            cells = "".join(
                f"<td style='padding: 0 0.6em'>{html.escape(cell)}</td>"
                for cell in self._cells(line)
            )
            best = ' style="font-weight: bold"' if line.place == 1 else ""
            lines.append(f"<tr{best}>{cells}</tr>")
        over = html.escape(", ".join(self._leaders.datasets))
        return (
            f"<div><strong>{title}</strong><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table>"
            f"<small>means over the datasets that all methods finished: {over}</small></div>"
        )
