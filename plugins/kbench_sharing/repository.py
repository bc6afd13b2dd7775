"""A results repository: a folder of content-addressed rows files under git.

A rows file has one cell of one author. Its name is the SHA-256 of its bytes, so that no file is
ever overwritten, and two people who publish at once make no conflict. New files are written next to
the repository's before the first has its name: a command that is killed leaves no part of a file
among the results, and what it has added is whole. What it leaves next to them is removed by a later
one. A repository on a git server is cloned, gets the rows as a commit, and is pushed.
"""

import hashlib
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kbench.errors import BundleError
from kbench.features import group_values
from kbench.messages import mask, printable
from kbench_sharing.bundle_records import Bundle, Origin, SharedCell
from kbench_sharing.checks import Alike
from kbench_sharing.columns import dump_line, pack
from kbench_sharing.dependencies import dump_dependencies
from kbench_sharing.reading import MAX_ROWS, ROWS, bundle_of_rows
from kbench_sharing.recomputed import (
    CHECKS,
    MAX_CHECKS,
    Record,
    Records,
    group_records,
    read_records,
    records_file,
)
from kbench_sharing.untrusted_text import slug
from kbench_sharing.zip_file import names_below, read_named, sha256

# Folder of the rows files in a repository.
RESULTS = "results"

_DEPTH = 4


@dataclass(frozen=True)
class Published:
    """Numbers of new files, and of files already in the repository."""

    n_new: int
    n_kept: int


def place(suite: str, cell: SharedCell, data: bytes) -> str:
    """Return the name of a rows file in a repository."""
    method = slug(f"{cell.feature_map.label} + {cell.learner.label}")
    return f"{RESULTS}/{slug(suite)}/{method}/{sha256(data)}{ROWS}"


