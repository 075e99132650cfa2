"""One account of a channel: its adapter kept running, its inbox and its outbox."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

from agenthost import AgentHostError, Host, Unauthenticated

from ..contract import Adapter, Facts
from . import tables
from .answering import Said
from .files import Files
from .hearing import Hearing
from .line import AccountLine
from .saying import Saying
from .settings import ChannelSection

log = logging.getLogger(__name__)
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0


class Account:
    """An account that is connected, from :meth:`run` on.

    Args:
        host: The daemon.
        kind: The class of its adapter.
        line: What the adapter is given.
        section: Who may speak, and who answers.
        facts: What is known of the vendor.
    """

    def __init__(
        self,
        host: Host,
        kind: type[Adapter],
        line: AccountLine,
        section: ChannelSection,
        facts: Facts,
    ) -> None:
        self.line = line
        self.channel = facts.id
        self.section = section
        self._host = host
        self._again = asyncio.Event()
        self._facts = facts
        self.adapter = kind(line)
        self._saying = Saying(host, self.adapter, line, facts)
        shown = (
            replace(facts, dialect="plain")
            if section.output_format == "plain"
            else facts
        )
        self._hearing = Hearing(host, facts.id, section, shown, self._saying)
        line.keep = self._hearing.keep

    async def run(self) -> None:
        """Stay connected, answer and send until cancelled."""
        where = {"channel": self._facts.id, "account": self.line.account}
        row = await self._host.store.first(tables.CURSOR, where)
        self.line.cursor = "" if row is None else row["cursor"]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hearing.run())
            group.create_task(self._saying.run())
            group.create_task(self._stay_connected())

    def reconnect(self) -> None:
        """End the connection and begin it anew, also one that was given up."""
        self._again.set()

    @property
    def files(self) -> Files:
        """What reads files of agents, to be sent."""
        return self._hearing.files

    def written(self, row: Any, said: Said) -> list[Any]:
        """Make the outbox's rows of what is said, in the channel's markup."""
        return self._hearing.says(row, [said], self._host.clock.time())

    def more(self) -> None:
        """There is more in the outbox."""
        self._saying.more()

    async def tell(self, pairing: Any, text: str) -> None:
        """Say something to somebody who had a code."""
        await self._hearing.tell(pairing, text)

    async def _stay_connected(self) -> None:
        while True:
            connecting = asyncio.ensure_future(self._connect())
            try:
                await self._again.wait()
            finally:
                connecting.cancel()
                await asyncio.gather(connecting, return_exceptions=True)
            self._again.clear()
            self.line.troubled("it is connected anew")

    async def _connect(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                await self.adapter.run()
                reason = "the connection has ended"
            except Unauthenticated as error:
                self.line.troubled(str(error))
                return
            except AgentHostError as error:
                reason = str(error)
            except Exception:
                log.exception("channel %s: its adapter broke", self._facts.id)
                reason = "the adapter broke; see the log"
            pause = FIRST_PAUSE if self.line.up.is_set() else pause
            self.line.troubled(reason)
            await self._host.clock.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
