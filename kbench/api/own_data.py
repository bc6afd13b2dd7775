"""A user's own file becomes a suite: a sensible list of methods, sized for the data.

==================  =====  ===========  ==========  ============
rows                folds  inner folds  candidates  n_components
==================  =====  ===========  ==========  ============
up to 2,000         5      3            8           rows / 4, 50 to 500
up to 20,000        5      3            4           rows / 4, to 1,000
more                3      2            4           1,000
==================  =====  ===========  ==========  ============

Methods whose cost grows faster than that are left out beyond the sizes in `_METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbench.errors import DatasetError, SuiteError
from kbench.execution.fetching import Fetching, is_offline
from kbench.execution.sandbox import Sandbox
from kbench.export.tables import read_table
from kbench.messages import counted, did_you_mean
from kbench.planning.lines import labelled, parameters_of
from kbench.planning.planner import Planner
from kbench.records import (
    Block,
    DatasetFacts,
    DatasetSource,
    Limits,
    Problem,
    Protocol,
    Ref,
    Search,
    Suite,
)
from kbench.registry.registry import Registry
from kbench.storage.datacache import DataCache
from kbench.tables.columns import is_free_text

PACKED = (".gz", ".bz2", ".xz", ".zst")

MIN_ROWS = 20
"""Below, a split has fewer than four rows to score on."""

TASK_S = 120.0
"""Wall clock of one task where the whole has no limit."""

SHORTEST_S = 2.0
"""A task is given this much however short the whole is, so that cheap methods end."""

SHARE = 5
"""One task may take this part of the whole time, so that none takes all of it."""

LOOKED_AT_MB = 2000
"""A larger file is not looked through before it is loaded."""


@dataclass(frozen=True)
class Look:
    """What a file of one's own holds before it is encoded.

    Parameters
    ----------
    n_rows, n_unlabelled : int
        Rows, and how many of them have no label.
    n_columns : int
        Columns that become features.
    texts : mapping of str to int
        Columns that hold text or dates, with the number of different values;
        they can be no features.
    """

    n_rows: int
    n_unlabelled: int
    n_columns: int
    texts: Mapping[str, int]

    def notices(self) -> list[str]:
        """Say which columns are left out."""
        return [
            f"left out: {name!r} ({counted(n, 'different text')}); name it with --nominal to "
            "keep it"
            for name, n in self.texts.items()
        ]


@dataclass(frozen=True)
class _Size:
    """Shape of a dataset."""

    n: int
    d: int
    sparse: bool

    @property
    def width(self) -> int:
        return min(max(self.n // 4, 50), 1000)


def _always(size: _Size) -> bool:
    return True


_BANDWIDTHS = Search(
    tuple(Ref("gaussian", {"bandwidth": each}) for each in ("0.5*median", "median"))
)
_FACTORS = Search((1.0, 4.0))
"""As `_BANDWIDTHS`, in multiples of the median heuristic's gamma."""

_MAPS: Mapping[str, Callable[[_Size], Ref]] = {
    "nystroem": lambda size: Ref(
        "nystroem", {"n_components": size.width, "gamma_factor": _FACTORS}, "nystroem"
    ),
    "rff": lambda size: Ref("rff", {"n_components": size.width, "gamma_factor": _FACTORS}, "rff"),
    "polynomial": lambda size: Ref("polynomial", {"degree": 2}, "polynomial-2"),
}
"""Maps that are not taken with their defaults."""

_LEARNERS: Mapping[str, Ref] = {
    "kernel-svm": Ref("kernel-svm", {"kernel": _BANDWIDTHS}, "kernel-svm (ovo)")
}

_METHODS: Sequence[tuple[str, str, Callable[[_Size], bool]]] = (
    # cheap ones first: what a time limit cuts off are the dear ones
    ("identity", "majority", _always),
    ("identity", "ridge", _always),
    ("identity", "linear-svm", _always),
    ("nystroem", "ridge", _always),
    ("rff", "ridge", _always),
    ("additive-chi2", "linear-svm", lambda size: not size.sparse),
    ("nystroem", "linear-svm", _always),
    ("rff", "linear-svm", _always),
    ("identity", "knn", lambda size: size.n <= 20_000),
    ("identity", "gradient-boosting", lambda size: not size.sparse),
    ("polynomial", "linear-svm", lambda size: size.d <= 40),
    ("simplicial-mesh", "linear-svm", lambda size: size.d <= 200 and not size.sparse),
    ("identity", "kernel-svm", lambda size: size.n <= 10_000),
    ("nbcs", "linear-svm", lambda size: size.d <= 40 and not size.sparse),
)
"""Map, learner, and for which data."""

