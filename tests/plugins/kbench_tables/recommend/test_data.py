"""`kbench recommend`: a file of one's own becomes a suite, a table and a recommendation."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kbench
import kbench_tables
from kbench import Block, DatasetError, Learner, Limits, Protocol, Ref, Suite, SuiteError, Tune
from kbench.api.inputs import dataset_of_file
from kbench.planning.cells import cells
from kbench.records import TASK_TYPES, DatasetFacts
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_tables.profile import LEFT_OUT, Role
from kbench_tables.recommend import user_data
from kbench_tables.recommend.table_preview import Preview, add_preview, preview
from kbench_tables.recommend.target import TargetColumn
from kbench_tables.recommend.timed_suite import rounds_for
from kbench_tables.recommend.user_data import (
    drifting_columns,
    fetch_dataset,
    is_skewed,
    prepare_data,
    suite_for,
)
from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes")


@pytest.fixture(scope="module")
def registry():
    return build(list_plugins())


@pytest.fixture
def customers(tmp_path, monkeypatch):
    """A table with numbers, categories and holes."""
    rng = np.random.default_rng(0)
    lines = ["age,city,churn"]
    for i in range(60):
        age = "" if i % 13 == 0 else f"{rng.normal(40 + 20 * (i % 2), 5):.1f}"
        city = "" if i % 17 == 0 else ["Oslo", "Rome"][i % 2]
        lines.append(f"{age},{city},{['no', 'yes'][i % 2]}")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "customers.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def known(n=100, d=5, sparse=False):
    return DatasetFacts("c" * 64, n_samples=n, n_features=d, sparse=sparse)


FILE = Ref("csv", {"path": "mine.csv", "target": "y"}, "mine")


def test_several_parquet_files_are_named_by_their_folder(registry, tmp_path):
    folder = tmp_path / "flights"
    folder.mkdir()
    (folder / "1.parquet").write_text("")
    ref = dataset_of_file(str(folder / "*.parquet"), "y", registry=registry)
    assert (ref.name, ref.label) == ("parquet", "flights")
    assert ref.params["path"] == str(folder / "*.parquet")
    folder.rename(tmp_path / "flights.parquet")
    assert (
        dataset_of_file(str(tmp_path / "flights.parquet"), "y", registry=registry).label
        == "flights"
    )
    with pytest.raises(DatasetError, match="does not exist"):
        dataset_of_file(str(tmp_path / "none-*.parquet"), "y", registry=registry)


def test_an_empty_sign_between_groups_of_digits_is_not_guessed(registry, customers):
    ref = dataset_of_file("customers.csv", "churn", registry=registry, thousands="", decimal=None)
    assert ref.params["thousands"] == ""
    assert "decimal" not in ref.params


def methods(suite, registry):
    return [(c.feature_map.name, c.learner.name) for c in cells(suite, registry)]


def test_cheap_methods_come_first(registry):
    suite = suite_for(FILE, known(), registry)
    assert suite.name == "mine.csv"
    found = methods(suite, registry)
    assert len(found) == len(set(found)) == 14
    assert found[0] == ("identity", "dummy-majority")
    assert found.index(("nystroem", "ridge")) < found.index(("identity", "kernel-svm"))
    assert suite.blocks[0].protocol.missing == "impute_with_indicators"


def test_sizes_follow_the_data(registry):
    def width(n):
        suite = suite_for(FILE, known(n), registry, feature_maps=["rff"])
        return suite.blocks[0].feature_maps[0].params["n_components"]

    assert [width(n) for n in (40, 1000, 100_000)] == [50, 250, 1000]
    large = suite_for(FILE, known(100_000, 300), registry)
    assert ("identity", "kernel-svm") not in methods(large, registry)
    assert ("polynomial", "linear-svm") not in methods(large, registry)
    assert large.blocks[0].protocol.n_folds == 3
    sparse = methods(suite_for(FILE, known(sparse=True), registry), registry)
    assert ("identity", "gradient-boosting") not in sparse
    assert ("nystroem", "linear-svm") in sparse


WIDTHS = {20: 50, 200: 50, 203: 50, 204: 51, 2000: 500, 2001: 500, 10_000: 1000, 10_001: 1000}
WIDTHS |= {20_000: 1000, 20_001: 1000}
FOLDS = {20: (5, 3, 8), 2001: (5, 3, 4), 20_001: (3, 2, 4)}
"""Folds, inner folds and candidates, from this number of rows on."""

METHODS = {
    "a": ("identity", "dummy-majority"),
    "b": ("identity", "ridge (ovr)"),
    "c": ("identity", "linear-svm (ovo)"),
    "d": ("nystroem", "ridge (ovr)"),
    "e": ("rff", "ridge (ovr)"),
    "f": ("additive-chi2", "linear-svm (ovo)"),
    "g": ("nystroem", "linear-svm (ovo)"),
    "h": ("rff", "linear-svm (ovo)"),
    "i": ("identity", "knn"),
    "j": ("identity", "gradient-boosting"),
    "k": ("polynomial-2", "linear-svm (ovo)"),
    "l": ("simplicial-mesh", "linear-svm (ovo)"),
    "m": ("identity", "kernel-svm (ovo)"),
    "n": ("nbcs-rotated", "linear-svm (ovo)"),
}
MOST = {  # dense and sparse, from this number of features and of rows on
    (1, 20): ("abcdefghijklmn", "abcdeghikm"),
    (1, 10_001): ("abcdefghijkln", "abcdeghik"),
    (1, 20_001): ("abcdefghjkln", "abcdeghk"),
    (41, 20): ("abcdefghijlm", "abcdeghim"),
    (41, 10_001): ("abcdefghijl", "abcdeghi"),
    (41, 20_001): ("abcdefghjl", "abcdegh"),
    (201, 20): ("abcdefghijm", "abcdeghim"),
    (201, 10_001): ("abcdefghij", "abcdeghi"),
    (201, 20_001): ("abcdefghj", "abcdegh"),
}


def frozen(rows, features, sparse):
    """Return the suite of a size as the first version of `kbench recommend` compared it."""
    gaussian = Ref("gaussian", {"bandwidth_factor": Tune((1.0, 0.5))})
    rff = {"n_components": WIDTHS[rows], "bandwidth_factor": Tune((1.0, 0.5))}
    lines = {
        "nystroem": Ref("nystroem", rff, "nystroem"),
        "rff": Ref("rff", rff, "rff"),
        "polynomial-2": Ref("polynomial", {"degree": 2}, "polynomial-2"),
        "kernel-svm (ovo)": Ref("kernel-svm", {"kernel": gaussian}, "kernel-svm (ovo)"),
    }

    def line(label):
        return lines.get(label) or Ref(label.partition(" (")[0], {}, label)

    folds, inner, candidates = FOLDS[max(each for each in FOLDS if each <= rows)]
    protocol = Protocol(
        n_folds=folds,
        inner_folds=inner,
        search_method="random",
        n_candidates=candidates,
        missing="impute_with_indicators",
        gram_error_rows=100,
    )
    letters = MOST[max(each for each in MOST if each[0] <= features and each[1] <= rows)][sparse]
    # the fit of the mesh takes time in proportion to pairs of rows
    methods = [METHODS[each] for each in letters if each != "l" or rows <= 2000]
    # a search of gradient boosting takes minutes on many rows
    default = replace(protocol, n_candidates=1)
    blocks = [
        Block(
            (FILE,),
            (line(m),),
            (line(each),),
            default if each == "gradient-boosting" and rows > 2000 else protocol,
        )
        for m, each in methods
    ]
    return Suite("mine.csv", tuple(blocks), Limits(task_timeout_s=120))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("features", [1, 40, 41, 200, 201])
@pytest.mark.parametrize("rows", WIDTHS)
def test_every_size_has_its_methods_in_their_order(registry, rows, features, sparse):
    suite = suite_for(FILE, known(rows, features, sparse), registry)
    assert suite == frozen(rows, features, sparse)


@pytest.mark.parametrize(
    ("n", "share", "cv"),
    [
        (10_000, 0.01, "stratified"),
        (10_000, 0.02, "group_duplicates"),
        (10_000, 0.95, "stratified"),
        (10_001, 0.02, "stratified"),  # it would take too long
    ],
)
def test_copies_of_rows_are_on_one_side_of_a_split(registry, n, share, cv):
    facts = replace(known(n), duplicate_fraction=share)
    assert {b.protocol.cv for b in suite_for(FILE, facts, registry).blocks} == {cv}
    assert {b.protocol.cv for b in rounds_for(FILE, facts, registry).suite.blocks} == {cv}
    # splits by groups or by time stay as they are
    facts = replace(facts, n_splits=5)
    assert {b.protocol.cv for b in suite_for(FILE, facts, registry).blocks} == {"official"}


def test_copies_of_rows_are_noticed(tmp_path, registry):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    frame["y"] = rng.choice(["no", "yes"], 40)
    path = tmp_path / "mine.csv"
    words = "rows equal another row in all inputs: splits keep them together"
    frame.to_csv(path, index=False)
    before = prepare_data(str(path), registry=registry, target="y")
    assert not any(words in each for each in before.warnings)
    pd.concat([frame, frame[:10]]).to_csv(path, index=False)
    after = prepare_data(str(path), registry=registry, target="y")
    assert any(each.startswith("40.0 % of the rows") and words in each for each in after.warnings)


def test_fewer_than_20_rows_are_not_compared(registry):
    words = "mine: 19 rows are too few to compare methods; at least 20 are required"
    with pytest.raises(DatasetError, match=words):
        suite_for(FILE, known(19), registry)


def test_methods_that_nothing_installed_gives_are_left_out(plugin_of):
    ridge = plugin_of(kbench_learners=[Learner("ridge", classifier=dict)])
    gone = ("learners", "balcan", "zero-one")
    few = build([*(each for each in list_plugins() if each.name not in gone), ridge])
    assert methods(suite_for(FILE, known(), few), few) == [
        ("identity", "ridge"),
        ("nystroem", "ridge"),
        ("rff", "ridge"),
    ]


@pytest.mark.parametrize(
    "arguments", [["suite"], ["data", "fetch"], ["suite", "--dataset", "iris"]]
)
def test_the_suite_of_methods_says_what_it_is_for(arguments, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    code, out, err = command(*arguments, "recommend-classification", capfd=capfd)
    assert (code, out) == (2, "")
    assert (
        "'recommend-classification' has rules on the size of data and cannot be run by itself"
        in err
    )
    assert "`kbench recommend FILE --target COLUMN`" in err
    assert not list(tmp_path.iterdir())


def test_the_suite_of_methods_is_shown_but_not_among_those_to_run(capfd):
    _, out, _ = command("list", "suites", capfd=capfd)
    assert "uci-small" in out
    assert "recommend-" not in out
    _, out, _ = command("show", "recommend-classification", capfd=capfd)
    assert "fraction_of_rows" in out


def test_the_core_names_no_component_here():
    registry = build(list_plugins())
    kinds = ("dataset", "kernel", "feature map", "learner", "figure", "suite", "dashboard")
    # a suite has the name of a task
    names = {name for kind in kinds for name in registry.all(kind)} - set(TASK_TYPES)
    allowed = {
        # uses_kernel learners work on the inputs; one map is the name of that
        ("cells.py", "identity"),
        # the suites that `kbench recommend` reads; a name with "-first" is made of them
        ("user_data.py", "recommend-classification"),
        ("user_data.py", "recommend-regression"),
    }
    feature = Path(kbench_tables.__file__).parent
    folders = [Path(kbench.__file__).parent / "planning", feature / "recommend", feature / "export"]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    found = {
        (file.name, node.value)
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert found == allowed


def test_named_methods_replace_the_list(registry):
    suite = suite_for(FILE, known(), registry, ["rff", "nbcs"], ["ridge", "kernel-svm"])
    assert methods(suite, registry) == [
        ("rff", "ridge"),
        ("identity", "kernel-svm"),
        ("nbcs", "ridge"),
    ]
    suite = suite_for(FILE, known(), registry, ["balcan-f2"])
    assert methods(suite, registry) == [("balcan-f2", "ridge"), ("balcan-f2", "linear-svm")]


def test_one_task_takes_a_part_of_the_time_only(registry):
    assert rounds_for(FILE, known(), registry, total_s=45).suite.limits.task_timeout_s == 30
    assert suite_for(FILE, known(), registry).limits.task_timeout_s == 120


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"feature_maps": ["rfff"]}, "no feature map is named 'rfff'; did you mean 'rff'"),
        ({"learners": ["rdge"]}, "no learner is named 'rdge'; did you mean 'ridge'"),
    ],
)
def test_what_is_not_there_is_named(registry, options, words):
    with pytest.raises(SuiteError, match=words):
        suite_for(FILE, known(), registry, **options)
    with pytest.raises(SuiteError, match=words):
        rounds_for(FILE, known(), registry, **options)


def test_a_time_limit_is_positive(registry):
    with pytest.raises(SuiteError, match="`time_limit` must be a finite number > 0"):
        rounds_for(FILE, known(), registry, total_s=0)


@pytest.mark.parametrize(
    ("name", "source", "params"),
    [
        ("a.csv", "csv", {"target": "y"}),
        ("a.CSV.gz", "csv", {"target": "y"}),
        ("a.tsv", "csv", {"target": "y", "delimiter": "\t"}),
        ("a.parquet", "parquet", {"target": "y"}),
        ("a.arff", "arff", {"target": "y"}),
    ],
)
def test_the_name_tells_the_kind(registry, tmp_path, name, source, params):
    (tmp_path / name).write_text("")
    ref = dataset_of_file(str(tmp_path / name), "y", registry=registry)
    assert (ref.name, ref.label) == (source, "a")
    assert {k: v for k, v in ref.params.items() if k != "path"} == params


def test_svmlight_has_no_target(registry, tmp_path):
    (tmp_path / "a.libsvm").write_text("1 1:2\n")
    assert dataset_of_file(str(tmp_path / "a.libsvm"), registry=registry).name == "svmlight"
    with pytest.raises(DatasetError, match="`target` has no meaning"):
        dataset_of_file(str(tmp_path / "a.libsvm"), "y", registry=registry)


@pytest.mark.parametrize(
    ("name", "option", "words"),
    [
        ("a.parquet", {"delimiter": ";"}, "`delimiter` has no meaning for parquet files"),
        ("a.arff", {"sheet": "c"}, "`sheet` has no meaning for arff files"),
        ("a.libsvm", {"drop": ["c"]}, "`drop` has no meaning for svmlight files"),
        ("a.arff", {"target": None}, "`target` is missing: name the column to predict"),
        (
            "a.ods",
            {},
            "its name must end in one of .csv, .tsv, .parquet, .pq, .xlsx, .xls, .arff, "
            ".svmlight, .libsvm, .svm, got '.ods'",
        ),
    ],
)
def test_options_follow_from_what_a_source_takes(registry, tmp_path, name, option, words):
    (tmp_path / name).write_text("")
    with pytest.raises(DatasetError, match=re.escape(words) + "$"):
        dataset_of_file(str(tmp_path / name), **{"target": "y", **option}, registry=registry)


PIPED = """
import kbench
import kbench_files
import pandas
from kbench.tables.table_rows import FrameRows, Opened

