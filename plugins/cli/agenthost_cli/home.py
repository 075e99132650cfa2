"""The home folder: which daemon runs on it, and with which key it is asked."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import CommandError

if TYPE_CHECKING:
    from agenthost import Daemon

DAEMON_FILE = "daemon.json"
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - asked, not bound


@dataclass(frozen=True, slots=True)
class RunningDaemon:
    """What ``daemon.json`` says of the daemon that runs on a home."""

    pid: int
    host: str
    port: int


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """``AGENTHOST_HOME``, else ``~/.agenthost``."""
    named = environ.get("AGENTHOST_HOME", "").strip()
    return Path(named) if named else Path.home() / ".agenthost"


def running_daemon(home: Path) -> RunningDaemon:
    """Find the daemon of a home.

    Raises:
        CommandError: None runs there, or its file cannot be read.
    """
    try:
        facts = json.loads((home / DAEMON_FILE).read_text(encoding="utf-8"))
        host, _, port = facts["listen_addr"].rpartition(":")
        host = host.strip("[]")
        found = RunningDaemon(int(facts["pid"]), host, int(port))
    except FileNotFoundError:
        raise not_running(home) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(
            f"{home / DAEMON_FILE} cannot be read; is it the daemon's own file?"
        ) from error
    return RunningDaemon(found.pid, ANY_ADDRESS.get(host, host), found.port)


def announce(home: Path, daemon: Daemon) -> Callable[[], None]:
    """Write down which daemon serves on a home, for :func:`running_daemon`.

    Returns:
        A function that takes it back.
    """
    facts = {
        "pid": os.getpid(),
        "listen_addr": daemon.address,
        "started_at": daemon.clock.time(),
        "version": daemon.version,
    }
    path = home / DAEMON_FILE
    path.touch(mode=0o600)
    path.write_text(json.dumps(facts), encoding="utf-8")
    return partial(path.unlink, missing_ok=True)


class NoDaemon(CommandError):
    """There is nobody to ask."""


def not_running(home: Path) -> NoDaemon:
    """Say that there is nobody to ask, and the remedy."""
    return NoDaemon(
        f"no daemon runs on {home}; start it with: agenthost start\n"
        "(AGENTHOST_HOME names another home)"
    )


def api_key(home: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """The key of the API: ``AGENTHOST_API_KEY``, else the one of ``config.toml``.

    Raises:
        CommandError: ``config.toml`` cannot be read.
    """
    named = environ.get("AGENTHOST_API_KEY")
    if named is not None:
        return named.strip() or None
    try:
        config = tomllib.loads((home / "config.toml").read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CommandError(f"{home / 'config.toml'} cannot be read: {error}") from error
    return str(config.get("api_key") or "").strip() or None
