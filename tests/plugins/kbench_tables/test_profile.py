"""What becomes of the columns of a table."""

import numpy as np
import pandas
import pytest

from kbench import DatasetError
from kbench.tables.table_rows import FrameRows
from kbench.tables.texts import DateColumn
from kbench_tables.profile import ColumnProfile, Params, decide, is_code, repeats

N = 120
RNG = np.random.default_rng(0)
COLUMNS = {
    # name: values, what they are read as, what they become, columns
    "age": (RNG.normal(size=N), "numbers", "number", 1),
    "wage": (
        [None, *RNG.normal(size=N - 1)],
        "numbers",
        "number, and whether it is missing",
        2,
    ),
    "row": (np.arange(N), "row numbers", "left out", 0),
    "customer_id": (RNG.permutation(10**6)[:N], "an identifier", "left out", 0),
    "customerId": (RNG.permutation(10**6)[:N], "an identifier", "left out", 0),
    "paid": (RNG.permutation(10**6)[:N], "numbers", "number", 1),
    "uuid": ([f"u{i}" for i in range(N)], "an identifier", "left out", 0),
    "remark": ([f"text {i}" for i in range(N)], "text", "left out", 0),
    "one": ([1] * N, "a constant", "left out", 0),
    "none": ([None] * N, "nothing", "left out", 0),
    "flag": ([True, False] * 60, "booleans", "2 indicators", 2),
    "city": (["Oslo", "Rome", "Paris"] * 40, "categories (3)", "3 indicators", 3),
    "town": (
        [None, *["Oslo", "Rome", "Paris"] * 40][:N],
        "categories (3)",
        "3 indicators, and whether it is missing",
        4,
    ),
    "zip": (
        [f"Z{i % 30}" for i in range(N)],
        "categories (30)",
        "target mean by category",
        1,
    ),
    "size": (["small", "large", "medium"] * 40, "categories (3)", "3 indicators", 3),
    "tags": (
        ["a;b", "b;c", "a", "c", "a;c", "b;d"] * 20,
        "categories (6)",
        "6 indicators",
        6,
    ),
    "joined": (
        list(pandas.date_range("2020-01-01", periods=N, freq="9D").strftime("%d.%m.%Y")),
        "dates",
        "days since 1970, sine and cosine of the year and the week",
        5,
    ),
    "seen": (
        pandas.date_range("2020-01-01", periods=N, freq="h"),
        "dates",
        "days since 1970, sine and cosine of the day",
        3,
    ),
}


def profiles_of(frame, block=N, date=()):
    profiles = {name: ColumnProfile(name, dict(date).get(name)) for name in frame.columns}
    for start in range(0, len(frame), block):
        FrameRows(frame.iloc[start : start + block].copy(), "mine").scan(profiles)
    return profiles


def roles(frame, **asked):
    names = [*frame.columns, "y"]
    decided = decide(profiles_of(frame), names, Params("mine", "y", **asked))
    return {role.name: role for role in decided.roles}, decided


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("block", [7, N])
def test_each_column_has_a_fate(name, block):
    values, read_as, encoded_as, n_columns = COLUMNS[name]
    frame = pandas.DataFrame({name: values, "other": RNG.normal(size=N)})
    decided = decide(profiles_of(frame, block), [*frame.columns, "y"], Params("mine", "y"))
    role = decided.roles[0]
    if name == "seen" and block == 7:  # no week is over, but the values are the same
        assert role.read_as == "dates"
    assert (role.read_as, role.encoded_as, role.n_columns) == (read_as, encoded_as, n_columns)
    assert [each.name for each in decided.roles] == [name, "other", "y"]
    assert (name in decided.drop) == (encoded_as == "left out")
    assert (name in decided.target_encode) == (name == "zip")
    dated = [spec.partition("=")[0] for spec in decided.date_formats]
    assert dated == [name] * (read_as == "dates")


def test_one_message_names_all_columns_with_marks_of_missing_values():
    numbers = [*map(str, RNG.normal(size=N - 2))]
    frame = pandas.DataFrame(
        {"a": [*numbers, "n.a.", "k.A."], "b": [*numbers, "1", "n.a."], "c": [*numbers, "1", "2,5"]}
    )
    taken = ("drop", "categorical", "na_values")
    with pytest.raises(DatasetError) as error:
        roles(frame, taken=taken)
    assert str(error.value).startswith(
        "mine: column 'a' holds numbers, but it also contains 'k.A.'; likewise 'b' ('n.a.'). "
        "Correct the file, or give `na_values=['k.A.', 'n.a.']` (missing), "
        "`drop=['a', 'b']` (drop the columns)"
    )
    with pytest.raises(DatasetError, match=r"'c' holds numbers, .* another decimal mark, '2,5'"):
        roles(frame, drop=["a", "b"])


