"""Becomes a command, within limits: run as a script, on the standard library alone.

Its one argument is JSON: ``limits`` by their names in ``resource``, and ``arguments``,
the program first. It dies with the daemon.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys

DIE_WITH_PARENT = 1
NOT_STARTED = 126


def main() -> None:
    """Set the limits and become the command."""
    asked = json.loads(sys.argv[1])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    for name, most in asked["limits"].items():
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (limit, limit))
    # Python ignores these, and a command would go on ignoring them.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        # What may run was checked before; becoming it is what this script is for.
        os.execv(asked["arguments"][0], asked["arguments"])  # noqa: S606  # nosec B606
    except OSError as error:
        os.write(2, f"it cannot be started: {error.strerror}\n".encode())
        os._exit(NOT_STARTED)


if __name__ == "__main__":
    main()