def rows(path, **_):
    return Opened(FrameRows(pandas.read_csv(path, sep="|"), path))

def load(path, target, categorical=(), dataset_family=""):
    given = {"categorical": categorical, "dataset_family": dataset_family}
    return kbench_files.load_csv(path, target, delimiter="|", **given)

@kbench.hookimpl
def kbench_datasets():
    return [kbench.DatasetSource("piped", load=load, rows=rows, extensions={".psv": {}})]
"""


@pytest.mark.slow
def test_a_plugin_adds_a_kind_of_file(customers, store_uri, install_plugin, capfd):
    install_plugin("piped_files", PIPED)
    customers.with_suffix(".psv").write_text(customers.read_text().replace(",", "|"))
    words = ["customers.psv", "--target", "churn", "--learner", "ridge"]
    code, out, err = command(
        *["recommend", *words, "--feature-map", "identity", "--store", store_uri], capfd=capfd
    )
    assert code == 0, err
    assert "60 rows, 2 columns, 3 after encoding, 2 classes ('yes' 50 %, 'no' 50 %)" in out
    method = ["--feature-map", "identity", "-o", "model"]
    code, out, err = command("export", *words, *method, capfd=capfd)
    assert code == 0, err
    assert "its input is the original table, without the target" in out
    code, out, err = command("recommend", *words, "--delimiter", "|", capfd=capfd)
    assert code == 2
    assert "--delimiter has no meaning for piped files" in err


def test_a_file_is_fetched_once(customers, registry):
    ref = dataset_of_file(str(customers), "churn", registry=registry)
    first = fetch_dataset(ref, registry)
    assert (first.n_samples, first.n_features, first.n_missing > 0) == (60, 3, True)
    assert fetch_dataset(ref, registry).checksum == first.checksum


@pytest.mark.slow
def test_a_run_answers_and_goes_on_from_the_journal(customers, tmp_path, store_uri, capfd):
    words = ["recommend", customers.name, "--target", "churn", "--learner", "ridge", "--jobs", "1"]
    words += ["--feature-map", "identity", "--learner", "dummy-majority", "--store", store_uri]
    code, out, err = command(*words, "-o", "report.html", capfd=capfd)
    assert code == 0, err
    assert "60 rows, 2 columns, 3 after encoding, 2 classes ('yes' 50 %, 'no' 50 %)" in out
    assert re.search(r"Use identity \+ ridge \(ovr\): [01]\.\d+ .*accuracy", out)
    assert "kbench export customers.csv --target churn --feature-map identity" in out
    text = (tmp_path / "report.html").read_text()
    assert "<h2>Recommendation</h2>" in text
    assert re.search(r"Use identity \+ ridge \(ovr\): [01]\.\d+ .*accuracy", text)
    assert "60 rows, 2 columns, 3 after encoding" in text
    assert "kbench export customers.csv --target churn" in text
    # one dataset has no ranks over datasets
    assert "Critical-difference" not in text
    assert 'id="pairs"' not in text

    code, out, err = command(*words, "--json", capfd=capfd)
    events = [json.loads(line) for line in out.splitlines()]
    assert next(e for e in events if e["event"] == "planned")["tasks"] == 0
    end = events[-1]
    assert end["recommended"]["learner"] == "ridge (ovr)"
    assert [each["status"] for each in end["rows"]] == ["ok", "ok"]
    # other commands find the experiment by the file's name
    assert end["experiment"] == "customers.csv"
    code, out, err = command("results", "customers.csv", "--store", store_uri, capfd=capfd)
    assert code == 0
    assert "dummy-majority" in out


@pytest.mark.slow
def test_what_the_time_does_not_allow_is_skipped_and_shown(customers, store_uri, capfd):
    words = ["recommend", customers.name, "--target", "churn", "--store", store_uri, "--json"]
    words += ["--feature-map", "identity", "--learner", "ridge", "--learner", "dummy-majority"]
    code, out, _ = command(*words, "--time-limit", "0.001", capfd=capfd)
    end = json.loads(out.splitlines()[-1])
    assert {each["learner"]: each["status"] for each in end["rows"]} == {
        "dummy-majority": "ok",  # the cheapest is tried whatever the limit, on one split
        "ridge (ovr)": "skipped",
    }
    assert len(end["rows"]) == 2  # rows planned are rows shown
    rows = {each["learner"]: each for each in end["rows"]}
    assert (rows["dummy-majority"]["n_splits_done"], rows["dummy-majority"]["n_splits"]) == (1, 1)
    ended = "the time limit of 0.001 s ended before their first split"
    assert rows["ridge (ovr)"]["error"] == ended
    assert end["recommended"]["learner"] == "dummy-majority"
    said = " ".join(end["sentences"])
    assert "no other method was evaluated in full" in said
    assert "1 of 2 methods was not evaluated in full within 0.001 s" in said
    assert code == 0  # the limit is what the user asked for

    # the same command goes on from there
    code, out, _ = command(*words, "--time-limit", "0.001", capfd=capfd)
    rows = {each["learner"]: each for each in json.loads(out.splitlines()[-1])["rows"]}
    assert {each["status"] for each in rows.values()} == {"ok"}


def test_text_and_rows_without_a_label_are_left_out_and_told_of(tmp_path, monkeypatch, registry):
    monkeypatch.chdir(tmp_path)
    lines = [f"day {i},{i % 7},{'ab'[i % 2]},{['', 'no', 'yes'][i % 3]}" for i in range(90)]
    (tmp_path / "mine.csv").write_text("\n".join(["date,x,c,y", *lines]) + "\n")
    ref = dataset_of_file("mine.csv", "y", registry=registry)
    found = preview(ref, registry)
    assert (found.n_rows, found.n_unlabelled, found.n_columns) == (90, 30, 2)
    assert found.notices() == [
        "left out: 'date', text: 90 different values in 90 rows; `keep='date'` keeps it"
    ]
    kept = fetch_dataset(add_preview(ref, found), registry)
    assert (kept.n_samples, kept.n_features) == (60, 3)
    # what is named is kept, and the source agrees on what is text
    named = dataset_of_file("mine.csv", "y", categorical=["date"], registry=registry)
    assert "date" not in add_preview(named, preview(named, registry)).params.get("drop", ())
    with pytest.raises(DatasetError, match=r"`drop=\['date'\]`"):
        fetch_dataset(ref, registry)
    with pytest.raises(DatasetError, match="did you mean 'y'"):
        preview(dataset_of_file("mine.csv", "yy", registry=registry), registry)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gone.csv", "--target", "churn"], "does not exist"),
        (["customers.csv"], "--target is missing: name the column to predict"),
        (["customers.csv", "--target", "chrun"], "did you mean 'churn'"),
        (
            ["customers.csv", "--target", "churn", "--time-limit", "-3"],
            "must be a finite number > 0",
        ),
        (["customers.csv", "--target", "churn", "-o", "no/where.html"], "there is no folder"),
        (["customers.csv", "--target", "churn", "--feature-map", "rf"], "did you mean 'rff'"),
        (["customers.csv", "--target", "churn", "--drop", "cty"], "did you mean 'city'"),
        (["customers.ods", "--target", "churn"], "its name must end in one of"),
    ],
)
def test_mistakes_are_named_before_anything_runs(customers, tmp_path, arguments, words, capfd):
    before = sorted(tmp_path.iterdir())
    code, out, err = command("recommend", *arguments, capfd=capfd)
    assert (code, out) == (2, "")
    assert words in err
    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """A table with a count to predict, in three formats."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=80).round(3)
    n = rng.poisson(np.exp(1.5 + 0.7 * x))
    rows = list(zip(x, n, strict=True))
    csv = "".join(f"{x},{n}\n" for x, n in rows)
    (tmp_path / "counts.csv").write_text(f"x,n\n{csv}")
    head = "@relation r\n@attribute x numeric\n@attribute n numeric\n@data\n"
    (tmp_path / "counts.arff").write_text(head + csv)
    (tmp_path / "counts.svm").write_text("".join(f"{n} 1:{x}\n" for x, n in rows))
    return n


