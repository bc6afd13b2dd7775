"""`kbench ui` prints its addresses when the server answers, not before."""

import http.server
import socket
import threading
import webbrowser

from kbench_mlflow import commands


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(403)  # MLflow refuses some hosts so; it answers

    def log_message(self, *arguments):
        """Do nothing."""


def test_addresses_are_printed_and_opened_when_the_server_answers(capsys, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    port = free_port()
    server = f"http://127.0.0.1:{port}"
    addresses = {"methods": f"{server}/#/methods", "charts": f"{server}/#/charts"}
    telling = threading.Thread(target=commands._tell, args=(addresses, server, True))
    telling.start()
    telling.join(0.5)
    assert telling.is_alive()
    assert capsys.readouterr().out == ""
    assert opened == []
    with http.server.HTTPServer(("127.0.0.1", port), Page) as page:
        threading.Thread(target=page.serve_forever, daemon=True).start()
        telling.join(60)
        page.shutdown()
    assert capsys.readouterr().out.splitlines() == [
        f"methods  {server}/#/methods",
        f"charts  {server}/#/charts",
    ]
    assert opened == [f"{server}/#/methods"]


def test_a_server_that_never_answers_is_named(capsys, monkeypatch):
    monkeypatch.setattr(commands, "_answers", lambda server: False)
    commands._tell({"MLflow": "http://x"}, "http://x", False)
    assert capsys.readouterr() == ("", "http://x does not answer\n")
