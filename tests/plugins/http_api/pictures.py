"""Small files of each kind, and how they are handed to an agent."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from types import SimpleNamespace

import httpx
from agenthost import ModelFacts, ProviderFacts, ProviderSpec, hookimpl
from agenthost.testing import ScriptedModel
from agenthost.testing.daemons import RunningAgent

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0"
GIF = b"GIF89a\1\0\1\0\0\0\0;"
WEBP = b"RIFF\x1a\0\0\0WEBPVP8L\r\0\0\0"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n%%EOF\n"


async def upload(
    agent: RunningAgent, data: bytes, name: str = "a.png", **headers: str
) -> httpx.Response:
    """Hand a file to an agent, as a browser does."""
    path = f"/api/agents/{agent.id}/files"
    return await agent.host.http.post(
        path, files={"file": (name, data)}, headers=headers
    )


async def file_id(agent: RunningAgent, data: bytes, name: str = "a.png") -> str:
    """Hand a file to an agent; give its id."""
    answer = await upload(agent, data, name)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["file_id"])


EYES = '[model]\nprovider = "seer"\nmodel = "seer-model"\n'
"""Of an agent whose model sees images and reads documents."""


def seer(model: ScriptedModel) -> SimpleNamespace:
    """Make the plugin of a provider whose model takes everything."""
    row = ModelFacts(
        "seer-model",
        "seer",
        "seer-model",
        "Seer",
        input_cost_per_1m=1.0,
        supports_vision=True,
        documents=True,
    )
    facts = ProviderFacts("seer", "Seer", "", key_required=False, models=(row,))

    @hookimpl
    def register_provider() -> Iterable[ProviderSpec]:
        return [ProviderSpec(facts, model)]

    return SimpleNamespace(__name__="seer", register_provider=register_provider)
