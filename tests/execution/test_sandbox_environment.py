"""Code of plugins does not find the credentials of the user in its environment."""

import pytest

from kbench.execution.fetching import open_fetching
from kbench.execution.plugins import load_registry
from kbench.execution.sandbox import Sandbox
from kbench.execution.sandbox.warm_process import is_credential
from kbench.execution.warm_parents import GIVEN, WarmParents
from kbench.records import Ref
from tests.support.paths import SUPPORT

SECRETS = {
    "OPENML_APIKEY": "k",
    "MLFLOW_TRACKING_PASSWORD": "p",
    "MLFLOW_TRACKING_TOKEN": "t",
    "MLFLOW_TRACKING_URI": "postgresql://me:secret@host/db",
    "AWS_SESSION": "a",
    "AWS_ACCESS_KEY_ID": "a",
    "GITHUB_TOKEN": "g",
    "HF_TOKEN": "h",
    "SERVICE_API_KEY": "s",
    "CLIENT_SECRET_1": "c",
    "PGPASSWORD": "p",
    "https_proxy": "http://me:secret@proxy:80",
    "SSH_AUTH_SOCK": "agent.socket",
    "GOOGLE_APPLICATION_CREDENTIALS": "key.json",
}
OTHERS = {
    "TOKENIZERS_PARALLELISM": "true",
    "MY_PLUGIN_MODE": "fast",
    "MONKEY": "m",
    "no_proxy": "localhost",
    "SERVER": "https://host:8080/me@home",
    "COMPASS": "n",
    "KBENCH_OFFLINE": "1",
}
SEEN = "environment_tasks:seen"


@pytest.fixture
def secrets(monkeypatch):
    monkeypatch.syspath_prepend(str(SUPPORT))
    for name, value in {**SECRETS, **OTHERS}.items():
        monkeypatch.setenv(name, value)
    return [*SECRETS, *OTHERS]


def test_names_and_values_tell_credentials():
    assert [n for n, value in SECRETS.items() if not is_credential(n, value)] == []
    assert [n for n, value in OTHERS.items() if is_credential(n, value)] == []


def test_a_task_and_its_parent_have_no_credentials(secrets):
    with Sandbox(["environment_tasks"]) as sandbox:
        found = sandbox.run(SEEN, secrets).value
    assert found == {**dict.fromkeys(SECRETS), **OTHERS}


def test_tasks_of_plugins_have_what_these_declare_and_built_in_ones_have_all(secrets):
    parents = WarmParents({("theirs",): (f"{GIVEN}HF_TOKEN", f"{GIVEN}NOT_SET")})
    try:
        with parents.using(("theirs",)) as sandbox:
            found = sandbox.run(SEEN, secrets).value
        assert found == {**dict.fromkeys(SECRETS), "HF_TOKEN": "h", **OTHERS}
        with parents.using() as sandbox:
            assert sandbox.run(SEEN, secrets).value == {**SECRETS, **OTHERS}
    finally:
        parents.close()


SOURCE = """
import os
from kbench import DatasetError, DatasetSource, hookimpl
AT_IMPORT = sorted({"OPENML_APIKEY", "HF_TOKEN"} & set(os.environ))

def load():
    raise DatasetError(f"{AT_IMPORT} {os.environ.get('OPENML_APIKEY')}")

@hookimpl
def kbench_datasets():
    return [DatasetSource("theirs", load, env_vars=["HF_TOKEN"])]
"""


@pytest.mark.slow
def test_a_source_of_a_plugin_reads_the_credential_that_it_declares(install_plugin, secrets):
    install_plugin("asks", SOURCE)
    with open_fetching(load_registry()) as fetching:
        assert fetching.fetch(Ref("theirs")).reason == "['HF_TOKEN'] None"
