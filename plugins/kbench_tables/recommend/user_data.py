"""A user's file as a suite: the methods of `OWN_TABLES` for data of its size."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kbench.errors import DatasetError
from kbench.features import (
    DataCache,
    Registry,
    WarmParents,
    dataset_of_file,
    find,
    make_preload,
    open_fetching,
    read_parameters,
    relabel_for_task,
)
from kbench.messages import list_some, option
from kbench.parameters import is_pattern, list_files
from kbench.records import Block, Cell, DatasetFacts, Problem, Ref, Suite, TaskType
from kbench.tables.table_rows import reject_changes
from kbench_tables.recommend.metric import Comparison, rare_class
from kbench_tables.recommend.table_preview import Preview, add_preview, preview
from kbench_tables.recommend.target import TargetColumn, choose
from kbench_tables.size_rules import Size, SizedSuite, choose_cells, read_for

# Suites that `kbench recommend` reads, by the task of the target.
OWN_TABLES: Mapping[TaskType, str] = {
    "classification": "recommend-classification",
    "regression": "recommend-regression",
}

# Suites whose methods it evaluates first within a time limit.
FIRST_ROUNDS: Mapping[TaskType, str] = {task: f"{name}-timed" for task, name in OWN_TABLES.items()}

# Shares of rows with equal inputs from which these are kept together, and up to which: more of them
# are of few columns, and not copies.
COPIES = 0.02, 0.9

# Maximum number of rows of which copies are kept together: 50,000 distinct rows take 20 seconds.
COPIES_ROWS = 10_000

# Minimum number of rows: with fewer, a test set has fewer than four rows.
MIN_ROWS = 20


@dataclass(frozen=True)
class UserData:
    """A user's file, loaded."""

    ref: Ref
    preview: Preview | None
    """The table before it is encoded, if its source has one."""
    facts: DatasetFacts
    target: str
    """The task of its target, and the reason."""

    @property
    def notices(self) -> list[str]:
        """Warnings about detected formats, and a notice for each dropped column."""
        return self.preview.notices() if self.preview else []

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the detected format of the file, and about copies of rows."""
        told = self.preview.warnings if self.preview else ()
        share = f"{100 * self.facts.duplicate_fraction:.1f} %"
        words = f"{share} of the rows equal another row in all inputs: splits keep them together"
        return (*told, words) if _has_copies(self.facts) else told


def start_parents(registry: Registry) -> WarmParents:
    """Start the process that tasks are forked from; its imports run while a file is read.

    It imports the methods of the suites in `OWN_TABLES`: tasks that import much report much.
    """
    ref, size = Ref(min(registry.all("dataset"))), Size(MIN_ROWS, 1, sparse=False)
    suites = [
        read_for(ref, size, *find(name, registry), registry, installed_only=True).suite
        for name in OWN_TABLES.values()
    ]
    blocks = tuple(block for suite in suites for block in suite.blocks)
    parents = WarmParents(make_preload(replace(suites[0], blocks=blocks), registry))
    with parents.using() as sandbox:
        sandbox.warm()
    return parents


def prepare_data(
    path: str, registry: Registry, keep: Sequence[str] | None = None, **options: Any
) -> UserData:
    """Profile and load a user's file, and choose the task of its target.

    The options are those of `dataset_of_file`; `keep` has columns that are never dropped.
    DatasetError is raised if the file cannot be read, or its target is unusable; see `choose`.
    """
    ref = dataset_of_file(path, registry=registry, **options)
    if keep and registry.get("dataset", ref.name).rows is None:
        raise DatasetError(f"file {path!r}: {option('keep')} does not apply to {ref.name} files")
    # profiling and loading each read the file
    with reject_changes(list_files(Path(path).expanduser()), f"file {path!r}"):
        return _preview_data(ref, path, registry, keep or ())


def _preview_data(ref: Ref, path: str, registry: Registry, keep: Sequence[str]) -> UserData:
    seen = preview(ref, registry, keep)
    ref = add_preview(ref, seen)
    asked: TaskType | None = ref.params.get("task")
    label = f"file {path!r}"
    taken = read_parameters(registry.get("dataset", ref.name).load)
    if taken is not None and "task" not in taken:  # the source decides
        facts = fetch_dataset(ref, registry)
        return UserData(ref, seen, facts, f"target {_name(ref)!r}: {facts.task}")
    if seen is not None:
        chosen, sentence = choose(seen.target, _name(ref), label, asked)
        # the source decides about labels
        if seen.target.kind == "numbers" or asked:
            ref = _with_task(ref, chosen)
        facts = fetch_dataset(ref, registry)
        told = *leaks(facts, [role.name for role in seen.roles]), *alike_classes(facts.target_names)
        seen = replace(seen.for_classes(facts.n_classes), warnings=(*seen.warnings, *told))
        return UserData(ref, seen, facts, sentence)
    data = _load_data(ref, label, asked, registry)
    if keep and data.facts.sparse:
        raise DatasetError(
            f"{label}: {option('keep')} does not apply to sparse rows: no column is dropped"
        )
    return data


def _load_data(ref: Ref, label: str, asked: TaskType | None, registry: Registry) -> UserData:
    try:
        facts = fetch_dataset(ref, registry)
    except DatasetError as refused:
        if asked:
            raise
        # too many integers for classes, or an error for any task
        try:
            facts = fetch_dataset(_with_task(ref, "regression"), registry)
        except DatasetError:
            raise refused from None
    data = DataCache().load_for(facts)
    column = TargetColumn.from_labels(data.y, tuple(data.target_names))
    chosen, sentence = choose(column, _name(ref), label, asked)
    if chosen != "classification" or facts.task != "classification":
        ref = _with_task(ref, chosen)
        facts = fetch_dataset(ref, registry)
    return UserData(ref, None, facts, sentence)


def _name(ref: Ref) -> str:
    """Return the name of the target column, "target" for files without names."""
    return str(ref.params.get("target", "label"))


def _with_task(ref: Ref, task: TaskType) -> Ref:
    return Ref(ref.name, {**ref.params, "task": task}, ref.label)


def fetch_dataset(ref: Ref, registry: Registry) -> DatasetFacts:
    """Load a dataset into the data cache and return its facts; raise DatasetError if that fails."""
    registry.get("dataset", ref.name)
    with open_fetching(registry) as fetching:
        facts = fetching.dataset(ref)
    if isinstance(facts, Problem):
        raise DatasetError(facts.reason)
    return facts


def suite_for(
    ref: Ref,
    facts: DatasetFacts,
    registry: Registry,
    feature_maps: Sequence[str] = (),
    learners: Sequence[str] = (),
    by: Comparison | None = None,
) -> Suite:
    """Return the suite that compares methods on all rows of one file.

    They are compared by the metric of `by`, or that of the suite in `OWN_TABLES`. Named
    components replace its methods, as `kbench_tables.size_rules.choose_cells` does it; methods that
    are not installed are left out. The suite is named as the file, and has one block for each
    method, in the order of that suite.

    An error is raised if a component is not installed, or if there are too few rows.
    """
    by = by or Comparison()
    sized, methods = sized_methods(ref, facts, registry, feature_maps, learners)
    blocks = [
        Block((ref,), (c.feature_map,), (c.learner,), by.protocol(c.protocol, facts.n_classes))
        for c in by.weigh(methods, registry)
    ]
    return name_suite(sized, ref, blocks, by)


def sized_methods(
    ref: Ref,
    facts: DatasetFacts,
    registry: Registry,
    feature_maps: Sequence[str] = (),
    learners: Sequence[str] = (),
    size: Size | None = None,
) -> tuple[SizedSuite, list[Cell]]:
    """Return the suite in `OWN_TABLES` for a file, or for another size, and its methods.

    DatasetError is raised if the file has too few rows.
    """
    if facts.n_samples < MIN_ROWS:
        raise DatasetError(
            f"{ref.label}: {facts.n_samples} rows are too few to compare methods; at least "
            f"{MIN_ROWS} are required"
        )
    size = size or size_of(ref, facts)
    own_table = find(OWN_TABLES[facts.task], registry)
    sized = read_for(ref, size, *own_table, registry, installed_only=True)
    cells = choose_cells(sized, registry, feature_maps, learners)
    if facts.n_splits:  # by groups or by order
        cells = [
            replace(c, protocol=replace(c.protocol, cv="official", inner_cv="official"))
            for c in cells
        ]
    elif _has_copies(facts):
        cells = [replace(c, protocol=replace(c.protocol, cv="group_duplicates")) for c in cells]
    return sized, name_for_task(cells, facts, registry)


def _has_copies(facts: DatasetFacts) -> bool:
    """Whether so many rows are copies that splits keep these together: a model may repeat them."""
    is_share = COPIES[0] <= facts.duplicate_fraction <= COPIES[1]
    return is_share and facts.n_samples <= COPIES_ROWS and not facts.n_splits


def name_for_task(cells: Sequence[Cell], facts: DatasetFacts, registry: Registry) -> list[Cell]:
    """Return cells whose learners are labelled as a run labels them for the task of a file."""
    return [replace(c, learner=relabel_for_task(c.learner, facts.task, registry)) for c in cells]


def size_of(ref: Ref, facts: DatasetFacts, rows: int | None = None) -> Size:
    """Return what the rules of a suite depend on, for all rows or a sample."""
    further = rare_class(facts) is not None, bool(ref.params.get("time_column")), is_skewed(facts)
    return Size(rows or facts.n_samples, facts.n_features, facts.sparse, *further)


# Minimum skewness of a target whose logarithms are tried.
SKEWED = 1.0


def is_skewed(facts: DatasetFacts) -> bool:
    """Whether a numeric target is not negative, skewed, and half as skewed as logarithms."""
    if facts.task != "regression":
        return False
    y = np.asarray(DataCache().load_for(facts).y, dtype=float)
    if y.min() < 0:
        return False
    columns = y, np.log(y + (y.min() == 0))
    skew, of_logs = (np.mean(((z - z.mean()) / z.std()) ** 3) for z in columns)
    return bool(skew > SKEWED and 2 * abs(of_logs) < skew)


# Minimum share of test rows outside of the training range of a drifting column.
DRIFT = 0.1


def drifting_columns(ref: Ref, facts: DatasetFacts, columns: Sequence[str]) -> list[str]:
    """Return the columns whose values leave their training range in the last split by time.

    The time itself does not count. `columns` are those of the file.
    """
    by = ref.params.get("time_column")
    if not by or facts.sparse or not facts.feature_names:
        return []
    data = DataCache().load_for(facts)
    with np.errstate(invalid="ignore"):
        train, test = (
            np.asarray(data.X[rows], dtype=float)
            for rows in (data.splits[0].train, data.splits[0].test)
        )
        is_outside = (test < np.fmin.reduce(train)) | (test > np.fmax.reduce(train))
    places = np.flatnonzero(is_outside.mean(axis=0) > DRIFT)
    named = (_source_column(facts.feature_names[j], columns) for j in places)
    return [name for name in dict.fromkeys(named) if name != by]


def name_suite(sized: SizedSuite, ref: Ref, blocks: Sequence[Block], by: Comparison) -> Suite:
    """Return a suite named after the file, with these blocks and this metric."""
    name = Path(ref.params["path"]).name
    return replace(
        sized.suite,
        name=ref.label if is_pattern(name) else name,
        blocks=tuple(blocks),
        metric=by.metric or sized.suite.metric,
    )


def alike_classes(names: Sequence[str]) -> list[str]:
    """Return a notice on classes whose names differ in capital letters only.

    >>> alike_classes(["No", "no", "yes"])
    ["classes 'No', 'no' differ in capital letters only: in the file, write one name for a class"]
    """
    counts = Counter(name.lower() for name in names)
    alike = [name for name in names if counts[name.lower()] > 1]
    advice = "differ in capital letters only: in the file, write one name for a class"
    return [f"classes {list_some(alike)} {advice}"] if alike else []


# Number of rows that preselect the columns to test on all rows.
LOOKED_AT = 1000

# Maximum unexplained standard deviation of a leaking column, as a share of its own.
ALIKE = 1e-9


def leaks(facts: DatasetFacts, columns: Sequence[str]) -> list[str]:
    """Return a notice on columns of a dense table in the cache that determine the target.

    A column determines classes if it has one value per class, and numbers if it is a linear
    function of them. `columns` are those of the file.
    """
    if facts.sparse or not facts.feature_names:
        return []
    data = DataCache().load_for(facts)
    places = _repeating(data.X, np.asarray(data.y), facts.task == "regression")
    names = list(dict.fromkeys(_source_column(facts.feature_names[j], columns) for j in places))
    if not names:
        return []
    column, tells, it, leaves = "column", "tells", "it is", "leaves it"
    if len(names) > 1:
        column, tells, it, leaves = "columns", "tell", "they are", "leave them"
    return [
        f"{column} {list_some(names, 3)} {tells} the target of every row (target leakage): "
        f"if {it} not available before the target is, {option('drop', names[:3])} {leaves} out"
    ]


def _repeating(X: np.ndarray, y: np.ndarray, is_numeric: bool) -> np.ndarray:
    test = _is_multiple if is_numeric else _is_constant_by_class
    # rows from the whole table: the first ones may be of one class
    rows = np.linspace(0, len(y) - 1, min(LOOKED_AT, len(y))).astype(int)
    chosen = np.flatnonzero(test(np.asarray(X[np.unique(rows)], dtype=float), y[np.unique(rows)]))
    return np.array([j for j in chosen if test(np.asarray(X[:, [j]], dtype=float), y)[0]], int)


def _is_constant_by_class(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    is_constant = np.ones(X.shape[1], dtype=bool)
    for label in np.unique(y):
        part = X[y == label]
        is_constant &= (part == part[0]).all(axis=0)
    return np.asarray(is_constant & (X[0] != X).any(axis=0))


def _is_multiple(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    centred, target = X - X.mean(axis=0), y - y.mean()
    size = (centred**2).sum(axis=0) * (target**2).sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        unexplained = 1.0 - (centred * target[:, None]).sum(axis=0) ** 2 / size
    return np.asarray(unexplained <= ALIKE)  # false of NaN


def _source_column(feature: str, columns: Sequence[str]) -> str:
    fitting = [name for name in columns if feature == name or feature.startswith(f"{name}=")]
    return max(fitting, key=len, default=feature)
