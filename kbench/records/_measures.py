"""Measures of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from kbench.records._components import Make, TaskType

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from os import PathLike

Needs = Literal["predictions", "scores", "probabilities", "distribution"]


DEFAULT = "default_"
"""Prefix of the measures of the default candidate: what a search gained beyond it."""


@dataclass(frozen=True)
class Measure:
    """A measure of predictions: a suite compares methods by one, and searches by one.

    Plugins add measures by the hook ``kbench_measures``. Two measures are equal if their
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
        What it is computed from; a learner without it does not have the measure.
        It decides the arguments of `function`, see there.
    function : callable or "module:name", optional
        Computes the measure of a plugin, like a metric of scikit-learn. Its arguments are
        the true labels 0..k-1 or targets of the test part, shape (n,), and

        - "predictions": the predicted labels or numbers, shape (n,);
        - "scores": the learner's probabilities, else its decision values, of shape (n,)
          for two classes, which are larger for class 1, else (n, n_classes);
        - "probabilities": shape (n, n_classes), of all classes of the dataset;
        - "distribution": mean and standard deviation of a normal predictive distribution,
          each of shape (n,), in the target's units.

        If it has a parameter `sample_weight`, it is given the weights of the dataset.
    depends : sequence of str or path, optional
        What else decides the numbers: modules that are not imported by a statement, and
        files, as ``"package:relative/path"`` or absolute paths.
    reads_env : sequence of str, optional
        Environment variables whose values decide the numbers.
    in_units : bool, default False
        Whether its values are in the target's units. Such values are shown by dataset, and
        methods are not compared by them over several datasets.

    Examples
    --------
    >>> Measure("expected_error", "lower").gain(0.25)
    -0.25
    """

    name: str = "accuracy"
    better: Literal["higher", "lower"] = "higher"
    definition: str = field(default="", compare=False)
    task: TaskType | None = field(default=None, compare=False)
    needs: Needs = field(default="predictions", compare=False)
    function: Make | None = field(default=None, compare=False)
    depends: Sequence[str | PathLike[str] | Traversable] = field(default=(), compare=False)
    reads_env: Sequence[str] = field(default=(), compare=False)
    in_units: bool = field(default=False, compare=False)

    @property
    def sd(self) -> str:
        """Name of the standard deviation of one split."""
        return f"{self.name}_sd"

    @property
    def of_default(self) -> str:
        """Name of the measure of the default candidate of a search."""
        return f"{DEFAULT}{self.name}"

    @property
    def words(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    def gain(self, value: Any) -> Any:
        """Return a value, or an array of them, so that higher is better."""
        return value if self.better == "higher" else -value


# fmt: off
RESERVED = frozenset({
    "accuracy", "balanced_accuracy", "expected_error", "f1_macro", "matthews", "roc_auc",
    "average_precision", "log_loss", "brier", "ece_15_equal_mass", "rmse",
    "rmse_standardised", "mae", "r2", "nlpd", "nlpd_standardised", "crps",
    "crps_standardised", "coverage_error_90", "interval_score_90", "accuracy_unseen",
    "seen_rows", "gram_error_frobenius", "gram_error_spectral", "effective_dimension",
    "map_fit_time_s", "map_transform_time_s", "learner_fit_time_s", "fit_time_s",
    "predict_time_s", "search_time_s", "map_fit_time_cpu_s", "map_transform_time_cpu_s",
    "learner_fit_time_cpu_s", "fit_time_cpu_s", "predict_time_cpu_s", "search_time_cpu_s",
    "shared_pass", "embedding_passes", "task_time_s", "task_time_cpu_s",
    "predicted_memory_mb", "predicted_time_s", "predicted_time_low_s", "predicted_time_high_s",
    "predict_row_s", "calibration_s", "calibration_time_s", "calibration_time_cpu_s",
    "calibration_converged", "seconds", "n_train", "n_test", "n_features",
    "n_components", "n_candidates", "search_at_edge", "search_space", "n_splits",
    "n_splits_done", "nnz_per_row",
    "model_floats", "peak_memory_mb", "converged", "search_converged", "search_complete",
    "search_failures",
    "dataset", "feature_map", "learner", "status", "group", "machine", "protocol", "split",
    "split_hash", "search", "version", "at_edge", "notes", "contention", "timing", "error",
    "equivalence", "family", "measure", "better", "start_ms", "end_ms",
})
# fmt: on
"""Names of numbers and columns that kbench reports: no measure of a plugin has one."""

ACCURACY = Measure()
"""Default measure of suites of classification tasks."""
