"""The analyses of the study give the known answers of results that are made for it."""

import importlib.util
import json
import math

import numpy as np
import pytest

from tests.benchmarks.study import __main__ as command
from tests.benchmarks.study import (
    curves,
    families,
    gram,
    predictors,
    questions,
    rule,
    sentences,
    table,
)
from tests.support.paths import ROOT

WIDTHS = (32, 64, 128, 256, 512)
MAPS = ("rff", "nystroem", "orthogonal-rff", "qmc-rff", "sorf", "rff-learned")


def row(dataset, name, loss, width=None, learner="ridge", splits=range(10), **more):
    """Return a line of `kbench results --format json` with a loss by split, or one for all."""
    label = f"{name}(n_components={width}, bandwidth_factor=tune[1, 0.5])" if width else name
    values = {str(i): 1 - (loss[i] if np.ndim(loss) else loss) for i in splits}
    return {
        "dataset": dataset,
        "dataset_family": dataset,
        "feature_map": label,
        "learner": learner,
        "task": "classification",
        "status": "ok",
        "n_splits": 15,
        "values_by_split": {"accuracy": values},
        "split_hash": {i: f"h{i}" for i in values},
        "fit_time_cpu_s": 0.001 * (width or 10),
        "predict_time_cpu_s": 0.0001 * (width or 10),
        "search_time_cpu_s": 0.01 * (width or 10),
        "n_stored_floats": 10.0 * (width or 10),
        "n_components": float(width or 5),
        "n_test": 100.0,
        "n_train": 400.0,
        "protocol": {"cv": "stratified", "n_folds": "5"},
        **more,
    }


def made(n_datasets=12, seed=0):
    """Return rows where nystroem < sorf < qmc-rff < orthogonal-rff < rff.

    Learned maps gain 0.02. The gain over the linear model is 0.2 at the exact kernel; a map at
    the widest reaches it up to a tenth. Boosting is 0.05 worse than the exact kernel.
    """
    rng = np.random.default_rng(seed)
    gaps = {"nystroem": 0.5, "sorf": 1.0, "qmc-rff": 1.2, "orthogonal-rff": 1.5, "rff": 2.0}
    rows = []
    for k in range(n_datasets):
        name, base = f"set{k}", 0.1 + 0.1 * rng.random()
        noise = 0.002 * rng.standard_normal((15, 20))

        def add(loss, *given, noise=noise, name=name, **more):
            column = noise[:, len(rows) % 20]
            rows.append(row(name, given[0], loss + column, *given[1:], **more))

        for width in WIDTHS:
            for map_, gap in gaps.items():
                error = gap / math.sqrt(width) * 0.3
                add(base + 0.3 * error, map_, width, gram_error_same_bandwidth=error)
            add(base + 0.3 * 2.0 / math.sqrt(width) * 0.3 - 0.02, "rff-learned", width)
        add(base + 0.2, "identity", family="inputs")
        add(base, "identity", learner="kernel-svm", family="kernel")
        add(base + 0.05, "identity", learner="gradient-boosting", family="trees")
    return rows


def by_rows(rng, chances, n_rows=100, splits=range(10)):
    """Return error rates by split, shape (n_splits, n_options): each row is right or wrong.

    All repeats have the same rows in other folds, so that a lucky option is lucky in all of them.
    """
    wrong = rng.random((n_rows, len(chances))) < chances
    losses = []
    for split in splits:
        repeat, fold = divmod(split, 5)
        order = np.random.default_rng(repeat).permutation(n_rows)
        losses.append(wrong[order[fold::5]].mean(axis=0))
    return np.array(losses)


def lists_of(rows, *held_out):
    names = {each["dataset"] for each in rows}
    return table.Lists(frozenset(names - {*held_out}), frozenset(held_out))


def study_of(rows):
    return table.Study([table.read_row(each) for each in rows], "classification")


@pytest.fixture(scope="module")
def known():
    return study_of(made())


@pytest.fixture(scope="module")
def answers(known):
    return questions.answer(known)


@pytest.mark.parametrize(
    ("label", "name", "width"),
    [
        ("rff(n_components=32, bandwidth_factor=tune[1, 0.5])", "rff", 32),
        ("rff-learned(bandwidth_factor=tune[1, 2], n_components=4096)", "rff-learned", 4096),
        ("tensor-sketch(degree=3, n_components=64)", "tensor-sketch(degree=3)", 64),
        ("nystroem, 300", "nystroem", 300),
        ("rff-512", "rff", 512),
        ("polynomial-2", "polynomial-2", None),
        ("ridge (ovr)", "ridge (ovr)", None),
        ("ridge(alpha=tune[1e-06, 0.001, 1]) (ovr)", "ridge (ovr)", None),
        ("kernel-svm(kernel=gaussian(bandwidth_factor=tune[1, 2]), C=tune[1])", "kernel-svm", None),
    ],
)
def test_labels_are_taken_apart(label, name, width):
    assert table.split_label(label) == (name, width)


def test_means_are_over_the_splits_that_all_cells_have():
    rows = [
        row("a", "rff", [0.1] * 5 + [0.9] * 5, 32),
        row("a", "nystroem", 0.2, 32, splits=range(5), status="unfinished"),
        row("a", "sorf", 0.3, 32, splits=range(2), status="timeout"),
    ]
    study = study_of(rows)
    assert study.splits["a"] == [0, 1, 2, 3, 4]
    assert study.losses[0].tolist() == pytest.approx([0.1, 0.2, math.nan], nan_ok=True)
    assert study.missing() == [{"dataset": "a", "option": "sorf-32 + ridge", "status": "timeout"}]
    best, worst = study.bounded()
    assert (best[0, 2], worst[0, 2]) == pytest.approx((0.1, 0.2))


