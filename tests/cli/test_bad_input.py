"""What a user may get wrong: one clear message, exit code 2, nothing half-written."""

import json

import numpy as np
import pytest

from kbench import DatasetError
from kbench.storage.datacache import check_dataset
from kbench_files._files import load_arff, load_csv, load_parquet, load_svmlight
from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

ROWS = 20
GOOD = "a,b,y\n" + "".join(f"{i},{i % 3},{['no', 'yes'][i % 2]}\n" for i in range(ROWS))


def csv(header, *columns):
    """Write a table whose columns repeat their values."""
    rows = (",".join(str(c[i % len(c)]) for c in columns) for i in range(ROWS))
    return "\n".join([header, *rows]) + "\n"


NUMBERS = list(range(ROWS))
LABELS = ["no", "yes"]
TABLES = {
    "empty": (b"", "is empty"),
    "header only": (b"a,b,y\n", "has no rows"),
    "blank lines": (b"\n\n\n", "cannot be read as CSV: No columns to parse from file"),
    "no such target": (GOOD.replace("y\n", "yy\n", 1), "no column 'y'; did you mean 'yy'?"),
    "one class": (csv("a,y", NUMBERS, ["yes"]), "the target 'y' has 1 class; "),
    "no label at all": (csv("a,y", NUMBERS, [""]), "the target 'y' has 0 classes; "),
    "a column without a value": (
        csv("a,b,y", NUMBERS, [""], LABELS),
        "all values are missing in 'b'. Drop empty columns: `drop=['b']`",
    ),
    "equal names": (csv("a,a,y", NUMBERS, NUMBERS, LABELS), "several columns are named 'a'"),
    "a column without a name": (csv(",b,y", NUMBERS, NUMBERS, LABELS), "drop=['Unnamed: 0']"),
    "more values than names": (
        csv("a,y", NUMBERS, NUMBERS, LABELS),
        "its first line has 2 names, but 20 rows have more or fewer values: line 2 has 3, ",
    ),
    "another delimiter": (
        csv("a,y", NUMBERS, LABELS).replace(",", ";"),
        "it has only one column, 'a;y'; is the delimiter ';'?",
    ),
    "another delimiter, and commas in some rows": (
        "a;b;y\n" + "".join(f"{i};text{', or not' * (i % 2)};{i % 2}\n" for i in NUMBERS),
        "is the delimiter ';'? Give `delimiter=';'`",
    ),
    "a target in other letters": (GOOD.replace("y\n", "CLASS_Y\n", 1), "there is no column 'y'"),
    "another encoding": (
        "a,y\n1,café\n2,thé\n".encode("latin-1"),
        "it is not UTF-8 text (byte 0xe9)",
    ),
    "no text at all": (bytes(range(256)) * 20, "file 'mine.csv'"),
    "text as a feature": (
        "name,y\n" + "".join(f"person {i},{LABELS[i % 2]}\n" for i in range(100)),
        "text cannot be a feature: 'name'",
    ),
    "a constant target of numbers": (
        csv("a,y", NUMBERS, [0.5]),
        "all rows have the target 0.5; a constant cannot be learned",
    ),
    "an infinite target": (
        csv("a,y", NUMBERS, [0.5, 1, "inf"]),
        "the target 'y' is infinite in 6 rows of 20, the first is row 3",
    ),
    "a label for each row": (
        "a,y\n" + "".join(f"{i},person {i}\n" for i in range(200)),
        "the target 'y' has 200 different labels in 200 rows",
    ),
    "infinite values": (csv("a,y", ["inf", 1, 2], LABELS), "infinite values"),
}
FEW = b"a,y\n0.5,no\n2,yes\n3,no\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("what", TABLES)
def test_tables_that_are_no_classification_problem(here, what):
    content, words = TABLES[what]
    (here / "mine.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DatasetError) as error:
        check_dataset(load_csv("mine.csv", "y"))
    assert words in str(error.value)


@pytest.mark.parametrize("what", ["one class", "no text at all", "fewer rows than folds"])
def test_the_command_line_says_the_same(here, what, capfd):
    said = {
        **TABLES,
        # `kbench recommend` looks at the target before it reads it
        "one class": (
            csv("a,y", [0.5, 2, 1], ["yes"]),
            "the target 'y' has the same value in all rows",
        ),
        "no text at all": (TABLES["no text at all"][0], "it is not a text file (byte 1 is NUL)"),
        "fewer rows than folds": (FEW, "3 rows"),
    }
    content, words = said[what]
    (here / "mine.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = command("recommend", "mine.csv", "--target", "y", capfd=capfd)
    assert (code, out) == (2, ""), err
    assert words in err
    assert "Traceback" not in err
    assert [each.name for each in here.iterdir()] == ["mine.csv"]


def test_case_is_no_hindrance_to_a_hint(here):
    (here / "mine.csv").write_text(GOOD.replace("y\n", "CHURN\n", 1))
    for named in ({"target": "churn"}, {"target": "CHURN", "categorical": ["B"]}):
        with pytest.raises(DatasetError) as error:
            load_csv("mine.csv", **named)
        assert str(error.value).endswith("? Columns: 'a', 'b', 'CHURN'.")
        assert "; did you mean " in str(error.value)


def test_what_is_named_can_be_left_out(here):
    (here / "mine.csv").write_text(csv(",a,b,y", NUMBERS, NUMBERS, [""], LABELS))
    data = load_csv("mine.csv", "y", drop=["Unnamed: 0", "b"])
    assert data.feature_names == ("a",)


def test_very_many_categories_are_refused_by_name(here):
    n = 100_000
    lines = [f"city {i},{i % 7},{LABELS[i % 2]}" for i in np.repeat(np.arange(n), 3)]
    (here / "mine.csv").write_text("\n".join(["city,b,y", *lines]) + "\n")
    with pytest.raises(DatasetError, match="'city' alone has 100,000 categories"):
        load_csv("mine.csv", "y")


@pytest.mark.parametrize(
    ("load", "content", "words"),
    [
        (load_parquet, b"PAR1 no, it is not", "cannot be read as parquet"),
        (load_arff, b"@relation r\n@attribute a strange\n@data\n1\n", "file 'mine'"),
        (load_svmlight, b"1 one:two\n", "cannot be read as svmlight"),
        (load_parquet, b"", "is empty"),
        (load_arff, b"", "is empty"),
        (load_svmlight, b"", "is empty"),
    ],
)
def test_other_kinds_of_files_that_are_damaged(here, load, content, words):
    (here / "mine").write_bytes(content)
    with pytest.raises(DatasetError, match=words):
        load("mine") if load is load_svmlight else load("mine", "y")


def test_a_folder_is_no_file(here):
    with pytest.raises(DatasetError, match="is not a file"):
        load_csv(str(here), "y")


# -- plugins

MAP = """
from kbench import FeatureMap, hookimpl

class Map:
    def __init__(self): ...

@hookimpl
def kbench_feature_maps():
    return [FeatureMap({name!r}, make={make})]
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nystroem", "gives a feature map called 'nystroem', as does 'baselines' of kbench-core"),
        ("MyMap", "gives the name 'MyMap': names are lower case letters, digits and hyphens"),
        ("my map", "gives the name 'my map'"),
        ("../map", "gives the name '../map'"),
    ],
)
def test_names_that_clash_or_cannot_be_typed(install_plugin, name, words, capfd):
    install_plugin("odd_plugin", MAP.format(name=name, make="Map"))
    code, out, _ = command("list", "plugins", "--json", capfd=capfd)
    assert code == 0
    (found,) = [each for each in json.loads(out)["plugins"] if each["name"] == "odd-plugin"]
    assert words in found["reason"]
    code, out, err = command("plugin", "check", "odd-plugin", capfd=capfd)
    assert (code, out) == (2, "")  # nothing could be checked
    assert err.startswith("kbench: plugin 'odd-plugin' is left out: ")
    assert words in err


def test_a_plugin_for_another_version_of_kbench(install_plugin, capfd):
    path = install_plugin("old_plugin", MAP.format(name="old-map", make="Map"))
    metadata = path.with_name("old_plugin-1.0.dist-info") / "METADATA"
    metadata.write_text(metadata.read_text() + "Requires-Dist: kbench-core>=7,<8\n")
    code, out, _ = command("list", "plugins", capfd=capfd)
    assert code == 0
    (line,) = [each for each in out.splitlines() if "old-plugin" in each]
    assert "LEFT OUT" in line
    assert "7" in line
    code, _, err = command(
        "suite",
        "uci",
        "--add-feature-map",
        "old-map",
        "--dry-run",
        "--dataset",
        "iris",
        capfd=capfd,
    )
    assert code == 2
    assert "--add-feature-map: no feature map is named 'old-map'" in err


def test_a_plugin_without_what_it_needs_names_the_extra(install_plugin, capfd):
    path = install_plugin("needy_plugin", "import no_such_package\n")
    metadata = path.with_name("needy_plugin-1.0.dist-info") / "METADATA"
    metadata.write_text(
        metadata.read_text()
        + 'Provides-Extra: gpu\nRequires-Dist: no-such-package>=1; extra == "gpu"\n'
    )
    code, out, _ = command("list", "plugins", capfd=capfd)
    assert code == 0
    assert "needs the package 'no_such_package', which is not installed" in out
    assert "pip install 'needy-plugin[gpu]'" in out


def test_a_component_without_what_it_needs_fails_before_anything_runs(
    install_plugin, here, store_uri, capfd
):
    install_plugin("lazy_plugin", MAP.format(name="lazy-map", make="'lazy_home:Map'"))
    install_plugin("lazy_home", "import no_such_package\n")
    (here / "mine.toml").write_text(
        'datasets = ["iris"]\nfeature_maps = ["lazy-map"]\nlearners = ["ridge"]\n'
    )
    code, _, err = command("suite", "mine.toml", "--store", store_uri, capfd=capfd)
    assert code == 2
    assert "lazy_home:Map needs the package 'no_such_package', which is not installed" in err
