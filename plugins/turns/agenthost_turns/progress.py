"""What a turn has come to so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from agenthost import (
    AgentHostError,
    Citation,
    Completion,
    Finish,
    Spent,
    TurnResult,
    Usage,
)

LOOPS = 3
"""A turn ends with the third answer of which guards say that it is in a loop."""


@dataclass
class Progress:
    """What a turn has come to so far."""

    usage: Usage = field(default_factory=Usage)
    cost: int = 0
    iterations: int = 0
    model: str = ""
    ended: Completion | None = None
    loops: int = 0

    def check(self, ends: AgentHostError | None) -> None:
        """End the turn when guards say so again and again; the model may mend its way.

        Raises:
            AgentHostError: What they say.
        """
        if ends is not None:
            self.loops += 1
            if self.loops >= LOOPS:
                raise ends

    @property
    def finish(self) -> Finish | None:
        """Why the model stopped, None while it is asked."""
        return self.ended.finish if self.ended else None

    def add(self, spent: Spent | None) -> None:
        """Count what a call has taken."""
        if spent is not None:
            self.usage += spent.usage
            self.cost += spent.cost_micro_usd
            self.model = f"{spent.provider}/{spent.model}"

    def result(
        self, text: str, labels: frozenset[str], citations: tuple[Citation, ...] = ()
    ) -> TurnResult:
        """The result with this answer, and the labels of what it is made from."""
        took = (self.usage, self.iterations, self.cost, self.model)
        end = self.ended
        finish, stop = (end.finish, end.stop) if end else (None, "")
        return TurnResult(text, *took, labels, finish, citations, stop=stop)
