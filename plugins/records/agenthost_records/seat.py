"""As which daemon this process writes."""

from __future__ import annotations

from agenthost import NOBODY


class Seat:
    """What this process writes as, once it has entered."""

    def __init__(self) -> None:
        self.writer = NOBODY