@pytest.mark.parametrize("ending", ["csv", "arff", "svm"])
@pytest.mark.parametrize("asked", [None, "classification", "regression"])
def test_all_formats_have_the_same_rule(counts, registry, ending, asked):
    options = {"task": asked} if ending == "svm" else {"task": asked, "target": "n"}
    data = prepare_data(f"counts.{ending}", registry, **options)
    assert data.facts.task == (asked or "regression")
    assert data.ref.params["task"] == data.facts.task
    if asked is None:
        assert "one of them in fewer than 5 rows: regression (`task='class" in data.target
        assert data.facts.target_mean == pytest.approx(counts.mean())
    else:
        assert f"(`task={asked!r}`)" in data.target


def test_labels_of_other_formats_stay_classes(tmp_path, monkeypatch, registry):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.svm").write_text("".join(f"{[-1, 1][i % 2]} 1:{i}\n" for i in range(40)))
    data = prepare_data("a.svm", registry)
    assert data.facts.task == "classification"
    assert data.target == (
        "target 'label' has 2 different integers, treated as classes (`task='regression'` treats "
        "them as numbers)"
    )


@pytest.mark.slow
def test_numbers_are_compared_by_their_error(counts, store_uri, capfd):
    words = [
        "recommend",
        "counts.csv",
        "--target",
        "n",
        "--feature-map",
        "identity",
        "--learner",
        "dummy-mean",
    ]
    words += ["--learner", "ridge", "--store", store_uri, "--jobs", "1"]
    code, out, err = command(*words, "-o", "report.html", capfd=capfd)
    assert code == 0, err
    assert "counts: 80 rows, 1 column, target with mean " in out
    assert "target 'n' is numeric, with " in out
    assert re.search(r"Use identity \+ ridge: [\d.,]+ .*rmse", out)
    assert "The baseline (predicting the mean) scores rmse " in out
    assert "target &#39;n&#39; is numeric" in Path("report.html").read_text()
    code, out, err = command(*words, "--task", "regression", "--json", capfd=capfd)
    end = json.loads(out.splitlines()[-1])
    assert end["task"] == "regression"
    assert end["target"].endswith("(--task regression)")
    assert end["rows"][0]["learner"] == "ridge"
    assert end["rows"][0]["rmse"] < end["rows"][1]["rmse"]
    assert "--task regression" in end["export"]


