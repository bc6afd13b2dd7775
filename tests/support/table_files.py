"""Thirty small files in all formats, and what of a dataset decides a number."""

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pandas

N = 48
ROWS = range(N)
LABELS = ["yes" if i * 7 % 5 < 2 else "no" for i in ROWS]
CITIES = ["Oslo", "Rome", "Köln", "San José"]


def _x(i):
    return (i * 37 % 101) / 8 - 3


def _plain(header, row, delimiter=","):
    return "\n".join([delimiter.join(header), *(delimiter.join(row(i)) for i in ROWS)]) + "\n"


def _frame():
    return pandas.DataFrame(
        {
            "a": [_x(i) for i in ROWS],
            "b": np.array([i * i % 17 for i in ROWS], np.int16),
            "city": [CITIES[i % 4] if i % 9 else None for i in ROWS],
            "when": pandas.date_range("2023-01-30", periods=N, freq="37h"),
            "flag": [i % 3 == 0 for i in ROWS],
            "y": LABELS,
        }
    )


def _texts():
    """Return the contents of the files that are texts, with parameters of their sources."""
    x = [f"{_x(i):.3f}" for i in ROWS]
    big = [f"{1000 * (_x(i) + 4):,.2f}" for i in ROWS]
    european = [v.translate({44: 46, 46: 44}) for v in big]
    day = [f"{1 + i * 5 % 28:02d}.{1 + i % 12:02d}.{2020 + i % 4}" for i in ROWS]
    iso = [f"{2020 + i % 4}-{1 + i % 12:02d}-{1 + i * 5 % 28:02d}" for i in ROWS]
    wide = [f"w{j}" for j in range(120)]
    sparse = [f"{2 * i + 1 if i % 2 else -i} 1:{x[i]} {2 + i % 5}:1 9:{i}.5" for i in ROWS]
    arff = "@relation r\n@attribute a numeric\n@attribute 'b c' {x,'y z',w}\n"
    arff += "@attribute s string\n@attribute y {no,yes}\n@data\n"
    sparse_arff = "@relation r\n@attribute a numeric\n@attribute c {x,z}\n@attribute d numeric\n"
    sparse_arff += "@attribute y {no,yes}\n@data\n"
    beyond = [str(2**63 + 2**50 * i) for i in ROWS]
    words, seconds = ["x", "'y z'", "?"], ["", "1 z, "]
    pair = ["a,y", *(f"{x[i]},{LABELS[i]}" for i in ROWS)]
    return {
        "clean.csv": (_plain(["a", "b", "y"], lambda i: [x[i], str(i % 7), LABELS[i]]), {}),
        "regression.csv": (_plain(["a", "y"], lambda i: [str(i * 3 % 11), x[i]]), {}),
        "european.csv": (_plain(["a", "y"], lambda i: [european[i], LABELS[i]], ";"), {}),
        "decimals.csv": (
            _plain(["a", "b", "y"], lambda i: [x[i].replace(".", ","), str(i), LABELS[i]], ";"),
            {},
        ),
        "thousands.csv": (_plain(["a", "y"], lambda i: [f'"{big[i]}"', LABELS[i]]), {}),
        "swiss.csv": (
            _plain(["a", "y"], lambda i: [big[i].replace(",", "'"), LABELS[i]]),
            {},
        ),
        "blanks.csv": (
            _plain(["a", "y"], lambda i: [big[i].replace(",", "\u202f"), LABELS[i]], "\t"),
            {"thousands": " "},
        ),
        "tabs.tsv": (_plain(["a", "c", "y"], lambda i: [x[i], CITIES[i % 4], LABELS[i]], "\t"), {}),
        "pipes.csv": (_plain(["a", "y"], lambda i: [x[i], LABELS[i]], "|"), {}),
        "dated.csv": (_plain(["when", "y"], lambda i: [day[i], LABELS[i]]), {}),
        "iso.csv": (_plain(["when", "a", "y"], lambda i: [iso[i], x[i], LABELS[i]]), {}),
        "compact.csv": (
            _plain(["when", "y"], lambda i: [iso[i].replace("-", ""), LABELS[i]]),
            {"date_formats": ("when=%Y%m%d|year|week",)},
        ),
        "units.csv": (
            _plain(
                ["price", "share", "kg", "y"],
                lambda i: [
                    f'"({"$" + big[i]})"' if i % 5 else f'"${big[i]}"',
                    f"{i * 3 % 100} %",
                    f"{x[i]} kg".replace("-", "\u2212"),
                    LABELS[i],
                ],
            ),
            {},
        ),
        "euros.csv": (_plain(["a", "y"], lambda i: [f"{european[i]} €", x[i]], ";"), {}),
        "unit_target.csv": (
            _plain(["a", "y"], lambda i: [str(i % 7), f"{x[i]} %"]),
            {"task": "regression"},
        ),
        "wide.csv": (
            _plain([*wide, "y"], lambda i: [*(str(i * j % 13) for j in range(120)), x[i]]),
            {},
        ),
        "missing.csv": (
            _plain(
                ["a", "b", "c", "y"],
                lambda i: [
                    ["", "NA", "?", "nan", x[i]][i % 5],
                    ["-", x[i]][i % 2],
                    CITIES[i % 4] if i % 6 else " null ",
                    LABELS[i],
                ],
            ),
            {"na_values": ("-",)},
        ),
        "unlabeled.csv": (
            _plain(["a", "y"], lambda i: [x[i], LABELS[i] if i % 8 else ""]),
            {},
        ),
        "quoted.csv": (
            _plain(
                ['"a, b"', '"c"', "y"],
                lambda i: [f' "{x[i]}" ', f'"{CITIES[i % 3]}, {i % 2}\n"', f'"{LABELS[i]}"'],
            ),
            {},
        ),
        "titled.csv": (
            "# a title\n# of two lines\n" + _plain(["a", "y"], lambda i: [x[i], LABELS[i]]),
            {},
        ),
        "sep.csv": ("sep=;\n" + _plain(["a", "y"], lambda i: [x[i], LABELS[i]], ";"), {}),
        "mixed.csv": (
            _plain(
                ["id", "a", "t", "n", "k", "y"],
                lambda i: [
                    str(i + 1),
                    x[i] if i % 2 else str(i),
                    ["True", "False"][i % 2],
                    str(i % 3),
                    "same",
                    LABELS[i],
                ],
            ),
            {"categorical": ("n",)},
        ),
        "large.csv": (
            _plain(
                ["a", "b", "y"],
                lambda i: [beyond[i], str(2**62 + 2**40 * (i % 5)), LABELS[i]],
            ),
            {},
        ),
        "by_target.csv": (
            _plain(
                ["c", "w", "y"],
                lambda i: [f"c{i * i % 24}", f"{1 + i % 3}", x[i]],
            ),
            {"target_encode": ("c",), "weight": "w"},
        ),
        "grouped.csv": (
            _plain(["g", "a", "y"], lambda i: [f"g{i % 8}", x[i], LABELS[i]]),
            {"groups": "g"},
        ),
        "rows.svmlight": ("\n".join(sparse) + "\n", {"task": "regression"}),
        "dense.arff": (
            arff + "\n".join(f"{x[i]},{words[i % 3]},t{i % 2},{LABELS[i]}" for i in ROWS),
            {},
        ),
        "sparse.arff": (
            sparse_arff + "\n".join(f"{{0 {x[i]}, {seconds[i % 2]}3 {LABELS[i]}}}" for i in ROWS),
            {},
        ),
        "packed.csv.gz": ("\n".join(pair) + "\n", {}),
    }


