"""What of a request's settings each dialect writes, and what becomes of the rest.

A setting that a model does not take is left out where the answer is worth the same
without it, and refused by its name where it is not. A form of the answer is asked for
in words where a model cannot be held to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NoReturn

from agenthost import (
    ChatRequest,
    Endpoint,
    ModelSettings,
    ProviderError,
    ProviderFault,
)

from .forms import closed_form, in_words

CHOICES = frozenset({"auto", "none", "required"})
FORCED = frozenset({"required", "named"})
EVERY_CHOICE = CHOICES | {"named"}
SAMPLING = frozenset({"stop", "top_p"})
# A model of Anthropic's that thinks so cannot be made to call a tool.
THINKS = frozenset({"adaptive", "budget"})
NOTHING = ModelSettings()
MEANT = {
    "stop": "the model takes no stop sequences",
    "logprobs": "the model does not tell how likely its tokens were",
}
"""What an answer is not worth the same without, and why it is refused."""


class NotTaken(ProviderError):
    """A model does not take what is asked: it was not asked, and who asks mends it."""

    status = 400

    def __init__(self, provider: str, field: str, why: str) -> None:
        detail = f"{field}: {why}; leave it out, or choose another model"
        super().__init__(ProviderFault.BAD_REQUEST, provider, detail)
        self.field = field


@dataclass(frozen=True, slots=True)
class Takes:
    """What a dialect has words for.

    Args:
        settings: The settings that it writes, beside the choice of a tool and the form
            of the answer.
        choices: Which choices of a tool it writes: auto, none, required and named.
        without: Whether a model that is offered no tools calls none.
        held: Whether a model can be held to a schema, where its row does not say.
        held_beside_tools: Whether it can be where tools are offered.
        closed: Whether it can be to objects alone that name all their properties.
        one_sampler: Whether a temperature leaves no place for ``top_p``.
        unthinking: Whether a model that is made to call a tool must not think.
    """

    settings: frozenset[str] = SAMPLING
    choices: frozenset[str] = EVERY_CHOICE
    without: bool = True
    held: bool = True
    held_beside_tools: bool = True
    closed: bool = False
    one_sampler: bool = False
    unthinking: bool = False


CLAUDE = Takes(
    SAMPLING | {"parallel_tool_calls", "user"},
    held=False,
    closed=True,
    one_sampler=True,
    unthinking=True,
)
TAKES: Mapping[str, Takes] = MappingProxyType(
    {
        "openai-chat": Takes(
            SAMPLING | {"logprobs", "parallel_tool_calls", "seed", "user"}
        ),
        "openai-responses": Takes(
            frozenset({"logprobs", "parallel_tool_calls", "top_p", "user"})
        ),
        "anthropic-messages": CLAUDE,
        "gemini-generateContent": Takes(
            SAMPLING | {"logprobs", "seed"}, held_beside_tools=False
        ),
        "cohere-v2": Takes(
            SAMPLING | {"seed"},
            frozenset({"none", "required"}),
            held_beside_tools=False,
        ),
        "bedrock-converse": replace(
            CLAUDE,
            settings=SAMPLING,
            choices=frozenset({"auto", "required", "named"}),
            without=False,
        ),
        "ollama": Takes(
            SAMPLING | {"logprobs", "seed"}, frozenset(), held_beside_tools=False
        ),
        "replicate-predictions": Takes(
            frozenset({"top_p"}), frozenset(), held=False, held_beside_tools=False
        ),
    }
)
"""By dialect."""


def fitted(
    request: ChatRequest, endpoint: Endpoint, takes: Takes, *, samples: bool = True
) -> ChatRequest:
    """Keep of a request's settings what its model takes.

    Args:
        request: What is asked for; one without settings comes back as it is.
        endpoint: Whose model it is, and its row.
        takes: What the dialect writes.
        samples: Whether the model takes a temperature.

    Raises:
        ProviderError: BAD_REQUEST, it does not take a setting without which the answer
            would be another.
    """
    asked = request.asked.keys()
    if not asked:
        return request
    for name, why in MEANT.items():
        if name in asked and name not in takes.settings:
            _refuse(endpoint, name, why)
    if "logprobs" in asked and not samples:
        _refuse(endpoint, "logprobs", MEANT["logprobs"])
    lost = asked - takes.settings - {"tool_choice", "response_format"}
    if not samples or (takes.one_sampler and request.temperature is not None):
        lost |= {"top_p"}
    if not request.tools:
        lost |= {"parallel_tool_calls"}
    request = replace(request, **{name: getattr(NOTHING, name) for name in lost})
    if request.tool_choice:
        request = _chosen(request, endpoint, takes)
    if request.response_format is not None and not _held(request, endpoint, takes):
        request = in_words(request)
    return request


def _chosen(request: ChatRequest, endpoint: Endpoint, takes: Takes) -> ChatRequest:
    """Write the choice of a tool as the dialect has it."""
    choice = request.tool_choice
    kind = choice if choice in CHOICES else "named"
    if kind in FORCED:
        return _forced(request, endpoint, takes)
    if request.tools and kind in takes.choices:
        return request
    if kind == "none" and request.tools:
        if not takes.without:
            _refuse(endpoint, "tool_choice", "the model cannot be kept from its tools")
        request = replace(request, tools=())
    return replace(request, tool_choice="")


def _forced(request: ChatRequest, endpoint: Endpoint, takes: Takes) -> ChatRequest:
    choice = request.tool_choice
    kind = choice if choice in CHOICES else "named"
    wanted = [tool for tool in request.tools if choice in {"required", tool.name}]
    if not wanted:
        _refuse(endpoint, "tool_choice", f"no tool is offered for {choice!r}")
    row = endpoint.model
    if takes.unthinking and row is not None and row.thinking in THINKS:
        if row.always_thinks:
            _refuse(endpoint, "tool_choice", "the model cannot be made to call a tool")
        request = replace(request, thinking_budget=0)
    if kind in takes.choices:
        return request
    if "required" not in takes.choices:
        _refuse(endpoint, "tool_choice", "the model cannot be made to call a tool")
    # One that is offered alone is the one that must be called.
    return replace(request, tools=tuple(wanted), tool_choice="required")


def _held(request: ChatRequest, endpoint: Endpoint, takes: Takes) -> bool:
    """Tell whether the model can be held to the form that is asked for."""
    row, schema = endpoint.model, request.response_format or {}
    known = takes.held if row is None or row.structured is None else row.structured
    if not known or schema.get("type") != "object":
        return False
    if request.tools and not takes.held_beside_tools:
        return False
    return not takes.closed or closed_form(schema) is not None


def _refuse(endpoint: Endpoint, name: str, why: str) -> NoReturn:
    raise NotTaken(endpoint.provider, name, why)
