"""Every fault of a server on the way: waited for, or one clear error."""

import time

import numpy as np
import pytest

from kbench import DatasetError
from kbench_openml import _source, _transport
from kbench_openml._source import load
from tests.support.openml_server import OpenMLServer

RECOVERS = (
    *("http-500-twice", "http-503-twice", "busy-twice", "reset-twice"),
    *("slow=0.05", "plain", "no-md5", "no-qualities", "trickle=100000"),
    "redirect",
)
FAILS = {
    "truncate": "checksum",
    "truncate-lines": "checksum",
    "cut": "connection was lost",
    "bad-md5": "checksum",
    "empty": "empty response",
    "bad-xml": "damaged",
    "html": "web page",
    "http-500": "500",
    "not-found": "404",
    "reset": "connection was lost",
    "wrong-id": "instead",
    "slow=1": "sent nothing",
    "trickle=200": "time limit",
    "bomb": "larger than",
    "redirect-forever": "redirects too often",
}


def _time_limits(monkeypatch, fault):
    if fault.startswith("slow="):
        monkeypatch.setattr(_transport, "SILENCE_S", 0.5)
    if fault.startswith("trickle=2"):
        monkeypatch.setattr(_transport, "TOTAL_S", 1.0)
    if fault == "bomb":
        monkeypatch.setenv("KBENCH_MAX_DATASET_MIB", "1")


@pytest.mark.parametrize("fault", RECOVERS)
def test_what_passes_is_waited_for(connect_openml, fault):
    with OpenMLServer() as server:
        connect_openml(server)
        right = load(data_id=61)
    with OpenMLServer(faults=[fault]) as server:
        connect_openml(server)
        data = load(data_id=61)
    np.testing.assert_array_equal(data.X, right.X)
    np.testing.assert_array_equal(data.y, right.y)


@pytest.mark.parametrize("fault", FAILS)
def test_what_does_not_pass_is_one_clear_error(connect_openml, monkeypatch, fault):
    _time_limits(monkeypatch, fault)
    with OpenMLServer(faults=[fault]) as server:
        connect_openml(server)
        start = time.monotonic()
        with pytest.raises(DatasetError, match=FAILS[fault]) as caught:
            load(data_id=61)
        assert time.monotonic() - start < 30
        assert "OpenML data 61" in str(caught.value)
        # nothing that is wrong stays behind
        server.faults.clear()
        monkeypatch.setattr(_transport, "SILENCE_S", 10.0)
        monkeypatch.setattr(_transport, "TOTAL_S", 60.0)
        monkeypatch.setenv("KBENCH_MAX_DATASET_MIB", "100")
        assert load(data_id=61).X.shape == (150, 4)


def test_a_server_that_asks_for_an_hour_is_not_waited_for(connect_openml):
    with OpenMLServer(faults=["http-503-twice=3600"]) as server:
        connect_openml(server)
        start = time.monotonic()
        with pytest.raises(DatasetError, match="asks to wait for 3600 s"):
            load(data_id=61)
        assert time.monotonic() - start < 30


def test_an_api_key_is_never_shown(connect_openml, monkeypatch):
    import openml

    monkeypatch.setattr(openml.config, "apikey", "5ec2e7")
    monkeypatch.setattr(_source, "is_reachable", lambda _: True)
    for fault in ("cut", "not-found", "http-500", "html", "redirect-forever", "gone"):
        with OpenMLServer(faults=[fault] if fault in FAILS else []) as server:
            connect_openml(server)
            if fault == "gone":
                server.shutdown()
                server.server_close()
            with pytest.raises(DatasetError) as caught:
                load(data_id=61)
        assert "5ec2e7" not in str(caught.value)
