"""What happened, as it is told to this process and to plugins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, told after it was committed.

    ``kind`` is a snake_case past participle such as ``agent_spawned``; ``data`` holds
    JSON values only.
    """

    kind: str
    subject: str
    at: float
    data: dict[str, Any] = field(default_factory=dict)
