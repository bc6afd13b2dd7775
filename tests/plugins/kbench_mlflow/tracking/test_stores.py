"""Stores: where they are, made safely, refused, locked, full, gone."""

import contextlib
import logging
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from kbench import StoreError
from kbench_mlflow.tracking import database
from kbench_mlflow.tracking.address import default_uri, engine_uri
from kbench_mlflow.tracking.store import Store
from tests.support.tracking_runs import (
    FAILED,
    LONGER,
    WRITE,
    a_free_port,
    a_run,
    client_of,
    in_a_process,
    live,
)


@pytest.fixture
def path(store_uri):
    return Path(store_uri.removeprefix("sqlite:///"))


def test_the_default_store(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert default_uri(tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://server:5000")
    assert default_uri(tmp_path) == "http://server:5000"


def test_a_store_that_is_replaced_is_written_to_and_not_the_old_file(
    store, uci, path, migrated_store
):
    """One process goes on, as a notebook does: MLflow keeps connections by URI."""
    store.log(uci, a_run(key="old"))
    store.close()
    assert not path.with_name(path.name + "-wal").exists()  # the file is whole
    assert [row.key for row in store.read("uci")] == ["old"]  # and closed is not lost
    path.unlink()
    shutil.copy(migrated_store, path)
    new = Store(store.uri)
    new.log(new.experiment("uci"), a_run(key="new"))
    new.close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        keys = database.execute("SELECT value FROM tags WHERE key = 'kbench.cell_key'").fetchall()
    assert keys == [("new",)]


def test_mlflow_chooses_the_same_store(path, monkeypatch):
    import mlflow

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(path.parent)
    # some versions of MLflow name the file relative to the current folder
    chosen = Path(mlflow.get_tracking_uri().removeprefix("sqlite:///"))
    assert str(chosen.resolve()) == default_uri().removeprefix("sqlite:///")


def test_an_experiment_is_created_once_found_again_and_restored(store):
    first = store.experiment("uci")
    assert Store(store.uri).experiment("uci") == first
    run_id = store.log(first, a_run())
    client_of(store).delete_experiment(first.id)
    assert store.read("uci") == []
    assert store.experiment("uci") == first
    assert store.log(first, a_run()) == run_id
    assert [row.run_id for row in store.read("uci")] == [run_id]


def test_a_new_store_is_put_in_place_whole(migrated_store):
    folder = migrated_store.parent
    beside = {"mlflow.db-wal", "mlflow.db-shm"}  # SQLite's, while it is open
    assert {each.name for each in folder.iterdir()} - beside == {"mlflow.db"}
    with contextlib.closing(sqlite3.connect(migrated_store)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() in (("wal",), ("delete",))


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda path: path.write_text("x" * 5000), "not a database"),
        (lambda path: sql(path, "DELETE FROM alembic_version"), "schema none"),
        (lambda path: sql(path, "UPDATE alembic_version SET version_num = 'abc'"), "schema abc"),
        (lambda path: sql(path, "DROP TABLE alembic_version"), "schema none"),
    ],
)
def test_a_store_that_cannot_be_used_is_refused_in_one_line(path, damage, word):
    damage(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=word) as raised:
        Store(f"sqlite:///{path}").open()
    assert "\n" not in str(raised.value)
    assert str(path) in str(raised.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("lacking", [(os, "link"), None])
def test_file_systems_without_links_do_as_well(migrated_store, tmp_path, monkeypatch, lacking):
    def refuse(*_):
        raise OSError("not supported")

    migrations = []

    def migrate(path, artifacts):
        migrations.append(path)
        shutil.copy(migrated_store, path)

    monkeypatch.setattr(database, "_migrate", migrate)
    if lacking is not None:
        monkeypatch.setattr(*lacking, refuse)
    path = tmp_path / "mlflow.db"
    path.touch()  # an empty file is no store yet
    database.create(path)
    assert path.read_bytes() == migrated_store.read_bytes()
    database.create(path)  # as if another process had been faster
    assert len(migrations) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["mlflow.db"]


def content(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        schema = connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
        experiments = connection.execute("SELECT * FROM experiments").fetchall()
    return schema, experiments


@pytest.mark.slow  # two migrations
@pytest.mark.parametrize(
    "damage", [None, b"", b"no database", "UPDATE alembic_version SET version_num = '1'", OSError]
)
def test_a_new_store_is_copied_from_the_last_one(tmp_path, monkeypatch, damage):
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(database, "file_system", lambda path: "nfs")
    monkeypatch.setattr(time, "time", lambda: 1e9)  # of both experiments
    migrated = []
    monkeypatch.setattr(
        database, "engine_uri", lambda path: migrated.append(path) or engine_uri(path)
    )
    if damage is OSError:
        cache.touch()  # no folder: neither read nor written
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        database.create(tmp_path / name / "mlflow.db")
        if name == "one" and isinstance(damage, bytes | str):
            [kept] = (cache / "kbench").iterdir()
            if isinstance(damage, bytes):
                kept.write_bytes(damage)
            else:  # of another build of the same version
                sql(kept, damage)
    assert len(migrated) == (3 if damage is OSError else 1 if damage is None else 2)
    first, _ = content(tmp_path / "one" / "mlflow.db")
    for name in ("two", "three"):
        schema, [experiment] = content(tmp_path / name / "mlflow.db")
        assert schema == first
        assert (tmp_path / name / "mlartifacts" / "0").as_uri() in experiment
        Store(f"sqlite:///{tmp_path / name / 'mlflow.db'}").open()
    assert damage is OSError or len([*(cache / "kbench").iterdir()]) == 1


def test_a_store_that_another_host_has_made_meanwhile_is_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "mlflow.db"

    def migrate(new, artifacts):
        new.write_text("ours")
        path.write_text("theirs")

    monkeypatch.setattr(database, "_migrate", migrate)
    database.create(path)
    assert path.read_text() == "theirs"
    assert [each.name for each in tmp_path.iterdir()] == ["mlflow.db"]


def test_what_a_killed_creation_left_behind_is_removed(migrated_store, tmp_path, monkeypatch):
    monkeypatch.setattr(
        database, "_migrate", lambda path, artifacts: shutil.copy(migrated_store, path)
    )
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = tmp_path / f".mlflow.db.{socket.gethostname()}.{gone.pid}-journal"
    elsewhere = tmp_path / ".mlflow.db.another-host.1"
    of_another_user = tmp_path / f".mlflow.db.{socket.gethostname()}.{os.getppid()}"
    for each in (left, elsewhere, of_another_user):
        each.touch()
    database.create(tmp_path / "mlflow.db")
    kept = {"mlflow.db", elsewhere.name, of_another_user.name}
    assert {each.name for each in tmp_path.iterdir()} == kept


def sql(path, statement):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute(statement)


@pytest.mark.parametrize(
    ("uri", "word"),
    [
        ("gibberish://x", "gibberish"),
        ("sqlite:////proc/none/mlflow.db", "/proc/none"),
        ("postgresql://kb:secret@127.0.0.1:{port}/db", "does not answer"),
        ("http://kb:secret@127.0.0.1:{port}", "does not answer"),
        ("http://kb:secret@127.0.0.1:x", "does not answer"),
    ],
)
def test_an_address_that_leads_nowhere_is_told_quickly_and_without_its_password(uri, word):
    started = time.monotonic()
    with pytest.raises(StoreError, match=word) as raised:
        Store(uri.format(port=a_free_port())).open()
    assert time.monotonic() - started < 5
    assert "\n" not in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_locked_database_fails_soon_and_nothing_is_doubled(store, uci, path, monkeypatch):
    monkeypatch.setattr(database, "LOCK_S", 0.2)
    store.log(uci, a_run())
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        with pytest.raises(StoreError, match="locked"):
            store.log(uci, LONGER)
        assert time.monotonic() - started < 5
        assert store.log(uci, a_run())  # nothing to write
        other.execute("ROLLBACK")
    store.log(uci, LONGER)
    assert [row.n_splits_done for row in store.read("uci")] == [3]
    assert len(live(store, uci)) == 1


def test_a_full_disk_fails_soon_and_nothing_is_doubled(store, uci, path):
    big = a_run(key="big", params={f"p{i}": "x" * 6000 for i in range(90)})
    store.log(uci, a_run())
    log = path.with_name("mlflow.db-wal")
    written = (log if log.exists() else path).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    started = time.monotonic()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (written + 20_000, hard))
        with pytest.raises(StoreError, match=r"full|disk|I/O"):
            store.log(uci, big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert time.monotonic() - started < 5
    store.log(uci, big)
    assert {row.key for row in store.read("uci")} == {"k1", "big"}
    assert len(live(store, uci)) == 2


def test_a_store_that_vanishes_under_way_is_told(store, uci, path):
    store.log(uci, a_run())
    path.unlink()
    with pytest.raises(StoreError, match="removed"):
        store.log(uci, LONGER)
    assert not path.exists()


def test_nothing_is_printed_and_logging_is_left_as_it_was(path, capfd, recwarn):
    logger = logging.getLogger("mlflow")
    before = (logger.level, logging.getLogger().handlers[:], logging.getLogger().level)
    store = Store(f"sqlite:///{path}")
    experiment = store.experiment("uci")
    store.log(experiment, FAILED)
    store.log(experiment, a_run())
    with pytest.raises(StoreError), store.calls("test"):
        client_of(store).log_param("0" * 32, "a", "b")
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list
    assert (logger.level, logging.getLogger().handlers[:], logging.getLogger().level) == before


def test_the_file_system_of_a_path():
    if not Path("/proc/self/mountinfo").exists():
        pytest.skip("the platform does not say")
    assert database.file_system(Path("/proc/self/stat")) == "proc"
    assert database.file_system(Path("/proc")) == "proc"
    assert database.file_system(Path("/")) != ""


OPEN = (
    "import sys; from kbench_mlflow.tracking.store import Store; "
    "Store(sys.argv[1]).experiment('uci')"
)


@pytest.mark.slow
def test_two_processes_may_open_a_new_store_at_once(tmp_path):
    path = tmp_path / "new folder" / "mlflow.db"
    both = [in_a_process(f"sqlite:///{path}", OPEN) for _ in range(2)]
    assert [(process.communicate()[0], process.returncode) for process in both] == [("", 0)] * 2
    assert [each.name for each in path.parent.iterdir()] == ["mlflow.db"]
    store = Store(f"sqlite:///{path}")
    assert store.log(store.experiment("uci"), a_run())


@pytest.mark.slow
def test_two_processes_may_write_at_once(path, store):
    uri = f"sqlite:///{path}"
    both = [in_a_process(uri, WRITE, machine) for machine in ("m1", "m2")]
    assert [(process.communicate()[0], process.returncode) for process in both] == [("", 0)] * 2
    rows = store.read("uci")
    assert sorted((row.machine, row.metrics["a"]) for row in rows) == [
        (machine, i) for machine in ("m1", "m2") for i in range(40)
    ]
    assert len({row.experiment_id for row in rows}) == 1


@pytest.mark.slow
def test_a_kill_during_the_first_migration_leaves_the_path_usable(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # without an empty store
    path = tmp_path / "mlflow.db"
    killed = 0
    for pause in (0.1, 0.6):
        process = in_a_process(f"sqlite:///{path}", OPEN)
        while process.poll() is None and not list(tmp_path.glob(".mlflow.db.*")):
            time.sleep(0.01)
        time.sleep(pause)
        killed += process.poll() is None and not path.exists()
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert killed
    store = Store(f"sqlite:///{path}")
    assert store.log(store.experiment("uci"), a_run())
    assert not list(tmp_path.glob(".mlflow.db.*"))


def test_a_log_is_flushed_at_checkpoints_and_other_files_with_each_transaction(store, uci, path):
    for mode, level in (("wal", 1), ("delete", 2)):
        store.close()
        with contextlib.closing(sqlite3.connect(path)) as opened:
            assert opened.execute(f"PRAGMA journal_mode = {mode}").fetchone() == (mode,)
        with contextlib.closing(database.to_write(path)) as opened:
            assert opened.execute("PRAGMA synchronous").fetchone() == (level,)


def test_loading_opens_nothing(tmp_path):
    Store(f"sqlite:///{tmp_path}/new/mlflow.db").load()
    Store(f"http://127.0.0.1:{a_free_port()}").load()  # nobody answers there
    assert not list(tmp_path.iterdir())
