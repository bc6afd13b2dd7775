"""Recommend a method for one dataset from its rows of results, in sentences.

The best method is the one with the best mean of the metric. A method is *within noise* of it if
the corrected resampled t-test finds no significant difference (p > 0.05, Nadeau and Bengio 2003)
and it is at most 0.01 less accurate, or its error at most 2 % larger. The second condition is
needed because a test on few splits has little power. Of the methods within noise, the one with the
shortest fit is recommended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kbench.features import (
    ALPHA,
    METRICS,
    NO_TEST,
    ROPE,
    CorrectedT,
    Row,
    duration,
    format_method,
    on_dataset,
    p_value,
)
from kbench.messages import number, option, plural
from kbench.records import ACCURACY, Metric, TaskType
from kbench_tables.time_budget.sample_sizes import standard_error

RATIO = 1.5
"""Minimum ratio of fit times that is reported."""

BESIDE = "roc_auc"
"""The metric shown next to the balanced accuracy."""

LARGER_ERROR = 0.02
"""How much larger an error may be within noise, as a share of the best method's."""


@dataclass(frozen=True)
class Advice:
    """A recommendation for one dataset."""

    best: Row
    """The row of the best mean of the metric."""
    chosen: Row
    """The row of the recommended method."""
    within_noise: list[Row]
    """Rows within noise of the best, itself included."""
    sentences: tuple[str, ...]
    """The recommendation; the first sentence names the method and its score."""


def advise(
    rows: Sequence[Row],
    uses_kernel: Collection[str] = (),
    baselines: Collection[str] = (),
    metric: Metric = ACCURACY,
    task: TaskType = "classification",
    boosted: Collection[str] = (),
    nested: bool = False,
    shares: Sequence[float] = (),
) -> Advice | None:
    """Recommend a method from the rows of one dataset; return None if no method finished.

    `uses_kernel`, `baselines` and `boosted` are labels of the learners that a chosen method is
    compared with: those on kernels, those that ignore the inputs, and those that come first.
    If rows are `nested`, they have the same test sets, and the training rows of one are a
    sample of another's. `shares` are those of the rows of the classes.
    """
    complete = [row for row in rows if row.is_complete and metric.name in row.metrics]
    if not complete:
        return None
    comparison = _Comparison(complete, metric, task, nested, shares)
    return comparison.advice(rows, uses_kernel, baselines, boosted)


