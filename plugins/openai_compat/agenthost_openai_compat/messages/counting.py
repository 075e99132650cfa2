"""An estimate of what a request's prompt takes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agenthost import Answer, Call, Target, ToolDefinition, TurnOptions
from agenthost_chat.history import estimate_tokens

from ..passthrough import model_named
from ..reading import Asked
from .asked import read, said
from .asking import refuse_unserved, thinking_of, tools_of
from .errors import check_version
from .shapes import Conversation

CHARACTERS = 4
"""Of a token, on average."""
OWN_WORDS = 300
"""Characters that the daemon adds to an agent's prompt."""


async def counted(call: Call, body: Conversation) -> Answer:
    """Count as no model does, the agent's own prompt and tools with it.

    Raises:
        AgentHostError: The request could not be answered either.
    """
    thinking_of(body)
    target = model_named(call, body.model)
    if target is not None:
        return await _of_model(call, target, body)
    request = await read(call, body, fetching=False)
    agent, asked = request.agent, request.asked
    manifest, host = agent.manifest, call.host
    own = host.toolbox.rights_of(agent.id, manifest).tools
    beside = TurnOptions(tools=request.tools).beside(own)
    shown = beside if host.agents.target_of(agent).model.supports_tools else ()
    words = [manifest.model.system_prompt, manifest.description]
    return _estimate(asked, shown, OWN_WORDS + sum(map(len, words)))


async def _of_model(call: Call, target: Target, body: Conversation) -> Answer:
    check_version(call.headers)
    refuse_unserved(body)
    tools, _ = tools_of(body)
    asked, _ = await said(call, body, {}, fetching=False)
    return _estimate(asked, tools if target.model.supports_tools else ())


def _estimate(
    asked: Asked, tools: Iterable[ToolDefinition], characters: int = 0
) -> dict[str, Any]:
    words = [asked.instructions]
    for tool in tools:
        words += [tool.name, tool.description, json.dumps(dict(tool.parameters))]
    characters += sum(map(len, words))
    tokens = estimate_tokens((*asked.history, asked.message))
    return {"input_tokens": tokens + characters // CHARACTERS}
