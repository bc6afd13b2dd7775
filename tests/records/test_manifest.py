"""What a result was made from: compared, joined, and published without secrets."""

import json

import pytest

from kbench.records import Manifest

WHOLE = Manifest(
    modules={"maps": "1", "maps.late": None},
    files={"maps:weights.bin": "2", "/home/ada/table.csv": "3", "/home/ada/gone.csv": None},
    variables={"LEVEL": "4", "UNSET": None},
    distributions={"python": "3.11", "numpy": "2.1 5"},
)


def test_it_comes_back_from_json_with_the_same_digest():
    back = Manifest.from_json(json.loads(json.dumps(WHOLE.to_json())))
    assert back == WHOLE
    assert back.digest == WHOLE.digest
    assert len(WHOLE.digest) == 32
    assert Manifest.from_json({}) == Manifest()


def test_the_order_of_names_is_not_in_its_digest_and_all_else_is():
    one, other = Manifest({"a": "1", "b": "2"}), Manifest({"b": "2", "a": "1"})
    assert one.digest == other.digest
    others = [
        *(Manifest(**{part: {"a": value}}) for part in WHOLE.to_json() for value in ("1", None)),
        *(Manifest({"a": "2"}), Manifest({"b": "1"}), Manifest(), one),
    ]
    assert len({each.digest for each in others}) == len(others)


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        "text",
        {"modules": 1},
        {"modules": {"a": 1}},
        {"code": {}},
        {"files": {"a": ["b"]}},
    ],
)
def test_what_is_no_manifest_is_refused(given):
    with pytest.raises(ValueError, match="not a manifest"):
        Manifest.from_json(given)


def test_what_differs_between_two_processes_is_never_valid():
    joined = Manifest({"a": "1", "b": "1"}, variables={"X": None}) | Manifest(
        {"b": "2", "c": None}, variables={"X": "1"}
    )
    assert joined == Manifest({"a": "1", "b": "", "c": None}, variables={"X": ""})
    assert WHOLE | WHOLE == WHOLE
    for now in ({"a": "1", "b": each, "c": None} for each in ("1", "2", None)):
        assert joined.differences(Manifest(now, variables={"X": "1"}))


def test_differences_name_versions_first_and_say_what_has_happened():
    now = Manifest(
        modules={"maps": "1 edited", "maps.late": "6"},
        files={"maps:weights.bin": "7", "/home/ada/table.csv": None, "/home/ada/gone.csv": "8"},
        variables={"LEVEL": "9", "UNSET": "10"},
        distributions={"python": "3.12", "numpy": "2.1 11"},
    )
    assert WHOLE.differences(now) == [
        "the files of numpy 2.1 changed",
        "python 3.12 instead of 3.11",
        "the environment variable LEVEL has another value",
        "the environment variable UNSET has another value",
        "the file /home/ada/gone.csv was not there",
        "the file /home/ada/table.csv is not there",
        "the file maps:weights.bin changed",
        "maps changed",
        "maps.late was not installed",
    ]
    gone = Manifest({"maps": None}, distributions={"numpy": None})
    assert Manifest({"maps": "1"}, distributions={"numpy": "2.1 5"}).differences(gone) == [
        "numpy is not installed",
        "maps is not there",
    ]
    assert WHOLE.differences(WHOLE) == []


def test_hosts_may_have_built_the_files_of_a_version_anew():
    one, other = (Manifest(distributions={"numpy": f"2.1 {each}"}) for each in "56")
    assert one.digest != other.digest
    assert one.across_hosts() == other.across_hosts()
