"""What the contract of WORKERS has done in another process; imported there alone.

Some hold a connection to the port that their document names: there the contract hears
that they are gone, and they end with it at the latest.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time

mark = "as it was imported"
"""Changed where the tests run: nobody else sees that."""


def shouted(document: bytes, *, mark: str = "") -> str:
    """Give the document in upper case, with a mark behind it."""
    return document.decode().upper() + mark


def measured(document: bytes, **options: object) -> str:
    """Tell the length of the document, and the options."""
    return json.dumps([len(document), options])


def surroundings(document: bytes) -> str:
    """Tell what is to be seen besides the document."""
    del document
    folder = "/proc/self/fd"
    found = os.listdir(folder) if os.path.isdir(folder) else []
    links = [f"{folder}/{number}" for number in found]
    opened = [os.readlink(link) for link in links if os.path.lexists(link)]
    seen = {"environ": dict(os.environ), "open": opened, "pid": os.getpid()}
    return json.dumps({**seen, "mark": mark})


def raises(document: bytes) -> str:
    """Fail as a converter does."""
    raise ValueError(document.decode())


def exits(document: bytes) -> str:
    """End the interpreter."""
    sys.exit(document.decode())


def dies(document: bytes) -> str:
    """End the process without a word."""
    del document
    os._exit(3)


def takes_memory(document: bytes) -> str:
    """Ask for 64 GiB, which nobody gets."""
    del document
    return str(len(bytearray(64 << 30)))


def waits(document: bytes) -> str:
    """Wait a moment, as what reads a file does."""
    time.sleep(0.001)
    return str(len(document))


def computes(document: bytes) -> str:
    """Compute without a pause as long as the contract holds the connection."""
    with _held(document) as connection:
        while not select.select([connection], [], [], 0)[0]:
            pass
    return ""


def sleeps(document: bytes) -> str:
    """Do nothing as long as the contract holds the connection."""
    with _held(document) as connection:
        connection.recv(1)
    return ""


def _held(document: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", int(document)), timeout=10)
    connection.settimeout(None)
    return connection
