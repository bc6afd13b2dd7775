"""Saved views of MLflow's pages, as tags of an experiment.

MLflow keeps what "Save view" makes in a tag ``mlflow.sharedViewState.KEY`` of
the experiment and opens it for ``?viewStateShareKey=KEY``. The value is a JSON
object with ``name``, ``createdAt`` (milliseconds) and ``state``, the JSON text
of the table's filter, columns, groups and charts. Servers that have no menu of
views yet expect the keys of that state in the object itself: both are given.
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from kbench.errors import PluginError
from kbench.parameters import check_choice
from kbench.records import ACCURACY, Metric
from kbench.records.canonical import Json
from kbench_mlflow.tracking.run import CHOSEN, Experiment, StoredRun
from kbench_mlflow.tracking.summaries import on_dataset

REPEATED = ("on_dataset", "search", "chosen")
"""Placeholders that stand for several values."""


@dataclass(frozen=True)
class Facts:
    """What a view can show."""

    metric: Metric = ACCURACY
    """What the suite compares."""
    plain: str = "accuracy"
    """The best known metric of its task."""
    on_dataset: tuple[str, ...] = ()
    """The metrics of `metric` on each dataset."""
    searches: tuple[tuple[str, ...], ...] = ()
    """For each set of parameters that a cell has searched, the metrics of their chosen values."""

    @classmethod
    def of(cls, runs: Iterable[StoredRun], metric: Metric, plain: str) -> "Facts":
        """Return the facts of an experiment's runs of cells."""
        ok = [r for r in runs if r.complete and not r.superseded and r.state == "FINISHED"]
        datasets = sorted({run.params.get("dataset", "") for run in ok} - {""})
        searches = {
            tuple(sorted(name for name in run.means if name.startswith(CHOSEN))) for run in ok
        }
        return cls(
            metric,
            plain,
            tuple(on_dataset(metric.name, dataset) for dataset in datasets),
            # the largest sets first: they are the searches of maps with parameters
            tuple(sorted(searches - {()}, key=lambda names: (-len(names), names))),
        )


def fill(value: Json, facts: Facts, bound: Mapping[str, str] | None = None) -> Json:
    """Put facts into every string; duplicates that this makes in a list are removed.

    `bound` are the names in braces that have one value here.

    >>> fill(["{metric}", "{plain}", "{chosen}"], Facts(searches=(("a", "b"),)))
    ['accuracy', 'a', 'b']
    >>> fill({"w.{on_dataset}": 9}, Facts(on_dataset=("iris: accuracy", "wine: accuracy")))
    {'w.iris: accuracy': 9, 'w.wine: accuracy': 9}
    """
    bound = bound or {}
    if value == "{lower_is_better}":
        return facts.metric.better == "lower"
    if isinstance(value, str):
        texts = {"metric": facts.metric.name, "plain": facts.plain, **bound}
        # in one pass: what is put in is never read again
        return re.sub(r"\{(\w+)\}", lambda found: texts.get(found[1], found[0]), value)
    if isinstance(value, Mapping):
        return {
            fill(name, *each): fill(inner, *each)
            for name, inner in value.items()
            for each in _repetitions(name, facts, bound)
        }
    if isinstance(value, list):
        items = [fill(item, *each) for item in value for each in _repetitions(item, facts, bound)]
        return [item for i, item in enumerate(items) if item not in items[:i]]
    return value


def _repetitions(
    item: Json, facts: Facts, bound: Mapping[str, str]
) -> Iterator[tuple[Facts, Mapping[str, str]]]:
    """Yield the facts and values of each copy of an item; nothing where it has none."""
    text = json.dumps(item)
    if "{on_dataset}" in text and "on_dataset" not in bound:
        for name in facts.on_dataset:
            yield facts, {**bound, "on_dataset": name}
    elif "{search}" in text and "search" not in bound:
        for number, names in enumerate(facts.searches, 1):
            yield replace(facts, searches=(names,)), {**bound, "search": str(number)}
    elif isinstance(item, str) and "{chosen}" in item:
        for name in dict.fromkeys(name for names in facts.searches for name in names):
            yield facts, {**bound, "chosen": name}
    else:
        yield facts, bound


TAG = "mlflow.sharedViewState."

WITHOUT_RUN = "kbench.without_run."
"""Tags of an experiment with the number of cells that have no run, by machine."""

NOTE = (
    "Written by kbench. Runs of kind `method` have means over the datasets that all methods "
    "completed; runs of kind `cell` are single results, and MLflow's group means of them cover "
    "the first 100 loaded runs only. {without_run}Intervals and tests are in the report: {command} "
    "(run `report`)."
)
"""MLflow shows it above the runs, as Markdown."""

_OURS = "Written by kbench."
_VALUE_CHARS = 20_000
_MODES = ("table", "chart")


