"""Predictions of memory and time from trials."""

import math
from dataclasses import replace

import pytest

from kbench.planning.cells import set_width
from kbench.planning.planned import PlannedCell
from kbench.records import Cell, DatasetFacts, Estimate, Protocol, Ref, Result, Trial, Tune
from kbench_costs import prediction as cost
from kbench_costs import trials as chosen
from kbench_costs.prediction import Growth, estimate, wider

TIME = Growth(exponent_scale=0.05, noise=0.05, drift=0.05)


def points(law, rows=(2048, 8192, 32768)):
    return [(n, law(n)) for n in rows]


@pytest.mark.parametrize(
    "law",
    [
        lambda n: 0.3 + n / 1000,
        lambda n: 5.0 + n / 10_000,
        lambda n: n**1.2 / 1000,
        lambda n: 0.1 + (n / 1000) ** 2,
        lambda n: 7.0,
    ],
    ids=["line", "constant and line", "power", "square", "constant"],
)
def test_a_law_is_continued(law):
    predicted = TIME.predict(points(law), 200_000)
    assert predicted.value == pytest.approx(law(200_000), rel=0.15)
    assert predicted.low < law(200_000) < predicted.high


def test_intervals_are_wider_farther_away_and_from_fewer_points():
    def width(predicted):
        return math.log(predicted.high / predicted.low)

    every = points(lambda n: n / 1000)
    assert width(TIME.predict(every, 50_000)) < width(TIME.predict(every, 10**6))
    assert width(TIME.predict(every, 10**6)) < width(TIME.predict(every[:2], 10**6))
    assert width(TIME.predict(every[:2], 10**6)) < width(TIME.predict(every[:1], 10**6))


def test_a_smaller_cost_on_more_rows_is_noise():
    predicted = TIME.predict([(2048, 1.1), (8192, 1.0)], 100_000)
    assert 0.9 < predicted.value < 1.5


def test_a_learner_with_a_kernel_grows_with_the_pairs_of_rows():
    """A constant hides the square: two points look like a line."""
    law = [(n, 0.1 + (n / 8000) ** 2) for n in (1024, 4096)]
    few = TIME.predict(law, 40_000).value
    assert few < 6
    assert 15 < TIME.predict(law, 40_000, cost.PAIRS_OF_KERNEL).value < 30


def test_an_estimate_is_made_wider():
    sure = estimate(0.0, 0.1)
    assert wider(sure, 0.3).value == pytest.approx(sure.value)
    assert wider(sure, 0.3).high > sure.high


def trials(seconds=lambda n: n / 1000, memory=lambda n: n / 100):
    rows = (2048, 8192, 32_768)
    return [Trial(n, False, "ok", seconds(n), memory(n)) for n in rows]


def test_the_cost_of_all_rows():
    predicted = cost.predict(trials(), 400_000)
    assert predicted.memory_mib.value == pytest.approx(4000, rel=0.1)
    assert predicted.seconds.value == pytest.approx(400, rel=0.1)
    assert not predicted.is_least
    assert cost.predict(trials()[:1], 400_000).seconds.value == pytest.approx(400, rel=0.25)
    assert cost.predict([], 400_000) is None
    assert cost.predict([Trial(2048, False, "crashed", 1.0, 5.0)], 400_000) is None


def test_metrics_are_added_once():
    """Their samples are no larger on all rows."""
    known = [*trials(), Trial(2048, True, "ok", 2.048 + 7.0, 20.48 + 900.0)]
    metrics = cost.predict(known, 40_000)
    assert metrics.seconds.value == pytest.approx(47.0, rel=0.1)
    # beside a part of the memory of the search, which is over
    assert metrics.memory_mib.value == pytest.approx(900 + 200, rel=0.1)


def test_a_trial_on_all_rows_is_the_task():
    known = [*trials(), Trial(40_000, True, "ok", 55.0, 423.0)]
    predicted = cost.predict(known, 40_000)
    assert predicted.memory_mib.value == pytest.approx(423.0)
    assert predicted.seconds.value == pytest.approx(55.0)
    assert predicted.seconds.low < 55.0 < predicted.seconds.high


def test_memory_is_not_less_than_that_of_a_trial():
    # samples for metrics, such as a Gram matrix, need more than the rows
    known = [*trials(), Trial(2048, True, "ok", 1.0, 900.0)]
    search = cost.predict(trials(), 40_000).memory_mib.value
    both = 900.0 + cost.HELD * (search - 20.48)
    memory = cost.predict(known, 40_000).memory_mib
    assert memory.value == pytest.approx(both, rel=1e-3)
    assert 900.0 <= memory.low < memory.value < memory.high


