"""Read suite files with rules on the size of data for one dataset."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator

from kbench import features
from kbench.messages import did_you_mean
from kbench.records import Block, Cell, Ref, Suite

Count = Annotated[int, Field(ge=0)]

# The lists of a suite with rules on size.
METHODS = {key: kind for key, kind in features.LISTS.items() if key != "datasets"}


class _Bounds(features.StrictTable):
    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name in ("", "_rows", "_features"):
            least, most = (getattr(self, f"{end}{name}", None) for end in ("min", "max"))
            if least is not None and most is not None and least > most:
                raise ValueError(f"min{name} is more than max{name}")
        return self


class WhenTable(_Bounds):
    """A table `when`: inclusive bounds on the size of data, and what else they must be."""

    min_rows: Count = 0
    max_rows: Count = sys.maxsize
    min_features: Count = 0
    max_features: Count = sys.maxsize
    sparse: bool | None = None
    rare: bool | None = None
    ordered: bool | None = None
    skewed: bool | None = None


class RuleTable(features.StrictTable):
    """A table `[[rule]]`: changes of `[protocol]`."""

    when: WhenTable
    protocol: features.ProtocolTable


class ShareTable(_Bounds):
    """A parameter value that depends on the number of rows."""

    fraction_of_rows: Annotated[float, Field(gt=0, le=1)]
    min: Annotated[int, Field(ge=1)] = 1
    max: Annotated[int, Field(ge=1)] | None = None


class SizedBlockTable(features.BlockTable):
    """A table `[[block]]` of a suite with rules on size."""

    when: WhenTable = WhenTable()


class SizedSuiteFile(features.SuiteFile):
    """A suite file with rules on size."""

    rule: list[RuleTable] = Field(default_factory=list)
    block: list[SizedBlockTable] = Field(default_factory=list)  # type: ignore[assignment]


@dataclass(frozen=True)
class Size:
    """Size of a dataset: the shape of its inputs, and whether they are a sparse matrix.

    `rare` is whether one of its classes is rare, `ordered` whether its splits are by time,
    `skewed` whether its logarithmic target is tried.
    """

    rows: int
    features: int
    sparse: bool
    rare: bool = False
    ordered: bool = False
    skewed: bool = False


@dataclass(frozen=True)
class SizedSuite:
    """A suite with rules on size, for one dataset.

    `suite` has the blocks whose rules hold, `left_out` the other blocks. `shared` has the
    lists and the protocol at the top of the file; missing lists are empty.
    """

    suite: Suite
    shared: Block
    left_out: tuple[Block, ...]


def read_for(
    dataset: Ref,
    size: Size,
    text: str,
    name: str,
    registry: features.Registry,
    installed_only: bool = False,
) -> SizedSuite:
    """Read a suite file with rules on size for one dataset; the file lists none.

    `installed_only` skips entries whose component is not installed; otherwise they are errors.

    SuiteError is raised with all errors of the file, also in rules that do not hold; a TOML syntax
    error is reported alone.
    """
    problems: list[str] = []
    raw = features.parse_toml(text, name)
    for place, table in features.tables_of_file(raw):
        for key in METHODS.keys() & table.keys():
            table[key] = _fill_in(table[key], f"{place}{key}", size, problems)
    problems += [
        f"{place}: a suite with rules on size has no datasets; it is read for one dataset"
        for place in (
            *(place for place, _, _ in features.iterate_lists(raw, {"datasets": "dataset"})),
            *raw.keys() & {"dataset_protocols"},
        )
    ]
    file, lines = features.checked_suite(
        raw, SizedSuiteFile, METHODS, registry, problems, installed_only
    )
    context = features.make_context(registry)
    rules = [rule.protocol for rule in file.rule if _holds(rule.when, size)]
    protocol = file.protocol.update("protocol", *rules, context=context)
    blocks: dict[bool, list[Block]] = {True: [], False: []}
    for number, block_table in enumerate(file.block or [SizedBlockTable()]):
        block = Block(
            (dataset,),
            features.read_block_list(lines, f"block[{number}].", "feature_maps"),
            features.read_block_list(lines, f"block[{number}].", "learners"),
            features.read_block_protocol(protocol, block_table, number, context).record(),
        )
        if block.feature_maps and block.learners:  # otherwise no component of it is installed
            blocks[_holds(block_table.when, size)].append(block)
    top = [lines[key].refs if key in lines else () for key in ("feature_maps", "learners")]
    return SizedSuite(
        suite=features.make_suite(file, name, tuple(blocks[True]), registry),
        shared=Block((dataset,), top[0], top[1], protocol.record()),
        left_out=tuple(blocks[False]),
    )


def list_cells(text: str, name: str, registry: features.Registry) -> list[Cell]:
    """Return the cells of all blocks of a suite with rules on size, for 1,000 rows.

    SuiteError is raised with all errors of the file.
    """
    sized = read_for(Ref("data"), Size(1000, 10, False), text, name, registry)
    return features.cells(
        replace(sized.suite, blocks=(*sized.suite.blocks, *sized.left_out)), registry
    )


def choose_cells(
    sized: SizedSuite,
    registry: features.Registry,
    feature_maps: Sequence[str] = (),
    learners: Sequence[str] = (),
) -> list[Cell]:
    """Return the cells of a suite for one dataset, or of named components instead.

    Each named map is combined with each named learner, with the parameters of the suite's entries
    or their defaults. Without learners, those at the top of the file are used; without maps, each
    map of the cells. Cells of the suite come first, in its order.

    SuiteError is raised if a component is not installed.
    """
    listed = features.cells(sized.suite, registry)
    if not (feature_maps or learners):
        return listed
    names_by_key = {"feature_maps": feature_maps, "learners": learners}
    problems = [
        f"no {kind} is named {name!r}{did_you_mean(name, registry.all(kind))}"
        for key, kind in METHODS.items()
        for name in names_by_key[key]
        if name not in registry.all(kind)
    ]
    if problems:
        raise features.SuiteError(*problems)
    maps = _find_refs(sized, "feature_maps", feature_maps, registry)
    refs = _find_refs(sized, "learners", learners, registry)
    block = replace(
        sized.shared,
        feature_maps=_unique(maps or [cell.feature_map for cell in listed]),
        learners=_unique(refs or sized.shared.learners or [cell.learner for cell in listed]),
    )
    order = {c.method: place for place, c in enumerate(listed)}
    return sorted(
        features.cells(replace(sized.suite, blocks=(block,)), registry),
        key=lambda cell: order.get(cell.method, len(order)),
    )


def _find_refs(
    sized: SizedSuite, key: str, names: Sequence[str], registry: features.Registry
) -> list[Ref]:
    """Return the entries of components, preferably of blocks whose rules hold.

    Those for another scale of the target do not count.
    """
    scale = sized.shared.protocol.target_scale
    refs: list[Ref] = []
    for name in names:
        holding, excluded = (
            [
                ref
                for block in blocks
                for ref in getattr(block, key)
                if ref.name == name and block.protocol.target_scale == scale
            ]
            for blocks in ((*sized.suite.blocks, sized.shared), sized.left_out)
        )
        refs += holding or excluded or [features.add_label(name, {}, METHODS[key], registry)]
    return refs


def _unique(refs: Sequence[Ref]) -> tuple[Ref, ...]:
    first = {ref.label: ref for ref in reversed(refs)}
    return tuple(first[label] for label in dict.fromkeys(ref.label for ref in refs))


def _holds(when: WhenTable, size: Size) -> bool:
    return (
        when.min_rows <= size.rows <= when.max_rows
        and when.min_features <= size.features <= when.max_features
        and when.sparse in (None, size.sparse)
        and when.rare in (None, size.rare)
        and when.ordered in (None, size.ordered)
        and when.skewed in (None, size.skewed)
    )


def _fill_in(value: Any, at: str, size: Size, problems: list[str]) -> Any:
    """Return a parameter value with fractions of the rows replaced by numbers."""
    if isinstance(value, list):
        return [_fill_in(item, f"{at}[{i}]", size, problems) for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if not features.is_share(value):
        return {key: _fill_in(item, f"{at}.{key}", size, problems) for key, item in value.items()}
    try:
        share = ShareTable.model_validate(value)
    except ValidationError as error:
        problems += features.explained_mistakes(error, value, ShareTable, at)
        return 1
    # in decimals: 0.1 of 30 rows are 3
    n = max(share.min, int(Fraction(str(share.fraction_of_rows)) * size.rows))
    return n if share.max is None else min(n, share.max)
