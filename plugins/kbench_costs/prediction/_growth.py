"""Growth of a cost with the number of rows, and what it comes to on more of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from kbench.records import Estimate

SPREAD = 1.645
"""Standard deviations at the ends of an interval that has nine cases of ten."""

_EXPONENTS = [number / 20 for number in range(10, 61)]

Point = tuple[float, float]
"""A number of rows, and a cost."""


@dataclass(frozen=True)
class Growth:
    """What is known of a kind of cost before it is measured.

    A cost is ``a + b * rows**c`` with a, b >= 0. The exponent c is close to `exponent`, by
    about `exponent_scale`. `noise` is the relative error of a measured cost, and `drift`
    that of the law for each factor e of the rows beyond those that were measured.
    """

    exponent_scale: float
    noise: float
    drift: float
    exponent: float = 1.0

    def predict(
        self, points: Sequence[Point], n_rows: float, beside: Sequence[Point] = ()
    ) -> Estimate:
        """Predict the cost of a number of rows from costs of fewer rows.

        Laws with all exponents are fitted to the points by relative errors, and weighed by
        how well they fit. There must be at least one point; costs are positive. Points
        `beside` are of another cost that grows with the same exponent.
        """
        weights, means, variances = [], [], []
        scores = [self._score(c, points) + self._score(c, beside) for c in _EXPONENTS]
        best = max(scores)
        for c, score in zip(_EXPONENTS, scores, strict=True):
            law = _Law.fitted(points, c)
            # of a Cauchy distribution: another exponent is unlikely, and not impossible
            prior = 1 / (1 + ((c - self.exponent) / self.exponent_scale) ** 2)
            weights.append(prior * math.exp(score - best))
            means.append(math.log(law.at(n_rows)))
            # a term too small to be seen might be any size; laws that say so are unlikely ones
            variances.append(min(1.0, self.noise**2 * law.relative_variance(n_rows)))
        total = sum(weights)
        mean = sum(map(mul, weights, means)) / total
        within = sum(map(mul, weights, variances)) / total
        between = sum(w * (x - mean) ** 2 for w, x in zip(weights, means, strict=True)) / total
        beyond = max(0.0, math.log(n_rows / max(n for n, _ in points)))
        sd = math.sqrt(within + between + (self.drift * beyond) ** 2)
        return estimate(mean, math.hypot(sd, self.noise))

    def measured(self, cost: float) -> Estimate:
        """Return the estimate of a cost that was measured once."""
        # the difference of two measured costs
        return estimate(math.log(cost), math.sqrt(2) * self.noise)

    def _score(self, exponent: float, points: Sequence[Point]) -> float:
        """Return the logarithm of the likelihood of an exponent."""
        return -_Law.fitted(points, exponent).error / (2 * self.noise**2) if points else 0.0


@dataclass(frozen=True)
class _Law:
    """A law ``a + b * rows**exponent`` that was fitted to points by relative errors.

    `error` is the sum of their squares. `moments` are the sums of the products of the two
    terms at the points, relative to the costs; zero for a term that is left out.
    """

    a: float
    b: float
    exponent: float
    error: float
    moments: tuple[float, float, float]

    @classmethod
    def fitted(cls, points: Sequence[Point], exponent: float) -> _Law:
        u = [1 / cost for _, cost in points]
        v = [n**exponent / cost for n, cost in points]
        uu, vv, uv = sum(map(mul, u, u)), sum(map(mul, v, v)), sum(map(mul, u, v))
        determinant = uu * vv - uv * uv
        a = b = -1.0
        if determinant > 1e-9 * uu * vv:
            a = (sum(u) * vv - sum(v) * uv) / determinant
            b = (sum(v) * uu - sum(u) * uv) / determinant
        if a < 0 or b < 0:  # one of the terms alone: the one that grows, unless it falls
            falls = determinant > 1e-9 * uu * vv and b < 0
            a, b = (sum(u) / uu, 0.0) if falls else (0.0, sum(v) / vv)
            uu, vv, uv = (uu, 0.0, 0.0) if falls else (0.0, vv, 0.0)
        error = sum((a * x + b * y - 1) ** 2 for x, y in zip(u, v, strict=True))
        return cls(a, b, exponent, error, (uu, vv, uv))

    def at(self, n_rows: float) -> float:
        return self.a + self.b * math.pow(n_rows, self.exponent)

    def relative_variance(self, n_rows: float) -> float:
        """Return the variance of ``at(n_rows)`` over its square, for costs of variance 1."""
        uu, vv, uv = self.moments
        x = math.pow(n_rows, self.exponent)
        if not vv or not uu:
            return 1 / uu / self.at(n_rows) ** 2 if uu else x * x / vv / self.at(n_rows) ** 2
        return (vv - 2 * x * uv + x * x * uu) / (uu * vv - uv * uv) / self.at(n_rows) ** 2


def estimate(mean: float, sd: float) -> Estimate:
    """Return the estimate of a number whose logarithm has a mean and a standard deviation."""
    return Estimate(*(math.exp(mean + z * sd) for z in (0.0, -SPREAD, SPREAD)))


def wider(given: Estimate, sd: float) -> Estimate:
    """Return an estimate to whose logarithm an error of standard deviation `sd` is added."""
    own = math.log(given.high / given.low) / (2 * SPREAD)
    return estimate(math.log(given.value), math.hypot(own, sd))
