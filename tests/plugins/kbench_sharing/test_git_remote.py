"""Publishing to a git server, which is a bare repository here."""

import subprocess

import pytest

from kbench.errors import BundleError
from kbench.execution.plugins import load_registry
from kbench_sharing import repository
from kbench_sharing.reading import parse_bundle
from kbench_sharing.repository import check_place, is_address, publish, publish_to_remote
from kbench_sharing.writing import Saved, build_files
from tests.support.bundles import SUITE, known


def bundle(author="Ada", cells=slice(None)):
    some = Saved(known().suite, known().cells[cells], known().planner, 0, known().manifests)
    return parse_bundle(dict(build_files(some, SUITE, load_registry(), author=author)))


def git(folder, *words):
    ran = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout


@pytest.fixture
def server(tmp_path, monkeypatch):
    """An empty bare repository, and a user of git without other settings."""
    for variable, value in {
        "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"),
        "GIT_CONFIG_SYSTEM": str(tmp_path / "none"),
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
    }.items():
        monkeypatch.setenv(variable, value)
    (tmp_path / "gitconfig").write_text("[init]\n\tdefaultBranch = main\n")
    git(tmp_path, "init", "--quiet", "--bare", "board.git")
    return f"file://{tmp_path / 'board.git'}"


def files_on(server):
    names = git(server.removeprefix("file://"), "ls-tree", "-r", "--name-only", "HEAD")
    return set(names.splitlines())


def test_rows_are_one_commit_of_the_branch(server, tmp_path):
    done = publish_to_remote(bundle(), server)
    repository.publish(bundle(), tmp_path / "folder")
    assert files_on(server) == set(repository.names(tmp_path / "folder"))
    assert done.n_new == len(files_on(server)) > 0
    log = git(server.removeprefix("file://"), "log", "--format=%s")
    assert log == f"Add rows of {bundle().manifest.suite} by Ada\n"


def test_what_the_server_has_is_not_pushed_again(server):
    first = publish_to_remote(bundle(), server)
    again = publish_to_remote(bundle(), server)
    assert (again.n_new, again.n_kept) == (0, first.n_new)
    assert git(server.removeprefix("file://"), "rev-list", "--count", "HEAD") == "1\n"


def test_two_people_who_publish_at_once_lose_nothing(server, monkeypatch):
    publish_to_remote(bundle(cells=slice(1)), server)
    others = []

    def late(given, clone):
        done = publish(given, clone)
        if not others:
            others.append(given)
            publish_to_remote(bundle("Grace"), server)
        return done

    monkeypatch.setattr(repository, "publish", late)
    publish_to_remote(bundle(), server)
    assert git(server.removeprefix("file://"), "rev-list", "--count", "HEAD") == "3\n"
    assert len(files_on(server)) == 2 * len(bundle().cells)


def test_line_endings_of_the_users_git_change_no_byte(server, tmp_path):
    (tmp_path / "gitconfig").write_text("[core]\n\tautocrlf = true\n")
    first = publish_to_remote(bundle(), server)
    assert publish_to_remote(bundle(), server).n_kept == first.n_new


def test_hooks_of_the_users_templates_do_not_run(server, tmp_path):
    hooks = tmp_path / "template" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "pre-commit", "pre-push"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (hooks / name).chmod(0o755)
    (tmp_path / "gitconfig").write_text(f"[init]\n\ttemplateDir = {tmp_path / 'template'}\n")
    publish_to_remote(bundle(), server)
    assert files_on(server)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c touch% ran",
        "--upload-pack=touch ran",
        "http://example.org/board.git",
        "board",
        "/srv/board.git",
        "C:/board",
    ],
)
def test_other_texts_are_no_address(address):
    assert not is_address(address)


