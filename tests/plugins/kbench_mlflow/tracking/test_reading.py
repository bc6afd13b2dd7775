"""What is read, superseded, given up; and told without MLflow."""

import gc
import itertools
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from kbench.errors import StoreError
from kbench_mlflow.tracking import run
from kbench_mlflow.tracking.database import read_delivered_runs
from kbench_mlflow.tracking.run import FORMAT, StoredRun
from kbench_mlflow.tracking.store import Store
from kbench_mlflow.tracking.upsert import begin, owner, process_start
from tests.support.tracking_runs import FAILED, IRIS, a_run, client_of


def test_superseded_runs_are_not_read_until_they_are_planned_again(store, uci):
    store.log(uci, a_run(key="old"))
    store.log(uci, a_run(key="elsewhere", machine="m2"))
    store.log(uci, a_run(key="apart", name="another cell"))
    store.log(uci, a_run(key="new"))
    planned = {"rff + linear-svm on iris": ["new"]}
    assert store.supersede(uci, "m1", planned) == 1
    assert store.supersede(uci, "m1", planned) == 0
    assert {row.key for row in store.read("uci")} == {"new", "apart", "elsewhere"}
    assert read_delivered_runs(store.uri, uci.id) == {
        (row.key, row.tags["kbench.digest"]) for row in store.read("uci")
    }
    back = Store(store.uri)
    back.log(uci, a_run(key="old"))
    assert back.supersede(uci, "m1", {"rff + linear-svm on iris": ["old"]}) == 1
    assert {row.key for row in back.read("uci")} == {"old", "apart", "elsewhere"}


def test_two_blocks_may_plan_the_same_labels(store, uci):
    for key in ("a", "b", "c"):
        store.log(uci, a_run(key=key))
    store.supersede(uci, "m1", {a_run().name: ["a", "b"]})
    assert {row.key for row in store.read("uci")} == {"a", "b"}


def test_runs_on_other_data_of_the_same_label_are_superseded(store, uci):
    """The file was edited: what is no longer planned has numbers of the old one."""
    before = replace(IRIS, digest="old" * 16)
    store.log(uci, a_run(key="k1", name="ridge on iris", dataset=before))
    store.log(uci, a_run(key="k2", name="knn on iris", dataset=before))
    store.log(uci, a_run(key="k3", name="knn on wine", dataset=replace(before, name="wine")))
    store.log(uci, a_run(key="k4", name="svm on iris"))
    store.log(uci, a_run(key="k5", name="svm on iris", machine="m2", dataset=before))
    store.log(uci, a_run(key="k6", name="ridge on iris"))
    planned, data = {"ridge on iris": ["k6"]}, {"iris": [IRIS.digest]}
    again = Store(store.uri)
    assert again.supersede(uci, "m1", planned, data) == 2
    assert again.supersede(uci, "m1", planned, data) == 0
    assert {row.key for row in again.read("uci")} == {"k3", "k4", "k5", "k6"}


def test_cells_of_one_key_are_runs_of_their_own(store, uci):
    """The same data under two labels: one key, two rows."""
    iris = a_run()
    mine = a_run(name="rff + linear-svm on mine", params={"dataset": "mine", "feature_map": "rff"})
    ids = {store.log(uci, iris), store.log(uci, mine)}
    assert len(ids) == 2
    again = Store(store.uri)
    assert {again.log(uci, mine), again.log(uci, iris)} == ids
    assert {row.params["dataset"] for row in store.read("uci")} == {"iris", "mine"}
    both = {iris.name: ["k1"], mine.name: ["k1"]}
    assert store.supersede(uci, "m1", both) == 0
    assert read_delivered_runs(store.uri, uci.id) == {
        (each.key, each.digest) for each in (iris, mine)
    }
    # labels that were renamed: the row of the old ones goes
    assert again.supersede(uci, "m1", {mine.name: ["k1"]}) == 1
    assert [row.params["dataset"] for row in store.read("uci")] == ["mine"]
    # and comes back when it is planned again
    Store(store.uri).log(uci, iris)
    assert {row.params["dataset"] for row in store.read("uci")} == {"iris", "mine"}
    assert {row.tags["kbench.kind"] for row in store.read("uci")} == {"cell"}


def test_a_run_that_somebody_renamed_is_still_its_cells(store, uci):
    run_id = store.log(uci, a_run())
    client_of(store).set_tag(run_id, "mlflow.runName", "my favourite")
    assert Store(store.uri).log(uci, replace(a_run(), end_ms=1_800_000_000_000)) == run_id
    assert Store(store.uri).supersede(uci, "m1", {a_run().name: ["new"]}) == 1


def test_superseded_runs_can_be_read(store, uci):
    store.log(uci, a_run(key="old", tags={"version": "0.1.0"}))
    store.log(uci, a_run(key="new", tags={"version": "0.2.0"}))
    store.supersede(uci, "m1", {a_run().name: ["new"]})
    found = {row.key: row.tags for row in store.read("uci", superseded=True)}
    assert found["old"]["kbench.version"] == "0.1.0"
    assert found["old"]["kbench.kind"] == "superseded"
    assert found["new"]["kbench.kind"] == "cell"
    assert [row.key for row in store.read("uci")] == ["new"]