def test_cells_that_never_ran_are_missing_and_widen_the_interval():
    rows = made(8)
    gone = [r for r in rows if not (r["dataset"] == "set0" and r["feature_map"].startswith("sorf"))]
    study = study_of(gone)
    assert [each["status"] for each in study.missing()] == ["no result"] * len(WIDTHS)

    def width_of(study):
        line = next(x for x in questions.curves(study) if x["map"] == "sorf" and x["width"] == 32)
        return line["n_missing"], line["high"] - line["low"]

    (none, narrow), (one, wide) = width_of(study_of(rows)), width_of(study)
    assert (none, one) == (0, 1)
    assert wide > narrow


def test_other_test_rows_are_not_compared():
    other = row("a", "rff", 0.0, 64, split_hash={str(i): "x" for i in range(10)})
    study = study_of([row("a", "rff", 0.1, 32), row("a", "nystroem", 0.1, 32), other])
    assert np.isnan(study.losses[0, 2])
    assert study.missing()[0]["status"] == "other test rows"


def test_families_are_averaged():
    rows = [row(n, "rff", v, 32, dataset_family=f) for n, v, f in [
        ("a", 0.1, "x"), ("b", 0.3, "x"), ("c", 0.4, "y")
    ]]  # fmt: skip
    line = questions.curves(study_of(rows))[0]
    assert line["loss"] == pytest.approx(0.3)
    assert line["n_families"] == 2


def test_the_best_map_of_each_width_is_found(answers):
    assert [line["width"] for line in answers["widths"]] == list(WIDTHS)
    # learned directions gain 0.02, which is more than the gap from 64 features on
    assert [line["best"] for line in answers["widths"]] == [
        "nystroem" if 0.3 * 0.3 * 1.5 / math.sqrt(w) > 0.02 else "rff-learned" for w in WIDTHS
    ]
    assert all(sum(line["maps"].values()) == pytest.approx(1) for line in answers["widths"])


def test_the_front_has_no_dominated_option(answers):
    front = answers["fronts"]["features"]
    at = {place["option"]: place for place in front["places"]}
    assert at["rff-64 + ridge"]["decided"] == "off"
    assert at["rff-32 + ridge"]["probability"] == 0
    assert at["nystroem-32 + ridge"]["probability"] == 1
    assert at["nystroem-32 + ridge"]["decided"] == "on"
    assert front["n_families"] == 12


def test_the_gram_error_predicts_the_loss_where_it_decides_it(answers):
    found = answers["gram"][PLANNED]
    assert found["correlation"] > 0.9
    assert found["p"] < 0.01
    assert found["widths"] == list(WIDTHS)


def test_a_relation_of_the_wrong_sign_predicts_nothing():
    rows = made()
    for each in rows:
        if PLANNED in each:
            each[PLANNED] *= -1
    found = questions.gram_errors(study_of(rows))[PLANNED]
    assert found["correlation"] < -0.9
    assert found["p"] > 0.95


def test_errors_of_tuned_maps_are_not_tested():
    rows = made()
    for each in rows:
        if PLANNED in each:
            each["gram_error_frobenius"] = each["gram_error_frobenius_sd"] = each[PLANNED]
    study = study_of(rows)
    answers = questions.answer(study)
    assert sorted(answers["gram"]) == ["gram_error_frobenius", PLANNED]
    assert answers["gram"]["gram_error_frobenius"]["correlation"] > 0.9
    assert "p" not in answers["gram"]["gram_error_frobenius"]
    lines = [x for x in questions.adjust([answers]) if x["question"] == "gram"]
    assert [line["hypothesis"] for line in lines] == [f"{PLANNED} predicts the loss"]


def test_landmarks_count_at_the_widths_that_they_have():
    """The suite has six Gaussian maps up to 1,024 features, and four beyond."""
    kinds = {"rff": 8, "orthogonal-rff": 8, "qmc-rff": 8, "fastfood": 8}
    kinds |= {"nystroem": 6, "nystroem-rpcholesky": 6}
    rng = np.random.default_rng(0)
    rows = []
    for k in range(4):
        for j, (name, n) in enumerate(kinds.items()):
            # the random maps alone have no relation: that of Nystroem is what decides
            error = 1.0 - 0.3 * (n == 6) + 0.01 * rng.random()
            for width in [32 * 2**each for each in range(n)]:
                loss = 0.3 - 0.1 * (n == 6) + 0.01 * rng.random() + 0 * j
                rows.append(row(f"s{k}", name, loss, width, **{PLANNED: error / width}))
    found = questions.gram_errors(study_of(rows))[PLANNED]
    assert found["widths"] == [32, 64, 128, 256, 512, 1024]
    assert found["correlation"] > 0.4
    assert found["p"] < 0.01


def test_a_map_with_other_widths_keeps_its_place_in_permutations():
    there = np.array([[True] * 6, [True] * 5 + [False]])
    orders = gram.orders_of_maps(there, 50, np.random.default_rng(0))
    assert (orders[:, 5] == 5).all()
    assert (np.sort(orders[:, :5], axis=1) == np.arange(5)).all()
    assert len({tuple(each) for each in orders.tolist()}) > 20


