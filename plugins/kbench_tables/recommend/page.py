"""Recommendation of a method for one dataset, in words, from its results rows.

The best method is that of the best mean of the metric. *Within noise* of it are
the methods that the corrected resampled t-test does not tell apart from it
(p > 0.05, Nadeau and Bengio 2003) and that are nearly as good: at most 0.01 less
accurate, or an error at most 2 % larger. With few splits, a test alone shows no
difference. Of these the one that is fitted in the least time is recommended.
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
    name_of,
    on_dataset,
    p_value,
)
from kbench.messages import counted, number, option
from kbench.records import ACCURACY, Metric, TaskType
from kbench_tables.time_budget.sample_sizes import standard_error

RATIO = 1.5
"""Smallest ratio of fit times that is mentioned."""

BESIDE = "roc_auc"
"""The metric beside the balanced accuracy."""

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
    """The recommendation in words; the first one suffices alone."""


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
    """Recommend a method from the rows of one dataset; None where no method finished.

    `uses_kernel`, `baselines` and `boosted` are labels of the learners that a chosen method is
    compared with: those on kernels, those that ignore the inputs, and those that come first.
    Where rows are `nested`, they have the same test parts, and the training rows of one are a
    sample of another's. `shares` are those of the rows of the classes.
    """
    complete = [row for row in rows if row.is_complete and metric.name in row.metrics]
    if not complete:
        return None
    found = _Comparison(complete, metric, task, nested, shares)
    return found.advice(rows, uses_kernel, baselines, boosted)


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
        beside = self.alone() if chosen is self.best else self.beside_best(chosen, len(equal))
        sentences = [
            self.measured(chosen),
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
        """How much worse than the best a method within noise is: half a standard error at most.

        Methods that a test does not tell apart may be further apart than is worth a short fit.
        Without a test, what all methods have in common of a rare class's few rows is not known.
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

    def written(self, value: float) -> str:
        return f"{value:.3f}" if self.metric.better == "higher" else number(value)

    @property
    def what(self) -> str:
        """What is compared, before its value; accuracy goes without saying."""
        return "" if self.metric == ACCURACY else f"{self.metric.words} "

    @property
    def most(self) -> str:
        return "most accurate" if self._is_error or self.metric == ACCURACY else "best"

    @property
    def nearly(self) -> str:
        """How a method within noise may differ from the best one."""
        if self._is_error:
            return f"an error at most {LARGER_ERROR:.0%} larger".replace("%", " %")
        if self.metric == ACCURACY:
            return f"at most {ROPE} less accurate"
        return f"at most {ROPE} less {self.metric.words}"

    @property
    def _is_error(self) -> bool:
        return self.metric.better == "lower"

    def named(self, row: Row) -> str:
        """Name a method with its value."""
        return f"{name_of(row.method)} ({self.what}{self.written(self.value(row))})"

    @property
    def also(self) -> str:
        """What methods within noise have in common beside the metric."""
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
        """Compare methods of one balanced accuracy by ROC AUC; None by other metrics.

        Where a class is rare, labels of all methods may be those of the commonest class.
        """
        ranked = [row for row in rows if BESIDE in row.metrics]
        if self.metric.name != "balanced_accuracy" or not ranked:
            return None
        return _Comparison(ranked, METRICS[BESIDE], self.task, self.nested, self.shares)

    def test(self, one: Row, other: Row) -> CorrectedT | None:
        return on_dataset(one, other, self.metric, ALPHA, self.nested)

    # -- sentences

    def measured(self, row: Row) -> str:
        value, sd = self.value(row), row.metrics.get(self.metric.sd)
        text = f"Take {name_of(row.method)}: {self.written(value)}"
        if sd is not None:
            text += f" ± {self.written(sd)}"
        text += f" {self.metric.words}"
        if sd is not None:
            text += f" (mean and sd over {row.n_splits} splits)"
        if self.metric.name == "balanced_accuracy" and "roc_auc" in row.metrics:
            text += f", roc auc {row.metrics['roc_auc']:.3f}"
        if self.task == "regression" and "r2" in row.metrics:
            text += f", r2 {row.metrics['r2']:.3f}"
        text += f", fitted in {duration(row.metrics['fit_time_s'])}"
        if row.predict_time_per_row_s is not None:
            text += f", {duration(row.predict_time_per_row_s)} a prediction"
        if row.metrics.get("n_stored_floats"):
            text += f", a model of {size(row.metrics['n_stored_floats'])}"
        return text + "."

    def beside_best(self, chosen: Row, n_equal: int) -> list[str]:
        test = self.test(self.best, chosen)
        behind = self.written(abs(self.level(self.best) - self.level(chosen)))
        found = f"the difference is {behind}, less than one standard error"
        if test is not None:
            found = f"the difference is {self.written(abs(test.difference))}, {self.tested(test)}"
        if test is not None and test.is_zero:
            found = "both score the same on every split"
        if n_equal == 1:
            return [
                f"It is within noise of the {self.most}, {self.named(self.best)}: {found}. "
                "Of the methods within noise it is measurably the best by roc auc."
            ]
        return [
            f"It is within noise of the {self.most}, {self.named(self.best)}: {found}. "
            f"Of the {n_equal} methods within noise{self.also} it is fitted in the least time."
        ]

    def tested(self, test: CorrectedT) -> str:
        """Write the interval and the p of a test, or why there is none."""
        if test.p is None or test.low is None or test.high is None:
            return NO_TEST
        # as a disadvantage of the other one, in either direction
        ends = sorted([self.metric.gain(test.low), self.metric.gain(test.high)])
        low, high = map(self.written, ends)
        return f"95 % interval [{low}, {high}], p = {p_value(test.p)}"

    def alone(self) -> list[str]:
        """Say how certain it is that the best method is the best."""
        others = [row for row in self.complete if row is not self.best]
        if not others:
            return []
        tests = [self.test(self.best, row) for row in others]
        if all(test is not None and test.p is not None and test.p <= ALPHA for test in tests):
            them = "the other one" if len(others) == 1 else f"the {len(others)} others"
            more = "more accurate" if self.most == "most accurate" else "better"
            return [f"It is measurably {more} than {them} (p <= {ALPHA})."]
        untested = [
            row
            for row, test in zip(others, tests, strict=True)
            if test is not None and test.p is None and not test.is_zero
        ]
        doubt = f" Beside {self.some(untested)} {NO_TEST}." if untested else ""
        near = [row for row in others if self.is_within_noise(row)]
        near.sort(key=lambda row: -self.metric.gain(self.value(row)))
        if not near:
            return [
                f"It is the {self.most}, and no other is within noise of it (p > {ALPHA} and "
                f"{self.nearly}).{doubt}"
            ]
        return [
            f"It is the {self.most}. Within noise of it, but slower to fit: {self.some(near)}."
            f"{doubt}"
        ]

    def some(self, rows: Sequence[Row]) -> str:
        more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
        return ", ".join(map(self.named, rows[:3])) + more

    def rows_of(self, row: Row) -> str:
        """Say on how many rows a method was fitted, where others had more."""
        n = row.metrics.get("n_train", 0.0)
        return f" on {n:,.0f} rows" if n < self.most_rows else ""

    def on_a_sample(self, chosen: Row) -> list[str]:
        if not self.rows_of(chosen):
            return []
        n = chosen.metrics["n_train"]
        return [
            f"It was fitted on {n:,.0f} of {self.most_rows:,.0f} rows, and scored on the same test "
            "rows as all others: on all rows it takes longer, and is rarely worse."
        ]

    def beside_boosting(self, chosen: Row, boosted: Collection[str]) -> list[str]:
        """Compare the score with that of the best gradient boosting."""
        rows = [row for row in self.complete if row.learner in boosted]
        if not rows or chosen in rows:
            return []
        row = max(rows, key=lambda row: self.metric.gain(self.level(row)))
        fitted = duration(row.metrics["fit_time_s"])
        text = (
            f"The best gradient boosting, {name_of(row.method)}, gives "
            f"{self.what}{self.written(self.value(row))}{self.rows_of(row)}, fitted in {fitted}"
        )
        test = self.test(chosen, row)
        return [f"{text}." if test is None else f"{text}: {self.told_apart(test)}."]

    def told_apart(self, test: CorrectedT) -> str:
        if test.p is None:
            return "the same on every split" if test.is_zero else NO_TEST
        same = "not told apart" if test.p > ALPHA else "measurably different"
        return f"{same} (p = {p_value(test.p)})"

    def beside_kernels(self, chosen: Row, uses_kernel: Collection[str]) -> list[str]:
        """Compare the time with that of the best kernel machine."""
        kernels = [row for row in self.complete if row.learner in uses_kernel]
        if not kernels or chosen in kernels:
            return []
        kernel = max(kernels, key=lambda row: self.metric.gain(self.value(row)))
        if self.rows_of(kernel) != self.rows_of(chosen):
            fitted = duration(kernel.metrics["fit_time_s"])
            return [
                f"The kernel machine, {name_of(kernel.method)}, gives {self.what}"
                f"{self.written(self.value(kernel))}{self.rows_of(kernel)}, fitted in {fitted}."
            ]
        ratio = kernel.metrics["fit_time_s"] / max(chosen.metrics["fit_time_s"], 1e-9)
        if ratio < RATIO and 1 / ratio < RATIO:
            return []
        word = f"{_times(ratio)} faster" if ratio > 1 else f"{_times(1 / ratio)} slower"
        return [f"It is {word} to fit than {self.named(kernel)}."]

    def beside_baseline(self, chosen: Row, baselines: Collection[str]) -> list[str]:
        plain = next((row for row in self.complete if row.learner in baselines), None)
        regression = self.task == "regression"
        if plain is None:
            if regression and chosen.metrics.get("r2", 1.0) <= 0:
                return ["Its r2 is not above 0: always predicting the mean is as good."]
            return []
        doing = "predicting the mean" if regression else "naming the commonest class"
        if chosen is plain and len(self.complete) == 1:
            return [f"That is always {doing}; nothing else was measured in full."]
        if chosen is plain:
            return [
                f"That is always {doing}: no method was measurably better, so "
                "these columns may say nothing of the target."
            ]
        test = self.test(chosen, plain)
        text = f"Always {doing} gives {self.what}{self.written(self.value(plain))}"
        ranking = self.by_ranking([chosen, plain])
        is_told_apart = test is not None and test.p is not None and test.p <= ALPHA
        if ranking is not None and not is_told_apart and not ranking.is_within_noise(plain):
            return [
                f"{text}, which is not told apart from it: its labels hardly name the rare class. "
                f"But it ranks the rows better, with roc auc {ranking.value(chosen):.3f}: choose a "
                f"threshold of its scores or probabilities; {option('metric', BESIDE)} compares "
                "by ranks."
            ]
        if test is not None and test.p is None:
            return [f"{text} ({NO_TEST})."]
        if test is not None and test.p is not None and test.p > ALPHA:
            return [
                f"{text}, which is not told apart from it (p = {p_value(test.p)}): "
                "these columns may say nothing of the target."
            ]
        if self._is_error and self.value(plain) > 0:
            share = 1 - self.value(chosen) / self.value(plain)
            return [f"{text}: its errors are {100 * share:.0f} % smaller."]
        return [f"{text}."]

    def intervals(self, chosen: Row, equal: Sequence[Row], baselines: Collection[str]) -> list[str]:
        """Say which method gives prediction intervals, and how well they hold."""
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
        subject = "It also" if row is chosen else f"{self.named(row)}, within noise too,"
        return [
            f"{subject} predicts intervals: over the splits, the share of targets in the 90 % "
            f"intervals was {100 * row.metrics['coverage_error_90']:.1f} points off 90 % on "
            "average."
        ]


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio >= 100 else f"{ratio:.3g} times"


def _left_out(rows: Sequence[Row], n_complete: int) -> list[str]:
    sentences = []
    if n_complete > 1:
        sentences.append(
            "It was chosen and scored on the same splits: new data may do a little worse."
        )
    too_large = sum(row.status == "skipped" and bool(row.error) for row in rows)
    if too_large:
        sentences.append(
            f"{too_large} of {counted(len(rows), 'method')} {'does' if too_large == 1 else 'do'} "
            "not fit into the memory limit."
        )
    skipped = sum(row.status == "skipped" and not row.error for row in rows)
    if skipped:
        sentences.append(
            f"{skipped} of {counted(len(rows), 'method')} {'was' if skipped == 1 else 'were'} not "
            "measured in full within the time; a "
            "better one may be among them."
        )
    return sentences


def size(n_floats: float) -> str:
    """Write the size of a model of `n_floats` numbers of 8 bytes.

    >>> size(100), size(50_000), size(3e8)
    ('0.8 kB', '400 kB', '2400 MB')
    """
    kilobytes = n_floats * 8 / 1000
    return f"{kilobytes:.3g} kB" if kilobytes < 1000 else f"{kilobytes / 1000:.4g} MB"
