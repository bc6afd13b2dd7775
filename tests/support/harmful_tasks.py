"""Tasks that do harm, or tell where they are.

Processes of kbench import this module by its plain name, from this folder.
"""

import contextlib
import ctypes
import math
import os
import re
import signal
import stat
import sys
import threading
import time
import uuid
from pathlib import Path

import numpy as np

from kbench.execution.sandbox import wire

MIB = 2**20


def echo(payload):
    return payload


def meet(payload):
    """Wait until as many tasks as asked for are here."""
    folder = Path(payload["folder"])
    (folder / uuid.uuid4().hex).touch()
    give_up = time.monotonic() + 10
    while len(list(folder.iterdir())) < payload["n_tasks"]:
        if time.monotonic() > give_up:
            return False
        time.sleep(0.005)
    return True


def nap(seconds):
    time.sleep(seconds)
    return "rested"


def hang_in_python(_):
    print("about to hang")
    while True:
        pass


def hang_in_c(_):
    re.match(r"(a+)+$", "a" * 64 + "b")


def ignore_signals(_):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(60)


def segfault(_):
    print("last words")
    ctypes.string_at(0)


def leave(code):
    os._exit(code)


def send_signal(number):
    os.kill(os.getpid(), number)
    time.sleep(60)


def allocate(megabytes):
    """Touch memory bit by bit."""
    held = []
    for _ in range(megabytes // 10):
        held.append(np.ones(10 * MIB // 8))
        time.sleep(0.001)
    return len(held)


def read_mapped_file(payload):
    """Read all pages of a file through a memory map; hold some memory, before or after."""
    rows = np.load(payload["path"], mmap_mode="r")
    total = float(rows.sum())
    held = np.ones(payload["own_mib"] * MIB // 8)
    time.sleep(payload["seconds"])
    return total + len(held) - held.sum()


def reserve(bytes_):
    return len(np.empty(int(bytes_), dtype=np.uint8))


def segfault_with(megabytes):
    held = np.ones(megabytes * MIB // 8)
    ctypes.string_at(0)
    return held.size


def no_threads_left(_):
    raise RuntimeError("can't start new thread")


def no_device_memory(message):
    raise RuntimeError(message)


def family(payload):
    """Fork children that touch, or only read, memory beside each other."""
    data = np.ones(payload["shared_mib"] * MIB // 8)
    pids = []
    for _ in range(3):
        if (pid := os.fork()) == 0:
            own = np.ones(payload["own_mib"] * MIB // 8)
            end = time.monotonic() + payload["seconds"]
            while time.monotonic() < end:
                data.sum()
                time.sleep(0.01)
            os._exit(own.size == 0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    return "done"


def fill_memfd(payload):
    """Write into memory that no process maps."""
    return _write(os.memfd_create("hidden"), payload)


def fill_segment(payload):
    """Write into a segment of System V shared memory, which stays, one part after the other."""
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(0, payload["megabytes"] * MIB, 0o1600)
    print(segment)
    for part in range(payload["megabytes"] // 10):
        address = libc.shmat(segment, None, 0)
        ctypes.memset(address + part * 10 * MIB, 1, 10 * MIB)
        libc.shmdt(ctypes.c_void_p(address))  # what it has mapped is small at any time
    time.sleep(payload.get("seconds", 0))
    return "written"


def fill_file(payload):
    """Write into a file of /dev/shm, which stays."""
    if payload.get("in_child") and os.fork():
        os.wait()
        return "written"
    written = _write(os.open(payload["path"], os.O_CREAT | os.O_RDWR), payload)
    if payload.get("in_child"):
        os._exit(0)
    return written


def fill_files(payload):
    """Write files of /dev/shm one after the other, and close each at once."""
    for number in range(payload["n_files"]):
        fd = os.open(f"{payload['path']}-{number}", os.O_CREAT | os.O_RDWR)
        _write(fd, payload)
        os.close(fd)
    return "written"


def fill_deleted_file(payload):
    fd = os.open(payload["path"], os.O_CREAT | os.O_RDWR)
    Path(payload["path"]).unlink()
    return _write(fd, payload)


def _write(fd, payload):
    for _ in range(payload["megabytes"]):
        os.write(fd, b"x" * MIB)
        time.sleep(payload.get("pause", 0))
    time.sleep(payload.get("seconds", 0))
    return "written"


def map_file(payload):
    """Map a file of /dev/shm, which stays, and close it."""
    from multiprocessing.shared_memory import SharedMemory

    shared = SharedMemory(payload["name"], create=True, size=payload["megabytes"] * MIB)
    os.close(shared._fd)
    shared._fd = -1
    for start in range(0, len(shared.buf), MIB):
        shared.buf[start : start + MIB] = b"x" * MIB
    time.sleep(payload.get("seconds", 0))
    os._exit(payload.get("code", 3))


def leave_named_folder(ending):
    """Leave a folder of the kind that joblib makes."""
    folder = Path(f"/dev/shm/joblib_memmapping_folder_{os.getpid()}_{ending}")
    folder.mkdir()
    (folder / "data").write_bytes(b"x")
    time.sleep(0.3)


def grow_file(path):
    """Change a file that another program has made."""
    with Path(path).open("ab") as file:
        file.write(b"x" * MIB)
        file.flush()
        time.sleep(0.3)
    return "grown"


def replace_file(path):
    new = Path(f"{path}.new")
    with new.open("wb") as file:
        file.write(b"new")
        time.sleep(0.1)
    new.replace(path)
    return "replaced"


def leave_children(how):
    """Fork children that want to live on; return their process ids."""
    reader, writer = os.pipe()
    for _ in range(2):
        if os.fork() == 0:
            if how != "group":
                os.setsid()
            if how == "daemon" and os.fork():
                os._exit(0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(writer, b"%d " % os.getpid())
            time.sleep(60)
            os._exit(0)
    said = b""
    while said.count(b" ") < 2:
        said += os.read(reader, 100)
    return [int(pid) for pid in said.split()]


def leave_children_and_die(how):
    print(*leave_children(how), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def leave_children_and_hang(how):
    print(*leave_children(how), flush=True)
    time.sleep(60)


def leave_children_once(payload):
    """Hang with children the first time; say so the second."""
    mark = Path(payload["mark"])
    if mark.exists():
        return "the second time"
    mark.touch()
    return leave_children_and_hang(payload["how"])


def kill_the_supervisor(_):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


def stop_the_supervisor(_):
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(60)


def leave_children_and_stop_the_supervisor(how):
    leave_children(how)
    stop_the_supervisor(None)


def fork_and_return(_):
    os.fork()
    return os.getpid()


def print_much(megabytes):
    line = "x" * 1023
    for _ in range(megabytes * 1024):
        print(line)
    os.write(2, b"the end, in C\xff\n")
    return "printed"


def close_everything(_):
    os.closerange(0, 1000)
    return 1


def replace_everything(folder):
    os.closerange(0, 1000)
    for number in range(40):
        os.open(f"{folder}/{number}", os.O_CREAT | os.O_RDWR)
    return "x" * 1000


def write_everywhere(_):
    """Write junk into every descriptor but the standard ones."""
    for fd in range(3, 64):
        try:
            os.write(fd, b"\xff" * 100)
        except OSError:
            continue
    return 1


def give_back(what):
    return {
        "nan": [math.nan, math.inf, -math.inf],
        "numpy float": np.float64(0.5),
        "set": {1, 2},
        "numpy int": np.int64(1),
        "large": "x" * (5 * MIB),
        "unprintable": "\ud800",
    }[what]


def forge(message):
    """Write an own answer into every pipe of the process, and end it."""
    header = {"status": "ok", "error": "", "size": 0, "resident": 0, "files": 0} | message["header"]
    packed = wire.pack(header, message["body"].encode())
    for fd in range(3, 64):
        with contextlib.suppress(OSError):
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, packed)
    os._exit(0)


def fail(what):
    if what == "no text":
        raise ValueError("\udcff is no text")
    if what == "exit":
        sys.exit("enough")
    if what == "interrupt":
        raise KeyboardInterrupt
    if what == "recursion":
        return fail(what)
    raise ValueError(what)


def leave_threads(_):
    for daemon in (True, False):
        threading.Thread(target=time.sleep, args=(60,), daemon=daemon).start()
    return "left"


def read_input(_):
    return sys.stdin.read() + input()


def where(_):
    return {
        "pid": os.getpid(),
        "supervisor": os.getppid(),
        "path": sys.path,
        "threads": os.environ["OMP_NUM_THREADS"],
        "modules": sorted(sys.modules),
    }
