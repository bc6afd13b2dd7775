"""What runs inside a sandboxed process: the functions that the runner names.

Each takes and returns plain JSON values.
"""

from __future__ import annotations

import base64
import os
import re
import signal
import sys
import threading
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbench.errors import DatasetError, SourceUnreachable
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method, learner_side, map_side
from kbench.planning.lines import parameter_problems
from kbench.records import Protocol, Ref, Search
from kbench.records.canonical import from_json, to_json
from kbench.registry.registry import Registry, build, installed, resolve
from kbench.storage.datacache import DataCache

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

TRIAL_TIME_S = 5.0
"""Wall clock of the fit that tells whether a parameter's value is refused."""


@cache
def _registry() -> Registry:
    return build(installed())


def warm() -> None:
    """Do once what every task would do: load the plugins and scikit-learn."""
    import sklearn.metrics
    import sklearn.model_selection
    import sklearn.utils.extmath  # noqa: F401
    from sklearn.preprocessing import StandardScaler

    # the first fit of a process looks through all installed packages
    StandardScaler().fit(np.zeros((2, 1)))
    _registry()


def thread_pools() -> ThreadpoolController:
    """Find the BLAS and OpenMP libraries of this process.

    That takes longer than a small fit, so they are looked for again only where
    modules have been imported since.
    """
    from threadpoolctl import ThreadpoolController

    global _thread_pools
    if _thread_pools is None or _thread_pools[0] != len(sys.modules):
        found = ThreadpoolController()
        _thread_pools = len(sys.modules), found
    return _thread_pools[1]


_thread_pools: tuple[int, ThreadpoolController] | None = None


