"""What is cut off for a summary never separates a call from its result."""

from __future__ import annotations

from agenthost import Message, Role
from agenthost_compaction.summary import safe_cut
from hypothesis import given
from hypothesis import strategies as st

from tests.libraries.chat.test_history import HISTORIES


@given(HISTORIES, st.integers(0, 10))
def test_a_cut_falls_on_a_user_message_and_keeps_enough(
    history: list[Message], keep: int
) -> None:
    cut = safe_cut(history, keep)
    assert cut == 0 or cut == len(history) or history[cut].role is Role.USER
    assert len(history) - cut >= min(keep, len(history))
