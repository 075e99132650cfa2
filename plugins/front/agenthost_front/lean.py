"""Hypercorn without what a start does not need of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypercorn.config import Config


class Silent:
    """A log for Hypercorn's protocols: the access log is ours."""

    async def access(self, *_: object) -> None:
        """Note nothing."""


class LateLogger:
    """Hypercorn's own log, imported by the first who serves by its configuration."""

    def __new__(cls, config: Config) -> Any:
        """Make it."""
        from hypercorn.logging import Logger

        return Logger(config)


UNUSED: Mapping[str, Mapping[str, object]] = {
    "h2": {},
    "h2.events": {},
    "hypercorn.logging": {"Logger": LateLogger},
    "hypercorn.protocol.h2": {"H2Protocol": object},
    "hypercorn.protocol.ws_stream": {"WSStream": object},
    "multiprocessing.synchronize": {"Event": object},
}
"""Modules by name, and what Hypercorn takes out of them at its import."""


@contextmanager
def lean() -> Iterator[None]:
    """Let Hypercorn be imported without HTTP/2, WebSockets, logs and processes.

    It names them at its import. Its HTTP/2 is not used: ``http2`` is ours, on h2
    itself, where TLS is spoken. WebSockets we import ourselves, with the first of
    them. Its log is :class:`Silent`, and it starts no processes here. They are hollow
    to Hypercorn and, after this, as they were to everybody else. It saves a start a
    tenth of its time.
    """
    hollow = {}
    for name, wanted in UNUSED.items():
        if name not in sys.modules:
            hollow[name] = ModuleType(name)
            vars(hollow[name]).update(wanted)
    sys.modules.update(hollow)
    try:
        yield
    finally:
        for name in hollow:
            del sys.modules[name]
