"""Functions that run in a sandboxed process, called by name with plain JSON values."""

import math
import os
import re
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbench import errors
from kbench.evaluation import block_fits, embedding, lazy_rows, passes, timing
from kbench.evaluation.device import Device, take_gpu
from kbench.evaluation.evaluate import evaluate_split, run_split
from kbench.evaluation.method import Method, learner_side, map_side, search_side
from kbench.evaluation.search import _blocks
from kbench.evaluation.specs import EstimatorSpec
from kbench.evaluation.targets import Scale
from kbench.execution import global_state, recording
from kbench.execution.handover import hand_over, receive_scored, receive_visible
from kbench.execution.plugins import add_known_failures
from kbench.execution.sandbox import child, processes
from kbench.execution.warm_parents import PLUGINS
from kbench.planning import methods
from kbench.planning.component_refs import parameter_problems
from kbench.records import Cell, Dataset, Protocol, Ref, TaskType, alternatives
from kbench.records.canonical import digest, from_json, read_protocol, to_json_with_label
from kbench.registry.callables import resolve
from kbench.registry.collecting import Kind
from kbench.registry.dependencies import Dependencies
from kbench.registry.installed import HOST, list_plugins, packages
from kbench.registry.registry import Registry, build
from kbench.storage.datacache import FILE_PARAMETERS, DataCache, unsure_files
from kbench.tables.limits import spilling_to

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

OF_ALL_ROWS = (
    (lazy_rows, "BLOCK_ROWS", 1024),
    (passes, "WHOLE_BYTES", 1),
    (_blocks, "WHOLE_BYTES", 1),
    (embedding, "FIT_BYTES", 1),
    (block_fits, "SAMPLE_BYTES", 1),
)
"""Sizes that decide how all rows are computed, and the least ones: tiny blocks take longer."""

TRIAL_TIME_S = 5.0
"""Wall clock of a trial fit, which shows whether the component rejects a parameter's value."""


@cache
def _registry() -> Registry:
    """Return the records of the built-in plugins and of those that this process may load.

    All plugins are loaded where the environment does not restrict them.
    """
    chosen = os.environ.get(PLUGINS)
    plugins = list_plugins()
    if chosen is not None:
        names = chosen.split(",")
        plugins = [p for p in plugins if p.distribution == HOST or p.name in names]
    return build(add_known_failures(plugins))


def load_plugins() -> None:
    """Load the plugins of this process, unless a module of theirs failed in its trial."""
    names = os.environ.get(PLUGINS, "").split(",")
    foreign = [p for p in list_plugins() if p.distribution != HOST and p.name in names]
    if all(plugin.module in sys.modules for plugin in foreign):
        _registry()


def trust_built_in() -> None:
    """Let the warm process import modules of built-in plugins from now on without a trial."""
    child.TRUSTED.update(packages(HOST))


def warm() -> None:
    """Load scikit-learn once, before every task would."""
    with _hide("pandas"):
        import sklearn.metrics
        import sklearn.model_selection
        import sklearn.utils.extmath  # noqa: F401
        from sklearn.preprocessing import StandardScaler

    # the first fit of a process looks through all installed packages
    StandardScaler().fit(np.zeros((2, 1)))


def rehearse() -> None:
    """Measure one small method: a task would write the caches that first calls fill again.

    Map and learner are those of scikit-learn: in the warm process nothing may hang.
    """
    from sklearn.linear_model import RidgeClassifier
    from sklearn.preprocessing import FunctionTransformer

    X = np.random.default_rng(0).uniform(0.0, 1.0, (60, 4))
    dataset = Dataset("rehearsal", X=X, y=np.arange(60) % 3)
    learner = EstimatorSpec(RidgeClassifier, space={"alpha": (0.1, 1.0)})
    with warnings.catch_warnings(action="ignore"), _no_autologging():
        evaluate_split(dataset, 0, Method(EstimatorSpec(FunctionTransformer), learner), Protocol())


