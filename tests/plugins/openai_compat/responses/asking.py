"""What the tests of responses ask, and how they read what comes."""

from __future__ import annotations

import json
from typing import Any

import httpx
from agenthost.testing.daemons import RunningDaemon

PATH = "/v1/responses"
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "To.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": True,
}
CITY = {"city": "Rome"}


async def ask(
    daemon: RunningDaemon, said: Any = "hello", **body: Any
) -> httpx.Response:
    asked = {"model": "ada", "input": said, **body}
    return await daemon.http.post(PATH, json=asked)


async def made(daemon: RunningDaemon, said: Any = "hello", **body: Any) -> Any:
    answer = await ask(daemon, said, **body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def read(daemon: RunningDaemon, response: Any) -> httpx.Response:
    return await daemon.http.get(f"{PATH}/{response['id']}")


def events_in(text: str, begin: int = 0) -> list[dict[str, Any]]:
    """Read a stream, whose names and types must agree, and whose numbers follow."""
    events = []
    for frame in filter(None, text.split("\n\n")):
        if frame.startswith(":"):
            continue
        name, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    assert [e["sequence_number"] for e in events] == [
        *range(begin, begin + len(events))
    ]
    return events


async def streamed(daemon: RunningDaemon, said: Any = "hello", **body: Any) -> Any:
    answer = await ask(daemon, said, stream=True, **body)
    assert answer.status_code == 200, answer.text
    return events_in(answer.text)


def texts_of(response: Any) -> list[str]:
    return [
        item["content"][0]["text"]
        for item in response["output"]
        if item["type"] == "message"
    ]


def calls_of(response: Any) -> list[Any]:
    return [item for item in response["output"] if item["type"] == "function_call"]


def results(response: Any, text: str = "sunny") -> list[dict[str, Any]]:
    """Answer the calls of a response."""
    return [
        {"type": "function_call_output", "call_id": call["call_id"], "output": text}
        for call in calls_of(response)
    ]
