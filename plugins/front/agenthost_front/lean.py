"""Hypercorn without what a start does not need of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

UNUSED = {
    "h2": "",
    "h2.events": "",
    "hypercorn.protocol.h2": "H2Protocol",
    "hypercorn.protocol.ws_stream": "WSStream",
}
"""Modules by name, and the one thing that Hypercorn takes out of them at its import."""


@contextmanager
def lean() -> Iterator[None]:
    """Let Hypercorn be imported without HTTP/2 and WebSockets.

    It names both at its import. Its HTTP/2 is not used: ``http2`` is ours, on h2
    itself, where TLS is spoken. WebSockets we import ourselves, with the first of
    them. They are hollow to Hypercorn and, after this, as they were to everybody else.
    It saves a start a twentieth of its time.
    """
    hollow = {}
    for name, wanted in UNUSED.items():
        if name not in sys.modules:
            hollow[name] = ModuleType(name)
            if wanted:
                vars(hollow[name])[wanted] = object
    sys.modules.update(hollow)
    try:
        yield
    finally:
        for name in hollow:
            del sys.modules[name]
