"""Times of steps, by a clock that only the steps advance."""

import gc

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from kbench import Dataset, Protocol
from kbench.evaluation import timing
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench.evaluation.timing import Timed, time_step, times


class Clock:
    """A clock that stands still between calls of `advance`."""

    def __init__(self):
        self.wall = 100.0
        self.cpu = 7.0

    def perf_counter(self):
        return self.wall

    def process_time(self):
        return self.cpu

    def advance(self, wall, cpu):
        self.wall += wall
        self.cpu += cpu


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(timing, "time", made)
    return made


def repeated(clock, walls, cpus):
    """Time a step whose calls take so long; return the times and the number of calls."""
    durations = iter(zip(walls, cpus, strict=True))
    calls = []

    def step():
        clock.advance(*next(durations))
        calls.append(1)

    return time_step(step), len(calls)


def test_a_time_is_the_median_of_the_repeats(clock):
    walls, cpus = (0.009, 0.001, 0.002, 0.004, 0.003), (0.001, 0.008, 0.002, 0.0025, 0.003)
    found, calls = repeated(clock, walls, cpus)
    assert calls == 5
    assert found.wall == pytest.approx(0.003)
    assert found.cpu == pytest.approx(0.0025)


@pytest.mark.parametrize(
    ("walls", "n_calls", "median"),
    [
        ((0.06, 9.0), 1, 0.06),
        ((0.02, 0.04, 9.0), 2, 0.03),
        ((0.015, 0.02, 0.025, 9.0), 3, 0.02),
        ((0.01, 0.012, 0.01, 0.01, 0.02, 9.0), 5, 0.01),
    ],
)
def test_a_step_is_repeated_until_50_ms_are_spent(clock, walls, n_calls, median):
    # time spent waiting counts, time of the processor does not
    found, calls = repeated(clock, walls, (0.001,) * len(walls))
    assert calls == n_calls
    assert found.wall == pytest.approx(median)


@pytest.mark.parametrize(
    ("walls", "n_calls"),
    [((0.01, 0.0104, 0.0102, 9.0), 3), ((0.01, 0.0108, 0.0102, 0.01, 0.01, 9.0), 5)],
)
def test_a_step_is_repeated_until_three_times_agree(clock, walls, n_calls):
    found, calls = repeated(clock, walls, (0.001,) * len(walls))
    assert calls == n_calls
    assert found.wall == pytest.approx(sorted(walls[:n_calls])[n_calls // 2])


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_off_in_a_step_and_then_as_it_was(enabled):
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        assert time_step(gc.isenabled).value is False
        assert gc.isenabled() is enabled
        with pytest.raises(ZeroDivisionError):
            time_step(lambda: 1 / 0)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


def test_each_time_is_that_of_its_steps():
    map_, Z, learner, Z_test, predicted = (Timed(None, 2.0**i, 100 * 2.0**i) for i in range(5))
    wall = {
        "map_fit_time_s": 1.0,
        "map_transform_time_s": 2.0,
        "learner_fit_time_s": 4.0,
        "fit_time_s": 7.0,
        "predict_time_s": 24.0,
    }
    cpu = {name.replace("_s", "_cpu_s"): 100 * value for name, value in wall.items()}
    assert times(map_, Z, learner, Z_test, predicted) == wall | cpu


def test_prediction_takes_the_transform_of_the_test_part_too(clock):
    n_train, n_test = 45, 15

    class Map(TransformerMixin, BaseEstimator):
        def fit(self, X):
            clock.advance(1, 0.1)
            return self

        def transform(self, X):
            assert len(X) in (n_train, n_test)
            clock.advance(*((2, 0.2) if len(X) == n_train else (8, 0.8)))
            return X

    class Learner(ClassifierMixin, BaseEstimator):
        def fit(self, Z, y):
            clock.advance(4, 0.4)
            return self

        def predict(self, Z):
            clock.advance(16, 1.6)
            return np.zeros(len(Z), dtype=int)

    data = Dataset("line", np.arange(60.0)[:, None], np.arange(60) % 2)
    method = Method(EstimatorSpec(Map), EstimatorSpec(Learner))
    found = evaluate_split(data, 0, method, Protocol(n_folds=4)).metrics
    expected = {
        "map_fit_time_s": 1,
        "map_transform_time_s": 2,
        "learner_fit_time_s": 4,
        "fit_time_s": 7,
        "predict_time_s": 24,
    }
    for name, seconds in expected.items():
        assert found[name] == pytest.approx(seconds), name
        assert found[name.replace("_s", "_cpu_s")] == pytest.approx(seconds / 10), name
