"""The warm process, or supervisor, as its client sees it: its start, whether it works, its end.

It gets an environment without credentials. A task may stop it, or occupy it for ever, so that
it is watched without its help. Its time counts only while the client runs too: a machine that
was suspended, or a client that was stopped, finds its supervisor as it was.
"""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence

from kbench.execution.sandbox import processes

MARK = "KBENCH_SANDBOX"
"""Environment variable that names the sandbox to which a process belongs."""

PROBE_S = 30.0
"""Seconds that the trial import of one third-party module may take."""

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)
# The path comes first: kbench itself may be importable only through it.
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from kbench.execution.sandbox.supervisor import main; main(json.loads(sys.argv[2]))"
)

TICK_S = 0.5
"""Seconds between two looks."""

STOPPED_S = 10.0
"""Seconds without a sign of life after which a supervisor is given up."""

MARGIN_S = 60.0
"""Seconds beyond the limit of a task that its end and its answer may take."""

WARM_UP_S = 600.0
"""Seconds that imports may take, beyond those of trial imports."""


class NotStartedError(RuntimeError):
    """A supervisor ended before it was ready."""


class HungError(Exception):
    """A supervisor does not work any longer although its process lives."""


class Liveness:
    """Looks at a supervisor while a client waits for it.

    It may take `warm_up_s` seconds for its imports, and should enforce the task's limit of
    `time_s`.
    """

    def __init__(
        self, pid: int, is_ready: Callable[[], bool], warm_up_s: float, time_s: float | None
    ) -> None:
        self._pid, self._is_ready = pid, is_ready
        self._warm_up_s, self._time_s = warm_up_s, time_s
        self._pulse: object = None
        self._still_s = self._waited_s = 0.0
        self._ready = False

    def look(self) -> None:
        """Raise HungError if the supervisor hangs; to be called every `TICK_S`.

        Looks are counted, and no clock is read.
        """
        pulse = processes.pulse(self._pid)
        still = pulse is not None and pulse == self._pulse
        self._still_s = self._still_s + TICK_S if still else 0.0
        self._pulse = pulse
        if self._still_s >= STOPPED_S:
            raise HungError(f"it has not run for {STOPPED_S:g} s (was it stopped?)")
        if not self._ready and self._is_ready():
            self._ready, self._waited_s = True, 0.0
        self._waited_s += TICK_S
        if not self._ready and self._waited_s > self._warm_up_s:
            raise HungError(f"its imports took more than {self._warm_up_s:g} s")
        if self._ready and self._time_s is not None and self._waited_s > self._time_s + MARGIN_S:
            raise HungError(f"it did not end a task with a limit of {self._time_s:g} s")


class WarmProcess:
    """A supervisor process and the socket on which it takes connections."""

    def __init__(
        self, preload: Sequence[str], variables: Mapping[str, str], record: Sequence[str]
    ) -> None:
        self._lock = threading.Lock()
        self._end = ""
        self._ready = False
        self._mark = uuid.uuid4().hex
        self._warm_up_s = WARM_UP_S + PROBE_S * len(preload)
        self._control, theirs = socket.socketpair()
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        environment = {n: v for n, v in os.environ.items() if not is_credential(n, v)}
        environment |= {**variables, **dict.fromkeys(_THREAD_VARIABLES, "1")}
        environment[MARK] = self._mark
        # pyarrow comes with scikit-learn (through pandas); its allocator would start a thread
        environment.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
        # the order of a set of strings is the same in every task
        environment.setdefault("PYTHONHASHSEED", "0")
        names = environment.keys() | os.environ.keys()
        settings = {
            "control": theirs.fileno(),
            "parent": os.getpid(),
            "preload": list(preload),
            "probe_s": PROBE_S,
            "record": list(record),
            # their values here say nothing of those there
            "hidden": [n for n in names if environment.get(n) != os.environ.get(n)],
        }
        with theirs:
            self._process = subprocess.Popen(
                # -P: the current folder is on the path only if it is on ours
                [
                    sys.executable,
                    "-P",
                    "-c",
                    _START,
                    json.dumps([str(folder) for folder in sys.path]),
                    json.dumps(settings),
                ],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._messages,
                stderr=self._messages,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the client alone
            )

    def alive(self) -> bool:
        """Return whether it has not ended."""
        return self._process.poll() is None

    def send(self, connection: socket.socket) -> None:
        """Hand it one end of a connection, for one call."""
        # one byte per descriptor keeps them apart
        socket.send_fds(self._control, [b"+"], [connection.fileno()])

    def check_started(self) -> None:
        """Raise if the process ended before it was ready for a task."""
        end = self.close()
        if not self._ready:
            raise NotStartedError(f"the sandbox's supervisor could not start: {end}")

    def liveness(self, time_s: float | None) -> Liveness:
        """Return what looks at it during a task with a limit of time."""
        return Liveness(self._process.pid, self._is_ready, self._warm_up_s, time_s)

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError):
            return self._control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b"R"
        return False

    def close(self, hung: str = "") -> str:
        """End the process and all of its tasks; return its exit status and last messages.

        A process that hangs, for the reason `hung`, is not asked to end itself.
        """
        with self._lock:
            if self._end:
                return self._end
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_WR)
            try:
                code = self._process.wait(0 if hung else 3)
            except subprocess.TimeoutExpired:
                # it adopts all orphans, so that none is missing while it lives
                for pid in processes.descendants(self._process.pid):
                    processes.kill(pid)
                self._process.kill()
                code = self._process.wait()
            # A supervisor ends all its processes. If it was killed, its tasks die with
            # it, but not the processes that they have forked.
            for pid in processes.list_marked(f"{MARK}={self._mark}"):
                processes.kill(pid)
            with self._control:
                self._ready = self._is_ready()
            with self._messages as messages:
                messages.seek(0)
                last = messages.read().decode(errors="replace")[-4000:]
            status = processes.signal_name(-code) if code < 0 else f"exit code {code}"
            self._end = f"{hung or status}\n{last}".strip()
            return self._end


_NAME = re.compile(
    r"(^|_)(AWS_.+|\w*(PASSWORD|PASSWD|PASSPHRASE|SECRETS?|TOKENS?|APIKEY|CREDENTIALS?)"
    r"|KEYS?|PASS|AUTH|PAT|DSN)(_|$)",
    re.IGNORECASE,
)
_VALUE = re.compile(r"://[^/\s@]*:[^/\s@]+@")
"""An address with a password, as of a database or a proxy."""


def is_credential(name: str, value: str) -> bool:
    """Return whether an environment variable seems to hold a credential.

    >>> is_credential("OPENML_APIKEY", "x"), is_credential("TOKENIZERS_PARALLELISM", "true")
    (True, False)
    >>> is_credential("DATABASE_URL", "postgresql://me:secret@host/db")
    True
    """
    return bool(_NAME.search(name) or _VALUE.search(value))
