"""What a message is answered with: by turns of the agents that answer in its place."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from agenthost import (
    UNTRUSTED,
    Agent,
    AgentHostError,
    Cancelled,
    Context,
    Grants,
    Host,
    Interrupted,
    Message,
    NotFound,
    Pool,
    Principal,
    QuotaExceeded,
    Session,
    TurnOptions,
    Unavailable,
    Waiting,
    user_message,
)

from ..contract import OutFile, Room
from . import tables, writes
from .admission import KIND, external
from .binding import bound, choosable
from .digests import digest
from .drafts import Drafts
from .files import Files
from .losses import Losses
from .settings import ChannelSection
from .withholding import notice_of

log = logging.getLogger(__name__)
APOLOGY = "I could not answer that."
SPENT = "The allowance for this is used up. Ask whoever runs me, or try again tomorrow."
MICRO = 1_000_000
DAY = 86_400
MOST_POOLS = 10_000
HEARD_BY = {
    Room.DIRECT: frozenset({"private"}),
    Room.GROUP: frozenset({"room"}),
    Room.PUBLIC: frozenset({"room", "public"}),
}
"""The labels of a turn that say who hears its answer."""
PASSED_ON = (Cancelled, Interrupted, NotFound, Unavailable, Waiting)


class Standing(NamedTuple):
    """A conversation: the agent that was chosen in it, and how often it began anew."""

    agent: str
    epoch: int


class Question(NamedTuple):
    """A message that is answered: whose it is, and where.

    ``lost`` tells the agent that earlier answers did not arrive.
    """

    row: Any
    who: Principal
    standing: Standing
    lost: str


class Said(NamedTuple):
    """Something that is said: Markdown, and the files that go with it."""

    text: str
    files: tuple[OutFile, ...] = ()


class Answering:
    """Answers messages of a channel.

    Args:
        host: The daemon.
        section: Which agents answer, and how.
        files: Files that come and go with messages.
        drafts: Shows answers as they are made.
    """

    def __init__(
        self, host: Host, section: ChannelSection, files: Files, drafts: Drafts
    ) -> None:
        self.host = host
        self.section = section
        self._files = files
        self._drafts = drafts
        self._pools: dict[tuple[str, int], Pool] = {}

    async def answer(self, row: Any) -> list[Said]:
        """Give what is said to a message, each text for itself; it is the same again.

        Raises:
            AgentHostError: It cannot be answered now, or was stopped.
        """
        standing = await self._enter(row)
        who = await self._principal(row)
        agents = self.agents(row, standing)
        if row["text"].startswith("/"):
            from .chat import carry_out

            return [Said(await carry_out(self, row, who, agents[0], standing))]
        losses = await Losses.in_place(self.host, row)
        question = Question(row, who, standing, losses.instructions)
        said = [await self._said(question, agent) for agent in agents]
        await losses.told(self.host)
        if len(agents) == 1 and not self.section.prefix_agent_name:
            return said
        return [
            Said(_named(agent.name, each.text), each.files)
            for agent, each in zip(agents, said, strict=True)
            if each.text
        ]

    def agents(self, row: Any, standing: Standing) -> list[Agent]:
        """Find the agents that answer, the first before all others.

        Raises:
            NotFound: One of them is not there.
        """
        place = (row["account"], row["peer"], row["thread"])
        names = bound(self.section, place)
        if standing.agent and standing.agent in choosable(self.section, place):
            names = (standing.agent,)
        return [self.host.agents.find(name) for name in names]

    async def session(self, row: Any, agent: Agent, epoch: int) -> Session:
        """Open the session of a conversation: of its place alone."""
        place = digest(row["channel"], row["account"], row["peer"], row["thread"])
        key = f"channel:{place}:{epoch}" if epoch else f"channel:{place}"
        return await self.host.sessions.open(agent.id, key)

    async def stop(self, row: Any) -> str:
        """Stop what is being answered in a message's conversation."""
        standing = await self._standing(row)
        stopped = 0
        for agent in self.agents(row, standing):
            session = await self.session(row, agent, standing.epoch)
            why = "stopped by /stop"
            stopped += await self.host.turns.stop(agent, why, session.id)
        return "Stopped." if stopped else "Nothing was running."

    async def _enter(self, row: Any) -> Standing:
        section = self.section
        idle, most = section.new_after_idle_minutes * 60.0, section.new_after_messages
        if not idle and not most:
            return await self._standing(row)
        enter = partial(writes.enter, row=row, idle=idle, most=most)
        return Standing(*await self.host.store.write(enter))

    async def _standing(self, row: Any) -> Standing:
        names = ("channel", "account", "peer", "thread")
        where = {name: row[name] for name in names}
        found = await self.host.store.first(tables.CONVERSATION, where)
        return Standing("", 0) if found is None else Standing(*found)

    async def _principal(self, row: Any) -> Principal:
        """Say who speaks; the right to speak to an agent comes with each turn."""
        name = external(row["channel"], row["sender"])
        person = await self.host.persons.find(KIND, name)
        operator = row["sender"] in self.section.operators
        rights = Grants({"route": ("agents:write",)} if operator else {})
        return Principal(KIND, name, rights, person="" if person is None else person.id)

    async def _said(self, question: Question, agent: Agent) -> Said:
        channel = question.row["channel"]
        try:
            return await self._turn(question, agent)
        except PASSED_ON:
            raise
        except QuotaExceeded as error:
            log.warning("channel %s: %s", channel, error)
            return Said(SPENT)
        except AgentHostError as error:
            log.warning("channel %s: a turn failed: %s", channel, error)
            return Said(APOLOGY)

    async def _turn(self, question: Question, agent: Agent) -> Said:
        host, section = self.host, self.section
        row, who, standing, lost = question
        session = await self.session(row, agent, standing.epoch)
        spoken_to = Grants({"agent_message": (agent.id, agent.name)})
        speaker = Principal(KIND, who.name, spoken_to, person=who.person)
        pools = self._pool(row["sender"])
        labels = UNTRUSTED | HEARD_BY[Room(row["room"])]
        context = Context(speaker, labels=labels, pools=pools)
        # The same message is the same turn, whenever and however often it is started.
        turn_id = str(uuid5(NAMESPACE_URL, f"agenthost:{agent.id}:{row['key']}"))
        most = section.max_cost_usd
        options = TurnOptions(
            turn_id=turn_id,
            digest=row["key"],
            session_id=session.id,
            max_cost_micro_usd=None if most is None else round(most * MICRO),
            instructions="\n\n".join(filter(None, (section.instructions, lost))),
            model=section.model,
        )
        message, notice = await self._asked(row, agent, context)
        # What several say is told apart by their names, once it is whole.
        alone = len(self.agents(row, standing)) == 1 and not section.prefix_agent_name
        turn = host.turns.start(context, agent, message, options)
        try:
            async with self._drafts.shown(row, turn) if alone else nullcontext():
                text = (await turn.result()).text
        except Interrupted:
            watcher = await host.turns.resume(context, agent, turn_id)
            text = (await watcher.turn.result()).text
        files = await self._files.sent_with(text, agent, context)
        kept_back = ""
        if Room(row["room"]) is not Room.DIRECT:
            kept_back = notice_of(await host.journal.said(session.id, turn_id))
        shown = (notice, text, kept_back)
        return Said("\n\n".join(filter(str.strip, shown)), files)

    async def _asked(
        self, row: Any, agent: Agent, context: Context
    ) -> tuple[Message, str]:
        """Make of a message what the agent is asked; say what its sender is told."""
        if not row["has_files"]:
            return user_message(row["text"]), ""
        taken = await self._files.taken(row, agent, context)
        asked = user_message(f"{row['text']}\n\n{taken.lines}".strip())
        return replace(asked, parts=(*asked.parts, *taken.pictures)), taken.notice

    def _pool(self, sender: str) -> tuple[Pool, ...]:
        """Give what somebody may still spend today."""
        most = self.section.max_cost_usd_per_user
        if most is None:
            return ()
        day = int(self.host.clock.time() // DAY)
        if len(self._pools) >= MOST_POOLS:
            self._pools = {
                key: pool for key, pool in self._pools.items() if key[1] == day
            }
        pool = self._pools.setdefault((sender, day), Pool(round(most * MICRO)))
        return (pool,)


def _named(name: str, text: str) -> str:
    """Put the agent's name before what it says."""
    return f"**{name}:**\n\n{text}" if "\n" in text else f"**{name}:** {text}"
