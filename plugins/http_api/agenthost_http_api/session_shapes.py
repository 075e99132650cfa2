"""The JSON shapes of sessions as things of their own: lists, changes, forks."""

from __future__ import annotations

from typing import Literal, NotRequired
from uuid import UUID

from pydantic import Field
from typing_extensions import TypedDict

from .shapes import Ask, Attached, Body, Id, MessageAnswer, Moment, SessionMessage

KEY_LENGTH = 256
TITLE_LENGTH = 200
QUERY_LENGTH = 200
PAGE = 1_000


class SessionsQuery(Body):
    """``GET /api/sessions``."""

    archived: bool | None = Field(
        None, description="Only archived sessions, or only others"
    )
    agent: UUID | None = Field(None, description="Only this agent's")
    q: str = Field(
        "", max_length=QUERY_LENGTH, description="Words of a title or a message"
    )
    order: Literal["oldest", "newest"] = Field(
        "oldest", description="By creation, or the one spoken in last first"
    )
    limit: int | None = Field(None, ge=1, le=PAGE)
    after: UUID | None = Field(None, description="The last session of the page before")


class OpenSession(Body):
    """``POST /api/agents/{id}/sessions``."""

    key: str | None = Field(
        None,
        min_length=1,
        max_length=KEY_LENGTH,
        description="Finds the same session again",
    )
    ephemeral: bool = Field(
        default=False, description="In no list, and erased a day after its last use"
    )


class ChangeSession(Body):
    """``PATCH /api/sessions/{id}``; what is left out stays."""

    title: str | None = Field(None, min_length=1, max_length=TITLE_LENGTH)
    archived: bool | None = None


class ForkSession(Ask, Attached):
    """``POST /api/sessions/{id}/fork``."""

    at_message: int | None = Field(
        None, ge=0, description="The message before which it ends; all by default"
    )
    message: str | None = Field(None, description="What to ask in the fork at once")


class ExportQuery(Body):
    """``GET /api/sessions/{id}/export``."""

    format: Literal["json", "markdown"] = "json"


class SessionItem(TypedDict):
    """A session; ``current`` is the one that its agent goes on in."""

    id: Id
    agent_id: Id
    agent_name: str
    message_count: int
    created_at: Moment
    updated_at: Moment
    title: str
    archived: bool
    current: bool
    key: NotRequired[str]
    parent_id: NotRequired[Id]
    at_message: NotRequired[int]


class SessionList(TypedDict):
    """``GET /api/sessions``."""

    sessions: list[SessionItem]


class WholeSession(SessionItem):
    """``GET /api/sessions/{id}``; ``ephemeral`` ones are in no list."""

    ephemeral: bool
    context_window_tokens: int
    messages: list[SessionMessage]


class PinnedMessages(TypedDict):
    """The messages of a session that stay whole, by number."""

    session_id: Id
    pinned: list[int]


class SessionActivated(TypedDict):
    """An agent goes on in a session."""

    status: Literal["activated"]
    agent_id: Id
    session_id: Id


class ForkedSession(SessionItem):
    """``POST /api/sessions/{id}/fork``; ``answer`` to the message it was sent with."""

    answer: NotRequired[MessageAnswer]
