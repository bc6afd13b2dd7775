"""The metric by which methods are compared on a user's file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kbench import features
from kbench.messages import did_you_mean, option, plural
from kbench.records import Cell, DatasetFacts, Metric, Protocol

# A class is rare below this fraction of its share under equal class frequencies.
RARE = 0.4

# The metric if a class is rare: predicting the most frequent class scores 1 / n_classes; and the
# metric of a search then: one that needs no threshold.
BALANCED, BY_RANKS = "balanced_accuracy", "roc_auc"

# Metrics of predicted labels that depend on the threshold between two classes.
DECIDED = (BALANCED, "f1_macro", "mcc")

# Parameter of the learners that can weight all classes equally.
WEIGHING = "balanced"

# Maximum number of classes whose shares are printed.
SHOWN = 6


@dataclass(frozen=True)
class Comparison:
    """The metric of a comparison."""

    metric: Metric | None = None
    """None for the suite's metric."""
    with_probabilities: bool = False
    sentence: str = ""
    """The reason for this metric; may be empty."""

    def protocol(self, protocol: Protocol, n_classes: int) -> Protocol:
        """Return a protocol that searches by the metric, if all learners have it."""
        if self.with_probabilities:
            protocol = replace(protocol, calibration="sigmoid")
        metric = self.metric
        # what all learners have during a search, without calibration
        if metric is None or not {"predictions": True, "scores": n_classes == 2}.get(metric.needs):
            return protocol
        decides = n_classes == 2 and metric.name in DECIDED
        if decides and metric.name != BALANCED:
            protocol = replace(protocol, threshold_metric=metric.name)  # type: ignore[arg-type]
        return replace(protocol, search_metric=BY_RANKS if decides else metric.name)

    def weigh(self, cells: Sequence[Cell], registry: features.Registry) -> list[Cell]:
        """Return cells whose learners weight all classes equally if the metric does.

        Learners without class weights stay as they are.
        """
        if self.metric is None or self.metric.name != BALANCED:
            return list(cells)
        weighted = []
        for cell in cells:
            ref = cell.learner
            make = registry.get("learner", ref.name).classifier
            if make is not None and WEIGHING in (features.read_parameters(make) or ()):
                ref = replace(ref, params={WEIGHING: True, **ref.params})
            weighted.append(replace(cell, learner=ref))
        return weighted


def comparison(
    name: str | None, with_probabilities: bool, facts: DatasetFacts, registry: features.Registry
) -> Comparison:
    """Return the metric of a comparison: the named one, or one that suits the class frequencies.

    SuiteError is raised if there is no such metric, or it is not for the task.
    """
    if with_probabilities and facts.task == "regression":
        raise features.SuiteError(
            f"{option('probabilities')} is for classification; for regression, bayesian-linear and "
            "other learners with a predictive distribution predict intervals"
        )
    if name is not None:
        metric = _find_metric(name, facts, registry)
        # decision values of pairs of classes are not one score per class
        needs = ("probabilities", "scores") if facts.n_classes > 2 else ("probabilities",)
        said = f"the decision threshold for {metric.words} comes from out-of-fold scores"
        said = said if facts.n_classes == 2 and name in DECIDED[1:] else ""
        return Comparison(metric, with_probabilities or metric.needs in needs, said)
    rare = rare_class(facts)
    if rare is None:
        return Comparison(None, with_probabilities)
    share, bound = 100 * facts.class_counts[rare] / facts.n_samples, 100 * RARE / facts.n_classes
    return Comparison(
        features.METRICS[BALANCED],
        with_probabilities,
        f"the rarest class, {facts.target_names[rare]!r}, has {share:.2g} % of the rows, less "
        f"than {RARE}/{facts.n_classes} = {bound:.3g} %: methods are compared by balanced "
        "accuracy (the mean recall of the classes), with ROC AUC next to it, and learners that "
        "have class weights weight all classes equally "
        f"({option('metric', 'accuracy')} compares by accuracy, which is high even if the most "
        "frequent class is always predicted)",
    )


def list_shares(facts: DatasetFacts) -> str:
    """Return the shares of the classes, in words.

    >>> list_shares(DatasetFacts("c", n_samples=4, class_counts=(3, 1), target_names=("no", "yes")))
    "'no' 75 %, 'yes' 25 %"
    """
    by_size = sorted(zip(facts.class_counts, facts.target_names, strict=False), reverse=True)
    words = [f"{name!r} {100 * n / facts.n_samples:.3g} %" for n, name in by_size]
    if len(words) > SHOWN:
        hidden = plural(len(words) - SHOWN, "other", "others")
        words = [*words[: SHOWN - 1], f"{hidden} between", words[-1]]
    return ", ".join(words)


def rare_class(facts: DatasetFacts) -> int | None:
    """Return the rarest class if it is below the bound."""
    if facts.task == "regression" or not facts.class_counts:
        return None
    rarest = min(range(len(facts.class_counts)), key=facts.class_counts.__getitem__)
    bound = RARE / facts.n_classes * facts.n_samples
    return rarest if facts.class_counts[rarest] < bound else None


def _find_metric(name: str, facts: DatasetFacts, registry: features.Registry) -> Metric:
    metrics: dict[str, Metric] = {**features.METRICS, **registry.all("metric")}
    fitting = [
        each
        for each in (*features.SEARCHED, *registry.all("metric"))
        if metrics[each].task in (None, facts.task)
    ]
    if name in features.NEVER_RANKED:
        raise features.SuiteError(f"{option('metric')}: {features.NEVER_RANKED[name]}")
    if name in fitting:
        return metrics[name]
    if name in metrics:
        raise features.SuiteError(
            f"{option('metric', name)} is not for {facts.task}; available: {', '.join(fitting)}"
        )
    hint = did_you_mean(name, fitting) or f"; available: {', '.join(fitting)}"
    raise features.SuiteError(f"{option('metric')}: no metric is named {name!r}{hint}")
