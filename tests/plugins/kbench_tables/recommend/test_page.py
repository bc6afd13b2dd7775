"""Which method is recommended, and in which words."""

from types import SimpleNamespace

import pytest

from kbench.features import Lead
from kbench.records import ACCURACY, Metric, Ref
from kbench.results.rows import Row
from kbench_tables.commands.recommend import MAX_LINES, _print, _show_columns
from kbench_tables.profile import Role
from kbench_tables.recommend.advice import Advice, advise, size
from tests.support.report_rows import changed

HASHES = {str(i): f"h{i}" for i in range(5)}


def row(name, accuracies, fit_time_s, learner="ridge", status="ok", **more):
    n = len(accuracies)
    mean = sum(accuracies) / n if n else None
    sd = (sum((a - mean) ** 2 for a in accuracies) / (n - 1)) ** 0.5 if n > 1 else None
    fields = {
        "accuracy": mean,
        "accuracy_sd": sd,
        "fit_time_s": fit_time_s,
        "predict_time_s": 0.001,
        "values_by_split": {"accuracy": dict(zip(HASHES, accuracies, strict=False))},
        "split_hash": HASHES,
        "n_train": 80,
        "n_test": 20,
        "n_stored_floats": 1000.0,
    }
    return changed(Row("mine", name, learner, status, n, n_splits=5), **fields | more)


BEST = [0.90, 0.92, 0.94, 0.91, 0.93]
NEAR = [0.91, 0.90, 0.93, 0.92, 0.92]
FAR = [0.70, 0.72, 0.74, 0.72, 0.72]


def test_nothing_finished_nothing_recommended():
    assert advise([row("a", BEST[:2], 1.0, status="skipped")]) is None


def test_the_cheapest_of_those_within_noise_is_taken():
    rows = [row("slow", BEST, 9.0), row("quick", NEAR, 0.1), row("quickest", FAR, 0.01)]
    found = advise(rows)
    assert found.chosen.feature_map == "quick"
    text = " ".join(found.sentences)
    assert text.startswith("Use quick + ridge: 0.916 ± 0.011 accuracy")
    assert "within noise of the most accurate, slow + ridge (0.920)" in text
    assert "8 kB" in text


def test_what_no_test_tells_apart_but_is_clearly_less_accurate_is_not_taken():
    spread = [0.70, 1.0, 0.80, 1.0, 0.84]
    rows = [row("slow", BEST, 9.0), row("wild", spread, 0.1)]
    found = advise(rows)
    assert found.chosen.feature_map == "slow"
    text = " ".join(found.sentences)
    assert "no other method is within noise of it." in text
    assert "wild" not in text


def test_those_within_noise_of_the_quickest_are_named():
    rows = [row("quick", BEST, 0.1), row("slow", NEAR, 9.0), row("bad", FAR, 0.01)]
    text = " ".join(advise(rows).sentences)
    assert "Within noise of it, but not 10 times as fast to fit: slow + ridge (0.916)." in text


def test_a_method_that_is_faster_is_not_called_slow():
    # on fewer rows, of which its fit takes a thousandth of the time
    full = nested("full", [0.92], 80_000.0, fit_time_s=100.0)
    sample = nested("sample", [0.9195], 5000.0, fit_time_s=0.1)
    text = " ".join(advise([full, sample], nested=True).sentences)
    assert "Within noise of it: sample + ridge (0.919)." in text
    assert "as fast" not in text


def test_a_clear_winner_is_called_one():
    found = advise([row("good", BEST, 1.0), row("bad", FAR, 0.1)])
    assert "significantly more accurate than the other method" in " ".join(found.sentences)


def test_equal_differences_are_no_test():
    lower = [value - 0.2 for value in BEST]
    text = " ".join(advise([row("good", BEST, 1.0), row("bad", lower, 0.1)]).sentences)
    assert "measurably" not in text
    same = advise([row("good", BEST, 1.0), row("twin", BEST, 0.1, accuracy=0.91999)])
    assert "both score the same on every split" in " ".join(same.sentences)
    plain = [row("good", BEST, 1.0), row("identity", lower, 0.1, learner="dummy-majority")]
    text = " ".join(advise(plain, ["dummy-majority"]).sentences)
    assert "scores 0.720: 0.200 worse, which noise does not explain." in text