_DEFAULT_LEARNERS = ("ridge", "linear-svm")
"""Behind maps that a user names."""


def source_of(
    path: str,
    target: str | None = None,
    ignore: Sequence[str] = (),
    nominal: Sequence[str] = (),
    delimiter: str | None = None,
    *,
    registry: Registry,
) -> Ref:
    """Return the line of a suite file that a file means.

    Parameters
    ----------
    path : str
        A file whose name ends as an installed source says, perhaps compressed.
    target : str, optional
        Column with the labels, for sources that need it.
    ignore, nominal : sequence of str, optional
        Columns to leave out; columns of numbers that stand for categories.
    delimiter : str, optional
        What stands between two values of a CSV file.
    registry : Registry
        Where the sources are looked up.

    Raises
    ------
    DatasetError
        There is no such file, its kind is not known or takes no such option.
    """
    file = Path(path).expanduser()
    ending, sources = _ending(file), _sources(registry)
    if ending not in sources:
        raise DatasetError(
            f"file {path!r}: what kind is it? Its name should end in {', '.join(sources)}"
        )
    if not file.exists():
        raise DatasetError(f"file {path!r}: there is no such file (looked for {file.absolute()})")
    source = sources[ending]
    # absolute: the journal and the data cache are there whatever the folder
    params: dict[str, Any] = {"path": str(file.absolute()), **source.endings[ending]}
    options = {
        "ignore": tuple(ignore) or None,
        "nominal": tuple(nominal) or None,
        "delimiter": delimiter or None,
        "target": target,
    }
    taken = parameters_of(source.load)
    for name, value in options.items():
        if value is not None and taken is not None and name not in taken:
            raise DatasetError(f"file {path!r}: --{name} has no meaning for {source.name} files")
        if value is not None:
            params[name] = value
    needed = taken["target"] if taken and "target" in taken else None
    if target is None and needed is not None and needed.default is needed.empty:
        raise DatasetError(f"file {path!r}: which column holds the labels? Say --target NAME")
    return Ref(source.name, params, label=file.name.partition(".")[0] or file.name)


def look(ref: Ref, registry: Registry) -> Look | None:
    """Look through a user's own table before it is loaded.

    Parameters
    ----------
    ref : Ref
        The file, as `source_of` gives it.
    registry : Registry

    Returns
    -------
    Look or None
        None for files whose source has no `table`, and where there is something
        wrong with it: loading it tells what.
    """
    import pandas

    try:
        if Path(ref.params["path"]).stat().st_size > LOOKED_AT_MB * 2**20:
            return None
        frame = read_table(ref, registry)
    except Exception:  # pandas' errors have no common base
        return None
    if frame is None or ref.params["target"] not in frame or not frame.columns.is_unique:
        return None
    left_out = {ref.params["target"], *ref.params.get("ignore", ())}
    kept = set(ref.params.get("nominal", ()))
    texts = {}
    taken = parameters_of(registry.get("dataset", ref.name).load)
    may_ignore = taken is None or "ignore" in taken
    for name in frame.columns if may_ignore else ():
        column = frame[name]
        plain = pandas.api.types.is_numeric_dtype(column) or isinstance(
            column.dtype, pandas.CategoricalDtype
        )
        if plain or name in left_out | kept:
            continue
        values = column.dropna().unique()
        if is_free_text(values, len(column)):
            texts[name] = len(values)
    return Look(
        n_rows=len(frame),
        n_unlabelled=int(frame[ref.params["target"]].isna().sum()),
        n_columns=len([name for name in frame.columns if name not in left_out | set(texts)]),
        texts=texts,
    )


def without_texts(ref: Ref, found: Look | None) -> Ref:
    """Return the line of a suite file that leaves the columns of text out."""
    if found is None or not found.texts:
        return ref
    ignore = (*ref.params.get("ignore", ()), *found.texts)
    return Ref(ref.name, {**ref.params, "ignore": ignore}, ref.label)


def is_data_file(name: str, registry: Registry) -> bool:
    """Tell a file of data from a suite by its name."""
    return _ending(Path(name)) in _sources(registry)


def _sources(registry: Registry) -> dict[str, DatasetSource]:
    """Return the sources of datasets by the endings of the file names that they read."""
    return {end: each for each in registry.all("dataset").values() for end in each.endings}


