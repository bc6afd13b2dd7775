"""Findings of a leakage check, and which of them are suspicious."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from kbench_leakage.scoring import Score

Kind = Literal["column", "sum", "difference", "within", "order", "copies", "near copies"]

MIN_SCORE = 0.95
"""R2, or share of the errors avoided, from which a column or two are named."""

MIN_LOOKUP = 0.9
"""The same, for rows that are predicted from equal or similar rows."""

MIN_SMOOTH = 0.5
"""R2 of a column by its neighbours in the file, from which adjacent rows can be recognised."""

MIN_GUESS = 1e-6
"""Probability of guessing all test rows by the most frequent class, below which it is not luck."""

MIN_COPIES, MIN_NEAR = 0.05, 0.5
"""Shares of test rows that are named: copies, and those that differ in one input."""

BEYOND_CHANCE = 0.2
"""Share of copies above that by chance which is reported even if it is less than twice as many."""

MIN_GROUPED = 0.5
"""R2 from which rows that differ in one input are named."""


@dataclass(frozen=True)
class Finding:
    """One measurement on the test rows of a split.

    Parameters
    ----------
    kind : {"column", "sum", "difference", "within", "order", "copies", "near copies"}
        What predicts the target: one column; the sum or the difference of two; the second column
        within equal values of the first; adjacent rows of the file; equal rows; rows that
        differ in one column.
    columns : tuple of str
        The columns that it is about. Of "order", the one that changes most slowly along the file.
    score : Score
        How well test rows are predicted.
    is_numeric : bool
        Whether the targets are numbers.
    n_rows : int
        Test rows that were looked at.
    share : float, default 1
        Share of them that have such rows, or the column. Of "order", R2 of the column by its
        neighbours.
    by_chance : float, default 0
        The share if the columns were independent of each other.

    Examples
    --------
    >>> finding = Finding("sum", ("casual", "registered"), Score(0.9999), True, 1737)
    >>> finding.is_sign, finding.sentence
    (True, 'casual + registered alone predicts the target of test rows: R2 0.9999')
    """

    kind: Kind
    columns: tuple[str, ...]
    score: Score
    is_numeric: bool
    n_rows: int
    share: float = 1.0
    by_chance: float = 0.0

    @property
    def n_scored(self) -> int:
        """Test rows that the score is of."""
        is_part = self.kind in ("column", "copies", "near copies")
        return round(self.share * self.n_rows) if is_part else self.n_rows

    @property
    def is_sign(self) -> bool:
        """Whether it is large enough to be named as a sign of leakage.

        A score counts less two standard errors, so that few test rows do not count, unless all of
        their classes are right and guessing would hardly be.
        """
        least = self.score.least(self.n_scored, self.is_numeric)
        if self.kind == "copies":
            more = min(2 * self.by_chance, self.by_chance + BEYOND_CHANCE)
            return self.share >= max(MIN_COPIES, more)
        if self.kind == "near copies":
            wanted = MIN_GROUPED if self.is_numeric else MIN_LOOKUP
            return least >= wanted and self.share >= max(MIN_NEAR, 2 * self.by_chance)
        if self.kind == "order":
            return least >= MIN_LOOKUP and self.share >= MIN_SMOOTH
        is_perfect = not self.is_numeric and self.score.accuracy == 1.0
        return least >= MIN_SCORE or (is_perfect and self.score.base**self.n_scored < MIN_GUESS)

    @property
    def what(self) -> str:
        """The columns or rows that predict, in a few words."""
        names = self.columns or ("",)
        return {
            "column": names[0],
            "sum": " + ".join(names),
            "difference": " - ".join(names),
            "within": f"{names[-1]} within equal {names[0]}",
            "order": "adjacent rows of the file",
            "copies": "rows with equal inputs",
            "near copies": f"rows that differ in {names[0]} only",
        }[self.kind]

    @property
    def sentence(self) -> str:
        """The finding, with its score."""
        if self.kind == "order":
            start = "training rows adjacent to test rows in the file predict their target"
            slow = f" ({self.columns[0]} changes slowly along the file)"
            return f"{start}: {self._scored}" + slow * (self.share >= MIN_SMOOTH)
        if self.kind == "copies":
            start = (
                f"{_percent(self.share)} of the test rows have the same inputs as a training row"
            )
            return f"{start}, whose target predicts theirs: {self._scored}"
        if self.kind == "near copies":
            start = f"{_percent(self.share)} of the other test rows differ from training rows in"
            return f"{start} {self.columns[0]} only, whose targets predict theirs: {self._scored}"
        having = "" if self.share == 1 else f"the {_percent(self.share)} of the "
        rows = f"{having}test rows" + " that have it" * bool(having)
        return f"{self.what} alone predicts the target of {rows}: {self._scored}"

    @property
    def _scored(self) -> str:
        if self.is_numeric:
            return f"R2 {_number(self.score.value)}"
        accuracy, base = _percent(self.score.accuracy), _percent(self.score.base)
        return f"accuracy {accuracy} (the most frequent class has {base})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _number(value: float) -> str:
    """Write an R2 without rounding it up to 1."""
    return f"{value:.3f}" if value < 0.9985 or value > 1 - 1e-9 else f"{min(value, 0.9999):.4f}"


@dataclass(frozen=True)
class Leakage:
    """What was measured on one split, as `kbench.find_leakage` returns it.

    Attributes
    ----------
    measured : tuple of Finding
        The best of each kind.
    notes : tuple of str
        What was not looked at, or in part only.
    n_train, n_test : int
        Rows of the split.
    """

    measured: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    n_train: int = 0
    n_test: int = 0

    @property
    def signs(self) -> tuple[Finding, ...]:
        """The measurements that are large enough to be named."""
        return tuple(each for each in self.measured if each.is_sign)

    @property
    def sentences(self) -> list[str]:
        """The signs in words."""
        return [each.sentence for each in self.signs]

    def __str__(self) -> str:
        return "\n".join(self.sentences or ["no evidence of leakage was found"])

    def to_json(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        return asdict(self)