def test_a_few_megabytes_say_little_of_growth():
    """Trials of 0, 1 and 5 MiB are no square."""
    few = [Trial(n, False, "ok", 1.0, mb) for n, mb in ((2048, 0.1), (8192, 1.0), (32_768, 5.0))]
    assert 10 < cost.predict(few, 200_000).memory_mib.value < 120


def test_a_trial_that_hits_the_limit_is_a_lower_bound():
    known = [*trials(), Trial(100_000, False, "out_of_memory", 9.0, 4096.0)]
    predicted = cost.predict(known, 400_000)
    assert predicted.is_least
    assert predicted.memory_mib.value == 4 * 4096.0
    assert predicted.exceeds(4096)
    alone = cost.predict(known[-1:], 400_000)
    assert (alone.memory_mib.value, alone.seconds) == (4 * 4096.0, None)


def test_the_rows_that_need_an_amount():
    n = cost.rows_that_need(trials(), 1000.0, 400_000)
    assert n == pytest.approx(100_000, rel=0.1)
    assert cost.rows_that_need(trials(), 1e9, 400_000) == 400_000


def test_the_largest_width_is_approached_from_above():
    needs = {20_000: 41.0}

    def need(width):
        return 0.5 + width / 500 + (width / 10_000) ** 2

    while (width := cost.next_width(needs, 4.0)) is not None:
        needs[width] = need(width)
        assert len(needs) < 5
    largest = cost.largest_width(needs, 4.0)
    assert 0.85 * 4.0 < need(largest) <= 4.0
    assert cost.largest_width({20_000: 41.0}, 4.0) is None
    assert cost.next_width({1: 41.0}, 4.0) is None


def test_a_refusal_says_what_would_fit():
    known = cost.predict([Trial(1000, False, "out_of_memory", 1.0, 4096.0)], 10_250)
    assert cost.too_large(known, 4096.0, "n_components", 2000) == (
        "needs at least 41 GiB, the limit is 4 GiB; n_components up to about 2,000 should fit"
    )
    assert cost.too_large(known, 512.0) == "needs at least 41 GiB, the limit is 512 MiB"


class Records:
    """The part of a registry that is asked."""

    def __init__(self, uses_kernel=False):
        self.uses_kernel, self.grid = uses_kernel, {"alpha": (1.0, 10.0)}

    def get(self, kind, name):
        return self


PLAIN = Protocol()


def planned(n, d=10, width=None, protocol=PLAIN, **more):
    params = {} if width is None else {"n_components": width}
    cell = Cell(Ref("data"), Ref("rff", params), Ref("ridge"), protocol)
    facts = DatasetFacts("c" * 64, n_samples=n, n_features=d)
    return PlannedCell(cell, "key", facts, 5, **more)


def holdout(cv="holdout", test_size=0.3, **sizes):
    return Protocol(cv=cv, test_size=test_size, **sizes)


@pytest.mark.parametrize(
    ("cell", "uses_kernel", "is_tried"),
    [
        (planned(19_999, width=500), False, False),
        (planned(20_000), False, True),
        (planned(5000, width=100_000), False, True),  # 3.7 GiB in one matrix
        (planned(5000, width=Tune((100, 100_000))), False, True),
        (planned(5000, d=100_000), False, True),
        (planned(15_000), True, False),
        (planned(17_000), True, True),  # a Gram matrix of 2.2 GiB
        (
            planned(90_000, protocol=Protocol(max_train_rows=1000)),
            False,
            False,
        ),  # and 18,000 test rows
        (planned(95_000, protocol=Protocol(max_train_rows=1000)), False, True),
        (planned(20_000, protocol=Protocol(max_train_rows=30_000)), False, True),
        (planned(30_000, protocol=holdout(max_train_rows=10_999)), False, False),  # and 9,000
        (planned(30_000, protocol=holdout(max_train_rows=11_000)), False, True),
        (planned(10**6, protocol=holdout(train_size=9000, test_size=9000)), False, False),
        (planned(10**6, protocol=holdout(train_size=9000)), False, True),
        (planned(60_000, protocol=holdout("ordered", 9000, max_train_rows=1)), False, False),
        (planned(60_000, protocol=holdout("ordered", 9000)), False, True),
        (planned(20_000, protocol=Protocol(cv="official", max_train_rows=100)), False, True),
        (planned(19_999, protocol=Protocol(cv="official", max_train_rows=100)), False, False),
        (planned(10**6, results={0: Result("", "", 0, "ok")}), False, False),  # known
    ],
)
def test_small_cells_are_not_tried(cell, uses_kernel, is_tried):
    assert chosen.needs_trials(cell, Records(uses_kernel), 4096.0) == is_tried


