"""Numbers with units: the same from a file, a frame and a sheet, and in an exported model."""

import numpy as np
import pandas
import pytest

from kbench import Cell, DatasetError, Protocol, Ref
from kbench.registry.callables import resolve
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_files._text_blocks import TextBlocks
from kbench_tables.export.fit import refit
from kbench_tables.export.model import Model
from kbench_tables.export.predicting import predict_file
from kbench_tables.recommend.table_preview import add_preview, preview

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

FEW = Protocol(inner_folds=2, missing="impute_with_indicators")
COLUMNS = ["price", "share", "weight", "length"]


@pytest.fixture(scope="module")
def registry():
    return build(list_plugins())


def numbers(n=80):
    values = np.random.default_rng(0).normal(size=(n, 4)) * [1000, 20, 5, 9000]
    values = values.round(2)
    values[::9, 0] = np.nan
    return values


def table(values):
    """Dirty cells: signs on either side, brackets, zeros without a sign, other blanks."""
    n = len(values)
    price = [
        "" if np.isnan(v) else f"(${-v:,.2f})" if v < 0 else f" $ {v:,.2f}" for v in values[:, 0]
    ]
    return pandas.DataFrame(
        {
            "price": price,
            "share": [f"{v:.2f}{' ' * (i % 2)}%" for i, v in enumerate(values[:, 1])],
            "weight": [f"{v:.2f}\u00a0kg".replace("-", "\u2212") for v in values[:, 2]],
            "length": [f"{v:,.2f}".replace(",", "\u202f") for v in values[:, 3]],
            "mixed": [f"{i % 7} {'kg' if i % 3 else 'g'}" for i in range(n)],
            "y": np.where(np.nan_to_num(values[:, 0]) + 50 * values[:, 1] > 0, "a", "b"),
        }
    )


def stored(frame, folder, form):
    path = folder / f"t.{form}"
    if form == "csv":
        frame.to_csv(path, index=False)
    else:
        getattr(frame, {"parquet": "to_parquet", "xlsx": "to_excel"}[form])(path, index=False)
    return path


def looked_at(path, registry, target="y", **params):
    source = {".csv": "csv", ".parquet": "parquet", ".xlsx": "excel"}[path.suffix]
    ref = Ref(source, {"path": str(path), "target": target, **params}, "t")
    found = preview(ref, registry)
    return found, add_preview(ref, found)


@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx"])
def test_all_formats_have_the_same_numbers(registry, tmp_path, form):
    values = numbers()
    found, ref = looked_at(stored(table(values), tmp_path, form), registry)
    data = resolve(registry.get("dataset", ref.name).load)(**ref.params)
    for place, name in enumerate(COLUMNS):
        at = list(data.feature_names).index(name)
        np.testing.assert_array_equal(np.asarray(data.X)[:, at], values[:, place])
    roles = {role.name: role for role in found.roles}
    assert roles["price"].read_as == "numbers with `$`"
    assert roles["price"].note == "`$` left out, `,` between thousands"
    assert roles["share"].note == "`%` left out, 45 % is 45"
    assert roles["mixed"].read_as.startswith("categories")
    assert "several units" in roles["mixed"].note


def test_a_target_has_a_unit_too(registry, tmp_path):
    values = numbers()
    frame = table(values)
    path = stored(frame[frame["price"] != ""], tmp_path, "csv")
    found, ref = looked_at(path, registry, target="share", task="regression")
    data = resolve(registry.get("dataset", "csv").load)(**ref.params)
    np.testing.assert_array_equal(data.y, values[~np.isnan(values[:, 0]), 1])
    assert found.target.kind == "numbers"
    assert "target 'share': `%` left out, 45 % is 45" in found.warnings


def test_another_text_among_them_is_refused(registry, tmp_path):
    frame = table(numbers())
    frame.loc[30, "share"] = "unknown"
    path = stored(frame, tmp_path, "csv")
    with pytest.raises(DatasetError, match=r"'share' holds numbers with '%', but .*'unknown'"):
        looked_at(path, registry)
    found, _ = looked_at(path, registry, na_values=("unknown",))
    assert next(f for f in found.roles if f.name == "share").read_as == "numbers with `%`"
    found, _ = looked_at(path, registry, categorical=("share",))
    assert next(f for f in found.roles if f.name == "share").read_as.startswith("categories")


def test_an_exported_model_reads_the_same_texts(registry, tmp_path):
    values = numbers()
    path = stored(table(values), tmp_path, "csv")
    _, ref = looked_at(path, registry)
    data = resolve(registry.get("dataset", "csv").load)(**ref.params)
    fitted = refit(Cell(ref, Ref("identity"), Ref("ridge"), FEW), data, registry)
    encoder = fitted.pipeline[0]
    blocks = list(TextBlocks(path))
    np.testing.assert_array_equal(encoder.transform(blocks[0]), np.asarray(data.X))
    plain = pandas.DataFrame(values, columns=COLUMNS).assign(mixed=table(values)["mixed"])
    np.testing.assert_array_equal(encoder.transform(plain), np.asarray(data.X))
    with pytest.raises(ValueError, match=r"'share' must be numbers with '%' .*got '3 kg' in row 1"):
        encoder.transform({**blocks[0], "share": ["3 kg"] * 80})
    # a file with a decimal comma: marks of numbers with units change too
    encoder.read_as(",", " ")
    swapped = {**blocks[0], "price": [p.translate({44: 46, 46: 44}) for p in blocks[0]["price"]]}
    swapped |= {n: [v.replace(".", ",") for v in blocks[0][n]] for n in COLUMNS[1:]}
    np.testing.assert_array_equal(encoder.transform(swapped), np.asarray(data.X))


def test_the_table_of_a_model_with_units_is_predicted_to_a_file(registry, tmp_path):
    frame = table(numbers())
    path = stored(frame, tmp_path, "csv")
    _, ref = looked_at(path, registry)
    data = resolve(registry.get("dataset", "csv").load)(**ref.params)
    cell = Cell(ref, Ref("identity"), Ref("ridge"), FEW)
    fitted = refit(cell, data, registry)
    encoded = fitted.pipeline[0].transform(frame)
    seen = {
        name: {"kind": "number", "low": None, "high": None, "missing": True}
        for name in fitted.pipeline[0].places()
    }
    facts = {"task": "classification", "takes_missing": True, "columns": seen, "cell": "c"}
    model = Model(fitted.pipeline, facts)
    out = tmp_path / "out.csv"
    outcome = predict_file(model, TextBlocks(path), out, ids=["price"])
    assert outcome.n_rows == len(frame)
    assert pandas.read_csv(out)["prediction"].tolist() == list(fitted.pipeline[1:].predict(encoded))
