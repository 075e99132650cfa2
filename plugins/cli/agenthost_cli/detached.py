"""Start a daemon that outlives the terminal."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

from .client import Client
from .errors import CommandError

LOG_FILE = "daemon.log"
LONGEST_LOG = 10 * 1024 * 1024
START_SECONDS = 60


def start_detached(home: Path) -> int:
    """Start in a session of its own, wait until it serves, return its pid.

    Its standard error goes to ``<home>/daemon.log``.

    Raises:
        CommandError: It ended, or does not serve in time.
    """
    with opened_log(home) as log:
        begin = log.tell()
        daemon = subprocess.Popen(  # nosec B603 # our own interpreter, no shell
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
        if serves(home, daemon.pid):
            return daemon.pid
        time.sleep(0.02)
    raise CommandError(f"no answer yet; see {home / LOG_FILE}")


def opened_log(home: Path) -> BinaryIO:
    """Open the log for its owner alone; a long one makes room, kept once as ``.1``."""
    path = home / LOG_FILE
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and path.stat().st_size > LONGEST_LOG:
            path.replace(path.with_name(f"{LOG_FILE}.1"))
        path.touch(mode=0o600)
        path.chmod(0o600)
        return path.open("ab")
    except OSError as error:
        raise CommandError(
            f"{error.filename} cannot be written ({error.strerror}); AGENTHOST_HOME "
            "names another home"
        ) from error


def serves(home: Path, pid: int) -> bool:
    """Believe only a daemon that answers; its announcement outlives a crash."""
    try:
        client = Client(home)
        return client.daemon.pid == pid and bool(client.get("/api/health"))
    except CommandError:
        return False


def _said(home: Path, begin: int) -> str:
    with (home / LOG_FILE).open("rb") as log:
        log.seek(begin)
        return log.read().decode(errors="replace").strip()
