"""Twelve tables as people have them, made by frozen seeds: training rows and held-out rows.

`make` returns a table whose training rows are written as a person's program would write them: with
titles, totals, notes, decimal commas, currencies, duplicates. The held-out rows are as a database
would hand them over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

Rng = np.random.Generator


@dataclass
class Table:
    """Rows of a table, its metric, and how its file is written.

    `options` are those of `kbench recommend` that a person would give, `group` and `order` the
    columns whose values the splits keep apart or in order.
    """

    name: str
    train: pd.DataFrame
    test: pd.DataFrame
    metric: str
    write: Callable[[pd.DataFrame, Path], Path]
    options: Sequence[str] = field(default=())
    group: str = ""
    order: str = ""


def write_plain(frame: pd.DataFrame, folder: Path) -> Path:
    """Write a CSV file as pandas does."""
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    return path


def write_comma(frame: pd.DataFrame, folder: Path) -> Path:
    """Write a CSV file as a program does that is set to German."""
    path = folder / "table.csv"
    frame.to_csv(path, index=False, sep=";", decimal=",", encoding="utf-8-sig")
    return path


def write_export(frame: pd.DataFrame, folder: Path) -> Path:
    """Write a German CSV file with a separator line, comments, totals and notes."""
    path = write_comma(frame, folder)
    rows = path.read_text(encoding="utf-8-sig").splitlines()
    totals = ["Summe", *[""] * (frame.shape[1] - 2)]
    totals.append(f"{frame['target'].sum():.2f}".replace(".", ","))
    lines = ["sep=;", "# export of the shop", "# all branches", *rows, ";".join(totals)]
    lines += ["", "Source: own data. Without cancelled orders."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


UPPER_NAMES = {"temperature": "weather", "wind": "weather", "people": "use", "hours": "use"}
"""Names above those of columns of a sheet."""


def write_sheet(frame: pd.DataFrame, folder: Path) -> Path:
    """Write an Excel sheet with a title, two rows of names, a row of totals, and a note."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Energy of the buildings, 2019 to 2024"])
    sheet.append([])
    uppers = [UPPER_NAMES.get(name, "") for name in frame]
    sheet.append(uppers)
    for upper in dict.fromkeys(filter(None, uppers)):
        places = [place for place, each in enumerate(uppers, start=1) if each == upper]
        sheet.merge_cells(None, 3, places[0], 3, places[-1])
    sheet.append(list(frame))
    for row in frame.itertuples(index=False):
        sheet.append([None if value != value else value for value in row])
    sheet.append(["Total", *[None] * (frame.shape[1] - 2), float(frame["target"].sum())])
    sheet.append([])
    sheet.append(["Source: own meters."])
    path = folder / "table.xlsx"
    book.save(path)
    return path


def _split(frame: pd.DataFrame, rng: Rng, n_test: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    frame = frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)
    return frame.iloc[n_test:], frame.iloc[:n_test]


def _numbers(rng: Rng, n: int, n_columns: int, decimals: int = 3) -> pd.DataFrame:
    values = rng.normal(size=(n, n_columns)).round(decimals)
    return pd.DataFrame(values, columns=[f"x{j}" for j in range(n_columns)])


def _above(rng: Rng, scores: np.ndarray, share: float, noise: float) -> np.ndarray:
    scores = scores + rng.normal(0, noise, len(scores))
    return np.where(scores > np.quantile(scores, 1 - share), "yes", "no")


def patients(rng: Rng) -> Table:
    """Five in a hundred visits are positive; the held-out visits are of other patients."""
    n, n_patients = 9000, 900
    patient = rng.integers(n_patients, size=n)
    level = rng.normal(size=(n_patients, 8))[patient]
    values = level + rng.normal(0, 0.5, (n, 8))
    frame = pd.DataFrame(values.round(2), columns=[f"lab{j}" for j in range(8)])
    frame["sex"] = np.array(["f", "m"])[patient % 2]
    frame.loc[rng.random(n) < 0.15, "lab3"] = np.nan
    score = values[:, 0] + values[:, 1] * (patient % 2) - 0.5 * values[:, 2]
    frame["target"] = _above(rng, score + level[:, 4], 0.05, 1.5)
    frame.insert(0, "patient", patient + 1000)
    held_out = patient >= 600
    train, test = frame[~held_out], frame[held_out]
    options = ("--group", "patient")
    return Table("patients", train, test, "roc_auc", write_plain, options, group="patient")