@contextmanager
def _hide(name: str) -> Iterator[None]:
    """Let imports of a package that is not loaded fail in the block.

    scikit-learn imports pandas for tables only; a warm process without it is smaller by a third.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


def thread_pools() -> "ThreadpoolController":
    """Find the BLAS and OpenMP libraries of this process.

    The search takes longer than a small fit: it is repeated only after further modules
    have been imported.
    """
    from threadpoolctl import ThreadpoolController

    global _thread_pools
    if _thread_pools is None or _thread_pools[0] != len(sys.modules):
        _thread_pools = len(sys.modules), ThreadpoolController()
    return _thread_pools[1]


_thread_pools: "tuple[int, ThreadpoolController] | None" = None


def load(payload: Mapping[str, Any]) -> dict[str, object]:
    """Load a dataset and store it in the data cache.

    The payload has the ``dataset`` (a ref), its ``code``, ``cache`` and ``offline``. The answer is
    empty, or says why it is ``unavailable``, perhaps ``unreachable`` or by a ``error``.
    """
    cache = DataCache(Path(payload["cache"]))
    line = payload["dataset"]
    source = (line["name"], line["params"], payload["code"])
    before, contents = cache.origin(*source), unsure_files(line["params"])

    def store(ref: Ref, dataset: Any) -> dict[str, object]:
        cache.add(*source, dataset, before)
        if cache.origin(*source) != before or contents != {
            file: unsure_files(line["params"]).get(file, sha) for file, sha in contents.items()
        }:
            files = [str(ref.params[key]) for key in FILE_PARAMETERS if key in ref.params]
            raise errors.DatasetError(
                f"{' or '.join(files)} has changed while it was read; run the same command again"
            )
        return {}

    name = str(line["params"].get("path", line["name"]))
    with cache.scratch(name) as scratch, spilling_to(scratch):
        return _ask_source("load", payload, store)


def expand(payload: Mapping[str, object]) -> dict[str, object]:
    """Return the ``refs`` that one entry of a suite stands for.

    The payload, and the answer if there are none, are those of `load`.
    """

    def listed(ref: Ref, refs: Iterable[Ref]) -> dict[str, object]:
        return {"refs": list(map(to_json_with_label, refs))}

    return _ask_source("expand", payload, listed)


def _ask_source(
    function: str, payload: Mapping[str, object], use: Callable[[Ref, Any], dict[str, object]]
) -> dict[str, object]:
    """Use the result of a function of a dataset's source, or report a DatasetError."""
    if payload["offline"]:
        os.environ["KBENCH_OFFLINE"] = "1"
    ref = from_json(payload["dataset"])
    source = _registry().get("dataset", ref.name)
    _record({("dataset", ref.name)})
    try:
        return use(ref, resolve(getattr(source, function))(**ref.params))
    except errors.DatasetError as error:
        return {
            "unavailable": str(error),
            "unreachable": isinstance(error, errors.SourceUnreachableError),
            "mistake": isinstance(error, errors.DatasetParameterError),
        }
    except (ValueError, TypeError) as error:
        message = " ".join(str(error).split())
        if not any(_names(message, name, value) for name, value in ref.params.items()):
            raise
        return {"unavailable": message, "mistake": True}


def check(payload: Mapping[str, Any]) -> list[str]:
    """Return the errors in the parameters of the components of a suite.

    The payload has its ``components`` and the ``task`` of its datasets, None if unknown.
    """
    return [
        problem
        for kind, refs in _components(payload)
        for problem in parameter_problems(refs, kind, _registry(), payload.get("task"))
    ]


def probe(payload: Mapping[str, object]) -> dict[str, object]:
    """Report what all components of a suite load and read; return nothing else.

    The payload has its ``components``. The report lacks those that cannot be imported here.
    """
    needed = Dependencies(frozenset({methods.EVALUATION}))
    for kind, ref in ((kind, ref) for kind, refs in _components(payload) for _, ref in refs):
        with suppress(errors.KbenchError):
            needed |= methods.list_dependencies(_registry().list_reached((kind, ref)), _registry())
    recording.begin(needed)
    return {}


def check_values(payload: Mapping[str, object]) -> list[str]:
    """Return the values that the components of a suite reject in trial fits.

    This is not part of `check`: a fit may crash or hang, which is a failure of its cells.
    """
    kinds = [(kind, refs) for kind, refs in _components(payload) if kind != "dataset"]
    return [problem for kind, refs in kinds for problem in _wrong_values(refs, kind, _registry())]


