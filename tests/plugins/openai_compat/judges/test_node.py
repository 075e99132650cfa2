"""OpenAI's official Node client, unchanged, against a running daemon.

``make judges`` installs it in .cache/npm.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from agenthost import Image
from agenthost.testing.daemons import Daemons

HERE = Path(__file__).parent
PACKAGES = HERE.parents[3] / ".cache/npm/node_modules"
NODE = shutil.which("node")
KEY = "a-key-of-this-judge-0123456"

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
    both = ("calculate", {"expression": "6*7"}), ("weather", {"city": "Rome"})
    daemon.model.says("You said: ", "hello")
    daemon.model.says("one ", "two")
    daemon.model.calls_all(*both)
    daemon.model.says("sunny")
    daemon.model.calls_all(*both)
    daemon.model.says('{"name": "Rome"}')
    daemon.model.says("a picture")
    daemon.model.scores(one=-0.5, two=-1.5)
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(HERE / "scenarios.mjs"),
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
    seen = json.loads(said)
    lengths = seen.pop("embeddings")
    assert len(lengths) == 2
    assert lengths[0] == lengths[1] > 0
    assert seen == {
        "models": ["service:ada"],
        "chat": "You said: hello",
        "requestId": True,
        "stream": "one two",
        "usage": 15,
        "finish": "tool_calls",
        "after": "sunny",
        "streamedCall": '{"city": "Rome"}',
        "formed": {"name": "Rome"},
        "likely": ["one", "two"],
        "errors": [
            [404, "model not found: service:nobody"],
            [400, "n: must be 1: an agent gives one answer"],
            [404, "model not found: gpt-4o"],
        ],
    }
    shown = [part for r in daemon.model.requests for part in r.messages[-1].parts]
    assert any(isinstance(part, Image) for part in shown)
