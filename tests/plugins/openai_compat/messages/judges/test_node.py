"""Anthropic's official Node client, unchanged, against a running daemon.

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
PACKAGES = HERE.parents[4] / ".cache/npm/node_modules"
NODE = shutil.which("node")
KEY = "a-key-of-this-judge-0123456"

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        NODE is None or not (PACKAGES / "@anthropic-ai/sdk").exists(),
        reason="needs node and `npm i @anthropic-ai/sdk` in .cache/npm",
    ),
]


async def test_every_scenario(daemons: Daemons) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    daemon.http.headers["authorization"] = f"Bearer {KEY}"
    await daemon.agent("ada")
    both = ("calculate", {"expression": "6*7"}), ("weather", {"city": "Rome"})
    daemon.model.says("You said: ", "hello")
    daemon.model.says("one ", "two")
    daemon.model.thinks("hm, ", "well", then="yes")
    daemon.model.calls_all(*both)
    daemon.model.says("sunny")
    daemon.model.calls_all(*both)
    daemon.model.says("seen")
    daemon.model.says('{"name": "Rome"}')
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(HERE / "scenarios.mjs"),
        str(PACKAGES / "x.js"), daemon.url, KEY,
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
        "models": [["service:ada", "active"]],
        "message": ["You said: hello", "end_turn", 10],
        "requestId": True,
        "plain": "one two",
        "thought": "hm, well",
        "final": ["thinking", "text"],
        "signed": True,
        "tokens": [10, 5],
        "called": ["tool_use", [{"city": "Rome"}]],
        "after": "sunny",
        "streamedCall": [["tool_use", {"city": "Rome"}]],
        "formed": {"name": "Rome"},
        "counted": True,
        "errors": [
            ["NotFoundError", 404, "not_found_error", True],
            ["BadRequestError", 400, "invalid_request_error", True],
            ["BadRequestError", 400, "invalid_request_error", True],
            ["NotFoundError", 404, "not_found_error", True],
            ["AuthenticationError", 401, "authentication_error", True],
        ],
    }
    shown = [part for r in daemon.model.requests for part in r.messages[-1].parts]
    assert any(isinstance(part, Image) for part in shown)
