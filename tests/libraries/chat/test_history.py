"""Conversations have a size; and what they may look like, for other tests."""

from __future__ import annotations

from agenthost import Audio, Image, Message, Role, Text, ToolOutput, ToolUse
from agenthost_chat.history import estimate_tokens
from hypothesis import strategies as st

IDS = st.sampled_from(["a", "b", "c"])
TEXTS = st.text(max_size=5).map(Text)
MESSAGES = st.one_of(
    st.lists(TEXTS, min_size=1, max_size=2).map(
        lambda parts: Message(Role.USER, tuple(parts))
    ),
    st.lists(
        st.one_of(TEXTS, IDS.map(lambda i: ToolUse(i, "tool", {}))),
        min_size=1,
        max_size=3,
        unique_by=lambda part: getattr(part, "id", id(part)),
    ).map(lambda parts: Message(Role.ASSISTANT, tuple(parts))),
    st.lists(
        IDS.map(lambda i: ToolOutput(i, "tool", "done")),
        min_size=1,
        max_size=3,
        unique_by=lambda part: part.id,
    ).map(lambda parts: Message(Role.TOOL, tuple(parts))),
)
HISTORIES = st.lists(MESSAGES, max_size=8)


def test_tool_arguments_count_as_tokens() -> None:
    call = Message(Role.ASSISTANT, (ToolUse("1", "write", {"text": "x" * 4_000}),))
    assert estimate_tokens([call]) > 1_000


def test_pictures_in_results_count_as_pictures() -> None:
    words = Message(Role.TOOL, (ToolOutput("a", "look", "words"),))
    picture = Image("image/png", "iVBORw0=")
    sound = Audio("audio/wav", "UklGRg==")
    seen = ToolOutput("a", "look", "words", media=(picture, sound))
    more = estimate_tokens([Message(Role.TOOL, (seen,))]) - estimate_tokens([words])
    assert more == estimate_tokens([Message(Role.USER, (picture,))]) - 4
