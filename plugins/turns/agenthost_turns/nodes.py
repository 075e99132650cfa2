"""What daemons of one database ask of each other's turns: to stop, and to be told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from agenthost import NotFound, Unavailable, Work

from .afar import Afar
from .parts import Parts

TOPIC = "turns"
LOOK = 0.1
"""Seconds between two looks whether what another daemon runs has ended."""
AGAIN = 10
"""Looks after which it is asked once more: it may not have heard."""
PATIENCE = 10.0
REASON = 500
"""Characters of a reason that are told: a word has 8,000 bytes at most."""


class Nodes:
    """Stops here what others ask to be stopped, and there what is asked for here.

    ``told`` and ``end`` are those of the turns that others run and are watched here.

    Args:
        parts: What turns work with.
        live: What runs or waits here, by id.
    """

    def __init__(self, parts: Parts, live: Mapping[str, Work]) -> None:
        signals = parts.host.store.signals
        assert signals is not None  # noqa: S101 - the engine has looked
        self._signals = signals
        self._parts = parts
        self._live = live
        afar = Afar(parts, signals, live)
        self.told, self.end = afar.told, afar.end
        signals.listen(TOPIC, self._heard)

    async def stop(self, agent_id: str, reason: str, session_id: str) -> bool:
        """End what another daemon runs in a session; False when none does.

        Raises:
            Unavailable: It has not ended in time.
        """
        holder = await self._parts.journal.holder(session_id)
        if holder is None or holder[0] == self._parts.host.writer.node:
            return False
        node, work_id = holder
        try:
            await self._parts.sessions.get(session_id, agent_id)
        except NotFound:
            return False
        for look in range(int(PATIENCE / LOOK)):
            if look % AGAIN == 0:
                self._tell(work=work_id, agent=agent_id, reason=reason)
            await asyncio.sleep(LOOK)
            if await self._parts.journal.holder(session_id) != holder:
                return True
        raise Unavailable(
            f"node {node!r} runs it and has not ended it within {PATIENCE:g} s; try "
            "again, there too"
        )

    def stop_all(self, agent_id: str, reason: str) -> None:
        """Have the others end all that runs or waits for an agent."""
        self._tell(agent=agent_id, reason=reason)

    async def session_of(self, agent_id: str) -> str:
        """Give an agent's own session: of a reset elsewhere it may yet be told."""
        return (await self._parts.sessions.of_agent(agent_id)).id

    async def reset(self, agent_id: str, reason: str, session_id: str) -> None:
        """End what other daemons run or have waiting in a session.

        Raises:
            Unavailable: What runs has not ended in time.
        """
        self._tell(session=session_id, agent=agent_id, reason=reason)
        await self.stop(agent_id, reason, session_id)

    def _tell(self, reason: str, **asked: str) -> None:
        word = json.dumps({**asked, "reason": reason[:REASON]})
        self._signals.tell(TOPIC, word)

    def _heard(self, word: str) -> None:
        """End what another daemon names: one, all of a session or all of an agent."""
        asked: dict[str, str] = json.loads(word) if word else {}
        session_id, work_id = asked.get("session"), asked.get("work")
        for work in [*self._live.values()]:
            if (
                work.agent.id == asked.get("agent")
                and session_id in {None, work.agent.session_id}
                and work_id in {None, work.id}
            ):
                work.cancel(asked["reason"])
