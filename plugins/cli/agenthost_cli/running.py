"""Which daemon runs on a home, and with which key it is asked."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .errors import CommandError
from .home import DAEMON_FILE

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # nosec B104 # noqa: S104 - asked, not bound


@dataclass(frozen=True, slots=True)
class RunningDaemon:
    """What ``daemon.json`` says of the daemon that runs on a home."""

    pid: int
    host: str
    port: int
    fingerprint: str = ""
    """SHA-256 of the certificate it shows, "" where it speaks no TLS."""


def running_daemon(home: Path) -> RunningDaemon:
    """Find the daemon of a home.

    Raises:
        CommandError: None runs there, or its file cannot be read.
    """
    try:
        facts = json.loads((home / DAEMON_FILE).read_text(encoding="utf-8"))
        host, _, port = facts["listen_addr"].rpartition(":")
        host = host.strip("[]")
        shows = str(facts.get("tls_sha256", ""))
        found = RunningDaemon(int(facts["pid"]), host, int(port), shows)
    except FileNotFoundError:
        raise not_running(home) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(
            f"{home / DAEMON_FILE} cannot be read; is it the daemon's own file?"
        ) from error
    return replace(found, host=ANY_ADDRESS.get(host, host))


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
