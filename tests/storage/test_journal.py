"""No line is lost, doubled or believed when it is damaged."""

import errno
import gc
import itertools
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbench.errors import JournalError
from kbench.machine import machine_id
from kbench.storage import journal as module
from kbench.storage.journal import Journal

N_WRITERS, N_LINES = 4, 100


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "deep" / "journal.jsonl")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(value=json_values)
def test_every_value_comes_back(tmp_path_factory, value):
    journal = Journal(tmp_path_factory.mktemp("any") / "journal.jsonl")
    journal.append("any", value=value)
    journal.append("next")
    assert list(journal.read()) == [{"kind": "any", "value": value}, {"kind": "next"}]
    assert journal.damaged == 0


def test_a_line_is_json_and_on_the_disk(journal, monkeypatch):
    synced = []
    monkeypatch.setattr(module.os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    journal.append("result", task_key="k", seconds=math.nan)
    assert journal.path.stat().st_ino in synced
    assert journal.path.parent.stat().st_ino in synced  # the name of a new file too
    (line,) = journal.path.read_text().splitlines()
    assert json.loads(line)["task_key"] == "k"
    assert math.isnan(next(journal.read())["seconds"])


def test_an_absent_journal_is_empty(journal):
    assert list(journal.read()) == []
    assert journal.results() == {}


def test_a_journal_that_was_not_read_has_no_damage(journal):
    assert journal.damaged == 0


@pytest.mark.parametrize("enabled", [True, False])
def test_reading_results_leaves_the_garbage_collector_as_it_was(journal, enabled):
    journal.append("result", task_key="a/0", status="ok")
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        assert len(journal.results()) == 1
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


def test_a_read_ends_where_the_journal_ended_when_it_began(journal):
    journal.append("first")
    journal.append("second")
    kinds = []
    for line in itertools.islice(journal.read(), 10):
        kinds.append(line["kind"])
        journal.append("later")
    assert kinds == ["first", "second"]
    assert len(list(journal.read())) == 4


def test_the_latest_result_of_a_task_counts(journal):
    journal.append("result", task_key="a/0", status="timed_out")
    journal.append("result", task_key="b/0", status="ok")
    journal.append("delivered", task_key="a/0")
    Journal(journal.path).append("result", task_key="a/0", status="ok")
    assert {key: lines[0]["status"] for key, lines in journal.results().items()} == {
        "a/0": "ok",
        "b/0": "ok",
    }


def test_one_kind_or_some_results_are_read_without_the_others(journal):
    journal.append("result", status="ok", task_key="old/order")
    for key in ("a", "b", 'quoted"\\', "é"):
        journal.append("result", task_key=key, status="ok")
    journal.append("results", task_key="a")
    journal.append("plan", task_key="a", suite="s", store="u", digest="d", content={})
    assert [line["kind"] for line in journal.read("plan", "results")] == ["results", "plan"]
    assert set(journal.results(["a", "old/order", "absent"])) == {"a", "old/order"}
    assert set(journal.results(['quoted"\\', "é"])) == {'quoted"\\', "é"}
    assert journal.results([]) == {}
    assert len(journal.results()) == 5


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("result", {"status": "ok"}),
        ("result", {"task_key": None}),
        ("result", {"task_key": ["a"]}),
        ("problem", {"cell_key": "k", "reason": "r"}),
        ("problem", {"cell_key": "k", "reason": [], "at_ms": 1}),
        ("plan", {"suite": "s", "store": "u", "digest": "d", "content": []}),
        ("reopened", {"suite": "s"}),
        ("settled", {"store": "u"}),
        ("delivered", {}),
    ],
)
def test_a_line_that_lacks_a_field_of_its_kind_is_skipped_and_counted(journal, kind, fields):
    journal.append(kind, **fields)
    journal.append("another")
    assert [line["kind"] for line in journal.read()] == ["another"]
    assert journal.damaged == 1
    assert journal.results() == {}


@pytest.mark.parametrize("body", [b'{"kind":"result","task_key":"a"', b'{"kind":' + b"[" * 10**5])
def test_a_line_that_is_not_json_is_skipped_though_its_checksum_fits(journal, body):
    journal.append("first")
    body = body + b',"x":'  # followed by the checksum
    with journal.path.open("ab") as file:
        file.write(body + (module._CHECKSUM % zlib.crc32(body)).encode() + b"\n")
    assert [line["kind"] for line in journal.read()] == ["first"]
    assert journal.damaged == 1


