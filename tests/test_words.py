"""What users read is in the field's own words: no dialect, and no long sentences.

The words are in ``support/lexicon.toml``, with the places where they are the field's own.
"""

from collections import Counter

import pytest

from tests.support import words

MIN_TEXTS = {
    "help": 200,
    "message": 1500,
    "docs": 100,
    "docstring": 3500,
    "suite": 200,
    "page": 20,
}


@pytest.fixture(scope="module")
def texts():
    return list(words.collect_texts())


def test_no_text_has_words_of_the_dialect(texts):
    found = [finding for text in texts for finding in words.find_words(text)]
    assert not found, "\n" + "\n".join(map(str, found))


def test_all_kinds_of_texts_are_read(texts):
    kinds = Counter(text.kind for text in texts)
    assert {kind: n for kind, n in MIN_TEXTS.items() if kinds[kind] < n} == {}
    assert sum(len(text.prose) for text in texts) > 900_000


BAD = '''
"""The suite says what becomes of columns; texts stay."""

def export(name):
    """Return the own table, None where the file is refused."""
    raise ValueError(f"{name} is a mistake: give a text that tells whether it is known")


def _internal(name):
    """This is beside the point."""
    return name + "beside"
'''


def test_words_are_found_where_they_are():
    found = [
        (finding.line, finding.found.lower())
        for text in words.texts_of_python("kbench/bad.py", BAD)
        for finding in words.find_words(text)
    ]
    assert set(found) == {
        (2, "suite says"),
        (2, "texts"),
        (2, "what becomes of"),
        (5, "none where"),
        (5, "is refused"),
        (5, "own"),
        (6, "a text"),
        (6, "is known"),
        (6, "mistake"),
        (6, "tells"),
    }


def find(prose, kind="docs", file="docs/page.md"):
    text = words.Text(kind, file, 1, words.hide_code(prose))
    return [(finding.line, finding.found) for finding in words.find_words(text)]


def test_code_is_left_out():
    assert find("Call `beside`.\n\n```console\n$ kbench beside\n```\n[one](beside.md)") == []
    assert find("Call it\n\nput\nside by\nside") == [(3, "put side by side")]
    assert find("standard deviation, a connection is refused, its own") == []
    assert find("It had .95.") == [(1, "had .95"), (1, ".95")]


def test_long_sentences_are_found_in_pages_for_users():
    sentence = "This one has " + "very " * 40 + "many words."
    assert [line for line, _ in find(f"Short.\n\n{sentence}")] == [3]
    assert find(sentence, file="docs/architecture.md") == []
    assert find(f"| a | {'word ' * 20} | {'word ' * 20} |") == []
    assert find("\n".join(f"- item {n} of a list without stops" for n in range(30))) == []
