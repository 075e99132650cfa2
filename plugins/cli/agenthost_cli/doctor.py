"""``agenthost doctor``: what goes wrong most often, looked for one by one."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .errors import CommandError
from .home import DAEMON_FILE
from .running import NoDaemon, running_daemon

if TYPE_CHECKING:
    from agenthost import Config

SECRET_FILES = ("config.toml", "vault.enc", "vault.key", "audit.key", DAEMON_FILE)
SHORT_KEY = 16
MIB = 2**20
LEAST_SPACE, LITTLE_SPACE = 100 * MIB, 1024 * MIB
SKEW_SECONDS = 86_400


class Finding(NamedTuple):
    """What was looked at, how it is, and what to do about it."""

    check: str
    verdict: Literal["ok", "warning", "broken", "repaired"]
    told: str


def examine(home: Path, *, repair: bool) -> list[Finding]:
    """Look at a home and at the daemon that runs on it, if one does.

    Args:
        home: The home.
        repair: Mend what can be mended without losing anything: modes of files, and
            the note of a daemon that is gone.
    """
    if not home.is_dir():
        return [Finding("home", "warning", f"{home} is made by: agenthost start")]
    found = [*_files(home, repair=repair)]
    config, told = _configuration(home)
    found.append(told)
    if config is not None:
        found += [*_exposure(config), _space(config.data_dir), _clock(config.data_dir)]
    return [*found, *_daemon(home, config, repair=repair)]


def _files(home: Path, *, repair: bool) -> Iterator[Finding]:
    if home.stat().st_uid != os.geteuid():
        told = f"{home} belongs to another user; run as its owner, or change its owner"
        yield Finding("home", "broken", told)
    elif not os.access(home, os.W_OK | os.X_OK):
        yield Finding("home", "broken", f"{home} cannot be written; chmod u+rwx it")
    else:
        yield Finding("home", "ok", str(home))
    modes = [(home, 0o077, "others can look into it")]
    modes += [(home / name, 0o077, "others can read it") for name in SECRET_FILES]
    for path, bits, problem in modes:
        if path.exists() and (mode := path.stat().st_mode & 0o7777) & bits:
            yield _mended_mode(path, mode & ~bits, problem, repair=repair)


def _mended_mode(path: Path, mode: int, problem: str, *, repair: bool) -> Finding:
    if not repair:
        told = f"{path.name}: {problem}; chmod {mode:o}, or --repair"
        return Finding("permissions", "warning", told)
    try:
        path.chmod(mode)
    except OSError as error:
        told = f"{path.name}: {problem}, and chmod failed: {error.strerror}"
        return Finding("permissions", "broken", told)
    return Finding("permissions", "repaired", f"{path.name} is {mode:o} now")


def _configuration(home: Path) -> tuple[Config | None, Finding]:
    """Read the kernel's keys; what a wrong spelling was meant to be, its text says."""
    from agenthost import AgentHostError, load_config

    try:
        config = load_config(home, os.environ).config
    except AgentHostError as error:
        return None, Finding("configuration", "broken", error.message)
    told = "readable; plugins' keys: agenthost config check"
    return config, Finding("configuration", "ok", told)


def _exposure(config: Config) -> Iterator[Finding]:
    key = config.api_key.reveal() if config.api_key else ""
    if key and len(key) < SHORT_KEY:
        told = f"api_key has under {SHORT_KEY} characters; agenthost start --make-key"
        yield Finding("api_key", "warning", told)
    elif not key:
        yield Finding("api_key", "ok", "none: whoever is on this machine may use it")
    else:
        yield Finding("api_key", "ok", "set")
    if not config.listens_on_loopback:
        told = (
            f"{config.listen_addr} is open to the network: the names that clients use "
            "must stand in [server] allowed_hosts, or they get 403"
        )
        yield Finding("allowed_hosts", "warning", told)


def _space(folder: Path) -> Finding:
    place = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(place).free
    told = f"{free // MIB} MiB free"
    if free < LEAST_SPACE:
        return Finding("disk", "broken", f"{told}; writes will be refused, make room")
    if free < LITTLE_SPACE:
        return Finding("disk", "warning", f"{told}; make room")
    return Finding("disk", "ok", told)


def _clock(folder: Path) -> Finding:
    """See that time has not gone back behind what was written."""
    written = [each.stat().st_mtime for each in folder.glob("agenthost.db*")]
    if written and max(written) > time.time() + SKEW_SECONDS:
        told = "the database was written in the future; set the clock (NTP)"
        return Finding("clock", "broken", told)
    return Finding("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()))


def _daemon(home: Path, config: Config | None, *, repair: bool) -> Iterator[Finding]:
    from .client import Client

    try:
        pid = running_daemon(home).pid
        client = Client(home)
        health = client.get("/api/health/detail")
    except NoDaemon:
        yield from _absent(home, config, repair=repair)
        return
    except CommandError as error:
        yield Finding("daemon", "broken", error.message)
        return
    yield Finding("daemon", "ok", f"process {pid} at {client.address}")
    yield from _healthy(health)
    yield from _provider(client)


def _healthy(health: dict[str, Any]) -> Iterator[Finding]:
    connected = health["database"] == "connected"
    told = health["database"] if connected else "cannot be reached; see the log"
    yield Finding("database", "ok" if connected else "broken", told)
    for warning in health["config_warnings"]:
        yield Finding("configuration", "warning", str(warning))
    for plugin in health["plugins"]:
        if plugin["status"] == "failed":
            told = f"{plugin['key']}: {plugin['reason']}"
            yield Finding("plugin", "broken", told)
    for point, reason in health["closed_guards"].items():
        yield Finding("guard", "broken", f"{point} is closed: {reason}")


def _provider(client: Any) -> Iterator[Finding]:
    name = client.get("/api/config")["default_provider"]
    rows = client.get("/api/providers")["providers"]
    for row in rows:
        if row["name"] != name:
            continue
        if row["auth_status"] == "missing":
            told = f"{name} has no key; agenthost providers set-key {name}"
            yield Finding("provider", "broken", told)
        else:
            told = f"{name} {row['auth_status']}; agenthost providers test {name}"
            yield Finding("provider", "ok", told)


def _absent(home: Path, config: Config | None, *, repair: bool) -> Iterator[Finding]:
    """Tell of a daemon that does not answer: gone, or never started."""
    if (home / DAEMON_FILE).exists():
        told = "it ended without taking back daemon.json"
        if repair:
            (home / DAEMON_FILE).unlink(missing_ok=True)
            yield Finding("daemon", "repaired", f"{told}; that is done now")
        else:
            told = f"{told}; agenthost start, or --repair"
            yield Finding("daemon", "warning", told)
    else:
        yield Finding("daemon", "ok", "none runs; agenthost start")
    if config is not None:
        yield _port(config.host, config.port)


def _port(host: str, port: int) -> Finding:
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            told = f"{host}:{port}: {error.strerror}; choose another listen_addr"
            return Finding("port", "broken", told)
    return Finding("port", "ok", f"{host}:{port} is free")
