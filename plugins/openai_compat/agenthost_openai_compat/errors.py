"""Errors as OpenAI's clients read them."""

from __future__ import annotations

from typing import Any

from agenthost import AgentHostError, Host, NotFound

from .settings import OpenAISection

TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
"""By status; other refusals are invalid requests, other failures the server's."""


class ModelNotFound(NotFound):
    """No agent is called so."""

    code = "model_not_found"
    field = "model"

    def __init__(self, model: str) -> None:
        super().__init__("model", model[:256])


def written(host: Host, error: AgentHostError) -> dict[str, Any]:
    """Write the body of an error, as ``[openai] error_objects`` says."""
    param = getattr(error, "field", "") or None
    told = {"type": _type_of(error), "param": param, "code": error.code, **error.facts}
    if host.settings(OpenAISection).error_objects:
        return {"error": {"message": error.message, **told}}
    return {"error": error.message, **told}


def _type_of(error: AgentHostError) -> str:
    usual = "server_error" if error.status >= 500 else "invalid_request_error"
    return TYPES.get(error.status, usual)
