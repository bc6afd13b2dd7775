"""Requests to a server: with time-outs, retries and limits, one at a time.

The openml client has no time-outs, retries lasting failures, and reads answers of
any size. Inside `polite`, each request of the `requests` library goes through
`_ask` instead: it connects within 5 seconds, gives up after 15 seconds
without a byte and 10 minutes in all, unpacks a limited number of bytes, repeats
after transient failures (a reset connection, a busy server), and turns everything
else into one `DatasetError`. Answers name further URLs: only those of the
configured server, and of hosts that the user names, are asked (`is_allowed`).

The configured server is found, and tried, without importing the openml client, which takes 3 to
4 seconds: a machine without a network must report that at once.
"""

import configparser
import contextlib
import os
import platform
import re
import socket
import sys
import threading
import time
import urllib.parse
import urllib.request
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kbench import DatasetError
from kbench.errors import SourceUnreachableError
from kbench.messages import option, printable
from kbench.tables.limits import max_bytes

DEFAULT = "https://www.openml.org/api/v1/xml"


@dataclass(frozen=True)
class Server:
    """The server and the cache that the openml client is configured for."""

    url: str  # of the API
    cache: Path  # the client's folder for this server


def is_offline() -> bool:
    """Check whether ``KBENCH_OFFLINE`` is set, and neither 0, false nor no."""
    return os.environ.get("KBENCH_OFFLINE", "").strip().lower() not in ("", "0", "false", "no")


def configured() -> Server:
    """Read the client's configuration in the same way as the client.

    From ``$XDG_CONFIG_HOME/openml/config`` (``~/.config`` by default, and
    ``~/.openml`` outside Linux) and ``$OPENML_CACHE_DIR``.
    """
    if (loaded := sys.modules.get("openml.config")) is not None:
        return Server(loaded.server, Path(loaded.get_cache_directory()))
    file, root = Path("~/.openml/config"), Path("~/.openml")
    if platform.system().lower() == "linux":
        file = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config") / "openml" / "config"
        root = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "openml"
    parser = configparser.RawConfigParser()
    with contextlib.suppress(OSError, configparser.Error, UnicodeDecodeError):
        parser.read_string("[openml]\n" + file.expanduser().read_text("utf-8"))
    url = parser.get("openml", "server", fallback=DEFAULT)
    folder = parser.get("openml", "cachedir", fallback=str(root))
    folder = os.environ.get("OPENML_CACHE_DIR") or folder
    below = urllib.parse.urlsplit(url).netloc.split(".")[::-1]
    return Server(url, Path(folder).expanduser().joinpath(*below))


def is_reachable(server: Server) -> bool:
    """Try to connect to the server, or to the proxy on the way to it.

    False if it does not answer within `CONNECT_S`; at once where the connection
    is refused or the name is unknown.
    """
    parts = urllib.parse.urlsplit(server.url)
    name, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    if not name:
        return False
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(name):
        via = urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}")
        name, port = via.hostname or name, via.port or 80
    return _connects(name, port)


def _connects(host: str, port: int) -> bool:
    # in a thread, because looking up a name has no time-out
    connected = threading.Event()

    def connect() -> None:
        with contextlib.suppress(OSError):
            socket.create_connection((host, port), timeout=CONNECT_S).close()
            connected.set()

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(CONNECT_S)
    return connected.is_set()


if TYPE_CHECKING:
    import requests

CONNECT_S = 5.0  # seconds to connect
SILENCE_S = 15.0  # seconds without a byte
TOTAL_S = 600.0  # seconds for all requests of one dataset
N_TRIES = 4  # attempts for a request with transient failures
BACKOFF_S = 0.5  # seconds before the second attempt; doubled before each further one
PATIENCE_S = 30.0  # longest wait that a server may ask for (``Retry-After``)
ANSWER_BYTES = 64 * 2**20  # largest answer of the API, unpacked
MAX_REDIRECTIONS = 5

_REDIRECTIONS = {301, 302, 303, 307, 308}
_WEB_PORTS = {80, 443}
_TRANSIENT = {429, 500, 502, 503, 504}
_BUSY = re.compile(rb"<oml:code>\s*107\s*</oml:code>")
_alone = threading.RLock()


@contextlib.contextmanager
def polite(label: str, server: str, offline: bool = False) -> Iterator[None]:
    """Make every request of the `requests` library within the block a polite one.

    `label` is the dataset, for messages; `server` is the URL of the configured
    server; `offline` blocks every request. A request
    that fails raises `DatasetError` from within the block.
    """
    import requests

    deadline = time.monotonic() + TOTAL_S

    with _alone:  # one connection at a time
        original = requests.Session.request

        def request(session: requests.Session, method: str, url: str, **options: object):
            if offline:
                raise not_cached_error(label)
            return _ask(original, label, server, deadline, session, method, url, options)

        requests.Session.request = request
        try:
            yield
        finally:
            requests.Session.request = original


