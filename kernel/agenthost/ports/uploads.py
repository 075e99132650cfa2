"""The part of RECORDS about files that people hand to an agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agenthost_values.value_class import value_class

from .events import Keep

UPLOAD = "upload:"
"""What the ``uri`` of a file in a message begins with when an upload's id follows."""


@value_class
class Upload:
    """What is known of a file; ``name`` is for people and opens nothing.

    ``owner`` (``kind:name``) uploaded it, ``person`` is who is behind that; ``labels``
    tell where it came from. ``size`` is in bytes.
    """

    id: str
    agent_id: str
    name: str
    media_type: str
    size: int
    at: float
    owner: str
    person: str = ""
    labels: frozenset[str] = frozenset()


class Uploads(Protocol):
    """The files of all agents; those of an agent go when it goes."""

    async def add(
        self, file: Upload, data: bytes, room: tuple[int, int], also: Keep | None = None
    ) -> None:
        """Keep a file, and in the same commit ``also``, wholly or not at all.

        NotFound when there is no such agent, Conflict when it would have more files
        than ``room`` says, or more bytes in all.
        """

    async def get(self, agent_id: str, upload_id: str) -> Upload:
        """Tell of a file, or raise NotFound."""

    async def read(self, agent_id: str, upload_id: str) -> bytes:
        """Read a file; NotFound, or Unavailable when it is damaged."""

    async def list(self, agent_id: str) -> Sequence[Upload]:
        """Tell of an agent's files, oldest first."""

    async def delete(self, file: Upload, also: Keep | None = None) -> None:
        """Delete a file, with ``also`` in the same commit, or raise NotFound."""
