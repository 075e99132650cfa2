"""What a turn has come to so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from agenthost import Citation, Finish, Spent, TurnResult, Usage


@dataclass
class Progress:
    """What a turn has come to so far."""

    usage: Usage = field(default_factory=Usage)
    cost: int = 0
    iterations: int = 0
    model: str = ""
    finish: Finish | None = None

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
        return TurnResult(text, *took, labels, self.finish, citations)
