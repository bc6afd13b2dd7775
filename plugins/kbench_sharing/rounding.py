"""Rounding of numbers that are shared: exact where they are counts, else far below their noise."""

from __future__ import annotations

from collections.abc import Mapping

from kbench.records import DEFAULT

TIME_DIGITS = 3
"""Significant digits of times: those of one machine vary by several per cent."""

MEASURE_DIGITS = 7
"""Significant digits of measures that are not shares of rows.

A sum in another order may change a measure by a millionth (`kbench_sharing.agreement`).
"""

_TIMES = ("_s",)
_ROWS = ("n_test", "n_train")


def of_time(seconds: float) -> float:
    """Round a time.

    >>> of_time(0.0123456), of_time(1234.5)
    (0.0123, 1230.0)
    """
    return float(f"{seconds:.{TIME_DIGITS}g}")


def of_value(value: float) -> float:
    """Round a measure that is not a share of rows.

    >>> of_value(0.12345678912345)
    0.1234568
    """
    return float(f"{value:.{MEASURE_DIGITS}g}")


def of_measures(measures: Mapping[str, float]) -> dict[str, float]:
    """Round measures of a split; shares of its test or training rows stay as they are.

    >>> of_measures({"accuracy": 29 / 30, "n_test": 30.0, "log_loss": 1 / 7})
    {'accuracy': 0.9666666666666667, 'n_test': 30.0, 'log_loss': 0.1428571}
    """
    rows = [measures[name] for name in _ROWS if measures.get(name, 0.0) > 0]
    errors = {
        1.0 - measures[name] for name in ("accuracy", f"{DEFAULT}accuracy") if name in measures
    }
    return {
        name: of_time(value)
        if name.endswith(_TIMES)
        else value
        if value in errors or any(is_share(value, n) for n in rows)
        else of_value(value)
        for name, value in measures.items()
    }


def is_share(value: float, rows: float) -> bool:
    """Tell whether a value is exactly a number of rows over a number of rows."""
    return 0.0 <= value <= 1.0 and rows % 1 == 0 and round(value * rows) / rows == value
