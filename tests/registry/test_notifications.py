"""Notifications: a feature that is slow, hangs or fails delays a run by seconds at most."""

import os
import sys
import threading
import time
from collections import defaultdict
from types import SimpleNamespace

import pytest

from kbench.features import Delivered
from kbench.machine import machine_id
from kbench.registry import verbs as notifications
from kbench.registry.features import features, find_features
from kbench.registry.verbs import Notifications, Verbs, lower_priority, still_working
from kbench.storage.journal import Journal, state_folder
from tests.support.command_here import command
from tests.support.features_here import Site

SUITE = ("suite", "uci-small", "--dataset", "iris", "--feature-map", "identity", "--n-splits", "2")

TRACKER = """
import threading, time
from kbench.features import Delivered, hookimpl

told, gate = [], threading.Event()

@hookimpl
def kbench_result(run, cell, result):
    {during}
    told.append(("result", result))

@hookimpl
def kbench_run_finished(run, report):
    {after}
    told.append(("finished", report))
    return {answer}
"""
HOOKS = ["kbench_result", "kbench_run_finished"]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a folder to install features into."""
    yield Site(tmp_path / "site", monkeypatch)
    find_features.cache_clear()


@pytest.fixture
def track(site):
    """Install trackers; return their notifications and the notices."""

    def make(deferred=False, **trackers):
        for name, given in trackers.items():
            tracker(site, name, **given)
        notices = []
        made = [each for each in features() if each.name in trackers]
        return Notifications(Verbs(notices.append, made), deferred), notices

    return make


def tracker(site, name, during="", after="", answer="None", hooks=HOOKS):
    """Install a tracker."""
    source = TRACKER.format(during=during or "pass", after=after or "pass", answer=answer)
    if "kbench_run_finished" not in hooks:
        source = source.partition("@hookimpl\ndef kbench_run_finished")[0]
    site.write(name, source, f"hooks = {hooks!r}\n")


def send(sent, n):
    """Send some results."""
    for number in range(n):
        sent.send("kbench_result", run=None, cell=None, result=number)


def told(name="one"):
    """Return what a tracker was told."""
    return sys.modules[name].told


def test_calls_are_made_in_order_in_the_thread_of_the_feature(track):
    during = "told.append(threading.current_thread().name)"
    sent, notices = track(one={"during": during, "answer": "Delivered('here', 'uci')"}, two={})
    send(sent, 3)
    answers = sent.finish(run=None, report="all")
    results = [each for each in told() if isinstance(each, tuple)]
    assert results == [("result", 0), ("result", 1), ("result", 2), ("finished", "all")]
    assert told()[0] == "one"
    assert [(feature.name, answer) for feature, answer in answers] == [
        ("one", Delivered("here", "uci"))
    ]
    assert told("two")[-1] == ("finished", "all")
    assert not notices


def test_sending_never_waits(track):
    sent, _ = track(one={"during": "gate.wait(20)"})
    begun = time.monotonic()
    send(sent, 100)
    assert time.monotonic() - begun < 5
    sys.modules["one"].gate.set()
    sent.finish(run=None, report="all")
    assert len(told()) == 101


def test_what_a_slow_feature_missed_it_is_given_at_the_end(track, monkeypatch):
    monkeypatch.setattr(notifications, "MOST", 5)
    sent, notices = track(
        one={"during": "gate.wait(20)"}, two={"during": "gate.wait(20)", "hooks": HOOKS[:1]}
    )
    send(sent, 50)
    for name in ("one", "two"):
        sys.modules[name].gate.set()
    sent.finish(run=None, report="all")
    assert len(told()) <= 7
    assert told()[-1] == ("finished", "all")
    assert len(told("two")) <= 6
    # one that takes no notice of the end has lost some, and this is said
    (notice,) = notices
    assert notice.startswith("the feature 'two' is left out: it is slow, and has missed ")


@pytest.mark.parametrize("error", ["ValueError('broken')", "SystemExit('broken')"])
@pytest.mark.parametrize("place", ["during", "after"])
def test_a_feature_that_raises_is_named_once(track, error, place):
    sent, notices = track(one={place: f"raise {error}"}, two={})
    send(sent, 20)
    begun = time.monotonic()
    assert sent.finish(run=None, report="all") == []
    assert time.monotonic() - begun < 5
    kind = error.partition("(")[0]
    assert notices == [f"the feature 'one' is left out: {kind}: broken"]
    assert len(told("two")) == 21


def test_a_feature_that_failed_with_a_full_queue_delays_nothing(track, monkeypatch):
    monkeypatch.setattr(notifications, "MOST", 5)
    sent, notices = track(deferred=True, one={"during": "1 / 0"})
    send(sent, 50)
    begun = time.monotonic()
    sent.finish(run=None, report="all")
    assert time.monotonic() - begun < 5
    assert len(notices) == 1


class Clock:
    """The clock and the CPU times of features: each poll takes a tenth of a second.

    `shares` are the parts of a CPU that trackers take, and `ends` the seconds after which the
    gates of some are opened; the clock stands until these have ended.
    """

    def __init__(self, shares, ends):
        self.shares, self.ends, self.now = shares, ends, 0.0

    def monotonic(self):
        return self.now

    def measure_cpu_s(self):
        threads = {each.name: each for each in threading.enumerate() if each.name in self.shares}
        for name, seconds in self.ends.items():
            if seconds <= self.now and name in threads:
                sys.modules[name].gate.set()
                threads[name].join(60)
        self.now += 0.1
        measured = {each.native_id: self.shares[name] * self.now for name, each in threads.items()}
        return defaultdict(float, measured)


@pytest.fixture
def clock(track, monkeypatch):
    """Finish a run by a clock; return how long it took, the features that ended, and notices."""

    def make(deadline_s, shares, ends, after="gate.wait(60)"):
        sent, notices = track(**{name: {"after": after} for name in shares})
        made = Clock(shares, ends)
        monkeypatch.setattr(notifications, "time", made)
        monkeypatch.setattr(notifications, "measure_cpu_s", made.measure_cpu_s)
        sent.finish(deadline_s, run=None, report="all")
        ended = [name for name in shares if told(name)]
        for name in shares:
            sys.modules[name].gate.set()
        return made.now, ended, notices

    return make


def hangs(name, seconds):
    return f"the feature {name!r} is left out: it hangs: no sign of life for {seconds} s"


def test_a_feature_that_a_busy_machine_slows_down_is_waited_for(clock):
    seconds, ended, notices = clock(1.0, {"slow": 0.1}, {"slow": 7.0})
    assert (ended, notices) == (["slow"], [])
    assert seconds < 7.5


def test_features_that_are_slow_together_are_waited_for_together(clock):
    ends = {"one": 3.0, "two": 3.6, "three": 0.3}
    assert clock(1.0, dict.fromkeys(ends, 0.2), ends)[1:] == (list(ends), [])


def test_a_feature_that_computes_without_end_is_left_behind(clock):
    shares = {"endless": 1.0, "slow": 0.1}
    assert clock(1.0, shares, {"slow": 4.0})[1:] == (["slow"], [hangs("endless", 1)])
    assert clock(1.0, {"endless": 1.0}, {})[0] == pytest.approx(2.0, abs=0.25)


@pytest.mark.parametrize(("share", "deadlines"), [(0.0, 1), (0.01, 1), (0.02, 10), (0.05, 10)])
def test_a_loop_that_polls_is_left_behind(clock, share, deadlines):
    seconds, ended, notices = clock(1.0, {"polls": share}, {})
    assert (ended, notices) == ([], [hangs("polls", 1)])
    assert deadlines - 0.75 < seconds < deadlines + 0.25  # signs come 0.7 s apart at most


def test_cpu_time_of_a_feature_is_measured():
    before, end = notifications.measure_cpu_s(), time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
    used = notifications.measure_cpu_s()
    mine = threading.get_native_id()
    assert used[mine] - before[mine] >= 0.05
    assert used[-1] == 0.0


@pytest.mark.parametrize("place", ["during", "after"])
def test_features_that_hang_are_left_behind_together(track, monkeypatch, place):
    monkeypatch.setattr(notifications, "DEADLINE_S", 0.5)
    hangs = {place: "time.sleep(60)"}
    sent, notices = track(one=hangs, two=hangs, three=hangs, four={})
    send(sent, 3)
    begun = time.monotonic()
    sent.finish(run=None, report="all")
    assert time.monotonic() - begun < 1.4
    assert sorted(notices) == [
        f"the feature {name!r} is left out: it hangs: no sign of life for 0.5 s"
        for name in ("one", "three", "two")
    ]
    assert told("four")[-1] == ("finished", "all")


def test_a_feature_that_says_that_it_works_has_more_time(track, monkeypatch):
    monkeypatch.setattr(notifications, "DEADLINE_S", 0.5)
    after = (
        "from kbench.features import still_working\n"
        "    for _ in range(8):\n        time.sleep(0.2); still_working()"
    )
    sent, notices = track(one={"after": after})
    sent.finish(run=None, report="all")
    assert told() == [("finished", "all")]
    assert not notices
    still_working()  # does nothing elsewhere


def test_with_exclusive_timing_all_of_it_comes_at_the_end(track):
    sent, _ = track(deferred=True, quiet={})
    send(sent, 3)
    time.sleep(0.2)
    assert told("quiet") == []
    assert "quiet" not in {thread.name for thread in threading.enumerate()}
    sent.finish(run=None, report="all")
    assert len(told("quiet")) == 4


def test_features_are_imported_before_the_first_task(track, site):
    sent, _ = track(one={})
    assert "one" not in sys.modules
    sent.send("kbench_run_started", run=None)
    assert "one" in sys.modules


def test_only_the_end_of_a_run_has_an_answer(track):
    sent, notices = track(
        one={"during": "return 'not an answer'", "hooks": HOOKS[:1]}, two={"answer": "'text'"}
    )
    send(sent, 1)
    assert sent.finish(run=None, report="all") == []
    assert notices == [
        "the feature 'two' is left out: kbench_run_finished: must return Delivered, got str"
    ]


def test_the_interval_of_the_interpreter_is_restored():
    usual = sys.getswitchinterval()
    first, second = lower_priority(), lower_priority()
    for thread in (first, second):
        thread.__enter__()
    assert sys.getswitchinterval() <= notifications.SWITCH_S * 1.01
    first.__exit__(None, None, None)
    assert sys.getswitchinterval() <= notifications.SWITCH_S * 1.01
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == pytest.approx(usual)


@pytest.mark.parametrize("in_haste", [False, True])
def test_with_a_time_limit_features_have_the_priority_of_the_run(in_haste):
    """On a loaded machine the end of the run would wait for a thread of low priority."""
    found = []
    feature = SimpleNamespace(name="one")

    def note(**context):
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    verbs = SimpleNamespace(
        implementing=lambda hook: [(feature, note)], features=[feature], failed=()
    )
    sent = Notifications(verbs, in_haste=in_haste)
    sent.send(HOOKS[0])
    sent.finish(deadline_s=30.0)
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    assert set(found) == {usual if in_haste else max(usual, 10)}


# -- in runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "body", "said"),
    [
        ("during", "1 / 0", "ZeroDivisionError"),
        ("after", "raise SystemExit(3)", "SystemExit: 3"),
        ("during", "time.sleep(60)", "it hangs: no sign of life for 1 s"),
    ],
)
def test_no_result_is_lost_by_a_tracker(
    site, monkeypatch, tmp_path, capfd, forked_sandboxes, store_uri, place, body, said
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    if "sleep" in body:
        monkeypatch.setattr(notifications, "DEADLINE_S", 1.0)
        # a store on a busy machine may take longer than that
        monkeypatch.setenv("KBENCH_DISABLE_PLUGINS", "mlflow")
    tracker(site, "one", **{place: body})
    code, out, err = command(*SUITE, capfd=capfd)
    assert code == 1  # the tracker does not have all results
    assert len(list(Journal(state_folder(machine_id()) / "journal.jsonl").read("result"))) == 2
    assert "1 cell planned: 1 ok" in out
    assert f"the feature 'one' is left out: {said}" in err