@pytest.mark.parametrize("version", [b"", b',"v":1', b',"v":3'])
def test_a_journal_of_another_version_is_refused_in_one_message(journal, version):
    body = b'{"kind":"result","task_key":"a"' + version
    journal.append("first")
    journal.path.write_bytes(b'%s,"crc":"%08x"}\n' % (body, zlib.crc32(body)))
    with pytest.raises(JournalError, match="another version of kbench") as error:
        journal.results()
    assert str(journal.path) in str(error.value) and "Move the file away" in str(error.value)


def test_tasks_of_which_all_lines_are_damaged_are_named(journal):
    for key in ("a", "b", "c", "d"):
        journal.append("result", task_key=key, status="ok")
    content = journal.path.read_bytes().replace(b'"status":"ok"', b'"status":"no"', 3)
    journal.path.write_bytes(content)
    journal.append("result", task_key="b", status="ok")
    assert set(journal.results(["a", "b", "d"])) == {"b", "d"}
    assert journal.unreadable == {"a"}
    assert set(journal.results()) == {"b", "d"}
    assert journal.unreadable == {"a", "c"}


def test_texts_and_names_with_lone_surrogates_come_back(journal):
    """Names of files on the disk may be no text, and exceptions quote them."""
    journal.append("result", task_key="\udcff", error="\udcff: no such file")
    assert journal.results(["\udcff"])["\udcff"][0]["error"] == "\udcff: no such file"
    journal.save_blob("\udcff", "\udcff", b"x")
    assert journal._blob("\udcff", "\udcff").read_bytes() == b"x"
    with journal.lock("suite of \udcff"):
        pass


def test_a_line_torn_anywhere_costs_that_line_only(journal):
    journal.append("first")
    journal.append("second", text="long enough")
    whole = journal.path.read_bytes()
    start = whole.index(b"\n") + 1
    for cut in range(start + 1, len(whole) - 1):
        journal.path.write_bytes(whole[:cut])
        assert [line["kind"] for line in journal.read()] == ["first"]
        assert journal.damaged == 1
        journal.append("third")
        journal.append("fourth")
        assert [line["kind"] for line in journal.read()] == ["first", "third", "fourth"]
        assert journal.damaged == 1


def test_a_line_that_lacks_its_end_of_line_only_is_whole(journal):
    journal.append("first")
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole.removesuffix(b"\n"))
    assert [line["kind"] for line in journal.read()] == ["first"]
    journal.append("second")
    assert [line["kind"] for line in journal.read()] == ["first", "second"]
    assert journal.damaged == 0


def test_a_changed_byte_anywhere_costs_that_line_only(journal):
    for kind in ("first", "second", "third"):
        journal.append(kind, n=1)
    whole = journal.path.read_bytes()
    start = whole.index(b"\n") + 1
    end = whole.index(b"\n", start)
    for place in range(start, end):
        changed = bytearray(whole)
        changed[place] ^= 1
        journal.path.write_bytes(changed)
        assert [line["kind"] for line in journal.read()] == ["first", "third"]
        assert journal.damaged >= 1


def test_a_full_disk_is_an_error_and_does_no_harm(journal, monkeypatch):
    journal.append("first")
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "write", lambda fd, line: write(fd, line[: len(line) // 2]))
        with pytest.raises(JournalError, match="bytes could be written"):
            journal.append("second")
    journal.append("third")
    assert [line["kind"] for line in journal.read()] == ["first", "third"]
    assert journal.damaged == 1


def test_a_file_that_may_not_grow_keeps_what_it_has(journal):
    """As on a full disk: the kernel writes what fits and refuses the rest."""
    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from kbench.storage.journal import Journal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for number in range(100):\n"
        "    journal.append('line', number=number, x='x' * 1000)\n"
        "    print(number, flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(journal.path)], capture_output=True, text=True
    )
    assert done.stderr.splitlines()[-1].startswith("kbench.errors.JournalError: ")
    assert "make room and run the same command again" in done.stderr
    said = [int(number) for number in done.stdout.split()]
    assert 10 < len(said) < 20
    journal.append("after")
    assert [line.get("number") for line in journal.read()] == [*said, None]
    assert journal.damaged <= 1


def test_the_name_of_the_checksum_is_reserved(journal):
    with pytest.raises(ValueError, match="crc"):
        journal.append("result", crc=1)
    with pytest.raises(TypeError, match="JSON"):
        journal.append("result", value={1, 2})
    assert not journal.path.exists()


def test_a_removed_file_is_made_anew(journal):
    journal.append("first")
    journal.path.unlink()
    journal.append("second")
    assert [line["kind"] for line in journal.read()] == ["second"]


def _write(path, writer):
    journal = Journal(path)
    for number in range(N_LINES):
        journal.append("line", writer=writer, number=number, padding="x" * (number * 50))


def test_several_writers_lose_and_double_nothing(journal):
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=_write, args=(journal.path, name)) for name in range(N_WRITERS)
    ]
    threads = [
        threading.Thread(target=_write, args=(journal.path, N_WRITERS + name)) for name in range(2)
    ]
    for each in (*writers, *threads):
        each.start()
    while any(each.is_alive() for each in writers):
        list(journal.read())
        assert journal.damaged == 0  # never sees a line half written
    for each in (*writers, *threads):
        each.join()
    lines = [(line["writer"], line["number"]) for line in journal.read()]
    assert journal.damaged == 0
    assert sorted(lines) == [(w, n) for w in range(N_WRITERS + 2) for n in range(N_LINES)]
    for writer in range(N_WRITERS + 2):
        assert [number for name, number in lines if name == writer] == list(range(N_LINES))