def orders(rng: Rng) -> Table:
    """Four classes of 72, 20, 6 and 2 in a hundred rows."""
    frame = _numbers(rng, 20_000, 12)
    score = np.sin(2 * frame.x0) + frame.x1 * frame.x2 + 0.3 * frame.x3
    score += rng.normal(0, 0.5, len(frame))
    cuts = np.quantile(score, [0.72, 0.92, 0.98])
    frame["channel"] = rng.choice(["shop", "phone", "web"], len(frame))
    frame["target"] = np.array(["paid", "late", "open", "lost"])[np.searchsorted(cuts, score)]
    return Table("orders", *_split(frame, rng, 6000), "balanced_accuracy", write_plain)


def demand(rng: Rng) -> Table:
    """Two years of demand with a trend and seasons, to be predicted for the months that follow."""
    n = 6000
    day = np.sort(rng.integers(0, 1000, n))
    frame = pd.DataFrame({"date": pd.Timestamp("2021-01-01") + pd.to_timedelta(day, unit="D")})
    frame["price"] = (10 + 0.01 * day + rng.normal(0, 1, n)).round(2)
    frame["temperature"] = (10 - 10 * np.cos(day / 58) + rng.normal(0, 3, n)).round(1)
    frame["store"] = rng.choice([f"store {k}" for k in range(12)], n)
    size = frame.store.str[6:].astype(int) * 4
    frame["target"] = 100 + 0.08 * day + size + 2 * frame.temperature - 4 * frame.price
    frame["target"] = (frame.target + rng.normal(0, 6, n)).round(1)
    frame["date"] = frame.date.dt.strftime("%Y-%m-%d")
    options = ("--time-column", "date")
    train, test = frame[:4500], frame[4500:]
    return Table("demand", train, test, "rmse", write_plain, options, order="date")


def energy(rng: Rng) -> Table:
    """A sheet with a title, two rows of names, a total and a note."""
    n = 3000
    frame = pd.DataFrame({"building": rng.choice([f"B{k:02}" for k in range(30)], n)})
    frame["temperature"] = rng.normal(12, 8, n).round(1)
    frame["wind"] = rng.gamma(2, 2, n).round(1)
    frame["people"] = rng.integers(1, 200, n)
    frame["hours"] = rng.integers(4, 24, n)
    cold = np.maximum(0, 18 - frame["temperature"])
    frame["target"] = 20 + cold * (1 + 0.1 * frame["wind"]) * 2
    frame["target"] += 0.05 * frame["people"] * frame["hours"] + rng.normal(0, 8, n)
    frame["target"] = frame.target.round(1)
    return Table("energy", *_split(frame, rng, 1000), "rmse", write_sheet)


def shop(rng: Rng) -> Table:
    """A German CSV file with a separator line, comments, totals and a note."""
    n = 5000
    frame = pd.DataFrame({"branch": rng.choice([f"Filiale {k}" for k in range(25)], n)})
    for j in range(6):
        frame[f"k{j}"] = rng.gamma(2, 3, n).round(2)
    frame["target"] = (3 * frame.k0 + frame.k1 * frame.k2 + rng.normal(0, 5, n)).round(2)
    return Table("shop", *_split(frame, rng, 1600), "rmse", write_export)


def wide(rng: Rng) -> Table:
    """More columns than rows, of which twenty say something."""
    frame = _numbers(rng, 1200, 3000, 2)
    score = frame.iloc[:, :20].sum(axis=1).to_numpy()
    frame = frame.assign(target=_above(rng, score, 0.4, 2.0))
    return Table("wide", *_split(frame, rng, 400), "accuracy", write_plain)


def prices(rng: Rng) -> Table:
    """Prices over three orders of magnitude."""
    n = 6000
    frame = _numbers(rng, n, 5, 2)
    frame["area"] = rng.gamma(5, 20, n).round()
    frame["town"] = rng.choice([f"T{k}" for k in range(40)], n)
    level = rng.normal(0, 0.5, 40)[frame.town.str[1:].astype(int)]
    log = 7 + 0.01 * frame.area + 0.5 * frame.x0 + level + rng.normal(0, 0.4, n)
    frame["target"] = np.exp(log).round()
    return Table("prices", *_split(frame, rng, 2000), "rmse", write_plain)