def test_a_cell_without_tasks_is_not_tried():
    from kbench.records import Problem

    assert not chosen.needs_trials(planned(10**6, problem=Problem("error", "x")), Records(), 1.0)
    unknown = PlannedCell(planned(1).cell, "key", None, 5)
    assert not chosen.needs_trials(unknown, Records(), 1.0)


def test_another_width_keeps_the_label():
    cell = planned(10, width=Tune((8, 16))).cell
    narrow = set_width(cell, 4)
    assert narrow.feature_map.params == {"n_components": 4}
    assert narrow.feature_map.label == cell.feature_map.label


def test_words():
    assert Estimate(0.5, 0.4, 600.0).as_seconds() == "0.5 s (0.4 s to 10 min)"


def alone_and_together(seconds_together, status="ok"):
    together = Trial(8192, False, status, seconds_together, 110.0, n_threads=2)
    return [*trials(), together]


@pytest.mark.parametrize(
    ("seconds", "status", "factor"),
    [
        (1.3 * 8.192, "ok", 1.3),
        (0.9 * 8.192, "ok", 1.0),
        (9.0 * 8.192, "ok", 2.0),  # each of two threads can wait for the other at most
        (1.0, "timed_out", 1.0),
    ],
)
def test_a_trial_with_all_threads_says_what_they_add(seconds, status, factor):
    alone = cost.predict(trials(), 400_000).seconds
    both = cost.predict(alone_and_together(seconds, status), 400_000).seconds
    assert both.value == pytest.approx(factor * alone.value)
    spreads = [estimate.high / estimate.low for estimate in (both, alone)]
    assert spreads[0] > spreads[1] if status == "ok" else spreads[0] == spreads[1]


def test_threads_that_only_wait_in_a_short_trial_are_half_of_its_factor():
    """The time in which threads start is no part of it: 0.1 s and 0.28 s for any number of rows."""
    short = [Trial(n, False, "ok", n / 81_920, 1.0) for n in (2048, 4096, 8192)]
    alone = cost.predict(short, 400_000).seconds
    for seconds, factor in ((0.28, 1.0), (0.18 + 0.16, 1.6**0.5), (5.0, 2.0**0.5)):
        together = Trial(8192, False, "ok", seconds, 1.0, n_threads=2)
        both = cost.predict([*short, together], 400_000).seconds
        assert both.value == pytest.approx(factor * alone.value)
        # the interval has none of the factor, and all of it
        assert both.low < alone.value <= factor**2 * alone.value < both.high


def test_a_growth_that_is_known_is_seen_where_trials_show_none():
    """As with wide embeddings, whose trials factorise their matrices, and hardly embed."""
    flat = [Trial(2048, False, "ok", 1.136, 1.0), Trial(4096, False, "ok", 1.152, 1.0)]
    known = cost.estimate(math.log(20.0), 0.4)
    without, with_it = (cost.predict(flat, 196_000, growing=it).seconds for it in (None, known))
    assert without.value < 4.0
    assert 8.0 < with_it.value < 25.0
    assert with_it.high / with_it.low < without.high / without.low
    # and is hardly heard where trials show it, be it too large or too small
    alone = cost.predict(trials(), 400_000).seconds
    for truth in (5000.0, 80.0, 40.0, 8.0):
        growing = cost.estimate(math.log(truth), 0.4)
        seconds = cost.predict(trials(), 400_000, growing=growing).seconds
        assert seconds.value == pytest.approx(400.0, rel=0.2)
        assert seconds.low < 400.0 < seconds.high
        assert seconds.high / seconds.low < 1.2 * alone.high / alone.low


def test_growth_with_pairs_of_rows_is_that_of_the_narrower_method_too():
    """As of k-NN behind an embedding, from few rows."""

    def made(factor):
        law = [(n, 0.05 + 1e-6 * n + 2e-8 * n**2) for n in (1024, 4096)]
        return [Trial(n, False, "ok", factor * seconds, 1.0) for n, seconds in law]

    growing = chosen.wider_growth(made(1.0), 4.0, 100_000, cost.PAIRS_OF_KERNEL)
    both = cost.predict(made(4.0), 100_000, cost.PAIRS_OF_KERNEL, growing=growing).seconds
    assert both.value == pytest.approx(4 * 200.0, rel=0.3)
    assert both.low < 800.0 < both.high


