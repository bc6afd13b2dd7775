"""Numbers of landmarks and features that the theorems ask for."""

import math
from dataclasses import dataclass

from kbench.parameters import check_choice, check_number


@dataclass(frozen=True)
class TheorySizes:
    """Sizes with which a theorem of the paper holds, and its promise.

    Parameters
    ----------
    n_landmarks : int
        Landmarks to draw.
    n_components : int
        Features of the map.
    error : float
        With probability 1 - delta the mapped problem has a linear separator
        with at most this error ...
    margin : float or None
        ... at this margin; None for F1, which may not keep any.
    """

    n_landmarks: int
    n_components: int
    error: float
    margin: float | None


def theory_sizes(
    margin: float,
    epsilon: float,
    delta: float,
    *,
    mapping: str = "f3",
    alpha: float = 0.0,
    radius: float = 1.0,
    target: str = "error",
) -> TheorySizes:
    """Sizes of F1, F2 and F3 from the theorems of Balcan, Blum and Vempala (2006).

    F1 and F2 (Corollary 1, Theorem 1): ``8/epsilon (1/margin^2 + ln(1/delta))``
    landmarks. F3 (Theorem 3) is F2 for epsilon/2 and delta/2, projected to
    ``4 ln(24/(epsilon delta)) / (eta^2 - eta^3)`` features, with
    eta = margin/16: Theorem 2 for the three vectors w, x and w - x, failing
    together with probability at most epsilon delta/4.

    Parameters
    ----------
    margin : float
        Margin of the separator in the kernel's space, in (0, 1] after
        division by `radius`.
    epsilon : float
        Error of the mapped problem, in (0, 1). With ``target="separable"`` the
        expected number of misclassified rows in a training set of
        ``d ln d`` rows, d the number of features.
    delta : float
        Probability that the promise fails, in (0, 1).
    mapping : {"f1", "f2", "f3"}, default "f3"
        The map.
    alpha : float, default 0.0
        Share of the distribution that the separator does not classify
        correctly with that margin, in [0, 1): the error becomes
        ``(1 - alpha) epsilon + alpha`` (section 4.1, which counts landmarks
        from the separable part).
    radius : float, default 1.0
        Bound on ``||phi(x)||`` where the separator is off the origin: the
        margin becomes ``margin / radius`` (section 4.1).
    target : {"error", "separable"}, default "error"
        "separable" is Corollary 2: epsilon so small that a training set of
        ``d ln d`` rows is still linearly separable.

    Returns
    -------
    TheorySizes
        Sizes and promise.

    Raises
    ------
    ValueError
        If a number is outside its range.

    Examples
    --------
    >>> theory_sizes(0.5, epsilon=0.1, delta=0.1, mapping="f2")
    TheorySizes(n_landmarks=505, n_components=505, error=0.1, margin=0.25)
    >>> theory_sizes(0.5, epsilon=0.1, delta=0.1).n_components
    32909
    """
    check_number(epsilon, "epsilon", above=0, below=1)
    check_number(delta, "delta", above=0, below=1)
    check_number(alpha, "alpha", least=0, below=1)
    check_number(radius, "radius", above=0)
    check_number(margin, "margin", above=0)
    check_choice(mapping, "mapping", ("f1", "f2", "f3"))
    check_choice(target, "target", ("error", "separable"))
    gamma = margin / radius
    if gamma > 1:
        raise ValueError(f"margin must be at most radius = {radius!r}, got {margin!r}")
    if target == "separable":
        epsilon = _separable_epsilon(gamma, epsilon, delta, mapping)
    n_landmarks, n_components = _sizes(gamma, epsilon, delta, mapping)
    kept = {"f1": None, "f2": gamma / 2, "f3": gamma / 4}[mapping]
    return TheorySizes(n_landmarks, n_components, (1 - alpha) * epsilon + alpha, kept)


def _sizes(gamma: float, epsilon: float, delta: float, mapping: str) -> tuple[int, int]:
    if mapping != "f3":
        d = math.ceil(8 / epsilon * (1 / gamma**2 + math.log(1 / delta)))
        return d, d
    d2 = math.ceil(16 / epsilon * (1 / gamma**2 + math.log(2 / delta)))
    eta = gamma / 16
    return d2, math.ceil(4 * math.log(24 / (epsilon * delta)) / (eta**2 - eta**3))


def _separable_epsilon(gamma: float, expected: float, delta: float, mapping: str) -> float:
    """Solve ``epsilon d(epsilon) ln d(epsilon) = expected`` for F3.

    For F1 and F2 d grows as 1/epsilon, so that there is no solution.
    """
    if mapping != "f3":
        raise ValueError(
            f"mapping must be 'f3' with target='separable', got {mapping!r}: only the size of "
            "'f3' grows slowly enough with 1/epsilon (Corollary 2)"
        )
    epsilon = expected
    # d grows with ln(1/epsilon) only: steps shrink epsilon, by less and less
    while True:
        d = _sizes(gamma, epsilon, delta, mapping)[1]
        smaller = expected / (d * math.log(d))
        if epsilon <= smaller:
            return epsilon
        epsilon = smaller
