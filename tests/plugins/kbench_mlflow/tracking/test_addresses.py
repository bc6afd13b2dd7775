"""Addresses of stores: no credential is shown, and no folder's name leads elsewhere."""

import http.server
import sqlite3
import threading
import traceback
from pathlib import Path

import pytest

from kbench import StoreError
from kbench_mlflow.tracking import database
from kbench_mlflow.tracking.address import Address, default_uri, engine_uri, sqlite_path, sqlite_uri
from kbench_mlflow.tracking.database import read_delivered_runs
from kbench_mlflow.tracking.store import Store
from tests.support.credentials import ADDRESSES, CANARY
from tests.support.tracking_runs import a_free_port, a_run

FOLDERS = ["100%", "50%25", "a?b=c", "a#b", "a b", "äö", "a\nb", "\x1b[31m", "a\udcffb", "'\"&\\+"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_names_and_records_of_a_store_hide_its_credentials(address):
    store = Store(address.format(port=5432))
    found = Address.parse(store.uri)
    assert CANARY not in store.name + repr(found) + str(found)
    assert Store(store.name).name == store.name, "a name is the name of its own store"
    assert "127.0.0.1" in store.name


def test_what_is_no_credential_stays():
    for address in (
        "postgresql://me@host/db?sslmode=require",
        "http://127.0.0.1:5000/a/path",
        "postgresql+psycopg://host:5432/db?email=a@b",
        "gibberish",
    ):
        assert Store(address).name == Store(address).uri == address


def test_stores_that_differ_are_told_apart():
    assert Store("postgresql://me:x@host/a").name != Store("postgresql://me:x@host/b").name
    assert Store("postgresql://me:x@host/a").name == Store("postgresql://me:y@host/a").name


class Echo(http.server.BaseHTTPRequestHandler):
    """A server, such as a proxy, that repeats in its errors what it was asked."""

    def do_GET(self):
        body = f"denied: {self.path} {dict(self.headers)}".encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        """Nothing on the terminal."""


@pytest.fixture
def echo():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        server.status = 401
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_error_repeats_credentials(address, echo, monkeypatch, capfd):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for port in (echo.server_address[1], a_free_port()):
        if not address.startswith("http") and port == echo.server_address[1]:
            continue
        with pytest.raises(StoreError) as raised:
            Store(address.format(port=port)).open()
        shown = "".join(traceback.format_exception(raised.value))
        assert CANARY not in shown + "".join(capfd.readouterr())


def test_credentials_of_the_environment_are_not_repeated(echo, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", CANARY)
    with pytest.raises(StoreError, match="denied") as raised:
        Store(f"http://127.0.0.1:{echo.server_address[1]}").open()
    assert CANARY not in str(raised.value)


@pytest.mark.parametrize("name", FOLDERS)
def test_every_folder_has_an_address_that_leads_back(name):
    path = Path("/data") / name / "mlflow.db"
    uri = sqlite_uri(path)
    assert sqlite_path(uri) == path
    assert uri.isprintable()
    assert Store(uri).name == Store(uri).uri == uri
    # what the installed SQLAlchemy makes of the address that it is given
    from sqlalchemy.engine import make_url

    url = make_url(engine_uri(path))
    assert (url.database, dict(url.query)) == (str(path), {})


@pytest.mark.parametrize("name", ["100%", "50%25", "a?b=c", "a\n#b"])
def test_a_store_lies_in_its_folder_whatever_that_is_called(name, tmp_path, migrated_store):
    folder = tmp_path / name
    folder.mkdir()
    uri = default_uri(folder)
    (folder / "mlflow.db").write_bytes(Path(migrated_store).read_bytes())
    store = Store(uri)
    experiment = store.experiment("trial")
    run = a_run(artifacts={"error.txt": "no"})
    run_id = store.log(experiment, run)
    assert [each.key for each in store.read("trial")] == [run.key]
    assert read_delivered_runs(store.uri, experiment.id) == {(run.key, run.digest)}
    store.close()
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert list((folder / "mlartifacts").rglob(f"{run_id}/**/error.txt"))
    with sqlite3.connect(folder / "mlflow.db") as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def test_a_folder_whose_name_is_no_text_is_refused(tmp_path, capfd):
    """MLflow would keep the files elsewhere: its database holds text only."""
    folder = tmp_path / "a\udcff"
    folder.mkdir()
    with pytest.raises(StoreError, match=r"a%FF/mlflow\.db is in a folder whose name is not UTF-8"):
        Store(default_uri(folder)).open()
    assert list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["100%", "50%25", "a?b=c"])
def test_a_store_is_made_in_its_folder_whatever_that_is_called(name, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    store = Store(default_uri(folder))
    store.log(store.experiment("trial"), a_run())
    store.close()
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert (folder / "mlflow.db").stat().st_size


def test_a_database_that_cannot_be_made_fails_soon(tmp_path, monkeypatch):
    """MLflow would try for 100 seconds."""
    from mlflow.store.db import utils

    seen = []
    monkeypatch.setattr(database, "prepare", lambda path: seen.append(utils.MAX_RETRY_COUNT))
    with pytest.raises(StoreError):
        Store(f"sqlite:///{tmp_path}").open()
    assert seen == [2]
