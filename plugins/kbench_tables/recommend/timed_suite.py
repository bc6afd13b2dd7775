"""The suite of a recommendation within a time limit, and parameters that the user gives."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kbench.errors import SuiteError
from kbench.features import LISTS, PlannedCell, Registry, check_limit, find, parameter_problems
from kbench.messages import option
from kbench.records import Block, Cell, DatasetFacts, Protocol, Ref, Suite
from kbench_tables.recommend import user_data
from kbench_tables.recommend.metric import Comparison
from kbench_tables.size_rules import choose_cells, read_for
from kbench_tables.time_budget.sample_sizes import Name, all_train_rows

# The value of a parameter of a map or a learner.
Setting: TypeAlias = int | float | str | bool

# Sides of a method, and the lists of a block that have them.
SIDES = {"feature_map": "feature_maps", "learner": "learners"}

# The setting of the scale of the target.
SCALE = "protocol.target_scale"


def parse_settings(texts: Iterable[str]) -> dict[str, object]:
    """Parse settings such as ``learner.C=8``; raise SuiteError for an invalid one.

    >>> parse_settings(["learner.C=8", "feature_map.bandwidth_factor=0.5"])
    {'learner.C': 8, 'feature_map.bandwidth_factor': 0.5}
    """
    settings: dict[str, object] = {}
    for assignment in texts:
        name, is_given, value = assignment.partition("=")
        side, _, parameter = name.partition(".")
        if assignment in (f"{SCALE}=linear", f"{SCALE}=log"):
            settings[name] = value
            continue
        if not (is_given and parameter and side in SIDES):
            allowed = " or ".join([*(f"{each}.NAME=VALUE" for each in SIDES), f"{SCALE}=log"])
            raise SuiteError(f"{option('params')} must be {allowed}, got {assignment!r}")
        settings[name] = _value(value)
    return settings


def apply_settings(suite: Suite, settings: Mapping[str, Any], registry: Registry) -> Suite:
    """Return a suite whose methods have given parameters.

    SuiteError is raised if a method has no such parameter.
    """
    blocks = []
    for block in suite.blocks:
        lists: dict[str, Any] = {
            key: tuple(_apply_to_ref(ref, side, settings) for ref in getattr(block, key))
            for side, key in SIDES.items()
        }
        scale = settings.get(SCALE, block.protocol.target_scale)
        blocks.append(replace(block, protocol=replace(block.protocol, target_scale=scale), **lists))
        for side, key in SIDES.items() if settings else ():
            placed = [(f"{option('params')} {side}", ref) for ref in lists[key]]
            if problems := parameter_problems(placed, LISTS[key], registry):
                raise SuiteError(*problems)
    return replace(suite, blocks=tuple(blocks))


def _apply_to_ref(ref: Ref, side: str, settings: Mapping[str, object]) -> Ref:
    parts = ((*name.partition("."), value) for name, value in settings.items())
    more = {name: value for of, _, name, value in parts if of == side}
    return Ref(ref.name, {**ref.params, **more}, ref.label)


def scale_setting(planned: PlannedCell) -> dict[str, object]:
    """Return the setting of a cell for the logarithms of its target, if it has them."""
    return {SCALE: "log"} if planned.cell.protocol.target_scale == "log" else {}


def chosen_settings(planned: PlannedCell) -> dict[str, object]:
    """Return the given and the chosen parameters of a cell that have plain values."""
    settings: dict[str, object] = {}
    for side in SIDES:
        ref: Ref = getattr(planned.cell, side)
        settings |= {f"{side}.{name}": value for name, value in ref.params.items()}
    settings |= planned.done[0].details.chosen
    return scale_setting(planned) | {
        name: value
        for name, value in settings.items()
        if isinstance(value, int | float | str)
        and name.count(".") == 1
        and name.partition(".")[0] in SIDES
    }


def _value(value: str) -> Setting:
    if value in ("true", "false"):
        return value == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


# Ratio of the training rows of consecutive samples.
STEP = 4

# Minimum number of training rows of the smallest sample.
MIN_ROWS = 500

WIDE, MIN_OF_WIDE, MIN_OF_CLASS = 2000, 100, 20
"""Number of columns from which a sample may be smaller, its minimum rows, and those per class.

