"""With whose rights stored work is done: looked up anew each time that it is."""

from __future__ import annotations

from dataclasses import replace

from agenthost import (
    OPERATOR,
    Agent,
    AgentState,
    Authenticator,
    Denied,
    Host,
    NotFound,
    Principal,
    PrincipalKind,
    authorize,
    within,
)

from .errands import Creator, Errand

PATIENCE = 5.0
NETWORK = "network"
"""The name of the operator's principal for clients of an open network."""


class Lapsed(Denied):
    """Whoever asked for this may not have it done any more; its source is paused."""


async def principal_of(host: Host, creator: Creator) -> Principal:
    """Give who asked for stored work, with the rights they have now.

    Raises:
        Lapsed: They are gone, or may do nothing any more.
        Denied: They may not now, and may again.
        Unavailable: Nobody can tell at the moment.
    """
    found = await _found(host, creator)
    if found is None:
        who = f"{creator.kind} {creator.name!r}"
        raise Lapsed(
            f"{who} asked for this and may not any more: revoked, expired or gone; "
            "make it anew as somebody who may"
        )
    return found if found.person else replace(found, person=creator.person)


def creator_of(host: Host, principal: Principal) -> Creator:
    """Say who asks for work that is stored, so that nobody comes to be them later."""
    name, offered = principal.name, host.registry.offered(Authenticator)
    stored = (each.stored_as(principal) for _, each in offered)
    known = next((each for each in stored if each != name), "")
    return Creator(str(principal.kind), name, principal.person, known)


async def _found(host: Host, creator: Creator) -> Principal | None:
    open_here = host.config.api_key is None
    match creator.kind:
        case PrincipalKind.OPERATOR if creator.name != NETWORK:
            return replace(OPERATOR, name=creator.name)
        case PrincipalKind.OPERATOR:
            held = open_here and host.config.allow_unauthenticated_network
        case PrincipalKind.LOOPBACK:
            held = open_here
        case PrincipalKind.API_KEY:
            held = not open_here
        case PrincipalKind.AGENT:
            return _agent(host, creator)
        case _:
            return await _recalled(host, creator)
    return Principal(creator.kind, creator.name) if held else None


def _agent(host: Host, creator: Creator) -> Principal | None:
    try:
        agent = host.agents.find(creator.name)
    except NotFound:
        return None
    if agent.state is not AgentState.RUNNING:
        raise Denied(f"agent {agent.name!r}, who asked for this, is {agent.state}")
    rights = host.toolbox.rights_of(agent.id, agent.manifest)
    return Principal(PrincipalKind.AGENT, agent.name, rights.grants)


async def _recalled(host: Host, creator: Creator) -> Principal | None:
    for key, authenticator in host.registry.offered(Authenticator):
        asking = authenticator.recall(host, creator.kind, creator.id or creator.name)
        found = await within(PATIENCE, f"recall of {key}", asking)
        if found is not None:
            return found
    return None


def check_errand(principal: Principal, errand: Errand, agent: Agent | None) -> None:
    """See that they may have this done.

    Raises:
        Lapsed: They have no right to it.
    """
    try:
        if agent is not None:
            check_message(principal, agent)
        elif errand.workflow_id:
            _check(principal, "workflows:run", "workflow_run")
        else:
            _check(principal, "events:write", "event_publish")
    except Denied as error:
        raise Lapsed(error.message) from error


def check_message(principal: Principal, agent: Agent) -> None:
    """See that they may speak with the agent; every agent may with itself.

    Raises:
        Refused: They may not.
    """
    if principal.kind != PrincipalKind.AGENT:
        authorize(principal, "route", "agents:message")
    elif principal.name != agent.name:
        authorize(principal, "agent_message", agent.name)


def _check(principal: Principal, scope: str, tool: str) -> None:
    """An agent has no routes: what it may is what its tools may."""
    if principal.kind == PrincipalKind.AGENT:
        authorize(principal, "tool", tool)
    else:
        authorize(principal, "route", scope)
