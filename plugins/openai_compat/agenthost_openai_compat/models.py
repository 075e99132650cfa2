"""``GET /v1/models``: agents as models, listed as OpenAI or Anthropic would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenthost import Agent, Answer, Call, RouteGroup, timestamp

from .errors import ModelNotFound, written
from .naming import PREFIX, model_id, named
from .shapes import AnthropicModel, AnthropicModels, Model, Models

routes = RouteGroup("openai_models", errors=written)

OWNER = "agenthost"
VERSION = "anthropic-version"
KEY = "x-api-key"
SERVED: Mapping[str, Any] = {
    "scope": "agents:read",
    "headers": {VERSION: "Answer as Anthropic would", KEY: "Instead of Authorization"},
    "key_header": KEY,
    "direct": True,
}


@routes.get("/v1/models", answer=Models | AnthropicModels, **SERVED)
async def list_models(call: Call) -> Answer:
    """List the agents as models, oldest first."""
    agents = call.host.agents.list()
    if VERSION in call.headers:
        return _anthropic_list(agents)
    return {"object": "list", "data": [_shown(agent) for agent in agents]}


@routes.get("/v1/models/<path:model_id>", answer=Model | AnthropicModel, **SERVED)
async def get_model(call: Call, model_id: str) -> Answer:
    """Show an agent as a model, by its listed id."""
    if not model_id.startswith(PREFIX):
        raise ModelNotFound(model_id)
    agent = named(call.host, model_id)
    return _as_anthropic(agent) if VERSION in call.headers else _shown(agent)


def _shown(agent: Agent) -> Model:
    created = int(agent.created_at)
    told: Model = {
        "id": model_id(agent),
        "object": "model",
        "created": created,
        "owned_by": OWNER,
    }
    return told


def _anthropic_list(agents: Sequence[Agent]) -> AnthropicModels:
    data = [_as_anthropic(agent) for agent in agents]
    return {
        "data": data,
        "has_more": False,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }


def _as_anthropic(agent: Agent) -> AnthropicModel:
    return {
        "type": "model",
        "id": model_id(agent),
        "display_name": agent.name,
        "created_at": timestamp(agent.created_at),
    }
