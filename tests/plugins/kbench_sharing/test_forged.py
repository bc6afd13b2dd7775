"""Forged and damaged bundles: each kind is refused with its own sentence."""

import io
import json
import os
import stat
import struct
import zipfile

import pytest

from kbench.errors import BundleError
from kbench.planning.planner import make_key_from_json
from kbench.records import Manifest
from kbench_sharing import zip_file
from kbench_sharing.bundle_records import SharedResult
from kbench_sharing.reading import parse_bundle, read_bundle
from tests.support.bundles import (
    dumped,
    files,
    known,
    lines,
    results_of,
    signed,
    with_dependencies,
    with_results,
)


@pytest.fixture(scope="module")
def honest():
    return files(author="Ada")


RESULTS = "results.jsonl"


def changed(name, change):
    """Return a forgery that changes the lines of a file, and signs it anew."""

    def forge(bundle):
        values = results_of(bundle) if name == RESULTS else lines(bundle[name])
        values = change(values) or values
        if name == RESULTS:
            return signed(with_results(bundle, values))
        return signed({**bundle, name: dumped(values)})

    return forge


def first(**fields):
    """Return a change of fields of the first line."""
    return lambda values: values[0].update(fields)


def metric(**values):
    return lambda found: found[0]["metrics"].update(values)


def details(**values):
    return lambda found: found[0]["details"].update(values)


def one_checksum(values):
    values[1].update(checksum=values[0]["checksum"], n_samples=9)


def manifest(**fields):
    def forge(bundle):
        content = json.loads(bundle["manifest.json"])
        return {**bundle, "manifest.json": json.dumps({**content, **fields}).encode()}

    return forge


def file(name, content, sign=True):
    def forge(bundle):
        given = {**bundle, name: content(bundle.get(name, b"")) if callable(content) else content}
        return signed(given) if sign else given

    return forge


def without(name):
    return lambda bundle: {key: value for key, value in bundle.items() if key != name}


def swap_datasets(values):
    values[0]["checksum"], values[1]["checksum"] = values[1]["checksum"], values[0]["checksum"]


def swap_methods(values):
    values[0]["learner"], values[1]["learner"] = values[1]["learner"], values[0]["learner"]


def swap_results(values):
    """Give the results of one dataset the key of a cell of the other."""
    keys = sorted({line["cell"] for line in values})
    by_hash = {}
    for line in values:
        by_hash.setdefault(line["cell"], line["details"]["split_hash"])
    other = next(key for key in keys if by_hash[key] != by_hash[keys[0]])
    for line in values:
        line["cell"] = {keys[0]: other, other: keys[0]}.get(line["cell"], line["cell"])


def change_protocol(values):
    values[0]["protocol"]["n_folds"] = 10


def log_loss(text):
    """Return a change of the log loss of the first result to a text that is no number."""
    return lambda content: content.replace(b'log_loss":[0.4', b'log_loss":[' + text, 1)


def field_twice(content):
    return content.replace(b'{"', b'{"split":[],"', 1)


def dependencies(**changes):
    """Return a forgery of what results were made from, whose digest is that of its content."""
    return lambda bundle: with_dependencies(bundle, **changes)


SIDES = ("feature_map", "learner")
LONG = b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"\n"

EMPTY = {"digest": Manifest().digest, "modules": {}, "files": {}, "variables": {}}
EMPTY["distributions"] = {}
OTHER = Manifest({"kbench": "0" * 64}, distributions={"python": "3.11"})
OTHERS = {"digest": OTHER.digest, **OTHER.to_json()}

