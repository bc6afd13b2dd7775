import json

import pytest

from kbench.registry.registry import Registry
from kbench.report import write
from kbench.results.budgets import Budget
from kbench_reporting import tables
from kbench_reporting.findings import budget_sentences, seconds_by_family, unequal
from kbench_reporting.page import page
from tests.support.report_rows import NASTY, changed, content, row


def budget(name, counts, family="fourier", seconds=None, learner="ridge"):
    return Budget((name, learner), family, dict(enumerate(counts)), seconds)


def test_without_a_claim_the_range_is_said():
    found = [budget("rff", (8, 8)), budget("nystroem", (4, 16), "landmarks")]
    assert budget_sentences(found, "") == ["Each method had 4 to 16 candidates in its search."]
    assert budget_sentences([budget("rff", (1,))], "") == [
        "Each method had 1 candidate in its search."
    ]
    # one that has nothing to search does not make a range; results of old versions say nothing
    assert budget_sentences([budget("rff", (8,)), budget("identity", (1,), "baseline")], "") == [
        "Each method had 8 candidates in its search."
    ]
    assert budget_sentences([Budget(("rff", "ridge"), "fourier", {})], "candidates") == []


def test_equal_candidates_are_claimed_only_where_they_are():
    equal = [budget("rff", (8, 4)), budget("orf", (8, 4)), budget("nystroem", (2,), "landmarks")]
    claim = "Within each family, methods have equal numbers of candidates"
    assert budget_sentences(equal, "candidates")[1:] == [f"{claim}."]
    (_, said) = budget_sentences([*equal, budget("qmc", (8, 3))], "candidates")
    assert said == f"{claim}, except: qmc + ridge (3 to 8 instead of 4 in the family 'fourier')."


def test_seconds_are_compared_over_families():
    found = [
        budget("rff", (8,), seconds=3.0),
        budget("nystroem", (8,), "landmarks", 1.2),
        budget("mine", (8,), "", 2.0),
        budget("identity", (1,), "trees", learner="boosting"),
    ]
    said = budget_sentences(found, "seconds")
    assert "chosen on development datasets" in said[2]
    assert "(fourier, 3 s per split) takes 2.5 times as long" in said[3]
    assert "(landmarks, 1.2 s)" in said[3]
    assert said[4] == "Without a search: identity + boosting."
    assert len(budget_sentences(found[:1], "seconds")) == 3


def rows_of(names, **more):
    return [
        row(
            dataset,
            name,
            n_candidates=8,
            search_time_cpu_s=2.0,
            search_at_boundary=0.25,
            search_space=("learner.alpha", f"feature_map.{name}"),
            family=name,
            **more,
        )
        for dataset in ("iris", "wine")
        for name in names
    ]


def test_the_table_has_a_row_for_each_method():
    table = tables.budgets(content(rows_of(["rff", "nystroem"], default_accuracy=0.85)))
    found = json.loads(write(table, "json"))
    assert [each["feature_map"] for each in found] == ["rff", "nystroem"]
    assert found[0]["family"] == "rff"
    assert (found[0]["least"], found[0]["most"]) == (8, 8)
    assert found[0]["search_time_cpu_s"] == pytest.approx(2.0)
    assert found[0]["searched"] == "learner.alpha, feature_map.rff"
    assert found[0]["difference"] == pytest.approx(0.05)
    assert "| alpha, rff | 25 % | 0.8500 | 0.9000 | +0.0500 |" in write(table, "markdown")
    # results of earlier versions have no score of the default
    columns = {column.name for column in tables.budgets(content(rows_of(["rff"]))).columns}
    assert not {"default", "tuned", "difference"} & columns


def test_methods_of_a_family_stand_together():
    rows = [
        changed(each, family=family) for each, family in zip(rows_of("abc"), "xyxxyx", strict=True)
    ]
    table = tables.budgets(content(rows))
    assert [each["feature_map"] for each in table.rows] == ["a", "c", "b"]


def test_names_on_the_page_are_text():
    rows = rows_of(NASTY)
    rows += [changed(each, feature_map=f"{each.feature_map}2", n_candidates=3) for each in rows]
    shown = page(content(rows, budget="candidates"), Registry())
    section = shown.partition('<section id="budgets">')[2].partition("</section>")[0]
    assert "except: " in section
    assert "&lt;script&gt;" in section
    assert "<script" not in section
    assert "<img" not in section
    assert "49" not in section  # {{ 7 * 7 }}


def test_the_page_says_what_the_suite_claims():
    rows = rows_of(["rff", "nystroem"])
    assert "equal numbers" not in page(content(rows), Registry()).partition("<footer>")[0]
    claimed = page(content(rows, budget="candidates"), Registry())
    assert "Within each family, methods have equal numbers of candidates." in claimed


def test_methods_differ_from_most_of_their_family_on_a_dataset():
    found = [
        *(budget(name, (8, 8)) for name in ("rff", "orf")),
        budget("qmc", (8, 4)),
        budget("other", (2,), "landmarks"),
        # methods without a family are one each, and baselines search nothing
        *(budget("identity", (n,), "", learner=f"own-{n}") for n in (1, 5)),
        budget("identity", (1,), "baseline", learner="dummy-majority"),
        budget("rff", (3,), "baseline", learner="dummy-mean"),
    ]
    ((differs, usual),) = unequal(found)
    assert (differs.method[0], usual) == ("qmc", [8])


def test_seconds_of_a_family_are_means_over_its_methods():
    found = [
        budget("rff", (8,), seconds=1.0),
        budget("orf", (8,), seconds=4.0),
        budget("nystroem", (8,), "landmarks", 3.0),
        budget("mine", (8,), "", 5.0),
        budget("identity", (1,), "trees", learner="boosting"),
    ]
    assert seconds_by_family(found) == pytest.approx(
        {"fourier": 2.0, "landmarks": 3.0, ("mine", "ridge"): 5.0}
    )
