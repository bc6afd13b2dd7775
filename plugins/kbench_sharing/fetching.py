"""Download a bundle from a server: https only, with limits on size, redirects and time."""

import http.client
import ipaddress
import queue
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import SplitResult, urlsplit

from kbench._version import __version__
from kbench.errors import BundleError
from kbench.messages import mask, printable
from kbench_sharing.zip_file import MAX_ZIPPED

MAX_REDIRECTS = 5
# Timeout in seconds without a byte.
SILENCE_S = 30.0

# Timeout in seconds for the whole file, from the DNS lookup to the last byte.
MAX_S = 600.0

_CHUNK = 1 << 20


def is_url(value: str) -> bool:
    """Return whether a string is a URL rather than a path.

    >>> is_url("https://example.org/uci.zip"), is_url("results/uci.zip")
    (True, False)
    """
    return "://" in value


def fetch(url: str, most: int = MAX_ZIPPED) -> bytes:
    """Return the bytes behind a URL.

    BundleError is raised if it is not https, if the server answers with an error, redirects too
    often or to another scheme, or sends more than `most` bytes.
    """
    shown = printable(mask(url), 200)
    try:
        return _fetch_in_thread(url, most)
    except BundleError as error:
        raise BundleError(f"{shown} is rejected: {error}") from None
    except urllib.error.HTTPError as error:
        reason = f"the server answers with status {error.code}"
        if 300 <= error.code < 400:
            reason = "it redirects too often, or to another scheme"
        raise BundleError(f"{shown} cannot be fetched: {reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = printable(str(getattr(error, "reason", error)) or type(error).__name__, 200)
        raise BundleError(f"{shown} cannot be fetched: {reason}") from None


def _fetch_in_thread(url: str, most: int) -> bytes:
    """Fetch in a thread: DNS, connections and headers have no timeout."""
    ended: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()

    def fetch() -> None:
        try:
            ended.put(_fetch_bytes(url, most))
        except Exception as error:
            ended.put(error)

    threading.Thread(target=fetch, name="kbench-fetch", daemon=True).start()
    try:
        result = ended.get(timeout=max(MAX_S, 0.0))
    except queue.Empty:
        raise BundleError(f"it takes longer than {MAX_S:g} s") from None
    if isinstance(result, Exception):
        raise result
    return result


def _fetch_bytes(url: str, most: int) -> bytes:
    opener = urllib.request.build_opener(_Redirects(_check_url(url)))
    headers = {"User-Agent": f"kbench/{__version__}", "Accept-Encoding": "identity"}
    request = urllib.request.Request(url, headers=headers)
    until = time.monotonic() + MAX_S
    with opener.open(request, timeout=SILENCE_S) as answer:
        if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise BundleError("the server compresses it, which was not requested")
        length = answer.headers.get("Content-Length", "")
        # the size is checked before anything is read
        if length.isdecimal() and int(length[:20]) > most:
            raise BundleError(f"it has {int(length[:20]):,} bytes, more than the {most:,} allowed")
        content = bytearray()
        while chunk := answer.read1(_CHUNK):
            content += chunk
            if len(content) > most:
                raise BundleError(f"it has more than the {most:,} bytes allowed")
            if time.monotonic() > until:
                raise BundleError(f"it takes longer than {MAX_S:g} s")
    if length.isdecimal() and len(content) < int(length[:20]):
        raise BundleError("the connection closed before the end of the file")
    return bytes(content)


def _check_url(url: str) -> SplitResult:
    """Return the parts of a URL; allow only https, and http to this machine."""
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise BundleError("it contains a user name or a password")
    if parts.scheme == "https" and parts.hostname:
        return parts
    if parts.scheme == "http" and _is_here(parts.hostname):
        return parts
    raise BundleError("only https is fetched")


def _is_here(host: str | None) -> bool:
    try:
        return host is not None and ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a few redirects, none from https to http and none to this machine."""

    max_redirections = max_repeats = MAX_REDIRECTS

    def __init__(self, first: SplitResult) -> None:
        self._first = first

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        """Check the target of a redirect; raise ValueError or BundleError if it is not followed."""
        parts = _check_url(newurl)
        if parts.scheme != self._first.scheme or (
            _is_here(parts.hostname) and not _is_here(self._first.hostname)
        ):
            raise BundleError("it redirects to another scheme")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
