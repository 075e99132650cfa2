"""Start a daemon that outlives the terminal."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from .errors import CommandError
from .home import running_daemon

LOG_FILE = "daemon.log"
START_SECONDS = 60


def start_detached(home: Path) -> int:
    """Start in a session of its own, wait until it serves, return its pid.

    Its standard error goes to ``<home>/daemon.log``.

    Raises:
        CommandError: It ended, or does not serve in time.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (home / LOG_FILE).open("ab") as log:
        begin = log.tell()
        daemon = subprocess.Popen(
            [sys.executable, "-m", "agenthost_cli", "start"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if daemon.poll() is not None:
            raise CommandError(_said(home, begin) or "the daemon ended at once")
        if _serves(home, daemon.pid):
            return daemon.pid
        time.sleep(0.02)
    raise CommandError(f"no answer yet; see {home / LOG_FILE}")


def _serves(home: Path, pid: int) -> bool:
    try:
        return running_daemon(home).pid == pid
    except CommandError:
        return False


def _said(home: Path, begin: int) -> str:
    with (home / LOG_FILE).open("rb") as log:
        log.seek(begin)
        return log.read().decode(errors="replace").strip()