def test_incomplete_methods_are_not_taken():
    rows = [row("good", FAR, 1.0), row("perhaps", [0.99, 0.99], 0.1, status="skipped")]
    found = advise(rows)
    assert found.chosen.feature_map == "good"


def test_the_commonest_class_is_the_yardstick():
    rows = [row("good", BEST, 1.0), row("identity", FAR, 0.1, learner="dummy-majority")]
    assert (
        "The baseline (predicting the most frequent class) scores 0.720."
        in advise(rows, ["dummy-majority"]).sentences
    )
    same = [row("good", NEAR, 1.0), row("identity", BEST, 0.1, learner="dummy-majority")]
    assert "may not predict the target" in " ".join(advise(same, ["dummy-majority"]).sentences)


def test_a_baseline_that_was_not_measured_is_named():
    rows = [row("good", BEST, 1.0), row("identity", [], 0.1, "dummy-majority", status="skipped")]
    text = "The baseline (predicting the most frequent class) was not evaluated in full"
    assert text in " ".join(advise(rows, ["dummy-majority"]).sentences)
    assert "baseline" not in " ".join(advise(rows[:1]).sentences)
    near = [rare("near", 0.51, 0.52), rare("plain", 0.5, 0.5, learner="dummy-majority")]
    text = " ".join(advise_rare(*near, baselines=["dummy-majority"]).sentences)
    assert "scores balanced accuracy 0.500 (one split: no test)." in text


def test_one_split_gives_an_answer_without_tests():
    found = advise([row("only", [0.9], 1.0, n_splits=1)])
    assert found.sentences[0].startswith("Use only + ridge: 0.900 accuracy, fitted in 1 s")


@pytest.mark.parametrize(("floats", "words"), [(100, "0.8 kB"), (3e8, "2400 MB")])
def test_sizes_are_written_for_people(floats, words):
    assert size(floats) == words


RMSE = Metric("rmse", "lower")


def fitted(name, errors, fit_time_s, learner="ridge", **more):
    """Return the row of a regressor."""
    n = len(errors)
    mean = sum(errors) / n
    sd = (sum((e - mean) ** 2 for e in errors) / (n - 1)) ** 0.5
    splits = {"rmse": dict(zip(HASHES, errors, strict=False))}
    metrics = {"accuracy": None, "accuracy_sd": None, "rmse": mean, "rmse_sd": sd}
    made = row(name, [0.5] * n, fit_time_s, learner)
    return changed(made, **metrics | {"values_by_split": splits, "r2": 0.8} | more)


def said(*rows, baselines=("dummy-mean",)):
    return advise(rows, baselines, RMSE, "regression")


LOW = [20_100.0, 21_000.0, 19_900.0, 20_500.0, 20_000.0]
CLOSE = [20_400.0, 20_700.0, 20_300.0, 20_400.0, 20_300.0]
HIGH = [50_000.0, 52_000.0, 49_000.0, 51_000.0, 50_500.0]


def test_the_splits_of_a_score_are_told():
    rows = [nested("one", [0.95], 4000.0), nested("all", [0.9, 0.91, 0.89], 4000.0)]
    assert (
        advise(rows, nested=True)
        .sentences[0]
        .startswith("Use one + ridge: 0.950 accuracy on 1 of 3 splits")
    )


def test_the_smallest_error_is_the_best():
    found = said(fitted("good", LOW, 1.0), fitted("identity", HIGH, 0.1, "dummy-mean"))
    assert found.chosen.feature_map == "good"
    text = " ".join(found.sentences)
    assert text.startswith("Use good + ridge: 20,300 ± 452.8 rmse (mean and sd over 5 splits), ")
    assert "r2 0.800, fitted in 1 s" in text
    assert "It is significantly more accurate than the other method" in text
    assert (
        "(predicting the mean) scores rmse 50,500: the errors of the method are 60 % smaller."
        in text
    )


