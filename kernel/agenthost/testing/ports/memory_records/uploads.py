"""Files that people hand to agents, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import Conflict, NotFound
from ....ports.events import Keep
from ....ports.uploads import Upload
from .rows import Rows


class MemoryUploads:
    """The files of all agents."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def add(
        self, file: Upload, data: bytes, room: tuple[int, int], also: Keep | None = None
    ) -> None:
        """Keep a file; NotFound without its agent, Conflict without room."""
        if file.agent_id not in self._rows.agents:
            raise NotFound("agent", file.agent_id)
        known = await self.list(file.agent_id)
        taken = sum(each.size for each in known)
        if len(known) >= room[0] or taken + len(data) > room[1]:
            raise Conflict("the agent has no room for the file; delete some")
        self._rows.keep(also)
        self._rows.uploads[file.agent_id, file.id] = file, data

    async def get(self, agent_id: str, upload_id: str) -> Upload:
        """Tell of a file, or raise NotFound."""
        return self._row(agent_id, upload_id)[0]

    async def read(self, agent_id: str, upload_id: str) -> bytes:
        """Read a file, or raise NotFound."""
        return self._row(agent_id, upload_id)[1]

    async def list(self, agent_id: str) -> Sequence[Upload]:
        """Tell of an agent's files, oldest first."""
        own = [u for u, _ in self._rows.uploads.values() if u.agent_id == agent_id]
        return sorted(own, key=lambda each: (each.at, each.id))

    async def delete(self, file: Upload, also: Keep | None = None) -> None:
        """Delete a file, or raise NotFound."""
        self._row(file.agent_id, file.id)
        self._rows.keep(also)
        del self._rows.uploads[file.agent_id, file.id]

    def _row(self, agent_id: str, upload_id: str) -> tuple[Upload, bytes]:
        if (agent_id, upload_id) not in self._rows.uploads:
            raise NotFound("file", upload_id)
        return self._rows.uploads[agent_id, upload_id]
