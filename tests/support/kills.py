"""Kills of a command at a chosen moment, as by the system or by an impatient user."""

import os
import signal


def killed_at(call, module, name, n):
    """Run `call` in a fork of this process, and kill that at the n-th call of a function."""
    pid = os.fork()
    if pid == 0:
        try:
            whole, seen = getattr(module, name), []

            def counted(*given, **options):
                seen.append(1)
                if len(seen) == n:
                    os.kill(os.getpid(), signal.SIGKILL)
                return whole(*given, **options)

            setattr(module, name, counted)
            call()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the function was called less often"
