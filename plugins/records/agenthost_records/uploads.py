"""Files that people hand to agents: a row each, the bytes last in it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from functools import partial

from agenthost import Conflict, Keep, NotFound, Row, Store, Unavailable, Upload
from sqlalchemy import (
    REAL,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    select,
)

from .codec import dump_labels, load_labels
from .tables import agents

metadata = MetaData()

# What is listed stands before the bytes, which are then not read.
uploads = Table(
    "uploads",
    metadata,
    Column("id", Text, primary_key=True),
    Column("agent_id", Text, nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("created_at", REAL, nullable=False),
    Column("owner", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("labels", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

_KNOWN = [each for each in uploads.c if each.name not in {"digest", "content"}]
_THIS = (uploads.c.id == bindparam("id")) & (uploads.c.agent_id == bindparam("agent"))
_ONE = select(*_KNOWN).where(_THIS)
_CONTENT = select(uploads.c.digest, uploads.c.content).where(_THIS)
_ALL = (
    select(*_KNOWN)
    .where(uploads.c.agent_id == bindparam("agent"))
    .order_by(uploads.c.created_at, uploads.c.id)
)
_TAKEN = select(
    func.count(uploads.c.id), func.coalesce(func.sum(uploads.c.size), 0)
).where(uploads.c.agent_id == bindparam("agent"))
_AGENT = select(agents.c.id).where(agents.c.id == bindparam("agent"))
_ADD = insert(uploads)


class UploadTable:
    """The files of the agents of one daemon."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(
        self, file: Upload, data: bytes, room: tuple[int, int], also: Keep | None = None
    ) -> None:
        """Keep a file, and ``also`` with it, wholly or not at all.

        Raises:
            NotFound: There is no such agent.
            Conflict: It has no room for it.
        """
        row: dict[str, str | float | bytes] = {
            "id": file.id,
            "agent_id": file.agent_id,
            "name": file.name,
            "media_type": file.media_type,
            "size": len(data),
            "created_at": file.at,
            "owner": file.owner,
            "person": file.person,
            "labels": dump_labels(file.labels),
            "digest": await asyncio.to_thread(_digest, data),
            "content": data,
        }
        left = room[0] - 1, room[1] - len(data)
        await self._store.write(partial(_add, row=row, room=left), *_both(also))

    async def get(self, agent_id: str, upload_id: str) -> Upload:
        """Tell of a file.

        Raises:
            NotFound: The agent has no such file.
        """
        row = await self._store.first(_ONE, {"id": upload_id, "agent": agent_id})
        if row is None:
            raise NotFound("file", upload_id)
        return _upload(row)

    async def read(self, agent_id: str, upload_id: str) -> bytes:
        """Read a file.

        Raises:
            NotFound: The agent has no such file.
            Unavailable: It is not what was written.
        """
        row = await self._store.first(_CONTENT, {"id": upload_id, "agent": agent_id})
        if row is None:
            raise NotFound("file", upload_id)
        content: bytes = row["content"]
        if await asyncio.to_thread(_digest, content) != row["digest"]:
            raise Unavailable(
                f"the stored file {upload_id} is damaged; delete it or restore a backup"
            )
        return content

    async def list(self, agent_id: str) -> Sequence[Upload]:
        """Tell of an agent's files, oldest first."""
        return [*map(_upload, await self._store.read(_ALL, {"agent": agent_id}))]

    async def delete(self, file: Upload, also: Keep | None = None) -> None:
        """Delete a file, and write ``also`` in the same commit.

        Raises:
            NotFound: The agent has no such file.
        """
        await self._store.write(partial(_delete, file=file), *_both(also))


def erase_uploads(connection: Connection, agent_id: str) -> None:
    """Delete all files of an agent."""
    connection.execute(delete(uploads).where(uploads.c.agent_id == agent_id))


def _add(
    connection: Connection,
    row: dict[str, str | float | bytes],
    room: tuple[int, int],
) -> None:
    agent = {"agent": row["agent_id"]}
    if connection.execute(_AGENT, agent).first() is None:
        raise NotFound("agent", str(row["agent_id"]))
    files, size = connection.execute(_TAKEN, agent).one()
    if files > room[0] or size > room[1]:
        raise Conflict(
            f"the agent has {files} files of {size} bytes and no room for this one; "
            "delete some, or raise uploads.max_files or uploads.max_bytes"
        )
    connection.execute(_ADD, row)


def _delete(connection: Connection, file: Upload) -> None:
    this = (uploads.c.id == file.id) & (uploads.c.agent_id == file.agent_id)
    if not connection.execute(delete(uploads).where(this)).rowcount:
        raise NotFound("file", file.id)


def _both(also: Keep | None) -> tuple[Keep, ...]:
    return () if also is None else (also,)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _upload(row: Row) -> Upload:
    return Upload(
        row["id"],
        row["agent_id"],
        row["name"],
        row["media_type"],
        row["size"],
        row["created_at"],
        row["owner"],
        row["person"],
        load_labels(row["labels"]),
    )
