"""Responses as rows, and what one owner can read of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from agenthost import (
    Image,
    InvalidInput,
    JsonObject,
    Message,
    NotFound,
    Role,
    Store,
    ToolOutput,
)
from agenthost_chat.history import open_calls
from agenthost_values.value_class import value_class

from ..media import Remote
from ..tools import Kept
from .draft import BEGIN, GOES_ON, KNOWN, Ending, ended, shown
from .reading import Link
from .words import rows_of, said_of

HOPS = 1_000
"""Responses that a conversation may have."""
MOST_BYTES = 64 * 1024 * 1024
"""What a conversation may have in its rows."""
LONGEST = 64
PREVIOUS = "previous_response_id"

Row = dict[str, Any]


class ResponseNotFound(NotFound):
    """There is no such response, or it is somebody else's."""

    def __init__(self, response_id: str, field: str = "response_id") -> None:
        super().__init__("response", response_id[:LONGEST])
        self.field = field


@value_class
class Stored:
    """A response as it is kept."""

    id: str
    owner: str
    agent_id: str
    model: str
    status: str
    background: bool
    created_at: float
    open: bool
    digest: str | None
    labels: frozenset[str]
    asked: JsonObject
    items: Sequence[JsonObject]
    remote: JsonObject
    ending: JsonObject

    @property
    def hex(self) -> str:
        """What its id, and those of its items, are made of."""
        return self.id.removeprefix(BEGIN)

    @property
    def shown(self) -> dict[str, Any]:
        """As clients read it."""
        begun = shown(self.hex, self.model, self.created_at, self.asked)
        return {**begun, "status": self.status, **self.ending}


class Responses:
    """The stored responses of one owner: there is no way to another's.

    Args:
        store: Where they are kept.
        owner: Whose they are.
    """

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner

    async def get(self, response_id: str) -> Stored:
        """Read one.

        Raises:
            ResponseNotFound: They have none of this id.
        """
        found = await self.find(response_id)
        if found is None:
            raise ResponseNotFound(response_id)
        return found

    async def find(self, response_id: str) -> Stored | None:
        """Read one, None where they have none of this id."""
        from .tables import ONE

        # Some databases fail at texts that are no id.
        if not KNOWN.fullmatch(response_id):
            return None
        wanted = {"id": response_id, "owner": self._owner}
        row = await self._store.first(ONE, wanted)
        return None if row is None else stored_of(row)

    async def remove(self, response_id: str) -> None:
        """Delete one.

        Raises:
            ResponseNotFound: They have none of this id.
        """
        from .writes import remove

        if not KNOWN.fullmatch(response_id):
            raise ResponseNotFound(response_id)
        gone = partial(remove, known=response_id, owner=self._owner)
        if not await self._store.write(gone):
            raise ResponseNotFound(response_id)

    async def conversation(
        self, response_id: str, agent_id: str
    ) -> tuple[Sequence[Link], frozenset[str]]:
        """Read a response and all before it, as an agent may know them.

        Returns:
            What was said, the oldest first, and the labels of all that.

        Raises:
            ResponseNotFound: They have none of this id, or one before it was deleted.
            InvalidInput: It has no answer, or too much was said.
        """
        from .tables import CHAIN

        if not KNOWN.fullmatch(response_id):
            raise ResponseNotFound(response_id, PREVIOUS)
        wanted = {"id": response_id, "owner": self._owner}
        rows = await self._store.read(
            CHAIN, {**wanted, "hops": HOPS, "most": MOST_BYTES}
        )
        _check_chain(rows, response_id)
        labels = [frozenset(json.loads(row["labels"])) for row in rows]
        # Megabytes of JSON would hold up everybody else.
        links = await asyncio.to_thread(_links_of, rows, agent_id)
        return links, frozenset[str]().union(*labels)


def _check_chain(rows: Sequence[Any], response_id: str) -> None:
    if not rows:
        raise ResponseNotFound(response_id, PREVIOUS)
    last, first = rows[-1], rows[0]
    if last["status"] not in GOES_ON:
        problem = f"the response is {last['status']}; go on behind one that has ended"
        raise InvalidInput(PREVIOUS, problem)
    if not first["previous"]:
        return
    if first["hop"] >= HOPS or first["total"] >= MOST_BYTES:
        raise InvalidInput(PREVIOUS, "the conversation is too long; begin another")
    raise ResponseNotFound(first["previous"], PREVIOUS)


def _links_of(rows: Sequence[Any], agent_id: str) -> Sequence[Link]:
    return [_link_of(row, agent_id) for row in rows]


def _link_of(row: Any, agent_id: str) -> Link:
    output = json.loads(row["ending"])["output"]
    kept = None
    if row["agent_id"] == agent_id:
        kept = _kept_of(said_of(json.loads(row["said"])), output)
    remote = images_of(json.loads(row["remote"]))
    return Link(json.loads(row["items"]), remote, output, kept)


def _kept_of(said: Sequence[Message], output: Sequence[JsonObject]) -> Kept:
    """Tell which calls are the client's, by the ids that it was told."""
    told = [item["call_id"] for item in output if item["type"] == "function_call"]
    calls = dict(zip(told, open_calls(said) if told else (), strict=True))
    outputs: tuple[ToolOutput, ...] = ()
    if said and said[-1].role is Role.TOOL:
        parts = said[-1].parts
        outputs = tuple(part for part in parts if isinstance(part, ToolOutput))
        said = said[:-1]
    return Kept(said, outputs, calls, frozenset())


def images_of(rows: JsonObject) -> Remote:
    """Read pictures that were fetched."""
    return {url: Image(*each) for url, each in rows.items()}


def stored_of(row: Any) -> Stored:
    """Read a row."""
    return Stored(
        row["id"],
        row["owner"],
        row["agent_id"],
        row["model"],
        row["status"],
        bool(row["background"]),
        row["created_at"],
        row["ended_at"] is None,
        row["digest"],
        frozenset(json.loads(row["labels"])),
        json.loads(row["asked"]),
        json.loads(row["items"]),
        json.loads(row["remote"]),
        json.loads(row["ending"] or "{}"),
    )


def row_of(asked: JsonObject, items: Sequence[JsonObject], remote: Remote) -> Row:
    """Write what a response is asked; all of it that is large."""
    pictures = {url: [each.media_type, each.data] for url, each in remote.items()}
    texts = {
        "asked": json.dumps(asked),
        "items": json.dumps(items),
        "remote": json.dumps(pictures),
    }
    return {
        "previous": asked.get("previous_response_id") or "",
        "background": int(bool(asked.get("background"))),
        "size": sum(map(len, texts.values())),
        **texts,
    }


def columns_of(ending: Ending, labels: frozenset[str]) -> Row:
    """Write what came of a response."""
    return {
        "status": ending.status,
        "ended_at": ending.at,
        "labels": labels_text(labels),
        "ending": json.dumps(ended({}, ending)),
        "said": json.dumps(rows_of(ending.said)),
    }


def labels_text(labels: frozenset[str]) -> str:
    """Write labels."""
    return json.dumps(sorted(labels))
