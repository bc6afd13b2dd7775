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
from kbench_sharing.fetching import is_url
from kbench_sharing.form import Bundle
from kbench_sharing.repository import RESULTS, Published, publish

_PROTOCOLS = ("https", "ssh", "file")

_URL = re.compile(rf"(?:{'|'.join(_PROTOCOLS)})://\S+|[\w.-]+@[\w.-]+:\S+")
"""An address with a protocol, or the short form of ssh; a path of this machine is neither."""

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


def is_address(text: str) -> bool:
    """Whether a text is the address of a repository on a server.

    >>> [is_address(text) for text in ("https://x.org/board.git", "git@x.org:me/board", "board")]
    [True, True, False]
    """
    return _URL.fullmatch(text) is not None


def check_place(text: str) -> None:
    """Refuse what looks like an address and is none to push to, and would become a folder."""
    if is_url(text) and not is_address(text):
        raise BundleError(
            f"{printable(masked(text), 200)} is no address to publish to: git pushes by "
            f"{', '.join(_PROTOCOLS)}, and a blank is written %20"
        )


def publish_to_remote(bundle: Bundle, address: str) -> Published:
    """Add the rows of a bundle to a repository on a git server, as one commit of its branch.

    The credentials and the name of the commit are those of the user's git.

    Raises
    ------
    BundleError
        git is not installed or refuses; the bundle has no author. The server has all rows, or
        none.
    """
    if shutil.which("git") is None:
        raise BundleError("publishing to a git server needs git; --to also takes a folder")
    with tempfile.TemporaryDirectory(prefix="kbench-publish-") as folder:
        clone = Path(folder) / "board"
        _git(Path(folder), address, "clone", "--quiet", "--depth=1", "--", address, str(clone))
        done = publish(bundle, clone)
        if done.n_new:
            _git(clone, address, "add", "--", RESULTS)
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
        env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if ran.returncode:
        said = printable(" ".join(ran.stderr.replace(address, masked(address)).split()))
        raise BundleError(f"git {words[0]} of {masked(address)}: {said or ran.returncode}")
