"""The home folder, and the file in it that says which daemon serves there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenthost import Daemon

DAEMON_FILE = "daemon.json"


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """``AGENTHOST_HOME``, else ``~/.agenthost``."""
    named = environ.get("AGENTHOST_HOME", "").strip()
    return Path(named) if named else Path.home() / ".agenthost"


def announce(home: Path, daemon: Daemon) -> Callable[[], None]:
    """Write down which daemon serves on a home, for whoever wants to ask it.

    Returns:
        A function that takes it back.
    """
    facts = {
        "pid": os.getpid(),
        "listen_addr": daemon.address,
        "started_at": daemon.clock.time(),
        "version": daemon.version,
        "tls_sha256": daemon.front.fingerprint,
    }
    path = home / DAEMON_FILE
    path.touch(mode=0o600)
    path.write_text(json.dumps(facts), encoding="utf-8")
    return partial(path.unlink, missing_ok=True)
