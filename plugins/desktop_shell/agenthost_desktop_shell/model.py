"""Capabilities as they are used once a file has been checked."""

from __future__ import annotations

from dataclasses import dataclass

from .findings import Json


@dataclass(frozen=True, slots=True)
class Entry:
    """A permission entry; ``allow`` and ``deny`` are None when they were left out."""

    identifier: str
    allow: tuple[Json, ...] | None = None
    deny: tuple[Json, ...] | None = None

    @property
    def scoped(self) -> bool:
        """Whether the entry brings scope values."""
        return self.allow is not None or self.deny is not None


@dataclass(frozen=True, slots=True)
class Capability:
    """Permissions, and the windows, webviews, origins and platforms they go to.

    ``remote`` holds URL patterns; ``platforms`` None means all of them.
    """

    identifier: str
    description: str = ""
    local: bool = True
    remote: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    webviews: tuple[str, ...] = ()
    permissions: tuple[Entry, ...] = ()
    platforms: tuple[str, ...] | None = None
    file: str = ""

    def active_on(self, platform: str) -> bool:
        """Tell whether the capability counts on this platform."""
        return self.platforms is None or platform in self.platforms