def not_cached_error(label: str) -> SourceUnreachableError:
    """Return the error for data that only a server has, where none may be asked."""
    return SourceUnreachableError(
        f"{label}: it is not in the cache, and kbench is offline ({option('offline', True)}, "
        "KBENCH_OFFLINE, or no server answered). Run again with network access."
    )


def _ask(original, label, server, deadline, session, method, url, options) -> "requests.Response":
    """Make one request, and repeat it after transient failures."""
    wait = BACKOFF_S
    for trial in range(1, N_TRIES + 1):
        asked = None
        try:
            response = _once(original, label, server, deadline, session, method, url, options)
        except _RequestFailedError as error:
            trouble, lasting = str(error), error.lasting
        else:
            if response.status_code in _TRANSIENT:
                trouble, lasting = f"the server answered {response.status_code}", False
                asked = response.headers.get("Retry-After")
            elif response.status_code == 412 and _BUSY.search(response.content):
                trouble, lasting = "the server is busy (its code 107)", False
            else:
                return _check_response(response, label, url)
        seconds = wait if asked is None or not asked.isdigit() else max(wait, float(asked))
        if seconds > PATIENCE_S:
            trouble += f" and asks to wait for {seconds:.0f} s"
            break
        if trial == N_TRIES or lasting or time.monotonic() + seconds > deadline:
            break
        time.sleep(seconds)
        wait *= 2
    tries = "once" if trial == 1 else f"{trial} times"
    raise DatasetError(f"{label}: {trouble} ({url}, tried {tries}). Try again later.")


class _RequestFailedError(Exception):
    """A failure of a request, which is repeated unless it is `lasting`."""

    def __init__(self, message: str, lasting: bool = False):
        super().__init__(message)
        self.lasting = lasting


def _once(original, label, server, deadline, session, method, url, options) -> "requests.Response":
    """Make one request, follow redirections, and read the answer within the limits."""
    import urllib3
    from requests import exceptions as errors

    options = {
        **options,
        "headers": {**(options.get("headers") or {}), "Accept-Encoding": "gzip"},
        "timeout": (CONNECT_S, SILENCE_S),
        "stream": True,
        "allow_redirects": False,  # `requests` would read their bodies without a limit
    }
    address = url
    silence = f"the server sent nothing for {SILENCE_S:g} s"
    try:
        for _ in range(MAX_REDIRECTIONS + 1):
            if not is_allowed(address, server):
                shown = shorten(ValueError(address))
                raise DatasetError(
                    f"{label}: the server {host(server)} names the URL {shown}, which is on "
                    "another host. Only that server and hosts in KBENCH_OPENML_HOSTS are contacted."
                )
            if _origin(address) != _origin(server):  # only the server gets the API key
                params = options.get("params")
                kept = params.items() if isinstance(params, Mapping) else ()
                options["params"] = {name: value for name, value in kept if name != "api_key"}
            response = original(session, method, address, **options)
            with contextlib.closing(response):
                target = response.headers.get("Location")
                if response.status_code not in _REDIRECTIONS or not target:
                    body = _read(response.raw, response.headers, label, url, deadline)
                    break
            address = urllib.parse.urljoin(address, target)
            options.pop("params", None)  # the server has them already
        else:
            raise DatasetError(f"{label}: the server redirects too often ({url})")
    except (errors.ConnectTimeout, errors.ProxyError, errors.SSLError) as error:
        raise _unreachable(label, url, error) from None
    except (errors.ReadTimeout, urllib3.exceptions.ReadTimeoutError):
        raise _RequestFailedError(silence, lasting=True) from None
    except errors.ConnectionError as error:
        if _is_refused(error):
            raise _unreachable(label, url, error) from None
        raise _RequestFailedError("the connection was lost") from None
    except (urllib3.exceptions.HTTPError, errors.ChunkedEncodingError):
        raise _RequestFailedError("the connection was lost during the response") from None
    except errors.RequestException as error:
        raise DatasetError(f"{label}: {url} cannot be requested: {shorten(error)}") from None
    response._content, response._content_consumed = body, True
    if "charset" not in response.headers.get("Content-Type", ""):
        response.encoding = "utf-8"  # else text would be taken for Latin-1
    return response


