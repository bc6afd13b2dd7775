"""The configured OpenML server, and whether it can be reached.

Without importing the openml client, which takes 3 to 4 seconds: a machine without
a network must report that at once.
"""

from __future__ import annotations

import configparser
import contextlib
import os
import platform
import socket
import sys
import threading
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from kbench_openml._transport import CONNECT_S, host

DEFAULT = "https://www.openml.org/api/v1/xml"


@dataclass(frozen=True)
class Server:
    """The server and the cache that the openml client is configured for."""

    url: str  # of the API
    cache: Path  # the client's folder for this server

    @property
    def host(self) -> str:
        """Host and port, for messages."""
        return host(self.url)


def is_offline() -> bool:
    """Check whether ``KBENCH_OFFLINE`` is set to anything but 0, false, no or nothing."""
    return os.environ.get("KBENCH_OFFLINE", "").strip().lower() not in ("", "0", "false", "no")


def configured() -> Server:
    """Read the client's configuration in the same way as the client.

    From ``$XDG_CONFIG_HOME/openml/config`` (``~/.config`` by default, and
    ``~/.openml`` outside Linux) and ``$OPENML_CACHE_DIR``.
    """
    loaded = sys.modules.get("openml.config")
    if loaded is not None:  # a program may have set another server
        return Server(loaded.server, Path(loaded.get_cache_directory()))
    if platform.system().lower() == "linux":
        home = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
        file = home / "openml" / "config"
        root = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "openml"
    else:
        file = Path("~/.openml/config").expanduser()
        root = Path("~/.openml")
    parser = configparser.RawConfigParser()
    with contextlib.suppress(OSError, configparser.Error, UnicodeDecodeError):
        parser.read_string("[openml]\n" + file.read_text("utf-8"))
    url = parser.get("openml", "server", fallback=DEFAULT)
    folder = os.environ.get("OPENML_CACHE_DIR") or parser.get(
        "openml", "cachedir", fallback=str(root)
    )
    below = urllib.parse.urlsplit(url).netloc.split(".")[::-1]
    return Server(url, Path(folder).expanduser().joinpath(*below))


def is_reachable(server: Server) -> bool:
    """Try to connect to the server, or to the proxy on the way to it.

    False where there is no answer within `CONNECT_S`; at once where the connection
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
