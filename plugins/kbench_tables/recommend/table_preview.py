"""Preview a user's table before it is loaded: columns, encodings and target."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from kbench.errors import DatasetError
from kbench.features import Reference, Registry, group_values, read_parameters, resolve
from kbench.messages import list_some, option, printable
from kbench.records import Make, Ref
from kbench.records.canonical import from_json, to_json
from kbench.tables.table import check_columns, no_column
from kbench.tables.texts import MISSING, DateColumn, UnitColumn
from kbench_tables.profile import (
    BY_TARGET,
    LEFT_OUT,
    ColumnProfile,
    Params,
    Role,
    decide,
    is_code,
    repeats,
)
from kbench_tables.recommend.target import MAX_CLASSES, TargetColumn
from kbench_tables.text_scan import UnitScan, sentence

if TYPE_CHECKING:
    import pandas

# Maximum number of dropped columns of a kind with one notice each.
SHOWN = 3

# Parameters of a source that decide the encoding of columns.
OF_COLUMNS = ("drop", "categorical", "date_formats", "target_encode", "strip_units", "na_values")


@dataclass(frozen=True)
class Preview:
    """The user's table before it is encoded."""

    n_rows: int
    n_unlabelled: int
    """Numbers of all rows and of those without a label."""
    roles: tuple[Role, ...]
    target: TargetColumn
    params: dict[str, str | tuple[str, ...]]
    """Parameters of the source for this format and these encodings."""
    sentence: str = ""
    warnings: tuple[str, ...] = ()
    """Warnings about the format, each with the option that changes it."""

    @classmethod
    def from_json(cls, values: object) -> Preview:
        """Parse the output of a plugin's process; raise ValueError if it is not a preview."""
        from pydantic import TypeAdapter

        result = TypeAdapter(cls).validate_json(json.dumps(values), strict=True)
        return replace(result, target=replace(result.target, odd=printable(result.target.odd, 60)))

    def for_classes(self, n_classes: int) -> Preview:
        """Return the preview for this number of classes: target encoding has a mean for each."""
        if n_classes <= 2:
            return self
        roles = [
            replace(role, encoded_as=f"{BY_TARGET} and class", n_columns=n_classes)
            if role.encoded_as == BY_TARGET
            else role
            for role in self.roles
        ]
        return replace(self, roles=tuple(roles))

    @property
    def n_columns(self) -> int:
        """Number of encoded features."""
        return sum(role.n_columns > 0 for role in self.roles)

    def notices(self) -> list[str]:
        """Return warnings about detected formats, and notices of dropped columns.

        There is one for each column, or one for many columns of a kind.
        """
        left_out = [role for role in self.roles if role.encoded_as == LEFT_OUT]
        by_kind = group_values((role.read_as, role) for role in left_out)
        by_kind.pop("not read", None)
        notices = list(self.warnings)
        for kind, out in by_kind.items():
            many = f"left out: {len(out):,} columns ({kind}): {list_some([r.name for r in out], 3)}"
            each = [f"left out: {role.name!r}, {kind}: {role.note}" for role in out]
            notices += each if len(out) <= SHOWN else [many]
        return notices


def preview(ref: Ref, registry: Registry, keep: Sequence[str] = ()) -> Preview | None:
    """Inspect a user's table before it is loaded.

    Columns to `keep` are never dropped. The result is None for files whose source has no table, and
    for files with another error, which loading reports. DatasetError is raised if a few values of a
    column have another type.
    """
    source = registry.all("dataset").get(ref.name)
    if source is None or source.rows is None or "target" not in ref.params:
        return None
    taken = read_parameters(source.load)
    asked = {
        "dataset": to_json(ref),
        "keep": list(keep),
        "taken": list(OF_COLUMNS if taken is None else set(OF_COLUMNS) & set(taken)),
    }
    try:
        if isinstance(source.rows, Reference):
            values = source.rows.call(f"{__name__}:preview_in_sandbox", asked)
            return values and Preview.from_json(values)
        return _read_preview(source.rows, ref, asked)
    except DatasetError:
        raise
    except Exception:  # pandas' errors have no common base
        return None


