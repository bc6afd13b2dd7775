"""What of a source counts: its code, and nothing that is written for readers."""

import ast
import itertools
import os
import subprocess
import sys

import pytest

from kbench.planning.digests import syntax_digest
from tests.support.paths import ROOT

PLAIN = b"""\
from math import pi
LIMIT = 3


class Map:
    width: int = LIMIT

    def fit(self, X, y=None):
        self.scale_ = pi * 2
        return self
"""
EXPLAINED = b'''\
#!/usr/bin/env python
"""What this module is for."""

from math import (
    pi,  # the ratio
)

LIMIT = 0x3
"""How many."""

class Map:
    u"""A map."""
    width : int = (LIMIT)
    'How wide.'
    def fit(self, X,
            y = None):
        r"""Fit \\it."""
        self . scale_ = pi*2 ; return self  # itself
'''

DIFFERENT = """\
1 | 1.0 | True | "1" | b"1" | 1j | None | ... | x | -1 | (1,) | [1] | {1} | {1: 1} | f"1" | f"{1}"
a, b | (a, (b,)) | [a, b] | a + b | b + a | a - b | a @ b | a < b | a <= b | not a | ~a | await_
a + b * c | (a + b) * c | a and b or c | a and (b or c) | a if b else c | b if a else c
{**a, "k": b} | {"k": a, **b} | {a: "k", **b} | {**a, **b}
f(a, b) | f(b, a) | f(a)(b) | f(a, *b) | f(a, **b) | f(a=b) | f(b=a) | f.a | f.b | f[a]
f[a] | f[a:] | f[:a] | f[a, b] | f[a:b] | f[::a]
lambda a, b: a | lambda a, b=1: a | lambda a, *, b: a | lambda a, /, b: a | lambda *, a, b=1: a \
| lambda *, a=1, b: a | lambda *a, b: a | lambda a, *b: a
[a for a in b] | {a for a in b} | (a for a in b) | [a for a in b if c] | [a for a in b for c in d]
f"{a}" | f"{a!r}" | f"{a:2}" | f"{a}b" | "ab" | 'a' 'c' | "None" | "*" | "body"
"""
STATEMENTS = [
    "import a",
    "import b",
    "import a as b",
    "import a, b",
    "import a.b",
    "from a import b",
    "from . import b",
    "from .. import b",
    "from .a import b",
    "from a import b as c",
    "def f(): pass",
    "def g(): pass",
    "async def f(): pass",
    "def f(): return",
    "def f(): return None",
    "def f(a): pass",
    "def f(a=1): pass",
    "def f(a=2): pass",
    "def f(*, a): pass",
    "@a\ndef f(): pass",
    "@a\n@b\ndef f(): pass",
    "@b\n@a\ndef f(): pass",
    "@a\ndef f(b: int): pass",
    "@a\ndef f(b: float): pass",
    "@a\ndef f() -> int: pass",
    "class f: pass",
    "class f(a): pass",
    "class f(metaclass=a): pass",
    "x: int",
    "(x): int",
    "x: int = 1",
    "x: float = 1",
    "x = 1",
    "x = y = 1",
    "y = x = 1",
    "x += 1",
    "x -= 1",
    "if a:\n  b\n  c",
    "if a:\n  b\nc",
    "if a:\n  b\nelse:\n  c",
    "while a:\n  b\nelse:\n  c",
    "for a in b: c",
    "for a in b: break",
    "for a in b: continue",
    "for a in b: pass",
    "global a\na = 1",
    "global b\na = 1",
    "try: a\nexcept b: c",
    "try: a\nexcept b as c: c",
    "try: a\nexcept: c",
    "try: a\nfinally: c",
    "with a: b",
    "with a as c: b",
    "match a:\n  case 1: b",
    "match a:\n  case [1]: b",
    "match a:\n  case {1: c}: b",
    "match a:\n  case None: b",
    "match a:\n  case c: b",
    "match a:\n  case _: b",
    "match a:\n  case {**c}: b",
    "raise a",
    "raise a from b",
    "assert a",
    "assert a, b",
    "del a",
    "del a, b",
    "",
    "pass",
]


def digest(source):
    return syntax_digest(source if isinstance(source, bytes) else source.encode())


def test_docstrings_comments_and_formatting_do_not_count():
    assert digest(EXPLAINED) == digest(PLAIN)
    assert digest("x = u'a'") == digest('x = "a"')


@pytest.mark.parametrize(
    "edit",
    [
        (b"LIMIT = 3", b"LIMIT = 4"),
        (b"LIMIT = 3", b"LIMIT = 3.0"),
        (b"pi * 2", b"2 * pi"),
        (b": int", b": float"),
        (b": int", b""),
        (b"y=None", b"y=0"),
        (b"y=None", b"y"),
        (b"X, y", b"Z, y"),
        (b"import pi", b"import tau"),
        (b"class Map", b"class Mop"),
        (b"        return self\n", b""),
        (b"        return self\n", b"    return_ = 1\n"),
    ],
)
def test_code_fields_and_defaults_count(edit):
    edited = PLAIN.replace(*edit)
    assert edited != PLAIN
    assert digest(edited) != digest(PLAIN)