def rows_files(bundle: Bundle) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the rows file of each cell of a bundle that has results."""
    if not bundle.manifest.author:
        raise BundleError(
            "it has no author, which published rows need: `kbench bundle create` takes --author"
        )
    for cell in _with_results(bundle):
        results = [each for _, each in sorted(bundle.results[cell.key].items())]
        used = sorted({result.machine for result in results})
        named = {result.manifest for result in results} - {""}
        head = {
            **bundle.manifest.model_dump(include=set(Origin.model_fields)),
            "machines": [bundle.manifest.machines[number].model_dump() for number in used],
            "plugins": [plugin.model_dump() for plugin in bundle.plugins],
            "dependencies": dump_dependencies(bundle.dependencies[each] for each in named),
        }
        lines = (head, bundle.datasets[cell.dataset].model_dump(), cell.model_dump())
        numbered = (
            {**each.model_dump(exclude_unset=True), "machine": used.index(each.machine)}
            for each in results
        )
        data = b"".join(map(dump_line, lines)) + pack(numbered, [cell.key])
        yield place(bundle.manifest.suite, cell, data), data


def _with_results(bundle: Bundle) -> list[SharedCell]:
    return [cell for cell in bundle.cells if cell.key in bundle.results]


def publish(bundle: Bundle, repository: Path) -> Published:
    """Add the rows of a bundle to a repository: a folder, such as a working copy of git.

    BundleError is raised if the bundle has no author, a file or a link has the name of a folder, a
    file with the same name has other content, or the folder cannot be written. Existing files
    are not changed.
    """
    if repository.exists() and not repository.is_dir():
        raise BundleError(f"{repository} is a file: give the folder of a results repository")
    if (repository / "HEAD").is_file() and (repository / "objects").is_dir():
        raise BundleError(
            f"{repository} is a bare git repository, which has no working tree: push to it with "
            f"--repository {repository.resolve().as_uri()}"
        )
    return add_files(repository, rows_files(bundle), MAX_ROWS)


def rows_key_by_cell(bundle: Bundle, repository: Path) -> dict[str, str]:
    """Return the names of the rows files of a bundle's cells; BundleError if a file is missing.

    A rows file is itself a bundle of one cell.
    """
    keys = {}
    for cell, (name, _) in zip(_with_results(bundle), rows_files(bundle), strict=True):
        if not (repository / name).is_file():
            raise BundleError(
                f"{repository} lacks {name}: publish the rows with `kbench bundle publish` "
                "before their verification"
            )
        keys[cell.key] = PurePosixPath(name).stem
    return keys


def publish_records(bundle: Bundle, records: Iterable[Record], repository: Path) -> int:
    """Add the verification records of a bundle to a repository that has its rows.

    Returns
    -------
    int
        Number of new files, one for each rows file.
    """
    keys = rows_key_by_cell(bundle, repository)
    by_rows = group_values((keys[record.cell], record) for record in records)
    files = (records_file(key, grouped) for key, grouped in sorted(by_rows.items()))
    return add_files(repository, files, MAX_CHECKS).n_new


def names(repository: Path) -> list[str]:
    """Return the names of everything below the folder of results, sorted."""
    top = repository / RESULTS
    if not top.is_dir() or top.is_symlink():
        raise BundleError(f"{repository} has no folder {RESULTS!r}: it is not a results repository")
    return names_below(repository, RESULTS)


def read_rows(repository: Path, name: str) -> Bundle:
    """Read and check one rows file; BundleError says what is wrong with it."""
    path = PurePosixPath(name)
    if len(path.parts) != _DEPTH or path.suffix != ROWS:
        raise BundleError(
            "it is not a rows file, the only kind of file in the results of a repository"
        )
    data = read_named(repository, name, MAX_ROWS)
    bundle = bundle_of_rows(data)
    if place(bundle.manifest.suite, bundle.cells[0], data) != name:
        raise BundleError("it is in the folder of another suite or method")
    return bundle


class Checked:
    """Rows files read one after the other, with checks of each and of all together.

    Each is yielded with its name and the records of its splits that were recomputed.
    `problems` has a line for each file that is rejected.
    """

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._alike = Alike()
        self._computed: dict[bytes, tuple[str, str]] = {}
        self.problems: list[str] = []

    def __iter__(self) -> Iterator[tuple[str, Bundle, Records]]:
        below = names_below(self._repository, CHECKS)
        checks = group_values((PurePosixPath(name).parent.as_posix(), name) for name in below)
        for name in names(self._repository):
            with self._note_problem(name):
                bundle = read_rows(self._repository, name)
                self._check_beside_others(name, bundle)
                records: list[Record] = []
                for each in checks.pop(f"{CHECKS}/{bundle.id}", ()):
                    with self._note_problem(each):
                        records += read_records(self._repository, each, bundle)
                yield name, bundle, group_records(records)
        unused = sorted(name for names in checks.values() for name in names)
        why = f"it does not belong in {CHECKS}: the repository has no rows file of this name"
        self.problems += [f"{printable(name, 300)}: {why}" for name in unused]

    @contextmanager
    def _note_problem(self, name: str) -> Iterator[None]:
        """Note why a file is rejected."""
        try:
            yield
        except BundleError as error:
            self.problems.append(f"{printable(name, 300)}: {error}")

    def _check_beside_others(self, name: str, bundle: Bundle) -> None:
        """Report rows of another author, and inconsistent rows of the same split."""
        (cell,) = bundle.cells
        dataset = bundle.datasets[cell.dataset]
        self._alike.check_facts(dataset)
        for split, result in sorted(bundle.results[cell.key].items()):
            self._alike.check_rows(result, cell, dataset)
            # two runs do not start, end and use the CPU alike to the last digit
            run = (cell.key, split, result.started_ms, result.ended_ms, result.cpu_s)
            computed = hashlib.sha256(repr(run).encode()).digest()
            author, first = self._computed.setdefault(computed, (bundle.author, name))
            if author != bundle.author:
                # the names of the files decide which comes first, and not who had it first
                raise BundleError(
                    f"split {split} by {bundle.author} is that of {author} in {first}: one of "
                    "the two was copied"
                )


def problems(repository: Path) -> tuple[int, list[str]]:
    """Check a whole repository; return the number of valid rows files, and a line per problem."""
    checked = Checked(repository)
    return sum(1 for _ in checked), checked.problems


_DRAFT, _STALE_S = ".kbench-", 3600.0


def add_files(repository: Path, files: Iterable[tuple[str, bytes]], most: int) -> Published:
    """Add files by name.

    BundleError is raised if the name is a link, a file of the name has another content
    (files have `most` bytes), or the folder cannot be written.
    """
    draft = repository / f"{_DRAFT}{secrets.token_hex(8)}"
    pending: list[tuple[Path, Path]] = []
    n_kept, path = 0, repository
    try:
        # what commands have left that were killed long ago
        for left in repository.glob(f"{_DRAFT}*"):
            if not left.is_symlink() and time.time() - left.stat().st_mtime > _STALE_S:
                shutil.rmtree(left, ignore_errors=True)
        for name, data in files:
            path = repository / name
            for parent in list(Path(name).parents)[:-1]:
                if (repository / parent).is_symlink():
                    raise BundleError(
                        f"{repository / parent} is a symbolic link, and kbench writes nothing there"
                    )
            if os.path.lexists(path):
                try:
                    read_named(repository, name, most)
                except BundleError as error:
                    raise BundleError(f"{path}: {error}") from error
                n_kept += 1
            else:
                draft.mkdir(parents=True, exist_ok=True)
                pending.append((draft / str(len(pending)), path))
                # git writes without flushing too; a check finds what a loss of power left
                pending[-1][0].write_bytes(data)
        for written, path in pending:
            path.parent.mkdir(parents=True, exist_ok=True)
            written.rename(path)
    except OSError as error:
        raise BundleError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Published(len(pending), n_kept)


_PROTOCOLS = ("https", "ssh", "file")

# An address with a protocol, or the short form of ssh (``host:path``), as git reads it.
_URL = re.compile(
    rf"(?:{'|'.join(_PROTOCOLS)})://(?!-)\S+"
    r"|(?:\w[\w.+-]*@)?(?:[A-Za-z0-9][\w.-]+|\[[0-9A-Fa-f:.]+\]):(?!:|-|//)\S+"
)

# Attempts to push: others may push between the clone and ours.
_PUSHES = 3

_SETTINGS = (
    # nothing of the server's or of the user's templates runs, and links are files
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.symlinks=false"),
    *("-c", "core.autocrlf=false"),
    *("-c", "protocol.allow=never"),
    *(word for name in _PROTOCOLS for word in ("-c", f"protocol.{name}.allow=always")),
)

# Before the attributes of the repository and the user: rows are committed as they are.
_ATTRIBUTES = "* -text -crlf -filter -ident -working-tree-encoding\n"

# Variables that git gives to its hooks: with them, another repository would be changed.
_OF_ANOTHER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


def is_address(value: str) -> bool:
    """Whether a string is the URL of a repository on a server.

    >>> [is_address(text) for text in ("https://x.org/board.git", "x.org:me/board", "a/b:c")]
    [True, True, False]
    """
    return _URL.fullmatch(value) is not None


def check_place(place: str) -> None:
    """Raise for a string that git would read as a URL or an option."""
    shown = printable(mask(place), 200)
    if place.startswith("-"):
        raise BundleError(f"{shown} begins like an option: write the folder as ./{shown}")
    if ":" in place.partition("/")[0] and not is_address(place):
        raise BundleError(
            f"{shown} is not a git URL: git pushes by {', '.join(_PROTOCOLS)} or to host:path; "
            "write a space as %20, and a folder with a colon in its name as ./NAME"
        )


def publish_to_remote(bundle: Bundle, address: str) -> Published:
    """Add the rows of a bundle to a repository on a git server, as one commit of its branch.

    The credentials and the name of the commit are those of the user's git.

    BundleError is raised if git is not installed or fails, or the bundle has no author. The
    server has all rows, or none.
    """
    if shutil.which("git") is None:
        raise BundleError("publishing to a git server needs git; --repository also takes a folder")
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
        message = printable(" ".join(ran.stderr.replace(address, mask(address)).split()))
        raise BundleError(f"git {words[0]} of {mask(address)}: {message or ran.returncode}")
