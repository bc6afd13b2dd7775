"""Two sets of results: differences, intervals, verdicts, what is refused."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from kbench.errors import SuiteError
from kbench.evaluation.definitions import METRICS
from kbench.records import ACCURACY, Metric
from kbench.results.rows import TIMES, Row, newest
from kbench_compare.comparison import Noise, columns, comparable, compare
from tests.support.report_rows import changed


def row(dataset="iris", feature_map="rff", accuracies=(0.9, 0.92, 0.88, 0.9, 0.91), **more):
    """Return a row as `kbench.results.row_builders.of_run` does."""
    keys = [str(i) for i in range(len(accuracies))]
    values = {
        "accuracy": dict(zip(keys, map(float, accuracies), strict=True)),
        "fit_time_s": dict.fromkeys(keys, 0.1),
        "predict_time_s": dict.fromkeys(keys, 0.01),
    }
    for name in ("fit_time_s", "predict_time_s"):
        if name in more:
            given = more.pop(name)
            values[name] = dict(zip(keys, map(float, given), strict=True))
    made = Row(
        dataset,
        feature_map,
        "ridge",
        "ok",
        n_splits_done=len(keys),
        n_splits=len(keys),
        metrics={"n_train": 1200.0, "n_test": 300.0},
        machine="m1",
        protocol={"threads": "1", "n_folds": "5"},
        values_by_split=values,
        split_hash={key: f"{dataset}-{key}" for key in keys},
        version="0.1.0",
        machine_speed_s="0.01",
        end_ms=1,
    )
    return changed(made, **more)


def renamed(row, metric):
    """Return a row whose accuracies are another metric's values."""
    values = {**row.values_by_split}
    values[metric.name] = values.pop("accuracy")
    return changed(row, values_by_split=values)


def only(comparison):
    (cell,) = comparison.cells
    return cell


def change(a, b, name="accuracy", **more):
    return only(compare([a], [b], **more)).changes[name]


def shifted(by, **more):
    base = np.array([0.9, 0.92, 0.88, 0.9, 0.91])
    return row(accuracies=base + by + np.array([0.001, -0.001, 0.002, 0.0, -0.002]), **more)


@pytest.mark.parametrize("values", [(1e100, 5e-324), (1e-320, 1e100), (1e100, 1e100)])
@pytest.mark.parametrize("n_splits", [1, 2])
def test_numbers_that_nothing_takes_are_compared_all_the_same(values, n_splits):
    sides = []
    for value in values:
        by_split = dict.fromkeys(map(str, range(n_splits)), value)
        changes = {"n_test": 1e100, "n_train": 1e-300, "machine_speed_s": f"{value}"}
        names = ("accuracy", "fit_time_s", "predict_time_s")
        sides.append(row(values_by_split=dict.fromkeys(names, by_split), **changes))
    for pair in (sides, sides[::-1]):
        compare(pair[:1], pair[1:]).rows()


def test_the_interval_is_nadeau_and_bengios():
    a, b = row(), shifted(-0.05)
    found = change(a, b)
    values = [each.by_split("accuracy").values() for each in (a, b)]
    d = np.subtract(list(values[1]), list(values[0]))
    error = d.std(ddof=1) * math.sqrt(1 / 5 + 300 / 1200)
    wide = error * scipy_stats.t.ppf(0.975, 4)
    assert found.change == pytest.approx(d.mean())
    assert (found.low, found.high) == pytest.approx((d.mean() - wide, d.mean() + wide))
    assert found.verdict == "worse"
    assert change(b, a).verdict == "better"


def test_the_same_is_the_same():
    found = compare([row(), row("wine")], [row(), row("wine")])
    assert [each.changes["accuracy"].change for each in found.cells] == [0.0, 0.0]
    assert not found.regressions(["metric", "time"])
    assert found.count("accuracy") == {"same": 2}


def test_lower_may_be_better():
    metric = Metric("log_loss", "lower")
    a, b = (renamed(each, metric) for each in (row(), shifted(-0.05)))
    assert change(a, b, "log_loss", metric=metric).verdict == "better"
    assert change(b, a, "log_loss", metric=metric).verdict == "worse"
    found = compare([b], [a], metric)
    assert found.regressions(["metric"]) == [(only(found).labels, "log_loss")]
    assert set(found.rows()[0]) == set(columns(metric))