def test_killed_writers_lose_nothing_that_was_acknowledged(journal, tmp_path):
    script = (
        "import sys; from pathlib import Path; from kbench.storage.journal import Journal\n"
        "journal = Journal(Path(sys.argv[1])); number = 0\n"
        "while True:\n"
        "    journal.append('line', writer=sys.argv[2], number=number, x='x' * 5000)\n"
        "    print(number, flush=True); number += 1\n"
    )
    acknowledged = {}
    for round_ in range(3):
        writers = {
            f"{round_}.{k}": subprocess.Popen(
                [sys.executable, "-c", script, str(journal.path), f"{round_}.{k}"],
                stdout=subprocess.PIPE,
                text=True,
            )
            for k in range(2)
        }
        for writer in writers.values():
            writer.stdout.readline()
        time.sleep(0.02 * round_)
        for name, writer in writers.items():
            writer.kill()
            said = writer.communicate()[0].split("\n")
            acknowledged[name] = max([0, *(int(number) for number in said if number)])
    journal.append("after")
    found = [(line["writer"], line["number"]) for line in journal.read() if line["kind"] == "line"]
    assert len(found) == len(set(found))
    for name, last in acknowledged.items():
        numbers = [number for writer, number in found if writer == name]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > last


def test_reading_takes_memory_for_one_line_at_a_time(journal):
    journal.append("line", padding="x" * 1000)
    line = journal.path.read_bytes()
    with journal.path.open("ab") as file:
        for _ in range(5000):
            file.write(line)
    tracemalloc.start()
    assert sum(1 for _ in journal.read()) == 5001
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < journal.path.stat().st_size / 10


# -- where it is ------------------------------------------------------------------


