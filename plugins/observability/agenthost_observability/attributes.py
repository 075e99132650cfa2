"""What spans say of an activity, in the names of OpenTelemetry's GenAI conventions.

Names without ``gen_ai`` are ours. None of it is content: the system prompt is told by
its hash, a tool that does not exist by ``unknown``, an error by its kind.

Source: semantic-conventions-genai, docs/gen-ai/gen-ai-spans.md and
gen-ai-agent-spans.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from types import MappingProxyType
from urllib.parse import urlsplit

from agenthost import (
    Activity,
    AgentView,
    Attempt,
    ChatRequest,
    Completion,
    Denied,
    Finish,
    NotFound,
    Tool,
    ToolUse,
    TurnResult,
    Usage,
)

from .endings import first_chunk

Value = str | bool | int | float | tuple[str, ...]
Pair = tuple[str, Value | None]

OPERATION = "gen_ai.operation.name"
UNKNOWN = "unknown"
HASH_DIGITS = 16

PROVIDERS: Mapping[str, str] = MappingProxyType(
    {
        "bedrock": "aws.bedrock",
        "gemini": "gcp.gemini",
        "mistral": "mistral_ai",
        "xai": "x_ai",
    }
)
FINISHES: Mapping[Finish, str] = MappingProxyType(
    {
        Finish.STOP: "stop",
        Finish.TOOL_USE: "tool_call",
        Finish.LENGTH: "length",
        Finish.CONTENT_BLOCKED: "content_filter",
    }
)


def name(activity: Activity) -> str:
    """Name the span."""
    match activity.subject:
        case ChatRequest():
            return f"chat {_model(activity)}"
        case ToolUse():
            return f"execute_tool {_tool_name(activity)}"
        case _:
            agent = activity.context.agent
            return f"invoke_agent {agent.name}" if agent else "invoke_agent"


def at_start(activity: Activity) -> dict[str, Value]:
    """Tell what is known when it begins."""
    return _present([*_who(activity), *_beginning(activity)])


def at_end(activity: Activity) -> dict[str, Value]:
    """Tell what came of it, failure apart."""
    return _present(_ending(activity))


def of_try(names: tuple[str, str], outcome: str) -> dict[str, Value]:
    """Tell what a try of a model call asked, a slug and a model, and how it ended."""
    return {
        "gen_ai.provider.name": provider(names[0]),
        "gen_ai.request.model": names[1],
        "agenthost.outcome": outcome,
    }


def server(activity: Activity) -> Iterator[Pair]:
    """Name the server that was asked first."""
    if activity.target is None:
        return
    address = urlsplit(activity.target.provider.facts.base_url)
    if address.hostname:
        yield "server.address", address.hostname
        yield "server.port", address.port or (80 if address.scheme == "http" else 443)


def provider(slug: str) -> str:
    """The conventions' name of a provider; its slug where they have none."""
    return PROVIDERS.get(slug, slug)


def _present(pairs: Iterator[Pair] | list[Pair]) -> dict[str, Value]:
    return {key: value for key, value in pairs if value is not None}


def _who(activity: Activity) -> Iterator[Pair]:
    context = activity.context
    yield "agenthost.turn.id", context.turn_id
    if context.caller is not None:
        yield "agenthost.caller.kind", context.caller.kind
        yield "agenthost.caller.name", context.caller.name
    if context.agent is not None:
        yield "gen_ai.agent.id", context.agent.id
        yield "gen_ai.agent.name", context.agent.name
        yield "gen_ai.conversation.id", context.agent.session_id


def _beginning(activity: Activity) -> Iterator[Pair]:
    match activity.subject:
        case ChatRequest() as request:
            yield OPERATION, "chat"
            yield from _request(activity, request)
        case ToolUse() as call:
            yield OPERATION, "execute_tool"
            yield from _tool(activity, call)
        case _:
            yield OPERATION, "invoke_agent"
            yield from _agent(activity, activity.context.agent)


