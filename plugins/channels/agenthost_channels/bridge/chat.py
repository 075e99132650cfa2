"""Commands in a channel: what a message that begins with ``/`` does.

They are the WebSocket's, of the conversation in which they are given: a command that
would touch the agent's own session, or another's, is not among them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from agenthost import (
    Agent,
    AgentHostError,
    ChatCommand,
    Context,
    Principal,
    Reports,
    Session,
    ToolContext,
    authorize,
    did_you_mean,
    within,
)

from . import writes
from .answering import Answering, Standing
from .binding import choosable


class Given(NamedTuple):
    """A command as it was given: by whom and where, to which agent."""

    answering: Answering
    row: Any
    who: Principal
    agent: Agent
    standing: Standing
    rest: str

    async def session(self) -> Session:
        """Open the session of its conversation."""
        return await self.answering.session(self.row, self.agent, self.standing.epoch)

    @property
    def choosable(self) -> Sequence[str]:
        """The agents that may be chosen there."""
        place = (self.row["account"], self.row["peer"], self.row["thread"])
        return choosable(self.answering.section, place)

    async def change(self, agent: str | None = None, *, anew: bool = False) -> None:
        """Change its conversation."""
        change = partial(writes.change, row=self.row, agent=agent, anew=anew)
        await self.answering.host.store.write(change)


Doing: TypeAlias = Callable[[Given], Awaitable[str]]
SHARED = ("model", "models", "usage")
"""Commands of all chats that name no session; the last is for operators."""


async def carry_out(
    answering: Answering, row: Any, who: Principal, agent: Agent, standing: Standing
) -> str:
    """Do what a line says and tell what came of it."""
    name, _, rest = row["text"][1:].strip().partition(" ")
    # Telegram names the bot behind the command in groups.
    name = name.partition("@")[0].lower()
    given = Given(answering, row, who, agent, standing, rest.strip())
    shared = _shared(answering)
    try:
        if name in OWN:
            return await OWN[name][1](given)
        if name in shared:
            return await _given(given, shared[name])
    except AgentHostError as error:
        return error.message
    known = [*OWN, *shared]
    hint = did_you_mean(name, known)
    return f"There is no command /{name}{hint}. /help lists what there is."


async def _given(given: Given, command: ChatCommand) -> str:
    if command.name == "usage":
        authorize(given.who, "route", "agents:write")
    call = ToolContext.of(Context(given.who), given.answering.host, Reports())
    doing = command.run(call, given.agent, given.rest)
    return str(await within(command.timeout, f"/{command.name}", doing))


async def _new(given: Given) -> str:
    await given.change(anew=True)
    return "A new conversation has begun; the one before is kept."


async def _stop(given: Given) -> str:
    return await given.answering.stop(given.row)


async def _compact(given: Given) -> str:
    session = await given.session()
    compaction = given.answering.host.compaction
    outcome = await compaction.of_agent(given.agent, session.id)
    if not outcome.summarised:
        return "The conversation is short; nothing to compact."
    return f"{outcome.summarised} messages summarized, {outcome.kept} kept."


async def _think(given: Given) -> str:
    session = await given.session()
    on = not session.thinking
    await given.answering.host.sessions.set_thinking(session.id, on=on)
    return f"Extended thinking is now {'on' if on else 'off'} in this conversation."


async def _agents(given: Given) -> str:
    now = given.agent.name
    names = [f"- {n}{' (answers now)' * (n == now)}" for n in given.choosable]
    return "\n".join(["Agents:", *names])


async def _agent(given: Given) -> str:
    name, names = given.rest, given.choosable
    if not name:
        return f"{given.agent.name} answers here. Change it with /agent <name>."
    if name not in names:
        hint = did_you_mean(name, names)
        return f"There is no agent {name} to choose{hint}. /agents lists them."
    given.answering.host.agents.find(name)
    await given.change(name)
    return f"{name} answers here from now on."


async def _help(given: Given) -> str:
    rows = {name: said for name, (said, _) in OWN.items()}
    rows |= {
        f"{each.name} {each.argument}".strip(): each.help
        for each in _shared(given.answering).values()
    }
    return "\n".join(
        ["Commands:", *(f"- /{each}: {rows[each]}" for each in sorted(rows))]
    )


OWN: Mapping[str, tuple[str, Doing]] = {
    "new": ("Begin anew; this conversation is kept", _new),
    "stop": ("Stop the answer that is being made", _stop),
    "compact": ("Summarise older messages", _compact),
    "think": ("Extended thinking on or off", _think),
    "agents": ("List the agents that can answer here", _agents),
    "agent": ("Show or choose the agent that answers here", _agent),
    "help": ("List the commands", _help),
}
"""Commands of a conversation, each with its help."""


def _shared(answering: Answering) -> dict[str, ChatCommand]:
    """Find commands of all chats that may be given here."""
    host = answering.host
    offered = host.registry.offered(ChatCommand)
    healthy = [each for key, each in offered if host.plugins.healthy(key)]
    return {each.name: each for each in healthy if each.name in SHARED}
