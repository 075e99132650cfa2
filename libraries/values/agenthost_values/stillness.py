"""Which of several values have stood still for too long, timed on one's own clock."""

from __future__ import annotations

from collections.abc import Mapping


class Stillness:
    """Looks again and again at numbers that whoever lives moves on.

    What other machines' clocks say does not matter: only whether a number has changed
    between two looks.

    Args:
        longest: Seconds for which a number may stand still.
        gap: Seconds between two looks after which nothing is known of the time between:
            who looks has stood still itself.
    """

    def __init__(self, longest: float, gap: float) -> None:
        self._longest = longest
        self._gap = gap
        self._looked = 0.0
        self._seen: dict[str, tuple[float, float]] = {}

    def forget(self) -> None:
        """Begin anew: who lives could not move on, or nobody could see it."""
        self._seen.clear()

    def look(self, now: float, values: Mapping[str, float]) -> list[tuple[str, float]]:
        """Give the names whose numbers have stood still for too long, and the numbers.

        Args:
            now: Seconds of a clock that never jumps.
            values: The numbers by name, as they are now.
        """
        if now - self._looked > self._gap:
            self.forget()
        self._looked = now
        before, self._seen = self._seen, {}
        for name, value in values.items():
            known = before.get(name)
            same = known is not None and known[0] == value
            self._seen[name] = known if known and same else (value, now)
        return [
            (name, value)
            for name, (value, since) in self._seen.items()
            if now - since >= self._longest
        ]
