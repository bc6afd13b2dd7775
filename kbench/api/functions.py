"""kbench from Python: the work of the command line, as functions.

Imported on first use of ``kbench.run_suite``, ``kbench.load_results`` or
``kbench.evaluate``; ``import kbench`` itself stays light.
"""

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kbench.api.inputs import Names, check_options, option_names, read_results, select_suite
from kbench.api.result_set import Results
from kbench.api.running import run_shown
from kbench.errors import DatasetError, SuiteError
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method, learner_side, map_side, search_side
from kbench.evaluation.specs import EstimatorSpec
from kbench.execution.fetching import open_fetching
from kbench.execution.plugins import import_registry, load_registry
from kbench.parameters import check_integer
from kbench.planning.component_refs import Lines, parameter_problems, relabel_for_task
from kbench.planning.planner import how_many_splits
from kbench.planning.tasks import protocol_problem, search_problem
from kbench.records import Dataset, Delivered, Limits, Problem, Protocol, Ref, TaskType
from kbench.registry.callables import get_module, makers, resolve
from kbench.registry.collecting import Kind
from kbench.registry.registry import Registry
from kbench.results.row_builders import make_full_row
from kbench.results.rows import sort_by_dataset
from kbench.results.stored import Query
from kbench.runner import Options
from kbench.storage.datacache import DataCache, check_dataset

if TYPE_CHECKING:
    import pandas

__all__ = ["evaluate", "load_results", "run_suite"]


def _show_options(function: Callable[..., Results]) -> Callable[..., Results]:
    """Show the options of features in the signature of a function."""
    shown = inspect.signature(function)
    parameters = [each for each in shown.parameters.values() if each.kind is not each.VAR_KEYWORD]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for name in sorted(option_names(function.__name__))
    ]
    function.__signature__ = shown.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


@_show_options
def run_suite(
    suite: str,
    *,
    dataset: Names = None,
    feature_map: Names = None,
    learner: Names = None,
    add_datasets: Names = None,
    add_feature_maps: Names = None,
    add_learners: Names = None,
    n_splits: int | None = None,
    jobs: int | None = None,
    data: str | None = None,
    recompute: bool = False,
    retry_failed: bool = False,
    offline: bool = False,
    task_timeout: float | None = None,
    memory_limit: float | None = None,
    device: Literal["cpu", "torch-cpu", "cuda"] | None = None,
    timing: Literal["shared", "exclusive"] = "shared",
    progress: bool = True,
    **features: Any,
) -> Results:
    """Run a suite as ``kbench suite`` does: same plan, journal and MLflow runs.

    Cached results, also those of the command line, are not computed again.

    Parameters
    ----------
    suite : str
        Name of an installed suite, or path of a suite file.
    dataset, feature_map, learner : str or sequence of str, optional
        Use only the components of the suite with this name or label, or that match this pattern.
    add_datasets, add_feature_maps, add_learners : str or sequence of str, optional
        Add this installed component to the suite, with its default parameters.
    n_splits : int, optional
        Number of splits, instead of the suite's.
    jobs : int, optional
        Number of parallel tasks; by default the physical cores, or the threads of a cluster.
    data : str, optional
        Folder of the data files that the suite names by relative paths; the current
        folder by default.
    recompute : bool, default False
        Compute everything again, and use no cached result.
    retry_failed : bool, default False
        Compute failed tasks again.
    offline : bool, default False
        Download no data.
    task_timeout : float, optional
        Time limit of one task (one split of a cell), in seconds.
    memory_limit : float, optional
        Memory limit of one task, in MiB.
    device : {"cpu", "torch-cpu", "cuda"}, optional
        Device that computes maps and linear learners, instead of the suite's.
    timing : {"shared", "exclusive"}, default "shared"
        With "exclusive", run one task at a time and block your other kbench processes on
        this machine, for reliable timings.
    progress : bool, default True
        Show progress: a live table in a terminal or a notebook, lines elsewhere.
    **features
        Options of features, as on the command line: ``store`` (MLflow store;
        ``MLFLOW_TRACKING_URI``, else ``mlflow.db`` in this folder, by default) and ``scheduler``
        (address of the scheduler of a Dask cluster that computes the tasks).

    Returns
    -------
    Results
        One cell per planned cell, whatever its status; notebooks show a leaderboard, and
        ``to_frame()`` is the table of ``kbench results``.

    Raises
    ------
    KbenchError
        The suite, a name or a limit is wrong; nothing has run.
    KeyboardInterrupt
        The user interrupted it; finished results are kept, and the next call
        goes on.

    Examples
    --------
    >>> import kbench
    >>> found = kbench.run_suite("uci-small", dataset="iris", feature_map="identity",
    ...     add_learners="dummy-majority", learner="dummy-majority",
    ...     progress=False)  # doctest: +SKIP
    >>> found.to_frame()[["dataset", "learner", "accuracy"]]  # doctest: +SKIP
      dataset         learner  accuracy
    0    iris  dummy-majority  0.333333
    """
    registry = load_registry()
    chosen = select_suite(
        suite,
        registry,
        *(dataset, feature_map, learner),
        add=(add_datasets, add_feature_maps, add_learners),
        n_splits=n_splits,
        time_s=task_timeout,
        memory_mib=memory_limit,
        data=data,
        device=device,
    )
    settings = check_options("run_suite", features)
    options = Options(jobs, recompute, retry_failed, offline, timing, given=settings)
    report = run_shown(chosen, registry, options, quiet=not progress)
    if report.interrupted:
        raise KeyboardInterrupt("finished results are kept; the next call goes on")
    metric = report.suite.compared
    delivered = next(iter(report.deliveries), Delivered("", report.suite.name))
    return Results(
        suite,
        sort_by_dataset([make_full_row(cell, report.place, metric) for cell in report.cells]),
        metric,
        store=delivered.uri,
        experiment=delivered.experiment,
        problem=delivered.problem,
        budget=report.suite.equal_budget,
    )