FORGED = {
    "not signed": (
        file("results.jsonl", lambda c: c.replace(b"0.9", b"1.0"), sign=False),
        "results.jsonl was changed: its SHA-256 differs from that in manifest.json",
    ),
    "no manifest": (without("manifest.json"), "it has no manifest.json"),
    "no results": (without("results.jsonl"), "it lacks results.jsonl"),
    "a file that is not listed": (
        file("sources/x/y.py", b"", sign=False),
        "its files differ from those listed in manifest.json",
    ),
    "a later format": (manifest(format=7), "it has the format 7, but this version"),
    "an earlier format": (
        manifest(format=5),
        "it has the format 5, .* ask the author for a new file",
    ),
    "another format": (manifest(format="5"), "it has the format '5', but this version"),
    "an unknown field": (
        changed("cells.jsonl", first(run="rm -rf")),
        r"line 1 of cells.jsonl\['run'\]: Extra inputs are not permitted",
    ),
    "a text for a number": (
        changed("results.jsonl", metric(accuracy="0.9")),
        r"of line 1 of results.jsonl\['metrics'\]\['accuracy'\]: Input should be a valid number",
    ),
    "true for a number": (
        changed("results.jsonl", first(seconds=True)),
        r"\['seconds'\]: Input should be a valid number",
    ),
    "other dependencies under a known digest": (
        changed("dependencies.jsonl", lambda v: v[0]["modules"].update({"numpy": "0" * 64})),
        "dependencies whose digest does not match their content",
    ),
    "no dependencies": (without("dependencies.jsonl"), "it lacks dependencies.jsonl"),
    "dependencies that are left out": (
        changed("dependencies.jsonl", lambda values: [{**values[0], **EMPTY}]),
        "dependencies without modules or Python",
    ),
    "a result of no dependencies": (
        changed("results.jsonl", first(manifest="0" * 32)),
        "it lacks the dependencies of a result",
    ),
    "no result of known dependencies": (
        changed("results.jsonl", lambda values: [{**each, "manifest": ""} for each in values]),
        "it has dependencies without a result",
    ),
    "dependencies without a result": (
        changed("dependencies.jsonl", lambda values: [*values, OTHERS]),
        "it has dependencies without a result",
    ),
    "dependencies twice": (
        changed("dependencies.jsonl", lambda values: [*values, *values]),
        "it has the same dependencies twice",
    ),
    "a module that is a path": (
        dependencies(modules={"/etc/passwd": "0" * 64}),
        "the module '/etc/passwd' has an invalid name",
    ),
    "a module above a folder": (
        dependencies(modules={"kbench.../secret": "0" * 64}),
        "has an invalid name",
    ),
    "a module whose hash is none": (
        dependencies(modules={"kbench": "rm -rf"}),
        "the hash of 'kbench' is invalid",
    ),
    "a file with a path": (
        dependencies(files={"/etc/passwd": "0" * 64}),
        "the file '/etc/passwd' has an invalid name",
    ),
    "a file outside with a hash": (
        dependencies(files={"/0": "0" * 64}),
        "the file '/0' has an invalid name",
    ),
    "a file above its package": (
        dependencies(files={"numpy:../../../secret": "0" * 64}),
        "the file 'numpy:../../../secret' is not part of a package",
    ),
    "a file at the root, of a package": (
        dependencies(files={"numpy:/etc/passwd": "0" * 64}),
        "the file 'numpy:/etc/passwd' is not part of a package",
    ),
    "a value of a variable": (
        dependencies(variables={"TOKEN": "hunter2"}),
        "it has a value of the environment variable 'TOKEN'",
    ),
    "a variable that cannot be shown": (
        dependencies(variables={"TO\u202eKEN": None}),
        "the environment variable .* has characters that cannot be",
    ),
    "a distribution that is a command": (
        dependencies(distributions={"numpy; rm": "1.0"}),
        "the distribution 'numpy; rm' has an invalid name",
    ),
    "a version that is none": (
        dependencies(distributions={"numpy": "1.0 --index-url x"}),
        "is not a version of 'numpy'",
    ),
    "too many names": (
        dependencies(modules={f"m{number}": None for number in range(20_001)}),
        "its dependencies have more than 20,000 names",
    ),
    "a renamed key": (
        changed("cells.jsonl", first(key="0" * 64)),
        "has a key that does not match its data, parameters, protocol and code",
    ),
    "swapped datasets": (changed("datasets.jsonl", swap_datasets), "has a key that does not match"),
    "swapped learners": (changed("cells.jsonl", swap_methods), "has a key that does not match"),
    "another protocol": (changed("cells.jsonl", change_protocol), "has a key that does not match"),
    "a protocol of no type": (
        changed("cells.jsonl", lambda values: values[0]["protocol"].update(n_folds="many")),
        "has parameters that are invalid in a suite",
    ),
    "parameters of no form": (
        changed("cells.jsonl", lambda values: values[0]["learner"].update(params={"C": {"a": 1}})),
        "has parameters that are invalid in a suite",
    ),
    "another code": (
        changed("cells.jsonl", lambda values: values[0]["code"].append("x")),
        "has a key that does not match",
    ),
    "swapped results": (
        changed("results.jsonl", swap_results),
        "has different rows than the same split of other methods",
    ),
    "a key that is no hash": (
        changed("cells.jsonl", first(key="../../etc/passwd")),
        "the key of a cell is not a SHA-256",
    ),
    "a file of the reader": (
        changed(
            "datasets.jsonl",
            first(ref={"name": "csv", "params": {"path": "/etc/passwd"}, "label": "iris"}),
        ),
        "the dataset 'iris' refers to a file outside of its folder",
    ),
    "a file above the folder": (
        changed(
            "datasets.jsonl",
            first(ref={"name": "csv", "params": {"path": "a/../../x.csv"}, "label": "iris"}),
        ),
        "the dataset 'iris' refers to a file outside of its folder",
    ),
    "a dataset that is not there": (
        changed("cells.jsonl", first(dataset="mnist")),
        "a cell is of the dataset 'mnist', which the bundle lacks",
    ),
    "a result of no cell": (
        changed("results.jsonl", first(cell="f" * 64)),
        "has a result of a cell that the bundle lacks",
    ),
    "a result twice": (
        changed("results.jsonl", lambda values: [values[0], *values]),
        "it has split 0 of .* twice",
    ),
    "a cell twice": (
        changed("cells.jsonl", lambda values: [values[0], *values]),
        "it has the cell .* twice",
    ),
    "a dataset twice": (
        changed("datasets.jsonl", lambda values: [values[0], *values]),
        "it has the dataset 'iris' twice",
    ),
    "NaN": (file("results.jsonl", log_loss(b"NaN")), "has NaN, which is not a number"),
    "infinity": (
        changed("results.jsonl", metric(log_loss=float("inf"))),
        "has Infinity, which is not a number",
    ),
    "a number beyond all": (
        file("results.jsonl", log_loss(b"1e999")),
        r"\['log_loss'\]: Input should be a finite number",
    ),
    "a duplicate field": (
        file("results.jsonl", field_twice),
        "line 1 of results.jsonl has a duplicate field",
    ),
    "an accuracy above 1": (
        changed("results.jsonl", metric(accuracy=1.5)),
        "has the accuracy 1.5, which is out of range",
    ),
    "a negative log loss": (
        changed("results.jsonl", metric(log_loss=-1.0)),
        "has the log_loss -1, which is out of range",
    ),
    "a negative fit time": (
        changed("results.jsonl", metric(fit_time_s=-0.1)),
        "has the fit_time_s -0.1, which is out of range",
    ),
    "a fit longer than its task": (
        changed("results.jsonl", metric(fit_time_s=5.0)),
        "has a fit_time_s longer than its task",
    ),
    "an end before the start": (
        changed("results.jsonl", first(ended_ms=1)),
        "ended before it started",
    ),
    "a negative time": (
        changed("results.jsonl", first(cpu_s=-1.0)),
        r"\['cpu_s'\]: Input should be greater than or equal to 0",
    ),
    "an end in the future": (
        changed("results.jsonl", first(ended_ms=9_000_000_000_000)),
        "ended in the future",
    ),
    "longer than from start to end": (
        changed("results.jsonl", first(seconds=500.0)),
        "took longer than from its start to its end",
    ),
    "more rows than the data": (
        changed("results.jsonl", metric(n_test=3000.0)),
        "has more rows than its dataset",
    ),
    "ok without an accuracy": (
        changed("results.jsonl", lambda values: values[0]["metrics"].pop("accuracy") and None),
        "is ok and lacks the metric 'accuracy'",
    ),
    "an error with metrics": (
        changed("results.jsonl", first(status="error")),
        "has metrics, but its status is error",
    ),
    "a machine that is not there": (
        changed("results.jsonl", first(machine=7)),
        "refers to a machine that the bundle lacks",
    ),
    "a huge number of a split": (
        changed("results.jsonl", first(split=10**9)),
        "is beyond the 5 splits of its cell",
    ),
    "the one split that is good": (
        changed("cells.jsonl", first(n_splits=1)),
        "split 1 of .* is beyond the 1 split of its cell",
    ),
    "an accuracy that counts no rows": (
        changed("results.jsonl", metric(accuracy=0.9999)),
        "has the accuracy 0.9999, which is no number of 30 test rows",
    ),
    "a default that counts no rows": (
        changed("results.jsonl", metric(default_accuracy=0.123)),
        "has the default_accuracy 0.123, which is no number of 30 test rows",
    ),
    "one test row": (
        changed("results.jsonl", metric(n_test=1.0, accuracy=1.0)),
        "has 1 test rows, but its protocol has 30 of 150",
    ),
    "half a test row": (
        changed("results.jsonl", metric(n_test=29.5)),
        "has 29.5 test rows",
    ),
    "no number of test rows": (
        changed("results.jsonl", lambda values: values[0]["metrics"].pop("n_test") and None),
        "has 0 test rows",
    ),
    "seeds that were not planned": (
        changed("results.jsonl", details(by_seed={"accuracy": [1.0, 1.0]})),
        "has other map seeds than the 1 planned",
    ),
    "a mean that is not that of its seeds": (
        changed("results.jsonl", details(by_seed={"accuracy": [1.0]})),
        "has an accuracy that is not the mean over its seeds",
    ),
    "one checksum and two sizes": (
        changed("datasets.jsonl", one_checksum),
        "the dataset 'wine' has n_samples 9, but 150 in other files with the same checksum",
    ),
    "a version that is a command": (
        manifest(versions={"numpy": "1.0; rm -rf ~"}),
        "the version '1.0; rm -rf ~' of 'numpy' is invalid",
    ),
    "a distribution that is an option": (
        manifest(versions={"--index-url": "1.0"}),
        "the version '1.0' of '--index-url' is invalid",
    ),
    "text that turns around": (
        manifest(author="Ada\u202eevil"),
        "the author .* has characters that cannot be displayed",
    ),
    "a colour of the terminal": (
        manifest(suite="uci\x1b[31m"),
        "the suite .* has characters that cannot be displayed",
    ),
    "letters that look alike": (
        manifest(author="\u0410da Lovelace"),
        "the author .* has letters that look like Latin letters",
    ),
    "wide letters": (
        manifest(author="\uff21da"),
        "the author .* has compatibility characters",
    ),
    "half a character": (
        file("datasets.jsonl", lambda c: c.replace(b'"bundled', b'"\\ud800bundled', 1)),
        "string|characters that cannot be displayed",
    ),
    "markup for a name": (
        changed("results.jsonl", metric(**{"<script>": 1.0})),
        "the metric '<script>' has an invalid name",
    ),
    "nested too deep": (file("plugins.jsonl", LONG), "plugins.jsonl is (nested|not JSON)"),
    "not UTF-8": (file("cells.jsonl", b"\xff\xfe\n"), "line 1 of cells.jsonl is not UTF-8 text"),
    "not JSON": (file("cells.jsonl", b"{'a': 1}\n"), "line 1 of cells.jsonl is not JSON"),
    "not TOML": (file("suite.toml", b"datasets = ["), "suite.toml is not TOML"),
    "a large number": (
        file("results.jsonl", log_loss(b"9" * 5000)),
        "line 1 of results.jsonl is not JSON",
    ),
}


