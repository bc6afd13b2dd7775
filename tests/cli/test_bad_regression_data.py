"""Data of a suite that are no regression problem: one message each, and the rest runs."""

import pytest

from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

ROWS = 20
NUMBERS = [f"{i / 7:.3f}" for i in range(ROWS)]
GOOD = ["a", *map(str, range(ROWS))], ["y", *NUMBERS]


def csv(*columns):
    return "".join(",".join(line) + "\n" for line in zip(*columns, strict=True))


def splits(*tested):
    """Write a splits file, given the rows that each split tests."""
    return csv(
        *([f"s{k}", *("01"[i in rows] for i in range(ROWS))] for k, rows in enumerate(tested))
    )


FILES = {
    "good": csv(*GOOD),
    "infinite": csv(GOOD[0], ["y", *NUMBERS[:-1], "inf"]),
    "constant": csv(GOOD[0], ["y", *["0.5"] * ROWS]),
    "text": csv(GOOD[0], ["y", *NUMBERS[:3], "n/a?", *NUMBERS[4:]]),
    "missing": csv(GOOD[0], ["y", *NUMBERS[:-2], "", ""]),
    "negative": csv(*GOOD, ["w", "1", "-1", *["1"] * (ROWS - 2)]),
    "no-weight": csv(*GOOD, ["w", *["0"] * ROWS]),
    "few": csv(*([name, *values[:3]] for name, *values in GOOD)),
    "empty-split": splits(range(3), ()),
    "overlap": splits(range(3), range(2, 5)),
    "short": splits(range(3)).rpartition("0\n")[0],
}
WEIGHTED = 'weight = "w"'
CASES = {
    "infinite": ("infinite", "", "the target 'y' is infinite in 1 row of 20, the first is row 20"),
    "constant": ("constant", "", "all rows have the target 0.5; a constant cannot be learned"),
    "text": ("text", "", "'y' is not numeric in 1 row of 20, the first is row 4: 'n/a?'"),
    "missing": ("missing", "", "the target 'y' is missing in 2 rows of 20, the first is row 19"),
    "negative": ("negative", WEIGHTED, "the first is row 2 with the weight -1"),
    "no-weight": ("no-weight", WEIGHTED, "all weights 'w' are 0"),
    "empty-split": (
        "good",
        'split_file = "empty-split.csv"',
        "column 's1' has no row in the test set",
    ),
    "overlap": (
        "good",
        'split_file = "overlap.csv"',
        "1 row of 20 is tested more than once: row",
    ),
    "short": (
        "good",
        'split_file = "short.csv"',
        "it has 19 rows below its header, but",
    ),
    "no-splits": ("good", 'split_file = "nowhere.csv"', "splits file 'nowhere.csv': No such file"),
}


@pytest.mark.slow
def test_each_mistake_has_one_message(tmp_path, monkeypatch, store_uri, capfd):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / f"{name}.csv").write_text(content)
    lines = [("good", "good", "")] + [(label, *case[:2]) for label, case in CASES.items()]
    (tmp_path / "mine.toml").write_text(
        "".join(
            f'[[datasets]]\nname = "csv"\nlabel = "{label}"\npath = "{file}.csv"\ntarget = "y"\n'
            + ("" if "task" in more else 'task = "regression"\n')
            + f"{more}\n"
            for label, file, more in lines
        )
        + '[[feature_maps]]\nname = "identity"\n[[learners]]\nname = "bayesian-linear"\n'
    )
    _, out, err = command("suite", "mine.toml", "--store", store_uri, "--quiet", capfd=capfd)
    assert "Traceback" not in out + err
    for label, (_, _, words) in CASES.items():
        messages = [line for line in (out + err).splitlines() if words in line]
        assert len(messages) == 1, (label, out + err)
        assert label in messages[0]
    (good,) = [line.split() for line in out.splitlines() if line.split()[:1] == ["good"]]
    assert good[3] == "ok"


def test_a_table_of_too_few_rows_is_a_mistake_of_the_suite(tmp_path, monkeypatch, store_uri, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.csv").write_text(FILES["few"])
    (tmp_path / "mine.toml").write_text(
        'datasets = [{ name = "csv", path = "few.csv", target = "y", task = "regression" }]\n'
        'feature_maps = ["identity"]\nlearners = ["bayesian-linear"]\n'
    )
    code, _, err = command("suite", "mine.toml", "--store", store_uri, capfd=capfd)
    assert code == 2
    assert "5 folds need at least as many rows, got 3" in err
    assert "Traceback" not in err


def test_wrong_parameters_of_datasets_are_mistakes_of_the_suite(
    tmp_path, monkeypatch, store_uri, capfd
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(FILES["good"])
    (tmp_path / "mine.toml").write_text(
        """
feature_maps = ["identity"]
learners = ["bayesian-linear"]
datasets = [
    { name = "csv", label = "no-column", path = "good.csv", target = "z" },
    { name = "csv", label = "wrong-task", path = "good.csv", target = "y", task = "regresion" },
    { name = "friedman1", label = "no-rows", n_samples = -5 },
    { name = "openml", label = "no-number", task_id = "x" },
]
"""
    )
    code, out, err = command("suite", "mine.toml", "--store", store_uri, "--quiet", capfd=capfd)
    assert code == 2
    for label, words in {
        "no-column": "there is no column 'z'",
        "wrong-task": "task must be one of 'classification', 'regression', got 'regresion'",
        "no-rows": "n_samples must be an integer",
        "no-number": "task_id must be an integer >= 1, got 'x'",
    }.items():
        (message,) = [line for line in err.splitlines() if words in line]
        assert message.startswith(f"kbench: {label}: ")
    assert "Traceback" not in out + err
