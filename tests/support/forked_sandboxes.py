"""Supervisors of tasks that are forked from a process that has imported scikit-learn.

A supervisor or its first task imports scikit-learn, which takes over a second of CPU, and a
run may start several supervisors. Tests of whole runs fork them instead. Such a supervisor
has the import path, the environment and the descriptors that `kbench.execution.sandbox` gives
it, and has imported no plugin.

Tests of the sandbox itself start real supervisors, and so do descriptions of plugins, which
record what an import loads.
Only Linux can hand the forked process over as a child of the tests.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

PLUGINS = "KBENCH_TASK_PLUGINS"  # set for supervisors of tasks, not for those of descriptions
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
LENGTH = struct.Struct("!Q")
USED = ("pandas", *(f"sklearn.{name}" for name in ("datasets", "ensemble", "neighbors", "svm")))
"""What many tasks import: the packages of a component are those that it names, loaded or not."""


class Template:
    """The process that all supervisors of one test process are forked from."""

    def __init__(self):
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", __file__, str(theirs.fileno()), json.dumps(sys.path)]
            self._process = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONHASHSEED": "0"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def close(self):
        self._socket.close()
        self._process.wait()

    def start(self, command, *, env, stdout, pass_fds, **options):
        """Start what `subprocess.Popen` would, and fork it if it is the supervisor of tasks."""
        *_, path, settings = command
        if PLUGINS not in env:
            return subprocess.Popen(command, env=env, stdout=stdout, pass_fds=pass_fds, **options)
        (control,) = pass_fds
        request = {"path": path, "settings": settings, "env": env, "cwd": str(Path.cwd())}
        message = json.dumps(request).encode()
        with self._lock, _adopting():
            fds = [control, stdout.fileno()]
            socket.send_fds(self._socket, [LENGTH.pack(len(message))], fds)
            self._socket.sendall(message)
            (pid,) = LENGTH.unpack(_read(self._socket, LENGTH.size))
        return Child(pid)


class Child:
    """What `Sandbox` uses of a `subprocess.Popen`, for a process that was forked elsewhere."""

    def __init__(self, pid):
        self.pid = pid
        self.returncode = None
        self._lock = threading.Lock()

    def poll(self):
        with self._lock:
            if self.returncode is None and (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
                self.returncode = os.waitstatus_to_exitcode(ended[1])
            return self.returncode

    def wait(self, timeout=None):
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("supervisor", timeout)
            time.sleep(0.002)
        return self.returncode

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, 9)


def forking(template):
    """Return what replaces the module `subprocess` for `kbench.execution.sandbox.warm_process`."""
    return types.SimpleNamespace(
        Popen=template.start,
        DEVNULL=subprocess.DEVNULL,
        TimeoutExpired=subprocess.TimeoutExpired,
    )


@contextlib.contextmanager
def _adopting():
    """Become the parent of processes whose own parent ends."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(SUBREAPER, 0, 0, 0, 0)


def _read(connection, length):
    received = b""
    while len(received) < length:
        if not (chunk := connection.recv(length - len(received))):
            raise EOFError
        received += chunk
    return received


def _serve(requests):
    """Fork a supervisor for each request, twice, so that the client adopts it."""
    # before anything that decides numbers is imported, as in the supervisor of tasks
    recording = importlib.import_module("kbench.execution.recording")
    recording.install(importlib.import_module("kbench.registry.installed").packages())
    importlib.import_module("kbench.execution.sandbox.supervisor")
    tasks = importlib.import_module("kbench.execution.task_functions")
    tasks.warm()
    tasks.rehearse()
    tasks.thread_pools()
    for name in USED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    while True:
        head, fds, _, _ = socket.recv_fds(requests, LENGTH.size, 2)
        if not head:
            return
        head += _read(requests, LENGTH.size - len(head))
        request = json.loads(_read(requests, LENGTH.unpack(head)[0]))
        answer, told = os.pipe()
        if (between := os.fork()) == 0:
            if (pid := os.fork()) == 0:
                for fd in (answer, told):
                    os.close(fd)
                _become_supervisor(request, *fds, requests)
            os.write(told, LENGTH.pack(pid))
            os._exit(0)
        os.waitpid(between, 0)
        requests.sendall(os.read(answer, LENGTH.size))
        for fd in (*fds, answer, told):
            os.close(fd)


def _become_supervisor(request, control, messages, requests):
    requests.close()
    settings = json.loads(request["settings"])
    deadline = time.monotonic() + 10
    while os.getppid() != settings["parent"]:
        if time.monotonic() > deadline:  # the tests have ended
            os._exit(1)
        time.sleep(0.001)
    os.setsid()
    for fd in (1, 2):
        os.dup2(messages, fd)
    os.close(messages)
    settings["control"] = control
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[:] = json.loads(request["path"])
    sys.argv[:] = ["-c"]
    importlib.invalidate_caches()
    importlib.import_module("kbench.execution.sandbox.supervisor").main(settings)


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])
    _serve(socket.socket(fileno=int(sys.argv[1])))
