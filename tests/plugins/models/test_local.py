"""A local Ollama is the default when it answers like one and has a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from agenthost.testing.daemons import Daemons

NO_DEFAULT = {
    "AGENTHOST_DEFAULT_MODEL__PROVIDER": "",
    "AGENTHOST_DEFAULT_MODEL__MODEL": "",
}


@asynccontextmanager
async def answering(body: str) -> AsyncIterator[str]:
    """Serve one body to every request on a loopback port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n"
        writer.write(f"{head}connection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("body", "default"),
    [
        (json.dumps({"models": [{"name": "mine:7b"}]}), ("ollama", "mine:7b")),
        (json.dumps({"models": []}), ("offline", "offline")),
        ("something else listens here", ("offline", "offline")),
        ("[1]", ("offline", "offline")),
    ],
)
async def test_only_a_local_ollama_with_a_model_becomes_the_default(
    daemons: Daemons, body: str, default: tuple[str, str]
) -> None:
    async with answering(body) as address:
        daemon = await daemons.start(
            config=f'[providers.ollama]\nbase_url = "{address}"\n', environ=NO_DEFAULT
        )
        await daemon.daemon.models.probe_local()
        assert daemon.daemon.models.names_of_default() == default


async def test_an_ollama_that_pauses_stays_the_default(daemons: Daemons) -> None:
    async with answering(json.dumps({"models": [{"name": "mine:7b"}]})) as address:
        daemon = await daemons.start(
            config=f'[providers.ollama]\nbase_url = "{address}"\n', environ=NO_DEFAULT
        )
        models = daemon.daemon.models
        await models.probe_local()
    await models.choose(None, "somebody-elses")
    assert models.names_of_default() == ("ollama", "mine:7b")


async def test_a_local_address_nobody_serves_is_no_default(daemons: Daemons) -> None:
    async with answering("") as address:
        pass
    daemon = await daemons.start(
        config=f'[providers.ollama]\nbase_url = "{address}"\n', environ=NO_DEFAULT
    )
    await daemon.daemon.models.probe_local()
    assert daemon.daemon.models.names_of_default() == ("offline", "offline")
