"""ARFF files: what is read, and which line is wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbench import DatasetError
from kbench.tables.arff import read_arff


def _arff(tmp_path, text):
    file = tmp_path / "data.arff"
    file.write_text(text, encoding="utf-8")
    return read_arff(file, "data")


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("1,a\n2\n", "line 5: it has 1 values; 2 are declared"),
        ("1,a\r2,b\n", "line 4: it has 3 values; 2 are declared"),
        ("1,a\n2,b,3\n", "line 5: it has 3 values; 2 are declared"),
        ("1,a\n\n% no\nx,b\n", "line 7: 'x' in the numeric column 'n'"),
        ("1,c\n", "line 4: 'c' is not among the declared values of 'k'"),
        ("1,'a\n", "line 4"),
        ("{0 1}\n{5 1}\n", "line 5: it gives a value for column 5 of 2"),
        ("{0 1}\n{0 1, 0 2}\n", "line 5: it gives a value for column 0 twice"),
        ("{0 1 1 a}\n{, 0 1}\n", "line 4: '0 1 1 a' is not 'index value'"),
        ("{0 1}\n1,a\n", "line 5: it is not of the form"),
        ("{99999999999999999999 1}\n", "line 4: it gives a value for column 9+ of 2"),
        ("{0 x}\n", "line 4: 'x' in the numeric column"),
        ("", "no rows"),
    ],
)
def test_mistakes_name_the_line(tmp_path, body, line):
    with pytest.raises(DatasetError, match=line):
        _arff(tmp_path, "@attribute n numeric\n@attribute k {a,b}\n@data\n" + body)


@pytest.mark.parametrize(
    "text",
    ["", "hello", "@relation x\n@data\n1\n", "@attribute a relational\n@data\n", "@attribute x\n"],
)
def test_what_is_no_arff_file(tmp_path, text):
    with pytest.raises(DatasetError, match="data:"):
        _arff(tmp_path, text)


def test_absurd_headers_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("kbench.tables.arff.MAX_COLUMNS", 10)
    text = "".join(f"@attribute a{j} numeric\n" for j in range(11)) + "@data\n"
    with pytest.raises(DatasetError, match="more than 10 attributes"):
        _arff(tmp_path, text)


_names = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="\x85\ufeff"),
    min_size=1,
    max_size=6,
).filter(lambda text: text == text.strip() and text not in ("?",))


@given(data=st.data())
def test_quoted_and_plain_files_are_read_alike(data, tmp_path_factory):
    categories = data.draw(st.lists(_names, min_size=2, max_size=4, unique=True))
    numbers = data.draw(
        st.lists(
            st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
            min_size=1,
            max_size=6,
        )
    )
    codes = data.draw(
        st.lists(
            st.one_of(st.none(), st.integers(0, len(categories) - 1)),
            min_size=len(numbers),
            max_size=len(numbers),
        )
    )

    def quoted(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = ["@attribute 'x y' real", f"@attribute k {{{', '.join(map(quoted, categories))}}}"]
    for number, code in zip(numbers, codes, strict=True):
        value = "?" if code is None else quoted(categories[code])
        lines.append(f"{'?' if number is None else repr(number)}, {value}")
    lines.insert(2, "@data")
    table = _arff(tmp_path_factory.mktemp("arff"), "\n".join(lines))
    np.testing.assert_array_equal(
        table.columns[0].values, [np.nan if each is None else each for each in numbers]
    )
    assert table.columns[1].categories == categories
    assert table.columns[1].values.tolist() == [-1 if code is None else code for code in codes]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
            st.sampled_from([None, "a", "b b"]),
        ),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([1, 64]),
)
def test_quotes_and_blocks_do_not_change_values(tmp_path_factory, rows, n_values):
    import kbench.tables.arff as module

    head = "@attribute x real\n@attribute k {a,b b}\n@attribute s string\n@data\n"

    def written(mark):
        text = head
        for number, category in rows:
            name = "?" if category is None else f"{mark}{category}{mark}"
            text += " , ".join(["?" if number is None else str(number), name, name]) + "\n"
        return text

    folder = tmp_path_factory.mktemp("arff")
    plain = _arff(folder, written(""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "VALUES", n_values)
        others = [_arff(folder, written(mark)) for mark in ("", "'")]
    for other in others:
        for one, two in zip(plain.columns, other.columns, strict=True):
            if one.kind == "string":
                assert one.values == two.values
            else:
                np.testing.assert_array_equal(one.values, two.values)


@given(
    st.lists(
        st.dictionaries(st.integers(0, 4), st.floats(allow_nan=False, allow_infinity=False)),
        min_size=1,
        max_size=8,
    )
)
def test_sparse_files_keep_every_value(tmp_path_factory, rows):
    text = "".join(f"@attribute a{j} numeric\n" for j in range(5)) + "@data\n"
    expected = np.zeros((len(rows), 5))
    for i, row in enumerate(rows):
        text += "{" + ", ".join(f"{j} {row[j]!r}" for j in row) + "}\n"
        for j, value in row.items():
            expected[i, j] = value
    table = _arff(tmp_path_factory.mktemp("arff"), text)
    np.testing.assert_array_equal(table.sparse.toarray(), expected)


@pytest.mark.parametrize("body", ["1,a\r\n?,b\r\n", "1,a\r\n% x\r\n?,b\r\n", "1 ,\ta\n\n ? , b"])
def test_line_ends_and_white_space_do_not_matter(tmp_path, body):
    file = tmp_path / "data.arff"
    header = "\ufeff@attribute n numeric\r\n@ATTRIBUTE k { a , b }\r\n@DATA\r\n"
    file.write_bytes((header + body).encode())
    table = read_arff(file, "data")
    np.testing.assert_array_equal(table.columns[0].values, [1, np.nan])
    assert table.columns[1].values.tolist() == [0, 1]
