"""What a message would cost: its first model call at most, its turn likely."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated
from uuid import UUID

from agenthost import (
    Agent,
    Answer,
    Call,
    ChatRequest,
    Entry,
    Host,
    Message,
    NotFound,
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
    from .models import RoutedModels

    host, models = call.host, call.host.models
    if not isinstance(models, RoutedModels):
        raise NotFound("quote", "another plugin chooses models; it has no prices")
    agent = host.agents.get(str(agent_id))
    session_id = str(body.session_id or agent.session_id)
    session = await host.sessions.get(session_id, agent.id)
    said = await host.sessions.history(session)
    target = host.agents.target_of(agent)
    messages = (*said.messages, user_message(body.message))
    request = _request(host, agent, target, messages)
    if names_files(request):
        request = await handed(request, target.model, host.uploads, agent.id)
    prompt, answer, most = models.quote(target, request)
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
    return {
        "model": "/".join(target.names),
        "next_call": {
            "input_tokens": prompt,
            "output_tokens": answer,
            "cost_usd": most / MILLION,
        },
        "turn": {"calls": calls, "cost_usd": likely / MILLION, "turns": len(turns)},
    }


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