def categories(rng: Rng) -> Table:
    """A city of 800 and a product of 150 decide, beside a few numbers."""
    n = 12_000
    frame = _numbers(rng, n, 3, 2)
    city, product = (np.minimum(rng.zipf(1.3, n), most) for most in (800, 150))
    frame.insert(0, "city", [f"city {k}" for k in city])
    frame.insert(1, "product", [f"P-{k:03}" for k in product])
    score = rng.normal(0, 1, 801)[city] + rng.normal(0, 1, 151)[product] + 0.5 * frame.x0
    frame["target"] = _above(rng, score.to_numpy(), 0.3, 0.7)
    return Table("categories", *_split(frame, rng, 4000), "roc_auc", write_plain)


def duplicates(rng: Rng) -> Table:
    """A third of the training rows are in the file two or three times."""
    frame = _numbers(rng, 4000, 10, 1)
    score = (frame.x0 * frame.x1 + frame.x2).to_numpy()
    frame["target"] = _above(rng, score, 0.4, 0.8)
    train, test = _split(frame, rng, 1300)
    again = train.sample(1500, replace=True, random_state=0)
    return Table("duplicates", pd.concat([train, again]), test, "accuracy", write_plain)


def leak(rng: Rng) -> Table:
    """A column that is filled in after the outcome is known: held-out rows lack it."""
    n = 8000
    frame = _numbers(rng, n, 8, 2)
    frame["target"] = _above(rng, (frame.x0 + frame.x1 * frame.x2).to_numpy(), 0.3, 0.7)
    known = (frame.target == "yes") & (rng.random(n) < 0.97)
    frame.insert(3, "refund", np.where(known, rng.gamma(2, 30, n).round(2), np.nan))
    train, test = _split(frame, rng, 2600)
    return Table("leak", train, test.assign(refund=np.nan), "roc_auc", write_plain)


def customers(rng: Rng) -> Table:
    """Ids, dates, amounts of money, per cents, marks of missing values, and `inf`."""
    n = 7000
    frame = _numbers(rng, n, 3, 2)
    days = rng.integers(0, 2000, n)
    income = rng.lognormal(10, 0.5, n)
    joined = pd.Series(pd.Timestamp("2017-01-01") + pd.to_timedelta(days, unit="D"))
    score = 0.6 * np.log(income) + 0.0006 * days + frame.x0 * (frame.x1 > 0)
    frame.insert(0, "customer_id", rng.permutation(n) + 100_000)
    frame["joined"] = joined.dt.strftime("%d.%m.%Y")
    frame["income"] = [f"{value:.0f}" for value in income]
    frame["plan"] = rng.choice(["basic", "plus", "pro"], n, p=[0.6, 0.3, 0.1])
    frame.loc[rng.random(n) < 0.1, "income"] = "n/a"
    frame.loc[rng.random(n) < 0.01, "x2"] = np.inf
    frame["target"] = _above(rng, score.to_numpy(), 0.15, 0.5)
    return Table("customers", *_split(frame, rng, 2300), "roc_auc", write_plain)


def codes(rng: Rng) -> Table:
    """Zip codes and other codes that look like numbers, and counts as the target."""
    n = 9000
    zips = rng.integers(10_000, 99_999, 60)
    place, kind = rng.integers(60, size=n), rng.choice([3, 7, 11, 20, 99], n)
    frame = pd.DataFrame({"zip": zips[place], "kind": kind, **_numbers(rng, n, 4, 2)})
    effect = dict(zip([3, 7, 11, 20, 99], [0.5, -0.5, 0.8, 0.0, -1.0], strict=True))
    rate = 1 + rng.normal(0, 0.6, 60)[place] + frame.kind.map(effect) + 0.4 * frame.x0
    frame["target"] = rng.poisson(np.exp(np.minimum(rate, 4)))
    options = ("--task", "regression")
    return Table("codes", *_split(frame, rng, 3000), "rmse", write_plain, options)


MAKERS: dict[str, Callable[[Rng], Table]] = {
    make.__name__: make
    for make in (
        *(patients, orders, demand, energy, shop, wide),
        *(prices, categories, duplicates, leak, customers, codes),
    )
}


def make(name: str, seed: int = 0) -> Table:
    """Return the table of a name; a seed gives the same one again."""
    return MAKERS[name](np.random.default_rng([seed, *name.encode()]))