def _components(payload: Mapping[str, Any]) -> list[tuple[Kind, list[tuple[str, Ref]]]]:
    kinds = payload["components"].items()
    return [(kind, [(place, from_json(ref)) for place, ref in refs]) for kind, refs in kinds]


def _wrong_values(placed: Sequence[tuple[str, Ref]], kind: str, registry: Registry) -> list[str]:
    """Return the refusals of values whose type may be wrong, and of numbers that are not positive.

    Most estimators check values in ``fit`` only. Whether a number is too large depends on the data.
    """
    problems: dict[str, None] = {}  # alternatives may share a wrong value
    seen: dict[tuple[str, str, str], str] = {}
    for at, ref in placed:
        values = [
            (param, tried, place, name, value)
            for param, all_tried in ref.params.items()
            for tried in alternatives(all_tried)
            for place, name, value in _doubtful(f"{at}.{param}", param, tried)
        ]
        for param, tried, place, name, value in values:
            trial = (ref.name, place.removeprefix(at), repr(tried))
            if trial not in seen:
                seen[trial] = _refusal({param: tried}, name, value, ref, kind, registry)
            if seen[trial]:
                # the trial lacked other parameters, which this one may need
                defaults = {key: alternatives(other)[0] for key, other in ref.params.items()}
                why = _refusal({**defaults, param: tried}, name, value, ref, kind, registry)
                problems |= {f"{place}: {why}": None} if why else {}
    return list(problems)


def _doubtful(place: str, name: str, value: object) -> Iterator[tuple[str, str, object]]:
    """Yield values that a parameter may not take, with their place and parameter.

    Numbers that are positive, and components of parameters that are named after kernels, are not.
    """
    if isinstance(value, Ref):
        if not name.endswith(("kernel", "kernels")):
            yield place, name, value
        for inner, param in value.params.items():
            yield from _doubtful(f"{place}.{inner}", inner, param)
    elif isinstance(value, str | bool | tuple) or (isinstance(value, int | float) and value <= 0):
        yield place, name, value


def _refusal(
    params: Mapping[str, object], name: str, value: object, ref: Ref, kind: str, registry: Registry
) -> str:
    """Return an estimator's refusal of a value, if it names both parameter and value.

    Of a list or a component it must say what the parameter must be.
    """
    tried = Ref(ref.name, params)
    if kind == "feature map":
        spec = map_side(tried, registry)["feature_map"]
    else:
        spec = learner_side(tried, registry, registry.get("learner", ref.name).tasks[0])["learner"]
    # inputs that meet the requirements of all maps: not negative, and in the unit ball
    X = np.random.default_rng(0).uniform(0.0, 0.5, (20, 3))
    y = np.arange(20) % 2
    try:
        with warnings.catch_warnings(action="ignore"), limit_time(TRIAL_TIME_S):
            # a parameter without a default, such as a map inside another, has its first value
            estimator = spec.build({key: values[0] for key, values in spec.space.items()}, 0)
            if kind == "learner" or spec.supervised:
                estimator.fit(X, y)
            else:
                estimator.fit(X)
            if kind == "feature map":
                estimator.transform(X)
    except (ValueError, TypeError) as error:
        message = " ".join(str(error).split())
        if _names(message, name, value):
            return message
        says = rf"(\b{name}|'{name}' parameter of \w+) must be "
        if isinstance(value, Ref | tuple) and re.search(says, message):
            hint = "; values to search over are { tune = [...] }"
            return message + (hint if isinstance(value, tuple) else "")
    except Exception:
        return ""
    return ""


def _names(message: str, name: str, value: object) -> bool:
    return repr(value) in message and re.search(rf"\b{re.escape(name)}\b", message) is not None


