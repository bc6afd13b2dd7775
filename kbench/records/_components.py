"""Records that plugins register: sources of datasets, maps, learners, kernels and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from os import PathLike

# A class, a factory, or ``"module:name"`` of one.
Make = Callable[..., Any] | str

# What is predicted: one of several classes, or a number.
TaskType = Literal["classification", "regression"]

# Factors of the median distance that all default grids of bandwidths have, the default first.
BANDWIDTH_FACTORS = (1.0, 0.25, 0.5, 2.0)

TASK_TYPES: tuple[TaskType, ...] = ("classification", "regression")

# Family of maps that leave the inputs as they are.
INPUTS = "inputs"

# Family of learners that are linear in the features.
LINEAR = "linear"

# Family of learners that are exact kernel machines: maps approximate them.
KERNEL = "kernel"

# Family of learners that ignore the inputs: they have nothing to search over.
BASELINE = "baseline"


@dataclass(frozen=True)
class DatasetSource:
    r"""A source of datasets.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    load : callable or "module:name"
        ``load(**params) -> Dataset``.
    expand : callable or "module:name", optional
        ``expand(**params) -> list of Ref``: expand one suite entry into several
        datasets; return ``[]`` if it stands for a single one.
    expanded_by : str, default ""
        The parameter of entries that `expand` is called for; it is called for all by default.
    depends : sequence of str or path, optional
        What else decides the data: modules that are not imported by a statement, and
        files, as ``"package:relative/path"`` or absolute paths.
    env_vars : sequence of str, optional
        Environment variables whose values decide the data.
    named_by_label : bool, default False
        A label in the entry of a suite file is also the parameter ``label`` of `load`: the
        name of data that have none of their own, such as a user's file.
    extensions : mapping of str to mapping, optional
        Extensions of the files that the source reads, in lower case, each
        with the parameters that it implies, such as
        ``{".csv": {}, ".tsv": {"delimiter": "\t"}}``. The commands for a user's
        file give `load` the parameter ``path`` and, if it has them, ``target``, ``drop``,
        ``categorical``, ``date_formats``, ``target_encode``, ``strip_units``, ``delimiter``,
        ``decimal``, ``thousands``, ``encoding``, ``na_values``, ``sheet`` and ``header_row``. The
        parameters ``path`` and ``split_file`` are names of files: data are read again once a file
        has changed.
    rows : callable or "module:name", optional
        ``rows(**params) -> kbench.tables.table_rows.Opened``: the user's table before it is
        encoded, in blocks, with all rows and columns, and how its files are written where the
        parameters do not say it; for sources whose `load` has a ``target``. The commands for a
        user's file look at the columns before they load it. None stands for a file that has no
        table, such as one of sparse rows. `kbench.tables.table_rows.FrameRows` has the rows of
        a data frame.
    text_blocks : "module:name", optional
        Reads CSV files for `kbench predict` and in exported models, which bundle its module.
    """

    name: str
    load: Make
    expand: Make | None = None
    expanded_by: str = ""
    depends: Sequence[str | PathLike[str] | Traversable] = ()
    env_vars: Sequence[str] = ()
    named_by_label: bool = False
    extensions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rows: Make | None = None
    text_blocks: str | None = None


@dataclass(frozen=True)
class FeatureMap:
    """An explicit feature map: a scikit-learn transformer.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    make : callable or "module:name"
        Returns an unfitted transformer; its keyword parameters are those of a
        suite line. If it has ``takes_lazy_rows = True``, ``fit`` gets training data that do
        not fit into memory as an object with `shape`, `dtype`, ``X[start:stop]`` and
        ``X[numbers]``, which preprocesses the rows that are taken.
    grid : mapping of str to sequence, optional
        Values to search over, for each parameter that a suite line does not
        give; a `Ref` stands for a component, such as a kernel. A
        parameter of it may be a `Tune`: a value for each that it has.
    kernel : callable, optional
        ``kernel(map, X, Y)`` is the Gram matrix which the fitted map
        approximates.
    supervised : bool, default False
        Pass `y` to ``fit``: labels, or targets in units of their standard deviation.
    tasks : sequence of {"classification", "regression"}, optional
        Tasks for which the map is meant; both by default. A map that uses labels of
        classes names "classification" only.
    requires : {None, "nonnegative", "unit_ball"}, default None
        Condition on the inputs; kbench adds a fitted scaling step where the
        protocol's preprocessing does not ensure it.
    metrics : callable, optional
        ``metrics(fitted, X, y) -> {name: float}``, called on the test set
        after the clock has stopped. It may have the keyword-only arguments
        `learner` (fitted on the embedding), `X_train` and `y_train`, with defaults.
        The learner was fitted on these rows. So was the map, unless it uses no
        labels and the protocol has an `unlabeled_size`.
    depends : sequence of str or path, optional
        What else decides the numbers: modules that are not imported by a statement, and
        files, as ``"package:relative/path"`` or absolute paths.
    env_vars : sequence of str, optional
        Environment variables whose values decide the numbers.
    span : callable or "module:name", optional
        ``span(params) -> str``: a canonical description of the feature space for the
        parameters of a suite entry, "" if unknown. Searched parameters are passed as
        `Tune` of plain values and Refs. Two maps with the same span differ only by a
        rotation of their features: with a learner that is `rotation_invariant` they are
        one method, which tests over datasets count once.
    family : str, optional
        Kind of the map. A suite with equal budgets searches identical candidates within a
        family. kbench's maps have "fourier", "landmarks", "partition", "polynomial",
        "chi-squared", "additive" and, for unchanged inputs, "inputs". By default the map is
        the only member of its family. The number of columns of a "partition" may grow with the
        rows: predictions of costs fit it on many.
    unbiased : bool, default False
        The features are an unbiased estimate of `kernel`: over seeds, the mean of
        ``phi(x) @ phi(z)`` is ``k(x, z)`` for any number of features: see `kbench plugin check`.
    """

    name: str
    make: Make
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    kernel: Make | None = None
    supervised: bool = False
    tasks: Sequence[TaskType] = TASK_TYPES
    requires: Literal["nonnegative", "unit_ball"] | None = None
    metrics: Make | None = None
    depends: Sequence[str | PathLike[str] | Traversable] = ()
    env_vars: Sequence[str] = ()
    span: Make | None = None
    family: str = ""
    unbiased: bool = False


@dataclass(frozen=True)
class Learner:
    """A classifier, a regressor, or both under one name, with a scikit-learn interface.

    The task of the dataset decides which of them is made. Both have the same grid.
    A regressor is given targets in units of their standard deviation on the training
    set, with mean zero. If its ``predict`` has the parameter ``return_std``, its
    predictive distribution is normal; the standard deviation includes the noise of an
    observation.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    classifier : callable or "module:name", optional
        Returns an unfitted classifier.
    regressor : callable or "module:name", optional
        Returns an unfitted regressor.
    grid : mapping of str to sequence, optional
        Values to search over, for each parameter that a suite line does not
        give; a `Ref` stands for a component, such as a kernel.
    uses_kernel : bool, default False
        The learner is a kernel method: it has a parameter ``kernel`` or ``kernels``. It is
        combined with the map ``identity`` only.
    path : str, optional
        A parameter, such as ``"C"``, for all values of which the learner can be fitted at once:
        ``fit_path(X, y, values)`` returns one fitted estimator per value, in that order.
        A linear estimator may also have ``fit_sums(sums, values)``, which returns the same for
        penalised least squares, from sums over rows instead of rows; the parameter weighs
        the penalty against the sum of squared errors. kbench uses it for embeddings that are
        too large for one matrix.
        `sums` has the number of rows ``n`` (or the sum of their weights), ``mean`` and
        ``target_mean``, the centred products ``gram``, shape (n_features, n_features), and
        ``moments``, shape (n_features, n_targets), and ``classes``: labels, of which the
        targets are indicators 0 and 1, or None. The estimators have ``coef_`` and
        ``intercept_``. They predict the class with the largest decision value; of two
        classes the second, if the decision value is at least 0.
        An iterative linear classifier may have ``begin_fit(sample, values)`` instead:
        it returns a fit that gets the embedding in blocks, in as many passes as it needs.
        `sample` has rows drawn by seed, ``Z``, their class indices, ``codes``, and for all rows
        the labels, ``classes``, and the number of rows of each, ``counts``. The fit has
        ``add(Z, codes)`` for a block of rows, ``step()`` for the end of a pass, ``is_done``,
        ``nbytes`` (its memory) and ``estimators()``, which returns what ``fit_path`` does. With
        ``order(n_rows)`` it gets the rows of each pass in this order. ``add`` also gets the
        weights of the rows, if there are any. An estimator may limit the sample by
        ``sample_rows``. If
        the linear functions are not the scores of the classes, the estimators have
        ``scores_of(values)``. On a device (`Protocol.device`) only an estimator with the
        attribute ``takes_any_namespace = True`` is fitted: blocks, `Z` of `sample`, and ``mean``,
        ``gram`` and ``moments`` of `sums` are arrays of torch there, and it also predicts
        such blocks; what it returns and its attributes are numpy's.
    simpler : mapping of str to {"smaller", "larger"}, optional
        Which values of numeric parameters make a simpler model, such as
        ``{"C": "smaller"}``, for the one-standard-error rule; the first
        parameter counts before the second.
    multiclass : str, optional
        How the classifier treats several classes if the parameter `multiclass` is not
        given: "ovr" (each class against the rest), "ovo" (each pair of classes) or
        "multinomial". The default of that parameter, if there is one. Labels show it,
        since the scheme can matter more than the map; those of a regressor do not.
    metrics : callable, optional
        ``metrics(fitted, X, y) -> {name: float}``, called on the embedded
        test set after the clock has stopped. Targets are standardised as in ``fit``.
    depends, env_vars : sequence, optional
        As in `FeatureMap`.
    rotation_invariant : bool, default False
        Predictions do not change if the features are rotated: they depend on inner products
        only.
    baseline : bool, default False
        The learner ignores the inputs: it always predicts the most frequent class, or
        the mean. Recommendations report its score for comparison.
    family : str, optional
        Kind of the learner: "linear" in the features, "kernel", "neighbours", "trees",
        "networks", or "baseline". Unless it is "linear", it is also the family of the learner's
        methods without a map. By default the learner is the only member of its family.
    compares_rows : bool, default False
        The time may grow faster than the rows, as that of all pairs of rows does. Predictions
        of costs expect this of kernel methods and of the family "neighbours" in any case. An
        estimator may also have ``scale_sizes(share)``, which scales sizes that decide how rows
        are computed, such as that of a cache, for a sample with a share of the rows.
    """

    name: str
    classifier: Make | None = None
    regressor: Make | None = None
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    uses_kernel: bool = False
    path: str | None = None
    simpler: Mapping[str, Literal["smaller", "larger"]] = field(default_factory=dict)
    multiclass: str = ""
    metrics: Make | None = None
    depends: Sequence[str | PathLike[str] | Traversable] = ()
    env_vars: Sequence[str] = ()
    rotation_invariant: bool = False
    baseline: bool = False
    family: str = ""
    compares_rows: bool = False

    @property
    def tasks(self) -> tuple[TaskType, ...]:
        """Tasks for which there is an estimator."""
        return tuple(task for task in TASK_TYPES if self.estimator(task) is not None)

    def estimator(self, task: TaskType) -> Make | None:
        """Return what makes the estimator for a task; None if there is none."""
        return self.classifier if task == "classification" else self.regressor


def get_family(feature_map: FeatureMap, learner: Learner) -> str:
    """Return the family of a method: within one, methods should have identical candidates.

    It is that of the map. On the inputs without a map it is that of the learner, unless
    the learner is linear. Empty if the method is a family of its own.

    >>> rff = FeatureMap("rff", "my_maps:RFF", family="fourier")
    >>> identity = FeatureMap("identity", "my_maps:Identity", family="inputs")
    >>> ridge = Learner("ridge", "my_learners:Ridge", family="linear")
    >>> svm = Learner("kernel-svm", "my_learners:KernelSVM", family="kernel")
    >>> get_family(rff, ridge), get_family(identity, ridge), get_family(identity, svm)
    ('fourier', 'inputs', 'kernel')
    """
    if feature_map.family == INPUTS and learner.family != LINEAR:
        return learner.family
    return feature_map.family


@dataclass(frozen=True)
class KernelSpec:
    """A kernel that suite files can name.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    make : callable or "module:name"
        Returns a callable ``k(X, Y) -> Gram matrix``.
    psd : bool, default True
        Every Gram matrix ``k(X, X)`` is positive semidefinite.
    depends, env_vars : sequence, optional
        As in `FeatureMap`.
    """

    name: str
    make: Make
    psd: bool = True
    depends: Sequence[str | PathLike[str] | Traversable] = ()
    env_vars: Sequence[str] = ()


@dataclass(frozen=True)
class Figure:
    """A figure that a plugin adds to a report.

    Parameters
    ----------
    name, title : str
        Identifier and heading.
    draw : callable or "module:name"
        ``draw(results) -> matplotlib.figure.Figure``.
    suites : sequence of str, optional
        Suites to whose reports it belongs; all of them where empty.
    """

    name: str
    title: str
    draw: Make
    suites: Sequence[str] = ()


Needs = Literal["predictions", "scores", "probabilities", "distribution"]


# Prefix of the metrics of the default candidate: what a search gained beyond it.
DEFAULT = "default_"


@dataclass(frozen=True)
class Metric:
    """A metric computed from predictions: a suite uses one to rank methods, one to search.

    Plugins add metrics by the hook ``kbench_metrics``. Two metrics are equal if their
    names and directions are.

    Parameters
    ----------
    name : str, default "accuracy"
        The name in suite files and tables, lower case with underscores.
    better : {"higher", "lower"}, default "higher"
        Which values are better.
    definition : str, optional
        Definition in one line.
    task : {"classification", "regression"}, optional
        Task to which it applies; both by default.
    needs : {"predictions", "scores", "probabilities", "distribution"}, optional
        What it is computed from; a learner without it does not have the metric.
        It decides the arguments of `function`, see there.
    function : callable or "module:name", optional
        Computes the metric of a plugin, like a metric of scikit-learn. Its arguments are
        the true labels 0..k-1 or targets of the test set, shape (n,), and

        - "predictions": the predicted labels or numbers, shape (n,);
        - "scores": the learner's probabilities, else its decision values, of shape (n,)
          for two classes, which are larger for class 1, else (n, n_classes);
        - "probabilities": shape (n, n_classes), of all classes of the dataset;
        - "distribution": mean and standard deviation of a normal predictive distribution,
          each of shape (n,), in the target's units.

        If it has a parameter `sample_weight`, it is given the weights of the dataset.
    depends, env_vars : sequence, optional
        As in `FeatureMap`.
    in_units : bool, default False
        Whether its values are in the target's units. Such values are shown by dataset, and
        methods are not compared by them over several datasets.

    Examples
    --------
    >>> Metric("expected_error", "lower").gain(0.25)
    -0.25
    """

    name: str = "accuracy"
    better: Literal["higher", "lower"] = "higher"
    definition: str = field(default="", compare=False)
    task: TaskType | None = field(default=None, compare=False)
    needs: Needs = field(default="predictions", compare=False)
    function: Make | None = field(default=None, compare=False)
    depends: Sequence[str | PathLike[str] | Traversable] = field(default=(), compare=False)
    env_vars: Sequence[str] = field(default=(), compare=False)
    in_units: bool = field(default=False, compare=False)

    @property
    def sd(self) -> str:
        """Name of the standard deviation of one split."""
        return f"{self.name}_sd"

    @property
    def default_name(self) -> str:
        """Name of the metric of the default candidate of a search."""
        return f"{DEFAULT}{self.name}"

    @property
    def words(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    def gain(self, value: Any) -> Any:
        """Return a value, or an array of them, so that higher is better."""
        return value if self.better == "higher" else -value


# fmt: off
# Names of numbers and columns that kbench reports: no metric of a plugin has one.
RESERVED = frozenset({
    "accuracy", "balanced_accuracy", "expected_error", "f1_macro", "mcc", "roc_auc",
    "average_precision", "log_loss", "brier_score", "ece", "rmse", "rmse_standardized", "mae", "r2",
    "nlpd", "nlpd_standardized", "crps", "crps_standardized", "coverage_error_90",
    "interval_score_90", "accuracy_non_duplicates", "duplicate_test_fraction",
    "gram_error_frobenius", "gram_error_spectral", "effective_dimension", "map_fit_time_s",
    "map_transform_time_s", "learner_fit_time_s", "fit_time_s", "predict_time_s", "search_time_s",
    "map_fit_time_cpu_s", "map_transform_time_cpu_s", "learner_fit_time_cpu_s", "fit_time_cpu_s",
    "predict_time_cpu_s", "search_time_cpu_s", "shared_pass", "embedding_passes", "task_time_s",
    "task_time_cpu_s", "predicted_memory_mib", "predicted_time_s", "predicted_time_low_s",
    "predicted_time_high_s", "predict_time_per_row_s", "machine_speed_s", "calibration_time_s",
    "calibration_time_cpu_s", "calibration_converged", "seconds", "n_train", "n_test", "n_features",
    "n_components", "n_candidates", "grid_size", "search_at_boundary", "search_space", "n_splits",
    "n_splits_done", "nnz_per_row", "n_stored_floats", "peak_memory_mib", "converged",
    "search_converged", "search_complete", "search_failures", "dataset", "feature_map", "learner",
    "status", "dataset_family", "machine", "protocol", "split", "split_hash", "search", "version",
    "at_boundary", "notes", "contention", "timing", "error", "equivalence", "family", "metric",
    "better", "start_ms", "end_ms",
})
# fmt: on

# Default metric of suites of classification tasks.
ACCURACY = Metric()