def _agent(activity: Activity, agent: AgentView | None) -> Iterator[Pair]:
    host = activity.host
    # An agent that was deleted meanwhile has no model any more.
    with suppress(NotFound):
        known = host.agents.get(agent.id if agent else "")
        slug, model = host.agents.model_of(known)
        yield "gen_ai.provider.name", provider(slug)
        yield "gen_ai.request.model", model
    request_id = activity.context.log_fields.get("request_id")
    yield "agenthost.request.id", str(request_id) if request_id else None


def _request(activity: Activity, request: ChatRequest) -> Iterator[Pair]:
    yield "gen_ai.request.model", _model(activity)
    yield "gen_ai.request.max_tokens", request.max_tokens
    yield "gen_ai.request.temperature", request.temperature
    yield "gen_ai.request.top_p", request.top_p
    yield "gen_ai.request.seed", request.seed
    yield "gen_ai.request.stop_sequences", request.stop or None
    yield "gen_ai.output.type", None if request.response_format is None else "json"
    yield "gen_ai.request.stream", request.stream
    digest = sha256(request.system.encode("utf-8", "surrogatepass")).hexdigest()
    yield "agenthost.prompt.hash", digest[:HASH_DIGITS]
    if activity.target is None:
        return
    yield "gen_ai.provider.name", provider(activity.target.provider.facts.slug)
    yield from server(activity)


def _tool(activity: Activity, call: ToolUse) -> Iterator[Pair]:
    tool = _known(activity)
    yield "gen_ai.tool.name", _tool_name(activity)
    yield "gen_ai.tool.call.id", call.id
    yield "gen_ai.tool.type", "function"
    if tool is not None:
        yield "gen_ai.tool.description", tool.definition.description
        yield "agenthost.tool.effect", tool.effect


def _ending(activity: Activity) -> Iterator[Pair]:
    match activity.result:
        case Completion() as completion:
            yield "gen_ai.response.finish_reasons", (FINISHES[completion.finish],)
            yield "gen_ai.response.id", completion.id or None
            yield "gen_ai.response.time_to_first_chunk", first_chunk(activity)
            yield from _usage(completion.usage)
        case TurnResult() as result:
            yield from _usage(result.usage)
            yield "agenthost.cost.micro_usd", result.cost_micro_usd
            yield "agenthost.model_calls", result.iterations
    if activity.spent is not None:
        yield "agenthost.cost.micro_usd", activity.spent.cost_micro_usd
        yield "gen_ai.response.model", activity.spent.model
        yield "agenthost.response.provider", provider(activity.spent.provider)
    if activity.failed:
        yield "agenthost.failed_attempts", tuple(map(_attempt, activity.failed))
    if isinstance(activity.subject, ToolUse):
        denied = isinstance(activity.error, Denied)
        yield "agenthost.policy.decision", "deny" if denied else "allow"


def _attempt(attempt: Attempt) -> str:
    target = attempt.target
    return f"{target.provider.facts.slug}/{target.model.id}: {attempt.outcome}"


def _usage(usage: Usage) -> Iterator[Pair]:
    yield "gen_ai.usage.input_tokens", usage.input_tokens
    yield "gen_ai.usage.output_tokens", usage.output_tokens
    yield "gen_ai.usage.cache_read.input_tokens", usage.cached_tokens
    yield "gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens
    yield "gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens


def _model(activity: Activity) -> str:
    return UNKNOWN if activity.target is None else activity.target.model.id


def _known(activity: Activity) -> Tool | None:
    """The tool called; a name that a model made up is content."""
    called = activity.subject.name if isinstance(activity.subject, ToolUse) else ""
    return activity.host.toolbox.tools.get(called)


def _tool_name(activity: Activity) -> str:
    tool = _known(activity)
    return UNKNOWN if tool is None else tool.definition.name
