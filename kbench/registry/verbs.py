"""Hooks of features, called one implementation at a time, in the order of names.

An implementation that raises is named once, and its feature is left out of the rest of the
run. Where one answer is asked for, two of them are an error. Notifications have a queue and a
thread for each feature, so that none delays a run. Its notifications are in the journal
already. A feature that falls behind misses results, and is given all of them at the end of the
run; one that hangs is left behind at the deadline.
"""

import contextlib
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from queue import SimpleQueue
from typing import Any

import pluggy

from kbench import hookspecs
from kbench.errors import FeatureError, KbenchError
from kbench.messages import did_you_mean, option
from kbench.records import Delivered
from kbench.registry.features import Feature, features

Implementation = tuple[Feature, Callable[..., Any]]

# Hooks in which an error of kbench leaves a feature out too: what they add is not asked for.
TOLERANT = ("kbench_report_sections", "kbench_report_written", "kbench_imported_rows")


class Verbs:
    """The hooks of the installed features, or of those in `only`.

    `notice` is called with a message about a feature that fails.
    """

    def __init__(
        self,
        notice: Callable[[str], None] = lambda message: None,
        only: Iterable[Feature] | None = None,
    ) -> None:
        self.features = tuple(features() if only is None else only)
        self.notice = notice
        self._failed: dict[str, str] = {}
        self._lock = threading.Lock()
        self._modules: dict[str, dict[str, Callable[..., Any]]] = {}
        for feature in self.features:
            if not feature.reason and (wrong := check_hook_names(feature)):
                self.fail(feature.name, wrong)

    def implementing(self, hook: str, asked: Collection[str] = ()) -> list[Implementation]:
        """Return the implementations of a hook; the features that have one are imported.

        FeatureError is raised if one fails that has an option of the names in `asked`.
        """
        functions = []
        for feature in self.features:
            if feature.reason or feature.name in self._failed or hook not in feature.metadata.hooks:
                continue
            try:
                if feature.name not in self._modules:
                    self._modules[feature.name] = import_hooks(feature)
                functions.append((feature, self._modules[feature.name][hook]))
            except FeatureError as error:
                self._leave_out(feature, str(error), asked)
        return functions

    def each(self, hook: str, **context: Any) -> Iterator[tuple[Feature, Any]]:
        """Call a hook; yield each feature with its answer, if that is not None.

        An error of kbench, such as a wrong option, is raised; any other leaves its feature out,
        unless the user has given an option of the feature: then it is a FeatureError.
        """
        context_given = (getattr(context.get(name), "given", ()) for name in ("options", "query"))
        asked = {name for names in context_given for name in names}
        for feature, function in self.implementing(hook, asked):
            try:
                answer = function(**context)
            except (Exception, SystemExit) as error:
                if isinstance(error, KbenchError) and hook not in TOLERANT:
                    raise
                self._leave_out(feature, f"{hook}: {type(error).__name__}: {error}", asked)
                continue
            if answer is not None:
                yield feature, answer

    def one(self, hook: str, **context: Any) -> Any:
        """Call a hook that one feature may answer; None if none does.

        Raises FeatureError if two features answer.
        """
        answers = list(self.each(hook, **context))
        if len(answers) > 1:
            names = " and ".join(repr(feature.name) for feature, _ in answers)
            raise FeatureError(f"the features {names} both answer {hook}: only one of them may")
        return answers[0][1] if answers else None

    def _leave_out(self, feature: Feature, reason: str, asked: Collection[str]) -> None:
        if names := [name for name in feature.metadata.options if name in asked]:
            raise FeatureError(
                f"{option(names[0])} is an option of the feature {feature.name!r}, "
                f"which cannot be used: {' '.join(reason.split())}"
            )
        self.fail(feature.name, reason)

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the features that were left out because they failed."""
        return tuple(self._failed)

    def fail(self, name: str, reason: str) -> None:
        """Leave a feature out from now on, and say so once; may be called by its thread."""
        with self._lock:
            is_new = name not in self._failed
            self._failed.setdefault(name, reason)
        if is_new:
            self.notice(f"the feature {name!r} is left out: {' '.join(reason.split())}")


def check_hook_names(feature: Feature) -> str:
    """Return what is wrong with the names of hooks in the metadata; empty if nothing is."""
    hooks = {name: each for name, each in vars(hookspecs).items() if name.startswith("kbench_")}
    verbs = [name for name, each in hooks.items() if each.__code__.co_argcount]
    return "; ".join(
        f"{name} is a hook of plugins, whose entry points are in the group `kbench`"
        if name in hooks
        else f"there is no hook {name!r}{did_you_mean(name, verbs)}"
        for name in feature.metadata.hooks
        if name not in verbs
    )


def import_hooks(feature: Feature) -> dict[str, Callable[..., Any]]:
    """Import a feature and return its hooks by name, as functions of keyword arguments.

    Raises FeatureError if its hooks or their arguments are not those that there are.
    """
    module = feature.load()
    manager = pluggy.PluginManager("kbench")
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module, name=feature.name)
        manager.check_pending()
    except Exception as error:  # of pluggy: an unknown hook or argument
        raise FeatureError(f"{type(error).__name__}: {' '.join(str(error).split())}") from error
    hooks = {}
    for caller in manager.get_hookcallers(module) or ():
        made = caller.get_hookimpls()[0]
        if made.hookwrapper or made.wrapper:
            raise FeatureError(
                f"{caller.name} is a wrapper: hooks of features are called one by one"
            )
        hooks[caller.name] = _bind(made.function, tuple(made.argnames))
    if (declared := set(feature.metadata.hooks)) != set(hooks):
        named, has = sorted(declared - set(hooks)), sorted(set(hooks) - declared)
        wrong = [f"{name} is in its metadata only{did_you_mean(name, hooks)}" for name in named]
        wrong += [f"{name} is not in the `hooks` of its metadata" for name in has]
        raise FeatureError("; ".join(wrong))
    return hooks


def _bind(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    def call(**context: Any) -> Any:
        return function(**{name: context[name] for name in names})

    return call


_Call = tuple[Callable[..., Any], dict[str, Any]]

# Notifications that wait for a feature at most; further ones are dropped, except for the last.
MOST = 10_000

# Seconds without a sign of life after which a feature is left behind, at the end of a run.
DEADLINE_S = 40.0

# CPU time that is a sign of life, as a share of the deadline: more than a loop that polls takes.
WORKS = 0.0125

# Deadlines after which a feature is left behind whose only sign of life is CPU time.
MOST_DEADLINES = 10

# Longest time for which a thread of a feature keeps the interpreter while others wait.
SWITCH_S = 0.0005

HOOKS = ("kbench_run_started", "kbench_result", "kbench_cell_finished", "kbench_run_finished")

_here = threading.local()


def still_working() -> None:
    """Report that the feature of this thread is alive: its deadline begins again."""
    if (told := getattr(_here, "told", None)) is not None:
        told.last_sign = time.monotonic()


class _Notified:
    """A feature that is told of a run: calls in their order, in a thread of low priority."""

    def __init__(self, feature: Feature, verbs: Verbs, in_haste: bool) -> None:
        self.feature, self._verbs, self._in_haste = feature, verbs, in_haste
        self.last_sign = time.monotonic()
        self.n_dropped = 0
        self.answer: Any = None
        self._waiting: SimpleQueue[_Call | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._work, name=feature.name, daemon=True)

    def start(self) -> None:
        """Begin to make the calls."""
        if not self.thread.ident:
            self.thread.start()

    def put(self, function: Callable[..., Any], context: dict[str, Any]) -> None:
        """Add a call, unless too many are waiting."""
        if self._waiting.qsize() < MOST:
            self._waiting.put((function, context))
        else:
            self.n_dropped += 1

    def end(self, last: _Call | None) -> None:
        """Add the last call, if there is one; it is never dropped."""
        self.last_sign = time.monotonic()
        self._waiting.put(None)
        self._waiting.put(last)
        self.start()

    def _work(self) -> None:
        _here.told = self
        with contextlib.nullcontext() if self._in_haste else lower_priority():
            try:
                for function, context in iter(self._waiting.get, None):
                    function(**context)
                    self.last_sign = time.monotonic()
                if (last := self._waiting.get()) is not None:
                    function, context = last
                    self.answer = function(**context)
            except BaseException as error:  # SystemExit would end the thread without a word
                self._verbs.fail(self.feature.name, f"{type(error).__name__}: {error}")


def _wait(told: Collection[_Notified], deadline_s: float) -> None:
    """Wait until all calls are made, for each feature as long as there are signs of life.

    On a loaded machine a thread of low priority computes slowly: CPU time is a sign, up to
    as much as the deadline. A loop that polls takes some, too, so that it is a sign only at first.
    """
    now, first = time.monotonic(), measure_cpu_s()
    last, used = now + (MOST_DEADLINES - 1) * deadline_s, first.copy()
    while waiting := [
        each for each in told if each.thread.is_alive() and now < each.last_sign + deadline_s
    ]:
        waiting[0].thread.join(0.02)
        now, cpu_s = time.monotonic(), measure_cpu_s()
        for each in waiting if now < last else ():
            thread = each.thread.native_id
            if used[thread] + WORKS * deadline_s < cpu_s[thread] < first[thread] + deadline_s:
                used[thread], each.last_sign = cpu_s[thread], now


def measure_cpu_s() -> defaultdict[int | None, float]:
    """Return the CPU seconds of the threads of this process, by native identifier."""
    import psutil

    threads = psutil.Process().threads()
    return defaultdict(float, {each.id: each.user_time + each.system_time for each in threads})


class Notifications:
    """Notifies features of a run: at its end if `deferred`, without low priority if `in_haste`."""

    def __init__(self, verbs: Verbs, deferred: bool = False, in_haste: bool = False) -> None:
        self._verbs, self._deferred, self._is_started = verbs, deferred, False
        self._make: Callable[[Feature], _Notified] = lambda each: _Notified(each, verbs, in_haste)
        self._told: dict[str, _Notified] = {}

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the notified features that failed or hang."""
        return tuple(name for name in self._told if name in self._verbs.failed)

    def send(self, hook: str, **context: Any) -> None:
        """Notify each feature that implements a hook; returns at once."""
        if hook == "kbench_run_started" and self._is_started:
            return  # a run that has fetched data begins to compute
        if not self._is_started:  # features are imported before the first task, not beside it
            self._is_started = True
            for each in HOOKS:
                self._verbs.implementing(each)
        for feature, function in self._verbs.implementing(hook):
            told = self._told.setdefault(feature.name, self._make(feature))
            told.put(function, context)
            if not self._deferred:
                told.start()

    def finish(self, deadline_s: float | None = None, **context: Any) -> list[tuple[Feature, Any]]:
        """Notify that the run is over; return the answers once all features have ended."""
        last: dict[str, _Call] = {}
        for feature, function in self._verbs.implementing("kbench_run_finished"):
            self._told.setdefault(feature.name, self._make(feature))
            last[feature.name] = function, context
        for name, told in self._told.items():
            told.end(last.get(name))
        limit = DEADLINE_S if deadline_s is None else deadline_s
        _wait(self._told.values(), limit)
        answers = []
        for name in sorted(self._told, key=[each.name for each in self._verbs.features].index):
            told = self._told[name]
            if told.thread.is_alive():
                self._verbs.fail(name, f"it hangs: no sign of life for {limit:g} s")
            elif told.n_dropped and name not in last:
                self._verbs.fail(name, f"it is slow, and has missed {told.n_dropped} notifications")
            elif isinstance(told.answer, Delivered):
                answers.append((told.feature, told.answer))
            elif told.answer is not None:
                kind = type(told.answer).__name__
                self._verbs.fail(name, f"kbench_run_finished: must return Delivered, got {kind}")
        return answers


@contextlib.contextmanager
def lower_priority() -> Iterator[None]:
    """Let this thread take neither the CPU nor the interpreter from what computes."""
    with contextlib.suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    # Threads that serve tasks wait for the interpreter as often as they wake up, each
    # time for as long as this one may keep it.
    with _lock:
        _intervals.append(sys.getswitchinterval())
        sys.setswitchinterval(min(_intervals[0], SWITCH_S))
    try:
        yield
    finally:
        with _lock:
            last = _intervals.pop()
            if not _intervals:
                sys.setswitchinterval(last)


_lock = threading.Lock()
# Intervals of the interpreter that threads in the background have found, the usual one first.
_intervals: list[float] = []
