"""The bounds of the paper, the polynomial of Lemma 2, and the pictures."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbench_zero_one import sigmoid, sigmoid_polynomial, worst_case_B
from kbench_zero_one._figures import draw_noise, draw_norm, draw_transfer


def test_sigmoid_is_equation_4():
    a = np.linspace(-1, 1, 11)
    np.testing.assert_allclose(sigmoid(a, 3.0), 1 / (1 + np.exp(-12 * a)), atol=1e-15)
    assert sigmoid(-1.0, 1e6) == 0.0 and sigmoid(1.0, 1e6) == 1.0
    slope = np.gradient(sigmoid(np.linspace(-1, 1, 10001), 3.0), 2e-4)
    assert slope.max() == pytest.approx(3.0, rel=1e-4)


def test_lemma_2():
    found = worst_case_B(3.0, 0.1)
    assert found.value == pytest.approx(2 * 81 + math.exp(21 * math.log(60) + 3))
    assert found.log / math.log(10) == pytest.approx(38.64, abs=0.01)
    overflown = worst_case_B(100.0, 0.01)
    assert overflown.value == math.inf and math.isfinite(overflown.log)


@settings(max_examples=30, deadline=None)
@given(L=st.floats(0.5, 30), epsilon=st.floats(0.001, 0.4), nu=st.floats(0.1, 0.95))
def test_polynomial_stays_within_its_bound(L, epsilon, nu):
    p = sigmoid_polynomial(L, epsilon, nu)
    a = np.linspace(-1, 1, 2001)
    error = np.abs(p(a) - sigmoid(a, L)).max()
    assert error <= p.error_bound + 1e-9 <= epsilon + 2e-9
    # both bases are one polynomial: compare exactly, floats cancel at high degree
    points = [Fraction(-1), Fraction(1, 3), Fraction(1)]
    if p.degree <= 30:
        for point in points:
            monomial = sum(Fraction(b) * point**j for j, b in enumerate(p.monomial))
            scale = max(map(abs, p.monomial))
            assert float(monomial) == pytest.approx(p(float(point)), abs=1e-13 * scale + 1e-12)
        direct = sum(b**2 * nu**-j for j, b in enumerate(p.monomial))
        assert p.log_norm == pytest.approx(math.log(direct), abs=1e-9)


def test_polynomial_norm_is_far_below_the_worst_case():
    for L in (3.0, 10.0):
        for epsilon in (0.1, 0.01):
            found = sigmoid_polynomial(L, epsilon)
            assert found.log_norm < worst_case_B(L, epsilon).log / 3


def test_chebyshev_coefficients_are_those_of_numpy():
    p = sigmoid_polynomial(2.0, 1e-3)
    reference = np.polynomial.chebyshev.chebinterpolate(lambda a: sigmoid(a, 2.0), 200)
    np.testing.assert_allclose(p.chebyshev, reference[: p.degree + 1], atol=1e-12)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: worst_case_B(2.9, 0.1), "L"),
        (lambda: sigmoid_polynomial(3.0, 0.0), "epsilon"),
        (lambda: sigmoid_polynomial(math.inf, 0.1), "L"),
    ],
)
def test_bad_input(call, name):
    with pytest.raises(ValueError, match=f"^{name} must be "):
        call()


def test_transfer_picture():
    figure = draw_transfer()
    assert [axes.get_title() for axes in figure.axes] == ["L = 10", "L = 3"]
    step = figure.axes[0].lines[0]
    assert step.get_linestyle() == "--" and step.get_color() == "b"


def test_norm_picture():
    (axes,) = draw_norm().axes
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    bound = lines.pop("Lemma 2, epsilon = 0.1")
    assert all(np.all(y < bound) for label, y in lines.items() if "epsilon = 0.1," in label)


def test_noise_picture():
    rows = [
        {
            "dataset": f"halfspace({name}={x:g})",
            "feature_map": "identity",
            "learner": learner,
            "expected_error": error,
        }
        for name in ("noise", "outliers")
        for x in (0.2, 0.1)
        for learner, error in (("zero-one-learner", 0.05), ("ridge", x / 2), ("failed", None))
    ]
    rows.append({**rows[0], "dataset": "iris"})
    rows.append({**rows[0], "dataset": "halfspace(noise=0.1, radius=0.3)"})
    rows.append({**rows[0], "dataset": "halfspace, by another name"})
    noise, outliers = draw_noise(rows).axes
    for axes in (noise, outliers):
        lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
        assert lines == {
            "zero-one-learner": [[0.1, 0.05], [0.2, 0.05]],
            "ridge": [[0.1, 0.05], [0.2, 0.1]],
        }
    assert draw_noise([]).axes