@dataclass(frozen=True)
class View:
    """A view of an experiment's runs."""

    key: str
    """Its name in URLs."""
    name: str
    """Its name in MLflow's menu of views."""
    mode: str
    """Which of MLflow's two pages it is for: "table" or "chart"."""
    state: Mapping[str, Json]
    """MLflow's state, with ``{metric}`` for the metric that a suite compares, ``{plain}`` for the
    default one of its task (accuracy or rmse), and ``"{lower_is_better}"`` for whether lower
    values of the metric are better. An item of a list, or a name in an object, is repeated for
    each dataset where it has ``{on_dataset}`` (the metric of the metric on it, in runs of
    methods), for each set of searched parameters where it has ``{search}`` (its number), and for
    each searched parameter (of that set) where it has ``{chosen}`` (the metric of its chosen value,
    in runs of cells).
    """

    @classmethod
    def of(cls, file_name: str, text: str) -> "View":
        """Parse a ``*.view.json`` file: a JSON object with ``name``, ``mode`` and ``state``.

        The key is ``kbench-`` and what stands before ``.view.json``. A
        `PluginError` says what is wrong.

        >>> View.of("t.view.json", '{"name": "Times", "mode": "chart", "state": {}}').key
        'kbench-t'
        """
        try:
            given = json.loads(text)
        except ValueError as error:
            raise PluginError(f"{file_name} is not JSON: {error}") from error
        wanted = {"name": str, "mode": str, "state": dict}
        if not isinstance(given, dict) or given.keys() != wanted.keys():
            raise PluginError(f"{file_name} must be an object with name, mode and state")
        for name, kind in wanted.items():
            if not isinstance(given[name], kind):
                raise PluginError(f"{file_name}: {name} must be a {kind.__name__}")
        check_choice(given["mode"], f"{file_name}: mode", _MODES, error=PluginError)
        return cls("kbench-" + file_name.removesuffix(".view.json"), **given)

    @property
    def needs_results(self) -> bool:
        """Whether it shows nothing before there are results."""
        text = json.dumps(self.state)
        return any(f"{{{name}}}" in text for name in REPEATED)

    def tag(self, facts: Facts, created: int) -> tuple[str, str]:
        """Return the tag that holds the view; `created` is in milliseconds since 1970.

        If MLflow would reject it, the last datasets are left out. A `PluginError` is raised if
        the view is too large without any.
        """
        envelope = {"name": self.name, "createdAt": created, "updatedAt": created}
        for n_datasets in range(len(facts.on_dataset), -1, -1):
            state = fill(self.state, replace(facts, on_dataset=facts.on_dataset[:n_datasets]))
            for column in (widths := state.get("columnWidths", {})):
                # MLflow cuts headings, of about 8 pixels per character and 40 for icons
                if heading := column.partition("`")[2].rstrip("`"):
                    widths[column] = max(widths[column], 40 + 8 * len(heading))
            text = json.dumps(state, separators=(",", ":"))
            # with the state's keys for servers without a menu, where there is room
            for whole in (envelope | {"state": text} | state, envelope | {"state": text}):
                value = json.dumps(whole, separators=(",", ":"))
                if len(value) <= _VALUE_CHARS:
                    return TAG + self.key, value
        raise PluginError(f"view {self.name!r} is too large for MLflow: {len(value)} characters")


def _code(text: str) -> str:
    """Write text as code in Markdown, which a backtick in it does not end."""
    text = " ".join(text.splitlines())
    runs = {len(run) for run in re.findall("`+", text)}
    fence = "`" * next(n for n in range(1, len(runs) + 2) if n not in runs)
    return f"{fence}{text}{fence}"


def experiment_tags(
    suite: str, views: Mapping[str, View], facts: Facts, created: int, present: Mapping[str, str]
) -> dict[str, str]:
    """Return the tags that an experiment lacks, where `present` are its tags.

    `facts` are those of its results; views that need some are left out before there are any.
    A note that a user wrote is left alone. `created` is when the experiment was made, in
    milliseconds since 1970.
    """
    tags = dict(
        view.tag(facts, created)
        for view in views.values()
        if facts.on_dataset or not view.needs_results
    )
    if present.get("mlflow.note.content", _OURS).startswith(_OURS):
        counts = (text for name, text in present.items() if name.startswith(WITHOUT_RUN) and text)
        tags["mlflow.note.content"] = NOTE.format(
            command=_code(f"kbench report {shlex.quote(suite)}"),
            without_run="".join(f"{text}. " for text in counts),
        )
    # without a kind MLflow asks for one before it shows the runs
    tags["mlflow.experimentKind"] = present.get("mlflow.experimentKind", "custom_model_development")
    return {name: value for name, value in tags.items() if present.get(name) != value}


def ui_address(server: str, experiment: Experiment, view: View | None = None) -> str:
    """Return the page of an experiment in MLflow's user interface, opened in a view.

    `server` is the URL of the MLflow server.

    >>> experiment = Experiment("3", "uci", 0)
    >>> ui_address("http://127.0.0.1:5000", experiment)
    'http://127.0.0.1:5000/#/experiments/3/runs'
    >>> ui_address("http://127.0.0.1:5000", experiment, View("kbench-times", "Times", "chart", {}))
    'http://127.0.0.1:5000/#/experiments/3/runs?viewStateShareKey=kbench-times&compareRunsMode=CHART'
    """
    address = f"{server.rstrip('/')}/#/experiments/{experiment.id}/runs"
    if view is None:
        return address
    query = {"viewStateShareKey": view.key, "compareRunsMode": view.mode.upper()}
    return f"{address}?{urlencode(query)}"
