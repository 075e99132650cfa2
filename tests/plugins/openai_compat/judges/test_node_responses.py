"""OpenAI's official Node client, unchanged, at ``/v1/responses``."""

from __future__ import annotations

import asyncio
import json

import pytest
from agenthost.testing.daemons import Daemons

from .test_node import HERE, KEY, NODE, PACKAGES

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        NODE is None or not (PACKAGES / "openai").exists(),
        reason="needs node and `npm i openai` in .cache/npm",
    ),
]


async def test_every_scenario(daemons: Daemons) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    daemon.http.headers["authorization"] = f"Bearer {KEY}"
    await daemon.agent("ada")
    daemon.model.says("You said: ", "hello")
    daemon.model.says("one ", "two")
    daemon.model.calls_all(
        ("calculate", {"expression": "6*7"}), ("weather", {"city": "Rome"})
    )
    daemon.model.says("sunny")
    daemon.model.says('{"name": "Rome"}')
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(HERE / "responses.mjs"),
        str(PACKAGES / "x.js"), f"{daemon.url}/v1", KEY,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(60):
            said, wrong = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, wrong.decode()
    assert json.loads(said) == {
        "text": "You said: hello",
        "same": True,
        "items": ["hello"],
        "events": [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ],
        "call": '{"city": "Rome"}',
        "after": "sunny",
        "formed": {"name": "Rome"},
        "background": ["completed", "You said: slow"],
        "cancelled": "completed",
        "takenUp": "You said: one two three",
        "numbered": True,
        "helped": 4,
        "errors": [
            [404, "response not found"],
            [404, "response not found"],
            [400, "truncation"],
            [400, "response_id"],
        ],
    }