def test_tasks_are_named_where_they_are_wrong(counts, customers, capfd):
    words = ["recommend", "customers.csv", "--target"]
    code, _, err = command(*words, "churn", "--task", "ranking", capfd=capfd)
    assert (code, err) == (
        2,
        "kbench: --task must be one of 'classification', 'regression', got 'ranking'\n",
    )
    code, _, err = command(*words, "churn", "--task", "regression", capfd=capfd)
    assert code == 2
    assert "'churn' is not numeric in 60 rows of 60, the first is row 1: 'no'" in err
    code, _, err = command("recommend", "counts.csv", "--target", "n", "--drop", "n", capfd=capfd)
    assert code == 2
    assert "the target 'n' is among the ignored columns" in err
    words = ["recommend", "counts.csv", "--target", "n", "--learner", "linear-svm"]
    code, _, err = command(*words, capfd=capfd)
    assert code == 2
    assert "learner 'linear-svm' (classification) with 'counts' (regression)" in err


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ("lognormal", True),
        ("zeros", True),
        ("negative", False),
        ("normal", False),
        ("mostly zeros", False),
    ],
)
def test_logarithms_are_tried_of_positive_skewed_targets(tmp_path, registry, y, expected):
    rng = np.random.default_rng(0)
    normal = rng.normal(size=300)
    lognormal = np.exp(normal)
    rows = np.arange(300)
    values = {
        "lognormal": lognormal,
        "zeros": np.where(rows < 20, 0.0, lognormal),
        "negative": lognormal - 1.0,
        "normal": normal + 9.0,
        "mostly zeros": np.where(rows < 295, 0.0, 3.0),
    }[y]
    lines = [f"{x:.3f},{value!r}" for x, value in zip(normal, values.tolist(), strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    data = prepare_data(str(tmp_path / "t.csv"), registry, target="y", task="regression")
    assert is_skewed(data.facts) is expected


def test_numbers_have_methods_of_their_own(registry, monkeypatch):
    monkeypatch.setattr(user_data, "is_skewed", lambda facts: False)
    small = replace(known(), task="regression")
    suite = suite_for(FILE, small, registry)
    assert (suite.metric.name, suite.metric.better) == ("rmse", "lower")
    found = methods(suite, registry)
    assert found[0] == ("identity", "dummy-mean")
    assert len(found) == len(set(found)) == 14
    assert ("identity", "gaussian-process") in found
    large = methods(suite_for(FILE, replace(known(5001), task="regression"), registry), registry)
    assert {("identity", "gaussian-process"), ("identity", "kernel-ridge")}.isdisjoint(large)
    for map_, learner in found:
        assert "regression" in registry.get("feature map", map_).tasks
        assert "regression" in registry.get("learner", learner).tasks


def test_many_categories_have_a_mean_for_each_of_three_classes(tmp_path, monkeypatch, registry):
    monkeypatch.chdir(tmp_path)
    lines = [f"S{i % 30},{i / 4},{'abc'[i % 7 % 3]}" for i in range(150)]
    (tmp_path / "mine.csv").write_text("\n".join(["street,x,y", *lines]) + "\n")
    data = prepare_data("mine.csv", registry, target="y")
    street = data.preview.roles[0]
    assert (street.encoded_as, street.n_columns) == ("target mean by category and class", 3)
    assert data.facts.feature_kinds == ("target_encoded", "numeric")


def test_columns_that_leave_their_range_in_time_are_found(tmp_path, monkeypatch, registry):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = [f"{i},{i + rng.normal():.3f},{rng.normal():.3f},{i % 7}" for i in range(100)]
    Path("t.csv").write_text("\n".join(["t,trend,steady,y", *lines]) + "\n")
    names = ["t", "trend", "steady"]
    ordered = prepare_data("t.csv", registry, target="y", time_column="t", task="regression")
    assert drifting_columns(ordered.ref, ordered.facts, names) == ["trend"]
    drawn = prepare_data("t.csv", registry, target="y", task="regression")
    assert drifting_columns(drawn.ref, drawn.facts, names) == []
    for data, scaling in ((ordered, "standard"), (drawn, "minmax")):
        blocks = suite_for(data.ref, data.facts, registry).blocks
        timed = rounds_for(data.ref, data.facts, registry).suite.blocks
        for block in (*blocks, *timed):
            if block.feature_maps[0].name == "identity":
                assert block.protocol.scaling == (scaling,)


def test_many_dropped_columns_of_a_kind_have_one_notice():
    few = [Role(f"c{i}", "a constant", LEFT_OUT, 0, "why") for i in range(3)]
    many = [Role(f"t{i}", "text", LEFT_OUT, 0, f"{i}") for i in range(1000)]
    dropped = Role("d", "not read", LEFT_OUT, 0)
    found = Preview(9, 0, (*few, *many, dropped), TargetColumn("strings", 2), {}).notices()
    assert found[:3] == [f"left out: 'c{i}', a constant: why" for i in range(3)]
    assert found[3:] == ["left out: 1,000 columns (text): 't0', 't1', 't2' and 997 more"]
