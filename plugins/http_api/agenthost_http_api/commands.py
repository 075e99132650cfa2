"""Chat commands: what a message that starts with ``/`` does instead of a turn.

Those of this plugin are offered as any plugin offers its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID

from agenthost import (
    Agent,
    AgentHostError,
    Answer,
    Call,
    ChatCommand,
    Host,
    InvalidInput,
    ModelFacts,
    PluginError,
    Reports,
    RouteGroup,
    ToolContext,
    authorize,
    did_you_mean,
    within,
)

from .command_shapes import CommandAnswer, GiveCommand
from .keeping import pin, undo, unpin
from .messages import COST
from .shapes import CommandList

routes = RouteGroup("http_api.commands")

_log = logging.getLogger(__name__)

COMPACTION_SECONDS = 600.0
"""A summary may wait long for the session."""


async def _new(call: ToolContext, agent: Agent, _: str) -> str:
    await call.host.turns.reset(agent, keep=True)
    return "A new session has begun; the one before is in the archive."


async def _compact(call: ToolContext, agent: Agent, _: str) -> str:
    outcome = await call.host.compaction.of_agent(agent)
    if not outcome.summarised:
        return "The session is short; nothing to compact."
    return f"{outcome.summarised} messages summarized, {outcome.kept} kept."


async def _model(call: ToolContext, agent: Agent, name: str) -> str:
    if not name:
        provider, model = call.host.agents.model_of(agent)
        return f"The model is {model} at {provider}. Change it with /model <name>."
    # Who may speak to an agent may not for that change it.
    authorize(call.principal, "route", "agents:write")
    choice = await call.host.agents.set_model(call, agent, None, name)
    provider, model = choice.target.names
    return "\n".join([f"The model is now {model} at {provider}.", *choice.notices])


async def _stop(call: ToolContext, agent: Agent, _: str) -> str:
    stopped = await call.host.turns.stop(agent, "stopped by /stop")
    return "Stopped." if stopped else "Nothing was running."


async def _usage(call: ToolContext, agent: Agent, _: str) -> str:
    total = await call.host.usage.of_agent(agent.id)
    return (
        f"{total.input_tokens} input and {total.output_tokens} output tokens in "
        f"{total.requests} calls, {total.cost_micro_usd / 1_000_000:.6f} USD."
    )


async def _think(call: ToolContext, agent: Agent, _: str) -> str:
    session = await call.host.sessions.of_agent(agent.id)
    await call.host.sessions.set_thinking(session.id, on=not session.thinking)
    state = "off" if session.thinking else "on"
    but = ""
    # An agent whose provider has gone may still be told what to do with the next.
    with suppress(AgentHostError):
        but = _but(call.host.agents.target_of(agent).model, state)
    return f"Extended thinking is now {state}{but}."


def _but(model: ModelFacts, state: str) -> str:
    """Say what the switch does not do with this model."""
    if model.always_thinks:
        how = "as it will" if model.thinking == "none" else "if only a little"
        return f", but {model.id} always thinks, {how}" if state == "off" else ""
    if model.thinking != "none":
        return ""
    able = "has no way to be told so" if model.supports_thinking else "does not think"
    return f", but {model.id} {able}: choose another with /model <name>"


async def _models(call: ToolContext, agent: Agent, _: str) -> str:
    provider, _model_name = call.host.agents.model_of(agent)
    spec = call.host.models.providers[provider]
    names = [model.id for model in spec.facts.models]
    if not names:
        return f"{provider} lists no models; any name it knows can be used."
    return f"Models of {provider}:\n" + "\n".join(f"- {name}" for name in names)


async def _providers(call: ToolContext, _agent: Agent, _: str) -> str:
    rows = [
        f"- {slug}: {call.host.models.auth_status(slug)}"
        for slug in sorted(call.host.models.providers)
    ]
    return "Providers:\n" + "\n".join(rows)


async def _help(call: ToolContext, _agent: Agent, _: str) -> str:
    rows = [
        f"- {f'/{each.name} {each.argument}'.strip()}: {each.help}"
        for _, each in sorted(_offered(call.host).values(), key=lambda e: e[1].name)
    ]
    return "Commands:\n" + "\n".join(rows)


def built_in() -> Iterable[ChatCommand]:
    """The commands of this plugin."""
    yield ChatCommand("new", "Begin anew; this conversation is kept", _new)
    yield ChatCommand(
        "compact", "Summarise older messages", _compact, timeout=COMPACTION_SECONDS
    )
    yield ChatCommand("undo", "Take the latest summary back", undo)
    yield ChatCommand("pin", "Keep a message whole; the last answer", pin, "<number>")
    yield ChatCommand("unpin", "Let it be summarised again", unpin, "<number>")
    yield ChatCommand("model", "Show or switch the model", _model, "<name>")
    yield ChatCommand("stop", "Stop the running turn", _stop)
    yield ChatCommand("usage", "Show tokens and cost", _usage)
    yield ChatCommand("think", "Extended thinking on or off", _think)
    yield ChatCommand("models", "List the models of the provider", _models)
    yield ChatCommand("providers", "List the providers", _providers)
    yield ChatCommand("help", "List the commands", _help)


async def run_command(call: ToolContext, agent: Agent, line: str) -> str:
    """Carry out ``/name rest`` and return the answer's text.

    Raises:
        InvalidInput: No such command; the message lists what there is.
        AgentHostError: What the command says, or that it took too long or failed.
    """
    name, _, rest = line[1:].strip().partition(" ")
    commands = _offered(call.host)
    if name.lower() not in commands:
        hint = did_you_mean(name, commands)
        known = ", ".join(f"/{known}" for known in commands)
        raise InvalidInput("", f"unknown command /{name}{hint} (known: {known})")
    key, command = commands[name.lower()]
    try:
        with call.host.plugins.charges.timed(key):
            doing = command.run(call, agent, rest.strip())
            return str(await within(command.timeout, f"/{command.name}", doing))
    except AgentHostError:
        raise
    except Exception as error:
        _log.exception("/%s of %s failed", command.name, key)
        failed = f"/{command.name} failed for an internal reason, see the log"
        raise PluginError(failed) from error


@routes.get(
    "/api/commands", scope="system:read", cost=1, answer=CommandList, direct=True
)
async def list_commands(call: Call) -> Answer:
    """List the commands of a chat."""
    commands = [command for _, command in _offered(call.host).values()]
    return {
        "commands": [
            {"name": each.name, "argument": each.argument, "help": each.help}
            for each in sorted(commands, key=lambda each: each.name)
        ]
    }


@routes.post(
    "/api/agents/<agent_id>/command",
    scope="agents:message",
    cost=COST,
    body=GiveCommand,
    answer=CommandAnswer,
    direct=True,
)
async def give_command(call: Call, agent_id: UUID, body: GiveCommand) -> Answer:
    """Do what a line of a chat that begins with ``/`` says, and tell its answer."""
    agent = call.host.agents.get(str(agent_id))
    context = ToolContext.of(call.context, call.host, Reports())
    return {"response": await run_command(context, agent, body.command)}


def _offered(host: Host) -> dict[str, tuple[str, ChatCommand]]:
    """The commands by name, each after the key of its plugin."""
    offers = host.registry.offered(ChatCommand)
    return {each.name: (key, each) for key, each in offers if host.plugins.healthy(key)}
