"""Models of a suite file, and their errors in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal, get_args, get_type_hints

import pydantic

from kbench.errors import SuiteError
from kbench.evaluation.definitions import METRICS, NEVER_RANKED, SEARCHED
from kbench.machine import physical_cores
from kbench.messages import did_you_mean, similar
from kbench.records import Limits, Metric, Protocol, Published, Step

Lines = Annotated[list[str | dict[str, Any]], pydantic.Field(min_length=1)]


class StrictTable(pydantic.BaseModel):
    """A table without unknown keys, whose values have the right types."""

    model_config = pydantic.ConfigDict(strict=True, extra="forbid")


def _make_model(record: type, **narrower: Any) -> type[StrictTable]:
    """Return the model of a table whose keys are the fields of a record.

    `narrower` has types that stand in place of those of the record, with a default of
    their own as pairs.
    """
    types = get_type_hints(record) | narrower
    keys: dict[str, Any] = {
        each.name: (types[each.name], ... if each.default is MISSING else each.default)
        for each in fields(record)
    }
    replaced = {name: type_ for name, type_ in narrower.items() if isinstance(type_, tuple)}
    return pydantic.create_model(record.__name__, __base__=StrictTable, **{**keys, **replaced})


_Count = Annotated[int, pydantic.Field(ge=1)]
_Several = Annotated[int, pydantic.Field(ge=2)]
_Positive = Annotated[float, pydantic.Field(gt=0)]
MAX_SEEDS = 50
"""Seeds of the map on one split: the predictions of all of them are handed over together."""

_Share = Annotated[float, pydantic.Field(gt=0, lt=1)] | _Count


class _TunedSteps(StrictTable):
    tune: Annotated[list[Step], pydantic.Field(min_length=1)]


_PROTOCOL = _make_model(
    Protocol,
    n_folds=_Several,
    train_size=_Share | None,
    test_size=_Share,
    max_train_rows=_Several | None,
    unlabeled_size=Annotated[float, pydantic.Field(ge=0, lt=1)]
    | Annotated[int, pydantic.Field(ge=0)],
    scaling=(Step | _TunedSteps, "minmax"),
    inner_folds=_Several,
    n_candidates=_Count,
    search_timeout_s=_Positive | None,
    map_seeds=Annotated[int, pydantic.Field(ge=1, le=MAX_SEEDS)],
    threads=_Count,
    gram_error_rows=_Several,
    seed=Annotated[int, pydantic.Field(ge=0)],
)


class ProtocolTable(_PROTOCOL):  # type: ignore[misc, valid-type]
    """The table `[protocol]`."""

    @pydantic.field_validator("scaling", mode="before")
    @classmethod
    def _one_model(cls, value: Any) -> Any:
        # pydantic would report a wrong value once per member of the union
        return _TunedSteps.model_validate(value) if isinstance(value, dict) else value

    @pydantic.field_validator("threads", mode="before")
    @classmethod
    def _resolve_threads(cls, value: Any) -> Any:
        # the number is in the key of a cell: times of other machines are other results
        if isinstance(value, str) and value != "all":
            raise ValueError(f'must be an integer >= 1 or "all", got {value!r}')
        return physical_cores() if value == "all" else value

    @pydantic.field_validator("search_metric")
    @classmethod
    def _known_metric(cls, value: str | None, info: pydantic.ValidationInfo) -> str | None:
        allowed = [*SEARCHED, *_plugin_metrics(info)]
        if value is not None and _check_ranked(value) not in allowed:
            raise ValueError(f"available: {', '.join(allowed)}{similar(value, allowed)}")
        return value

    @pydantic.model_validator(mode="after")
    def _fits(self) -> ProtocolTable:
        share = isinstance(self.train_size, float) and isinstance(self.test_size, float)
        if share and self.train_size + self.test_size > 1 + 1e-9:
            raise ValueError("train_size and test_size are more than 1 together")
        if self.block_dtype == "float32" and self.refit_maps_in_inner_folds:
            raise ValueError('block_dtype = "float32" needs refit_maps_in_inner_folds = false')
        if self.other_methods == "skip" and self.device == "cpu":
            raise ValueError('other_methods = "skip" needs a device other than "cpu"')
        if self.search_method == "racing" and not self.refit_maps_in_inner_folds:
            raise ValueError('search_method = "racing" needs refit_maps_in_inner_folds = true')
        if self.inner_cv == "official" and self.cv != "official":
            raise ValueError('inner_cv = "official" needs cv = "official"')
        return self

    def update(self, at: str, *tables: ProtocolTable, context: object) -> ProtocolTable:
        """Return the protocol with the keys that other tables give, later ones first.

        `at` is the place of the last table, for messages; raises SuiteError if keys
        of several tables do not go together.
        """
        values = {
            name: getattr(table, name)
            for table in (self, *tables)
            for name in table.model_fields_set
        }
        try:
            changed: ProtocolTable = ProtocolTable.model_validate(values, context=context)
        except pydantic.ValidationError as error:
            raise SuiteError(*explain_errors(error, values, ProtocolTable, at)) from error
        return changed

    def record(self) -> Protocol:
        """Return the protocol that the table describes."""
        values = self.model_dump()
        steps = values.pop("scaling")
        steps = tuple(steps["tune"]) if isinstance(steps, dict) else (steps,)
        return Protocol(scaling=steps, **values)


class ProtocolChanges(ProtocolTable):
    """Keys that a block or a dataset changes; `update` checks them with the other keys."""

    @pydantic.model_validator(mode="after")
    def _fits(self) -> ProtocolChanges:
        return self


_LIMITS = _make_model(
    Limits, n_splits=_Count | None, task_timeout_s=_Positive, task_memory_mib=_Positive
)


class LimitsTable(_LIMITS):  # type: ignore[misc, valid-type]
    """The table `[limits]`."""


_Text = Annotated[str, pydantic.Field(min_length=1)]

_PUBLISHED = _make_model(
    Published,
    dataset=_Text,
    feature_map=_Text,
    learner=_Text,
    metric=(_Text, "accuracy"),
    value=Annotated[float, pydantic.Field(allow_inf_nan=False)],
    sd=Annotated[float, pydantic.Field(ge=0)] | None,
    n_runs=_Count | None,
)


class PublishedTable(_PUBLISHED):  # type: ignore[misc, valid-type]
    """A table `[[published]]`."""


class MetricTable(StrictTable):
    """The table `metric`."""

    name: Annotated[str, pydantic.Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)]
    better: Literal["higher", "lower"]

    @pydantic.field_validator("name")
    @classmethod
    def _may_be_compared(cls, value: str) -> str:
        return _check_ranked(value)


def _plugin_metrics(info: pydantic.ValidationInfo) -> Mapping[str, Metric]:
    metrics: Mapping[str, Metric] = (info.context or {}).get("metrics", {})
    return metrics


def _check_ranked(name: str) -> str:
    if name in NEVER_RANKED:
        raise ValueError(NEVER_RANKED[name])
    return name


class BlockTable(StrictTable):
    """A table `[[block]]`."""

    datasets: Lines | None = None
    feature_maps: Lines | None = None
    learners: Lines | None = None
    protocol: ProtocolChanges | None = None


class SuiteFile(StrictTable):
    """A whole suite file."""

    name: Annotated[str, pydantic.Field(min_length=1, max_length=200)] | None = None
    description: str = ""
    data_source_hint: Annotated[str, pydantic.Field(max_length=500)] = ""
    equal_budget: Literal["candidates", "seconds"] | None = None
    metric: MetricTable | None = None
    protocol: ProtocolTable = ProtocolTable()
    dataset_protocols: dict[str, ProtocolChanges] = {}
    limits: LimitsTable = LimitsTable()
    published: list[PublishedTable] = []
    published_file: str = ""
    datasets: Lines | None = None
    feature_maps: Lines | None = None
    learners: Lines | None = None
    block: list[BlockTable] = []

    @pydantic.model_validator(mode="before")
    @classmethod
    def _tables_or_file(cls, raw: Any) -> Any:
        # a union would report an error in a table once per member
        if isinstance(raw, dict) and isinstance(raw.get("published"), str):
            return {**raw, "published": [], "published_file": raw["published"]}
        return raw

    @pydantic.field_validator("metric", mode="before")
    @classmethod
    def _known_metric(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        if value is None or isinstance(value, dict):
            return value
        if not isinstance(value, str):
            raise ValueError(
                'must be the name of a metric, such as "accuracy", or a table such as '
                '{ name = "...", better = "lower" }'
            )
        metrics = {**METRICS, **_plugin_metrics(info)}
        if _check_ranked(value) not in metrics:
            allowed = [name for name in metrics if name not in NEVER_RANKED]
            raise ValueError(
                f"available: {', '.join(allowed)}{similar(value, allowed)}; one that a "
                'plugin reports is written { name = "...", better = "lower" }'
            )
        return {"name": value, "better": metrics[value].better}

    @property
    def compared(self) -> Metric | None:
        """The metric that tables compare, as a record; None if the task decides it."""
        return Metric(self.metric.name, self.metric.better) if self.metric else None


def explain_errors(
    error: pydantic.ValidationError,
    raw: Mapping[str, object],
    model: type[pydantic.BaseModel],
    at: str = "",
) -> Iterator[str]:
    """Turn pydantic's errors into one line each, with the place as a path.

    `model` has validated `raw`, which stands at the path `at` of the file.
    """
    seen: set[str] = set()
    for problem in error.errors():
        # a union reports each of its members; the first says enough
        loc = [part for part in problem["loc"] if not _is_union_tag(part)]
        if (place := _path([at, *loc] if at else loc)) in seen:
            continue
        seen.add(place)
        if problem["type"] == "extra_forbidden":
            yield f"{place}: no such key{did_you_mean(str(loc[-1]), _keys_at(model, loc[:-1]))}"
        elif problem["type"] == "missing":
            yield f"{place}: missing"
        elif problem["type"] == "model_type":  # pydantic names the class
            yield f"{place} must be a table, got {_look_up(raw, loc)!r}"
        else:
            message = problem["msg"].removeprefix("Value error, ")
            value = _look_up(raw, loc)
            got = "" if isinstance(value, dict | list) else f"got {value!r}"
            if message.startswith("Input should be "):
                allowed = "must be " + message.removeprefix("Input should be ")
                yield f"{place or 'the file'} " + ", ".join(filter(None, (allowed, got)))
            else:
                yield f"{place or 'the file'}: " + "; ".join(filter(None, (got, message)))


def _is_union_tag(part: str | int) -> bool:
    """Return whether a part of a place is pydantic's name of a union member, not a key."""
    return isinstance(part, str) and (
        "[" in part or part in ("str", "float", "int", "literal", "_TunedSteps")
    )


def _keys_at(model: type[pydantic.BaseModel], loc: Sequence[str | int]) -> Iterable[str]:
    for part in loc:
        if part in model.model_fields:  # else the number or the label of a table
            model = next(_models_in(model.model_fields[part].annotation))
    return model.model_fields


def _models_in(annotation: object) -> Iterator[type[pydantic.BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _path(loc: Iterable[str | int]) -> str:
    """Write a place as a path.

    >>> _path(["block", 0, "protocol", "seed"])
    'block[0].protocol.seed'
    """
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _look_up(raw: Any, loc: Iterable[str | int]) -> Any:
    for part in loc:
        try:
            raw = raw[part]
        except (KeyError, IndexError, TypeError):
            return None
    return raw
