"""Files that people hand to an agent: uploaded here, named by id in messages."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import Literal
from urllib.parse import quote
from uuid import UUID, uuid4

from agenthost import (
    Answer,
    Call,
    Keep,
    NotFound,
    Principal,
    Reply,
    RouteGroup,
    TooLarge,
    Upload,
    telling,
    timestamp,
)
from typing_extensions import TypedDict

from .events import FileDeleted, FileEvent, FileUploaded
from .file_kinds import TEXT, media_type_of, plain_name
from .file_settings import UploadsSection
from .form_data import FIELD, read_file
from .shapes import Id, Moment

routes = RouteGroup("files")

FILE_BYTES = 10 * 1024 * 1024
FORM = {
    "type": "object",
    "required": [FIELD],
    "properties": {FIELD: {"type": "string", "contentMediaType": "*/*"}},
}
FORM_BYTES = FILE_BYTES + 64 * 1024
"""A file, and the form around it."""
COST = 30


class UploadedFile(TypedDict):
    """A file; ``type`` is what its bytes are."""

    file_id: Id
    name: str
    size: int
    type: str


class FileItem(UploadedFile):
    """A file in a list."""

    uploaded_at: Moment
    owner: str


class FileList(TypedDict):
    """``GET /api/agents/{id}/files``."""

    files: list[FileItem]


class DeletedFile(TypedDict):
    """A file is gone; messages that name it say so."""

    status: Literal["deleted"]
    file_id: Id


@routes.post(
    "/api/agents/<agent_id>/files",
    scope="files:write",
    cost=COST,
    body=bytes,
    takes={"multipart/form-data": {"schema": FORM}},
    body_limit=FORM_BYTES,
    answer=UploadedFile,
    status=201,
    direct=True,
)
async def upload_file(call: Call, agent_id: UUID, body: bytes) -> Answer:
    """Hand a file to an agent: the field ``file`` of a form, at most 10 MiB.

    PNG, JPEG, GIF and WebP images, PDF and UTF-8 text are taken, by what their bytes
    are. Messages name it by ``file_id``.
    """
    host = call.host
    agent = host.agents.get(str(agent_id))
    kind = call.headers.get("content-type", "")
    # Looking at every byte would hold up everybody else.
    name, media_type, data = await asyncio.to_thread(_opened, kind, body)
    by = call.context
    upload = Upload(
        id=str(uuid4()),
        agent_id=agent.id,
        name=name,
        media_type=media_type,
        size=len(data),
        at=host.clock.time(),
        owner=by.owner,
        person=by.principal.person,
        labels=by.labels,
    )
    section = host.settings(UploadsSection)
    room = section.max_files, section.max_bytes
    with _told(call, FileUploaded, upload) as keep:
        await host.uploads.add(upload, data, room, keep)
    return _shown(upload)


@routes.get(
    "/api/agents/<agent_id>/files", scope="files:read", answer=FileList, direct=True
)
async def list_files(call: Call, agent_id: UUID) -> Answer:
    """List the files that the caller handed to an agent, oldest first."""
    agent = call.host.agents.get(str(agent_id))
    found = await call.host.uploads.list(agent.id)
    return {"files": [_item(each) for each in found if may_see(call.principal, each)]}


@routes.get(
    "/api/agents/<agent_id>/files/<file_id>",
    scope="files:read",
    media="*/*",
    direct=True,
)
async def download_file(call: Call, agent_id: UUID, file_id: UUID) -> Answer:
    """Give a file back as it came: never shown by a browser, but saved."""
    upload = await own_file(call, str(agent_id), str(file_id))
    data = await call.host.uploads.read(upload.agent_id, upload.id)
    kind = upload.media_type
    headers = {
        "content-type": f"{kind}; charset=utf-8" if kind == TEXT else kind,
        "content-disposition": f"attachment; filename*=UTF-8''{quote(upload.name, '')}",
    }
    return Reply(data, headers=headers)


@routes.delete(
    "/api/agents/<agent_id>/files/<file_id>",
    scope="files:write",
    answer=DeletedFile,
    direct=True,
)
async def delete_file(call: Call, agent_id: UUID, file_id: UUID) -> Answer:
    """Delete a file; messages that name it stay, with a note in its place."""
    upload = await own_file(call, str(agent_id), str(file_id))
    with _told(call, FileDeleted, upload) as keep:
        await call.host.uploads.delete(upload, keep)
    return {"status": "deleted", "file_id": upload.id}


async def own_file(call: Call, agent_id: str, file_id: str) -> Upload:
    """Find a file that the caller may use.

    Raises:
        NotFound: There is none, or it is somebody else's.
    """
    upload = await call.host.uploads.get(call.host.agents.get(agent_id).id, file_id)
    if not may_see(call.principal, upload):
        raise NotFound("file", file_id)
    return upload


def may_see(principal: Principal, upload: Upload) -> bool:
    """Whoever has every right sees all files, others their own and their person's."""
    return (
        principal.grants is None
        or upload.owner == f"{principal.kind}:{principal.name}"
        or bool(principal.person and upload.person == principal.person)
    )


def _told(
    call: Call, kind: type[FileEvent], file: Upload
) -> AbstractContextManager[Keep | None]:
    facts = file.agent_id, file.name, file.media_type, file.size
    now, caused = call.host.clock.time(), call.context.caused
    return telling(call.host.events, kind, file.id, now, *facts, **caused)


def _opened(content_type: str, body: bytes) -> tuple[str, str, bytes]:
    name, data = read_file(content_type, body)
    if len(data) > FILE_BYTES:
        raise TooLarge(f"file: over the limit of {FILE_BYTES} bytes")
    return plain_name(name), media_type_of(data), data


def _shown(upload: Upload) -> UploadedFile:
    return {
        "file_id": upload.id,
        "name": upload.name,
        "size": upload.size,
        "type": upload.media_type,
    }


def _item(upload: Upload) -> FileItem:
    at = timestamp(upload.at)
    return {**_shown(upload), "uploaded_at": at, "owner": upload.owner}