def test_growth_of_a_similar_method():
    found = cost.growing_seconds(trials(), 400_000, cost.PAIRS, 8.0, 0.4)
    assert found.value == pytest.approx(8 * 400.0, rel=0.1)
    assert cost.spread_of(found) > 0.4
    # what only some trials measure
    others = [Trial(2048, True, "ok", 9.0, 1.0), Trial(99, False, "timed_out", 9.0, 1.0)]
    assert cost.growing_seconds([*trials(), *others], 400_000, cost.PAIRS, 8.0, 0.4) == found
    assert cost.growing_seconds(others, 400_000, cost.PAIRS, 8.0, 0.4) is None
    flat = [Trial(n, False, "ok", 1.0, 1.0) for n in (9, 99)]
    assert cost.growing_seconds(flat, 200, cost.PAIRS, 8.0, 1.0) is None


def test_memory_of_a_wider_embedding_in_blocks():
    """Measured on 196,046 rows of 3 columns, float32: rff with 256, 1,024 and 4,096 components."""
    protocol = holdout(test_size=0.2, block_dtype="float32", refit_maps_in_inner_folds=False)
    measured = {256: 57.0, 1024: 133.0, 4096: 1064.0}
    for narrow, wide in ((256, 1024), (1024, 4096)):
        cell = Cell(Ref("skin"), Ref("rff", {"n_components": wide}), Ref("ridge"), protocol)
        facts = DatasetFacts("c" * 64, n_samples=245_057, n_features=3, n_classes=2)
        known = cost.estimate(math.log(measured[narrow]), 0.1)
        plan = PlannedCell(cell, "key", facts, 5)
        found = chosen.wider_memory(plan, Records(), wide / narrow, known)
        assert 0.8 < found.value / measured[wide] < 1.2
        assert found.low < measured[wide] < found.high
        # without a search, no fold has sums
        params = {"n_components": wide, "alpha": 1.0}
        single = replace(cell, feature_map=Ref("rff", params), learner=Ref("ridge", params))
        less = chosen.wider_memory(replace(plan, cell=single), Records(), wide / narrow, known)
        assert less.value < found.value


def test_memory_of_further_threads_is_added():
    more = cost.predict(alone_and_together(10.0), 400_000).memory_mib.value
    assert more - cost.predict(trials(), 400_000).memory_mib.value == pytest.approx(110 - 81.92)


@pytest.mark.parametrize(
    "law",
    [
        lambda n: 4.5 + 1.4e-6 * n**2,  # a cache of kernel values that fills
        lambda n: 4e-3 * n + 3e-6 * n**2,
        lambda n: 6e-3 * n,  # of many classes: the pairs of rows of two are few
        lambda n: 1e-6 * n**2,
    ],
    ids=["constant and pairs", "rows and pairs", "rows", "pairs"],
)
def test_trials_show_whether_a_kernel_needs_memory_for_pairs_of_rows(law):
    known = [Trial(n, False, "ok", n / 1000, law(n)) for n in (1024, 2048, 4096)]
    pairs = cost.PAIRS_OF_KERNEL, cost.PAIRS_OF_KERNEL
    memory = cost.predict(known, 12_000, *pairs).memory_mib
    assert memory.value == pytest.approx(law(12_000), rel=0.15)
    assert memory.low < law(12_000) < memory.high
    # one trial, which says nothing of the growth
    alone = cost.predict(known[:1], 12_000, *pairs).memory_mib
    assert alone.low < law(1024) * (12_000 / 1024) ** 2 < alone.high


class Families:
    """A run, as far as costs of methods are concerned."""


def method(width, n=10**6, cost=None, **more):
    ref = Ref("rff", {"n_components": width, **more}, f"rff-{width}")
    cell = Cell(Ref("data"), ref, Ref("ridge"), Protocol())
    facts = DatasetFacts("c" * 64, n_samples=n, n_features=10, n_classes=2)
    return PlannedCell(cell, f"{width}-{n}-{more}", facts, 5, cost=cost)


def of_width(width, n=10**6):
    law = trials(lambda rows: rows * width**1.7 / 1e8, lambda rows: rows * width / 1e5)
    return cost.predict(law, n)