@_show_options
def load_results(
    suite: str, *, machine: str | None = None, outdated: bool = False, **features: Any
) -> Results:
    """Read the results of a suite back from MLflow, as ``kbench results`` does.

    Parameters
    ----------
    suite : str
        Its name, or the path of its file, or the name of its experiment.
    machine : str, optional
        Use the runs of this machine (its id, or "all"); by default of the current machine,
        else of the one that wrote last.
    outdated : bool, default False
        Include results whose code, data or settings have changed since; the column
        ``outdated`` shows what has changed.
    **features
        Options of features: ``store`` (MLflow store; ``MLFLOW_TRACKING_URI``, else
        ``mlflow.db`` in this folder, by default).

    Returns
    -------
    Results
        Notebooks show a leaderboard; ``to_frame()`` is the table of ``kbench results``.

    Raises
    ------
    StoreError, SuiteError
        There is no such store, or it has no runs of the suite.
    """
    options = check_options("load_results", features)
    stored = read_results(Query(suite, options, machine, outdated=outdated, notice=warnings.warn))
    return Results(
        suite,
        stored.rows,
        stored.metric,
        store=stored.source,
        experiment=stored.name,
        budget=stored.budget,
    )


def evaluate(
    dataset: object,
    feature_map: object = "identity",
    learner: object = "linear-svm",
    *,
    protocol: Protocol | None = None,
    n_splits: int | None = None,
) -> "pandas.DataFrame":
    """Evaluate one feature map with one learner on one dataset, in this process.

    The protocol, the search and the metrics are those of a suite. Nothing is stored, no
    limits apply, and the times include other work of this process. Use `evaluate` to
    experiment, and `run_suite` for results that you report. Exceptions of a fit propagate.

    Parameters
    ----------
    dataset : str, dict, Ref, Dataset or tuple
        A registered name; an entry of a suite file such as
        ``{"name": "csv", "path": "mine.csv", "target": "y"}``; a `Dataset`;
        or ``(X, y)``: `X` of shape (n_samples, n_features), an array, a sparse
        matrix or a data frame of numbers with NaN for missing values; `y` of
        shape (n_samples,), labels of any kind, or the targets of a regression task:
        numbers of which at least one is not an integer.
    feature_map : str, dict, Ref or transformer, default "identity"
        A registered name; an entry of a suite file, whose other parameters are
        searched over the map's grid; or an unfitted scikit-learn transformer,
        used as it is and given the labels, as in a pipeline. If its class is that
        of a registered map, the record says what it needs of its inputs, whether
        it may use the labels, and which kernel it approximates.
    learner : str, dict, Ref or classifier, default "linear-svm"
        In the same way.
    protocol : Protocol, optional
        Splits, preprocessing and search; ``Protocol(missing="impute")`` by
        default.
    n_splits : int, optional
        Number of splits; all folds, or 10 holdouts, by default.

    Returns
    -------
    DataFrame
        One row per split: every metric, such as ``accuracy`` (``rmse``) and
        ``fit_time_s``, then the chosen parameters, as
        ``feature_map.bandwidth_factor``. ``attrs`` holds ``dataset``,
        ``checksum``, ``feature_map``, ``learner`` and ``notes``.

    Raises
    ------
    SuiteError
        A name or parameter does not exist; or a component, or the protocol's calibration
        or `search_metric`, is not for the dataset's task.
    DatasetError
        The data is unavailable, or cannot be split in this way.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import kbench
    >>> frame = kbench.evaluate("iris", learner=LogisticRegression(), n_splits=2)
    >>> frame["accuracy"].round(3).tolist()
    [0.867, 0.933]
    """
    import pandas
    from threadpoolctl import threadpool_limits

    registry = import_registry()
    protocol = protocol or Protocol(missing="impute")
    if n_splits is not None:
        check_integer(n_splits, "n_splits", least=1, otherwise="None", error=SuiteError)
    data = _dataset(dataset, registry)
    problems = (
        protocol_problem(protocol, data.task),
        search_problem(protocol, data.task, registry),
    )
    if any(problems):
        raise SuiteError(*filter(None, problems))
    map_label, map_side = _side(feature_map, "feature map", registry, data.task)
    learner_label, learner_side = _side(learner, "learner", registry, data.task)
    searched = search_side(protocol.search_metric, registry, len(data.target_names))
    method = Method(**map_side, **learner_side, **searched)
    uses_kernel = isinstance(learner_label, Ref) and (
        registry.get("learner", learner_label.name).uses_kernel
    )
    if uses_kernel and getattr(map_label, "name", "") != "identity":
        raise SuiteError(
            f"{_label(learner_label)} works on the inputs: its feature map must be 'identity', "
            f"got {_label(map_label)}"
        )
    n_splits = how_many_splits(protocol, Limits(n_splits=n_splits), len(data.splits))
    rows: list[dict[str, object]] = []
    notes: list[str] = []
    with threadpool_limits(limits=protocol.threads):
        for index in range(n_splits):
            evaluation = evaluate_split(data, index, method, protocol)
            rows.append({**evaluation.metrics, **evaluation.details.chosen})
            notes += evaluation.details.notes
    frame = pandas.DataFrame(rows)
    frame.index.name = "split"
    frame.attrs = {
        "dataset": data.name,
        "checksum": data.checksum,
        "feature_map": _label(map_label),
        "learner": _label(learner_label),
        "notes": sorted(set(notes)),
    }
    return frame


