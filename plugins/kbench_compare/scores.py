"""Changes of the measure that a suite compares."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kbench.features import MEASURES, NO_TEST, Row, corrected_t, holdout_ratio, unit_of
from kbench.records import ACCURACY, Measure
from kbench_compare.changes import ONE_SPLIT, Change, Noise, Verdict
from kbench_compare.matching import values_on, why_none


def score_change(a: Row, b: Row, splits: Sequence[str], measure: Measure, noise: Noise) -> Change:
    """Return the change of what a suite compares, with its interval, over common splits."""
    pairs = values_on(a, b, splits, measure.name)
    if not pairs:
        return Change(doubts=(why_none(a, b, measure.words),))
    mean_a, mean_b = (math.fsum(values) / len(pairs) for values in zip(*pairs, strict=True))
    if len(pairs) < 2:
        return _one_split(mean_a, mean_b, a.measures.get("n_test"), measure, noise)
    d = [right - left for left, right in pairs]
    unit = unit_of([value for pair in pairs for value in pair], measure)
    test = corrected_t(d, holdout_ratio(a), noise.alpha, unit)
    row = _one_row(a, measure)
    # as many rows on every split, though folds differ by a row in size
    alike = measure.name == ACCURACY.name and max(d) - min(d) < row / 2
    if test.p is not None and not alike:
        return Change(mean_a, mean_b, test.difference, test.low, test.high, test.p)
    if test.is_zero:
        return Change(mean_a, mean_b, 0.0, verdict="same", untested=NO_TEST)
    if not row:
        return Change(mean_a, mean_b, test.difference, untested=NO_TEST, doubts=(NO_TEST,))
    # the noise is below the resolution: one row, where shares of rows are one or two apart
    low, high = test.difference - row, test.difference + row
    same = abs(test.difference) < 1.5 * row
    verdict = "same" if same else _direction(test.difference, measure)
    return Change(mean_a, mean_b, test.difference, low, high, verdict=verdict, untested=NO_TEST)


def _one_row(row: Row, measure: Measure) -> float:
    """Return how much one test row changes a measure that counts rows; 0 for any other."""
    known, n_test = MEASURES.get(measure.name), row.measures.get("n_test")
    counts_rows = known and known.task == "classification" and known.needs == "predictions"
    return 1.0 / n_test if n_test and counts_rows else 0.0


def _one_split(a: float, b: float, n_test: float | None, measure: Measure, noise: Noise) -> Change:
    """Compare two values on one split: shares of its test rows, by their binomial error.

    The rows count as two samples, with Yates' correction: fewer methods differ
    than by their predictions on each row, which are not known here. The noise
    does not include that another split would train other models.
    """
    from scipy.special import ndtr, ndtri

    if a == b:
        return Change(a, b, 0.0, verdict="same", untested=NO_TEST)
    if measure.name != ACCURACY.name or not n_test or not (0 <= a <= 1 and 0 <= b <= 1):
        return Change(a, b, b - a, doubts=(ONE_SPLIT,))
    share, row = (a + b) / 2, 1 / n_test
    error = math.sqrt(2 * share * (1 - share) / n_test)
    if not error:  # of shares that no number of rows gives
        return Change(a, b, b - a, doubts=(ONE_SPLIT,))
    wide = error * float(ndtri(1 - noise.alpha / 2)) + row
    p = 2 * float(ndtr(-max(0.0, abs(b - a) - row) / error))
    return Change(a, b, b - a, b - a - wide, b - a + wide, p)


def score_verdict(change: Change, measure: Measure, noise: Noise) -> Verdict:
    """Judge a change by its adjusted p."""
    assert change.change is not None and change.p_holm is not None
    if change.p_holm > noise.alpha:
        return "same"
    return _direction(change.change, measure)


def _direction(difference: float, measure: Measure) -> Verdict:
    return "better" if measure.gain(difference) > 0 else "worse"