@contextmanager
def limit_time(
    seconds: float, error: type[BaseException] = TimeoutError, again_s: float = 0.0
) -> Iterator[None]:
    """Raise an error in the block after some time, and every `again_s` seconds if it is caught.

    Only the main thread can be interrupted, by a signal that Windows does not have: elsewhere
    there is no limit.
    """
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, again_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def evaluate_task(payload: Mapping[str, Any], channel: socket.socket) -> dict[str, object]:
    """Measure one split of one cell.

    The payload has ``checksum``, ``kinds`` (of columns) and ``cache`` of the dataset, and the
    cell's ``feature_map``, ``learner``, ``protocol`` and ``split``. Rows, labels and predictions
    cross the channel (see `kbench.execution.handover`); ``records`` of the answer is their digest.
    """
    protocol = read_protocol(payload["protocol"])
    sides = from_json(payload["feature_map"]), from_json(payload["learner"])
    cache = DataCache(Path(payload["cache"]))
    inputs = cache.inputs(payload["checksum"], payload["kinds"])
    cell = Cell(Ref(""), *sides, protocol)
    components = _registry().list_reached(*methods.list_components(cell, _registry()))
    _record(components, inputs.task, methods.EVALUATION)
    if protocol.device == "cuda":
        take_gpu(payload["slot"])
    device = Device.of(protocol.device)
    device.limit(payload.get("memory_mib", math.inf))
    visible = receive_visible(channel, payload["split"])
    n_classes = cache.describe(payload["checksum"]).n_classes
    method = Method(
        **map_side(cell.feature_map, _registry()),
        **learner_side(cell.learner, _registry(), inputs.task),
        **search_side(protocol.search_metric, _registry(), n_classes),
    )
    map_, learner = (
        replace(spec, row_share=payload.get("share", 1.0))
        for spec in (method.feature_map, method.learner)
    )
    method = replace(method, feature_map=map_, learner=learner)
    before = global_state.settings()
    with thread_pools().limit(limits=protocol.threads), _no_autologging():
        metrics, details = run_split(inputs, visible, method, protocol, partial(hand_over, channel))
        if "transfer_time_s" in metrics:  # else it was computed on the host
            details = replace(details, device=device.description)
    if changes := global_state.changes(before):
        plugins = os.environ.get(PLUGINS)
        changer = f"plugin {plugins}" if plugins else "a built-in component"
        raise errors.PluginError(
            f"{changer} changes global state that decides numbers: {'; '.join(changes[:5])}"
        )
    records = digest(methods.method_code(cell, _registry(), inputs.task))
    return {"metrics": metrics, "details": asdict(details), "records": records}


def _record(components: methods.Components, task: TaskType | None = None, *modules: str) -> None:
    """Report from now on what these components load and read, and these modules."""
    needed = methods.list_dependencies(components, _registry(), task)
    recording.begin(needed | Dependencies(frozenset(modules)))


def evaluate_sample(payload: Mapping[str, Any], channel: socket.socket) -> dict[str, object]:
    """Measure a split on a ``share`` of its rows, as `evaluate_task` does.

    Sizes that decide how rows are computed are scaled as much: ``block_rows`` is in the answer.
    """
    for module, name, least in OF_ALL_ROWS:
        setattr(module, name, max(least, int(payload["share"] * getattr(module, name))))
    timing.SHORT_S *= payload["share"]  # two results of a step need more memory than one
    processes.map_arrays(payload["share"])
    return {**evaluate_task(payload, channel), "block_rows": lazy_rows.BLOCK_ROWS}


def score_predictions(payload: Mapping[str, Any], channel: socket.socket) -> dict[str, object]:
    """Compute a plugin's metric of the predictions of one split, which come through the channel.

    The payload has the ``metric``, and ``task``, ``n_classes`` and ``scale`` of the dataset.
    """
    truth, predictions = receive_scored(channel, payload["task"], Scale(*payload["scale"]))
    _record({("metric", payload["metric"])})
    criterion = search_side(payload["metric"], _registry(), payload["n_classes"])["criterion"]
    with thread_pools().limit(limits=1), _no_autologging():
        return {"value": criterion.compute(truth, predictions)}


def _no_autologging() -> AbstractContextManager[None]:
    """Disable MLflow's autologging, which a plugin or a start-up file may have enabled.

    It would log every fit, searches included, and take longer than most fits.
    """
    loaded: Any = sys.modules.get("mlflow.utils.autologging_utils")
    return loaded.disable_autologging() if loaded is not None else nullcontext()
