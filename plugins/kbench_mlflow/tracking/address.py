"""URIs of stores: parsed once, and shown without their credentials; the default store."""

import base64
import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, unquote, unquote_to_bytes

from kbench.errors import StoreError
from kbench.messages import mask, split_url

_LOCAL = re.compile(r"sqlite(?:\+pysqlite)?:///([^?]+)")

_IN_USER_INFO = "%:!$&'()*+,;=~"
"""Characters that user info may have as they are; a percent sign quotes others already."""

_SHORTEST = 4
"""Characters of a secret that is hidden wherever it stands in a text."""


@dataclass(frozen=True)
class Address:
    """The URI of a store."""

    uri: str = field(repr=False)
    """What connects to the store; it may have credentials, and is never shown."""
    name: str
    """The URI for messages, journals and pages: without credentials."""
    path: Path | None = None
    """The file of a local SQLite store."""

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Parse a tracking URI, or a name that was made of one."""
        if (path := sqlite_path(text)) is not None:
            return cls(sqlite_uri(path), sqlite_uri(path), path)
        if "://" not in text or text.lower().startswith(("sqlite", "file:")):
            return cls(text, text)
        scheme, user, rest, query = split_url(text)
        user = f"{quote(user, safe=_IN_USER_INFO)}@" if user else ""
        return cls(f"{scheme}://{user}{rest}" + (f"?{query}" if query else ""), mask(text))

    @property
    def server(self) -> str:
        """The URL of a server without user info, as a browser needs it."""
        scheme, _, rest, _ = split_url(self.uri)
        return f"{scheme}://{rest}".rstrip("/")

    def hide(self, text: str) -> str:
        """Replace the credentials in a string, such as a library's message that repeats them."""
        text = text.replace(self.uri, self.name)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    @cached_property
    def _secrets(self) -> list[str]:
        """What must not be shown, in all the forms in which libraries write it."""
        secrets = {os.environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("PASSWORD", "TOKEN")}
        if self.uri != self.name:
            _, user, _, query = split_url(self.uri)
            secrets.add(base64.b64encode(unquote(user).encode()).decode())
            name, colon, password = user.partition(":")
            # of a server's address the name alone may be a token
            secrets |= {password} if colon and password else {name}
            for pair in query.split("&"):
                if mask(f"x://y?{pair}") != f"x://y?{pair}":
                    secrets.add(pair.partition("=")[2])
        forms = {form for each in secrets for form in (each, unquote(each), quote(unquote(each)))}
        return sorted((each for each in forms if len(each) >= _SHORTEST), key=len, reverse=True)


def sqlite_uri(path: Path) -> str:
    """Return the URI of an SQLite file: what URIs cannot hold is quoted, as in any URI.

    >>> sqlite_uri(Path("/data/100 %/mlflow.db"))
    'sqlite:////data/100 %25/mlflow.db'
    """
    return "sqlite:///" + "".join(
        sign if sign.isprintable() and sign not in "%?#" else quote(os.fsencode(sign), safe="")
        for sign in str(path)
    )


def sqlite_path(uri: str) -> Path | None:
    """Return the file of a local SQLite store; None for every other store.

    >>> sqlite_path("sqlite:////data/100 %25/mlflow.db")
    PosixPath('/data/100 %/mlflow.db')
    """
    match = _LOCAL.match(uri)
    if match is None or match[1] == ":memory:":
        return None
    return Path(os.fsdecode(unquote_to_bytes(os.fsencode(match[1])))).absolute()


def engine_uri(path: Path) -> str:
    """Return the URI under which the installed SQLAlchemy opens an SQLite file.

    Its versions differ in whether they unquote a path. MLflow makes the folder of a path as
    it stands in the URI, quoted or not, unless the URI names the driver.
    """
    plain = f"sqlite:///{path}"
    if not set(str(path)) & set("%?"):
        return plain
    from sqlalchemy.engine import make_url

    quoted = "sqlite+pysqlite:///" + str(path).replace("%", "%25").replace("?", "%3F")
    plain = plain.replace("sqlite:", "sqlite+pysqlite:")
    for address in (plain, quoted):
        url = make_url(address)
        if url.database == str(path) and not url.query:
            return address
    # not unquoted by SQLAlchemy, but by SQLite
    return f"sqlite+pysqlite:///file:{quote(os.fsencode(path))}?uri=true"


def default_uri(folder: Path | None = None) -> str:
    """Return the store that MLflow would use, and kbench uses.

    ``MLFLOW_TRACKING_URI`` if set, else the SQLite database ``mlflow.db`` in
    `folder` (by default the current one), with its absolute path.
    """
    path = (folder or Path.cwd()).absolute() / "mlflow.db"
    return os.environ.get("MLFLOW_TRACKING_URI") or sqlite_uri(path)


def check_store(text: str) -> None:
    """Raise StoreError for a store that is not a URI, before anything is computed for it.

    >>> check_store("mlflow.db")
    Traceback (most recent call last):
    kbench.errors.StoreError: the store must be a URI, got 'mlflow.db'; did you mean
    'sqlite:///mlflow.db'?
    """
    if Path(text).suffix in (".db", ".sqlite", ".sqlite3") and "://" not in text:
        raise StoreError(f"the store must be a URI, got {text!r}; did you mean 'sqlite:///{text}'?")


def ui_environment(uri: str) -> dict[str, str]:
    """Return the environment in which ``mlflow server`` serves the store at a URI."""
    address = Address.parse(uri)
    return {
        "MLFLOW_BACKEND_STORE_URI": address.uri
        if address.path is None
        else engine_uri(address.path),
        # off: half the time to start and a quarter of the memory
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