def test_default_place(monkeypatch, tmp_path):
    for name in ("KBENCH_STATE_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    end = f"{machine_id()}/journal.jsonl"
    assert Journal().path == tmp_path / "home/.local/state/kbench" / end
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert Journal().path == tmp_path / "xdg/kbench" / end
    monkeypatch.setenv("KBENCH_STATE_DIR", str(tmp_path / "own"))
    assert Journal().path == tmp_path / "own" / end
    Journal().append("line")
    assert [line["kind"] for line in Journal().read()] == ["line"]


# -- blobs ------------------------------------------------------------------------


def blobs(journal):
    folder = journal.path.parent / "blobs"
    return {each.name: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@given(key=st.text(min_size=1, max_size=10), name=st.text(min_size=1, max_size=5), data=st.binary())
def test_blobs_come_back_whatever_they_are_called(tmp_path_factory, key, name, data):
    folder = tmp_path_factory.mktemp("blobs")
    journal = Journal(folder / "state" / "journal.jsonl")
    journal.save_blob(key, name, data)
    assert blobs(journal) == {f"{quote(key, safe='')}.{quote(name, safe='')}": data}
    assert [each.name for each in folder.iterdir()] == ["state"]


def test_a_blob_is_replaced_at_once_or_not_at_all(journal, monkeypatch):
    journal.save_blob("key", "predictions", b"old")

    def fail(fd):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", fail)
        with pytest.raises(JournalError, match="disk full"):
            journal.save_blob("key", "predictions", b"new")
    assert blobs(journal) == {"key.predictions": b"old"}
    journal.save_blob("key", "predictions", b"new")
    assert blobs(journal) == {"key.predictions": b"new"}


# -- locks ------------------------------------------------------------------------

HOLD = (
    "import sys, time; from pathlib import Path; from kbench.storage.journal import Journal\n"
    "with Journal(Path(sys.argv[1])).lock('suite on sqlite:///x.db'):\n"
    "    print('held', flush=True); time.sleep(60)\n"
)


def test_a_lock_is_held_by_one_and_released_when_its_holder_dies(journal):
    name = "suite on sqlite:///x.db"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(journal.path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    told = []

    def waiting(who):
        told.append(who)
        holder.send_signal(signal.SIGKILL)

    with journal.lock("another suite"):  # does not wait
        pass
    with journal.lock(name, waiting):
        assert [who.pid for who in told] == [holder.pid]
        assert told[0].command.startswith("-c")
        assert 0 <= time.time() - told[0].since < 60
    holder.communicate()
    with journal.lock(name, told.append):
        pass
    assert len(told) == 1


def test_a_lock_excludes_threads_and_is_released_by_an_error(journal):
    inside, worst = 0, 0

    def work():
        nonlocal inside, worst
        with journal.lock("name"):
            inside += 1
            worst = max(worst, inside)
            time.sleep(0.01)
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert worst == 1
    with pytest.raises(KeyError), journal.lock("name"):
        raise KeyError
    with journal.lock("name", lambda who: pytest.fail(f"still held by {who}")):
        pass


SHARE = (
    "import sys, time; from pathlib import Path; from kbench.storage.journal import Journal\n"
    "with Journal(Path(sys.argv[1])).lock('machine', shared=sys.argv[2] == 'shared'):\n"
    "    print('held', flush=True); time.sleep(60)\n"
)


def test_a_shared_lock_keeps_out_only_who_wants_it_alone(journal):
    def start(how):
        command = [sys.executable, "-c", SHARE, str(journal.path), how]
        holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert holder.stdout.readline() == "held\n"
        return holder

    sharing = [start("shared"), start("shared")]
    never = []
    with journal.lock("machine", never.append, shared=True):
        pass
    assert never == []
    told = []

    def alone(who):  # the first ends; the other still holds it, and is named then
        told.append(who and who.pid)
        if sharing[len(told) - 1].poll() is None:
            sharing[len(told) - 1].kill()
            sharing[len(told) - 1].communicate()

    with journal.lock("machine", alone):
        pass
    assert told == [each.pid for each in sharing]
    holder = start("alone")
    told.clear()

    def shared(who):
        told.append(who.pid)
        holder.kill()
        holder.communicate()

    with journal.lock("machine", shared, shared=True):
        assert told == [holder.pid]


def test_what_a_waiting_caller_raises_ends_the_wait(journal):
    def give_up(who):
        raise TimeoutError

    with journal.lock("name"), pytest.raises(TimeoutError), journal.lock("name", give_up):
        pass
    looks = []

    def lose_interest():
        looks.append("and held")
        if len(looks) == 2:
            raise KeyError

    with (
        journal.lock("name"),
        pytest.raises(KeyError),
        journal.lock("name", poll=lose_interest),
    ):
        pass


def test_a_holder_that_has_not_said_who_it_is(journal):
    with journal.lock("name"):
        pass
    (file,) = (journal.path.parent / "locks").iterdir()
    file.write_text("{")
    told = []
    with file.open() as held:
        module.fcntl.flock(held, module.fcntl.LOCK_EX)

        def waiting(who):
            told.append(who)
            module.fcntl.flock(held, module.fcntl.LOCK_UN)

        with journal.lock("name", waiting):
            assert told == [None]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "make room and run"),
        (errno.EDQUOT, "your quota is used up"),
        (errno.EROFS, "the file system is read-only: name a folder that can be written in KBENCH"),
        (errno.EACCES, "you have no permission to write there"),
        (errno.ENAMETOOLONG, "the name is too long"),
        (errno.EBADF, "name another folder in KBENCH_STATE_DIR"),
    ],
)
def test_the_advice_fits_the_reason(tmp_path, monkeypatch, number, words):
    def fails(*_):
        raise OSError(number, os.strerror(number))

    journal = Journal(tmp_path / "journal.jsonl")
    monkeypatch.setattr(os, "open", fails)
    with pytest.raises(JournalError, match=words) as raised:
        journal.append("x")
    assert os.strerror(number) in str(raised.value)
    assert ("make room" in str(raised.value)) == (number in (errno.ENOSPC, errno.EDQUOT))


def test_a_folder_whose_name_is_too_long_is_named_so(tmp_path):
    with pytest.raises(JournalError, match="the name is too long"):
        Journal(tmp_path / ("x" * 300) / "journal.jsonl").append("x")


def test_a_lock_may_be_named_after_a_file_that_is_no_text(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    with journal.lock("a\udcff in store"):
        pass