def test_errors_within_noise_are_a_little_larger():
    found = said(fitted("slow", LOW, 9.0), fitted("quick", CLOSE, 0.1), fitted("far", HIGH, 0.01))
    assert found.chosen.feature_map == "quick"
    text = " ".join(found.sentences)
    assert "It is within noise of the most accurate, slow + ridge (rmse 20,300)" in text
    assert "the difference is 120.0, 95 % interval [-" in text
    # 3 % more is not within noise, whatever a test says
    wide = [15_000.0, 27_000.0, 18_000.0, 25_000.0, 19_550.0]
    found = said(fitted("slow", LOW, 9.0), fitted("wild", wide, 0.1))
    assert found.chosen.feature_map == "slow"


def test_nothing_better_than_the_mean_is_said():
    same = said(fitted("good", CLOSE, 1.0), fitted("identity", LOW, 0.1, "dummy-mean"))
    assert (
        "That is the baseline (predicting the mean): no method was significantly better"
        in " ".join(same.sentences)
    )
    wide = [15_000.0, 27_000.0, 18_000.0, 25_000.0, 19_550.0]
    doubtful = said(fitted("good", LOW, 1.0), fitted("identity", wide, 0.1, "dummy-mean"))
    assert "without a significant difference (p = 0." in " ".join(doubtful.sentences)
    assert doubtful.chosen.feature_map == "good"
    alone = said(fitted("good", LOW, 1.0, r2=-0.1))
    assert "Its r2 is not above 0: always predicting the mean is as good." in alone.sentences
    assert "mean is as good" not in " ".join(said(fitted("good", LOW, 1.0)).sentences)


ORDERED = "Methods are ordered by their common splits; few splits count less."


def nested(name, accuracies, n_train, **more):
    """Return a row whose splits have the test rows of all others, 2,000 each."""
    hashes = {str(i): f"{name}{i}" for i in range(5)}
    fields = {
        "n_train": n_train,
        "n_test": 2000.0,
        "split_hash": hashes,
        "n_splits": len(accuracies),
    }
    fit_time_s = more.pop("fit_time_s", 1.0)
    learner = more.pop("learner", "ridge")
    return row(name, accuracies, fit_time_s, learner, **fields | more)


def test_rows_on_samples_are_compared_on_their_common_splits():
    # on the first split, which is an easy one, the second method is worse
    full = nested("full", [0.95, 0.90, 0.90, 0.90, 0.90], 80_000.0)
    sample = nested("sample", [0.93], 5000.0, fit_time_s=0.1)
    found = advise([full, sample], nested=True)
    assert found.chosen.feature_map == "full"
    near = nested("near", [0.957], 80_000.0, fit_time_s=9.0)
    assert advise([full, near], nested=True).chosen is near  # not ten times as long
    near = nested("near", [0.957], 80_000.0, fit_time_s=11.0)
    text = " ".join(advise([full, near], nested=True).sentences)
    assert "within noise of the most accurate, near + ridge (0.957 on 1 of 5 splits)" in text
    assert "it is 0.007 worse, 1.5 standard errors" in text


def test_a_method_that_was_lucky_on_one_split_is_not_the_best():
    full = nested("full", [0.95, 0.90, 0.90, 0.90, 0.90], 80_000.0)
    lucky = nested("lucky", [0.951], 80_000.0, fit_time_s=0.01)
    found = advise([full, lucky], nested=True)
    assert found.chosen is full
    assert "Within noise of it" in found.sentences[1] and "lucky" in found.sentences[1]
    assert ORDERED in found.sentences
    assert [row.feature_map for row in found.ranked] == ["full", "lucky"]
    text = " ".join(
        advise([full, nested("quick", [0.955], 8e4, fit_time_s=0.01)], nested=True).sentences
    )
    assert "Use quick" in text and "it is 0.005 better, 1.7 standard errors" in text
    # of few test rows, more is luck
    lucky = nested("lucky", [0.96], 80_000.0, n_test=200.0)
    assert advise([full, lucky], nested=True).chosen is full
    assert advise([full, nested("other", [0.96], 80_000.0)], nested=True).chosen is not full


def test_the_better_of_samples():
    full = nested("full", [0.95, 0.90, 0.90, 0.90, 0.90], 80_000.0)
    better = nested("better", [0.99], 5000.0)
    found = advise([full, better], nested=True)
    assert found.chosen.feature_map == "better"
    assert "It was fitted on 5,000 of 80,000 rows" in " ".join(found.sentences)


