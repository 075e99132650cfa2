"""``GET /v1/models``: agents as models, listed as OpenAI or Anthropic would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenthost import Agent, Answer, Call, Host, Reply, RouteGroup, timestamp

from .errors import ModelNotFound, written
from .naming import PREFIX, model_id, named
from .shapes import AnthropicModel, AnthropicModels, Missing, Model, Models

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


@routes.get(
    "/v1/models/<path:model_id>",
    answer=Model | AnthropicModel,
    others={404: Missing},
    **SERVED,
)
async def get_model(call: Call, model_id: str) -> Answer:
    """Show an agent as a model, by its listed id."""
    theirs = VERSION in call.headers
    try:
        agent = _listed(call.host, model_id)
    except ModelNotFound as error:
        if not theirs:
            raise
        return _refused(call, error)
    return _as_anthropic(agent) if theirs else _shown(agent)


def _listed(host: Host, model_id: str) -> Agent:
    if not model_id.startswith(PREFIX):
        raise ModelNotFound(model_id)
    return named(host, model_id)


def _refused(call: Call, error: ModelNotFound) -> Reply:
    """Answer as the messages would, which have their own shape of errors."""
    from .messages.errors import written as as_anthropic

    told = {**as_anthropic(call.host, error), "request_id": call.request_id}
    return Reply(told, error.status, {"request-id": call.request_id})


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
        "lifecycle": "active",
    }
