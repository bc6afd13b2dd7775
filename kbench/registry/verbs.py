"""Hooks of features, called one implementation at a time, in the order of names.

An implementation that raises is named once, and its feature is left out of the rest of the
run. Where one answer is asked for, two of them are an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import pluggy

from kbench import hookspecs
from kbench.errors import FeatureError, KbenchError
from kbench.messages import did_you_mean
from kbench.registry.features import Feature, features

Implementation = tuple[Feature, Callable[..., Any]]

TOLERANT = ("kbench_report_sections", "kbench_report_written", "kbench_imported_rows")
"""Hooks in which an error of kbench leaves a feature out too: what they add is not asked for."""


class Verbs:
    """The hooks of the installed features, or of those `given`.

    `notice` is called with a message about a feature that fails.
    """

    def __init__(
        self,
        notice: Callable[[str], None] = lambda text: None,
        given: Iterable[Feature] | None = None,
    ) -> None:
        self.features = tuple(features() if given is None else given)
        self.notice = notice
        self._failed: dict[str, str] = {}
        self._lock = threading.Lock()
        self._modules: dict[str, dict[str, Callable[..., Any]]] = {}
        for feature in self.features:
            if not feature.reason and (wrong := unknown_hooks(feature)):
                self.fail(feature.name, wrong)

    def implementing(self, hook: str, asked: Collection[str] = ()) -> list[Implementation]:
        """Return the implementations of a hook; the features that have one are imported.

        FeatureError is raised if one fails that has an option of the names in `asked`.
        """
        found = []
        for feature in self.features:
            if feature.reason or feature.name in self._failed or hook not in feature.metadata.hooks:
                continue
            try:
                if feature.name not in self._modules:
                    self._modules[feature.name] = implemented(feature)
                found.append((feature, self._modules[feature.name][hook]))
            except FeatureError as error:
                self._leave_out(feature, str(error), asked)
        return found

    def each(self, hook: str, **context: Any) -> Iterator[tuple[Feature, Any]]:
        """Call a hook; yield each feature with its answer, if that is not None.

        An error of kbench, such as a wrong option, is raised; any other leaves its feature out,
        unless the user has given an option of the feature: then it is a FeatureError.
        """
        context_given = (getattr(context.get(name), "given", ()) for name in ("options", "query"))
        asked = {name for given in context_given for name in given}
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
        """Call a hook that one feature may answer; None where none does.

        FeatureError is raised where two features answer.
        """
        answers = list(self.each(hook, **context))
        if len(answers) > 1:
            names = " and ".join(repr(feature.name) for feature, _ in answers)
            raise FeatureError(f"the features {names} both answer {hook}: only one of them may")
        return answers[0][1] if answers else None

    def _leave_out(self, feature: Feature, reason: str, asked: Collection[str]) -> None:
        if names := [name for name in feature.metadata.options if name in asked]:
            raise FeatureError(
                f"--{names[0].replace('_', '-')} is an option of the feature {feature.name!r}, "
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


def unknown_hooks(feature: Feature) -> str:
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


def implemented(feature: Feature) -> dict[str, Callable[..., Any]]:
    """Import a feature and return its hooks by name, as functions of keyword arguments.

    FeatureError is raised where it has no such hooks as its metadata say, or a hook has arguments
    that there are not.
    """
    module = feature.load()
    manager = pluggy.PluginManager("kbench")
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module, name=feature.name)
        manager.check_pending()
    except Exception as error:  # of pluggy: an unknown hook or argument
        raise FeatureError(f"{type(error).__name__}: {' '.join(str(error).split())}") from error
    found = {}
    for caller in manager.get_hookcallers(module) or ():
        made = caller.get_hookimpls()[0]
        if made.hookwrapper or made.wrapper:
            raise FeatureError(
                f"{caller.name} is a wrapper: hooks of features are called one by one"
            )
        found[caller.name] = _with_context(made.function, tuple(made.argnames))
    declared = set(feature.metadata.hooks)
    if declared != set(found):
        said, has = sorted(declared - set(found)), sorted(set(found) - declared)
        wrong = [f"{name} is in its metadata only{did_you_mean(name, found)}" for name in said]
        wrong += [f"{name} is not in the `hooks` of its metadata" for name in has]
        raise FeatureError("; ".join(wrong))
    return found


def _with_context(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    def call(**context: Any) -> Any:
        return function(**{name: context[name] for name in names})

    return call
