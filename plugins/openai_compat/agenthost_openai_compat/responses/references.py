"""Items of stored responses, which a request names by their ids."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agenthost import InvalidInput, JsonObject

from .draft import BEGIN
from .rows import ResponseNotFound, Responses, Stored

KIND = "item_reference"
MOST = 64
"""Responses that one request may name items of."""
_ID = re.compile(r"[a-z]{2,3}_([0-9a-f]{32})_(in)?([0-9]{1,5})")


async def resolved(
    given: str | Sequence[JsonObject], stored: Responses
) -> str | Sequence[JsonObject]:
    """Put items of stored responses in the place of their ids.

    Args:
        given: An input.
        stored: Whose responses they may be of.

    Raises:
        ResponseNotFound: There is no such response.
        InvalidInput: It has no such item, or too many are named.
    """
    if isinstance(given, str) or all(item.get("type") != KIND for item in given):
        return given
    found: dict[str, Stored] = {}
    items = []
    for at, item in enumerate(given):
        if item.get("type") != KIND:
            items.append(item)
            continue
        place, id_ = f"input.{at}.id", item.get("id")
        match = _ID.fullmatch(id_) if isinstance(id_, str) else None
        if match is None:
            raise InvalidInput(place, "must be the id of an item of a stored response")
        known = BEGIN + match[1]
        if known not in found:
            found[known] = await _read(stored, known, place, len(found))
        items.append(_item(found[known], match, place))
    return items


async def _read(stored: Responses, known: str, place: str, count: int) -> Stored:
    if count >= MOST:
        raise InvalidInput("input", f"items of at most {MOST} responses are named")
    response = await stored.find(known)
    if response is None:
        raise ResponseNotFound(known, place)
    return response


def _item(response: Stored, match: re.Match[str], place: str) -> JsonObject:
    items = response.items if match[2] else response.shown["output"]
    number = int(match[3])
    if number >= len(items):
        raise InvalidInput(place, "the response has no such item")
    item: JsonObject = items[number]
    return item