def test_zip_codes_and_repeated_names_are_noticed():
    values = [10115 + 37 * (i % 60) for i in range(180)]
    profiles = profiles_of(
        pandas.DataFrame(dict.fromkeys(("plz", "price", "patient"), values)), 180
    )
    assert [name for name in profiles if is_code(profiles[name])] == ["plz"]
    unknown = profiles_of(pandas.DataFrame({"plz": [0, *values], "age": [0, *values]}), 181)
    assert [name for name in unknown if is_code(unknown[name])] == ["plz"]
    assert [name for name in profiles if repeats(profiles[name])] == ["patient"]


@pytest.mark.parametrize("name", ["plz", "Kundenplz", "PLZ_Objekt", "zip code"])
@pytest.mark.parametrize("values", [[10115, 20095, 80331], [7, *range(1067, 99999, 5000)]])
def test_few_codes_and_codes_with_leading_zeros_are_noticed(name, values):
    (profile,) = profiles_of(pandas.DataFrame({name: values * 9}), len(values)).values()
    assert is_code(profile)
    (profile,) = profiles_of(pandas.DataFrame({name: [1, 2, 3000]}), 3).values()
    assert not is_code(profile)


def test_columns_with_infinite_values_are_named_in_one_message():
    frame = pandas.DataFrame({"a": [np.inf, 1] * 60, "b": np.arange(N) % 7, "c": [-np.inf] * N})
    with pytest.raises(DatasetError) as error:
        roles(frame)
    assert str(error.value) == (
        "mine: infinite values, or numbers above 1e308, in 'a', 'c'. Correct the file, or leave "
        "them out: `drop=['a', 'c']`"
    )
    roles(frame, drop=["a", "c"])


def test_a_column_to_keep_is_kept():
    names = ("row", "customer_id", "remark", "one", "age")
    frame = pandas.DataFrame({name: COLUMNS[name][0] for name in names})
    found, decided = roles(frame, keep=names)
    assert decided.drop == ()
    assert [found[name].read_as for name in names[:2]] == ["numbers", "numbers"]
    assert decided.target_encode == ("remark",)
    assert decided.categorical == ("remark",)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([*map(str, RNG.normal(size=N - 1)), "n/k"], "holds numbers, but it also contains 'n/k'"),
        ([*map(str, RNG.normal(size=N - 1)), "1,5"], "another decimal mark, '1,5'"),
        (
            [*pandas.date_range("2020-01-01", periods=N - 1).strftime("%Y-%m-%d"), "soon"],
            "holds dates (ISO8601), but it also contains 'soon'",
        ),
    ],
)
def test_a_mistake_among_numbers_or_dates_is_not_a_category(values, words):
    frame = pandas.DataFrame({"a": values, "b": RNG.normal(size=N)})
    with pytest.raises(DatasetError) as error:
        roles(frame)
    assert words in str(error.value)
    assert "`drop='a'` (drop the column) or `categorical='a'` (categorical)" in str(error.value)
    found, _ = roles(frame, categorical=["a"])
    assert found["a"].read_as.startswith("categories")


def test_few_numbers_beside_texts_are_categories():
    found, _ = roles(pandas.DataFrame({"children": ["0", "1", "2", "3+"] * 30}))
    assert found["children"].encoded_as == "4 indicators"


def test_a_table_of_columns_that_say_nothing_is_refused():
    with pytest.raises(
        DatasetError, match=r"there is no feature column: 'one' \(a constant\) is left out"
    ):
        roles(pandas.DataFrame({"one": [1] * N}))


def test_dates_that_are_asked_for_must_be_dates():
    frame = pandas.DataFrame({"joined": COLUMNS["joined"][0]})
    date = {"joined": DateColumn("joined", "%Y-%m-%d")}
    profiles = profiles_of(frame, date=date)
    with pytest.raises(DatasetError, match="has values that are not dates in the format %Y-%m-%d"):
        decide(profiles, ["joined", "y"], Params("mine", "y", date_formats=date))


def test_dates_in_several_formats_are_named():
    days = pandas.date_range("2020-01-01", periods=N, freq="9D")
    mixed = [f"{day:%d.%m.%Y}" if i % 2 else f"{day:%Y-%m-%d}" for i, day in enumerate(days)]
    profile = ColumnProfile("mixed")
    profile.add(pandas.Series(mixed))
    asked = Params("mine", "y")
    (role, _) = decide({"mixed": profile, "n": of_numbers()}, ["mixed", "n"], asked).roles
    assert role.encoded_as == "left out"
    assert "dates in several formats, '" in role.note and "(%d.%m.%Y)" in role.note


def test_a_text_among_few_numbers_is_noticed():
    roles = []
    for column in (["0", "1", "2", "3", "4", "n/v"], ["S", "M", "L", "1", "2", "3"]):
        profile = ColumnProfile("floor")
        profile.add(pandas.Series(column * 20))
        roles += decide({"floor": profile}, ["floor", "y"], Params("mine", "y")).roles[:1]
    assert [role.read_as for role in roles] == ["categories (6)"] * 2
    assert roles[0].note == "numbers but 'n/v'; `na_values` makes it missing"
    assert not roles[1].note


def of_numbers():
    profile = ColumnProfile("n")
    profile.add(pandas.Series(RNG.normal(size=N)))
    return profile
