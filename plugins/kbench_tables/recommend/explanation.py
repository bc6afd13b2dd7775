"""What a method uses and where it errs, as sentences, tables and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kbench.features import element, text
from kbench.messages import counted, number

SHOWN = 12
"""Columns that the command line prints."""

_WIDTH, _HEIGHT, _EDGE = 480.0, 300.0, 40.0


@dataclass(frozen=True)
class Importance:
    """How much the metric gets worse without a column: mean and standard deviation."""

    column: str
    mean: float
    sd: float


@dataclass(frozen=True)
class Explanation:
    """What a method uses, and where it errs, on test rows of the first split."""

    importances: tuple[Importance, ...]
    """The largest first."""
    n_rows: int
    """Test rows."""
    confusion: tuple[tuple[int, ...], ...] = ()
    """Rows by class, and by the class that is predicted; empty for numbers, and for many
    classes."""
    classes: tuple[str, ...] = ()
    """Names of the classes."""
    points: tuple[tuple[float, float], ...] = ()
    """Predicted numbers, and what the targets are above them."""
    repeats: int = 3
    """Permutations of each column."""
    fitted: tuple[int, ...] = ()
    """Training rows on which the method was fitted for it, and those of the split; empty if it was
    all of them."""

    def sentences(self, words: str) -> list[str]:
        """Say which columns matter, for the metric in words."""
        useful = [each for each in self.importances if each.mean > 2 * each.sd and each.mean > 0]
        if not useful:
            return [f"No column alone changes the {words} when it is permuted{self._sample}."]
        named = ", ".join(f"{each.column} ({each.mean:.3f})" for each in useful[:SHOWN])
        more = f" and {len(useful) - SHOWN} more" if len(useful) > SHOWN else ""
        rest = len(self.importances) - len(useful)
        return [
            f"It uses, by how much the {words} gets worse when a column is permuted among "
            f"{self.n_rows:,} test rows{self._sample}: {named}{more}."
            + (f" No effect is seen of {counted(rest, 'other')}." if rest else "")
        ]

    @property
    def _sample(self) -> str:
        """What was done less than with enough time."""
        said = ["once"] if self.repeats == 1 else []
        if self.fitted:
            said.append("fitted on {:,} of {:,} rows".format(*self.fitted))
        return f" ({', '.join(said)}, for want of time)" if said else ""

    @property
    def picture(self) -> str:
        """The plot of residuals as SVG; empty for classes."""
        return residuals(self.points) if self.points else ""


def residuals(points: Sequence[tuple[float, float]]) -> str:
    """Draw how far targets are above what is predicted."""
    xs, ys = zip(*points, strict=True)
    low, high = min(xs), max(xs)
    top = max(map(abs, ys)) or 1.0
    middle = _HEIGHT / 2

    def place(x: float, y: float) -> tuple[float, float]:
        share = (x - low) / (high - low) if high > low else 0.5
        across = _EDGE + share * (_WIDTH - 2 * _EDGE)
        return across, middle - y / top * (middle - _EDGE)

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