def test_many_cells_are_tested_together():
    """A p of 0.01 is a change alone, and none among a hundred cells."""
    rng = np.random.default_rng(0)
    weak = row(accuracies=np.array([0.9, 0.92, 0.88, 0.9, 0.91]) - [0.01, 0.02, 0.012, 0.024, 0.02])
    alone = change(row(), weak)
    assert 0.001 < alone.p < 0.05
    assert alone.verdict == "worse"
    others = [row(f"d{i}") for i in range(99)]
    noisy = [row(f"d{i}", accuracies=rng.normal(0.9, 0.01, 5)) for i in range(99)]
    many = compare([row(), *others], [weak, *noisy]).cells[0].changes["accuracy"]
    assert many.p == alone.p
    assert many.p_holm > 0.05
    assert many.verdict == "same"


def rows_fewer(rng, sizes, fewer):
    """Return the change where so many more rows of each test part are wrong."""
    sizes = np.asarray(sizes)
    right = rng.integers(fewer, sizes, endpoint=True)
    rows = {"n_test": float(sizes.mean()), "n_train": 4 * float(sizes.mean())}
    return change(
        row(accuracies=right / sizes, **rows), row(accuracies=(right - fewer) / sizes, **rows)
    )


@pytest.mark.parametrize("n_splits", [3, 5, 10])
def test_one_row_of_the_test_part_on_every_split_is_no_change(n_splits):
    rng = np.random.default_rng(0)
    for n_test in range(5, 60):
        one, two = (rows_fewer(rng, [n_test] * n_splits, fewer) for fewer in (1, 2))
        assert (one.verdict, two.verdict) == ("same", "worse"), n_test
        assert one.low < 0 <= one.high + 1e-12
        assert one.high - one.low == pytest.approx(2 / n_test)


def test_one_row_of_folds_of_two_sizes_is_no_change():
    rng = np.random.default_rng(0)
    for n_test in range(5, 60):
        sizes = [n_test + 1, n_test + 1, n_test, n_test, n_test]
        one, two = (rows_fewer(rng, sizes, fewer) for fewer in (1, 2))
        assert (one.verdict, two.verdict) == ("same", "worse"), n_test


def test_a_row_on_some_splits_is_left_to_the_test():
    base = np.array([0.9, 0.8, 0.7])
    found = change(row(accuracies=base), row(accuracies=base - np.array([1, 0, 1]) / 300))
    assert 0 < found.p < 1
    assert found.verdict == "same"


def test_one_split_is_judged_by_the_binomial_error_of_its_test_rows():
    """As Pearson's test of a 2 by 2 table with Yates' correction."""
    assert change(row(accuracies=[0.9]), row(accuracies=[0.9])).verdict == "same"
    a, b = row(accuracies=[0.99]), row(accuracies=[0.4])
    found = change(a, b)
    assert found.verdict == "worse"
    assert found.high < 0
    assert change(b, a).verdict == "better"
    assert compare([a], [b]).regressions(["metric"]) == [(("iris", "rff", "ridge"), "accuracy")]
    for right in (295, 290, 280):
        found = change(row(accuracies=[297 / 300]), row(accuracies=[right / 300]))
        table = [[297, 3], [right, 300 - right]]
        assert found.p == pytest.approx(scipy_stats.chi2_contingency(table).pvalue)
        assert (found.high < 0) == (found.p < 0.05) == (found.verdict == "worse")
        assert found.low < found.change < found.high


def test_one_row_of_one_split_is_no_change():
    for n in (1, 5, 30):
        found = change(row(accuracies=[1.0], n_test=n), row(accuracies=[1 - 1 / n], n_test=n))
        assert (found.p, found.verdict) == (pytest.approx(1.0), "same")