def test_a_quick_method_is_not_worth_a_standard_error():
    # within 0.01, but with 10,000 test rows the standard error is 0.003
    one = nested("one", [0.90, 0.92, 0.91, 0.90, 0.93], 8000.0, fit_time_s=9.0)
    other = nested("other", [0.895, 0.911, 0.91, 0.89, 0.925], 8000.0, fit_time_s=0.1)
    assert advise([one, other], nested=True).chosen.feature_map == "one"
    near = nested("near", [0.9, 0.919, 0.911, 0.899, 0.9301], 8000.0, fit_time_s=0.1)
    assert advise([one, near], nested=True).chosen.feature_map == "near"


def test_gradient_boosting_is_compared_with():
    rows = [
        nested("rff", [0.96, 0.95, 0.97], 80_000.0, learner="ridge"),
        nested("identity", [0.91, 0.90, 0.92], 20_000.0, learner="trees"),
        nested("identity", [0.85], 1250.0, learner="svm", fit_time_s=3.0),
    ]
    text = " ".join(advise(rows, boosted=["trees"], nested=True).sentences)
    assert "The best gradient boosting, identity + trees, scores 0.910 on 20,000 rows" in text
    assert ORDERED not in text
    rows[1] = nested("identity", [0.91], 80_000.0, learner="trees")
    text = " ".join(advise(rows[:2], boosted=["trees"], nested=True).sentences)
    assert "scores 0.910 on 1 of 3 splits (the recommended method: 0.960), fitted" in text


def test_a_small_error_on_one_split_is_luck_too():
    def errors(name, values):
        by_split = {"rmse": {str(i): value for i, value in enumerate(values)}}
        mean = sum(values) / len(values)
        return nested(name, [0.0] * len(values), 8e4, rmse=mean, values_by_split=by_split)

    full = errors("full", [9.0, 10.0, 10.0, 10.0, 10.0])
    found = advise([full, errors("lucky", [8.9])], metric=RMSE, task="regression", nested=True)
    assert [row.feature_map for row in found.ranked] == ["full", "lucky"]
    better = errors("better", [8.0])
    found = advise([full, better], metric=RMSE, task="regression", nested=True)
    assert [row.feature_map for row in found.ranked] == ["better", "full"]


def test_of_a_rare_class_one_split_says_little():
    balanced = Metric("balanced_accuracy")

    def ranked(name, value, auc, **more):
        fields = {"balanced_accuracy": value, "roc_auc": auc, "n_test": 800.0}
        by_split = {"balanced_accuracy": {"0": value}, "roc_auc": {"0": auc}}
        return nested(name, [0.9], 3200.0, **fields | {"values_by_split": by_split} | more)

    rows = [ranked("lucky", 0.54, 0.60), ranked("sound", 0.50, 0.73)]
    found = advise(rows, metric=balanced, nested=True, shares=(0.97, 0.03))
    assert found.chosen.feature_map == "sound"
    assert "less than one standard error" in " ".join(found.sentences)


def test_of_many_classes_a_rare_one_does_not_hide_what_is_better():
    balanced = Metric("balanced_accuracy")

    def scored(name, value, **more):
        by_split = {"balanced_accuracy": {"0": value}}
        fields = {"balanced_accuracy": value, "n_test": 2667.0, "values_by_split": by_split}
        return nested(name, [0.9], 10_000.0, **fields | more)

    rows = [scored("boosted", 0.96, fit_time_s=9.0), scored("narrow", 0.93, fit_time_s=0.01)]
    shares = (0.01, *[0.99 / 25] * 25)
    assert advise(rows, metric=balanced, nested=True, shares=shares).chosen.feature_map == "boosted"


def rare(name, balanced, auc, n_train=9000, learner="ridge"):
    """A method on one split of 2,000 test rows, 5 % of them of the second class."""
    return changed(
        row(name, [0.9], 1.0, learner, balanced_accuracy=balanced, roc_auc=auc, n_train=n_train),
        n_splits=1,
        n_test=2000,
        values_by_split={
            "balanced_accuracy": {"0": balanced},
            "roc_auc": {"0": auc},
            "n_train": {"0": n_train},
        },
    )


def advise_rare(*rows, baselines=()):
    metric, shares = Metric("balanced_accuracy"), (0.95, 0.05)
    return advise(rows, baselines, metric, nested=True, shares=shares)