def test_maps_of_other_kernels_are_not_compared_by_their_error():
    rows = [
        row("a", name, 0.1 * j, 32, gram_error_frobenius=0.1 * j)
        for j, name in enumerate(("rff", "sorf", "nystroem", "fastfood", "arc-cosine"))
    ]
    found = questions.gram_errors(study_of(rows))["gram_error_frobenius"]
    assert found == {"n_families": 0, "reason": "no width has 5 maps with this metric"}


PLANNED = "gram_error_same_bandwidth"


def test_a_gram_error_without_relation_predicts_nothing():
    rng = np.random.default_rng(3)
    rows = made()
    for each in rows:
        if PLANNED in each:
            each[PLANNED] = float(rng.random())
    found = questions.gram_errors(study_of(rows))[PLANNED]
    assert abs(found["correlation"]) < 0.5
    assert found["p"] > 0.05


def test_permutations_keep_the_level():
    """A p value below 0.1 is as rare as it should be, though widths of a dataset depend."""
    few = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = []
        for k in range(4):
            level, error = rng.random(5).tolist(), rng.random(5).tolist()
            rows += [
                row(
                    f"s{k}",
                    table.GAUSSIAN[j],
                    float(level[j]) / w,
                    w,
                    span_error=float(error[j]),
                )
                for j in range(5)
                for w in (32, 64)
            ]
        found = questions.gram_errors(study_of(rows), 199, seed)["span_error"]
        few += found["p"] <= 0.1
    assert 1 <= few <= 13


def test_shares_of_the_gain_are_those_that_were_made(answers):
    gain = answers["kernel_gain"]
    assert len(gain["datasets"]) == 12
    share = {(x["map"], x["width"]): x["share"] for x in gain["shares"]}
    for width in WIDTHS:
        expected = 1 - 0.3 * 0.3 * 2.0 / math.sqrt(width) / 0.2
        assert share["rff", width] == pytest.approx(expected, abs=0.02)


def test_a_gain_within_noise_has_no_share():
    """Rows are right or wrong by chance: an eighth of datasets seem to gain, on some fold."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(60):
        losses = by_rows(rng, [0.2] * 3, splits=range(15)).T
        rows += [
            row(f"s{k}", "rff", losses[0], 32, splits=range(15)),
            row(f"s{k}", "identity", losses[1], splits=range(15)),
            row(f"s{k}", "identity", losses[2], learner="kernel-svm", splits=range(15)),
        ]
    assert len(questions.kernel_gain(study_of(rows))["datasets"]) <= 12


def test_a_share_is_not_selected_by_the_rows_it_is_scored_on():
    """A map is equal to the kernel. By luck, the kernel gains nothing on some scored folds."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(60):
        losses = by_rows(rng, [0.16, 0.16, 0.23], 500).T
        rows += [
            row(f"s{k}", "rff", losses[0], 32),
            row(f"s{k}", "identity", losses[1], learner="kernel-svm"),
            row(f"s{k}", "identity", losses[2]),
        ]
    gain = questions.kernel_gain(study_of(rows))
    assert 20 < len(gain["datasets"]) < 60
    (share,) = gain["shares"]
    assert share["n_without"] > 0
    ends = [share["low"], share["high"]]
    low, high = (x if x is not None else s * math.inf for x, s in zip(ends, (-1, 1), strict=True))
    assert low <= 1 <= high


def test_a_family_without_a_share_counts_as_the_worst_for_the_lower_end():
    rows = made(8)
    gone = [
        r
        for r in rows
        if not (r["dataset"] in ("set0", "set1") and "rff(n_components=512" in r["feature_map"])
    ]

    def share(rows):
        shares = questions.kernel_gain(study_of(rows))["shares"]
        return next(x for x in shares if (x["map"], x["width"]) == ("rff", 512))

    assert share(rows)["low"] is not None
    assert share(gone)["low"] is None
    assert (share(gone)["n_families"], share(gone)["n_without"]) == (8, 2)


def test_learned_directions_count_on_what_is_held_out(known):
    held_out = [f"set{k}" for k in range(2, 12)]
    found = questions.learned_directions(known, held_out)
    assert [line["width"] for line in found] == list(WIDTHS)
    for line in found:
        assert (line["map"], line["base"], line["n_families"]) == ("rff-learned", "rff", 10)
        assert line["mean"] == pytest.approx(-0.02, abs=0.003)
        assert line["low"] <= line["mean"] <= line["high"] < 0
        assert line["p"] < 0.01
        assert line["datasets"] == held_out


def test_two_families_have_no_test_of_learned_directions(known):
    line = questions.learned_directions(known, ["set0", "set1"])[0]
    assert (line["n_families"], "p" in line) == (2, False)
    assert questions.learned_directions(known)[0]["mean"] is None


def test_a_missing_cell_costs_no_family():
    rows = made()
    gone = [r for r in rows if not (r["dataset"] == "set0" and "nystroem" in r["feature_map"])]
    study = study_of(gone)
    line = questions.widths(study)[0]
    assert (line["n_families"], line["n_filled"]) == (12, 1)
    assert line["maps"]["nystroem"] < line["maps_best"]["nystroem"]
    front = questions.pareto(study, "features")
    assert front["n_families"] == 12
    place = next(x for x in front["places"] if x["option"] == "nystroem-32 + ridge")
    assert place["probability"] < 0.5 < 0.95 < place["probability_high"]
    assert place["decided"] == ""


