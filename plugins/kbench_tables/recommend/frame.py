"""`kbench.recommend`: a comparison on a data frame or a file, from Python."""

import html
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import pandas

from kbench.errors import KbenchError, SuiteError
from kbench.features import (
    DataCache,
    Lead,
    Names,
    Options,
    Planner,
    check_limit,
    check_options,
    columns,
    load_registry,
    names_in,
    state_folder,
    write_file,
)
from kbench_tables.export.model_folder import check_export, export_cell
from kbench_tables.frames import write_frame
from kbench_tables.recommend.compared_methods import ComparedMethods, Start, compare
from kbench_tables.recommend.metric import Comparison, comparison
from kbench_tables.recommend.recommendation_page import COLUMNS, build_lead, build_page, column_rows
from kbench_tables.recommend.timed_suite import apply_settings, rounds_for
from kbench_tables.recommend.user_data import (
    UserData,
    fetch_dataset,
    prepare_data,
    start_parents,
    suite_for,
)


class Recommendation:
    """The result of `kbench.recommend`: a comparison of methods on your data.

    Attributes
    ----------
    recommendation : str
        The recommendation in sentences; the first one names the method and its score.
    feature_map, learner : str
        The recommended method; empty if none was evaluated.
    results : DataFrame
        One row per method, best first, with the columns of ``kbench results``.
    columns : DataFrame
        What became of each column of the data.
    notices : list of str
        Columns that were dropped, and warnings about detected formats.
    """

    def __init__(
        self, done: ComparedMethods, data: UserData, by: Comparison, lead: Lead, notices: list[str]
    ) -> None:
        self._compared, self._data, self._by, self._lead = done, data, by, lead
        self.notices = [*notices, *data.notices]
        chosen = done.advice.chosen if done.advice else None
        self.feature_map = chosen.feature_map if chosen else ""
        self.learner = chosen.learner if chosen else ""
        self.recommendation = "\n".join(lead.sentences)

    @property
    def results(self) -> pandas.DataFrame:
        """One row per method, best first."""
        names = columns(self._compared.report.suite.compared, self._data.facts.task)
        rows = [{name: row.value(name) for name in names} for row in self._compared.rows]
        return pandas.DataFrame(rows)

    @property
    def columns(self) -> pandas.DataFrame:
        """What became of each column of the data."""
        preview = self._data.preview
        return pandas.DataFrame(column_rows(preview.roles) if preview else [], columns=COLUMNS)

    def report(self, path: str | Path | None = None) -> str:
        """Return the report, a self-contained HTML page.

        Parameters
        ----------
        path : str or Path, optional
            A file to write it to.
        """
        page = build_page(self._compared, self._data, self._lead, load_registry())
        if path is not None:
            write_file(Path(path), page.encode())
        return page

    def export(self, folder: str | Path, *, onnx: bool = False, mlflow: bool = False) -> Path:
        """Fit the recommended method on all rows, and save it as ``kbench export`` does.

        Parameters
        ----------
        folder : str or Path
            The folder to create; it must not exist.
        onnx, mlflow : bool, default False
            Also write an ONNX or an MLflow model.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        ExportError
            The folder exists or cannot be written, or the model cannot be saved.
        SuiteError
            No method is recommended.
        """
        chosen = self._compared.chosen
        if chosen is None:
            raise SuiteError("there is no recommended method to export")
        folder = Path(folder)
        check_export(folder, onnx)
        registry, data = load_registry(), self._data
        maps, learners = [chosen.cell.feature_map.name], [chosen.cell.learner.name]
        facts = fetch_dataset(data.ref, registry)  # again, if the cache was emptied
        suite = suite_for(data.ref, facts, registry, maps, learners, by=self._by)
        suite = apply_settings(suite, self._compared.settings, registry)
        planned = Planner(registry, DataCache()).plan(suite, {data.ref.label: facts})[0]
        export_cell(planned, folder, registry, suite.compared, onnx=onnx, mlflow=mlflow)
        return folder

    def __repr__(self) -> str:
        return "\n".join([*self._lead.facts, "", *self._lead.sentences])

    def _repr_html_(self) -> str:
        """Return the recommendation and a table of results as HTML, for notebooks."""
        metric = self._compared.report.suite.compared
        names = ("feature_map", "learner", "status", metric.name, metric.sd)
        table = self.results[list(dict.fromkeys((*names, "fit_time_s", "predict_time_s")))]
        paragraphs = [*self._lead.sentences, *self._lead.facts, *self.notices]
        said = "".join(f"<li>{html.escape(each)}</li>" for each in paragraphs)
        return f"<div><ul>{said}</ul>{table.to_html(index=False, na_rep='')}</div>"


