"""Other models than the agent's own: by what the caller says, or by its manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import Agent, Conversation, Message, Target, Turn

from .manifest import ROUTING, Routing

if TYPE_CHECKING:
    from .parts import Parts

CODE = ("```", "def ", "class ", "function ", "import ", "SELECT ", "=>", "();")
"""What shows that a message is about code."""
FEW_MESSAGES = 10
SHORT_SYSTEM = 500


async def routed(
    parts: Parts, turn: Turn, agent: Agent, said: Conversation, own: Target
) -> Target:
    """Choose the model that answers a message.

    Args:
        parts: What the engine works with.
        turn: What is asked, and with which model where that is said.
        agent: Who answers; one that is pinned keeps its model.
        said: The conversation before the message.
        own: The agent's own model, which stands where none is named.

    Raises:
        InvalidInput: The model that is named is nobody's.
    """
    if agent.pinned_model is not None:
        return own
    name = turn.options.model or _by_manifest(parts, agent, said, turn.message)
    if not name:
        return own
    slug, _ = own.names
    return (await parts.models.choose(None, name, slug)).target


def _by_manifest(
    parts: Parts, agent: Agent, said: Conversation, message: Message
) -> str:
    tools = len(parts.toolbox.rights_of(agent.id, agent.manifest).tools)
    score = complexity(
        message.text, tools, len(said.messages), agent.manifest.model.system_prompt
    )
    return named(ROUTING.of(agent.manifest), score)


def complexity(text: str, tools: int, messages: int, system: str) -> int:
    """Estimate how much a request asks for.

    A quarter of the message's characters, 20 for each tool, 30 for each mark of code in
    the message, 15 for each message of the conversation above ten, and a tenth of the
    characters of the system prompt above 500.
    """
    return (
        len(text) // 4
        + 20 * tools
        + 30 * sum(mark in text for mark in CODE)
        + 15 * max(messages - FEW_MESSAGES, 0)
        + max(len(system) - SHORT_SYSTEM, 0) // 10
    )


def named(routing: Routing, score: int) -> str:
    """Name the model for a score; "" is the agent's own."""
    if score < routing.simple_threshold:
        return routing.simple_model
    if score < routing.complex_threshold:
        return routing.medium_model
    return routing.complex_model