def test_missing_cells_are_bounded_in_tests(known):
    rows = made()
    gone = [r for r in rows if not (r["dataset"] == "set0" and "learned" in r["feature_map"])]
    names = known.datasets
    all_there = questions.learned_directions(known, names)[0]
    found = questions.learned_directions(study_of(gone), names)[0]
    assert found["n_missing"] == 1
    assert found["p"] > all_there["p"]
    assert found["low"] < all_there["low"]
    assert families.bounded_p(np.full(9, -1.0), np.full(9, 1.0)) == 1.0


def test_boosting_loses_where_it_was_made_to_lose(answers):
    found = answers["boosting"]
    assert found["mean"] == pytest.approx(0.05, abs=0.003)
    assert found["low"] <= found["mean"] <= found["high"]
    assert len(found["better_kernel"]) == 12
    assert found["better_boosting"] == []
    assert answers["boosting_map"]["difference"] > 0.02


def test_a_test_that_could_not_be_made_counts_in_its_group():
    rows = made()
    gone = [r for r in rows if not (r["dataset"] == "set0" and r["learner"] == "gradient-boosting")]
    found, all_there = questions.boosting(study_of(gone)), questions.boosting(study_of(rows))
    assert found["unknown"] == ["set0"]
    last = {line["dataset"]: line["p_holm"] for line in all_there["datasets"]}
    for line in found["datasets"]:
        assert line["p_holm"] >= last[line["dataset"]] * 0.999