def preview_in_sandbox(read: Make, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """Inspect a table, in a process that imports the plugin that reads it."""
    preview = _read_preview(read, from_json(asked["dataset"]), asked)
    return None if preview is None else asdict(preview)


def _read_preview(read: Make, ref: Ref, asked: Mapping[str, Any]) -> Preview | None:
    target, table = ref.params["target"], resolve(read)(**ref.params)
    if table is None:
        return None
    label = table.rows.what
    rows, drop = table.rows, ref.params.get("drop", ())
    if target not in rows.names and str(target).strip() in rows.names:
        target = str(target).strip()
    check_columns(list(rows.names), label, target, drop, None)
    specs = ref.params.get("date_formats", ())
    date_formats = {date.name: date for date in (DateColumn.parse(each, label) for each in specs)}
    for key, names in (("categorical", ref.params.get("categorical", ())), ("keep", asked["keep"])):
        for name in names:
            if name not in rows.names:
                raise DatasetError(f"{label}, {option(key)}: {no_column(name, rows.names)}")
    decimal = str({**ref.params, **table.params}.get("decimal", "."))
    profiles = {
        name: ColumnProfile(name, date_formats.get(name), decimal=decimal)
        for name in rows.names
        if name != target and name not in drop
    }
    targets = _Collected()
    n_rows = rows.scan({**profiles, target: targets})
    if not n_rows:
        raise DatasetError(f"{label}: it has no rows")
    labels, unit = _strip_unit(targets.series(), target, decimal, ref, asked)
    decided = decide(
        profiles,
        rows.names,
        Params(
            label,
            target,
            drop=drop,
            categorical=ref.params.get("categorical", ()),
            keep=asked["keep"],
            date_formats=date_formats,
            taken=asked["taken"],
            group=ref.params.get("groups"),
        ),
    )
    decided = replace(decided, strip_units=(*decided.strip_units, *(c.spec for c in unit)))
    params = {
        name: tuple(dict.fromkeys((*ref.params.get(name, ()), *names)))
        for name in OF_COLUMNS[:-1]
        if name in asked["taken"] and (names := getattr(decided, name))
    }
    read_as = {
        name: tuple(value) if isinstance(value, tuple | list) else str(value)
        for name, value in table.params.items()
    }
    if "date_formats" in params:  # with the detected periods
        params["date_formats"] = decided.date_formats
    return Preview(
        n_rows=n_rows,
        n_unlabelled=int(labels.isna().sum()),
        roles=decided.roles,
        target=TargetColumn.from_values(labels),
        params={"target": target, **read_as, **params},
        sentence=table.sentence,
        warnings=(
            *table.warnings,
            *(f"target {target!r}: {sentence(column)}" for column in unit),
            *_warn(profiles, decided.roles, ref.params),
        ),
    )


def _strip_unit(
    labels: Any, target: str, decimal: str, ref: Ref, asked: Mapping[str, Any]
) -> tuple[Any, list[UnitColumn]]:
    """Return labels that are numbers with a unit as plain numbers, and their format."""
    import pandas

    task, texts = ref.params.get("task"), labels.dropna().unique()
    if (
        "strip_units" not in asked["taken"]
        or task == "classification"
        or target in ref.params.get("categorical", ())
        or {type(value) for value in texts} != {str}
    ):
        return labels, []
    scan = UnitScan(decimal)
    scan.add(texts)
    column = scan.column(target)
    if column is None or (len(texts) <= MAX_CLASSES and task != "regression"):
        return labels, []
    numbers = {value: column.number(value) for value in texts if value.strip() not in MISSING}
    return pandas.Series(labels.map(numbers), dtype=float), [column]


def _warn(
    profiles: Mapping[str, ColumnProfile], roles: Sequence[Role], params: Mapping[str, Any]
) -> list[str]:
    warnings = []
    if codes := [r.name for r in roles if r.read_as == "numbers" and is_code(profiles[r.name])]:
        warnings.append(
            f"{list_some(codes)}: codes such as zip codes are read as numbers, without leading "
            f"zeros; {option('categorical', codes)} reads them as categories"
        )
    if params.get("groups") or params.get("time_column"):
        return warnings
    dates = [role.name for role in roles if role.read_as == "dates"]
    ids = [name for name, profile in profiles.items() if repeats(profile)]
    if dates:
        warnings.append(
            f"column {dates[0]!r} has dates: random splits also test on rows older than training "
            f"rows, which may be optimistic; {option('time_column', dates[0])} tests on the most "
            "recent rows"
        )
    if ids:
        warnings.append(
            f"values of {ids[0]!r} repeat: random splits have rows with the same value on both "
            f"sides, which may be optimistic; {option('group', ids[0])} keeps them together"
        )
    return warnings


class _Collected:
    """All values of one column; a `kbench.tables.table_rows.Scan`."""

    def __init__(self) -> None:
        self.note = ""
        self._parts: list[Any] = []

    def wants(self, series: pandas.Series | None = None) -> bool:
        return True

    def restart(self) -> None:
        self._parts.clear()

    def add(self, series: pandas.Series) -> None:
        self._parts.append(series)

    def series(self) -> Any:
        import pandas

        # a block without values has no type
        typed = [part for part in self._parts if part.notna().any()] or self._parts[:1]
        dtype = typed[0].dtype if len({str(part.dtype) for part in typed}) == 1 else None
        parts = [
            part if part.notna().any() or dtype is None else part.astype(object)
            for part in self._parts
        ]
        return parts[0] if len(parts) == 1 else pandas.concat(parts, ignore_index=True)


def add_preview(ref: Ref, preview: Preview | None) -> Ref:
    """Return the dataset entry with the parameters of its preview."""
    if preview is None or not preview.params:
        return ref
    return Ref(ref.name, {**ref.params, **preview.params}, ref.label)