class _Comparison:
    """The complete rows of one dataset, compared by a metric."""

    def __init__(
        self,
        complete: Sequence[Row],
        metric: Metric,
        task: TaskType,
        nested: bool = False,
        shares: Sequence[float] = (),
    ) -> None:
        self.complete, self.metric, self.task = complete, metric, task
        self.nested, self.shares = nested, shares
        self.longest = max(complete, key=lambda row: len(row.by_split(metric.name)))
        self.most_rows = max(row.metrics.get("n_train", 0.0) for row in complete)
        # ties go to the one that is fitted faster
        self.best = min(
            complete,
            key=lambda row: (
                -metric.gain(float(f"{self.level(row):.12g}")),
                row.metrics["fit_time_s"],
            ),
        )

    def advice(
        self,
        rows: Sequence[Row],
        uses_kernel: Collection[str],
        baselines: Collection[str],
        boosted: Collection[str],
    ) -> Advice:
        """Recommend the cheapest of the methods within noise of the best."""
        equal = [row for row in self.complete if self.is_within_noise(row)]
        if (ranking := self.by_ranking(equal)) is not None:
            equal = [row for row in equal if ranking.is_within_noise(row)]
        # times are compared on the same rows
        most = max(row.metrics.get("n_train", 0.0) for row in equal)
        chosen = min(
            (row for row in equal if row.metrics.get("n_train", 0.0) >= 0.9 * most),
            key=lambda row: row.metrics["fit_time_s"],
        )
        beside = self.compare_all() if chosen is self.best else self.beside_best(chosen, len(equal))
        sentences = [
            self.describe(chosen),
            *beside,
            *self.beside_boosting(chosen, boosted),
            *self.beside_baseline(chosen, baselines),
            *self.beside_kernels(chosen, uses_kernel),
            *self.on_a_sample(chosen),
            *self.intervals(chosen, equal, baselines),
            *_left_out(rows, len(self.complete)),
        ]
        return Advice(self.best, chosen, equal, tuple(sentences))

    # -- values in words

    def value(self, row: Row) -> float:
        return row.metrics[self.metric.name]

    def level(self, row: Row) -> float:
        """Return the value of a row as it would be over the splits of the row with the most.

        A row that lacks some of them is compared on the common ones.
        """
        mine, all_ = (each.by_split(self.metric.name) for each in (row, self.longest))
        common = mine.keys() & all_.keys()
        if not self.nested or not common or len(common) == len(all_):
            return self.value(row)
        ahead = sum(mine[i] - all_[i] for i in common) / len(common)
        return self.value(self.longest) + ahead

    def margin(self, tested: bool = True) -> float:
        """Return how much worse a method within noise may be: at most half a standard error.

        Without a significant difference, methods may still differ by more than a short fit is
        worth. Without a test, the correlation of scores on the few rows of a rare class is unknown.
        """
        value = self.value(self.best)
        most = LARGER_ERROR * abs(value) if self._is_error else ROPE
        n_test = self.best.metrics.get("n_test", 0.0) * self.best.n_splits_done
        if not n_test:
            return most
        error = standard_error(value, n_test, self.metric, self.shares)
        if not tested and self.metric.name == "balanced_accuracy" and len(self.shares) == 2:
            return error
        return min(most, error / 2)

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
    def nearly(self) -> str:
        """The condition on a method within noise of the best one."""
        if self._is_error:
            return f"an error at most {LARGER_ERROR:.0%} larger".replace("%", " %")
        if self.metric == ACCURACY:
            return f"at most {ROPE} less accurate"
        return f"at most {ROPE} less {self.metric.words}"

    @property
    def _is_error(self) -> bool:
        return self.metric.better == "lower"

    def format_row(self, row: Row) -> str:
        """Return the name of a method with its value."""
        return f"{format_method(row.method)} ({self.what}{self.format(self.value(row))})"

    @property
    def also(self) -> str:
        """The second metric that methods within noise agree in."""
        return ", by roc auc too," if self.metric.name == "balanced_accuracy" else ""

    # -- decisions

    def is_within_noise(self, row: Row) -> bool:
        if row is self.best:
            return True
        if self.metric.name not in row.metrics:
            return False
        behind = self.metric.gain(self.level(self.best) - self.level(row))
        test = self.test(self.best, row)
        if test is None:
            return self.nested and behind <= self.margin(tested=False)
        if behind > self.margin():
            return False
        return test.is_zero if test.p is None else test.p > ALPHA

    def by_ranking(self, rows: Sequence[Row]) -> _Comparison | None:
        """Compare methods of equal balanced accuracy by ROC AUC; None for other metrics.

        If a class is rare, all methods may predict the most frequent class only.
        """
        ranked = [row for row in rows if BESIDE in row.metrics]
        if self.metric.name != "balanced_accuracy" or not ranked:
            return None
        return _Comparison(ranked, METRICS[BESIDE], self.task, self.nested, self.shares)

    def test(self, one: Row, other: Row) -> CorrectedT | None:
        return on_dataset(one, other, self.metric, ALPHA, self.nested)

    # -- sentences

    def describe(self, row: Row) -> str:
        value, sd = self.value(row), row.metrics.get(self.metric.sd)
        sentence = f"Use {format_method(row.method)}: {self.format(value)}"
        if sd is not None:
            sentence += f" ± {self.format(sd)}"
        sentence += f" {self.metric.words}"
        if sd is not None:
            sentence += f" (mean and sd over {row.n_splits} splits)"
        if self.metric.name == "balanced_accuracy" and "roc_auc" in row.metrics:
            sentence += f", roc auc {row.metrics['roc_auc']:.3f}"
        if self.task == "regression" and "r2" in row.metrics:
            sentence += f", r2 {row.metrics['r2']:.3f}"
        sentence += f", fitted in {duration(row.metrics['fit_time_s'])}"
        if row.predict_time_per_row_s is not None:
            sentence += f", {duration(row.predict_time_per_row_s)} per prediction"
        if row.metrics.get("n_stored_floats"):
            sentence += f", a model of {size(row.metrics['n_stored_floats'])}"
        return sentence + "."

    def beside_best(self, chosen: Row, n_equal: int) -> list[str]:
        test = self.test(self.best, chosen)
        behind = self.format(abs(self.level(self.best) - self.level(chosen)))
        gap = f"the difference is {behind}, less than one standard error"
        if test is not None:
            gap = f"the difference is {self.format(abs(test.difference))}, {self.say_test(test)}"
        if test is not None and test.is_zero:
            gap = "both score the same on every split"
        if n_equal == 1:
            return [
                f"It is within noise of the {self.most}, {self.format_row(self.best)}: {gap}. Of "
                "the methods within noise, its roc auc is significantly the best."
            ]
        return [
            f"It is within noise of the {self.most}, {self.format_row(self.best)}: {gap}. Of the "
            f"{n_equal} methods within noise{self.also} it has the shortest fit time."
        ]

    def say_test(self, test: CorrectedT) -> str:
        """Return the interval and the p value of a test, or the reason why there is none."""
        if test.p is None or test.low is None or test.high is None:
            return NO_TEST
        # positive if the other method is worse
        ends = sorted([self.metric.gain(test.low), self.metric.gain(test.high)])
        low, high = map(self.format, ends)
        return f"95 % interval [{low}, {high}], p = {p_value(test.p)}"

    def compare_all(self) -> list[str]:
        """Return how certain it is that the best method is the best."""
        further = [row for row in self.complete if row is not self.best]
        if not further:
            return []
        tests = [self.test(self.best, row) for row in further]
        if all(test is not None and test.p is not None and test.p <= ALPHA for test in tests):
            them = "the other method" if len(further) == 1 else f"the {len(further)} other methods"
            more = "more accurate" if self.most == "most accurate" else "better"
            return [f"It is significantly {more} than {them} (p <= {ALPHA})."]
        untested = [
            row
            for row, test in zip(further, tests, strict=True)
            if test is not None and test.p is None and not test.is_zero
        ]
        doubt = f" Compared with {self.some(untested)}: {NO_TEST}." if untested else ""
        near = [row for row in further if self.is_within_noise(row)]
        near.sort(key=lambda row: -self.metric.gain(self.value(row)))
        if not near:
            return [
                f"It is the {self.most}, and no other method is within noise of it (p > {ALPHA} "
                f"and {self.nearly}).{doubt}"
            ]
        return [
            f"It is the {self.most}. Within noise of it, but slower to fit: {self.some(near)}."
            f"{doubt}"
        ]

    def some(self, rows: Sequence[Row]) -> str:
        more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
        return ", ".join(map(self.format_row, rows[:3])) + more

    def format_rows(self, row: Row) -> str:
        """Return on how many rows a method was fitted, if others had more."""
        n = row.metrics.get("n_train", 0.0)
        return f" on {n:,.0f} rows" if n < self.most_rows else ""

    def on_a_sample(self, chosen: Row) -> list[str]:
        if not self.format_rows(chosen):
            return []
        n = chosen.metrics["n_train"]
        return [
            f"It was fitted on {n:,.0f} of {self.most_rows:,.0f} rows, and scored on the same test "
            "rows as the other methods. Fitting all rows takes longer and rarely makes it worse."
        ]

    def beside_boosting(self, chosen: Row, boosted: Collection[str]) -> list[str]:
        """Compare the score with that of the best gradient boosting."""
        rows = [row for row in self.complete if row.learner in boosted]
        if not rows or chosen in rows:
            return []
        row = max(rows, key=lambda row: self.metric.gain(self.level(row)))
        fitted = duration(row.metrics["fit_time_s"])
        sentence = (
            f"The best gradient boosting, {format_method(row.method)}, scores "
            f"{self.what}{self.format(self.value(row))}{self.format_rows(row)}, fitted in {fitted}"
        )
        test = self.test(chosen, row)
        return [f"{sentence}." if test is None else f"{sentence}: {self.say_evidence(test)}."]

    def say_evidence(self, test: CorrectedT) -> str:
        if test.p is None:
            return "equal on every split" if test.is_zero else NO_TEST
        same = "no significant difference" if test.p > ALPHA else "significantly different"
        return f"{same} (p = {p_value(test.p)})"

    def beside_kernels(self, chosen: Row, uses_kernel: Collection[str]) -> list[str]:
        """Compare the time with that of the best kernel machine."""
        kernels = [row for row in self.complete if row.learner in uses_kernel]
        if not kernels or chosen in kernels:
            return []
        kernel = max(kernels, key=lambda row: self.metric.gain(self.value(row)))
        if self.format_rows(kernel) != self.format_rows(chosen):
            fitted = duration(kernel.metrics["fit_time_s"])
            return [
                f"The kernel machine, {format_method(kernel.method)}, scores "
                f"{self.what}{self.format(self.value(kernel))}{self.format_rows(kernel)}, fitted "
                f"in {fitted}."
            ]
        ratio = kernel.metrics["fit_time_s"] / max(chosen.metrics["fit_time_s"], 1e-9)
        if ratio < RATIO and 1 / ratio < RATIO:
            return []
        word = f"{_times(ratio)} faster" if ratio > 1 else f"{_times(1 / ratio)} slower"
        return [f"The recommended method is {word} to fit than {self.format_row(kernel)}."]

    def beside_baseline(self, chosen: Row, baselines: Collection[str]) -> list[str]:
        plain = next((row for row in self.complete if row.learner in baselines), None)
        regression = self.task == "regression"
        if plain is None:
            if regression and chosen.metrics.get("r2", 1.0) <= 0:
                return ["Its r2 is not above 0: always predicting the mean is as good."]
            return []
        doing = "predicting the mean" if regression else "predicting the most frequent class"
        if chosen is plain and len(self.complete) == 1:
            return [f"That is the baseline ({doing}); no other method was evaluated in full."]
        if chosen is plain:
            return [
                f"That is the baseline ({doing}): no method was significantly better, so these "
                "columns may not predict the target."
            ]
        test = self.test(chosen, plain)
        sentence = f"The baseline ({doing}) scores {self.what}{self.format(self.value(plain))}"
        ranking = self.by_ranking([chosen, plain])
        is_told_apart = test is not None and test.p is not None and test.p <= ALPHA
        if ranking is not None and not is_told_apart and not ranking.is_within_noise(plain):
            return [
                f"{sentence}, without a significant difference: the method hardly predicts the "
                "rare class. But it ranks the rows better, with roc auc "
                f"{ranking.value(chosen):.3f}: choose a threshold for its scores or probabilities; "
                f"{option('metric', BESIDE)} compares by ranks."
            ]
        if test is not None and test.p is None:
            return [f"{sentence} ({NO_TEST})."]
        if test is not None and test.p is not None and test.p > ALPHA:
            return [
                f"{sentence}, without a significant difference (p = {p_value(test.p)}): these "
                "columns may not predict the target."
            ]
        if self._is_error and self.value(plain) > 0:
            share = 1 - self.value(chosen) / self.value(plain)
            return [f"{sentence}: the errors of the method are {100 * share:.0f} % smaller."]
        return [f"{sentence}."]

    def intervals(self, chosen: Row, equal: Sequence[Row], baselines: Collection[str]) -> list[str]:
        """Name the method that predicts intervals, with the error of their coverage."""
        row = min(
            (
                row
                for row in equal
                if "coverage_error_90" in row.metrics and row.learner not in baselines
            ),
            key=lambda row: (row is not chosen, row.metrics["fit_time_s"]),
            default=None,
        )
        if row is None:
            return []
        subject = "It also" if row is chosen else f"{self.format_row(row)}, within noise too,"
        return [
            f"{subject} predicts intervals: the coverage of its 90 % intervals was "
            f"{100 * row.metrics['coverage_error_90']:.1f} percentage points off 90 %, on "
            "average over the splits."
        ]


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio >= 100 else f"{ratio:.3g} times"


def _left_out(rows: Sequence[Row], n_complete: int) -> list[str]:
    sentences = []
    if n_complete > 1:
        sentences.append(
            "It was chosen and scored on the same splits, so its score is slightly optimistic."
        )
    too_large = sum(row.status == "skipped" and bool(row.error) for row in rows)
    if too_large:
        sentences.append(
            f"{too_large} of {plural(len(rows), 'method')} {'does' if too_large == 1 else 'do'} "
            "not fit into the memory limit."
        )
    skipped = sum(row.status == "skipped" and not row.error for row in rows)
    if skipped:
        sentences.append(
            f"{skipped} of {plural(len(rows), 'method')} {'was' if skipped == 1 else 'were'} "
            "not evaluated in full within the time limit; a better one may be among them."
        )
    return sentences


def size(n_floats: float) -> str:
    """Format the size of a model of `n_floats` numbers of 8 bytes.

    >>> size(100), size(50_000), size(3e8)
    ('0.8 kB', '400 kB', '2400 MB')
    """
    kilobytes = n_floats * 8 / 1000
    return f"{kilobytes:.3g} kB" if kilobytes < 1000 else f"{kilobytes / 1000:.4g} MB"