def write_all(folder: Path) -> dict[str, dict]:
    """Write all files; return the parameters of their sources by their names."""
    given = {}
    for name, (text, params) in _texts().items():
        content = text.encode()
        if name.endswith(".gz"):
            content = gzip.compress(content, mtime=0)
        (folder / name).write_bytes(content)
        given[name] = params
    latin = _plain(["größe", "ort", "y"], lambda i: [str(i % 9), CITIES[i % 4], LABELS[i]])
    (folder / "latin.csv").write_bytes(latin.encode("cp1252"))
    wide = _plain(["a", "ort", "y"], lambda i: [str(i % 9), CITIES[i % 4], LABELS[i]])
    (folder / "utf16.csv").write_bytes(wide.encode("utf-16"))
    frame = _frame()
    frame.to_parquet(folder / "typed.parquet", index=False)
    frame.astype({"city": "category", "a": np.float32}).drop(columns="when").to_parquet(
        folder / "categories.parquet", index=False
    )
    frame.to_excel(folder / "sheet.xlsx", index=False)
    others = ("latin.csv", "utf16.csv", "typed.parquet", "categories.parquet", "sheet.xlsx")
    return given | {name: {} for name in others}


def digest_of(data) -> str:
    """Return the digest of all that decides a number, and of what is shown."""
    sparse = hasattr(data.X, "indptr")
    arrays = [data.X.data, data.X.indices, data.X.indptr] if sparse else [data.X]
    # sines and cosines may differ in the last bit from machine to machine
    arrays = [np.round(a, 9) + 0.0 if "sine" in str(data.feature_names) else a for a in arrays]
    found = hashlib.sha256()
    for each in (*arrays, data.y, data.sample_weight, data.row_ids):
        array = np.asarray(() if each is None else each)
        found.update(f"{array.dtype} {array.shape} ".encode() + array.tobytes())
    for split in data.splits:
        found.update(np.asarray(split.train).tobytes() + np.asarray(split.test).tobytes())
    names = (data.feature_names, data.feature_kinds, data.target_names)
    facts = [*map(list, names), data.name, data.task, data.source, data.dataset_family]
    found.update(json.dumps(facts).encode())
    return found.hexdigest()[:16]