def recommend(
    data: Any,
    target: str | None = None,
    *,
    task: str | None = None,
    metric: str | None = None,
    probabilities: bool = False,
    feature_map: Names = None,
    learner: Names = None,
    time_limit: float | None = None,
    explain: bool = False,
    drop: Names = None,
    categorical: Names = None,
    keep: Names = None,
    date: Names = None,
    group: str | None = None,
    time_column: str | None = None,
    jobs: int | None = None,
    recompute: bool = False,
    name: str = "data",
    progress: bool = True,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    na_values: Names = None,
    sheet: str | None = None,
    header_row: str | None = None,
    keep_totals: bool = False,
    **features: str,
) -> Recommendation:
    """Compare methods on your table and recommend one, as ``kbench recommend`` does.

    Nothing is written into the current folder: results are in the journal, and in an MLflow
    store next to it unless `store` or ``MLFLOW_TRACKING_URI`` names another one.

    Parameters
    ----------
    data : DataFrame, str or Path
        A data frame of pandas, polars, pyarrow, or another library with the interchange
        protocol; or the path of a file. The index of a pandas frame is left out.
    target : str
        The column to predict.
    task : {"classification", "regression"}, optional
        classification or regression; inferred from the target by default.
    metric : str, optional
        Compare methods by this metric, such as roc_auc or mae; `kbench list metrics` shows all.
    probabilities : bool, default False
        Also evaluate probabilistic predictions; learners without probabilities are calibrated.
    feature_map, learner : str or sequence of str, optional
        Try this one instead of the default ones.
    time_limit : float, optional
        Time limit for the whole comparison, in seconds; methods that do not finish are
        reported as skipped.
    explain : bool, default False
        Report permutation importances and an error analysis of the recommended method.
    drop : str or sequence of str, optional
        Leave this column out.
    categorical : str or sequence of str, optional
        Treat this numeric column as categorical.
    keep : str or sequence of str, optional
        Keep this column, even if it holds row numbers, identifiers, free text or one value.
    date : str or sequence of str, optional
        Date format of a column, e.g. ``joined=%d.%m.%Y``.
    group : str, optional
        Group column (e.g. person ID): rows of a group are never split between training and test.
    time_column : str, optional
        Time column (dates or numbers): test on the most recent rows.
    jobs : int, optional
        Number of parallel tasks; by default the physical cores.
    recompute : bool, default False
        Compute everything again, and use no cached result.
    name : str, default "data"
        Name of a data frame, for the report and the store.
    progress : bool, default True
        Show progress: a live table in a terminal or a notebook, lines elsewhere.
    delimiter : str, optional
        Separator of values in a CSV file; detected by default.
    decimal : str, optional
        Decimal mark of a CSV file; detected by default.
    thousands : str, optional
        Thousands separator of a CSV file; detected by default.
    encoding : str, optional
        Encoding of a CSV file, e.g. cp1252; detected by default.
    na_values : str or sequence of str, optional
        Additional string to read as missing (NA) in a CSV or Excel file.
    sheet : str, optional
        Sheet of an Excel file; the first by default.
    header_row : str, optional
        Row of the column names in a CSV or Excel file, e.g. 4, or 2-3; detected by default.
    keep_totals : bool, default False
        Read the rows of totals in a CSV or Excel file; they are left out by default.
    **features
        Options of features: ``store``, the MLflow store.

    Returns
    -------
    Recommendation
        With `recommendation`, `results`, `report` and `export`.

    Raises
    ------
    KbenchError
        The data cannot be used, or a name or a limit is wrong.
    KeyboardInterrupt
        The user interrupted it; the next call goes on.

    Examples
    --------
    >>> import kbench
    >>> found = kbench.recommend(frame, target="churn", time_limit=60)  # doctest: +SKIP
    >>> found.export("model")  # doctest: +SKIP
    """
    started = Start()
    if time_limit is not None:
        check_limit(time_limit, "time_limit")
    if not isinstance(name, str) or not name.strip() or "/" in name or name.startswith("."):
        raise SuiteError(f"name must be a string without '/', such as 'customers', got {name!r}")
    if target is None and not isinstance(data, str | Path):
        raise SuiteError("target is missing: give the column to predict")
    folder = None
    notices: list[str] = []
    if isinstance(data, str | Path):
        path = str(data)
    else:
        folder = Path(tempfile.mkdtemp(prefix="kbench-frame-"))
        path = str(folder / f"{name}.parquet")
    passed = check_options("recommend", features)
    lists = {"drop": drop, "categorical": categorical, "keep": keep, "date": date}
    options = {
        "task": task,
        "group": group,
        "time_column": time_column,
        "delimiter": delimiter,
        "decimal": decimal,
        "thousands": thousands,
        "encoding": encoding,
        "sheet": sheet,
        **{option: names_in(passed) or None for option, passed in lists.items()},
        "header_row": header_row,
        "na_values": names_in(na_values) or None,
    }
    registry = load_registry()
    parents = passed["parents"] = start_parents(registry)
    try:
        if folder is not None:
            notices = write_frame(data, Path(path))
        user_data = prepare_data(path, registry, target=target, keep_totals=keep_totals, **options)
        by = comparison(metric, probabilities, user_data.facts, registry)
        methods = (names_in(feature_map), names_in(learner))
        found = compare(
            user_data,
            rounds_for(user_data.ref, user_data.facts, registry, *methods, time_limit, by),
            registry,
            options=Options(jobs, recompute=recompute, given=passed, folder=state_folder().parent),
            time_limit=time_limit,
            started=started,
            quiet=not progress,
            explains=explain,
        )
    except BaseException as error:
        parents.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, KbenchError):
                raise type(error)(str(error).replace(f"file {path!r}", "data")) from None
        raise
    if found.report.interrupted:
        raise KeyboardInterrupt("finished results are stored; the next call continues")
    lead = build_lead(found, user_data, by, time_limit)
    done = Recommendation(found, user_data, by, lead, notices)
    if folder is not None:  # the table is needed for an export
        weakref.finalize(done, shutil.rmtree, folder, ignore_errors=True)
    return done