def test_a_wide_embedding_is_predicted_from_narrower_ones():
    run = Families()
    narrow = [method(width, cost=of_width(width)) for width in (256, 1024)]
    wide, other, alone = method(4096), method(4096, gamma=1.0), method(4096, bandwidth=2.0)
    chosen.remember(run, [*narrow, wide, other, method(2048, gamma=1.0), alone])
    wanted = [wide, other, alone, *narrow]
    assert [chosen.is_wide(run, cell) for cell in wanted] == [True, True, False, False, True]
    predicted = chosen.task_cost(run, wide)
    for guess, true in (
        (predicted.seconds, of_width(4096).seconds.value),
        (predicted.memory_mib, of_width(4096).memory_mib.value),
    ):
        assert 2 / 3 < guess.value / true < 1.5
        assert guess.low < true < guess.high
    assert chosen.task_cost(run, alone) is None


def test_results_say_more_than_trials():
    """Those of the cell, and else those of the method on other datasets."""
    run = Families()
    known, small, large = method(64, n=1000), method(64, n=2000), method(64, n=8000)
    chosen.remember(run, [known, small, large])
    assert chosen.task_cost(run, large) is None
    known.results[0] = result(2.0, 30.0)
    one = chosen.task_cost(run, large).seconds
    small.results[0] = result(4.0, 60.0)
    two = chosen.task_cost(run, large).seconds
    assert one.value == pytest.approx(16.0)
    assert two.value == pytest.approx(16.0)
    assert two.high / two.low < one.high / one.low
    large.cost = cost.predict(trials(), 8000)
    assert chosen.task_cost(run, large) is large.cost
    large.results.update({0: result(10.0, 100.0), 1: result(20.0, 110.0)})
    of_splits = chosen.task_cost(run, large)
    assert of_splits.seconds.value == pytest.approx(15.0)
    assert of_splits.memory_mib.value == pytest.approx(105.0)


def test_costs_of_other_datasets_are_compared_by_training_and_test_rows():
    """A dataset of many rows has as few training rows as a small one, and more test rows."""
    run, protocol = Families(), holdout(test_size=0.5, max_train_rows=1000)
    cell = Cell(Ref("data"), Ref("rff"), Ref("ridge"), protocol)
    known, alike, more = (
        PlannedCell(cell, name, DatasetFacts("c" * 64, n_samples=n, n_features=10), 5)
        for name, n in (("known", 2000), ("alike", 2000), ("more", 200_000))
    )
    chosen.remember(run, [known, alike, more])
    known.results[0] = result(1.0, 30.0)
    assert chosen.task_cost(run, alike).seconds.value == pytest.approx(1.0)
    # 1,000 and 100,000 test rows
    assert chosen.task_cost(run, more).seconds.value == pytest.approx(100**0.3)
    assert chosen.task_cost(run, more).memory_mib.value == pytest.approx(30 * 100**0.15)


def result(cpu_s, memory_mib):
    metrics = {"peak_memory_mib": memory_mib}
    return Result("task", "cell", 0, "ok", metrics, cpu_s=cpu_s)


def test_an_interval_is_not_of_hours_where_nothing_grows():
    """A cubic term that few rows do not show would be anything on all of them."""
    rows = [(4096, 0.030), (16_384, 0.038), (65_536, 0.076), (196_046, 0.394)]
    known = [Trial(n, False, "ok", seconds, n / 4000) for n, seconds in rows]
    seconds = cost.predict([*known, Trial(4096, True, "ok", 0.2322, 39.0)], 196_047).seconds
    assert seconds.low <= seconds.value <= seconds.high < 10


def test_trials_that_take_no_time_with_several_threads_have_a_prediction():
    quick = [
        Trial(256, False, "ok", 0.028, 1.1),
        Trial(1024, False, "ok", 0.028, 1.2),
        Trial(4096, False, "out_of_memory", 0.05, 4096.0),
        Trial(256, True, "ok", 0.029, 1.1),
        Trial(1024, False, "ok", 0.05, 1.2, 2),
    ]
    assert cost.predict(quick, 30_000).seconds.value > 0


def in_blocks(memories, blocks_mib=70.0):
    rows = (3125, 12_500)
    return [
        Trial(n, False, "ok", n / 1000, mib, 1, blocks_mib)
        for n, mib in zip(rows, memories, strict=True)
    ]