def _label(component: object) -> str:
    return component.label if isinstance(component, Ref) else type(component).__name__


def _ref(entry: object, kind: Kind, registry: Registry, task: TaskType | None = None) -> Ref:
    """Return the ref that a name or a line of a suite file means, checked."""
    problems: list[str] = []
    if isinstance(entry, Ref):
        registry.get(kind, entry.name)
        refs = [entry]
    else:
        key = kind.replace(" ", "_") + "s"
        lines = Lines(key, (key, [dict(entry) if isinstance(entry, Mapping) else entry]), registry)
        refs, problems = list(lines.refs), lines.problems
    problems = problems or parameter_problems([(kind, ref) for ref in refs], kind, registry, task)
    if not problems and len(refs) != 1:
        problems = [f"{kind} must be one component: `expand` stands for {len(refs)}"]
    if problems:
        raise SuiteError(*problems)
    return refs[0]


def _side(
    entry: object, kind: Kind, registry: Registry, task: TaskType
) -> tuple[Any, dict[str, Any]]:
    """Return the ref or estimator that was given, and its half of a method."""
    if isinstance(entry, str | Mapping | Ref):
        ref = _ref(entry, kind, registry, task)
        if task not in (able := registry.get(kind, ref.name).tasks):
            raise SuiteError(f"{kind} {ref.name!r} is for {' and '.join(able)}, not for {task}")
        if kind == "feature map":
            return ref, map_side(ref, registry)
        return relabel_for_task(ref, task, registry), learner_side(ref, registry, task)
    wanted = ("fit", "transform") if kind == "feature map" else ("fit", "predict")
    if isinstance(entry, type) or not all(hasattr(entry, name) for name in wanted):
        raise SuiteError(
            f"{kind} must be a name, an entry of a suite file, or an unfitted estimator with "
            f"{' and '.join(wanted)}, got {entry!r}"
        )
    component = _copy_spec(entry)
    record = _find_record(entry, kind, registry)
    if kind == "learner":
        return entry, {
            "learner": component,
            "learner_metrics": resolve(record.metrics) if record and record.metrics else None,
        }
    if record is None:
        return entry, {"feature_map": component}
    return entry, {
        "feature_map": replace(component, supervised=record.supervised, requires=record.requires),
        "kernel": resolve(record.kernel) if record.kernel else None,
        "map_metrics": resolve(record.metrics) if record.metrics else None,
    }


