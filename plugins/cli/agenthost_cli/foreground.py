"""Run a daemon in the foreground until a signal or a request ends it."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from .logs import set_up_logs
from .memory import settle_memory
from .process import Process

LEAVE_SECONDS = 2.0


def run_daemon(home: Path) -> int:
    """Run until stopped; return the exit code.

    Returns:
        0 after an orderly end, 1 when the start failed (the reason is on standard
        error), 70 when the end was not orderly. A second signal ends the process
        with 130 at once, and so does with 70 an event loop that stands still.
    """
    log = set_up_logs()
    with suppress(OSError):
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    process = Process(home, settle_memory)
    log.form = process.log_format
    code = process.run()
    # A thread that somebody left behind must not keep the process.
    leaving = threading.Thread(target=_leave, args=(code,), daemon=True)
    leaving.start()
    return code


def _leave(code: int) -> None:
    time.sleep(LEAVE_SECONDS)
    main = threading.main_thread()
    left = [t.name for t in threading.enumerate() if not t.daemon and t is not main]
    logging.getLogger("agenthost.cli").warning(
        "threads that do not end were left behind: %s", ", ".join(left)
    )
    sys.stderr.flush()
    # The interpreter's own end would wait for those threads for ever.
    os._exit(code)
