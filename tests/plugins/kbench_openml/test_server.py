"""Which server is meant, and whether it can be reached."""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from kbench.errors import SourceUnreachableError
from kbench_openml import _transport
from kbench_openml._source import load
from tests.support.openml_server import OpenMLServer


def test_a_server_that_is_gone_is_noticed_at_once(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        load(data_id=61)
    start = time.monotonic()
    assert load(data_id=61).X.shape == (150, 4)  # from the client's cache
    with pytest.raises(SourceUnreachableError, match="cannot be reached"):
        load(data_id=9001)
    assert time.monotonic() - start < 4  # less than one time-out


def test_connecting_gives_up_in_time(monkeypatch):
    over = threading.Event()

    def connect(*_, **__):
        over.wait(60)
        raise OSError

    monkeypatch.setattr(_transport, "CONNECT_S", 0.2)
    monkeypatch.setattr(socket, "create_connection", connect)
    start = time.monotonic()
    assert not _transport._connects("example.org", 443)
    assert time.monotonic() - start < 10
    over.set()


def test_without_a_network_the_client_is_not_even_imported(tmp_path):
    config = tmp_path / "config" / "openml"
    config.mkdir(parents=True)
    (config / "config").write_text("server = http://127.0.0.1:1/api/v1/xml\n")
    code = (
        "import sys\n"
        "from kbench import DatasetError\n"
        "from kbench_openml._source import load\n"
        "try:\n    load(data_id=61)\n"
        "except DatasetError as error:\n    print(error)\n"
        "heavy = {'openml', 'requests', 'pandas', 'sklearn', 'pyarrow'} & set(sys.modules)\n"
        "print('heavy', sorted(heavy))\n"
    )
    environment = {
        **{key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")},
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "OPENML_CACHE_DIR": str(tmp_path / "openml"),
    }
    environment.pop("KBENCH_OFFLINE", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "127.0.0.1:1 cannot be reached" in done.stdout
    assert "heavy []" in done.stdout


def test_configuration_is_read_as_the_client_reads_it(connect_openml, monkeypatch, tmp_path):
    import openml

    with OpenMLServer() as server:
        cache = connect_openml(server)
        as_client = (openml.config.server, cache)
    monkeypatch.delitem(sys.modules, "openml.config")
    folder = tmp_path / "config" / "openml"
    folder.mkdir(parents=True)
    (folder / "config").write_text(f"server = {server.url}\ncachedir = {tmp_path / 'openml'}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("OPENML_CACHE_DIR", raising=False)
    found = _transport.configured()
    assert (found.url, found.cache) == as_client
