"""A conversation in memory."""

from __future__ import annotations

from agenthost import Conversation, Message, Session, estimate_tokens
from hypothesis import given

from tests.libraries.chat.test_history import HISTORIES, MESSAGES


@given(HISTORIES, MESSAGES)
def test_a_conversation_knows_its_size(history: list[Message], more: Message) -> None:
    session = Session("s", "a", 0.0, next_seq=len(history))
    said = Conversation(session, list(history))
    said.add(more)
    assert said.tokens == estimate_tokens([*history, more])
