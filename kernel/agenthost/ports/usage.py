"""What was used, as it crosses the port RECORDS, and the ledger that keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agenthost_chat.chat import Usage
from agenthost_values.value_class import value_class


@value_class
class Spent:
    """What one provider call took.

    ``principal`` (``kind:name``) asked for it, ``person`` is who is behind that.
    """

    at: float
    agent_id: str
    session_id: str
    turn_id: str
    provider: str
    model: str
    usage: Usage
    cost_micro_usd: int
    principal: str = ""
    person: str = ""


@value_class
class Total:
    """A sum over the ledger."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micro_usd: int = 0


@dataclass(frozen=True, slots=True)
class PeriodTotal(Total):
    """What a period took: of how many agents, and when its first call was."""

    agents: int = 0
    oldest: float | None = None


@dataclass(frozen=True, slots=True)
class ModelTotal(Total):
    """What one model took."""

    provider: str = ""
    model: str = ""


@value_class
class Slot:
    """What was used in the seconds from ``number`` times the width of a slot on."""

    number: int
    tokens: int
    cost_micro_usd: int


class Ledger(Protocol):
    """What was used, and by whom, one row a provider call."""

    def book(self, spent: Spent) -> asyncio.Future[None]:
        """Add a row of its own; it starts at once, awaited or not."""

    async def of_agent(self, agent_id: str) -> Total:
        """Sum everything an agent has used."""

    async def of_turn(self, agent_id: str, turn_id: str) -> Total:
        """Sum what the model calls of an agent's turn took."""

    async def since(
        self, moment: float, width: float, agent: str = ""
    ) -> Sequence[Slot]:
        """Sum by slots of ``width`` seconds, of one agent when it is named."""

    async def period(self, since: float) -> PeriodTotal:
        """Sum everything from a moment on; calls for no agent count no agent."""

    async def by_model(self) -> Sequence[ModelTotal]:
        """Sum all that was ever used by model, the most expensive first."""