def test_an_honest_bundle_is_read(honest):
    bundle = parse_bundle(honest)
    assert bundle.n_results == 40
    assert bundle.author == "Ada"
    assert {cell.key for cell in bundle.cells} == {cell.key for cell in known().cells}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_bundle_is_refused_with_its_own_sentence(kind, honest):
    forge, sentence = FORGED[kind]
    with pytest.raises(BundleError, match=sentence) as refused:
        parse_bundle(forge(honest))
    assert "\n" not in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize(
    "protocol",
    [{"n_folds": 0}, {"cv": "holdout", "test_size": -1e308}, {"map_seeds": 10**400}],
    ids=["no folds", "a negative size", "many seeds"],
)
def test_a_protocol_beyond_all_numbers_is_refused(protocol, honest):
    values, results = lines(honest["cells.jsonl"]), results_of(honest)
    datasets = {each["ref"]["label"]: each for each in lines(honest["datasets.jsonl"])}
    (line,) = values[:1]
    line["protocol"].update(protocol)
    dataset = datasets[line["dataset"]]
    sides = [{k: line[side][k] for k in ("name", "params")} for side in SIDES]
    old, method = line["key"], [*sides, line["protocol"]]
    line["key"] = make_key_from_json(method, dataset["checksum"], dataset["task"], [], line["code"])
    results = [{**each, "cell": line["key"]} for each in results if each["cell"] == old]
    forged = with_results({**honest, "cells.jsonl": dumped(values)}, results)
    with pytest.raises(BundleError, match=r"has an invalid protocol|is invalid|JSON"):
        parse_bundle(signed(forged))


