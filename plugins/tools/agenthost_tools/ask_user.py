"""Ask a person something: ``ask_user``.

The question goes the way of approvals: it is answered wherever those are, and the turn
waits without taking a slot, also over a restart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from agenthost import (
    Ask,
    Asked,
    Effect,
    Question,
    ToolContext,
    ToolResult,
    ToolSpec,
    hookimpl,
)
from pydantic import BaseModel, Field

LONGEST_ANSWER = 10_000
Choice = Annotated[str, Field(min_length=1, max_length=200)]


class AskUser(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``ask_user``."""

    question: str = Field(
        description="What to ask, in one or a few sentences",
        min_length=1,
        max_length=4_000,
        pattern=r"\S",
    )
    choices: list[Choice] = Field(
        default_factory=list,
        description="Answers to choose from; without any the person writes one",
        max_length=20,
    )
    timeout_seconds: int = Field(
        3_600,
        description="How long the person has; no answer in time is none",
        ge=10,
        le=7 * 86_400,
    )


async def ask_user(context: ToolContext, call: AskUser) -> ToolResult:
    """Return what a person answered.

    Raises:
        Asked: They have not been asked, or not answered yet.
    """
    answer = context.answers.get("choice" if call.choices else "answer")
    if answer is None:
        raise Asked([Ask(_question(call), float(call.timeout_seconds))])
    return ToolResult(str(answer))


def _question(call: AskUser) -> Question:
    if call.choices:
        return Question(call.question, choices=tuple(dict.fromkeys(call.choices)))
    answer: dict[str, Any] = {"type": "string", "maxLength": LONGEST_ANSWER}
    wanted = {"type": "object", "properties": {"answer": answer}}
    return Question(call.question, schema={**wanted, "required": ["answer"]})


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``ask_user``."""
    yield ToolSpec(
        "ask_user",
        "Ask a person a question and wait for the answer.",
        AskUser,
        Effect.READ,
        ask_user,
        idempotent=True,
    )