def test_equal_differences_have_no_p():
    """The rule of one row judges them; null in JSON, and the reason beside it."""
    base = np.array([0.9, 0.8])
    rows = {"n_train": 60.0, "n_test": 30.0}
    for fewer, verdict in ((0, "same"), (1, "same"), (2, "worse")):
        b = row(accuracies=base - fewer / 30, **rows)
        comparison = compare([row(accuracies=base, **rows)], [b])
        found = only(comparison).changes["accuracy"]
        assert (found.p, found.p_holm, found.verdict) == (None, None, verdict)
        (line,) = comparison.rows()
        assert line["accuracy_p"] is None
        assert line["warnings"] == "all differences are equal: no test"
        assert (line["accuracy_low"] is None) == (fewer == 0)
    unknown = {"n_train": None, "n_test": None}
    found = change(row(accuracies=base, **unknown), row(accuracies=base - 0.1, **unknown))
    assert (found.p, found.low, found.high, found.verdict) == (None, None, None, "unknown")
    one = change(row(accuracies=[0.9]), row(accuracies=[0.9]))
    assert (one.p, one.low, one.high, one.verdict) == (None, None, None, "same")


def test_cells_without_a_test_count_among_all_cells():
    weak = row(accuracies=np.array([0.9, 0.92, 0.88, 0.9, 0.91]) - [0.01, 0.02, 0.012, 0.024, 0.02])
    others = [row(f"d{i}") for i in range(99)]
    found = compare([row(), *others], [weak, *others]).cells[0].changes["accuracy"]
    assert found.p_holm == pytest.approx(min(1.0, 100 * found.p))


@pytest.mark.parametrize("metric", [ACCURACY, Metric("log_loss", "lower")])
def test_one_split_says_nothing_of_what_is_no_share_of_known_rows(metric):
    a, b = (row(accuracies=[value], n_test=None) for value in (0.9, 0.1))
    if metric != ACCURACY:
        a, b = (changed(renamed(each, metric), n_test=300.0) for each in (a, b))
    found = change(a, b, metric.name, metric=metric)
    assert found.verdict == "unknown"
    assert found.doubts == ("one split: its noise cannot be estimated",)


def test_equal_differences_of_what_counts_no_rows_are_not_judged():
    """One row more or less means nothing to an error in the target's units."""
    metric = METRICS["rmse"]
    values = [1000.0, 1200.0, 1100.0]
    a, b = (
        renamed(row(accuracies=np.array(values) + more, n_test=30.0), metric) for more in (0, 5)
    )
    found = change(a, b, "rmse", metric=metric)
    assert (found.verdict, found.doubts) == ("unknown", ("all differences are equal: no test",))
    assert change(a, a, "rmse", metric=metric).verdict == "same"


@pytest.mark.parametrize("size", [1.0, 1e-12, 1e9])
def test_the_units_of_an_error_change_no_verdict(size):
    metric = METRICS["rmse"]
    values = np.array([1.0, 1.2, 1.1, 1.15, 1.05])
    worse = values + np.array([0.3, 0.32, 0.31, 0.33, 0.29])
    a, b = (renamed(row(accuracies=each * size), metric) for each in (values, worse))
    found = change(a, b, "rmse", metric=metric)
    assert found.verdict == "worse"
    assert found.change == pytest.approx(0.31 * size)
    assert change(b, a, "rmse", metric=metric).verdict == "better"


def test_several_machines_or_rows_of_a_cell_are_refused():
    slow = row(machine="m2")
    for a, b, side in (([row(), slow], [row()], "A"), ([row()], [slow, row("wine")], "B")):
        with pytest.raises(SuiteError, match=rf"{side} contains results of 2 machines \(m1, m2\)"):
            compare(a, b)
    with pytest.raises(SuiteError, match=r"B contains rff \+ ridge on iris twice"):
        compare([row()], [row(), row(accuracies=[0.1] * 5)])


def test_other_splits_are_refused():
    b = row("wine", split_hash={str(i): "other" for i in range(5)})
    with pytest.raises(SuiteError, match=r"1 of 2 common cells .* different splits \(wine\)"):
        compare([row(), row("wine")], [row(), b])
    with pytest.raises(SuiteError, match="no cell in common"):
        compare([row()], [row("wine")])


def test_splits_of_one_side_only_do_not_count():
    a = row(accuracies=[0.9, 0.8, 0.7])
    b = row(accuracies=[0.9, 0.8, 0.7, 0.1, 0.2])
    cell = only(compare([a], [b]))
    assert cell.n_splits == 3
    assert cell.changes["accuracy"].change == 0.0