def test_a_bundle_of_a_version_with_fewer_fields_of_a_protocol_is_read(honest):
    """A field that a protocol gets later must not make all earlier bundles unreadable."""
    values = lines(honest["cells.jsonl"])
    datasets = {each["ref"]["label"]: each for each in lines(honest["datasets.jsonl"])}
    for line in values:
        del line["protocol"]["gram_error_rows"]
        dataset = datasets[line["dataset"]]
        sides = [{k: line[side][k] for k in ("name", "params")} for side in SIDES]
        method = [*sides, line["protocol"]]
        key = make_key_from_json(method, dataset["checksum"], dataset["task"], [], line["code"])
        line["key"] = key
    results = results_of(honest)
    old = dict(zip([c["key"] for c in lines(honest["cells.jsonl"])], values, strict=True))
    for line in results:
        line["cell"] = old[line["cell"]]["key"]
    earlier = with_results({**honest, "cells.jsonl": dumped(values)}, results)
    assert parse_bundle(signed(earlier)).n_results == 40


def test_packed_results_are_equal_to_those_that_were_checked(honest):
    bundle = parse_bundle(honest)
    by_key = {cell.key: {} for cell in known().cells}
    for each in results_of(honest):
        by_key[each["cell"]][each["split"]] = SharedResult.read(each, "")
    assert dict(bundle.results) == by_key
    first = next(iter(by_key))
    assert bundle.results[first][0].details.model_fields_set == (
        by_key[first][0].details.model_fields_set
    )