def test_the_best_map_is_chosen_on_other_rows_than_it_is_scored_on():
    """Of equal options the best one is best by luck, and all repeats have the same lucky rows."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(60):
        losses = by_rows(rng, [0.3] * 31).T
        rows += [row(f"s{k}", f"m{j}", losses[j], 32) for j in range(30)]
        rows.append(row(f"s{k}", "identity", losses[30], learner="gradient-boosting"))
    found = questions.boosting_map(study_of(rows))
    # chosen on other repeats, the map would seem to be better by luck
    assert found["low"] < 0 < found["high"]
    assert abs(found["difference"]) < 0.02


@pytest.mark.parametrize(
    ("splits", "turns"),
    [
        ([0], []),
        ([0, 1], [([1], [0]), ([0], [1])]),
        ([0, 1, 5], [([1], [0]), ([0], [1])]),
        ([3, 5], []),
        ([0, 1, 2, 3, 4], [([j for j in range(5) if j != i], [i]) for i in range(5)]),
    ],
)
def test_a_fold_is_chosen_for_on_the_other_folds_of_its_repeat(splits, turns):
    assert study_of([row("a", "rff", 0.1, 32, splits=splits)]).turns("a") == turns


def test_splits_whose_test_rows_overlap_have_no_turn():
    study = study_of([row("a", "rff", 0.1, 32, protocol={"cv": "holdout", "n_folds": "5"})])
    assert study.turns("a") == []


def test_p_values_of_a_question_are_adjusted_together(answers):
    found = questions.adjust([answers, {**answers, "task": "regression"}])
    width = [line for line in found if line["question"] == "width"]
    assert len(width) == 2 * len(MAPS)
    least = min(line["p"] for line in width)
    assert min(line["p_holm"] for line in width) == pytest.approx(len(MAPS) * least)


def test_width_helps_where_it_was_made_to(answers):
    found = {line["map"]: line for line in answers["wider"]}
    assert found["rff"]["wins"] == 12
    assert found["rff"]["p"] == pytest.approx(2.0**-12)
    assert found["rff"]["gain"] == pytest.approx(0.18 * (64**-0.5 - 512**-0.5), abs=0.003)


def test_a_learned_map_is_compared_with_its_control():
    rows = []
    for k in range(8):
        rows += [
            row(f"s{k}", "rff", 0.1, 64),
            row(f"s{k}", "rff-one-bandwidth", 0.3, 64),
            row(f"s{k}", "rff-learned", 0.2, 64),
        ]
    study = study_of(rows)
    (found,) = questions.learned_directions(study, study.datasets)
    assert (found["base"], round(found["mean"], 6)) == ("rff-one-bandwidth", -0.1)
    assert study.maps() == ["rff", "rff-learned"]
    names = {place["option"] for place in questions.pareto(study, "fit_cpu_s")["places"]}
    assert names == {"rff-64 + ridge", "rff-learned-64 + ridge"}


def test_sizes_of_partitions_are_one_map():
    assert table.Option("simplicial-mesh(n_roots=4)", None, "ridge").group == "simplicial-mesh"


def test_a_reference_of_a_few_datasets_is_not_missing_elsewhere():
    rows = [row(f"s{k}", "rff", 0.1, 32) for k in range(5)]
    rows.append(row("s0", "identity", 0.1, learner="kernel-svm", family="kernel"))
    assert study_of(rows).missing() == []


def test_samples_of_the_training_rows_do_not_widen_the_test():
    folds = {"protocol": {"cv": "stratified", "n_folds": "5"}, "n_test": 4000.0, "n_train": 1000.0}
    assert table.read_row(row("a", "rff", 0.1, 32, **folds)).test_to_train == 0.25
    holdout = folds | {"protocol": {"cv": "holdout", "n_folds": "5"}}
    assert table.read_row(row("a", "rff", 0.1, 32, **holdout)).test_to_train == 4.0


def test_mostly_equal_values_have_no_huge_interval():
    """Resamples of equal values have a variance that is a rounding error."""
    low, high = families.interval(np.array([0.0] * 10 + [0.3, 1.2]))
    assert -1 < low < 0.125 < high < 2


def test_a_dataset_that_could_not_be_had_has_the_task_of_its_file(tmp_path):
    """Its rows say "classification", because its targets were never read."""
    values = {"values_by_split": {"rmse_standardized": {"0": 0.5}}}
    there = [row(n, "rff", 0.0, 32, task="regression") | values for n in "abcd"]
    gone = row("gone", "rff", 0.0, 32, splits=(), status="unavailable")
    path, other = tmp_path / "a.json", tmp_path / "b.json"
    path.write_text(json.dumps([*there, gone]))
    other.write_text(json.dumps([row("e", "rff", 0.1, 32)]))
    cells = table.read_files([path, other])
    assert {cell.dataset for cell in cells if cell.task == "classification"} == {"e"}
    study = table.Study(cells, "regression")
    answers = questions.answer(study)
    assert (answers["n_datasets"], answers["without_data"]) == (4, ["gone"])
    # with two tasks in a file its task is unknown
    path.write_text(json.dumps([*there, row("e", "rff", 0.1, 32), gone]))
    assert "gone" not in {cell.dataset for cell in table.read_files([path])}


# the rule


def two_kinds(n=24, seed=0):
    """Return rows and predictors: with many inputs nystroem is best, with few sorf is."""
    rng = np.random.default_rng(seed)
    rows, known = [], {}
    for k in range(n):
        many = k % 2
        known[f"s{k}"] = dict.fromkeys(rule.PREDICTORS, 0.0) | {
            "log_inputs": 4.0 * many + 0.2 * rng.standard_normal(),
            "cpu_s": 0.001,
        }
        for name in ("nystroem", "sorf", "rff"):
            for width in WIDTHS:
                good = name == ("nystroem" if many else "sorf")
                loss = 0.1 + 0.1 * (not good) + 1 / width
                rows.append(row(f"s{k}", name, loss + 0.003 * rng.standard_normal(10), width))
    return rows, known


def test_large_errors_are_counted_by_map():
    def line(dataset, name, width, errors):
        values = {str(i): error for i, error in enumerate(errors)}
        more = {"task": "regression", "values_by_split": {"rmse_standardized": values}}
        return table.read_row(row(dataset, name, 0.0, width, splits=range(3)) | more)

    cells = [
        line("a", "arc-cosine", 32, [0.5, 3.5, 0.4]),
        line("a", "arc-cosine", 64, [0.5, 70.0, 3.0]),
        line("a", "nystroem", 32, [0.4, 0.6, 0.5]),
        line("b", "nystroem", 32, [0.4, 0.3, 0.5]),
    ]
    answers = questions.answer(table.Study(cells, "regression"))
    assert answers["large_errors"] == [
        {
            "method": "arc-cosine",
            "n_fits": 6,
            "n_large": 2,
            "largest": 70.0,
            "datasets": ["a"],
        },
        {"method": "nystroem", "n_fits": 6, "n_large": 0, "largest": 0.6, "datasets": []},
    ]


def test_the_rule_finds_what_decides_and_the_baseline_does_not():
    rows, known = two_kinds()
    found = rule.answer(study_of(rows), known)["cross_validated"]["methods"]
    assert found["rule, first"]["regret"] < 1
    assert found["best single, first"]["regret"] > 3
    assert found["random, first"]["regret"] > 5
    assert found["rule, tried"]["share"] <= 0.1


def test_the_rule_without_information_is_the_best_single_option():
    rows, known = two_kinds()
    nothing = {name: dict.fromkeys(rule.PREDICTORS, 1.0) for name in known}
    found = rule.answer(study_of(rows), nothing)["cross_validated"]["methods"]
    assert found["rule, first"]["regret"] == pytest.approx(found["best single, first"]["regret"])


def test_the_best_choice_has_no_luck():
    """All options are equal: a best choice scored on its own rows would be better by luck."""
    rng = np.random.default_rng(1)
    options = [(name, width) for name in ("nystroem", "sorf", "rff") for width in WIDTHS]
    rows = []
    for k in range(40):
        losses = by_rows(rng, [0.3] * len(options)).T
        rows += [row(f"s{k}", n, losses[j], w) for j, (n, w) in enumerate(options)]
    problem = rule.Problem(study_of(rows), {})
    every = range(len(problem.options))
    regrets = [rule.score(problem, i, [j]) for i in range(40) for j in every]
    assert abs(np.mean(regrets)) < 2


def test_an_error_of_zero_has_no_infinite_regret():
    rows = [
        row(f"s{k}", name, 0.0, width, task="regression")
        | {"values_by_split": {"rmse_standardized": {str(i): loss for i in range(10)}}}
        for k in range(5)
        for name, loss in (("rff", 0.0), ("sorf", 0.001))
        for width in WIDTHS
    ]
    study = table.Study([table.read_row(each) for each in rows], "regression")
    found = rule.answer(study, {})["cross_validated"]["methods"]
    assert found["random, first"]["regret"] == pytest.approx(2.5)


def test_held_out_families_are_in_no_fit():
    rows, known = two_kinds()
    held_out = ["s0", "s1", "s2", "s3"]
    before = rule.answer(study_of(rows), known, held_out, test=True)
    assert before["tested"]["methods"]["rule, first"]["n_families"] == 4
    assert before["tested"]["methods"]["rule, first"]["regret"] < 1
    for each in rows:
        if each["dataset"] in held_out:
            values = each["values_by_split"]["accuracy"]
            each["values_by_split"]["accuracy"] = {i: 0.5 * v for i, v in values.items()}
    after = rule.answer(study_of(rows), known, held_out)
    assert after["slopes"] == before["slopes"]
    assert after["cross_validated"] == before["cross_validated"]
    assert "tested" not in after


def test_a_family_is_held_out_whole():
    rows, known = two_kinds(6)
    for each in rows:
        each["dataset_family"] = "one" if each["dataset"] in ("s0", "s1") else each["dataset"]
    with pytest.raises(table.StudyError, match="held out only in part: families one"):
        rule.test_once(rule.Problem(study_of(rows), known), ["s0"])


def test_the_budget_is_kept():
    costs = np.array([1.0, 2.0, 0.5])
    assert rule.shortlist([1, 0, 2], costs, 2.5) == [1, 2]
    assert rule.shortlist([1, 0, 2], costs, 0.1) == []


# predictors


def test_predictors_are_those_of_known_data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    curved = predictors.measure(X, (X[:, 0] ** 2 + 0.01 * rng.standard_normal(300)))
    straight = predictors.measure(X, X[:, 0] + 0.01 * rng.standard_normal(300))
    assert curved["log_rows"] == pytest.approx(math.log(300))
    assert curved["log_inputs"] == pytest.approx(math.log(4))
    # the distance of two normal vectors of 4 numbers
    assert math.exp(curved["log_median_distance"]) == pytest.approx(1.3, abs=0.1)
    assert curved["landmark_gain"] > 0.4 > 0.02 > abs(straight["landmark_gain"])
    line = predictors.measure(X[:, :1] @ np.ones((1, 4)), X[:, 0])
    assert line["log_effective_rank"] < curved["log_effective_rank"]


def test_constant_inputs_have_predictors():
    found = predictors.measure(np.ones((30, 2)), np.arange(30.0))
    assert all(map(math.isfinite, found.values()))


def test_the_span_error_counts_leading_directions_alike():
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 60)))[0]
    spectrum = 2.0 ** -np.arange(60)
    wrong = spectrum.copy()
    wrong[3] *= 1.5  # a leading direction
    wrong[40] *= 100.0  # not one of the 20

    def product(values):
        return vectors * np.sqrt(values)

    K = product(spectrum) @ product(spectrum).T
    span, gram = predictors.gram_distances(K, product(wrong))
    assert span == pytest.approx(0.5 / math.sqrt(20), rel=1e-6)
    assert gram == pytest.approx(0.5 * 2.0**-3 / np.linalg.norm(spectrum), rel=1e-6)


@pytest.mark.slow
def test_span_errors_fall_with_the_width():
    X = np.random.default_rng(0).standard_normal((150, 3))
    found = predictors.span_errors(X, n_seeds=1)
    assert found.keys() >= {"rff", "nystroem", "sorf"}
    for errors in found.values():
        assert errors["1024"]["span_error"] < errors["32"]["span_error"]


def test_span_errors_are_metrics_of_their_cells():
    cell = table.read_row(row("a", "rff", 0.1, 32))
    known = {"a": {"span": {"rff": {"32": {"span_error": 0.25}}}}}
    assert command.add_span_errors([cell], known)[0].metrics["span_error"] == 0.25


def test_the_protocol_of_a_dataset_is_that_of_its_suite():
    text = (
        'datasets = ["iris", {name = "openml", data_id = 1, label = "b"}]\n'
        '[protocol]\nscaling = "standard"\nn_folds = 4\n[dataset_protocols.b]\nn_folds = 3\n'
    )
    found = predictors.read_suite(text)
    assert list(found) == ["iris", "b"]
    assert predictors.protocol_of(found["iris"][1]).scaling == ("standard",)
    assert predictors.protocol_of(found["b"][1]).n_folds == 3


@pytest.mark.slow
def test_the_probe_measures_all_training_rows():
    found = predictors.probe("iris", {"scaling": "standard", "n_folds": 5})
    assert found["n_rows"] == 120
    assert found["log_inputs"] == pytest.approx(math.log(4))


# sentences and the command


HELD_OUT = [f"set{k}" for k in range(4, 12)]


@pytest.fixture(scope="module")
def results():
    rows = made()
    cells = [table.read_row(each) for each in rows]
    return command.plain(command.analyse(cells, lists_of(rows, *HELD_OUT)))


def test_sentences_follow_from_the_numbers(results):
    found = sentences.render(results)
    assert "` is correlated with the loss" in found[f"classification.gram.{PLANNED}"]
    boosting = found["classification.boosting"]
    assert (
        "boosting is better than the exact kernel on 0 and worse on 12 of 12 datasets" in boosting
    )
    learned = found["classification.learned.rff-learned.64"]
    assert "the loss of `rff-learned` less that of `rff` is below 0" in learned
    assert "on 8 families on which no rule was fitted" in learned
    # 1 - 0.9 / sqrt(width), whose median is at the level with 81 features
    assert "`rff` gives more than 90 % with 128 features" in found["classification.gain.rff"]
    assert found["classification.curve.rff"].startswith("The loss of `rff` less that of the exact")
    assert found["classification.scope"].startswith("12 datasets of 12 families, 10 splits")


def test_a_family_of_the_lists_is_averaged_first(tmp_path):
    rows = made()
    path = tmp_path / "lists.toml"
    names = sorted({each["dataset"] for each in rows})
    path.write_text(f'seen = {names}\nheld_out = []\nfamilies = {{ pair = ["set0", "set1"] }}\n')
    cells = table.read_lists(path).place(map(table.read_row, rows))
    study = table.Study(cells, "classification")
    assert (len(study.datasets), len(study.families)) == (12, 11)
    assert study.family_of["set0"] == study.family_of["set1"] == "pair"
    both = study.losses[[study.datasets.index(name) for name in ("set0", "set1")]]
    placed = study.by_family(study.losses)[study.families.index("pair")]
    np.testing.assert_allclose(placed, both.mean(axis=0))
    for wrong in ('["set0", "set0"]', '["set0", "nothing"]'):
        path.write_text(f"seen = {names}\nheld_out = []\nfamilies = {{ pair = {wrong} }}\n")
        with pytest.raises(table.StudyError, match="twice, or in no list"):
            table.read_lists(path)


def test_cells_without_times_get_those_of_a_file(tmp_path):
    rows = [each | {"fit_time_cpu_s": 0.5, "n_test": 10} for each in made()]
    cells = [table.read_row(each) for each in rows]
    table.write_costs(cells, tmp_path / "costs.csv")
    times = ("fit_time_cpu_s", "fit_time_s", "search_time_cpu_s", "predict_time_cpu_s")
    bare = [table.read_row({k: v for k, v in each.items() if k not in times}) for each in rows]
    assert not any(np.isfinite(cell.fit_cpu_s) for cell in bare)
    again = table.add_costs(bare, tmp_path / "costs.csv")
    assert [cell.fit_cpu_s for cell in again] == [cell.fit_cpu_s for cell in cells]
    # without times no budget can be spent, and no sentence says so
    lists = lists_of(rows, *HELD_OUT)
    found = sentences.render(command.plain(command.analyse(bare, lists, test=True)))
    assert not any(name.endswith(("rule.tested", "rule.cross_validated")) for name in found)
    assert table.add_costs(cells, tmp_path / "costs.csv") == cells


def test_maps_with_one_loss_are_the_smallest_together(results):
    line = dict(results["tasks"]["classification"]["widths"][0])
    line |= {"tied": ["a", "b"], "best": "a", "maps": {"a": 0.9, "b": 0.9}, "maps_best": {"a": 0.9}}
    numbers = {**results["tasks"]["classification"], "widths": [line]}
    text = sentences.render({**results, "tasks": {"classification": numbers}})
    (sentence,) = (v for k, v in text.items() if k.startswith("classification.width"))
    assert "`a` and `b` have the smallest mean loss of 2 maps" in sentence
    assert sentence.endswith("They are the smallest in 90 % of the draws of the means.")
    losses = np.random.default_rng(0).random((9, 1)) + np.array([[0.2, 0.0, 0.0]])
    shares = curves._least(losses, ["x", "y", "z"], np.array([False, True, True]))
    assert shares == {"x": 0.0, "y": 1.0, "z": 1.0}


@pytest.mark.parametrize(
    "form", ["<!-- study: {} -->\n{}\n\nMore.", "| x | <!-- study: {} -->{}<!-- end --> |"]
)
def test_a_page_is_checked_against_the_numbers(results, form):
    found = sentences.render(results)
    name = "classification.boosting"
    page = form.format(name, found[name])
    assert sentences.check_text(page, found, "page") == []
    other = page.replace("better", "worse", 1)
    assert "does not follow" in sentences.check_text(other, found, "page")[0]
    assert sentences.check_text(sentences.fill(other, found), found, "page") == []
    unknown = page.replace(name, "classification.nothing")
    assert "no sentence classification.nothing" in sentences.check_text(unknown, found, "p")[0]


def test_a_mark_without_a_sentence_is_a_problem(results):
    assert sentences.check_text("<!-- study: a.b -->", sentences.render(results), "page")


def test_pages_follow_from_the_stored_numbers(capsys):
    assert command.main(["--check"]) == 0, capsys.readouterr().out


def test_the_command_writes_numbers_sentences_and_a_table(tmp_path, capsys, monkeypatch):
    from tests.benchmarks.study import figures

    monkeypatch.setattr(figures, "draw", lambda results, folder: [])
    (tmp_path / "a.json").write_text(json.dumps(made(6)))
    (tmp_path / "lists.toml").write_text(
        f"seen = {json.dumps([f'set{k}' for k in range(6)])}\nheld_out = []\n"
    )
    arguments = [str(tmp_path / "a.json"), "-o", str(tmp_path / "out")]
    assert command.main(arguments) == 2
    assert "neither seen nor held out: set0, set1" in capsys.readouterr().err
    arguments += ["--lists", str(tmp_path / "lists.toml")]
    assert command.main(arguments) == 0
    stored = json.loads((tmp_path / "out" / "study.json").read_text())
    made_sentences = json.loads((tmp_path / "out" / "sentences.json").read_text())
    assert made_sentences == sentences.render(stored)
    lines = (tmp_path / "out" / "table.csv").read_text().splitlines()
    assert len(lines) == 1 + 10 * len(made(6))
    page = tmp_path / "page.md"
    page.write_text("<!-- study: classification.scope -->\nold\n")
    given = ["--numbers", str(tmp_path / "out" / "study.json"), "--pages", str(page)]
    assert command.main(["--check", *given]) == 1
    assert command.main(["--fill", *given]) == 0
    assert made_sentences["classification.scope"] in page.read_text()


@pytest.mark.parametrize(
    ("regret", "share", "high", "verdict"),
    [
        (0.2, 0.1, 0.4, "reached"),
        (0.2, 0.1, 0.6, "reached by the mean, not by all of the interval"),
        (0.2, 0.1, None, "reached by the mean, not by all of the interval"),
        (0.2, 0.2, 0.4, "missed"),
        (0.6, 0.1, 0.8, "missed"),
    ],
)
def test_an_aim_is_reached_if_the_interval_says_so(regret, share, high, verdict):
    line = {"regret": regret, "share": share, "high": high}
    assert sentences._verdict(line, 0.5) == verdict


@pytest.mark.slow
def test_all_figures_are_drawn(results, tmp_path):
    from tests.benchmarks.study.figures import draw

    names = {path.name for path in draw(results, tmp_path)}
    assert names == {
        f"study-classification-{each}.svg"
        for each in ("curves", "datasets", "front", "gain", "boosting", "rule")
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("3", "is not the output of kbench results"),
        ('[{"dataset": "a"}]', "row 1: lacks feature_map, learner, status, n_splits"),
        (json.dumps([row("a", "rff", 0.1, 32, task="clustering")]), "unknown task 'clustering'"),
        (json.dumps([row("a", "rff", 0.1, 32, splits=())]), "no file has a finished split"),
        (json.dumps([row("a", "rff", 0.1, 32)] * 2), "is also in"),
    ],
)
def test_wrong_files_are_one_message(tmp_path, capsys, text, message):
    path = tmp_path / "a.json"
    path.write_text(text)
    assert command.main([str(path), "-o", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "the lists of datasets cannot be read"),
        ("seen = [", "the lists of datasets cannot be read"),
        ('seen = ["a"]', "held_out must be a list of names"),
        ('seen = ["a"]\nheld_out = ["a"]', "in both lists: a"),
        ('seen = ["a"]\nheld_out = ["b"]', "held out only in part: families f"),
        ('seen = ["a"]\nheld_out = ["c"]', "neither seen nor held out: b"),
    ],
)
def test_results_without_their_lists_are_refused(tmp_path, capsys, text, message):
    path, lists = tmp_path / "a.json", tmp_path / "lists.toml"
    path.write_text(json.dumps([row(n, "rff", 0.1, 32, dataset_family="f") for n in "ab"]))
    if text is not None:
        lists.write_text(text)
    given = [str(path), "-o", str(tmp_path / "out"), "--lists", str(lists)]
    assert command.main(given) == 2
    assert message in capsys.readouterr().err


# a first answer


@pytest.mark.parametrize("n_splits", [1, 2])
def test_few_splits_have_a_careful_answer(n_splits):
    rows = made()
    for each in rows:
        values = each["values_by_split"]["accuracy"]
        each["values_by_split"]["accuracy"] = {str(i): values[str(i)] for i in range(n_splits)}
        each["status"] = "unfinished"
    cells = [table.read_row(each) for each in rows]
    results = command.plain(command.analyse(cells, lists_of(rows, *HELD_OUT), {}, test=True))
    json.dumps(results, allow_nan=False)
    answers = results["tasks"]["classification"]
    assert all(line["low"] < line["high"] for line in answers["curves"])
    assert all(front["places"] for front in answers["fronts"].values())
    assert {x["question"] for x in results["hypotheses"]} >= {"width", "gram", "learned"}
    assert "three splits" in answers["kernel_gain"]["reason"]
    found = sentences.render(results)
    assert not any("nan" in text or "None" in text for text in found.values())
    assert not any(name.startswith("classification.gain.") for name in found)
    if n_splits == 1:
        assert "first answer" in found["classification.scope"]
        assert "two splits" in answers["boosting"]["reason"]
        assert "two splits" in answers["boosting_map"]["reason"]
        assert "two splits" in answers["rule"]["reason"]
        assert not any("boosting" in name.split(".")[1] for name in found)
        assert all(line["low"] is None for line in answers["dataset_curves"])
    else:
        assert "first answer" not in found["classification.scope"]
        assert answers["boosting"]["mean"] == pytest.approx(0.05, abs=0.01)
        assert answers["boosting_map"]["n_families"] == 12
        assert "tested" in answers["rule"]


@pytest.fixture
def extension():
    path = ROOT / "docs" / "extensions" / "study_sentences.py"
    spec = importlib.util.spec_from_file_location("study_sentences", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_build_of_the_pages_checks_their_sentences(extension, results, tmp_path):
    assert extension.find_problems(ROOT / "docs") == []
    page = tmp_path / "page.md"
    page.write_text("No sentence is quoted.")
    assert extension.find_problems(tmp_path) == []
    page.write_text("<!-- study: classification.scope -->\nMade up.\n")
    assert "is missing" in extension.find_problems(tmp_path)[0]
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "study.json").write_text(json.dumps(results))
    assert "does not follow" in extension.find_problems(tmp_path)[0]
