"""Delivery into a session: what an agent said elsewhere is said there too."""

from __future__ import annotations

from dataclasses import replace
from uuid import NAMESPACE_OID, uuid5

from agenthost import (
    NOTHING,
    Agent,
    Conflict,
    Host,
    Message,
    Parcel,
    Role,
    Step,
    Text,
    TurnRecord,
    TurnState,
)
from agenthost_values.value_class import value_class

from .rights import check_message

NO_WORDS = "(It ended without a word.)"


@value_class
class _Spoken:
    turn_id: str
    session_id: str
    seq: int


async def append(host: Host, parcel: Parcel) -> None:
    """Write question and answer into a session, as a turn that is done.

    No model is asked. The next turn of the session knows of it, and who reads the
    session sees where it came from. A parcel that comes twice is written once.

    Raises:
        NotFound: The session, or its agent, is gone.
        Conflict: The session is archived.
        Denied: Whoever asked for it may not speak with the agent.
    """
    agent = await _agent(host, parcel)
    check_message(parcel.context.principal, agent)
    # The same each time, so that a parcel that comes twice is known.
    turn_id = str(uuid5(NAMESPACE_OID, f"{parcel.id}:delivered"))

    async def within(session_id: str) -> None:
        session = await host.sessions.get(session_id, agent.id)
        session.check_open_to(agent.id)
        if await host.journal.find(turn_id) is not None:
            return
        spoken = _Spoken(turn_id, session_id, session.next_seq)
        await host.journal.keep(*_steps(host, parcel, agent, spoken))

    await host.turns.apart(agent, within, parcel.target)
    host.sessions.forget(parcel.target or agent.session_id)


async def _agent(host: Host, parcel: Parcel) -> Agent:
    if not parcel.target:
        named = str(parcel.facts.get("agent_id", ""))
        if not named:
            raise Conflict("no agent did it, so name the session that it goes into")
        return host.agents.get(named)
    session = await host.sessions.get(parcel.target)
    return host.agents.get(session.agent_id)


def _steps(
    host: Host, parcel: Parcel, agent: Agent, where: _Spoken
) -> tuple[Step, ...]:
    text = parcel.text if parcel.text.strip() else NO_WORDS
    labels, now = parcel.context.labels, host.clock.time()
    asked = (
        f"[Told from elsewhere: {parcel.facts['source']} {parcel.facts['source_id']}]"
    )
    question = Step(
        where.session_id,
        where.turn_id,
        now,
        seq=where.seq,
        message=Message(Role.USER, (Text(asked),)),
        opened=agent.id,
        owner=parcel.context.owner,
        writer=host.writer,
        agent_id=agent.id,
        depth=parcel.context.depth,
        labels=labels,
    )
    result = replace(NOTHING, text=text, labels=labels)
    answer = Step(
        where.session_id,
        where.turn_id,
        now,
        seq=where.seq + 1,
        message=Message(Role.ASSISTANT, (Text(text),)),
        owner=parcel.context.owner,
        writer=host.writer,
        agent_id=agent.id,
        depth=parcel.context.depth,
        labels=labels,
        closed=TurnRecord(TurnState.DONE, result),
    )
    return question, answer
