"""What an entry tells of an event: who, what and when, and of words their digest."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256
from typing import Any

from agenthost import Event, LifecycleEvent, MessageEvent, ToolEvent, timestamp
from pydantic_core import to_json

from .canonical import Facts

LONGEST_TEXT = 512
LONGEST_VALUE = 4096
LONGEST_NAME = 512
SCALARS = frozenset({int, float, bool, type(None)})
_AGENTS = (LifecycleEvent, MessageEvent, ToolEvent)
"""What is about the agent that is its subject."""
CONTENT = "text"
"""Under this name stand the words of people and models: never more than a digest."""


def facts_of(event: Event) -> Facts:
    """Give what the entry of an event tells."""
    facts: dict[str, Any] = vars(event)
    # An empty text says nothing, and for time and actor there are columns.
    told = {n: value for n, value in facts.items() if type(value) is not str or value}
    del told["at"]
    told.pop("by", None)
    if not event.depth:
        del told["depth"]
    if type(words := told.get(CONTENT)) is str:
        told[CONTENT] = digest_of(words)
    written = _written(told)
    if len(written) > LONGEST_TEXT:
        written = _written({name: _short(value) for name, value in told.items()})
    of_agent = isinstance(event, _AGENTS)
    agent = event.subject if of_agent else facts.get("agent_id") or event.source
    actor = _plain(event.by)
    return (
        _moment(event.at),
        _plain(event.kind),
        _plain(str(agent)),
        actor,
        written,
    )


# The events of one step have one time.
_moment = lru_cache(8)(timestamp)


def digest_of(text: str) -> dict[str, Any]:
    """Tell of words without telling them."""
    written = text.encode("utf-8", "surrogatepass")
    return {"sha256": sha256(written).hexdigest(), "characters": len(text)}


def _short(value: Any) -> Any:
    if type(value) is str:
        return digest_of(value) if len(value) > LONGEST_TEXT else value
    if type(value) in SCALARS:
        return value
    written = _written(value)
    return value if len(written) <= LONGEST_VALUE else digest_of(written)


def _written(value: Any) -> str:
    """Write compact JSON, of whatever it is."""
    try:
        return to_json(value).decode()
    except ValueError:
        # Half a surrogate pair, say, or what a plugin made up.
        return json.dumps(value, separators=(",", ":"), default=str, skipkeys=True)


@lru_cache(1024)
def _plain(text: str) -> str:
    """Write a name so that every database takes it."""
    if len(text) <= LONGEST_NAME and text.isascii() and text.isprintable():
        return text
    return json.dumps(text)[1:-1][:LONGEST_NAME]
