"""The port VAULT: secrets at rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..secrets import Secret


class Vault(Protocol):
    """Secrets at rest, by name; reads are answered from memory."""

    def get(self, name: str) -> Secret | None:
        """Give a secret, or None when there is none of this name."""

    @property
    def revision(self) -> int:
        """A number that every change raises."""

    def names(self) -> list[str]:
        """List the names, sorted."""

    async def change(self, secrets: Mapping[str, str | None]) -> None:
        """Keep these secrets, forget those that are None: all, on disk, or none.

        It writes off the event loop, one change after another. A change whose caller
        was cancelled may still happen.

        Raises:
            InvalidInput: A name or a value is empty; nothing changed.
            StorageFull: The disk has no room; nothing changed.
            Unavailable: The disk refused to write.
        """
