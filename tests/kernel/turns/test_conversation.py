"""A conversation in memory."""

from __future__ import annotations

from agenthost import Conversation, Message, Session, estimate_tokens
from hypothesis import given

from tests.libraries.chat.test_history import HISTORIES, MESSAGES


@given(HISTORIES, MESSAGES)
def test_a_conversation_knows_its_size(history: list[Message], more: Message) -> None:
    session = Session("s", "a", False, 0, len(history), None, 0.0)
    said = Conversation(session, list(history))
    said.add(more)
    assert said.tokens == estimate_tokens([*history, more])
