"""Definitions and directions of the built-in measures, without numpy."""

from __future__ import annotations

from collections.abc import Mapping

from kbench.errors import SuiteError
from kbench.records import Measure, TaskType

_OF_PREDICTIONS = (
    Measure("accuracy", "higher", "share of rows with the right label", "classification"),
    Measure(
        "balanced_accuracy",
        "higher",
        "mean recall of the classes in the test part",
        "classification",
    ),
    Measure(
        "expected_error",
        "lower",
        "1 - accuracy; exact for a rule that draws its labels",
        "classification",
    ),
    Measure(
        "f1_macro",
        "higher",
        "mean over classes of 2 right / (rows of the class + rows predicted as it)",
        "classification",
    ),
    Measure(
        "matthews",
        "higher",
        "correlation of true and predicted labels; 0 where one of them is constant",
        "classification",
    ),
    Measure(
        "roc_auc",
        "higher",
        "area under the ROC curve: of class 1 of two, else mean of one-vs-rest",
        "classification",
        "scores",
    ),
    Measure(
        "average_precision",
        "higher",
        "mean precision over recall: of class 1 of two, else mean of one-vs-rest",
        "classification",
        "scores",
    ),
    Measure(
        "log_loss",
        "lower",
        "mean of -log of the probability of the right label",
        "classification",
        "probabilities",
    ),
    Measure(
        "brier",
        "lower",
        "mean over rows of the sum over classes of (probability - indicator)^2, 0 to 2",
        "classification",
        "probabilities",
    ),
    Measure(
        "ece_15_equal_mass",
        "lower",
        "mean |confidence - accuracy| of the top label over 15 bins of equal mass; "
        "never for ranking",
        "classification",
        "probabilities",
    ),
    Measure(
        "rmse_standardised",
        "lower",
        "rmse over the standard deviation of the training targets",
        "regression",
    ),
    Measure(
        "rmse",
        "lower",
        "root mean squared error, in the target's units",
        "regression",
        in_units=True,
    ),
    Measure(
        "mae", "lower", "mean absolute error, in the target's units", "regression", in_units=True
    ),
    Measure(
        "r2",
        "higher",
        "1 - squared error over squared distance from the mean of the test targets",
        "regression",
    ),
    Measure(
        "nlpd",
        "lower",
        "mean negative log predictive density, in the target's units",
        "regression",
        "distribution",
        in_units=True,
    ),
    Measure(
        "nlpd_standardised",
        "lower",
        "nlpd of standardised targets: nlpd - log of their standard deviation",
        "regression",
        "distribution",
    ),
    Measure(
        "crps",
        "lower",
        "mean continuous ranked probability score, in the target's units",
        "regression",
        "distribution",
        in_units=True,
    ),
    Measure(
        "crps_standardised",
        "lower",
        "crps over the standard deviation of the training targets",
        "regression",
        "distribution",
    ),
    Measure(
        "coverage_error_90",
        "lower",
        "|share of targets in the central 90 % interval - 0.9|",
        "regression",
        "distribution",
    ),
    Measure(
        "interval_score_90",
        "lower",
        "width of the 90 % interval + 20 x distance of targets outside, in the target's units",
        "regression",
        "distribution",
        in_units=True,
    ),
)
"""Measures that `kbench.evaluation.measures` computes."""

_REPORTED = (
    Measure(
        "accuracy_unseen",
        "higher",
        "accuracy on rows that equal no training row",
        "classification",
    ),
    Measure(
        "gram_error_frobenius",
        "lower",
        "relative error of the Gram matrix, of a map that declares its kernel",
    ),
    Measure("gram_error_spectral", "lower", "the same in the spectral norm"),
)

MEASURES: Mapping[str, Measure] = {
    measure.name: measure for measure in (*_OF_PREDICTIONS, *_REPORTED)
}
"""Built-in measures by name; plugins add others."""

NEVER_RANKED: Mapping[str, str] = {
    "ece_15_equal_mass": (
        "'ece_15_equal_mass' is never for ranking: a classifier that ignores its inputs can "
        "have 0; rank by 'log_loss' or 'brier', which are proper scores"
    )
}
"""Measures by which methods are not compared and searches not guided, with the reason."""


COMPUTED: tuple[str, ...] = tuple(measure.name for measure in _OF_PREDICTIONS)
"""Measures that are computed from predictions."""

SEARCHED: tuple[str, ...] = tuple(name for name in COMPUTED if name not in NEVER_RANKED)
"""Measures that a search can optimise."""


def default_measure(task: TaskType) -> Measure:
    """Return the measure that suites of a task compare by default."""
    return MEASURES["accuracy" if task == "classification" else "rmse_standardised"]


def search_measure(name: str | None, task: TaskType) -> Measure:
    """Return the measure that a search optimises, given its name in the protocol.

    SuiteError is raised for a name that no search can optimise.
    """
    name = name or ("accuracy" if task == "classification" else "rmse")
    if name not in SEARCHED:
        raise SuiteError(
            NEVER_RANKED.get(name, f"no search_measure is called {name!r}")
            + ("" if name in NEVER_RANKED else f"; there are {', '.join(SEARCHED)}")
        )
    return MEASURES[name]
