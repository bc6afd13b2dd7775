"""What plugins register: records of datasets' sources, maps, learners, kernels and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Make = Callable[..., Any] | str
"""A class, a factory, or ``"module:name"`` of one."""


@dataclass(frozen=True)
class DatasetSource:
    r"""Where datasets come from.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    load : callable or "module:name"
        ``load(**params) -> Dataset``.
    expand : callable or "module:name", optional
        ``expand(**params) -> list of Ref``: one line of a suite file that
        means many datasets. Returns an empty list where the line means one.
    depends : sequence of str, optional
        Further modules that decide the data, beside those that `load` imports.
    endings : mapping of str to mapping, optional
        Endings of the file names that the source reads, in lower case, each
        with the parameters that it implies, such as
        ``{".csv": {}, ".tsv": {"delimiter": "\t"}}``. The commands for a user's
        own file give `load` the parameter ``path`` and, where it has them,
        ``target``, ``ignore``, ``nominal`` and ``delimiter``.
    table : callable or "module:name", optional
        ``table(**params) -> DataFrame``: the user's own table before it is
        encoded, with all rows and columns of the file in their order; for
        sources whose `load` has a ``target``.
    """

    name: str
    load: Make
    expand: Make | None = None
    depends: Sequence[str] = ()
    endings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    table: Make | None = None


@dataclass(frozen=True)
class FeatureMap:
    """An explicit feature map: a scikit-learn transformer.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    make : callable or "module:name"
        Returns an unfitted transformer; its keyword parameters are those of a
        suite line.
    grid : mapping of str to sequence, optional
        What is searched over for each parameter that a suite line does not
        give; a `Ref` stands for a component, a kernel say.
    kernel : callable, optional
        ``kernel(map, X, Y)`` is the Gram matrix which the fitted map
        approximates.
    supervised : bool, default False
        Pass `y` to ``fit``.
    requires : {None, "nonnegative", "unit_ball"}, default None
        What the inputs must satisfy; kbench adds a fitted scaling step where
        the protocol's preprocessing does not already see to it.
    measures : callable, optional
        ``measures(fitted, X, y) -> {name: float}``, called on the test part
        after the clock has stopped. Of the keyword-only arguments `learner`
        (fitted on the embedding), `X_train` and `y_train` (what the
        learner was fitted on, and the map, but one that uses no labels where the
        protocol has an `unlabelled_size`) it is given those that it has; they need a default.
    depends : sequence of str, optional
        Further modules whose code decides the numbers.
    span : callable or "module:name", optional
        ``span(params) -> str``: what the features span, given the parameters
        of a suite line; empty where there is nothing to tell. Two maps that
        answer the same differ by a rotation of their features only, so that a
        learner which is `rotation_invariant` makes one method of both: tests
        over datasets count one of them.
    """

    name: str
    make: Make
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    kernel: Make | None = None
    supervised: bool = False
    requires: Literal["nonnegative", "unit_ball"] | None = None
    measures: Make | None = None
    depends: Sequence[str] = ()
    span: Make | None = None


@dataclass(frozen=True)
class Learner:
    """A classifier with a scikit-learn interface.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    make : callable or "module:name"
        Returns an unfitted classifier.
    grid : mapping of str to sequence, optional
        What is searched over for each parameter that a suite line does not
        give; a `Ref` stands for a component, a kernel say.
    kernelized : bool, default False
        The learner has a parameter ``kernel`` and works on the inputs; it is
        planned with the map ``identity`` only.
    path : str, optional
        A parameter, say ``"C"``, along which the learner can be fitted in one
        go: it has ``fit_path(X, y, values)``, which returns one fitted
        estimator per value, in that order.
    simpler : mapping of str to {"smaller", "larger"}, optional
        Which values of numeric parameters make a simpler model, such as
        ``{"C": "smaller"}``, for the one-standard-error rule; the first
        parameter counts before the second.
    multiclass : str, optional
        How a binary method treats several classes ("ovr", "ovo") where the
        parameter `multiclass` is not given; labels show it, since the scheme
        can matter more than the map.
    measures : callable, optional
        ``measures(fitted, X, y) -> {name: float}``, called on the embedded
        test part after the clock has stopped.
    depends : sequence of str, optional
        Further modules whose code decides the numbers.
    rotation_invariant : bool, default False
        A rotation of the features changes no prediction: the learner sees
        their inner products only.
    baseline : bool, default False
        Always names the commonest class, whatever the inputs: recommendations
        say what it reaches.
    """

    name: str
    make: Make
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    kernelized: bool = False
    path: str | None = None
    simpler: Mapping[str, Literal["smaller", "larger"]] = field(default_factory=dict)
    multiclass: str = ""
    measures: Make | None = None
    depends: Sequence[str] = ()
    rotation_invariant: bool = False
    baseline: bool = False


@dataclass(frozen=True)
class KernelSpec:
    """A kernel that suite files can name.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    make : callable or "module:name"
        Returns a callable ``k(X, Y) -> Gram matrix``.
    psd : bool, default True
        Every Gram matrix ``k(X, X)`` is positive semidefinite.
    """

    name: str
    make: Make
    psd: bool = True


@dataclass(frozen=True)
class Figure:
    """A picture that a plugin adds to a report.

    Parameters
    ----------
    name, title : str
        Identifier and heading.
    draw : callable or "module:name"
        ``draw(results) -> matplotlib.figure.Figure``.
    suites : sequence of str, optional
        Suites to whose reports it belongs; all of them where empty.
    """

    name: str
    title: str
    draw: Make
    suites: Sequence[str] = ()
