"""The openml client under kbench's rules: polite requests, no logging, an untrusted cache.

Pickles are neither read nor written, and the client's exceptions, which have no
common base class, become `DatasetError`.
"""

import contextlib
import fcntl
import logging
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from kbench import DatasetError
from kbench.messages import printable
from kbench_openml._transport import configured, polite, shorten


@contextlib.contextmanager
def one_process(notes: Path) -> Iterator[None]:
    """Let one process of this user at a time ask OpenML and write the client's cache."""
    try:
        notes.mkdir(parents=True, exist_ok=True)
        lock = (notes / "lock").open("a")
    except OSError:  # a read-only cache: nothing will be written either
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def client(label: str, offline: bool) -> Iterator[ModuleType]:
    """Import the openml client and run a block with it, politely and quietly."""
    root = logging.getLogger()
    silent = logging.NullHandler()
    root.addHandler(silent)  # else the client's warnings would set up logging to the screen
    before = os.environ.get("OPENML_SKIP_PARQUET")
    os.environ["OPENML_SKIP_PARQUET"] = "true"  # parquet copies have no checksum
    try:
        with polite(label, configured().url, offline):
            import openml

            retries = openml.config.connection_n_retries
            openml.config.connection_n_retries = 1  # `polite` repeats requests
            try:
                yield openml
            finally:
                openml.config.connection_n_retries = retries
    finally:
        root.removeHandler(silent)
        if before is None:
            del os.environ["OPENML_SKIP_PARQUET"]
        else:
            os.environ["OPENML_SKIP_PARQUET"] = before


class DamagedError(Exception):
    """A file differs from OpenML's description of it; fetching it again may help."""


@contextlib.contextmanager
def translate(label: str) -> Iterator[None]:
    """Turn the client's exceptions, which have no common base class, into `DatasetError`."""
    try:
        yield
    except (DatasetError, DamagedError):
        raise
    except Exception as error:
        if type(error).__name__ == "OpenMLHashException":
            raise DamagedError("the downloaded file does not have the checksum of OpenML") from None
        raise DatasetError(_explained(label, error)) from error


def _explained(label: str, error: Exception) -> str:
    if (code := getattr(error, "code", None)) in (111, 151, 372, 482, 601):
        return f"{label}: OpenML has no such entry (its code {code}). Check the number."
    text = shorten(error)
    if type(error).__name__ in ("ExpatError", "OpenMLServerError"):
        return f"{label}: the server sent a damaged response ({text}). Try again later."
    return f"{label}: {type(error).__name__}: {text}. Run again later."


def ask(address: str, allow: Sequence[int] = ()) -> bytes | None:
    """Ask for a page of the API, or for a file by its URL; None for an allowed code."""
    import openml
    import requests

    if "://" not in address:
        address = f"{openml.config.server.rstrip('/')}/{address}"
    key = {"api_key": openml.config.apikey} if openml.config.apikey else {}
    with requests.Session() as session:
        response = session.get(address, params=key)
    if response.status_code == 200:
        return response.content
    match = re.search(rb"<oml:code>\s*(\d+)\s*</oml:code>", response.content)
    code = int(match[1]) if match else None
    if code in allow:
        return None
    match = re.search(rb"<oml:message>([^<]{0,200})", response.content)
    text = match[1].decode("utf-8", "replace") if match else f"status {response.status_code}"
    raise DatasetError(f"OpenML answered: {printable(text)} (code {code}, {address})")


def read_back(file: Path, address: str, label: str, offline: bool) -> bytes:
    """Read a file of the client's cache, or ask for it and keep it there."""
    with contextlib.suppress(OSError, ET.ParseError):
        content = file.read_bytes()
        read_xml(content)
        return content
    if offline:
        raise DatasetError(f"{label}: it is not in the cache. Run again with network access.")
    try:
        content = ask(address) or b""
        read_xml(content)
    except ET.ParseError as error:
        raise DatasetError(f"{label}: the server's answer is damaged: {error}") from None
    except DatasetError as error:
        raise DatasetError(f"{label}: {str(error).removeprefix(label + ': ')}") from None
    with contextlib.suppress(OSError):
        write_whole(file, content)
    return content


def read_xml(content: bytes) -> ET.Element:
    """Parse an answer of OpenML's API, which defines no entities."""
    if b"<!ENTITY" in content or b"<!DOCTYPE" in content:
        raise ET.ParseError("it defines XML entities, which OpenML never uses")
    return ET.fromstring(content)


def write_whole(file: Path, content: bytes) -> None:
    """Write a file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