def test_results_of_a_cell_that_are_apart_are_refused(honest):
    # each change of the cell would unpack what is known of it
    results = results_of(honest)
    with pytest.raises(BundleError, match="are not next to each other"):
        parse_bundle(signed(with_results(honest, [*results[1:], results[0]])))


def test_a_signed_but_unchanged_bundle_is_read(honest):
    assert parse_bundle(signed(honest)).n_results == 40


# -- containers


def zip_of(bundle, **changes):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in {**bundle, **changes}.items():
            archive.writestr(name, data)
    return content.getvalue()


def entry(name, data=b"", mode=stat.S_IFREG | 0o644, **fields):
    def forge(bundle):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for each, value in bundle.items():
                archive.writestr(each, value)
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, mode << 16
            archive.writestr(info, data, **fields)
        return content.getvalue()

    return forge


def lying(bundle):
    """Return a zip file whose directory says that a file is smaller than it is."""
    data = zip_of(bundle)
    directory = data.index(b"PK\x01\x02")
    size = struct.unpack_from("<I", data, directory + 24)[0]
    return data[: directory + 24] + struct.pack("<I", size - 5) + data[directory + 28 :]


def bomb(bundle):
    """Return a zip file of 20 kB with 40 entries that say to have 100 MiB each."""
    data = bytearray(zip_of({**bundle, **{f"sources/x/m{i}.py": b"" for i in range(40)}}))
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<I", data, at + 24, 100_000_000)
        at = data.find(b"PK\x01\x02", at + 4)
    return bytes(data)