def test_what_git_refuses_is_said_without_secrets(server):
    address = server.replace("board.git", "missing.git")
    with pytest.raises(BundleError, match=r"^git clone of file://.*missing\.git: fatal"):
        publish_to_remote(bundle(), address)
    with pytest.raises(BundleError) as error:
        publish_to_remote(bundle(), "https://TOKEN@127.0.0.1:1/board.git")
    assert "TOKEN" not in str(error.value)


def test_without_git_the_message_says_so(server, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BundleError, match="needs git; --repository also takes a folder"):
        publish_to_remote(bundle(), server)


@pytest.mark.parametrize(
    "text",
    [
        "http://example.org/board.git",
        "git://example.org/board.git",
        "FILE:///board.git",
        "file:///a board.git",
        "https://example.org/a board.git",
        "ext::sh -c touch% ran",
        "ext::/bin/true",
        "host::path",
        "ssh://-oProxyCommand=touch/x",
        "host:-oProxyCommand=x",
        "-h:path",
        "C:/board",
        "a b:c",
    ],
)
def test_an_address_that_git_must_not_use_is_no_folder(text):
    with pytest.raises(BundleError, match=r"is not a git URL|begins like an option"):
        check_place(text)


@pytest.mark.parametrize("text", ["-board", "--upload-pack=touch ran"])
def test_an_option_is_no_folder(text):
    with pytest.raises(BundleError, match=f"write the folder as ./{text}"):
        check_place(text)


@pytest.mark.parametrize("text", ["host:path", "me@host:board.git", "host.org:~/b", "[::1]:b"])
def test_the_short_form_of_ssh_is_pushed_to(text):
    check_place(text)
    assert is_address(text)


@pytest.mark.parametrize("text", ["board", "./host:path", "a/b:c", "../x", "~/board", "/srv/a:b"])
def test_a_folder_is_none(text):
    check_place(text)
    assert not is_address(text)


ATTRIBUTES = {
    "line endings": "* text eol=crlf\n",
    "an encoding": "*.jsonl text working-tree-encoding=UTF-16\n",
    "a filter": "* filter=shout\n",
    "an ident": "* ident\n",
}


@pytest.mark.parametrize("kind", ATTRIBUTES)
def test_attributes_and_ignored_names_of_the_repository_change_no_byte(kind, server, tmp_path):
    git(tmp_path, "clone", "--quiet", server, "own")
    (tmp_path / "own/.gitattributes").write_text(ATTRIBUTES[kind])
    (tmp_path / "own/.gitignore").write_text("*.jsonl\nresults/\n")
    git(tmp_path / "own", "add", "--all")
    git(tmp_path / "own", "commit", "--quiet", "--message=hostile")
    git(tmp_path / "own", "push", "--quiet", "origin", "HEAD")
    with (tmp_path / "gitconfig").open("a") as config:
        config.write('[filter "shout"]\n\tclean = tr a-z A-Z\n\tsmudge = tr a-z A-Z\n')
    done = publish_to_remote(bundle(cells=slice(1)), server)
    assert done.n_new == 1
    ((name, data),) = repository.rows_files(bundle(cells=slice(1)))
    assert git(server.removeprefix("file://"), "show", f"HEAD:{name}").encode() == data
    assert publish_to_remote(bundle(cells=slice(1)), server).n_kept == 1


def test_a_hook_that_publishes_changes_no_repository_of_its_own(server, tmp_path, monkeypatch):
    git(tmp_path, "init", "--quiet", "mine")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "mine/.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "mine/.git/index"))
    publish_to_remote(bundle(cells=slice(1)), server)
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert len(files_on(server)) == 1
    assert git(tmp_path / "mine", "status", "--porcelain") == ""
    assert git(tmp_path / "mine", "rev-list", "--all") == ""


def test_a_bare_repository_is_pushed_to(server, tmp_path):
    with pytest.raises(BundleError, match=f"with --repository {server}$"):
        repository.publish(bundle(), tmp_path / "board.git")
    assert not (tmp_path / "board.git" / "results").exists()
