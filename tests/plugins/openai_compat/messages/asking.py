"""Requests of Anthropic's clients, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import httpx
from agenthost.testing.daemons import RunningDaemon

PATH = "/v1/messages"
HELLO = [{"role": "user", "content": "hello"}]
CITY = {"city": "Rome"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"name": "weather", "description": "To.", "input_schema": SCHEMA}
BOTH = (("calculate", {"expression": "6*7"}), ("weather", CITY))

Named = tuple[str, dict[str, Any]]


def asked(**body: Any) -> dict[str, Any]:
    """A request for an answer."""
    return {"model": "ada", "max_tokens": 100, "messages": HELLO, **body}


async def ask(daemon: RunningDaemon, **body: Any) -> httpx.Response:
    return await daemon.http.post(PATH, json=asked(**body))


async def answered(daemon: RunningDaemon, **body: Any) -> dict[str, Any]:
    """Ask for an answer that comes."""
    answer = await ask(daemon, **body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def events_of(daemon: RunningDaemon, **body: Any) -> list[Named]:
    """Ask for a stream, and give its events, the names in two places alike."""
    answer = await ask(daemon, stream=True, **body)
    assert answer.status_code == 200, answer.text
    return read_events(answer.text)


def read_events(text: str) -> list[Named]:
    events = []
    for frame in text.strip().split("\n\n"):
        name, _, data = frame.partition("\n")
        told = json.loads(data.removeprefix("data: "))
        assert name == f"event: {told['type']}"
        events.append((told.pop("type"), told))
    return events


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    """Messages of one question."""
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def results(said: list[dict[str, Any]], /, *more: Any, **block: Any) -> list[Any]:
    """Go on with a conversation once the client has made its calls."""
    made = [
        {"type": "tool_result", "tool_use_id": each["id"], **block}
        for each in said
        if each["type"] == "tool_use"
    ]
    answer = {"role": "assistant", "content": said}
    return [*HELLO, answer, {"role": "user", "content": [*made, *more]}]
