"""Recommendation of a method for one dataset, in words, from its results rows.

The best method is that of the highest mean accuracy. *Within noise* of it are
the methods that the corrected resampled t-test does not tell apart from it
(p > 0.05, Nadeau and Bengio 2003) and that are at most 0.01 less accurate: with
few splits, a test alone shows no difference. Of these the one that is fitted
in the least time is recommended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kbench.messages import counted
from kbench.report.axes import duration
from kbench.report.content import ALPHA, ROPE, name_of, on_dataset
from kbench.report.text import p_value
from kbench.results.rows import Row
from kbench.results.stats import NO_TEST, CorrectedT

RATIO = 1.5
"""Smallest ratio of fit times that is mentioned."""


@dataclass(frozen=True)
class Advice:
    """A recommendation for one dataset.

    Parameters
    ----------
    best : Row
        The row of the highest mean accuracy.
    chosen : Row
        The row of the recommended method.
    within_noise : list of Row
        Rows within noise of the best, itself included.
    sentences : tuple of str
        The recommendation in words; the first one suffices alone.
    """

    best: Row
    chosen: Row
    within_noise: list[Row]
    sentences: tuple[str, ...]


def advise(
    rows: Sequence[Row], kernelized: Collection[str] = (), baselines: Collection[str] = ()
) -> Advice | None:
    """Recommend a method from the rows of one dataset; None where no method finished.

    Parameters
    ----------
    rows : sequence of Row
    kernelized : collection of str, optional
        Labels of the learners that work on kernels: explicit maps are compared
        with them.
    baselines : collection of str, optional
        Labels of the learners that always predict the commonest class.
    """
    complete = [row for row in rows if row.is_complete]
    if not complete:
        return None
    # ties of the accuracy go to the one that is fitted faster
    best = min(
        complete, key=lambda row: (-round(row.measures["accuracy"], 12), row.measures["fit_time_s"])
    )
    equal = [row for row in complete if _within_noise(best, row)]
    chosen = min(equal, key=lambda row: row.measures["fit_time_s"])
    sentences = [
        _measured(chosen),
        *(_beside_best(chosen, best, len(equal)) if chosen is not best else _alone(best, complete)),
        *_beside_kernels(chosen, complete, kernelized),
        *_beside_baseline(chosen, complete, baselines),
        *_left_out(rows, len(complete)),
    ]
    return Advice(best, chosen, equal, tuple(sentences))


def _within_noise(best: Row, row: Row) -> bool:
    if row is best:
        return True
    if best.measures["accuracy"] - row.measures["accuracy"] > ROPE:
        return False
    test = on_dataset(best, row)
    if test is None:
        return False
    return test.is_zero if test.p is None else test.p > ALPHA


def _name(row: Row) -> str:
    return name_of(row.method)


def _named(row: Row) -> str:
    """Name a method with its accuracy."""
    return f"{_name(row)} ({row.measures['accuracy']:.3f})"


def _measured(row: Row) -> str:
    spread = ""
    if row.measures.get("accuracy_sd") is not None:
        spread = f" ± {row.measures['accuracy_sd']:.3f} (mean and sd over {row.n_splits} splits)"
    text = f"Take {_name(row)}: accuracy {row.measures['accuracy']:.3f}{spread}"
    text += f", fitted in {duration(row.measures['fit_time_s'])}"
    if row.predict_row_s is not None:
        text += f", {duration(row.predict_row_s)} a prediction"
    if row.measures.get("model_floats"):
        text += f", a model of {size(row.measures['model_floats'])}"
    return text + "."


def _beside_best(chosen: Row, best: Row, n_equal: int) -> list[str]:
    test = on_dataset(best, chosen)
    assert test is not None
    found = f"the difference is {test.difference:.3f}, {_tested(test)}"
    if test.is_zero:
        found = "both score the same on every split"
    return [
        f"It is within noise of the most accurate, {_named(best)}: {found}. "
        f"Of the {n_equal} methods within noise it is fitted in the least time."
    ]


def _tested(test: CorrectedT) -> str:
    """Write the interval and the p of a test, or why there is none."""
    if test.p is None:
        return NO_TEST
    return f"95 % interval [{test.low:.3f}, {test.high:.3f}], p = {p_value(test.p)}"


def _alone(best: Row, complete: Sequence[Row]) -> list[str]:
    """Say how certain it is that the most accurate method is the best."""
    others = [row for row in complete if row is not best]
    if not others:
        return []
    tests = [on_dataset(best, row) for row in others]
    if all(test is not None and test.p is not None and test.p <= ALPHA for test in tests):
        them = "the other one" if len(others) == 1 else f"the {len(others)} others"
        return [f"It is measurably more accurate than {them} (p <= {ALPHA})."]
    untested = [
        row
        for row, test in zip(others, tests, strict=True)
        if test is not None and test.p is None and not test.is_zero
    ]
    doubt = f" Beside {_some(untested)} {NO_TEST}." if untested else ""
    near = [row for row in others if _within_noise(best, row)]
    near.sort(key=lambda row: -row.measures["accuracy"])
    if not near:
        return [
            f"It is the most accurate, and no other is within noise of it (p > {ALPHA} and at "
            f"most {ROPE} less accurate).{doubt}"
        ]
    return [
        f"It is the most accurate. Within noise of it, but slower to fit: {_some(near)}.{doubt}"
    ]


def _some(rows: Sequence[Row]) -> str:
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return ", ".join(map(_named, rows[:3])) + more


def _beside_kernels(chosen: Row, complete: Sequence[Row], kernelized: Collection[str]) -> list[str]:
    """Compare the time with that of the most accurate kernel machine."""
    kernels = [row for row in complete if row.learner in kernelized]
    if not kernels or chosen in kernels:
        return []
    kernel = max(kernels, key=lambda row: row.measures["accuracy"])
    ratio = kernel.measures["fit_time_s"] / max(chosen.measures["fit_time_s"], 1e-9)
    if ratio < RATIO and 1 / ratio < RATIO:
        return []
    word = f"{ratio:.3g} times faster" if ratio > 1 else f"{1 / ratio:.3g} times slower"
    return [f"It is {word} to fit than {_named(kernel)}."]


def _beside_baseline(chosen: Row, complete: Sequence[Row], baselines: Collection[str]) -> list[str]:
    plain = next((row for row in complete if row.learner in baselines), None)
    if plain is None:
        return []
    if chosen is plain and len(complete) == 1:
        return ["That is always naming the commonest class; nothing else was measured in full."]
    if chosen is plain:
        return [
            "That is always naming the commonest class: no method was measurably better, so "
            "these columns may say nothing of the target."
        ]
    test = on_dataset(chosen, plain)
    text = f"Always naming the commonest class gives {plain.measures['accuracy']:.3f}"
    if test is not None and test.p is None:
        return [f"{text} ({NO_TEST})."]
    if test is not None and test.p is not None and test.p > ALPHA:
        return [f"{text}, which is not told apart from it (p = {p_value(test.p)})."]
    return [f"{text}."]


def _left_out(rows: Sequence[Row], n_complete: int) -> list[str]:
    sentences = []
    if n_complete > 1:
        sentences.append(
            "It was chosen and scored on the same splits: new data may do a little worse."
        )
    skipped = sum(row.status == "skipped" for row in rows)
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