def test_cells_of_one_side_are_listed():
    found = compare([row(), row("wine")], [row(), row("wdbc", status="crashed")])
    assert found.only_a == {("wine", "rff", "ridge"): "ok"}
    assert found.only_b == {("wdbc", "rff", "ridge"): "crashed"}
    assert [(each["status_a"], each["status_b"]) for each in found.rows()] == [
        ("ok", "ok"),
        ("ok", None),
        (None, "crashed"),
    ]
    assert [each["side"] for each in found.rows()] == ["both", "a", "b"]
    assert all(tuple(each) == columns(ACCURACY) for each in found.rows())


def test_what_was_ok_and_fails_is_a_regression():
    failed = row(
        status="timed_out",
        split_hash={},
        values_by_split={},
    )
    found = compare([row()], [failed])
    labels = only(found).labels
    for kinds in (["time"], ["missing"], ["accuracy", "time", "missing"]):
        assert found.regressions(kinds) == [(labels, "timed_out")]
    assert found.regressions([]) == []
    assert only(found).changes["accuracy"].doubts == ("timed_out in b",)
    assert compare([failed], [row()]).regressions(["metric", "time", "missing"]) == []


def test_what_is_missing_is_a_regression_of_its_own():
    gone = row(status="unavailable", split_hash={}, values_by_split={})
    found = compare([row()], [gone])
    assert found.regressions(["metric", "time"]) == []
    assert found.regressions(["missing"]) == [(only(found).labels, "unavailable")]
    assert compare([gone], [gone]).regressions(["missing"]) == []
    failed = row("wdbc", status="timed_out", split_hash={}, values_by_split={})
    found = compare([row(), row("wine"), failed], [row()])
    assert found.regressions(["metric", "time"]) == []
    assert found.regressions(["missing"]) == [(("wine", "rff", "ridge"), "missing")]
    assert compare([row()], [row(), row("wine")]).regressions(["missing"]) == []


# -- times ---------------------------------------------------------------------------------


def test_a_slower_fit_is_found():
    slow = row(fit_time_s=[0.30, 0.31, 0.29, 0.30, 0.32])
    found = change(row(), slow, "fit_time_s")
    assert found.verdict == "worse"
    assert found.change == pytest.approx(3.04, abs=0.01)
    assert found.low < found.change < found.high
    assert change(slow, row(), "fit_time_s").verdict == "better"
    comparison = compare([row()], [slow])
    assert comparison.regressions(["metric"]) == []
    assert comparison.regressions(["time"]) == [(only(comparison).labels, "fit_time_s")]


@pytest.mark.parametrize("factor", [0.6, 1.8])
def test_a_change_within_the_factor_is_none(factor):
    steady = row(fit_time_s=[factor * 0.1] * 5)
    assert change(row(), steady, "fit_time_s").verdict == "same"
    strict = Noise(time_factor=1.2, time_noise=0.03)
    assert change(row(), steady, "fit_time_s", noise=strict).verdict != "same"


def test_the_interval_of_a_ratio_holds_the_noise_between_runs():
    """Without noise between runs it is the plain t interval of the logarithms."""
    times = np.array([0.30, 0.31, 0.29, 0.30, 0.32])
    logs = np.log(times / 0.1)
    plain = scipy_stats.ttest_1samp(logs, 0.0).confidence_interval(0.95)
    found = change(row(), row(fit_time_s=times), "fit_time_s", noise=Noise(time_noise=0.0))
    assert (found.low, found.high) == pytest.approx(tuple(np.exp(plain)))
    wider = change(row(), row(fit_time_s=times), "fit_time_s")
    within = logs.std(ddof=1) / math.sqrt(5)
    wide = 1.96 * math.hypot(within, 0.1 * math.sqrt(2))
    assert math.log(wider.high / wider.change) == pytest.approx(wide, rel=0.01)


def test_microseconds_are_no_change():
    assert (
        change(
            row(fit_time_s=[1e-4] * 5),
            row(fit_time_s=[1e-3, 1.1e-3, 1e-3, 0.9e-3, 1e-3]),
            "fit_time_s",
        ).verdict
        == "same"
    )


