"""The last lines of a run: the best group, the cheapest in it, who is dominated, verdicts."""

import numpy as np
import pytest

from kbench.report.tables import answer_sentences
from kbench.results.leaderboard import leaderboard
from tests.support.report_rows import grid, row

METHODS = {"good": (0.9, 0.2), "quick": (0.9, 0.1), "slow": (0.7, 0.4), "cheap": (0.6, 0.01)}


def board(n_datasets):
    rng = np.random.default_rng(0)
    return leaderboard(
        [
            row(
                f"data-{d}",
                name,
                accuracies=gain + rng.normal(0, 0.01, 3),
                fit_time_s=float(seconds * rng.lognormal(0, 0.1)),
            )
            for d in range(n_datasets)
            for name, (gain, seconds) in METHODS.items()
        ]
    )


@pytest.mark.parametrize("n", [1, 2, 4])
def test_few_datasets_have_one_sentence(n):
    (sentence,) = answer_sentences(board(n), [("good", "ridge")])
    assert sentence.startswith(f"{n} independent dataset")
    assert sentence.endswith("at least 5 are needed.")


def test_the_group_its_cheapest_and_the_dominated_are_named():
    said = answer_sentences(board(9))
    assert "9 independent datasets" in said[0]
    assert "good + ridge" in said[0]
    assert "slow" not in said[0]
    assert said[1].startswith("Cheapest in it: quick + ridge, ")
    assert "Outside it: 2;" in said[2]
    assert "slow + ridge (by " in said[3]
    assert "cheap" not in said[3]


def test_each_method_in_focus_gets_a_verdict():
    found = answer_sentences(board(9), [(name, "ridge") for name in METHODS])[-4:]
    by_method = {sentence.split()[0]: sentence for sentence in found}
    assert "is in the best group" in by_method["good"]
    assert "is dominated by" in by_method["slow"]
    assert "is significantly worse than" in by_method["cheap"]


def test_there_is_no_answer_without_two_methods():
    assert answer_sentences(leaderboard(grid(6, 1))) == []
