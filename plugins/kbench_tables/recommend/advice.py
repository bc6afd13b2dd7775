"""Recommend a method for one dataset from its rows of results, in sentences.

The best method is the one with the best mean of the metric; if a method lacks splits, its mean is
made worse by their standard error. A method is *within noise* of it if the corrected resampled
t-test finds no significant difference (p > 0.05, Nadeau and Bengio 2003) and it is at most 0.01
less accurate, or its error at most 2 % larger. The second condition is needed because a test on few
splits has little power. Of the methods within noise, the one with the shortest fit is recommended
if the fit of the best takes at least ten times as long.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kbench import features
from kbench.messages import number
from kbench.records import ACCURACY, Metric, TaskType
from kbench_tables.time_budget.sample_sizes import OVER_CLASSES, level, standard_error

LEAST_SHARE = 0.2
"""Minimum rows of a method compared by a mean over classes, as a share of the most of any method.

On fewer, a rare class has a handful of rows, and the best of many scores is noise.
"""

# Share of the most rows below which a method was fitted on a sample. Splits by time vary less.
SAMPLED = 0.5

# How many times as fast a method within noise is fitted that is recommended instead of the best.
FASTER = 10

# Standard errors by which a score of one split differs from that of a baseline.
APART = 3.0

# The metric shown next to the balanced accuracy.
BESIDE = "roc_auc"

# Largest increase of an error within noise, as a share of the best method's.
LARGER_ERROR = 0.02


@dataclass(frozen=True)
class Advice:
    """A recommendation for one dataset."""

    chosen: features.Row
    sentences: tuple[str, ...]
    """The recommendation; the first sentence names the method and its score."""
    ranked: tuple[features.Row, ...] = ()
    """The methods with results, best first: scores on few splits count less."""


def advise(
    rows: Sequence[features.Row],
    baselines: Collection[str] = (),
    metric: Metric = ACCURACY,
    task: TaskType = "classification",
    boosted: Collection[str] = (),
    nested: bool = False,
    shares: Sequence[float] = (),
) -> Advice | None:
    """Recommend a method from the rows of one dataset; return None if no method finished.

    `baselines` and `boosted` are labels of the learners that a chosen method is compared with:
    those that ignore the inputs, and those that come first.
    If rows are `nested`, they have the same test sets, and the training rows of one are a
    sample of another's. `shares` are those of the rows of the classes.
    """
    complete = [row for row in rows if row.is_complete and metric.name in row.metrics]
    if not complete:
        return None
    if metric.name in OVER_CLASSES:
        tried = [row for row in complete if row.learner not in baselines] or complete
        least = LEAST_SHARE * max(map(n_train, tried))
        complete = [row for row in complete if row not in tried or n_train(row) >= least]
    return _Comparison(complete, metric, task, nested, shares).advice(baselines, boosted)


class _Comparison:
    """The complete rows of one dataset, compared by a metric."""

    def __init__(
        self,
        complete: Sequence[features.Row],
        metric: Metric,
        task: TaskType,
        nested: bool = False,
        shares: Sequence[float] = (),
    ) -> None:
        self.complete, self.metric, self.task = complete, metric, task
        self.nested, self.shares = nested, shares
        self.longest = max(complete, key=lambda row: len(row.by_split(metric.name)))
        self.most_rows = max(map(n_train, complete))
        # ties go to the one that is fitted faster
        self.best = min(
            complete,
            key=lambda row: (
                -metric.gain(float(f"{self.cautious_level(row):.12g}")),
                row.metrics["fit_time_s"],
            ),
        )

    def advice(self, baselines: Collection[str], boosted: Collection[str]) -> Advice:
        """Recommend the best method, or one within noise of it that is much faster to fit."""
        near = [row for row in self.complete if self.is_within_noise(row)]
        equal = [row for row in near if row is self.best or self.behind(row) <= self.margin]
        best = self.best
        if (ranking := self.by_ranking(equal)) is not None:
            equal, best = [row for row in equal if ranking.is_within_noise(row)], ranking.best
        # times are compared on the same rows
        most = max(map(n_train, equal))
        alike = [row for row in equal if n_train(row) >= SAMPLED * most]
        chosen = min(alike, key=lambda row: row.metrics["fit_time_s"])
        if best in alike and best.metrics["fit_time_s"] < FASTER * chosen.metrics["fit_time_s"]:
            chosen = best
        n = 1 if chosen is best else len(equal)
        ranked = sorted(self.complete, key=lambda row: (self.behind(row), row is not self.best))
        sentences = [
            self.describe(chosen),
            *(self.compare_all(alike) if chosen is self.best else self.beside_best(chosen, n)),
            *self.beside_boosting(chosen, boosted),
            *self.beside_baseline(chosen, baselines),
            *self.on_order(ranked),
            *self.on_a_sample(chosen),
        ]
        if len(self.complete) > 1:
            sentences.append(
                "It was chosen and scored on the same splits, so its score is slightly optimistic."
            )
        return Advice(chosen, tuple(sentences), tuple(ranked))

    # -- values in words

    def value(self, row: features.Row) -> float:
        return row.metrics[self.metric.name]

    def level(self, row: features.Row) -> float:
        """Return the value of a row as it would be over the splits of the row with the most."""
        mine, all_ = (each.by_split(self.metric.name) for each in (row, self.longest))
        return level(mine, all_) if self.nested and mine else self.value(row)

    def cautious_level(self, row: features.Row) -> float:
        """Return the level, made worse by the standard error of the splits that a row lacks.

        The best of many scores on one split is luck.
        """
        n, most = (len(each.by_split(self.metric.name)) for each in (row, self.longest))
        value, n_test = self.level(row), row.metrics.get("n_test", 0.0)
        if not (self.nested and n and n_test):
            return value
        error = standard_error(value, n_test, self.metric, self.shares)
        return float(value - self.metric.gain(error * math.sqrt(1 / n - 1 / most)))

    def behind(self, row: features.Row) -> float:
        """Return how much worse a row is than the best one, by their cautious levels."""
        return float(self.metric.gain(self.cautious_level(self.best) - self.cautious_level(row)))

    @property
    def error(self) -> float:
        """The standard error of the best score on the test rows; 0 if their number is unknown."""
        n_test = self.best.metrics.get("n_test", 0.0) * self.best.n_splits_done
        value = self.value(self.best)
        return standard_error(value, n_test, self.metric, self.shares) if n_test else 0.0

    @property
    def margin(self) -> float:
        """Return the largest loss of a method within noise: at most half a standard error.

        Without a significant difference, methods may still differ by more than a short fit is
        worth. Balanced accuracy may be a whole one worse: ROC AUC, which varies less, decides then.
        """
        most = LARGER_ERROR * abs(self.value(self.best)) if self._is_error else features.ROPE
        if self.error and self.metric.name == "balanced_accuracy":
            return self.error
        return min(most, self.error / 2) if self.error else most

    def format(self, value: float) -> str:
        return f"{value:.3f}" if self.metric.better == "higher" else number(value)

    @property
    def what(self) -> str:
        """The name of the metric before a value; empty for accuracy."""
        return "" if self.metric == ACCURACY else f"{self.metric.words} "

    @property
    def most(self) -> str:
        return "most accurate" if self._is_error or self.metric == ACCURACY else "best"

    @property
    def _is_error(self) -> bool:
        return self.metric.better == "lower"

    def format_row(self, row: features.Row) -> str:
        """Return the name of a method with its score."""
        return f"{features.format_method(row.method)} ({self.format_score(row)})"

    def format_score(self, row: features.Row) -> str:
        """Return the value of a method, and on how many splits it was evaluated, if not on all."""
        n, most = (len(each.by_split(self.metric.name)) for each in (row, self.longest))
        splits = f" on {n} of {most} splits" if 0 < n < most else ""
        return f"{self.what}{self.format(self.value(row))}{splits}"

    # -- decisions

    def is_within_noise(self, row: features.Row) -> bool:
        if row is self.best:
            return True
        if self.metric.name not in row.metrics:
            return False
        behind = min(self.behind(row), self.metric.gain(self.level(self.best) - self.level(row)))
        test = self.test(self.best, row)
        if test is None:
            return self.nested and behind <= self.margin
        if behind > self.margin:
            return False
        return test.is_zero if test.p is None else test.p > features.ALPHA

    def by_ranking(self, rows: Sequence[features.Row]) -> _Comparison | None:
        """Compare methods of equal balanced accuracy by ROC AUC; None for other metrics.

        If a class is rare, all methods may predict the most frequent class only.
        """
        ranked = [row for row in rows if BESIDE in row.metrics]
        if self.metric.name != "balanced_accuracy" or not ranked:
            return None
        return _Comparison(ranked, features.METRICS[BESIDE], self.task, self.nested, self.shares)

    def test(self, one: features.Row, other: features.Row) -> features.CorrectedT | None:
        return features.on_dataset(one, other, self.metric, features.ALPHA, self.nested)

    # -- sentences

    def describe(self, row: features.Row) -> str:
        value, sd = self.value(row), row.metrics.get(self.metric.sd)
        scored = f"{self.format(value)} {self.metric.words}"
        if sd is not None:
            scored = f"{self.format(value)} ± {self.format(sd)} {self.metric.words}"
            scored += f" (mean and sd over {row.n_splits} splits)"
        elif (most := len(self.longest.by_split(self.metric.name))) > 1:
            scored += f" on 1 of {most} splits"
        sentence = f"Use {features.format_method(row.method)}: {scored}"
        if self.metric.name == "balanced_accuracy" and "roc_auc" in row.metrics:
            sentence += f", roc auc {row.metrics['roc_auc']:.3f}"
        if self.task == "regression" and "r2" in row.metrics:
            sentence += f", r2 {row.metrics['r2']:.3f}"
        sentence += f", fitted in {features.duration(row.metrics['fit_time_s'])}"
        if row.metrics.get("n_stored_floats"):
            sentence += f", a model of {size(row.metrics['n_stored_floats'])}"
        return sentence + "."

    def beside_best(self, chosen: features.Row, n_equal: int) -> list[str]:
        test = self.test(self.best, chosen)
        behind = self.metric.gain(self.level(self.best) - self.level(chosen))
        n = abs(behind) / (self.error or math.inf)
        n_errors = f"{n:.1f} standard errors" if n > 1 else "less than one standard error"
        gap = f"it is {self.format(abs(behind))} {'better' if behind < 0 else 'worse'}, {n_errors}"
        if test is not None:
            gap = f"the difference is {self.format(abs(test.difference))}, {self.say_test(test)}"
        if test is not None and test.is_zero:
            gap = "both score the same on every split"
        reason = f"Of the {n_equal} methods within noise it has the shortest fit time"
        if n_equal == 1:
            reason = "Of the methods within noise, it has the best roc auc"
        best = self.format_row(self.best)
        return [f"It is within noise of the {self.most}, {best}: {gap}. {reason}."]

    def say_test(self, test: features.CorrectedT) -> str:
        """Return the interval and the p value of a test, or the reason why there is none."""
        if test.p is None or test.low is None or test.high is None:
            return features.NO_TEST
        # positive if the other method is worse
        ends = sorted([self.metric.gain(test.low), self.metric.gain(test.high)])
        low, high = map(self.format, ends)
        return f"95 % interval [{low}, {high}], p = {features.p_value(test.p)}"

    def compare_all(self, alike: Sequence[features.Row]) -> list[str]:
        """Return how certain it is that the best method is the best; some are as good (`alike`)."""
        further = [row for row in self.complete if row is not self.best]
        if not further:
            return []
        tests = [self.test(self.best, row) for row in further]
        if all(t is not None and t.p is not None and t.p <= features.ALPHA for t in tests):
            them = "the other method" if len(further) == 1 else f"the {len(further)} other methods"
            more = "more accurate" if self.most == "most accurate" else "better"
            return [f"It is significantly {more} than {them} (p <= {features.ALPHA})."]
        near = [row for row in further if self.is_within_noise(row)]
        near.sort(key=lambda row: -self.metric.gain(self.cautious_level(row)))
        if not near:
            return [f"It is the {self.most}, and no other method is within noise of it."]
        slower = f", but not {FASTER} times as fast to fit" if all(r in alike for r in near) else ""
        more = f" and {len(near) - 3} more" if len(near) > 3 else ""
        names = ", ".join(map(self.format_row, near[:3])) + more
        return [f"It is the {self.most}. Within noise of it{slower}: {names}."]

    def format_rows(self, row: features.Row) -> str:
        """Return on how many rows a method was fitted, if others had more."""
        n = n_train(row)
        return f" on {n:,.0f} rows" if n < SAMPLED * self.most_rows else ""

    def on_order(self, ranked: Sequence[features.Row]) -> list[str]:
        """Say why a method with a better score stands below another one."""
        scores = [self.metric.gain(float(f"{self.value(row):.6g}")) for row in ranked]
        said = ["Methods are ordered by their common splits; few splits count less."]
        return said * (scores != sorted(scores, reverse=True))

    def on_a_sample(self, chosen: features.Row) -> list[str]:
        if not self.format_rows(chosen):
            return []
        return [
            f"It was fitted on {n_train(chosen):,.0f} of {self.most_rows:,.0f} rows, and scored on "
            "the same test rows as the other methods. Fitting all rows takes longer and rarely "
            "makes it worse."
        ]

    def beside_boosting(self, chosen: features.Row, boosted: Collection[str]) -> list[str]:
        """Compare the score with that of the best gradient boosting."""
        rows = [row for row in self.complete if row.learner in boosted]
        if not rows or chosen in rows:
            return []
        row = max(rows, key=lambda row: self.metric.gain(self.cautious_level(row)))
        theirs, mine = (each.by_split(self.metric.name) for each in (row, chosen))
        common = [value for split, value in mine.items() if split in theirs]
        same = self.format(sum(common) / max(1, len(common)))
        where = f" (the recommended method: {same})" * (0 < len(common) < len(mine))
        sentence = (
            f"The best gradient boosting, {features.format_method(row.method)}, scores "
            f"{self.format_score(row)}{where}"
            f"{self.format_rows(row)}, fitted in {features.duration(row.metrics['fit_time_s'])}"
        )
        test = self.test(chosen, row)
        return [f"{sentence}." if test is None else f"{sentence}: {self.say_test(test)}."]

    def beside_baseline(self, chosen: features.Row, baselines: Collection[str]) -> list[str]:
        plain = next((row for row in self.complete if row.learner in baselines), None)
        regression = self.task == "regression"
        doing = "predicting the mean" if regression else "predicting the most frequent class"
        if plain is None:
            if regression and chosen.metrics.get("r2", 1.0) <= 0:
                return ["Its r2 is not above 0: always predicting the mean is as good."]
            missing = f"The baseline ({doing}) was not evaluated in full: it may be as good."
            return [missing] if baselines else []
        if chosen is plain and len(self.complete) == 1:
            return [f"That is the baseline ({doing}); no other method was evaluated in full."]
        if chosen is plain:
            return [
                f"That is the baseline ({doing}): no method was significantly better, so these "
                "columns may not predict the target."
            ]
        test = self.test(chosen, plain)
        sentence = f"The baseline ({doing}) scores {self.format_score(plain)}"
        if test is None or test.p is None or test.p > features.ALPHA:
            # a test of two splits has nearly no power
            behind = abs(self.level(chosen) - self.level(plain))
            if behind > APART * (self.error or math.inf):
                return [f"{sentence}: {self.format(behind)} worse, which noise does not explain."]
        if test is None or test.p is None:
            why = features.NO_TEST if plain.n_splits_done > 1 else "one split: no test"
            return [f"{sentence} ({why})."]
        if test.p > features.ALPHA:
            return [
                f"{sentence}, without a significant difference (p = {features.p_value(test.p)}): "
                "these columns may not predict the target."
            ]
        if self._is_error and self.value(plain) > 0:
            share = 1 - self.value(chosen) / self.value(plain)
            return [f"{sentence}: the errors of the method are {100 * share:.0f} % smaller."]
        return [f"{sentence}."]


def n_train(row: features.Row) -> float:
    """Return the mean number of training rows of a method."""
    return row.metrics.get("n_train", 0.0)


def size(n_floats: float) -> str:
    """Format the size of a model of `n_floats` numbers of 8 bytes.

    >>> size(100), size(50_000), size(3e8)
    ('0.8 kB', '400 kB', '2400 MB')
    """
    kilobytes = n_floats * 8 / 1000
    return f"{kilobytes:.3g} kB" if kilobytes < 1000 else f"{kilobytes / 1000:.4g} MB"
