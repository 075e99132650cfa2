"""Show the guard at work: a loop is stopped, and work that gets on is not."""

from __future__ import annotations

from agenthost import (
    ALLOW,
    OPERATOR,
    Context,
    Deny,
    Replace,
    ToolCallCase,
    ToolResultCase,
    Verdict,
)

from .watch import Loops

ROUNDS = 5


def prove() -> None:
    """Let a loop and an honest turn pass by the guards.

    Raises:
        RuntimeError: One of them went the other way.
    """
    loops = Loops()
    rounds = [_round(loops, "loop", 0, n) for n in range(ROUNDS)]
    if not any(isinstance(answered, Replace) for _, answered in rounds):
        raise RuntimeError("the model was not warned of a loop")
    # The call itself, and not only what is told of it.
    if not any(isinstance(called, Deny) for called, _ in rounds):
        raise RuntimeError("a loop was not stopped")
    honest = [call for n in range(ROUNDS) for call in _round(loops, "work", n, n)]
    if any(verdict != ALLOW for verdict in honest):
        raise RuntimeError("honest work was stopped")


def _round(loops: Loops, turn: str, page: int, number: int) -> tuple[Verdict, Verdict]:
    """Make a call whose time and nonce are always new."""
    context = Context(OPERATOR, turn_id=turn, chain=(turn,))
    arguments = {"page": page, "nonce": number, "timestamp": 1_700_000_000 + number}
    began = loops.called(ToolCallCase(context, "list", "read", arguments))
    said = f"page {page}, at 12:00:{number:02}"
    told = ToolResultCase(context, "list", said, arguments=arguments)
    return began, loops.answered(told)
