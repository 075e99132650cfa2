"""Guard points: each belongs to who owns the one place where it is asked.

The kernel knows those of its own ports; a plugin offers further ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..errors import PluginError
from .cases import (
    AddressCase,
    ManifestCase,
    PathCase,
    RequestCase,
    SpawnCase,
    ToolCallCase,
    ToolResultCase,
    UrlCase,
)

Case = TypeVar("Case")


# Compared by identity: a point is what its owner registered, not what is named alike.
@dataclass(frozen=True, slots=True, eq=False)
class GuardPoint(Generic[Case]):
    """A place where guards are asked.

    Args:
        name: What guards name it by.
        case: The frozen dataclass that they are asked.
        what: What it lets pass or refuses, in the words of a refusal.
        requires: The security systems without which it refuses everything.
        replaceable: Whether a guard may put another ``text`` into the case.
        effects: Whether what follows reaches beyond the conversation (files, the
            network, new agents). Such a point also refuses everything while a security
            plugin has failed before it said what it guards.

    Raises:
        PluginError: The case of a replaceable point has no ``text``.
    """

    name: str
    case: type[Case]
    what: str
    requires: tuple[str, ...] = ()
    replaceable: bool = False
    effects: bool = False

    def __post_init__(self) -> None:
        fields = getattr(self.case, "__dataclass_fields__", {})
        if self.replaceable and "text" not in fields:
            raise PluginError(f"guard point {self.name}: its case has no field text")

    def __str__(self) -> str:
        return self.name

    def refusal(self, system: str, reason: str) -> str:
        """Say that everything is refused here for want of a system, and the remedy."""
        return (
            f"{self.what} is refused: the security system {system} is not active"
            f" ({reason}); enable or mend its plugin and restart"
        )

    @property
    def lost(self) -> str:
        """Say that everything is refused here for want of the point's own plugin."""
        return (
            f"{self.what} is refused: no healthy plugin offers the guard point"
            f" {self.name}; enable or mend the one that does and restart"
        )


class Guard:
    """The points that the kernel knows; each is asked at the place its case names."""

    REQUEST = GuardPoint("request", RequestCase, "the request")
    MANIFEST = GuardPoint("manifest", ManifestCase, "the manifest")
    SPAWN = GuardPoint(
        "spawn",
        SpawnCase,
        "the agent",
        ("capability_inheritance_validation",),
        effects=True,
    )
    TOOL_CALL = GuardPoint("tool_call", ToolCallCase, "the tool call")
    TOOL_RESULT = GuardPoint(
        "tool_result", ToolResultCase, "the result", replaceable=True
    )
    PATH = GuardPoint(
        "path", PathCase, "file access", ("path_traversal_prevention",), effects=True
    )
    URL = GuardPoint(
        "url", UrlCase, "the outbound request", ("ssrf_protection",), effects=True
    )
    ADDRESS = GuardPoint(
        "address", AddressCase, "the connection", ("ssrf_protection",), effects=True
    )


KNOWN: tuple[GuardPoint[Any], ...] = tuple(
    point for point in vars(Guard).values() if isinstance(point, GuardPoint)
)
