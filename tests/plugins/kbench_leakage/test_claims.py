"""Statements of the documentation on regression sets, recomputed from its own tables."""

import math
import re

import pytest

from tests.support.paths import ROOT

DOCS = ROOT / "docs"


def page(name):
    return " ".join((DOCS / name).read_text(encoding="utf-8").split())


def table(name, heading, after=""):
    """Return the rows of the first table below a text whose first line begins so."""
    text = (DOCS / name).read_text(encoding="utf-8")
    start = text.index(heading, text.index(after))
    lines = text[text.rindex("\n", 0, start) + 1 :].splitlines()
    cells = [[each.strip() for each in line.strip("|").split("|")] for line in lines]
    n = next(i for i, line in enumerate(lines) if not line.startswith("|"))
    return {row[0]: dict(zip(cells[0], row, strict=True)) for row in cells[2:n]}


def number(row, column):
    return float(row[column].split()[0])


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def listed(names):
    return f"{', '.join(names[:-1])} and {names[-1]}"


SETS = table("leakage.md", "| dataset | what predicts")
COUNTED = [name for name, row in SETS.items() if row["counted"] == "yes"]
LEARNED = "studies/learned-maps.md"
STRICT, LENIENT = (table(LEARNED, "| dataset | training rows", f"### Level {n}") for n in (1, 10))
FOURIER = table("studies/learned-fourier-maps.md", "| dataset | training rows")
MAPS = table("studies/regression.md", "| dataset | rows | splits | rff, ridge")


def test_the_sets_that_count_are_those_without_a_sign():
    assert len(SETS) == len(STRICT | LENIENT) == len(STRICT) + len(LENIENT) == len(MAPS) == 20
    found = {name: row["what predicts the target of test rows"] for name, row in SETS.items()}
    signs = {name for name, text in found.items() if text and not text.startswith("(")}
    assert set(COUNTED) == SETS.keys() - signs - {"housing"}
    assert (len(COUNTED), len(signs)) == (8, 11)
    assert listed(COUNTED) in page("leakage.md")


@pytest.mark.parametrize(
    ("rows", "ahead", "behind"),
    [
        (STRICT, "on autompg", "behind on servo and stock"),
        (LENIENT, "on 4 (gas, skillcraft, elevators and kin40k)", "behind on pumadyn32nm"),
    ],
    ids=["strict", "lenient"],
)
def test_ratios_of_learned_landmarks(rows, ahead, behind):
    ratios = {name: number(rows[name], "ratio") for name in COUNTED if name in rows}
    text = page(LEARNED)
    assert f"count are {listed(list(ratios))}: the geometric mean of their ratios is" in text
    assert f"ratios is {mean(list(ratios.values())):.2f}." in text
    assert all(ratio <= 1.02 for ratio in ratios.values())
    gained = [name for name, ratio in ratios.items() if ratio < 0.98]
    assert not gained or f"on {len(gained)} of them ({listed(gained)})" in text
    against = {name: number(rows[name], "ratio to boosting") for name in ratios}
    assert f"ahead of boosting by more than 2 % {ahead}, and {behind}" in text
    for name, ratio in against.items():
        assert (ratio < 0.98) == (name in ahead), name
        assert (ratio > 1.02) == (name in behind), name


def test_a_mean_that_leaking_sets_drive_is_said_to_be():
    ratios = {name: number(row, "ratio") for name, row in LENIENT.items()}
    rest = [ratio for name, ratio in ratios.items() if name not in ("bike", "parkinsons")]
    text = page(LEARNED)
    assert f"Over all {len(ratios)} datasets the mean is {mean(list(ratios.values())):.2f}" in text
    assert f"without them it is {mean(rest):.2f}" in text


def test_ratios_of_learned_fourier_features():
    ratios = {name: number(row, "ratio") for name, row in FOURIER.items()}
    counted = {name: ratios[name] for name in COUNTED if name in ratios}
    rest = [ratio for name, ratio in counted.items() if name != "pumadyn32nm"]
    assert (len(counted), len(ratios)) == (7, 17)
    means = [f"{mean(list(each)):.2f}" for each in (counted.values(), rest, ratios.values())]
    text = page("studies/learned-fourier-maps.md")
    assert f"mean of their ratios is {means[0]}" in text
    assert f"the six without pumadyn32nm {means[1]}, and that of all 17 is {means[2]}" in text


def test_maps_beside_boosting_and_neighbours():
    nystroem, rff, boosting, neighbours = (
        {name: number(row, column) for name, row in MAPS.items()}
        for column in ("Nystroem, ridge", "rff, ridge", "gradient boosting", "k-NN")
    )
    text = page("studies/regression.md")
    ahead = [name for name in COUNTED if nystroem[name] < boosting[name]]
    assert f"on {len(ahead)}: {listed(ahead)}." in text
    assert {*COUNTED} - {*ahead} == {"servo", "pumadyn32nm"}
    n_ahead = sum(nystroem[name] < boosting[name] for name in MAPS)
    n_behind = sum(nystroem[name] > boosting[name] for name in MAPS)
    assert f"ahead on {n_ahead}, boosting on {n_behind}, and one is tied" in text
    signed = SETS.keys() - {*COUNTED} - {"housing"}
    n_boosted = sum(boosting[name] < nystroem[name] for name in signed)
    assert f"ahead on {n_boosted} of the {len(signed)} datasets" in text
    assert [name for name in COUNTED if neighbours[name] < nystroem[name]] == ["pumadyn32nm"]
    assert [name for name in COUNTED if neighbours[name] < rff[name]] == ["gas", "pumadyn32nm"]
    n_smaller = sum(nystroem[name] < rff[name] for name in COUNTED)
    assert f"a smaller error than `rff` on {n_smaller} of 8 " in page("choosing-a-map.md")


@pytest.mark.parametrize("name", ["bike", "parkinsons", "sml", "keggdirected", "yacht"])
def test_no_advice_rests_on_a_set_with_a_sign(name):
    assert not re.search(rf"\b{name}\b", page("choosing-a-map.md"))
    assert SETS[name]["counted"] == "no"
