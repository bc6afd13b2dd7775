"""Definitions and directions of the built-in metrics, without numpy."""

from collections.abc import Mapping
from typing import Literal

from kbench.records import Metric, Needs, TaskType

Better = Literal["higher", "lower"]

_DEFINITIONS: Mapping[tuple[TaskType, Needs], Mapping[str, tuple[Better, str]]] = {
    ("classification", "predictions"): {
        "accuracy": ("higher", "share of rows with the right label"),
        "balanced_accuracy": ("higher", "mean recall of the classes in the test set"),
        "expected_error": ("lower", "1 - accuracy; exact for a rule that draws its labels"),
        "f1_macro": (
            "higher",
            "mean over classes of 2 right / (rows of the class + rows predicted as it)",
        ),
        "mcc": ("higher", "correlation of true and predicted labels; 0 if one of them is constant"),
    },
    ("classification", "scores"): {
        "roc_auc": (
            "higher",
            "area under the ROC curve: of class 1 of two, else mean of one-vs-rest",
        ),
        "average_precision": (
            "higher",
            "mean precision over recall: of class 1 of two, else mean of one-vs-rest",
        ),
    },
    ("classification", "probabilities"): {
        "log_loss": ("lower", "mean of -log of the probability of the right label"),
        "brier_score": (
            "lower",
            "mean over rows of the sum over classes of (probability - indicator)^2, 0 to 2",
        ),
        "ece": (
            "lower",
            "mean |confidence - accuracy| of the top label over 15 bins of equal mass; "
            "never for ranking",
        ),
    },
    ("regression", "predictions"): {
        "rmse_standardized": ("lower", "rmse over the standard deviation of the training targets"),
        "rmse": ("lower", "root mean squared error, in the target's units"),
        "mae": ("lower", "mean absolute error, in the target's units"),
        "r2": (
            "higher",
            "1 - squared error over squared distance from the mean of the test targets",
        ),
    },
    ("regression", "distribution"): {
        "nlpd": ("lower", "mean negative log predictive density, in the target's units"),
        "nlpd_standardized": (
            "lower",
            "nlpd of standardised targets: nlpd - log of their standard deviation",
        ),
        "crps": ("lower", "mean continuous ranked probability score, in the target's units"),
        "crps_standardized": ("lower", "crps over the standard deviation of the training targets"),
        "coverage_error_90": ("lower", "|share of targets in the central 90 % interval - 0.9|"),
        "interval_score_90": (
            "lower",
            "width of the 90 % interval + 20 x distance of targets outside, in the target's units",
        ),
    },
}
"""Direction and definition of the metrics that `kbench.evaluation.metrics` computes."""

_IN_UNITS = ("rmse", "mae", "nlpd", "crps", "interval_score_90")

_OF_PREDICTIONS = tuple(
    Metric(name, better, definition, task, needs, in_units=name in _IN_UNITS)
    for (task, needs), metrics in _DEFINITIONS.items()
    for name, (better, definition) in metrics.items()
)

_REPORTED = (
    Metric(
        "accuracy_non_duplicates",
        "higher",
        "accuracy on rows that equal no training row",
        "classification",
    ),
    Metric(
        "gram_error_frobenius",
        "lower",
        "relative error of the Gram matrix, of a map that declares its kernel",
    ),
    Metric("gram_error_spectral", "lower", "the same in the spectral norm"),
)

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (*_OF_PREDICTIONS, *_REPORTED)}
"""Built-in metrics by name; plugins add others."""

NEVER_RANKED: Mapping[str, str] = {
    "ece": (
        "'ece' is never for ranking: a classifier that ignores its inputs can "
        "have 0; rank by 'log_loss' or 'brier_score', which are proper scores"
    )
}
"""Metrics by which methods are not compared and searches not guided, with the reason."""


COMPUTED: tuple[str, ...] = tuple(metric.name for metric in _OF_PREDICTIONS)
"""Metrics that are computed from predictions."""

SEARCHED: tuple[str, ...] = tuple(name for name in COMPUTED if name not in NEVER_RANKED)
"""Metrics that a search can optimise."""


def default_metric(task: TaskType) -> Metric:
    """Return the metric that suites of a task compare by default."""
    return METRICS["accuracy" if task == "classification" else "rmse_standardized"]