def is_allowed(address: str, server: str) -> bool:
    """Whether a URL that a server has named may be requested.

    It is http or https, and on the host of the configured server, below the same
    domain (data.openml.org for www.openml.org), or on a host that the user names in
    ``KBENCH_OPENML_HOSTS``, with commas between several.
    """
    asked, known = _origin(address), _origin(server)
    if asked is None or known is None:
        return False
    (_, name, port), (_, own, own_port) = asked, known
    if f"{name}:{port}" in _named_hosts() or (port in _WEB_PORTS and name in _named_hosts()):
        return True
    if name == own and port == own_port:
        return True
    head, _, rest = own.partition(".")
    domain = rest if head in ("www", "api", "test") and "." in rest else own
    below = name in (own, domain) or name.endswith(f".{domain}")
    return below and "." in domain and {port, own_port} <= _WEB_PORTS


def _origin(address: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of an address; None where it is not a plain one."""
    if re.search(r"[\s\\\x00-\x1f]", address):
        return None
    try:
        parts = urllib.parse.urlsplit(address)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        return None
    if not port or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port


def _named_hosts() -> set[str]:
    names = os.environ.get("KBENCH_OPENML_HOSTS", "").lower().split(",")
    return {name.strip() for name in names if name.strip()}


def _unreachable(label: str, url: str, error: BaseException) -> DatasetError:
    # files may be on another server, whose failure does not make OpenML unreachable
    kind = SourceUnreachableError if "/api/" in url else DatasetError
    return kind(f"{label}: {host(url)} cannot be reached: {shorten(error)}")


def _read(raw, headers, label, url, deadline) -> bytes:
    """Read a body piece by piece, within the limits of size and time."""
    limit = ANSWER_BYTES if "/api/" in url else max_bytes()
    coding = headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("gzip", "identity", ""):
        raise DatasetError(
            f"{label}: {url} comes in the coding {coding!r}, which was not asked for"
        )
    unpack = zlib.decompressobj(wbits=31) if coding == "gzip" else None
    body, received = bytearray(), 0
    while True:
        if time.monotonic() > deadline:
            raise DatasetError(
                f"{label}: {url} was not complete within the time limit for a dataset "
                f"({received:,} bytes so far). Run again with a faster connection."
            )
        # read1 returns the bytes that have arrived: the time limit holds for slow ones too
        if not (packed := raw.read1(1 << 16, decode_content=False)):
            break
        received += len(packed)
        if unpack is None:
            body += packed
        else:
            try:
                body += unpack.decompress(packed, limit + 1 - len(body))
            except zlib.error:
                raise _RequestFailedError("the compressed answer is damaged") from None
        if len(body) > limit:
            raise DatasetError(
                f"{label}: {url} is larger than {limit / 2**20:.0f} MiB when unpacked, the limit "
                "of kbench. Increase KBENCH_MAX_DATASET_MIB if you trust it."
            )
    if unpack is not None and received and not unpack.eof:
        raise _RequestFailedError("the compressed answer is incomplete")
    return bytes(body)


def _check_response(response: "requests.Response", label: str, url: str) -> "requests.Response":
    """Refuse answers that do not come from OpenML's API or file server."""
    # OpenML reports errors as 412 with a code
    if response.status_code not in (200, 412):
        raise DatasetError(
            f"{label}: the server answered {response.status_code} ({url}). Check that it still "
            "exists, and which server the configuration of openml has."
        )
    if not (start := response.content[:1024].lstrip().lower()):
        raise DatasetError(f"{label}: the server sent an empty response ({url}). Try again later.")
    if start.startswith((b"<!doctype html", b"<html")):
        raise DatasetError(
            f"{label}: {host(url)} answered with a web page instead of data ({url}). Log in to "
            "your network if required, or try again later."
        )
    return response


def _is_refused(error: BaseException) -> bool:
    """Distinguish a server that is not there from one that hung up."""
    import urllib3

    reason = error.args[0] if error.args else error
    reason = getattr(reason, "reason", reason)
    return isinstance(reason, urllib3.exceptions.NewConnectionError)


def host(url: str) -> str:
    """Return the host and port of a URL, for messages."""
    return url.split("/")[2] if url.count("/") >= 2 else url


def shorten(error: BaseException) -> str:
    r"""Return an error's message: one line of at most 160 characters, without API keys.

    >>> shorten(ValueError("url: /api/v1/data/61?api_key=5ec2e7\n (gone)"))
    'url: /api/v1/data/61?api_key=*** (gone)'
    """
    text = re.sub(r"api_key=[^&\s'\")]+", "api_key=***", " ".join(str(error).split()))
    return printable(text if len(text) <= 160 else text[:157] + "...")
