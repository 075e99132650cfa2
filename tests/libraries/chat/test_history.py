"""Conversations are repaired without losing anything that was really said."""

from __future__ import annotations

from agenthost import Audio, Image, Message, Role, Text, ToolOutput, ToolUse
from agenthost_chat.history import UNKNOWN, estimate_tokens, repaired
from hypothesis import given
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


def is_paired(history: list[Message]) -> bool:
    """Every call is answered once right behind it, and nothing else is answered."""
    for here, message in enumerate(history):
        after = history[here + 1] if here + 1 < len(history) else None
        answers = after.parts if after and after.role is Role.TOOL else ()
        answered = sorted(part.id for part in answers if isinstance(part, ToolOutput))
        if message.role is not Role.TOOL:
            if sorted(use.id for use in message.tool_uses) != answered:
                return False
        elif here == 0 or (after is not None and after.role is Role.TOOL):
            return False
    return True


@given(HISTORIES)
def test_a_repaired_conversation_pairs_every_call_with_one_result(
    history: list[Message],
) -> None:
    assert is_paired(repaired(history))


@given(HISTORIES)
def test_repair_is_idempotent(history: list[Message]) -> None:
    once = repaired(history)
    assert repaired(once) == once


@given(HISTORIES)
def test_repair_leaves_a_valid_conversation_as_it_is(history: list[Message]) -> None:
    if is_paired(history):
        assert repaired(history) == history


@given(HISTORIES)
def test_repair_keeps_everything_users_and_models_said(history: list[Message]) -> None:
    said = [message for message in history if message.role is not Role.TOOL]
    kept = [message for message in repaired(history) if message.role is not Role.TOOL]
    assert kept == said


def test_a_call_without_result_is_answered_as_unknown() -> None:
    call = Message(Role.ASSISTANT, (ToolUse("1", "send", {}),))
    assert repaired([call])[1].parts == (
        ToolOutput("1", "send", UNKNOWN, is_error=True),
    )


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
