"""One refusal of a busy server costs a wait, not the delivery."""

import contextlib
import http.server
import json
import threading
import time

import pytest

from kbench import StoreError
from kbench.storage.journal import Journal
from kbench_mlflow import delivery as delivery_module
from kbench_mlflow.delivery import Delivery
from kbench_mlflow.tracking import connection
from kbench_mlflow.tracking import store as store_module
from kbench_mlflow.tracking.store import Store
from tests.plugins.kbench_mlflow.test_delivery import planned
from tests.support.tracking_runs import a_run


class Busy(http.server.BaseHTTPRequestHandler):
    """Answers like MLflow's server, which has nothing yet, and refuses by turns."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body waits 40 ms for an acknowledgement

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server = self.server
        server.asked.append(self.path)
        refusal = server.refuses(self.path, body)
        if refusal == "reset":
            self.close_connection = True
            return
        if refusal:
            status, headers = refusal
            self.answer(status, b"<p>no</p>", headers)
            return
        answers = {"create": {"experiment_id": "1", "run": RUN}, "get-by-name": {"experiment": EXP}}
        self.answer(
            200,
            json.dumps(answers.get(self.path.rpartition("/")[2].partition("?")[0], {})).encode(),
            {},
        )

    do_GET = do_POST = do_PATCH = handle_request

    def answer(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing on the terminal."""


RUN = {"info": {"run_id": "r", "experiment_id": "1", "status": "RUNNING"}, "data": {}}
EXP = {"experiment_id": "1", "name": "trial", "lifecycle_stage": "active", "creation_time": 1}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        server.daemon_threads = True
        server.asked, server.refuses = [], lambda path, body: None
        server.uri = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def waits(monkeypatch):
    """Return the waits that were slept through, in no time."""
    waits = []
    monkeypatch.setattr(store_module.time, "sleep", waits.append)
    return waits


def refusing(answer, times, what="runs/create"):
    left = [times]

    def refuses(path, body):
        if what in path and left[0]:
            left[0] -= 1
            return answer
        return None

    return refuses


@pytest.mark.parametrize("answer", [(429, {}), (500, {}), (503, {}), "reset"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_refused_request_is_repeated_after_growing_waits(server, waits, answer, times):
    store = Store(server.uri)
    experiment = store.experiment("trial")
    server.refuses = refusing(answer, times)
    assert store.log(experiment, a_run()) == "r"
    assert waits == list(store_module._WAITS_S[:times])


def test_retry_after_is_honoured_within_bounds(server, waits):
    store = Store(server.uri)
    experiment = store.experiment("trial")
    server.refuses = refusing((429, {"Retry-After": "7"}), 1)
    store.log(experiment, a_run())
    assert waits == [7.0]
    server.refuses = refusing((429, {"Retry-After": "3600"}), 1)
    with pytest.raises(StoreError, match="429"):
        store.log(experiment, a_run(key="other"))
    assert waits == [7.0]
    server.refuses = refusing((503, {"Retry-After": "soon"}), 1)
    store.log(experiment, a_run(key="third"))
    assert waits == [7.0, store_module._WAITS_S[0]]


def test_all_waits_together_are_bounded(server, waits):
    store = Store(server.uri)
    experiment = store.experiment("trial")
    server.refuses = refusing((429, {"Retry-After": "25"}), 1000)
    for number in range(4):
        with pytest.raises(StoreError):
            store.log(experiment, a_run(key=f"k{number}"))
    assert sum(waits) <= store_module._ALL_WAITS_S


@pytest.mark.parametrize("status", [400, 401, 403])
def test_what_no_wait_mends_is_tried_once_more_only(server, waits, status):
    store = Store(server.uri)
    experiment = store.experiment("trial")
    server.refuses = refusing((status, {}), 1000)
    with pytest.raises(StoreError):
        store.log(experiment, a_run())
    assert len(waits) == 1


def test_the_start_of_a_delivery_waits_too(server, waits):
    server.refuses = refusing((500, {}), 2, "get-by-name")
    assert Store(server.uri).experiment("trial").id == "1"
    assert len(waits) == 2


def cells(n):
    """Return finished cells that differ in their keys."""
    made = []
    for number in range(n):
        cell = planned()
        cell.key = f"k{number}"
        made.append(cell)
    return made


@pytest.mark.parametrize(("lost", "written"), [(["k1"], 4), (["k0", "k1", "k2"], 0)])
def test_other_runs_are_delivered_unless_the_store_is_gone(
    server, waits, tmp_path, lost, written, monkeypatch
):
    server.refuses = lambda path, body: (
        (500, {}) if "create" in path and any(key.encode() in body for key in lost) else None
    )
    delivery = Delivery(server.uri, "trial", Journal(tmp_path / "journal.jsonl"), "m1")
    started = time.monotonic()
    delivered = delivery.finish(cells(5))
    assert time.monotonic() - started < 20
    assert (delivered.written, delivered.stored) == (written, written)
    assert "500" in delivered.problem
    assert delivery_module._FAILURES == 3


def test_the_note_of_a_wait_is_read_once():
    connection._asked.wait_s = 3.0
    assert (connection.asked_wait_s(), connection.asked_wait_s()) == (3.0, 0.0)
    with contextlib.suppress(AttributeError):
        del connection._asked.wait_s
    assert connection.asked_wait_s() == 0.0
