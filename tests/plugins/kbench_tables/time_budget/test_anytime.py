"""The order of tasks in a limited time, with a clock that only tasks move."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kbench.planning.planned import PlannedCell
from kbench.records import ACCURACY, Cell, DatasetFacts, Details, Problem, Protocol, Ref, Result
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_tables.time_budget.anytime import Schedule
from kbench_tables.time_budget.sample_sizes import refinements

FACTS = DatasetFacts("c" * 64, n_samples=100_000, n_features=10, class_counts=(50_000, 50_000))
SAMPLES = (1250, 5000, 20_000, None)
N_TRAIN = 80_000
LEARNERS = {
    "cheap": "ridge",
    "good": "gradient-boosting",
    "bad": "knn",
    "slow": "kernel-svm",
    "alike": "gradient-boosting",
}


@pytest.fixture(scope="module")
def registry():
    return build(list_plugins())


def steps(schedule, cells, until, plan, jobs=2):
    """Return the steps of a run of these cells."""
    suite = SimpleNamespace(compared=ACCURACY)
    options = SimpleNamespace(jobs=jobs)
    run = SimpleNamespace(cells=cells, suite=suite, until=until, add=plan, options=options)
    return schedule.start_run(run).steps()


class Run:
    """A run of a schedule: each task takes its seconds of CPU time, and has its accuracy.

    `pace` returns the seconds that one of CPU time takes at a time.
    """

    def __init__(
        self,
        registry,
        until,
        methods,
        first=(),
        n_candidates=1,
        searched=(),
        samples=SAMPLES,
        pace=lambda now: 1.0,
        n_test=20_000.0,
        luck=lambda label, split: 0.0,
        **options,
    ):
        self.n_test, self.luck = n_test, luck
        self.now, self.until, self.methods, self.pace = 0.0, until, methods, pace
        self.cells = [
            self.plan(cell(name, rows, 8 if name in searched else n_candidates))
            for rows in samples
            for name in methods
        ]
        self.schedule = Schedule(
            registry,
            [("identity", name) for name in first],
            4096.0,
            lambda: self.now,
            self.wait,
            **options,
        )
        self.steps, self.n_cut_off = [], 0
        self.end()

    def plan(self, given):
        n_candidates = given.protocol.n_candidates
        key = f"{given.learner.label}/{given.protocol.max_train_rows}/{dict(given.learner.params)}"
        key += f"/{n_candidates}"
        return PlannedCell(given, key, FACTS, 10)

    def wait(self, seconds):
        raise AssertionError("nothing runs, so that nothing is waited for")

    def end(self):
        for planned, split in steps(self.schedule, self.cells, self.until, self.plan):
            label = planned.cell.learner.label
            seconds, accuracy = self.methods[label.partition(" (")[0]]
            n = planned.cell.protocol.max_train_rows or N_TRAIN
            chosen = {} if planned.cell.learner.params else {"learner.learning_rate": 0.05}
            if planned.cell.protocol.n_candidates == 1:
                chosen = {}
            else:
                seconds = seconds * (1 + planned.cell.protocol.n_candidates)
            work_s = seconds * n / N_TRAIN
            seconds = (0.1 + work_s) * self.pace(self.now)
            begun, self.now = self.now, self.now + seconds
            if begun < self.until < self.now:  # it is cut off
                self.now = self.until
                self.n_cut_off += 1
                continue
            self.steps.append((label, n, split))
            planned.results[split] = Result(
                "t",
                planned.key,
                split,
                "ok",
                {
                    "accuracy": accuracy(n) + self.luck(label, split),
                    "n_train": float(n),
                    "n_test": self.n_test,
                    "fit_time_s": work_s * self.pace(self.now),
                },
                Details(chosen=chosen),
                seconds=seconds,
                cpu_s=0.1 + work_s,
            )
            self.schedule.tell(planned, planned.results[split])
            if planned not in self.cells:
                self.cells.append(planned)

    def most_rows(self, label):
        return max((n for name, n, _ in self.steps if name == label), default=0)


def cell(label, rows, n_candidates):
    protocol = Protocol(
        cv="holdout",
        test_size=20_000,
        max_train_rows=rows,
        search_method="random",
        n_candidates=n_candidates,
    )
    return Cell(
        Ref("csv", {}, f"t{rows}"), Ref("identity"), Ref(LEARNERS[label], {}, label), protocol
    )


def test_a_step_depends_on_the_result_that_is_on_its_way(registry):
    """A slot asks for its next task before the run has recorded the last one."""
    cells = [PlannedCell(cell(name, SAMPLES[0], 1), name, FACTS, 10) for name in ("cheap", "good")]
    waits = []

    def wait(seconds):
        waits.append(seconds)
        metrics = {"accuracy": 0.5, "n_train": 1.0, "n_test": 20_000.0}
        first.results[0] = Result("t", first.key, 0, "ok", metrics, seconds=1.0, cpu_s=1.0)

    schedule = Schedule(registry, wait=wait, clock=lambda: 0.0)
    going = steps(schedule, cells, 100.0, None, jobs=1)
    first, _ = next(going)
    second, _ = next(going)
    assert (len(waits), second is first) == (1, False)


def curve(top):
    return lambda n: top - 10 / n**0.6


GOOD, BAD = curve(0.9), curve(0.7)


def test_with_time_all_but_clear_losers_have_all_rows(registry):
    methods = {"cheap": (1, GOOD), "good": (10, curve(0.91)), "bad": (1, BAD)}
    run = Run(registry, 1000.0, methods, ["cheap", "good"])
    # one after the other: the first method has all rows before the next one begins
    assert run.steps[:4] == [
        ("cheap", 1250, 0),
        ("cheap", N_TRAIN, 0),
        ("good", 1250, 0),
        ("good", N_TRAIN, 0),
    ]
    assert (run.most_rows("cheap"), run.most_rows("good")) == (N_TRAIN, N_TRAIN)
    assert run.most_rows("bad") == 1250
    # nothing is left to do, long before the end
    assert run.now < 500


@pytest.mark.parametrize("until", [3.0, 10.0, 30.0, 100.0])
def test_the_time_is_kept_and_the_first_methods_are_measured(registry, until):
    methods = {"cheap": (1, GOOD), "good": (10, curve(0.91)), "slow": (400, curve(0.92))}
    run = Run(registry, until, methods, ["cheap", "good"])
    assert run.now <= until
    assert run.most_rows("good") >= 1250
    if until == 100.0:
        assert run.most_rows("good") == N_TRAIN
    # every method has its share
    assert run.most_rows("slow") >= (1250 if until >= 30 else 0)


def test_a_method_that_is_better_on_few_rows_climbs(registry):
    methods = {"cheap": (1, GOOD), "slow": (20, curve(0.95))}
    run = Run(registry, 200.0, methods, ["cheap"])
    assert run.most_rows("slow") == N_TRAIN


def test_more_rows_come_before_a_second_holdout(registry):
    run = Run(registry, 1000.0, {"cheap": (1, GOOD), "good": (5, GOOD)})
    reached = run.steps.index(("good", N_TRAIN, 0))
    assert all(split == 0 for _, _, split in run.steps[:reached])
    assert max(split for _, _, split in run.steps) == 4


class WithSkipped(Run):
    """A run whose method "alike" is skipped."""

    def plan(self, given):
        planned = super().plan(given)
        if given.learner.label == "alike":
            planned.problem = Problem("skipped", "no memory")
        return planned


def test_second_splits_of_few_rows_come_last(registry):
    methods = {"cheap": (1, GOOD), "slow": (900, GOOD)}
    run = Run(registry, 150.0, methods, ["cheap"])
    seconds = [(name, n) for name, n, split in run.steps if split]
    assert [name for name, _ in seconds] == ["cheap"] * 4 + ["slow"] * (len(seconds) - 4)
    assert 0 < run.most_rows("slow") < N_TRAIN


def test_a_skipped_method_does_not_count_as_one_of_all_rows(registry):
    methods = {"cheap": (40, GOOD), "slow": (100, GOOD)}
    run = Run(registry, 60.0, methods, ["cheap"])
    # nothing reached all rows: those that reached the most come first
    seconds = [(name, n) for name, n, split in run.steps if split]
    assert seconds[0] == ("cheap", 20_000)
    assert run.most_rows("cheap") == 20_000 > run.most_rows("slow")
    with_one = WithSkipped(registry, 60.0, methods | {"alike": (1, GOOD)}, ["cheap"])
    assert with_one.steps == run.steps


def test_what_was_too_long_for_its_share_comes_before_second_splits(registry):
    methods = {"good": (10, GOOD), "alike": (10, GOOD)}
    run = Run(registry, 28.0, methods, ["good", "alike"], samples=(None,))
    assert run.steps[:2] == [("good", N_TRAIN, 0), ("alike", N_TRAIN, 0)]
    # with less time than it should take it does not begin, and the splits of the other do
    run = Run(registry, 21.0, methods, ["good", "alike"], samples=(None,))
    assert run.most_rows("alike") == 0
    assert ("good", N_TRAIN, 1) in run.steps


@pytest.mark.parametrize(("until", "begins"), [(50.0, 4.0), (50.0, 12.0), (60.0, 20.0)])
def test_tasks_end_in_time_on_a_machine_that_gets_busy(registry, until, begins):
    methods = {"cheap": (0.5, GOOD), "good": (4, GOOD), "slow": (20, GOOD), "bad": (1, GOOD)}

    def pace(now):
        return 2.5 if now >= begins else 1.0

    run = Run(registry, until, methods, ["cheap", "good"], pace=pace, end_cpu_s=2.0)
    # planned by the times of before, a task would be cut off
    assert run.n_cut_off == 0
    assert run.most_rows("good") == N_TRAIN
    assert run.now <= until


def test_the_pace_of_the_start_decides_what_begins(registry):
    methods = {"cheap": (0.5, GOOD), "good": (4, GOOD), "slow": (8, GOOD)}
    assert Run(registry, 30.0, methods, ["cheap", "good"]).most_rows("slow") == N_TRAIN
    busy = Run(registry, 30.0, methods, ["cheap", "good"], pace=lambda now: 3.0, first_pace=3.0)
    assert busy.most_rows("good") == N_TRAIN
    assert 0 < busy.most_rows("slow") < N_TRAIN
    assert busy.n_cut_off == 0


def test_what_a_search_chose_on_few_rows_is_fitted_on_more(registry):
    run = Run(registry, 40.0, {"cheap": (0.1, BAD), "good": (8, GOOD)}, ["cheap", "good"], 8)
    assert run.most_rows("good") == N_TRAIN
    last = next(c for c in reversed(run.cells) if c.cell.learner.label == "good" and c.results)
    assert last.cell.learner.params == {"learning_rate": 0.05}
    assert last.cell.protocol.n_candidates == 1
    # the searched cell of the same rows is the other one
    assert run.now < 44


def test_the_cost_on_all_rows_is_predicted_with_an_interval(registry):
    methods = {"cheap": (1, GOOD), "slow": (400, GOOD)}
    run = Run(registry, 60.0, methods, ["cheap"])
    assert run.most_rows("slow") < N_TRAIN
    seconds = run.schedule.cost_on_all_rows(("identity", "slow")).seconds
    assert 200 < seconds.low < seconds.value < seconds.high
    assert run.schedule.cost_on_all_rows(("identity", "none")) is None
    # a method that the suite has for few rows only
    small = Run(registry, 60.0, {"slow": (400, GOOD)}, samples=(1250,))
    predicted = small.schedule.cost_on_all_rows(("identity", "slow"))
    assert predicted.seconds.value > 100 * small.cells[0].results[0].seconds


def test_what_needs_too_much_memory_stays_where_it_is(registry):
    run = Run(registry, 0.0, {"good": (1, GOOD)}, ["good"])
    first = run.cells[0]
    result = first.results[0]
    first.results[0] = result.with_metric("peak_memory_mib", 2000.0)
    run.until = 100.0
    run.end()
    assert run.most_rows("good") == 1250
    first.results[0] = result.with_metric("peak_memory_mib", 20.0)
    run.end()
    assert run.most_rows("good") == N_TRAIN


def test_the_first_task_begins_whatever_the_time_is(registry):
    run = Run(registry, -1.0, {"cheap": (1, GOOD), "good": (1, GOOD)})
    assert run.steps == [("cheap", 1250, 0)]
    kept = run.schedule.kept(run.cells)
    assert [(c.cell.learner.label, c.status, c.n_splits) for c in kept] == [
        ("cheap", "ok", 1),
        ("good", "skipped", 10),
    ]


def test_the_baseline_begins_too_whatever_the_time_is(registry):
    methods = {"cheap": (1, GOOD), "bad": (1, BAD), "good": (1, GOOD)}
    run = Run(registry, -1.0, methods, ["cheap", "bad", "good"])
    assert run.steps == [("cheap", 1250, 0), ("bad", 1250, 0)]
    # a task that the end of the time has cut off begins once more
    run = Run(registry, 0.1, methods, ["cheap", "bad", "good"])
    assert run.n_cut_off == 1
    assert run.steps == [("cheap", 1250, 0), ("bad", 1250, 0)]


def test_splits_after_a_gap_are_not_counted(registry):
    run = Run(registry, 0.0, {"cheap": (1, GOOD)})
    (result,) = run.cells[0].results.values()
    run.cells[0].results |= {1: result, 3: result}
    (kept,) = run.schedule.kept(run.cells)
    assert (kept.n_splits, sorted(kept.results), kept.status) == (2, [0, 1], "ok")


def test_a_failure_ends_the_climb_of_its_method_only(registry):
    run = Run(registry, 0.0, {"cheap": (1, GOOD), "good": (1, GOOD)})
    run.cells[0].results[0] = Result("t", "k", 0, "error", error="no")
    run.until = 100.0
    run.end()
    assert run.most_rows("cheap") == 1250
    assert run.most_rows("good") == N_TRAIN


def result_of(cell, seconds, fit_time_s):
    rows = cell.cell.protocol.max_train_rows or N_TRAIN
    metrics = {"accuracy": 0.8, "n_train": float(rows), "n_test": 20_000.0}
    times = {"fit_time_s": fit_time_s, "predict_time_s": 0.1}
    return Result("t", cell.key, 0, "ok", {**metrics, **times}, seconds=seconds)


class Slots:
    """The steps of a schedule whose tasks end when a test says so."""

    def __init__(self, registry, until, methods=None, samples=SAMPLES):
        methods = methods or {"cheap": 1, "good": 1, "alike": 8}
        self.cells = [cell(name, rows, n) for rows in samples for name, n in methods.items()]
        self.cells = [
            PlannedCell(each, f"{each.learner.label}/{each.protocol.max_train_rows}", FACTS, 10)
            for each in self.cells
        ]
        first = [("identity", name) for name in methods]
        schedule = Schedule(registry, first, 4096.0, lambda: 0.0, lambda _: pytest.fail("waits"))
        self.steps = steps(schedule, self.cells, until, lambda each: each)

    def step(self):
        planned, _ = next(self.steps)
        return planned, (planned.cell.learner.label, planned.cell.protocol.max_train_rows)

    def two(self):
        """Begin the first two methods on the smallest sample."""
        (_, name), (good, other) = self.step(), self.step()
        assert (name, other) == (("cheap", 1250), ("good", 1250))
        return good


@pytest.mark.parametrize(
    ("until", "rows"),
    [
        (100.0, None),  # 3 + (64 * .15 - 1) * 2.1 = 21.1 of 90 seconds
        (23.0, 20_000),
        (24.0, None),
    ],
)
def test_a_first_method_goes_to_the_most_rows_that_fit_while_another_runs(registry, until, rows):
    run = Slots(registry, until)
    good = run.two()
    good.results[0] = result_of(good, seconds=3.0, fit_time_s=2.0)
    assert run.step()[1] == ("good", rows)


def test_splits_of_the_best_method_fill_all_slots(registry):
    run = Slots(registry, 1000.0, {"cheap": 1}, samples=(None,))
    first, _ = run.step()
    first.results[0] = result_of(first, seconds=1.0, fit_time_s=1.0)
    assert [next(run.steps) for _ in range(2)] == [(first, 1), (first, 2)]


def test_a_search_waits_for_what_its_components_take_without_one(registry):
    run = Slots(registry, 1000.0)
    run.two()
    with pytest.raises(pytest.fail.Exception, match="waits"):
        run.step()


def test_a_search_of_what_was_evaluated_has_a_tenth_of_the_time_or_comes_last(registry):
    methods = {"good": (10, GOOD), "alike": (10, GOOD)}
    run = Run(registry, 1000.0, methods, ["good", "alike"], searched=["alike"], samples=(None,))
    splits = [(name, split) for name, _, split in run.steps]
    assert splits[:6] == [*(("good", split) for split in range(5)), ("alike", 0)]
    run = Run(registry, 4000.0, methods, ["good", "alike"], searched=["alike"], samples=(None,))
    assert [(name, split) for name, _, split in run.steps[:2]] == [("good", 0), ("alike", 0)]


def test_better_methods_move_on_once_half_of_the_time_is_over(registry):
    methods = {"cheap": (1, GOOD), "slow": (2600, BAD), "good": (1, GOOD), "alike": (1, GOOD)}
    run = Run(registry, 80.0, methods, ["cheap"])
    assert run.steps[2:5] == [
        ("slow", 1250, 0),  # takes 41 s
        ("good", 1250, 0),
        ("good", 5000, 0),
    ]
    assert ("alike", 1250, 0) in run.steps
    run = Run(registry, 400.0, methods, ["cheap"])
    assert run.steps[3:5] == [("good", 1250, 0), ("alike", 1250, 0)]


def test_no_method_has_many_more_splits_than_the_best(registry):
    methods = {"cheap": (1, lambda n: 0.849), "good": (10, lambda n: 0.85)}
    run = Run(registry, 20.0, methods, ["cheap"], samples=(None,))
    splits = [(name, split) for name, _, split in run.steps]
    assert splits == [("cheap", 0), ("good", 0), ("cheap", 1)]


def test_time_that_is_left_is_for_larger_searches_of_the_best_method(registry):
    methods = {"cheap": (0.1, BAD), "good": (8, GOOD)}
    run = Run(registry, 20_000.0, methods, ["cheap", "good"], 8)
    searches = {c.cell.learner.label: c.cell.protocol.n_candidates for c in run.cells if c.results}
    more = {name: n for name, n in searches.items() if name.startswith("good (")}
    # three times as many each time, until the space of 144 ends
    assert more == {"good (24 candidates)": 24, "good (72 candidates)": 72} | {
        "good (144 candidates)": 144
    }
    splits = [(name, split) for name, _, split in run.steps]
    # a larger search comes before the other splits, which take longer together
    assert splits.index(("good (24 candidates)", 0)) < splits.index(("good", 1))
    assert splits.index(("good", 4)) < splits.index(("good (72 candidates)", 0))
    # splits of what is clearly worse come last
    assert [name for name, split in splits if split][-4:] == ["cheap"] * 4
    # each of them has all rows, and its other splits
    assert {n for name, n, _ in run.steps if name in more} == {N_TRAIN}
    assert [s for name, s in splits if name == "good (24 candidates)"] == [0, 1, 2, 3, 4]


def test_a_larger_search_begins_only_if_it_should_end_in_time(registry):
    methods = {"cheap": (0.1, BAD), "good": (8, GOOD)}
    for until in (400.0, 500.0, 700.0, 1500.0):
        run = Run(registry, until, methods, ["cheap", "good"], 8)
        assert run.now <= until
        # what was begun without a result is no method of the answer
        rows = {(c.cell.learner.label, bool(c.results)) for c in run.schedule.kept(run.cells)}
        assert all(has for name, has in rows if name.startswith("good ("))


def test_known_results_of_larger_searches_are_taken(registry):
    methods = {"cheap": (0.1, BAD), "good": (8, GOOD)}
    run = Run(registry, 1500.0, methods, ["cheap", "good"], 8)
    assert any(name == "good (24 candidates)" for name, _, _ in run.steps)
    again = Run(registry, 0.0, methods, ["cheap", "good"], 8)
    known = {cell.key: cell.results for cell in run.cells}
    plan = again.plan

    def planned(given):
        cell = plan(given)
        cell.results = dict(known.get(cell.key, {}))
        return cell

    again.plan = planned
    for cell in again.cells:
        cell.results = dict(known.get(cell.key, {}))
    again.steps, again.now, again.until = [], 0.0, 1500.0
    again.end()
    done = {(name, n, split) for name, n, split in run.steps}
    assert not done & set(again.steps)


class TestRefinements:
    """Cells that take longer than a measured one, and may be better."""

    def planned(self, given):
        return PlannedCell(given, "k", FACTS, 5)

    def test_more_candidates_until_the_space_ends(self, registry):
        found = list(refinements(self.planned(cell("good", None, 24)), registry))
        assert [c.learner.label for c in found] == ["good (72 candidates)"]
        (last,) = refinements(self.planned(found[0]), registry)
        assert last.learner.label == "good (144 candidates)"
        assert not list(refinements(self.planned(last), registry))

    def test_the_defaults_are_not_searched(self, registry):
        assert not list(refinements(self.planned(cell("good", None, 1)), registry))

    def test_a_wider_map_has_at_most_as_many_components_as_rows(self, registry):
        narrow = replace(
            cell("cheap", 1250, 1), feature_map=Ref("nystroem", {"n_components": 800}, "nystroem")
        )
        (wide,) = refinements(self.planned(narrow), registry)
        assert wide.feature_map.label == "nystroem (1,250 components)"
        assert wide.feature_map.params == {"n_components": 1250}
        assert not list(refinements(self.planned(wide), registry))
        of_share = replace(narrow, feature_map=Ref("nystroem", {"n_components": 500}, "map (x)"))
        (wide,) = refinements(self.planned(of_share), registry)
        assert wide.feature_map.label == "map (x) (1,000 components)"


def lucky_once(label, split):
    """Return what a score is above its mean: the first split is an easy one."""
    return (0.1 + 0.05 * (label == "bad")) * (split == 0)


@pytest.mark.parametrize("n_test", [100.0, 20_000.0])
def test_the_best_method_of_a_noisy_split_is_evaluated_on_further_ones_first(registry, n_test):
    methods = {
        "cheap": (1.0, lambda n: 0.80),
        "good": (1.1, lambda n: 0.82),
        "bad": (1.2, lambda n: 0.80),
    }
    run = Run(registry, 60.0, methods, ["cheap"], samples=(None,), n_test=n_test, luck=lucky_once)
    further = [label for label, _, split in run.steps if split > 0]
    if n_test > 1000:
        assert further[:6] == ["bad", "good", "cheap"] * 2  # the best one first
        return
    # they show that it was lucky once; the method that is the best in fact has all splits then
    assert further[:10] == ["cheap"] * 4 + ["bad"] * 2 + ["good"] * 4
