"""Measure by which methods are compared on a user's own file."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kbench.errors import SuiteError
from kbench.features import MEASURES, NEVER_RANKED, SEARCHED, Registry
from kbench.messages import counted, did_you_mean, option
from kbench.records import DatasetFacts, Measure, Protocol

RARE = 0.4
"""A class with less than this share of its part, were all classes equally frequent, is rare."""

BALANCED = "balanced_accuracy"
"""The measure where a class is rare: always naming the commonest class gains nothing by it."""

SHOWN = 6
"""Classes of which the shares are printed."""


@dataclass(frozen=True)
class Comparison:
    """What methods are compared by."""

    measure: Measure | None = None
    """The suite's own, if None."""
    with_probabilities: bool = False
    """Decision values are turned into probabilities."""
    sentence: str = ""
    """Why it is this measure; empty where nothing is to be said."""

    def protocol(self, protocol: Protocol, n_classes: int) -> Protocol:
        """Return a protocol that searches by the measure, where all learners have it."""
        if self.with_probabilities:
            protocol = replace(protocol, calibration="sigmoid")
        measure = self.measure
        if measure is None or not _all_have(measure, n_classes):
            return protocol
        return replace(protocol, search_measure=measure.name)


def comparison(
    name: str | None, with_probabilities: bool, facts: DatasetFacts, registry: Registry
) -> Comparison:
    """Return what methods are compared by: the measure of a name, or by the classes' shares.

    SuiteError is raised where there is no such measure, or it is not for the task.
    """
    if with_probabilities and facts.task == "regression":
        raise SuiteError(
            f"{option('proba')} is for classes; numbers have prediction intervals, by "
            "bayesian-linear or another learner with a predictive distribution"
        )
    if name is not None:
        measure = _named(name, facts, registry)
        needs = measure.needs == "probabilities" or _needs_one_score_per_class(measure, facts)
        return Comparison(measure, with_probabilities or needs)
    rare = _rare_class(facts)
    if rare is None:
        return Comparison(None, with_probabilities)
    share, bound = 100 * facts.class_counts[rare] / facts.n_samples, 100 * RARE / facts.n_classes
    return Comparison(
        MEASURES[BALANCED],
        with_probabilities,
        f"the rarest class, {facts.target_names[rare]!r}, has {share:.2g} % of the rows, below "
        f"{RARE}/{facts.n_classes} = {bound:.3g} %: methods are compared by balanced accuracy, "
        "the mean of the shares of each class that are found, with ROC AUC beside it "
        f"({option('measure', 'accuracy')} compares accuracies, which always naming the commonest "
        "class makes high)",
    )


def shares_of(facts: DatasetFacts) -> str:
    """Return the shares of the classes, in words.

    >>> shares_of(DatasetFacts("c", n_samples=4, class_counts=(3, 1), target_names=("no", "yes")))
    "'no' 75 %, 'yes' 25 %"
    """
    by_size = sorted(zip(facts.class_counts, facts.target_names, strict=False), reverse=True)
    words = [f"{name!r} {100 * n / facts.n_samples:.3g} %" for n, name in by_size]
    if len(words) > SHOWN:
        hidden = counted(len(words) - SHOWN, "other", "others")
        words = [*words[: SHOWN - 1], f"{hidden} between", words[-1]]
    return ", ".join(words)


def _rare_class(facts: DatasetFacts) -> int | None:
    """Return the rarest class if it is rare."""
    if facts.task == "regression" or not facts.class_counts:
        return None
    rarest = min(range(len(facts.class_counts)), key=facts.class_counts.__getitem__)
    bound = RARE / facts.n_classes * facts.n_samples
    return rarest if facts.class_counts[rarest] < bound else None


def _named(name: str, facts: DatasetFacts, registry: Registry) -> Measure:
    known: dict[str, Measure] = {**MEASURES, **registry.all("measure")}
    fitting = [
        each
        for each in (*SEARCHED, *registry.all("measure"))
        if known[each].task in (None, facts.task)
    ]
    if name in NEVER_RANKED:
        raise SuiteError(f"{option('measure')}: {NEVER_RANKED[name]}")
    if name in fitting:
        return known[name]
    if name in known:
        raise SuiteError(
            f"{option('measure', name)} is not for {facts.task}; there are {', '.join(fitting)}"
        )
    hint = did_you_mean(name, fitting) or f"; there are {', '.join(fitting)}"
    raise SuiteError(f"{option('measure')}: no measure is called {name!r}{hint}")


def _needs_one_score_per_class(measure: Measure, facts: DatasetFacts) -> bool:
    """Whether decision values of pairs of classes do not suffice."""
    return measure.needs == "scores" and facts.n_classes > 2


def _all_have(measure: Measure, n_classes: int) -> bool:
    """Whether all learners have the measure in a search, where nothing is calibrated."""
    return measure.needs == "predictions" or (measure.needs == "scores" and n_classes == 2)
