"""HTTP/2, which Hypercorn imports together with HTTP/1.1 and which we do not speak."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

UNUSED = ("h2", "h2.connection", "h2.events", "h2.exceptions", "priority")


@contextmanager
def without_http2() -> Iterator[None]:
    """Let Hypercorn be imported without what it needs for HTTP/2 alone.

    It names these modules at its import and uses them only on a connection that turns
    to HTTP/2, which ours never do. They are empty to Hypercorn and, after this, as they
    were to everybody else. It saves a start a fortieth of its time.
    """
    hollow = {name: ModuleType(name) for name in UNUSED if name not in sys.modules}
    sys.modules.update(hollow)
    try:
        yield
    finally:
        for name in hollow:
            del sys.modules[name]
