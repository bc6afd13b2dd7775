"""Addresses that a server names: only http(s), only the configured servers."""

import socket
import threading

import pytest

from kbench import DatasetError
from kbench_openml import _transport
from kbench_openml._source import load
from tests.support.openml_server import OpenMLServer


@pytest.fixture
def internal():
    """A service that no dataset should reach; it records who connects."""
    seen = []
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(10)

    def accept():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1)
                seen.append(connection.recv(4096))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}", seen
    listening.close()


class Misleading(OpenMLServer):
    """A server that names other addresses, or redirects to them."""

    def __init__(self, address, where):
        self.address, self.where = address, where
        super().__init__(faults=["redirect@download"] if where == "redirect" else [])

    def description(self, number, faults):
        text = super().description(number, faults)
        return text.replace(self.base, self.address) if self.where == "data" else text

    def task(self, number):
        text = super().task(number)
        return text.replace(self.base, self.address) if self.where == "splits" else text

    def moved(self, path):
        return f"{self.address}{path}" if self.where == "redirect" else super().moved(path)


@pytest.mark.parametrize("where", ["data", "splits", "redirect"])
def test_a_server_cannot_send_kbench_to_another(connect_openml, internal, where, monkeypatch):
    import openml

    monkeypatch.setattr(openml.config, "apikey", "5ec2e7")
    address, seen = internal
    with Misleading(address, where) as server:
        connect_openml(server)
        with pytest.raises(DatasetError, match="KBENCH_OPENML_HOSTS") as caught:
            load(task_id=1061) if where == "splits" else load(data_id=61)
    assert seen == []
    assert "5ec2e7" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["file:///etc/passwd?", "ftp://127.0.0.1", "gopher://127.0.0.1:1", "//h:1", "http://"],
)
def test_only_http_is_asked(connect_openml, address):
    with Misleading(address, "data") as server:
        connect_openml(server)
        with pytest.raises(DatasetError):
            load(data_id=61)


def test_files_may_lie_on_another_server_that_the_user_names(connect_openml, monkeypatch):
    import openml

    monkeypatch.setattr(openml.config, "apikey", "5ec2e7")
    with OpenMLServer() as files, Misleading(files.base, "data") as server:
        connect_openml(server)
        monkeypatch.setenv("KBENCH_OPENML_HOSTS", f"elsewhere.org, {files.base.split('//')[1]}")
        assert load(data_id=61).X.shape == (150, 4)
        assert any("download" in path for path in files.requests)
        # which does not get the key
        assert not any("5ec2e7" in query for query in files.queries)
        assert any("5ec2e7" in query for query in server.queries)


@pytest.mark.parametrize(
    ("server", "address", "allowed"),
    [
        ("https://www.openml.org/api", "https://www.openml.org/x", True),
        ("https://www.openml.org/api", "https://data.openml.org/x", True),
        ("https://www.openml.org/api", "https://api.openml.org/x", True),
        ("https://www.openml.org/api", "http://www.openml.org/x", True),
        ("https://www.openml.org/api", "https://openml.org/x", True),
        ("https://www.openml.org/api", "https://www.openml.org:8443/x", False),
        ("https://www.openml.org/api", "https://openml.org.evil.com/x", False),
        ("https://www.openml.org/api", "https://evilopenml.org/x", False),
        ("https://www.openml.org/api", "https://www.openml.org@evil.com/x", False),
        ("https://www.openml.org/api", "https://evil.com#@www.openml.org/x", False),
        ("https://www.openml.org/api", "http://169.254.169.254/latest", False),
        ("https://www.openml.org/api", "ftp://www.openml.org/x", False),
        ("https://openml.lab.example.ac.uk/api", "https://files.lab.example.ac.uk/x", False),
        ("https://openml.lab.example.ac.uk/api", "https://data.openml.lab.example.ac.uk/", True),
        ("https://openml.lab.example.ac.uk/api", "https://example.ac.uk/x", False),
        ("https://www.openml.org/api", "https://www.openml.org\\@evil.com/x", False),
        ("https://openml.com/api", "https://evil.com/x", False),
        ("http://mirror:8080/api", "http://mirror:8080/x", True),
        ("http://mirror:8080/api", "http://mirror/x", False),
        ("http://10.0.0.5/api", "http://10.0.0.6/x", False),
        ("http://10.0.0.5/api", "http://11.0.0.5/x", False),
        ("http://[::1]:9/api", "http://[::1]:9/x", True),
        ("http://localhost:9/api", "http://localhost:10/x", False),
    ],
)
def test_which_addresses_belong_to_a_server(server, address, allowed):
    assert _transport.is_allowed(address, server) == allowed
