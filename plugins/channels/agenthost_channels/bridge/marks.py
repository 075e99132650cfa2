"""An emoji on a message: that it is being answered, and whether it was."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..contract import Facts

if TYPE_CHECKING:
    from .saying import Saying
    from .settings import ChannelSection

# Telegram takes few others from bots.
SEEN, DONE, FAILED = "\N{EYES}", "\N{THUMBS UP SIGN}", "\N{THUMBS DOWN SIGN}"


class Marks:
    """Puts them on messages of a channel, if that is wanted and can be.

    Nobody waits for them, and one that is refused is not tried again.

    Args:
        saying: Sends them.
        section: Whether they are wanted.
        facts: Whether the service has reactions.
    """

    def __init__(self, saying: Saying, section: ChannelSection, facts: Facts) -> None:
        self._saying = saying
        self._wanted = section.reactions and facts.reactions
        # By the message: one after another, as they are shown.
        self._going: dict[str, asyncio.Task[None]] = {}

    def seen(self, row: Any) -> None:
        """Show that a message is being answered."""
        self._put(row, "seen", SEEN)

    def over(self, row: Any, *, well: bool) -> None:
        """Show that it was, well or not."""
        name, emoji = ("done", DONE) if well else ("failed", FAILED)
        self._put(row, name, emoji)

    def _put(self, row: Any, name: str, emoji: str) -> None:
        command = row["text"].startswith("/")
        if not self._wanted or command or not row["message_id"]:
            return
        key = row["key"]
        task = asyncio.create_task(
            self._after(self._going.get(key), row, f"{key[:28]}-{name}", emoji)
        )
        self._going[key] = task
        task.add_done_callback(lambda _: self._forget(key, task))

    async def _after(
        self, before: asyncio.Task[None] | None, row: Any, key: str, emoji: str
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        await self._saying.react(row, key, emoji)

    def _forget(self, key: str, task: asyncio.Task[None]) -> None:
        if self._going.get(key) is task:
            del self._going[key]

    async def stop(self) -> None:
        """Put no more on any."""
        going = [*self._going.values()]
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
