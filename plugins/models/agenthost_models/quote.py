"""What a message would cost: its first model call at most, its turn likely."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from agenthost import (
    Agent,
    Answer,
    Call,
    ChatRequest,
    Entry,
    Host,
    Message,
    Quoted,
    Role,
    RouteGroup,
    Target,
    Usage,
    user_message,
)
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from .estimate import LIKELY_ANSWER, measure
from .handed import handed, names_files
from .price import price

if TYPE_CHECKING:
    from .budget import Budgets

routes = RouteGroup("models")

MILLION = 1_000_000
OWN_WORDS = " " * 512
"""Stands for what the turn engine itself tells a model."""


class AskQuote(BaseModel, defer_build=True):
    """``POST /api/agents/{id}/quote``."""

    message: Annotated[str, Field(min_length=1, max_length=64 * 1024)]
    session_id: UUID | None = Field(
        None, description="A session of the agent, instead of its own"
    )


class AtMost(TypedDict):
    """What the next model call comes to at most."""

    input_tokens: int
    output_tokens: int
    cost_usd: float


class Likely(TypedDict):
    """What the whole turn is likely to come to, by ``turns`` of the session."""

    calls: int
    cost_usd: float
    turns: int


class Quote(TypedDict):
    """What a message would cost; nothing is asked or booked for it."""

    model: str
    next_call: AtMost
    turn: Likely


@routes.post(
    "/api/agents/<agent_id>/quote",
    scope="agents:message",
    cost=5,
    body=AskQuote,
    answer=Quote,
)
async def quote(call: Call, agent_id: UUID, body: AskQuote) -> Answer:
    """Tell what a message would cost, without asking any model."""
    agent = call.host.agents.get(str(agent_id))
    session_id = str(body.session_id or agent.session_id)
    message = user_message(body.message)
    told = await call.host.models.quote(agent, message, session_id)
    return {
        "model": told.model,
        "next_call": {
            "input_tokens": told.input_tokens,
            "output_tokens": told.output_tokens,
            "cost_usd": told.most_micro_usd / MILLION,
        },
        "turn": {
            "calls": told.calls,
            "cost_usd": told.likely_micro_usd / MILLION,
            "turns": told.turns,
        },
    }


async def quoted(
    host: Host, budgets: Budgets, agent: Agent, message: Message, session_id: str
) -> Quoted:
    """Price a message in a session, or in a new one where none is named."""
    session = await host.sessions.get(session_id or agent.session_id, agent.id)
    said = (await host.sessions.history(session)).messages if session_id else ()
    target = host.agents.target_of(agent)
    request = _request(host, agent, target, (*said, message))
    if names_files(request):
        request = await handed(request, target.model, host.uploads, agent.id)
    prompt, answer, most = budgets.quote(target, request)
    # What its turns took before is the best guess for a new session as well.
    turns = _calls(await host.sessions.entries(session))
    calls = math.ceil(sum(turns) / len(turns)) if turns else 1
    total = await host.usage.of_agent(agent.id)
    said_so_far = total.output_tokens / total.requests if total.requests else 0
    usual = min(math.ceil(said_so_far) or LIKELY_ANSWER, answer)
    reads = min(measure(request).likely, prompt)
    # Each call of a turn reads what those before it said.
    likely = sum(
        price(target.model, Usage(reads + n * usual, usual)) for n in range(calls)
    )
    return Quoted(
        model="/".join(target.names),
        input_tokens=prompt,
        output_tokens=answer,
        most_micro_usd=most,
        answer_tokens=usual,
        calls=calls,
        likely_micro_usd=likely,
        turns=len(turns),
    )


def _request(
    host: Host, agent: Agent, target: Target, messages: tuple[Message, ...]
) -> ChatRequest:
    """Write the call as the turn engine will, its own words as so many bytes."""
    manifest = agent.manifest
    rights = host.toolbox.rights_of(agent.id, manifest)
    words = (manifest.model.system_prompt, manifest.description, agent.name, OWN_WORDS)
    request = ChatRequest(
        target.model.upstream_id,
        "\n\n".join(words),
        messages,
        max_tokens=manifest.model.max_tokens or target.model.max_output,
    )
    tools = rights.tools if target.model.supports_tools else ()
    return replace(request, tools=tools)


def _calls(entries: Sequence[Entry]) -> list[int]:
    """Count the model calls of each turn that stands in a session."""
    answers = Counter(
        entry.turn_id
        for entry in entries
        if entry.turn_id and entry.message.role is Role.ASSISTANT
    )
    return list(answers.values())
