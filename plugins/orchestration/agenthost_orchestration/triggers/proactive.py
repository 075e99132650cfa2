"""The triggers that agents' manifests say: one for each condition that they name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

from agenthost import Agent, Context, Host, Principal, PrincipalKind

from ..background.errands import Creator
from .trigger import Trigger

if TYPE_CHECKING:
    from .patterns import Pattern
    from .triggers import Triggers

PROMPT = (
    "Something happened that you look out for: {{event}}\n"
    "Do what your instructions have you do then, and say in a sentence or two what "
    "you did."
)


async def follow(
    triggers: Triggers, host: Host, agent: Agent, conditions: Sequence[str]
) -> None:
    """Have the triggers of an agent's manifest be those of its conditions.

    Triggers that people made stay as they are, and so do those that stood before:
    one that was disabled is not enabled by this.

    Raises:
        InvalidInput: A condition is none.
    """
    wanted: dict[str, Pattern] = {}
    if conditions:
        # An agent without any needs nothing of patterns.
        from .patterns import conditions_to_patterns

        patterns = conditions_to_patterns(conditions)
        wanted = {id_of(agent.id, each): each for each in patterns}
    there = {each.id for each in triggers.list(agent.id) if is_of_manifest(each)}
    context = Context(Principal(PrincipalKind.AGENT, agent.name))
    for trigger_id in sorted(there - wanted.keys()):
        await triggers.delete(context, trigger_id)
    for trigger_id, pattern in wanted.items():
        if trigger_id not in there:
            made = _trigger(host, agent, trigger_id, pattern)
            await triggers.create(context, made)


def is_of_manifest(trigger: Trigger) -> bool:
    """Tell whether a manifest has made it, by its id."""
    return trigger.id == id_of(trigger.agent_id, trigger.pattern)


def id_of(agent_id: str, pattern: Pattern) -> str:
    """Give the id of the trigger that a manifest makes of a pattern."""
    form = json.dumps(pattern.form, sort_keys=True)
    return str(uuid5(NAMESPACE_URL, f"agenthost:proactive:{agent_id}:{form}"))


def _trigger(host: Host, agent: Agent, trigger_id: str, pattern: Pattern) -> Trigger:
    return Trigger(
        id=trigger_id,
        agent_id=agent.id,
        pattern=pattern,
        prompt_template=PROMPT,
        creator=Creator(str(PrincipalKind.AGENT), agent.id),
        created_at=host.clock.time(),
    )