A fit on all of 1,600 rows with 10,000 columns may take minutes.
"""

# Number of rows from which one holdout replaces folds: its test set has thousands of rows.
HOLDOUT_FROM = 50_000

# Size of the test set of a holdout.
TEST_SHARE, MAX_TEST_ROWS = 0.2, 50_000

# A task may take at most 1 / SHARE of the whole time. Half of it ended boosting of 26 classes just
# before its end.
SHARE = 1.5

# Minimum time limit of a task, so that cheap methods finish in a short run.
SHORTEST_S = 2.0


@dataclass(frozen=True)
class Rounds:
    """A suite with each method on nested samples of the rows, and its first methods."""

    suite: Suite
    """The dataset of a cell on a sample has a label with the number of rows."""
    first: tuple[Name, ...] = ()
    on_all_rows: tuple[Cell, ...] = ()


def rounds_for(
    ref: Ref,
    facts: DatasetFacts,
    registry: Registry,
    feature_maps: Sequence[str] = (),
    learners: Sequence[str] = (),
    total_s: float | None = 60.0,
    by: Comparison | None = None,
) -> Rounds:
    """Return the suite of `kbench_tables.recommend.user_data.suite_for` for `total_s` seconds.

    Without a time limit there are no samples. Each sample has the methods, widths and searches of
    data of its size, and the splits of all rows, so that all cells have the same test sets. Named
    components replace the first methods too.

    An error is raised if a component is not installed, the time is not positive, or there are too
    few rows.
    """
    if total_s is None:
        return Rounds(user_data.suite_for(ref, facts, registry, feature_maps, learners, by))
    check_limit(total_s, "time_limit")
    by = by or Comparison()
    sized, methods = user_data.sized_methods(ref, facts, registry, feature_maps, learners)
    splits = _splits(methods[0].protocol, facts.n_samples)
    blocks: list[Block] = []
    first, named = dict[Name, None](), set[Name]()
    least = max(MIN_OF_WIDE, MIN_OF_CLASS * facts.n_classes)
    least = min(MIN_ROWS, least) if facts.n_features >= WIDE else MIN_ROWS
    for rows in [*_samples(all_train_rows(splits, facts.n_samples), least), None]:
        size = user_data.size_of(ref, facts, rows)
        line = ref if rows is None else Ref(ref.name, ref.params, f"{ref.label} ({rows:,} rows)")
        cells: list[Cell] = []
        if not (feature_maps or learners):
            suite_file, name = find(user_data.FIRST_ROUNDS[facts.task], registry)
            cells = choose_cells(read_for(line, size, suite_file, name, registry, True), registry)
            cells = user_data.name_for_task(cells, facts, registry)
        named |= {cell.method for cell in cells}
        first |= dict.fromkeys(cell.method for cell in cells)
        _, all_cells = user_data.sized_methods(line, facts, registry, feature_maps, learners, size)
        cells += [cell for cell in all_cells if cell.method not in named]
        for cell in by.weigh(cells, registry):
            protocol = replace(
                by.protocol(cell.protocol, facts.n_classes),
                cv=splits.cv,
                n_folds=splits.n_folds,
                test_size=splits.test_size,
                inner_cv=splits.inner_cv,
                max_train_rows=rows,
            )
            blocks.append(Block((line,), (cell.feature_map,), (cell.learner,), protocol))
    suite = user_data.name_suite(sized, ref, blocks, by)
    time_s = min(suite.limits.task_timeout_s, max(total_s / SHARE, SHORTEST_S))
    suite = replace(suite, limits=replace(suite.limits, task_timeout_s=time_s))
    return Rounds(suite, tuple(first), tuple(by.weigh(methods, registry)))


def _samples(n_train: int, least: int = MIN_ROWS) -> list[int]:
    """Return the sizes of the samples in ascending order, without that of all rows.

    >>> _samples(80_000), _samples(1500), _samples(1600, 100)
    ([1250, 5000, 20000], [], [100, 400])
    """
    rows, sizes = n_train // STEP, list[int]()
    while rows >= least:
        sizes.insert(0, rows)
        rows //= STEP
    return sizes


def _splits(protocol: Protocol, n_samples: int) -> Protocol:
    if protocol.cv == "official":
        # four fifths of the rows train, as in the first split by time, which has the most; of a
        # small table, the second and third have three and two fifths
        return replace(protocol, n_folds=5)
    if n_samples < HOLDOUT_FROM:
        return protocol
    n_test = min(round(TEST_SHARE * n_samples), MAX_TEST_ROWS)
    return replace(protocol, cv="holdout", test_size=n_test)