def test_times_are_corrected_by_the_calibration():
    """A machine that is three times slower in everything is no regression."""
    slow = [0.3, 0.31, 0.3, 0.29, 0.3]
    found = change(row(), row(fit_time_s=slow, machine_speed_s="0.03", machine="m2"), "fit_time_s")
    assert found.verdict == "same"
    assert found.change == pytest.approx(1.0, abs=0.01)
    assert found.b == pytest.approx(0.1, abs=0.001)
    comparison = compare([row()], [row(machine_speed_s="0.03", machine="m2")])
    assert "m1 in a, m2 in b" in comparison.notes[0]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"contention": "2 slots on 1 physical cores"}, "b: the machine was loaded: 2 slots"),
        ({"machine_speed_s": ""}, "b: no speed benchmark"),
        ({"machine_speed_s": "0.01, 0.014"}, "b: the machine's speed changed"),
        ({"machine_speed_s": "0.02"}, "the speed of the machine differs"),
        ({"protocol": {"threads": "4", "n_folds": "5"}}, "1 threads in a, 4 in b"),
    ],
)
def test_times_that_cannot_be_compared_are_no_regression(more, why):
    comparison = compare([row()], [row(fit_time_s=[1, 2, 1, 2, 1], **more)])
    found = only(comparison).changes["fit_time_s"]
    assert found.verdict == "unknown"
    assert found.doubts[0].startswith(why)
    assert comparison.regressions(["metric", "time"]) == []
    assert only(comparison).changes["accuracy"].verdict == "same"


def test_protocols_that_differ_are_named():
    other = row(protocol={"threads": "1", "n_folds": "10", "n_candidates": "12"})
    assert compare([row()], [other]).notes == [
        "protocols differ: n_folds (5 in a, 10 in b)",
        "searches differ: n_candidates (- in a, 12 in b)",
    ]


def test_protocols_are_compared_cell_by_cell():
    rows = [row(), row(dataset="vowel", protocol={"cv": "official", "n_candidates": "7"})]
    assert compare(rows, rows[:1]).notes == []


def simulated(rng, n_cells=60, n_splits=5):
    """One run of a suite: times vary by cell, by split, and now and then by a hiccup."""
    rows = []
    for i in range(n_cells):
        typical = 10 ** (-3 + 3 * i / n_cells)
        times = {}
        for name in TIMES:
            drift, split = rng.normal(0, 0.08), rng.normal(0, 0.06, n_splits)
            hiccup = np.where(rng.random(n_splits) < 0.02, 0.7, 0.0)
            times[name] = typical * np.exp(drift + split + hiccup)
        rows.append(
            row(f"d{i}", machine_speed_s=f"{0.01 * np.exp(rng.normal(0, 0.05)):.4g}", **times)
        )
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_a_against_a_with_noise_passes(seed):
    rng = np.random.default_rng(seed)
    found = compare(simulated(rng), simulated(rng))
    assert found.regressions(["metric", "time"]) == []


def test_a_cell_that_is_four_times_slower_is_found_in_noise():
    """Unless hiccups made the times of its splits say nothing."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a, b = simulated(rng), simulated(rng)
        slower = {split: 4 * seconds for split, seconds in b[30].by_split("fit_time_s").items()}
        b[30] = changed(b[30], values_by_split={**b[30].values_by_split, "fit_time_s": slower})
        found += [(labels[0], name) for labels, name in compare(a, b).regressions(["time"])]
    assert set(found) == {("d30", "fit_time_s")}
    assert len(found) >= 19


# -- which rows ----------------------------------------------------------------------------


def test_rows_of_a_version_or_as_they_were():
    old, mixed = row(version="0.1.0", end_ms=1), row(version="0.1.0, 0.2.0", end_ms=2)
    new, other = row(version="0.2.0", end_ms=3), row("wine", version="0.2.0", end_ms=3)
    every = [new, old, other, mixed]
    assert newest(every) == [new, other]
    assert newest(every, version="0.1.0") == [mixed]
    assert newest(every, until_ms=1) == [old]
    assert newest(every, version="0.1") == []


def test_cells_that_must_not_be_compared_are_left_out_with_their_reason():
    theirs, more = row(key="other", checksum="b" * 64), row(dataset="wine")
    own = row(key="own", checksum="a" * 64)
    assert comparable([own, more], [theirs]) == ([more], [], {"other data": 1})
