"""The routes of the page: public, cheap, revalidated by ETag."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from agenthost import Answer, Call, NotFound, Reply, RouteGroup

from .static_files import StaticFile

SCOPE = "ui:read"


def page_routes(files: Callable[[], Mapping[str, StaticFile]]) -> RouteGroup:
    """Serve ``index.html`` at ``/`` and every file below ``/static/``.

    Args:
        files: Gives what to serve, by path relative to ``/static/``.
    """
    routes = RouteGroup("web_ui")
    read: list[Mapping[str, StaticFile]] = []

    async def served() -> Mapping[str, StaticFile]:
        if not read:
            # Only once: others need not wait for the disk.
            read.append(await asyncio.to_thread(files))
        return read[0]

    @routes.get("/", scope=SCOPE, cost=1, public=True, media="text/html", direct=True)
    async def index(call: Call) -> Answer:
        """The chat page."""
        return _reply(call, (await served())["index.html"])

    @routes.get(
        "/static/<path:path>",
        scope=SCOPE,
        cost=1,
        public=True,
        media="*/*",
        direct=True,
    )
    async def static(call: Call, path: str) -> Answer:
        """A file that the chat page needs."""
        found = (await served()).get(path)
        if found is None:
            raise NotFound("file", path)
        return _reply(call, found)

    return routes


def _reply(call: Call, file: StaticFile) -> Reply:
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if _is_current(call.headers.get("if-none-match", ""), file.etag):
        return Reply(b"", 304, headers)
    return Reply(file.body, headers={"Content-Type": file.content_type, **headers})


def _is_current(if_none_match: str, etag: str) -> bool:
    """Compare weakly, as RFC 9110 section 13.1.2 asks for GET."""
    given = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in given or given == ["*"]
