"""Servers that are away, slow or lose replies; another database."""

import contextlib
import http.client
import http.server
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kbench import StoreError
from kbench_mlflow.tracking.database import read_delivered_runs
from kbench_mlflow.tracking.store import Store
from tests.support.tracking_runs import (
    FAILED,
    IRIS,
    LONGER,
    OTHER_PARAMS,
    WRITE,
    a_free_port,
    a_run,
    in_a_process,
    live,
    state,
)

pytestmark = pytest.mark.slow


class Proxy(http.server.ThreadingHTTPServer):
    """Forwards requests to a server, with one fault at the n-th of them."""

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Forward)
        self.upstream = port
        self.uri = f"http://127.0.0.1:{self.server_address[1]}"
        self.rules()

    def rules(self, fault=None, nth=0, lasting=False):
        self.fault, self.nth, self.lasting, self.count, self.struck = fault, nth, lasting, 0, 0

    def strikes(self):
        self.count += 1
        hit = self.count >= self.nth if self.lasting else self.count == self.nth
        self.struck += hit
        return self.fault if hit else None

    def handle_error(self, *_):
        """A client that has given up is no news."""


class Forward(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.strikes()
        if fault == "away":
            self.close_connection = True
            return
        if fault in ("error 500", "not MLflow"):
            self.answer(500 if fault == "error 500" else 200, b"<p>hello</p>", "text/html")
            return
        if fault == "slow":
            time.sleep(1.5)
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=30)
        upstream.request(self.command, self.path, body, dict(self.headers))
        reply = upstream.getresponse()
        content = reply.read()
        upstream.close()
        if fault == "reply lost":
            self.close_connection = True
            return
        self.answer(reply.status, content, reply.headers.get("Content-Type", ""))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request

    def answer(self, status, content, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Nothing on the terminal."""


@pytest.fixture(scope="module")
def server(migrated_store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(migrated_store, folder / "mlflow.db")
    port = a_free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
    command += ["--port", str(port), "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as probe:
                    probe.request("GET", "/health")
                    if probe.getresponse().status == 200:
                        break
            except OSError:
                pass
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.2)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def proxy(server, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Proxy(server) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()


def test_a_server_holds_what_a_local_store_holds(proxy, store, capfd):
    remote = Store(proxy.uri)
    states = []
    for each in (store, remote):
        experiment = each.experiment("same")
        for run in (FAILED, a_run(), a_run(), LONGER, a_run(key="k2", name="other")):
            each.log(experiment, run)
        assert {row.key for row in each.read("same")} == {"k1", "k2"}
        assert each.supersede(experiment, "m1", {"other": ["k3"]}) == 1
        assert each.sweep(experiment) == 0
        states.append(sorted(state(each, experiment), key=str))
    assert states[0] == states[1]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("fault", ["away", "error 500", "reply lost", "slow"])
def test_a_fault_on_the_way_to_the_server_is_repaired(proxy, fault, capfd):
    store = Store(proxy.uri)
    wanted = store.experiment(f"undisturbed {fault}")
    for run in (FAILED, a_run()):
        store.log(wanted, run)
    positions = {"reply lost": range(1, 9)}.get(fault, (2, 4, 5))
    struck = 0
    for nth in positions:
        experiment = store.experiment(f"{fault} {nth}")
        for run in (FAILED, a_run()):
            store._indexes.clear()
            proxy.rules(fault, nth)
            with contextlib.suppress(StoreError):
                store.log(experiment, run)
            struck += proxy.struck
            proxy.rules()
            store.log(experiment, run)
        assert state(store, experiment, histories=False) == state(store, wanted, histories=False)
    assert struck >= len(positions)
    assert capfd.readouterr() == ("", "")


def test_a_server_that_stays_away_costs_seconds_and_is_filled_later(proxy):
    store = Store(proxy.uri)
    experiment = store.experiment("away")
    store.log(experiment, a_run(key="first"))
    for fault, seconds in [("away", 4), ("error 500", 4), ("slow", 8), ("not MLflow", 4)]:
        proxy.rules(fault, nth=1, lasting=True)
        started = time.monotonic()
        with pytest.raises(StoreError, match=r"127\.0\.0\.1") as raised:
            store.log(experiment, a_run(key=fault))
        assert time.monotonic() - started < seconds
        assert "\n" not in str(raised.value)
        with pytest.raises(StoreError):
            Store(proxy.uri).open()
    proxy.rules()
    keys = ["first", "away", "error 500", "slow", "not MLflow"]
    for _ in range(2):
        for key in keys:
            store.log(experiment, a_run(key=key))
    assert sorted(row.key for row in store.read("away")) == sorted(keys)
    assert len(live(store, experiment)) == 5


def test_a_client_that_repeats_requests_leaves_one_run(proxy, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")  # as a user may have set it
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    store = Store(proxy.uri)
    experiment = store.experiment("repeated")
    store._index(experiment)
    proxy.rules("reply lost", nth=1)
    kept = store.log(experiment, a_run())
    proxy.rules()
    assert len(live(store, experiment)) == 2
    assert Store(proxy.uri).log(experiment, a_run()) == kept
    assert len(live(store, experiment)) == 1


def test_writers_that_bring_the_same_new_dataset_at_once(proxy):
    stores = [Store(proxy.uri) for _ in range(4)]
    for nth in range(5):
        experiment = stores[0].experiment(f"race {nth}")
        failures = []

        def write(store, key, experiment=experiment, failures=failures):
            try:
                store.log(experiment, a_run(key=key))
            except StoreError as error:
                failures.append(error)

        threads = [
            threading.Thread(target=write, args=(each, f"k{i}")) for i, each in enumerate(stores)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert [each[5] for each in state(stores[0], experiment)] == [
            [("iris", IRIS.digest[:36])]
        ] * 4


# -- another database ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgresql():
    """Address of an empty database of a PostgreSQL server of our own."""
    pytest.importorskip("psycopg", reason="SQLAlchemy reaches PostgreSQL through psycopg 3")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [shutil.which("initdb")]
    if found[-1] is None:
        pytest.skip("PostgreSQL is not installed")
    programs = Path(found[-1]).parent
    user = None
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        user = "postgres"
    with tempfile.TemporaryDirectory() as folder:
        if user is not None:
            shutil.chown(folder, user)
        port = a_free_port()

        def call(program, *arguments):
            command = [programs / program, "-D", f"{folder}/data", *arguments]
            done = subprocess.run(
                command, user=user, cwd=folder, stdout=log, stderr=log, check=False
            )
            assert done.returncode == 0, Path(log.name).read_text()

        with (Path(folder) / "log").open("w") as log:
            call("initdb", "-A", "trust", "-U", "kb", "--no-sync")
            options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
            call("pg_ctl", "-w", "-o", options, "start")
            try:
                yield f"postgresql+psycopg://kb:secret@127.0.0.1:{port}/postgres"
            finally:
                call("pg_ctl", "-m", "immediate", "stop")


def test_postgresql_holds_what_a_local_store_holds(postgresql, store):
    both = [in_a_process(postgresql, WRITE, machine) for machine in ("m1", "m2")]  # a new store
    assert [(process.communicate()[0], process.returncode) for process in both] == [("", 0)] * 2
    remote = Store(postgresql)
    assert len(remote.read("uci")) == 80
    odd = a_run(key="k2", tags={"error": "\x00 ü"}, metrics={"x": 1e308, "y": math.nan})
    states = []
    for each in (store, remote):
        experiment = each.experiment("same")
        for run in (FAILED, a_run(), LONGER, OTHER_PARAMS, odd):
            each.log(experiment, replace(run, artifacts={}))
        states.append(sorted(state(each, experiment), key=str))
    assert states[0] == states[1]
    assert read_delivered_runs(postgresql, "1") is None
    with pytest.raises(StoreError) as raised:
        Store(f"{postgresql}-none").open()
    assert "secret" not in str(raised.value)


def test_postgresql_that_ends_all_connections_gets_each_run_once(postgresql):
    import psycopg

    remote = Store(postgresql)
    experiment = remote.experiment("dropped")
    keys = [f"k{nth}" for nth in range(4)]
    with psycopg.connect(postgresql.replace("+psycopg", ""), autocommit=True) as own:
        for key in keys:
            for _ in range(2):
                own.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND datname = current_database()"
                )
                try:
                    remote.log(experiment, a_run(key=key))
                except StoreError as error:
                    assert "secret" not in str(error)
                    assert "\n" not in str(error)
            remote.log(experiment, a_run(key=key))
    assert sorted(row.key for row in remote.read("dropped")) == keys
    assert len(live(remote, experiment)) == len(keys)
