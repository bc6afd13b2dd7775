"""Bundles from servers: https only, bounded, and checked as files are."""

import contextlib
import http.server
import socket
import threading
import time

import pytest

from kbench.errors import BundleError
from kbench_sharing import fetching, repository, zip_file
from kbench_sharing.fetching import fetch
from kbench_sharing.reading import parse_bundle, read_url
from tests.support.bundles import files


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers by the table `answers` of its server: path to status, headers and body."""

    def do_GET(self):
        status, headers, body = self.server.answers[self.path]
        self.server.asked.append(self.path)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.answers, made.asked = {}, []
    made.url = f"http://127.0.0.1:{made.server_port}"
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def test_a_bundle_and_a_rows_file_are_fetched_and_checked(server):
    honest = files(author="Ada")
    server.answers["/b.zip"] = (200, {}, zip_file.pack_zip(honest))
    bundle = read_url(f"{server.url}/b.zip")
    assert bundle.id == parse_bundle(honest).id
    _, rows = next(iter(repository.rows_files(bundle)))
    server.answers["/rows"] = (302, {"Location": "/moved"}, b"")
    server.answers["/moved"] = (200, {"Content-Length": str(len(rows))}, rows)
    assert read_url(f"{server.url}/rows").n_results == 5


def test_what_a_server_sends_is_refused_as_a_file_is(server):
    forged = {**files(), "run.sh": b"rm -rf ~"}
    server.answers["/b.zip"] = (200, {}, zip_file.pack_zip(forged))
    server.answers["/page"] = (200, {}, b"<html>")
    with pytest.raises(BundleError, match=r"what http://.*/b.zip sent is invalid: .*'run.sh'"):
        read_url(f"{server.url}/b.zip")
    with pytest.raises(BundleError, match="it is neither a zip file nor a rows file"):
        read_url(f"{server.url}/page")


def test_the_size_is_checked_before_anything_is_read(server):
    server.answers["/big"] = (200, {"Content-Length": "1001"}, b"")
    with pytest.raises(BundleError, match="it has 1,001 bytes, more than the 1,000 allowed"):
        fetch(f"{server.url}/big", most=1000)
    # the server does not say how much there is
    server.answers["/endless"] = (200, {}, bytes(5000))
    with pytest.raises(BundleError, match="it has more than the 1,000 bytes allowed"):
        fetch(f"{server.url}/endless", most=1000)
    server.answers["/fits"] = (200, {"Content-Length": "1000"}, bytes(1000))
    assert fetch(f"{server.url}/fits", most=1000) == bytes(1000)


def test_a_file_that_ends_early_is_refused(server):
    server.answers["/cut"] = (200, {"Content-Length": "1000"}, bytes(10))
    with pytest.raises(BundleError, match="the connection closed before the end of the file"):
        fetch(f"{server.url}/cut")


def test_redirects_are_bounded_and_stay_of_one_kind(server):
    server.answers["/loop"] = (302, {"Location": "/loop"}, b"")
    with pytest.raises(BundleError, match="it redirects too often"):
        fetch(f"{server.url}/loop")
    assert len(server.asked) <= fetching.MAX_REDIRECTS + 1
    for number in range(10):
        server.answers[f"/{number}"] = (302, {"Location": f"/{number + 1}"}, b"")
    server.asked.clear()
    with pytest.raises(BundleError, match="it redirects too often"):
        fetch(f"{server.url}/0")
    assert len(server.asked) == fetching.MAX_REDIRECTS + 1
    for path, target in (
        ("/a", "file:///etc/passwd"),
        ("/b", "http://example.org/b.zip"),
        ("/c", "https://example.org/b.zip"),
        ("/d", "ftp://example.org/b.zip"),
    ):
        server.answers[path] = (302, {"Location": target}, b"")
        with pytest.raises(
            BundleError, match=r"only https is fetched|it redirects .*to another scheme"
        ):
            fetch(f"{server.url}{path}")


def test_packed_once_more_and_errors_of_the_server_are_refused(server):
    server.answers["/gzip"] = (200, {"Content-Encoding": "gzip"}, b"\x1f\x8b")
    with pytest.raises(BundleError, match="compresses it, which"):
        fetch(f"{server.url}/gzip")
    server.answers["/gone"] = (410, {}, b"")
    with pytest.raises(BundleError, match="cannot be fetched: the server answers with status 410"):
        fetch(f"{server.url}/gone")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://example.org/b.zip", "only https is fetched"),
        ("http://127.0.0.1.example.org/b.zip", "only https is fetched"),
        ("http://10.0.0.1/b.zip", "only https is fetched"),
        ("ftp://example.org/b.zip", "only https is fetched"),
        ("file:///etc/passwd", "only https is fetched"),
        ("https:///b.zip", "only https is fetched"),
        ("https://ada:secret@example.org/b.zip", "it contains a user name or a password"),
        ("https://[::1/b.zip", "cannot be fetched: "),
        ("http://127.0.0.1:1/b.zip", "cannot be fetched: "),
        ("http://127.0.0.1:1/a b\r\nX: 1", "cannot be fetched: "),
    ],
)
def test_other_addresses_are_refused(url, why):
    with pytest.raises(BundleError) as refused:
        fetch(url)
    assert why in str(refused.value)
    assert "secret" not in str(refused.value)
    assert str(refused.value).isprintable()


def test_a_server_that_is_silent_is_given_up(server, monkeypatch):
    monkeypatch.setattr(fetching, "MAX_S", -1.0)
    server.answers["/slow"] = (200, {}, b"abc")
    with pytest.raises(BundleError, match="it takes longer than"):
        fetch(f"{server.url}/slow")


def test_a_server_that_drips_its_headers_is_given_up(monkeypatch):
    monkeypatch.setattr(fetching, "MAX_S", 0.3)
    ended = threading.Event()

    def drip(listening):
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not ended.wait(0.02):
                connection.sendall(b"X: y\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,), daemon=True)
        thread.start()
        begun = time.monotonic()
        with pytest.raises(BundleError, match=r"it takes longer than 0\.3 s"):
            fetch(f"http://127.0.0.1:{listening.getsockname()[1]}/b.zip")
        assert time.monotonic() - begun < 1.5
        ended.set()
        thread.join(5)
