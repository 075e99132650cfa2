"""Runs a server, and takes all of it down: a script on the standard library alone.

Its first argument is the descriptor of a pipe that nobody writes to: it ends when the
daemon does, however that dies. The others are the program and its arguments. It leads
a process group of its own, so that what the program starts ends with it.
"""

from __future__ import annotations

import os
import signal
import sys

NOT_STARTED = 126


class _Ended(BaseException):
    """The program has ended."""


def _ended(*_: object) -> None:
    raise _Ended


def main() -> None:
    """Start the program; end the group when it, or the daemon, ends."""
    lifeline = int(sys.argv[1])
    try:
        signal.signal(signal.SIGCHLD, _ended)
        child = os.fork()
        if not child:
            _become(sys.argv[2:], lifeline)
        # The pipes are the program's alone, lest they stay open behind it.
        os.close(0)
        os.close(1)
        os.read(lifeline, 1)
    except _Ended:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        how = (
            f"ended with code {code}" if code >= 0 else f"was killed by signal {-code}"
        )
        os.write(2, f"it {how}\n".encode())
    finally:
        os.killpg(0, signal.SIGKILL)


def _become(arguments: list[str], lifeline: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Python ignores these, and the program would go on ignoring them.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.close(lifeline)
    try:
        # The operator's configuration names it, and a person approves a change of it.
        os.execv(arguments[0], arguments)  # noqa: S606  # nosec B606
    except OSError as error:
        os.write(2, f"it cannot be started: {error.strerror}\n".encode())
        os._exit(NOT_STARTED)


if __name__ == "__main__":
    main()