def _without_order(node):
    """What Python itself says of a tree, the contexts of names left out."""
    return ast.dump(node).replace(", ctx=Load()", "").replace(", kind='u'", "")


@pytest.mark.parametrize("line", DIFFERENT.replace("\\\n", "").splitlines())
def test_different_expressions_are_told_apart(line):
    sources = [f"z = {each.strip()}" for each in line.split(" | ")]
    for one, other in itertools.combinations(sources, 2):
        assert _without_order(ast.parse(one)) != _without_order(ast.parse(other))
        assert digest(one) != digest(other), (one, other)


def test_different_statements_are_told_apart():
    digests = {each: digest(each) for each in STATEMENTS}
    assert len(set(digests.values())) == len(STATEMENTS)
    # also where others stand before and behind them
    assert len({digest(f"{each}\nz = 1") for each in STATEMENTS}) == len(STATEMENTS)


def test_a_string_counts_where_it_is_more_than_a_statement():
    assert digest("x = 'a'") != digest("x = 'b'")
    assert digest("def f(): return 'a'") != digest("def f(): return 'b'")
    assert digest("f'{x}'") != digest("f'{y}'")
    assert digest("'a'.title()") != digest("'b'.title()")


def test_where_a_docstring_stands_is_no_matter():
    assert digest("def f():\n 'one'\n x = 1") == digest("def f():\n x = 1\n 'two'\n 'three'")
    assert digest("class A:\n 'one'") == digest("class A:\n 'two'")


@pytest.mark.parametrize(
    ("annotated", "counts"),
    [
        ("def f(a: {0}, /, b: {0} = 1, *c: {0}, d: {0}, **e: {0}) -> {0}: pass", False),
        ("class A:\n    async def f(self, a: {0}) -> {0}: pass", False),
        ("def f():\n    def g(a: {0}): pass", False),
        # a decorator may register a function by the types of its arguments
        ("@register\ndef f(a: {0}): pass", True),
        ("@register\ndef f() -> {0}: pass", True),
        ("class A:\n    @register\n    async def f(self, *a: {0}): pass", True),
        # these make the fields of a dataclass
        ("class A:\n    a: {0}", True),
        ("class A:\n    a: {0} = 1", True),
        ("a: {0} = 1", True),
    ],
)
def test_annotations_count_where_something_may_read_them(annotated, counts):
    of_int, of_float = (digest(annotated.format(name)) for name in ("int", "float"))
    assert (of_int != of_float) is counts


TYPED = "{}\nif {}:\n    import {}\n"


@pytest.mark.parametrize(
    ("imported", "name"),
    [
        ("from typing import TYPE_CHECKING", "TYPE_CHECKING"),
        ("", "TYPE_CHECKING"),
        ("from settings import TYPE_CHECKING", "TYPE_CHECKING"),
        ("from .typing import TYPE_CHECKING", "TYPE_CHECKING"),
        ("from typing import TYPE_CHECKING\nTYPE_CHECKING = True", "TYPE_CHECKING"),
        ("import typing\ntyping.TYPE_CHECKING = True", "typing.TYPE_CHECKING"),
        ("from typing import TYPE_CHECKING\nfor TYPE_CHECKING in (1,): pass", "TYPE_CHECKING"),
        ("from typing import TYPE_CHECKING", "not TYPE_CHECKING"),
        ("from typing import TYPE_CHECKING", "TYPE_CHECKING or True"),
    ],
)
def test_a_block_that_may_run_counts(imported, name):
    block = TYPED.format(imported, name, "{}")
    assert digest(block.format("a")) != digest(block.format("b"))


def test_a_source_that_does_not_parse_counts_with_all_its_bytes():
    broken = b"def f(:\n    import numpy\n"
    assert digest(broken) != digest(broken + b"# mended?\n")
    for source in (b"x = '\xff'\n", b"x = 1\0\n"):
        assert len(digest(source)) == 64


def test_large_and_deep_sources_are_read():
    # decimal digits of such a number are refused by Python
    assert digest(f"x = 0x{'f' * 5000}") != digest(f"x = 0x{'f' * 4999}e")
    chain = "if a == 0: b\n" + "".join(f"elif a == {i}: b\n" for i in range(1, 400))
    assert digest(chain) != digest(chain.replace("a == 399", "a == 398"))


def test_a_digest_is_the_same_in_every_process():
    source = "x = {'a', 'b', 'c'} | frozenset(('d', 'e'))\nfrom a import *\n"
    script = (
        "import sys; from kbench.planning.digests import syntax_digest; "
        "print(syntax_digest(sys.argv[1].encode()))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script, source],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {digest(source)}