def test_blocks_of_all_rows_add_to_the_memory_of_trials():
    flat = cost.predict(in_blocks((53.0, 53.0)), 40_000).memory_mib
    assert flat.value == pytest.approx(123, rel=0.05)
    metrics = [*in_blocks((53.0, 53.0)), Trial(3125, True, "ok", 3.0, 150.0)]
    assert cost.predict(metrics, 40_000).memory_mib.value == pytest.approx(150, rel=0.05)


def test_a_little_growth_of_passes_over_blocks_is_noise():
    """Measured: 198 MiB of 1,600,000 rows in blocks of 4,096, 1,000 columns."""
    memory = cost.predict(in_blocks((53.016, 60.77)), 1_600_000).memory_mib
    assert 198 / 1.3 < memory.value < 198 * 1.3
    assert memory.low < 198 < memory.high
    # inputs that are held as one matrix are no noise
    more = cost.predict(in_blocks((53.0, 150.0)), 50_000).memory_mib.value
    assert more == pytest.approx(70 + 150 + 4 * 97, rel=0.2)


def found(**metrics):
    note = "fitted from sums over blocks of 4,096 embedded rows in float64"
    measured = {"shared_pass": 1.0, "n_components": 1000.0, "nnz_per_row": 1000.0}
    measured["n_candidates"] = 6.0
    return {"metrics": measured | metrics, "details": {"notes": [note]}, "block_rows": 1024}


def test_blocks_of_a_task_have_more_rows_than_those_of_a_trial():
    refit = Protocol(inner_folds=4)
    shared = Protocol(inner_folds=4, refit_maps_in_inner_folds=False)

    def rows_of(found, protocol, n_rows, most):
        mib = chosen.memory_of_blocks(found, protocol, n_rows, most)
        of_blocks = mib * 2**20 - chosen.OF_ROW * (most - n_rows)
        return of_blocks / (chosen.OF_PASS * 8 * 1000)

    assert rows_of(found(), refit, 2000, 10**6) == pytest.approx(4096 - 1024)
    # one map for all folds makes one pass, fold by fold
    assert rows_of(found(), shared, 2000, 10**6) == pytest.approx(4096 - 500)
    assert rows_of(found(), shared, 2000, 12_000) == pytest.approx(3000 - 500)
    assert rows_of(found(), refit, 20_000, 20_000) == 4096 - 1024
    # without a search there are no folds
    assert rows_of(found(n_candidates=1.0), shared, 2000, 12_000) == pytest.approx(4096 - 1024)
    single = found() | {"details": {"notes": ["passes over blocks of 9 embedded rows in float32"]}}
    assert rows_of(single, refit, 2000, 10**6) == pytest.approx((4096 - 1024) / 2)
    # values and numbers of columns of sparse rows
    assert rows_of(found(nnz_per_row=4.0), refit, 2000, 10**6) == pytest.approx(3072 * 48 / 8000)
    # a sample that fits begin on has 2^28 bytes of float64, and is copied from one of float32
    for note, of_value in (("float64", 8), ("float32", 12)):
        begun = found()
        begun["details"]["notes"] = [f"embedded rows in {note}", "begun on a sample of 3,000 rows"]
        more = chosen.memory_of_blocks(begun, refit, 20_000, 10**6)
        begun["details"]["notes"].pop()
        more -= chosen.memory_of_blocks(begun, refit, 20_000, 10**6)
        assert more * 2**20 == pytest.approx(of_value * 1000 * (2**28 // 8000 - 3000))
    whole = found()
    del whole["metrics"]["shared_pass"]
    assert chosen.memory_of_blocks(whole, refit, 2000, 10**6) == 0.0
    assert chosen.memory_of_blocks({}, refit, 2000, 10**6) == 0.0


def test_memory_grows_with_pairs_of_rows_at_most():
    """The smallest trials of a kernel machine hide its cache: measured were 43 MiB."""
    found = [(1024, 3.3), (2048, 3.7), (4096, 9.4)]
    plain = [Trial(n, False, "ok", 0.2, memory) for n, memory in found]
    made = [*plain, Trial(1024, True, "ok", 0.2, 41.1)]
    predicted = cost.predict(made, 10_000, cost.PAIRS_OF_KERNEL, cost.PAIRS_OF_KERNEL)
    assert 0.75 < predicted.memory_mib.value / 43 < 1.25
    assert predicted.memory_mib.low < predicted.memory_mib.value < predicted.memory_mib.high
