"""A question with all that became of it, and an agent with its conversation."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from .asking import LOST, Attempt, Way
from .oracle import Manner, Scene, answer_to

STATUS = {
    "cancelled": 409,
    "interrupted": 503,
    "unavailable": 503,
    "not_found": 404,
    LOST: 0,
}
OURS = {*STATUS, "internal", "turn_failed", "conflict", "no code"}
"""Codes that are no fault of a model."""
FAILING = {Manner.REFUSES, Manner.BREAKS}


@dataclass(eq=False)
class Ask:
    """A question, everything that was tried to have it answered, and what may be."""

    party: Party
    text: str
    key: str | None
    scene: Scene
    number: int
    attempts: list[Attempt] = field(default_factory=list)
    may: set[str] = field(default_factory=set)
    loose: bool = False
    """Its clients have left, and it goes on."""
    gone: bool = False
    """Its conversation was cleared."""
    accepted: bool = False
    answered: bool = False
    _seen: int = 0

    @property
    def live(self) -> bool:
        """Whether the daemon works on it, or will."""
        return self.loose or any(attempt.pending for attempt in self.attempts)

    def judge(self) -> None:
        """Hold the outcomes of its attempts against what may be."""
        for attempt in self.attempts[self._seen :]:
            self.accepted |= attempt.started.is_set()
            if not attempt.pending and not attempt.left:
                self._judge(attempt)
        self._seen = next(
            (n for n, each in enumerate(self.attempts) if each.pending),
            len(self.attempts),
        )

    def forget(self) -> None:
        """Its conversation was cleared: what was known of it holds no longer."""
        self.gone = True
        self.accepted = self.answered = False
        self.may.add("cancelled")

    def _judge(self, attempt: Attempt) -> None:
        found = attempt.outcome
        told = f"{self.text} over {attempt.way}: {found}"
        if found.done:
            assert found.text == answer_to(self.text), f"another's answer: {told}"
            self.accepted = self.answered = True
            return
        assert answer_to(self.text).startswith(found.text), f"other words: {told}"
        if self.scene.manner in FAILING and found.code not in OURS:
            return
        assert found.code in self.may, f"not to be expected: {told}"
        if attempt.way is Way.BLOCKING:
            assert found.status == STATUS[found.code], told
            if found.code == "interrupted":
                assert found.facts["turn_id"], told


@dataclass(eq=False)
class Party:
    """An agent, and the conversation as far as it is known."""

    id: str
    name: str
    asks: list[Ask] = field(default_factory=list)
    history: list[Ask] = field(default_factory=list)
    chores: list[asyncio.Task[int]] = field(default_factory=list)
    chores_may: set[int] = field(default_factory=lambda: {200})

    @property
    def path(self) -> str:
        """Where it is found."""
        return f"/api/agents/{self.id}"

    @property
    def live(self) -> list[Ask]:
        """What it has left to answer, in order of arrival."""
        return sorted((a for a in self.asks if a.live), key=lambda ask: ask.number)

    @property
    def front(self) -> Ask | None:
        """The question that its model stands still on."""
        return next((ask for ask in self.live if ask.scene.waiting), None)