def _ending(file: Path) -> str:
    endings = [each.lower() for each in file.suffixes if each.lower() not in PACKED]
    return endings[-1] if endings else ""


def fetched(ref: Ref, registry: Registry) -> DatasetFacts:
    """Bring a dataset into the data cache and return what is known of it.

    Parameters
    ----------
    ref : Ref
        Line of a suite file.
    registry : Registry

    Raises
    ------
    DatasetError
        It cannot be had: the reason.
    """
    registry.get("dataset", ref.name)
    cache = DataCache()
    planner = Planner(registry, cache)
    known = planner.dataset(ref)
    if known is None:
        with closing(Sandbox()) as sandbox:
            fetching = Fetching(registry, planner, cache, sandbox, offline=is_offline())
            loaded = fetching.fetch(ref)
        if isinstance(loaded, Problem):
            raise DatasetError(loaded.reason)
        return loaded
    return known


def suite_for(
    ref: Ref,
    known: DatasetFacts,
    registry: Registry,
    feature_maps: Sequence[str] = (),
    learners: Sequence[str] = (),
    total_s: float | None = None,
) -> Suite:
    """Return the suite that compares methods on one file.

    Parameters
    ----------
    ref : Ref
        The file, as `source_of` gives it.
    known : DatasetFacts
        What the data cache tells of it.
    registry : Registry
        Methods that nothing installed gives are left out.
    feature_maps, learners : sequence of str, optional
        Names of installed components, instead of the list of this module: each
        of these maps with each of these learners. Without learners, with ridge
        and the linear SVM; without maps, with each map of the list.
    total_s : float, optional
        Wall clock of the whole.

    Returns
    -------
    Suite
        Named as the file, its blocks in the order of their cost.

    Raises
    ------
    SuiteError
        Something of that name is not installed, or the time is not positive.
    DatasetError
        There are too few rows.
    """
    if total_s is not None and not total_s > 0:
        raise SuiteError(f"--time-limit must be positive; found {total_s:g}")
    if known.n_samples < MIN_ROWS:
        raise DatasetError(
            f"{ref.label}: {known.n_samples} rows are too few to compare methods on; "
            f"at least {MIN_ROWS} are needed"
        )
    size = _Size(known.n_samples, known.n_features, known.sparse)
    maps, own = registry.all("feature map"), registry.all("learner")
    problems = [
        f"no {kind} is called {name!r}{did_you_mean(name, there)}"
        for kind, names, there in (("feature map", feature_maps, maps), ("learner", learners, own))
        for name in names
        if name not in there
    ]
    if problems:
        raise SuiteError(*problems)
    protocol = Protocol(
        n_folds=5 if size.n <= 20_000 else 3,
        inner_folds=3 if size.n <= 20_000 else 2,
        search="random",
        n_candidates=8 if size.n <= 2_000 else 4,
        missing="impute",
    )
    limit = TASK_S if total_s is None else min(TASK_S, max(total_s / SHARE, SHORTEST_S))
    return Suite(
        name=Path(ref.params["path"]).name,
        blocks=tuple(
            Block((ref,), (map_,), (learner,), protocol)
            for map_, learner in _pairs(size, registry, feature_maps, learners)
        ),
        limits=Limits(time_s=limit),
    )


def _pairs(
    size: _Size, registry: Registry, feature_maps: Sequence[str], learners: Sequence[str]
) -> list[tuple[Ref, Ref]]:
    """Return the methods in the order of their cost, each once."""
    fitting = [(m, each) for m, each, fits in _METHODS if fits(size)]
    names: list[tuple[str, str]]
    if feature_maps or learners:
        wanted_maps = feature_maps or tuple(dict.fromkeys(m for m, _ in fitting))
        wanted = learners or _DEFAULT_LEARNERS
        names = [
            # a kernelized learner has the one map that it works on
            ("identity" if registry.get("learner", each).kernelized else m, each)
            for each in wanted
            for m in wanted_maps
        ]
        order = {pair: place for place, pair in enumerate(fitting)}
        names.sort(key=lambda pair: order.get(pair, len(order)))
    else:
        names = [
            (m, each)
            for m, each in fitting
            if m in registry.all("feature map") and each in registry.all("learner")
        ]
    return [
        (
            _MAPS[m](size) if m in _MAPS else Ref(m),
            _LEARNERS.get(each) or labelled(each, {}, "learner", registry),
        )
        for m, each in dict.fromkeys(names)
    ]
