"""Hypercorn without what a start does not need of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

UNUSED = (
    "h2",
    "h2.connection",
    "h2.events",
    "h2.exceptions",
    "hypercorn.protocol.ws_stream",
    "priority",
)


@contextmanager
def lean() -> Iterator[None]:
    """Let Hypercorn be imported without HTTP/2 and WebSockets.

    It names these modules at its import. Those of HTTP/2 it uses on a connection that
    turns to HTTP/2, which ours never do; WebSockets we import ourselves, with the first
    of them. They are empty to Hypercorn and, after this, as they were to everybody
    else. It saves a start a twentieth of its time.
    """
    hollow = {name: ModuleType(name) for name in UNUSED if name not in sys.modules}
    sockets = hollow.get("hypercorn.protocol.ws_stream")
    if sockets is not None:
        vars(sockets)["WSStream"] = object
    sys.modules.update(hollow)
    try:
        yield
    finally:
        for name in hollow:
            del sys.modules[name]