def load(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Load a dataset and store it in the data cache.

    Parameters
    ----------
    payload : mapping
        ``dataset`` (a ref as JSON), ``code`` (fingerprint of its source),
        ``cache`` (folder), ``offline``.

    Returns
    -------
    dict
        Empty, or ``unavailable`` with the reason and, where its server does
        not answer, ``unreachable``.
    """
    if payload["offline"]:
        os.environ["KBENCH_OFFLINE"] = "1"
    ref = from_json(payload["dataset"])
    source = _registry().get("dataset", ref.name)
    try:
        dataset = resolve(source.load)(**ref.params)
        DataCache(Path(payload["cache"])).add(
            ref.name, to_json(ref)["params"], payload["code"], dataset
        )
    except DatasetError as error:
        return {"unavailable": str(error), "unreachable": isinstance(error, SourceUnreachable)}
    return {}


def expand(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the refs that one line of a suite file means, or why it cannot be told."""
    if payload["offline"]:
        os.environ["KBENCH_OFFLINE"] = "1"
    ref = from_json(payload["dataset"])
    source = _registry().get("dataset", ref.name)
    try:
        refs = resolve(source.expand)(**ref.params)
    except DatasetError as error:
        return {"unavailable": str(error), "unreachable": isinstance(error, SourceUnreachable)}
    return {"refs": [{**to_json(each), "label": each.label} for each in refs]}


def check(payload: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the parameters of the components of a suite."""
    problems = []
    for kind, refs in payload["components"].items():
        placed = [(place, from_json(ref)) for place, ref in refs]
        problems += parameter_problems(placed, kind, _registry())
    return problems


def check_values(payload: Mapping[str, Any]) -> list[str]:
    """Return which values the components of a suite refuse, as trial fits tell.

    Apart from `check`: a fit may crash or hang, which is a failure of its cells.
    """
    problems = []
    for kind, refs in payload["components"].items():
        placed = [(place, from_json(ref)) for place, ref in refs]
        if kind != "dataset":
            problems += _wrong_values(placed, kind, _registry())
    return problems


def _wrong_values(placed: Sequence[tuple[str, Ref]], kind: str, registry: Registry) -> list[str]:
    """Return what estimators say of given texts and of numbers that are not positive.

    Most estimators check values in ``fit`` only, so each value has a fit on a
    few rows. Larger numbers have none: whether they are too large is for the
    data to tell.
    """
    problems = []
    seen: dict[tuple[str, str, str], str] = {}
    for at, ref in placed:
        values = [
            (f"{at}.{name}", name, each)
            for name, given in ref.params.items()
            for each in (given.values if isinstance(given, Search) else (given,))
            if isinstance(each, str) or (type(each) in (int, float) and each <= 0)
        ]
        for place, name, value in values:
            trial = (ref.name, name, repr(value))
            if trial not in seen:
                seen[trial] = _refusal({name: value}, name, value, ref, kind, registry)
            if seen[trial]:
                # alone it may lack another parameter that it needs
                others = {
                    key: given.values[0] if isinstance(given, Search) else given
                    for key, given in ref.params.items()
                }
                why = _refusal({**others, name: value}, name, value, ref, kind, registry)
                problems += [f"{place}: {why}"] if why else []
    return problems


def _refusal(
    params: Mapping[str, Any], name: str, value: Any, ref: Ref, kind: str, registry: Registry
) -> str:
    """Return why an estimator refuses a value; empty unless it names both parameter and value."""
    side = map_side if kind == "feature map" else learner_side
    key = "feature_map" if kind == "feature map" else "learner"
    component = side(Ref(ref.name, params), registry)[key]
    # within what any map may require: not negative, and in the unit ball
    X = np.random.default_rng(0).uniform(0.0, 0.5, (20, 3))
    y = np.arange(20) % 2
    try:
        with warnings.catch_warnings(), _at_most(TRIAL_TIME_S):
            warnings.simplefilter("ignore")
            estimator = component.build({}, 0)
            if kind == "learner" or component.supervised:
                estimator.fit(X, y)
            else:
                estimator.fit(X)
            if kind == "feature map":
                estimator.transform(X)
    except (ValueError, TypeError) as error:
        text = " ".join(str(error).split())
        if re.search(rf"\b{re.escape(name)}\b", text) and repr(value) in text:
            return text
    except Exception:
        return ""
    return ""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """End the block with TimeoutError after some time, where signals can be had."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def evaluate(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Measure one split of one cell.

    Parameters
    ----------
    payload : mapping
        ``checksum``, ``kinds`` (of columns, where values are imputed) and
        ``cache`` of the dataset, ``feature_map`` and ``learner`` (refs as
        JSON), ``protocol``, ``split``.

    Returns
    -------
    dict
        ``measures``, ``details``, and ``predictions``: the predicted labels
        of the test rows, compressed.
    """
    protocol = Protocol(**{k: from_json(v) for k, v in payload["protocol"].items()})
    cache = DataCache(Path(payload["cache"]))
    dataset = cache.load(payload["checksum"], payload.get("kinds", ()))
    method = Method(
        **map_side(from_json(payload["feature_map"]), _registry()),
        **learner_side(from_json(payload["learner"]), _registry()),
    )
    with thread_pools().limit(limits=protocol.threads), _no_autologging():
        found = evaluate_split(dataset, payload["split"], method, protocol)
    return {
        "measures": found.measures,
        "details": asdict(found.details),
        "predictions": packed(found.predictions),
    }


def _no_autologging() -> AbstractContextManager[None]:
    """Switch MLflow's autologging off where a plugin or a start-up file has switched it on.

    It would make a run of every fit, searches included, and take longer than most fits.
    """
    loaded: Any = sys.modules.get("mlflow.utils.autologging_utils")
    return loaded.disable_autologging() if loaded is not None else nullcontext()


def packed(labels: np.ndarray) -> str:
    """Write labels 0..k-1 as compressed text.

    >>> unpacked(packed(np.array([0, 2, 1]))).tolist()
    [0, 2, 1]
    """
    small = labels.astype("<i4")
    return base64.b64encode(zlib.compress(small.tobytes(), 9)).decode("ascii")


def unpacked(text: str) -> np.ndarray:
    """Read what `packed` wrote."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i4")
