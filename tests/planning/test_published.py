"""Figures of papers in a CSV file beside a suite."""

import pytest

from kbench.api.inputs import read_suite_or_empty, select_suite
from kbench.errors import SuiteError
from kbench.planning.suite_file import find, read, read_published
from kbench.records import Published
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build

REGISTRY = build(list_plugins())
HEAD = "dataset,feature_map,learner,metric,value,sd,n_runs,source\n"
SUITE = """
published = "figures.csv"
datasets = ["iris"]
feature_maps = ["rff"]
learners = ["ridge"]
"""


def test_figures_are_read_with_their_optional_columns():
    text = "# from a paper\n\n" + HEAD + 'iris,rff,"ridge (ovr)",accuracy,0.95,0.01,10,"Tab, 1"\n'
    assert read_published(text, "f.csv") == (
        Published("iris", "rff", "ridge (ovr)", "accuracy", 0.95, 0.01, 10, "Tab, 1"),
    )
    assert read_published(HEAD + "iris,rff,ridge,accuracy,1,,,\n", "f.csv")[0].sd is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.csv: there is no column 'dataset'"),
        (HEAD.replace("value", "mean"), "there is no column 'value'"),
        (HEAD.replace("sd", "sdd"), "unknown column 'sdd'; did you mean 'sd'"),
        (HEAD + "iris,rff,ridge,accuracy,much,,,\n", "f.csv, line 2: value must be .* 'much'"),
        (HEAD + "\n# x\niris,rff,ridge,accuracy,nan,,,\n", "line 4: value must be .* 'nan'"),
        (HEAD + "iris,rff,ridge,accuracy,,,,\n", "line 2: value must be .* ''"),
        (HEAD + ",rff,ridge,accuracy,1,,,\n", "line 2: dataset: .* at least 1 character"),
        (
            HEAD + "iris,rff,ridge,accuracy,1,-1,,\n",
            "sd must be greater than or equal to 0, got '-1'",
        ),
        (HEAD + "iris,rff,ridge,accuracy,1,,2.5,\n", "n_runs must be .* integer.* got '2.5'"),
        (HEAD + "iris,rff,ridge,accuracy,1\n", "line 2: .* another number of fields"),
        (HEAD + "iris,rff,ridge,accuracy,1,,,,,\n", "line 2: .* another number of fields"),
        (HEAD + 2 * "iris,rff,ridge,accuracy,1,,,\n", "2 figures of iris, rff, ridge, accuracy"),
        (HEAD + 'iris,rff,"ridge,accuracy,1,,,\n', "line 2: "),
        (HEAD + 20 * "iris,rff,ridge,accuracy,x,,,\n", "10 more"),
    ],
)
def test_mistakes_of_the_file_are_named(text, message):
    with pytest.raises(SuiteError, match=message):
        read_published(text, "f.csv")


def test_a_suite_takes_figures_from_the_file_beside_it(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SUITE)
    with pytest.raises(SuiteError, match=r"published: cannot read .*figures.csv: No such file"):
        select_suite(str(path), REGISTRY)
    (tmp_path / "figures.csv").write_text(HEAD + "iris,rff,ridge (ovr),accuracy,0.9,,,\n")
    suite = select_suite(str(path), REGISTRY)
    assert [figure.value for figure in suite.published] == [0.9]
    assert read_suite_or_empty(str(path), REGISTRY).published == suite.published


def test_tables_of_figures_remain():
    text = SUITE.replace('published = "figures.csv"', "") + (
        '[[published]]\ndataset = "iris"\nfeature_map = "rff"\nlearner = "ridge (ovr)"\nvalue = 1.0'
    )
    assert read(text, "s", REGISTRY).published[0].value == 1.0
    with pytest.raises(SuiteError, match=r"published\[0\]\.value"):
        read(text.replace("value = 1.0", 'value = "x"'), "s", REGISTRY)


@pytest.mark.parametrize(("name", "n"), [("wacker-2022", 220), ("wacker-2022-regression", 290)])
def test_each_figure_of_an_installed_suite_has_a_cell(name, n):
    suite = (
        select_suite(name, REGISTRY, data=None) if n == 220 else read_suite_or_empty(name, REGISTRY)
    )
    cells = {
        (data.label, map_.label, learner.label)
        for block in read(*find(name, REGISTRY), REGISTRY).blocks
        for data in block.datasets
        for map_ in block.feature_maps
        for learner in block.learners
    }
    figures = {(each.dataset, each.feature_map, each.learner) for each in suite.published}
    assert len(suite.published) == n and figures == cells
