"""Publishing into a results repository on a git server: clone, add the rows, commit, push."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from kbench.errors import BundleError
from kbench.messages import masked, printable
from kbench_sharing.form import Bundle
from kbench_sharing.repository import RESULTS, Published, publish

_PROTOCOLS = ("https", "ssh", "file")

_URL = re.compile(
    rf"(?:{'|'.join(_PROTOCOLS)})://(?!-)\S+"
    r"|(?:\w[\w.+-]*@)?(?:[A-Za-z0-9][\w.-]+|\[[0-9A-Fa-f:.]+\]):(?!:|-|//)\S+"
)
"""An address with a protocol, or the short form of ssh (``host:path``), as git reads it."""

_PUSHES = 3
"""Attempts to push: others may push between the clone and ours."""

_SETTINGS = (
    # nothing of the server's or of the user's templates runs, and links are files
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.symlinks=false"),
    *("-c", "core.autocrlf=false"),
    *("-c", "protocol.allow=never"),
    *(word for name in _PROTOCOLS for word in ("-c", f"protocol.{name}.allow=always")),
)

_ATTRIBUTES = "* -text -crlf -filter -ident -working-tree-encoding\n"
"""Before the attributes of the repository and the user: rows are committed as they are."""

_OF_ANOTHER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")
"""Variables that git gives to its hooks: with them, another repository would be changed."""


def is_address(text: str) -> bool:
    """Whether a text is the address of a repository on a server.

    >>> [is_address(text) for text in ("https://x.org/board.git", "x.org:me/board", "a/b:c")]
    [True, True, False]
    """
    return _URL.fullmatch(text) is not None


def check_place(text: str) -> None:
    """Reject what git would take for an address or an option, and would become a folder."""
    shown = printable(masked(text), 200)
    if text.startswith("-"):
        raise BundleError(f"{shown} begins as an option does: the folder is named ./{shown}")
    if ":" in text.partition("/")[0] and not is_address(text):
        raise BundleError(
            f"{shown} is no address to publish to: git pushes by {', '.join(_PROTOCOLS)} or to "
            "host:path, and a blank is written %20; a folder with a colon in its name is written "
            "./NAME"
        )


def publish_to_remote(bundle: Bundle, address: str) -> Published:
    """Add the rows of a bundle to a repository on a git server, as one commit of its branch.

    The credentials and the name of the commit are those of the user's git.

    BundleError is raised where git is not installed or refuses; the bundle has no author. The
    server has all rows, or none.
    """
    if shutil.which("git") is None:
        raise BundleError("publishing to a git server needs git; --to also takes a folder")
    with tempfile.TemporaryDirectory(prefix="kbench-publish-") as folder:
        clone, template = Path(folder) / "board", Path(folder) / "template"
        (template / "info").mkdir(parents=True)
        (template / "info/attributes").write_text(_ATTRIBUTES)
        options = ("--quiet", "--depth=1", f"--template={template}")
        _git(Path(folder), address, "clone", *options, "--", address, str(clone))
        done = publish(bundle, clone)
        if done.n_new:
            # an ignored file would be missing without a word
            _git(clone, address, "add", "--force", "--", RESULTS)
            subject = f"Add rows of {bundle.manifest.suite} by {bundle.author}"
            _git(clone, address, "commit", "--quiet", "--message", printable(subject))
            _push(clone, address)
        return done


def _push(clone: Path, address: str) -> None:
    for attempt in range(_PUSHES):
        try:
            _git(clone, address, "push", "--quiet", "origin", "HEAD")
            return
        except BundleError:
            if attempt + 1 == _PUSHES:
                raise
            # rows files of two people are different files: there is no conflict
            _git(clone, address, "pull", "--quiet", "--rebase", "origin", "HEAD")


def _git(folder: Path, address: str, *words: str) -> None:
    """Run git without questions; what it says of a failure is in the error, without secrets."""
    ran = subprocess.run(
        ["git", *_SETTINGS, *words],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name not in _OF_ANOTHER},
            "GIT_TERMINAL_PROMPT": "0",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if ran.returncode:
        said = printable(" ".join(ran.stderr.replace(address, masked(address)).split()))
        raise BundleError(f"git {words[0]} of {masked(address)}: {said or ran.returncode}")