def _copy_spec(estimator: object) -> EstimatorSpec:
    """Return a component that makes copies of an estimator; no parameter is searched."""
    from sklearn.base import clone

    def make(**params: Any) -> Any:
        return clone(estimator).set_params(**params)

    seed = getattr(estimator, "random_state", None)
    # as in a pipeline, every step gets the labels, which it may ignore
    return EstimatorSpec(make, {} if seed is None else {"random_state": seed}, supervised=True)


def _find_record(estimator: Any, kind: Kind, registry: Registry) -> Any:
    """Return the record of an estimator's class; None if there is none.

    A record whose `make` presets parameters is that of estimators which have these values.
    """
    cls, params = type(estimator), estimator.get_params(deep=False)
    records: list[tuple[int, object]] = []
    every = [(record, make) for record in registry.all(kind).values() for make in makers(record)]
    for record, maker in every:
        # import only modules that may define or export the class
        if not cls.__module__.startswith(get_module(maker)):
            continue
        make = resolve(maker)
        preset: Mapping[str, object] = {}
        if isinstance(make, functools.partial) and make.func is cls:
            arguments = inspect.signature(cls).bind_partial(*make.args, **make.keywords)
            make, preset = cls, arguments.arguments
        if make is cls and all(
            name in params and _is_same(params[name], value) for name, value in preset.items()
        ):
            records.append((len(preset), record))
    return max(records, key=lambda each: each[0])[1] if records else None


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and np.array_equal(one, other))


def _dataset(data: object, registry: Registry) -> Dataset:
    if isinstance(data, Dataset):
        return check_dataset(data)
    if isinstance(data, tuple | list) and len(data) == 2:
        return _make_dataset(*data)
    if not isinstance(data, str | Mapping | Ref):
        raise DatasetError(
            "dataset must be a name, an entry of a suite file, a Dataset, or (X, y), got "
            f"{type(data).__name__}"
        )
    ref = _ref(data, "dataset", registry)
    with open_fetching(registry) as fetching:
        facts = fetching.dataset(ref)
    if isinstance(facts, Problem):
        raise DatasetError(facts.reason)
    return DataCache().load_for(facts)


def _make_dataset(X: Any, y: Any) -> Dataset:
    """Return a user's inputs and labels as a dataset in canonical form."""
    import pandas

    names: Sequence[str] = ()
    if hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
        kinds = [pandas.api.types.is_numeric_dtype(kind) for kind in X.dtypes]
        if strings := [name for name, numeric in zip(names, kinds, strict=True) if not numeric]:
            raise DatasetError(
                f"X must have columns of numbers, got {', '.join(strings[:5])}. Encode them, or "
                'evaluate the file itself: {"name": "csv", "path": ..., "target": ...}'
            )
        X = X.to_numpy(dtype=np.float64, na_value=np.nan)
    elif not hasattr(X, "tocsr"):
        X = np.asarray(X)
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise DatasetError(f"y must have shape (n_samples,), got {labels.shape}")
    # numpy would write missing labels among names as one more name: "nan", "None"
    named = labels if hasattr(y, "dtype") else np.array([*y, None], dtype=object)[:-1]
    if named.dtype.kind == "O" and (n_missing := int(pandas.isna(named).sum())):
        raise DatasetError(f"y has {n_missing} missing labels; leave these rows out")
    if labels.dtype.kind == "f":
        if n_missing := int(np.isnan(labels).sum()):
            raise DatasetError(f"y has {n_missing} missing values; leave these rows out")
        data = Dataset("(X, y)", X, labels, feature_names=names)
        if data.task == "regression":
            return check_dataset(data)
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise DatasetError("y must have labels of one type, got several, or missing ones") from None
    targets = [str(label) for label in classes]
    return check_dataset(Dataset("(X, y)", X, codes, feature_names=names, target_names=targets))