def test_runs_of_another_version_are_refused_in_one_message(store, uci):
    store.log(uci, a_run())
    (run,) = store.read("uci")
    client_of(store).set_tag(run.run_id, "kbench.format", "1")
    for call in (lambda: store.read("uci"), lambda: Store(store.uri).log(uci, a_run(key="k2"))):
        with pytest.raises(StoreError, match="'uci' has runs of another version") as error:
            call()
        assert store.name in str(error.value) and "`store=" in str(error.value)


def test_sweep_gives_up_runs_whose_writer_is_gone(store, uci):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    mine = owner()
    ids = {}
    for name, changes in {
        "mine": {},
        "dead": {"kbench.pid": str(gone.pid)},
        "number reused": {"kbench.pid_start": "earlier"},
        "elsewhere": {"kbench.host": "another", "kbench.pid": str(gone.pid)},
    }.items():
        tags = {**mine, **changes, "kbench.cell_key": name, "kbench.format": FORMAT}
        tags["kbench.machine"] = "m1"
        ids[name] = client_of(store).create_run(uci.id, tags=tags).info.run_id
    ids["not ours"] = client_of(store).create_run(uci.id).info.run_id
    assert store.sweep(uci) == 2
    status = {name: client_of(store).get_run(run_id).info.status for name, run_id in ids.items()}
    assert status == {
        "mine": "RUNNING",
        "dead": "KILLED",
        "number reused": "KILLED",
        "elsewhere": "RUNNING",
        "not ours": "RUNNING",
    }
    assert store.read("uci") == []
    store.log(uci, a_run(key="dead"))
    assert [row.key for row in store.read("uci")] == ["dead"]


def test_a_process_is_told_from_a_later_one_of_its_number():
    assert process_start(os.getpid()) == process_start(os.getpid())
    assert process_start(os.getpid()) != ""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert process_start(gone.pid) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count from no boot")
def test_a_clock_that_is_set_leaves_the_start_of_a_process(monkeypatch):
    hours = itertools.count()
    monkeypatch.setattr("psutil.Process.create_time", lambda process: next(hours))
    assert process_start(os.getpid()) == process_start(os.getpid())


# -- reading -------------------------------------------------------------------------------


def test_reading_skips_what_is_deleted_foreign_or_unfinished(store, uci):
    store.log(uci, a_run())
    client_of(store).delete_run(store.log(uci, a_run(key="deleted")))
    client_of(store).create_run(uci.id, run_name="not ours")
    begin(client_of(store), uci.id, a_run(key="begun").content)
    assert [row.key for row in store.read("uci")] == ["k1"]
    assert store.read("no such experiment") == []


def test_of_two_runs_of_one_identity_the_newest_is_read(store, uci):
    store.log(uci, a_run())
    blind = Store(store.uri)
    blind.open()
    blind._indexes[uci.id] = {}  # a writer that could not know of the first run
    newer = blind.log(uci, a_run(end_ms=1_800_000_000_000, metrics={"accuracy": 0.1}))
    assert [row.run_id for row in store.read("uci")] == [newer]


def test_reading_goes_through_all_pages(store, uci, monkeypatch):
    monkeypatch.setattr(run, "_RUNS_A_PAGE", 2)
    for i in range(5):
        store.log(uci, a_run(key=f"k{i}", start_ms=i + 1))
    assert [row.key for row in store.read("uci")] == [f"k{i}" for i in range(5)]


def test_what_is_delivered_is_known_without_mlflow(store, uci):
    for i in range(3):
        store.log(uci, a_run(key=f"k{i}"))
    store.log(uci, replace(FAILED, key="failed"))
    store.log(store.experiment("other"), a_run(key="other"))
    client_of(store).delete_run(store.log(uci, a_run(key="deleted")))
    client_of(store).set_terminated(store.log(uci, a_run(key="killed")), "KILLED")
    begin(client_of(store), uci.id, a_run(key="begun").content)
    delivered = read_delivered_runs(store.uri, uci.id)
    assert delivered == {(r.key, r.tags["kbench.digest"]) for r in store.read("uci")}
    assert delivered == {(r.key, r.digest) for r in [a_run(key=f"k{i}") for i in range(3)]} | {
        ("failed", replace(FAILED, key="failed").digest)
    }
    client_of(store).delete_experiment(uci.id)
    assert read_delivered_runs(store.uri, uci.id) == set()


def test_what_cannot_be_told_without_mlflow(tmp_path):
    assert read_delivered_runs("http://127.0.0.1:5000", "1") is None
    assert read_delivered_runs(f"sqlite:///{tmp_path}/none.db", "1") == set()
    (tmp_path / "odd.db").write_text("not a database")
    assert read_delivered_runs(f"sqlite:///{tmp_path}/odd.db", "1") is None


def test_no_garbage_is_collected_while_runs_are_read(store, uci, monkeypatch):
    store.log(uci, a_run())
    plain, collects = StoredRun.of, []
    monkeypatch.setattr(StoredRun, "of", lambda run: collects.append(gc.isenabled()) or plain(run))
    assert len(Store(store.uri).read("uci")) == 1
    assert collects == [False]
    assert gc.isenabled()
