"""The map inside a learned one: whether it can learn, and its parameters."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

DIFFERENTIABLE = (
    *("rff", "orthogonal-rff", "qmc-rff", "leverage-rff", "fastfood", "sorf", "laplace-rff"),
    *("matern-rff", "nystroem", "nystroem-kmeans", "nystroem-leverage", "nystroem-rpcholesky"),
    *("arc-cosine", "nbcs", "nbcs-rotated", "nbcs-adaptive", "simplicial-mesh"),
)
"""Maps of kbench that have gradients, for messages."""


def refuse_without_gradient(base: Any) -> None:
    """Raise a ValueError if a map has no gradient; it names those that have one."""
    if isinstance(base, str):
        raise ValueError(
            f"base_map must be a feature map, got the text {base!r}; a suite file has "
            f'base_map = {{ name = "{base}" }}'
        )
    if not (hasattr(base, "fit") and hasattr(base, "transform")):
        raise ValueError(f"base_map must be a feature map, got {base!r}")
    try:
        _ = base.input_gradient
    except AttributeError as error:
        name = type(base).__name__
        reason = error.__cause__ or f"{name} has no method input_gradient"
        raise ValueError(
            f"base_map must have a gradient in its inputs: {reason}. Maps of kbench that have "
            f"one are {', '.join(DIFFERENTIABLE)}"
        ) from None


def with_parameters(base: Any, **given: Any) -> Any:
    """Return a clone of a map with parameters that are not None, or a ValueError."""
    base = clone(base)
    known = base.get_params(deep=False)
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in known:
            raise ValueError(
                f"{name} is not a parameter of base_map={type(base).__name__}, which has "
                f"{', '.join(sorted(known))}"
            )
    return base.set_params(**given)


def needs_seed(base: Any) -> bool:
    """Whether a map draws at random and has no seed."""
    return base.get_params(deep=False).get("random_state", 0) is None
