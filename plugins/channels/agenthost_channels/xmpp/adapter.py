"""XMPP: one session after another, each over one stream."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from agenthost import Unauthenticated, Unavailable

from ..contract import Adapter, Attachment, Fate, Line, Outbound, Sent
from .config import Settings
from .corrections import is_passing

if TYPE_CHECKING:
    from .session import Session

MISSING = "XMPP needs: pip install 'agenthost[xmpp]'"
# A stream that broke takes a moment to be there again.
BACK_SECONDS = 40.0


class Xmpp(Adapter):
    """One account."""

    settings = Settings
    secrets: ClassVar = {"password": "XMPP_PASSWORD"}  # nosec B105 # a name
    needed: ClassVar = frozenset({"password"})

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._session: Session | None = None
        # Set while messages come in and go out.
        self._up = asyncio.Event()

    async def run(self) -> None:
        """Be there for one session."""
        password = self.line.secret("password")
        if password is None:
            raise Unauthenticated(
                "there is no password of the XMPP account; set XMPP_PASSWORD"
            )
        try:
            from .session import Session
        except ModuleNotFoundError:
            raise Unavailable(MISSING) from None
        self._session = session = Session(self.line, password, self._up)
        try:
            await session.run()
        finally:
            self._session = None

    async def send(self, message: Outbound) -> Sent:
        """Say something, and wait until the server or the room has it."""
        if self._session is None:
            return Sent(Fate.NOT_SENT, reason="not connected")
        return await self._session.send(message)

    async def reconcile(self, message: Outbound) -> Sent:
        """Look in the archive, which has our own messages under our own ids."""
        if is_passing(message):
            return Sent(Fate.UNKNOWN, reason="it is not kept, for more comes after it")
        with suppress(TimeoutError):
            async with asyncio.timeout(BACK_SECONDS):
                await self._up.wait()
        if self._session is None:
            return Sent(Fate.UNKNOWN, reason="not connected")
        return await self._session.reconcile(message)

    async def download(self, attachment: Attachment) -> bytes:
        """Fetch a file from wherever its sender has put it."""
        from .files import fetched

        return await fetched(self.line, attachment)

    async def identity(self) -> str:
        """Tell the address that the server gave us."""
        if self._session is None:
            raise Unavailable("not connected to the XMPP server")
        return self._session.identity()
