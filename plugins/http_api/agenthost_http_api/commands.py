"""Chat commands: what a message that starts with ``/`` does instead of a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from agenthost import Agent, Call, InvalidInput, did_you_mean

Command = Callable[[Call, Agent, str], Awaitable[str]]


async def _new(call: Call, agent: Agent, _: str) -> str:
    await call.host.turns.reset(agent, keep=True)
    return "A new session has begun; the one before is in the archive."


async def _compact(call: Call, agent: Agent, _: str) -> str:
    outcome = await call.host.compaction.of_agent(agent)
    if not outcome.summarised:
        return "The session is short; nothing to compact."
    return f"{outcome.summarised} messages summarized, {outcome.kept} kept."


async def _model(call: Call, agent: Agent, name: str) -> str:
    if not name:
        provider, model = call.host.agents.model_of(agent)
        return f"The model is {model} at {provider}. Change it with /model <name>."
    choice = await call.host.agents.set_model(call.principal, agent, None, name)
    provider, model = choice.target.names
    return "\n".join([f"The model is now {model} at {provider}.", *choice.notices])


async def _stop(call: Call, agent: Agent, _: str) -> str:
    stopped = await call.host.turns.stop(agent, "stopped by /stop")
    return "Stopped." if stopped else "Nothing was running."


async def _usage(call: Call, agent: Agent, _: str) -> str:
    total = await call.host.usage.of_agent(agent.id)
    return (
        f"{total.input_tokens} input and {total.output_tokens} output tokens in "
        f"{total.requests} calls, {total.cost_micro_usd / 1_000_000:.6f} USD."
    )


async def _think(call: Call, agent: Agent, _: str) -> str:
    session = await call.host.sessions.of_agent(agent.id)
    await call.host.sessions.set_thinking(session.id, on=not session.thinking)
    return f"Extended thinking is now {'off' if session.thinking else 'on'}."


async def _models(call: Call, agent: Agent, _: str) -> str:
    provider, _model_name = call.host.agents.model_of(agent)
    spec = call.host.models.providers[provider]
    names = [model.id for model in spec.facts.models]
    if not names:
        return f"{provider} lists no models; any name it knows can be used."
    return f"Models of {provider}:\n" + "\n".join(f"- {name}" for name in names)


async def _providers(call: Call, _agent: Agent, _: str) -> str:
    rows = [
        f"- {slug}: {call.host.models.auth_status(slug)}"
        for slug in sorted(call.host.models.providers)
    ]
    return "Providers:\n" + "\n".join(rows)


COMMANDS: Mapping[str, Command] = {
    "new": _new,
    "compact": _compact,
    "model": _model,
    "stop": _stop,
    "usage": _usage,
    "think": _think,
    "models": _models,
    "providers": _providers,
}


async def run_command(call: Call, agent: Agent, line: str) -> str:
    """Carry out ``/name rest`` and return the answer's text.

    Raises:
        InvalidInput: No such command; the message lists what there is.
    """
    name, _, rest = line[1:].strip().partition(" ")
    command = COMMANDS.get(name.lower())
    if command is None:
        hint = did_you_mean(name, COMMANDS)
        known = ", ".join(f"/{known}" for known in COMMANDS)
        raise InvalidInput("", f"unknown command /{name}{hint} (known: {known})")
    return await command(call, agent, rest.strip())
