"""Permutation importances and errors of a method, as sentences, tables and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kbench.features import element, text
from kbench.messages import number, plural

SHOWN = 12
"""Number of columns that the command line prints."""

_WIDTH, _HEIGHT, _EDGE = 480.0, 300.0, 40.0


@dataclass(frozen=True)
class Importance:
    """Loss in the metric if a column is permuted: mean and standard deviation."""

    column: str
    mean: float
    sd: float


@dataclass(frozen=True)
class Explanation:
    """Permutation importances and errors of a method on test rows of the first split."""

    importances: tuple[Importance, ...]
    """The largest first."""
    n_rows: int
    """Test rows."""
    confusion: tuple[tuple[int, ...], ...] = ()
    """Rows by class and predicted class; empty for regression and for many classes."""
    classes: tuple[str, ...] = ()
    """Names of the classes."""
    points: tuple[tuple[float, float], ...] = ()
    """Predicted numbers and residuals."""
    repeats: int = 3
    """Number of permutations of each column."""
    fitted: tuple[int, ...] = ()
    """Training rows of its fit, and those of the split; empty if they are equal."""

    def sentences(self, words: str) -> list[str]:
        """Name the most important columns; `words` is the name of the metric."""
        useful = [each for each in self.importances if each.mean > 2 * each.sd and each.mean > 0]
        if not useful:
            return [f"No column alone changes the {words} if it is permuted{self._sample}."]
        named = ", ".join(f"{each.column} ({each.mean:.3f})" for each in useful[:SHOWN])
        more = f" and {len(useful) - SHOWN} more" if len(useful) > SHOWN else ""
        rest = len(self.importances) - len(useful)
        return [
            f"Permutation importances, as the loss in {words}, on {self.n_rows:,} test "
            f"rows{self._sample}: {named}{more}."
            + (f" No effect of {plural(rest, 'other')}." if rest else "")
        ]

    @property
    def _sample(self) -> str:
        """Where the time limit reduced the effort."""
        parts = ["once"] if self.repeats == 1 else []
        if self.fitted:
            parts.append("fitted on {:,} of {:,} rows".format(*self.fitted))
        return f" ({', '.join(parts)}, to save time)" if parts else ""

    @property
    def picture(self) -> str:
        """The plot of residuals as SVG; empty for classes."""
        return residuals(self.points) if self.points else ""


def residuals(points: Sequence[tuple[float, float]]) -> str:
    """Draw the residuals (target - prediction) against the predictions."""
    xs, ys = zip(*points, strict=True)
    low, high = min(xs), max(xs)
    top = max(map(abs, ys)) or 1.0
    middle = _HEIGHT / 2

    def place(x: float, y: float) -> tuple[float, float]:
        share = (x - low) / (high - low) if high > low else 0.5
        return _EDGE + share * (_WIDTH - 2 * _EDGE), middle - y / top * (middle - _EDGE)

    dots = [
        element("circle", cx=place(x, y)[0], cy=place(x, y)[1], r=2.0, fill_opacity=0.5)
        for x, y in points
    ]
    line = element("line", x1=_EDGE, y1=middle, x2=_WIDTH - _EDGE, y2=middle, stroke="currentColor")
    texts = [
        text(f"predicted: {number(low)} to {number(high)}", _EDGE, _HEIGHT - 8, font_size=12),
        text(f"target - predicted: up to {number(top)}", _EDGE, 16, font_size=12),
    ]
    return element(
        "svg",
        line,
        *dots,
        *texts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        width=_WIDTH,
        role="img",
        aria_label="Residuals by predicted value",
        fill="currentColor",
    )