ZIPPED = {
    "no zip": (lambda bundle: b"<html>", "it is neither a zip file"),
    "cut off": (lambda bundle: zip_of(bundle)[:-200], "the zip file is damaged"),
    "a changed byte": (
        lambda bundle: zip_of(bundle).replace(b"log_loss", b"log_l0ss", 1),
        "the zip file is damaged",
    ),
    "a path upwards": (
        entry("../../.bashrc", b"x"),
        "'../../.bashrc' refers to a file outside of the bundle",
    ),
    "an absolute path": (entry("/etc/cron.d/x"), "refers to a file outside of the bundle"),
    "a path of another system": (entry("..\\x"), "refers to a file outside of the bundle"),
    "a link": (entry("sources/x/a.py", b"/etc/passwd", stat.S_IFLNK | 0o777), "is a link"),
    "a device": (entry("sources/x/a.py", b"", stat.S_IFCHR | 0o666), "a link or a device"),
    "a program": (entry("run.sh", b"rm"), "it contains the unexpected file 'run.sh'"),
    "a pickle": (entry("results.pkl"), "it contains the unexpected file 'results.pkl'"),
    "a hidden source": (entry("sources/x/../../a.py"), "refers to a file outside of the bundle"),
    "sources that are no modules": (entry("sources/x/a.so"), "unexpected file"),
    "a name of control characters": (entry("a\x1b[2Jb"), "unexpected file"),
    "a long name": (entry("a" * 5000), "a file whose name has more than 200 characters"),
    "a name twice": (entry("suite.toml", b"x"), "it has the file 'suite.toml' twice"),
    "another packing": (
        entry("sources/x/a.py", b"x" * 99, compress_type=zipfile.ZIP_LZMA),
        "uses an unsupported compression method",
    ),
    "too many files": (
        lambda bundle: zip_of({**bundle, **{f"sources/x/m{i}.py": b"" for i in range(3000)}}),
        "it has more than 2,000 files",
    ),
    "a bomb": (bomb, r"it unpacks to 4,578 MiB, more than the 10 MiB allowed for its size"),
    "a size that is wrong": (lying, "the zip file is damaged"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ZIPPED)
def test_a_damaged_zip_file_is_refused_with_its_own_sentence(kind, honest, tmp_path):
    forge, sentence = ZIPPED[kind]
    path = tmp_path / "b.zip"
    path.write_bytes(forge(honest))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BundleError, match=sentence) as refused:
        read_bundle(path)
    assert "\n" not in str(refused.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bomb_that_is_packed_is_not_unpacked_beyond_what_it_says(honest, tmp_path):
    """A file of 60 MiB of zeros says that it has 10 bytes."""
    data = bytearray(entry("sources/x/a.py", bytes(60 << 20))(honest))
    at = data.rfind(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 10)
    (tmp_path / "b.zip").write_bytes(data)
    with pytest.raises(BundleError, match="the zip file is damaged"):
        read_bundle(tmp_path / "b.zip")


@pytest.mark.parametrize("plant", ["link", "folder", "pipe", "other"])
def test_a_folder_with_links_and_pipes_is_refused(plant, honest, tmp_path):
    folder = tmp_path / "bundle"
    zip_file.write(folder, honest)
    if plant == "link":
        (folder / "suite.toml").unlink()
        (folder / "suite.toml").symlink_to("/etc/passwd")
    elif plant == "folder":
        (folder / "sources").symlink_to("/etc")
    elif plant == "pipe":
        (folder / "suite.toml").unlink()
        os.mkfifo(folder / "suite.toml")
    else:
        (folder / "evil.sh").write_text("")
    with pytest.raises(BundleError, match=r"is a link|unexpected file") as refused:
        read_bundle(folder)
    assert str(refused.value).startswith(f"{folder} is invalid: ")


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(BundleError, match="it cannot be read: No such file"):
        read_bundle(tmp_path / "none.zip")