def test_a_fit_on_few_rows_does_not_decide_about_a_rare_class():
    rows = [rare("few", 0.73, 0.79, n_train=561), rare("all", 0.70, 0.77)]
    assert advise_rare(*rows).chosen.feature_map == "all"
    assert advise_rare(rows[0]).chosen.feature_map == "few"
    plain = rare("plain", 0.5, 0.5, learner="dummy-majority")
    assert advise_rare(rows[0], plain, baselines=["dummy-majority"]).chosen.feature_map == "few"


def test_ranks_decide_within_a_standard_error_of_the_best_balanced_accuracy():
    rows = [rare("lucky", 0.71, 0.70), rare("ranks", 0.70, 0.78)]
    assert advise_rare(*rows).chosen.feature_map == "ranks"


def test_one_split_tells_a_baseline_apart_but_is_not_called_significant():
    rows = [rare("good", 0.70, 0.77), rare("plain", 0.5, 0.5, learner="dummy-majority")]
    text = " ".join(advise_rare(*rows, baselines=["dummy-majority"]).sentences)
    assert "scores balanced accuracy 0.500: 0.200 worse, which noise does not explain." in text
    assert "significant" not in text


def test_splits_by_time_with_fewer_rows_are_no_sample():
    rows = [nested("all", [0.95, 0.9, 0.93], 3840.0), nested("one", [0.7], 5120.0)]
    assert "It was fitted on" not in " ".join(advise(rows, nested=True).sentences)


def test_two_splits_tell_a_baseline_apart_by_many_test_rows():
    two = {"status": "skipped", "n_test": 12_000, "n_splits_done": 2}
    rows = [
        row("good", [0.48, 0.508], 1.0, **two),
        row("plain", [0.25, 0.25], 0.1, "dummy-majority", **two),
    ]
    rows = [changed(each, status="ok", n_splits=2) for each in rows]
    text = " ".join(advise(rows, ["dummy-majority"]).sentences)
    assert "scores 0.250: 0.244 worse, which noise does not explain." in text
    assert "without a significant difference" not in text


class TestPrinted:
    """The lines that the command prints after the columns."""

    def lines(self, capsys, n_methods, n_sentences=4, chosen=0):
        rows = [row(f"map{i}", BEST, 1.0) for i in range(n_methods)]
        report = SimpleNamespace(
            suite=SimpleNamespace(compared=ACCURACY, name="mine.csv"),
            interrupted=False,
            deliveries=[],
        )
        advice = Advice(rows[chosen], ())
        sentences = ("Use it.", *(f"Reason {i}." for i in range(1, n_sentences)))
        _print("mine", report, rows, advice, Lead(sentences, ("9 rows", "why"), "kbench export"))
        return capsys.readouterr().out.splitlines()

    def test_the_recommendation_is_first_and_there_are_few_lines(self, capsys):
        lines = self.lines(capsys, n_methods=18, chosen=16)
        assert lines[0] == "Use it."
        assert len(lines) <= MAX_LINES
        assert "mine: 9 rows; why" in lines
        assert any("further methods: kbench results mine.csv" in line for line in lines)
        # the recommended one is among the methods that are shown
        assert any(line.startswith("map16 ") for line in lines)

    def test_of_many_columns_those_with_a_note_are_shown(self, capsys):
        roles = [Role(f"x{i}", "numbers", "number", 1, "odd" if i % 2 else "") for i in range(40)]
        preview = SimpleNamespace(roles=tuple(roles), sentence="`,` as the delimiter")
        _show_columns(SimpleNamespace(preview=preview, ref=Ref("csv", {}, "mine")), False)
        lines = capsys.readouterr().out.splitlines()
        assert lines[:2] == ["mine: `,` as the delimiter", "40 columns (numbers: 40)"]
        assert [line.split()[0] for line in lines[3:-1]] == ["x1", "x3", "x5", "x7"]
        assert len(lines) + MAX_LINES <= 25

    def test_all_of_few_methods_are_shown(self, capsys):
        lines = self.lines(capsys, n_methods=3)
        assert sum(line.startswith("map") and "ridge" in line for line in lines) == 3
        assert not any("further" in line for line in lines)
