"""No command shows, keeps or hands on the credentials of a store."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from kbench import Metric
from kbench.results.stored import StoredResults
from kbench.storage import files
from kbench_mlflow import commands
from kbench_mlflow.tracking.address import Address
from tests.support.command_here import command
from tests.support.credentials import ADDRESSES, CANARY
from tests.support.tracking_runs import a_free_port

SUITE = """
datasets = ["iris"]
feature_maps = ["identity"]
learners = ["dummy-majority"]
[protocol]
n_folds = 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


def written(*folders):
    """Return the names and contents of all files."""
    found = b""
    for folder in folders:
        for path in folder.rglob("*"):
            found += str(path).encode() + (path.read_bytes() if path.is_file() else b"")
    return found


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_command_shows_the_credentials_of_a_store(address, folder, capfd, private_folders):
    address = address.format(port=a_free_port())
    runs = [
        ("results", "trial", "--store", address),
        ("report", "trial", f"--store={address}"),
        ("compare", f"trial@{address}", f"trial@until=never,{address}"),
        ("compare", f"trial@version=1,{address}", "trial"),
        ("sync", "--all", "--store", address),
        ("ui", "trial", "--store", address),
    ]
    for arguments in runs:
        code, out, err = command(*arguments, capfd=capfd)
        assert code in (1, 2), arguments
        assert out + err
        assert CANARY not in out + err, arguments
        assert "Traceback" not in err
    assert CANARY.encode() not in written(folder, private_folders)


@pytest.mark.slow
@pytest.mark.parametrize("address", [ADDRESSES[1], ADDRESSES[6], ADDRESSES[9]])
@pytest.mark.parametrize("form", ["--json", "--quiet"])
def test_a_run_keeps_no_credentials(address, form, folder, private_folders):
    (folder / "small.toml").write_text(SUITE)
    address = address.format(port=a_free_port())
    for arguments in (["suite", "small.toml", form], ["sync", *(["--json"] * (form == "--json"))]):
        found = subprocess.run(
            [sys.executable, "-m", "kbench.cli", *arguments, "--store", address],
            env={**os.environ},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert found.returncode == 1, found.stderr
        assert "127.0.0.1" in found.stdout
        assert CANARY not in found.stdout + found.stderr
    assert CANARY.encode() not in written(folder, private_folders)


@pytest.mark.parametrize("address", ADDRESSES)
def test_who_waits_sees_no_credentials_of_another_command(address, folder, monkeypatch):
    address = address.format(port=5432)
    monkeypatch.setattr(sys, "argv", ["kbench", "suite", "x", f"--store={address}", address])
    path = folder / "a.lock"
    with path.open("w+b") as file:
        files.write_holder(file.fileno(), shared=False)
        assert CANARY.encode() not in path.read_bytes()
        assert "kbench suite x --store=" in files.describe_holder(files.read_holder(file.fileno()))
    old = files.Holder(1, "host", f"kbench suite x --store {address}", 0.0)
    assert CANARY not in files.describe_holder(old)


def test_what_runs_elsewhere_is_printed_as_text():
    held = files.Holder(1, "host\x1b[31m", "kbench suite \x1b[2J\udcff", 0.0)
    assert files.describe_holder(held).isprintable()


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_server_of_pages_gets_credentials_by_its_environment(
    address, folder, monkeypatch, capfd
):
    address = address.format(port=5432)
    started = []

    def run(arguments, env, **_):
        started.append((arguments, env))
        return subprocess.CompletedProcess(arguments, 0)

    opened = []
    monkeypatch.setattr(commands.subprocess, "run", run)
    monkeypatch.setattr(commands, "_answers", lambda server: True)
    now = lambda target, args, daemon: SimpleNamespace(start=lambda: target(*args))  # noqa: E731
    monkeypatch.setattr(commands, "Thread", now)
    monkeypatch.setattr(commands.webbrowser, "open", opened.append)
    code, out, err = command("ui", "--open", "--store", address, capfd=capfd)
    starts = "" if address.startswith("http") else "Starting MLflow at http://127.0.0.1:5000 ...\n"
    assert (code, err) == (0, starts)
    assert CANARY not in out + str(opened)
    if address.startswith("http"):
        assert not started
        assert "http://127.0.0.1:5432" in out
    else:
        ((arguments, environment),) = started
        assert CANARY not in json.dumps(arguments)
        assert CANARY in environment["MLFLOW_BACKEND_STORE_URI"]


def test_results_hold_the_address_of_their_store_and_do_not_show_it():
    address = Address.parse(ADDRESSES[0].format(port=1))
    found = StoredResults([], "trial", Metric("accuracy"), source=address.name)
    assert CANARY not in repr(found) + repr(address)
    assert CANARY in address.uri
