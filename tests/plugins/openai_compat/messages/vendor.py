"""A service that speaks Anthropic's messages, with what only it can read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agenthost.testing.daemons import Daemons, RunningDaemon

CLAUDE = "claude-haiku-4-5"
MODEL = f"anthropic/{CLAUDE}"
CONFIG = """
[openai]
passthrough = true

[providers.anthropic]
base_url = "{}"
"""
USAGE = {"input_tokens": 3, "output_tokens": 5}
DELTAS = {
    "thinking": (("thinking_delta", "thinking"), ("signature_delta", "signature")),
    "text": (("text_delta", "text"),),
}


class Vendor:
    """Answers with blocks as a test gives them, and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.blocks: Sequence[dict[str, Any]] = ()
        self.url = ""

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        asked = json.loads(await reader.readexactly(length))
        self.sent.append(asked)
        streamed = asked.get("stream")
        body = "".join(self._events()) if streamed else json.dumps(self._whole())
        kind = "text/event-stream" if streamed else "application/json"
        told = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
        writer.write((told + body).encode())
        await writer.drain()
        writer.close()

    def _whole(self) -> dict[str, Any]:
        calls = any(block["type"] == "tool_use" for block in self.blocks)
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": CLAUDE,
            "content": list(self.blocks),
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": USAGE,
        }

    def _events(self) -> Iterator[str]:
        whole = self._whole()
        yield _frame("message_start", message={**whole, "content": []})
        for index, block in enumerate(self.blocks):
            pieces = DELTAS.get(block["type"], ())
            begun = {**block, **{name: "" for _, name in pieces}}
            cited = begun.pop("citations", ())
            begun |= {"input": {}} if block["type"] == "tool_use" else {}
            yield _frame("content_block_start", index=index, content_block=begun)
            deltas = [{"type": kind, name: block[name]} for kind, name in pieces]
            deltas += [{"type": "citations_delta", "citation": one} for one in cited]
            if block["type"] == "tool_use":
                said = json.dumps(block["input"])
                deltas = [{"type": "input_json_delta", "partial_json": said}]
            for delta in deltas:
                yield _frame("content_block_delta", index=index, delta=delta)
            yield _frame("content_block_stop", index=index)
        ending = {name: whole[name] for name in ("stop_reason", "stop_sequence")}
        yield _frame("message_delta", delta=ending, usage=USAGE)
        yield _frame("message_stop")


def _frame(kind: str, **told: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **told})}\n\n"


@asynccontextmanager
async def vendor_and_daemon(
    daemons: Daemons,
) -> AsyncIterator[tuple[Vendor, RunningDaemon]]:
    """Start the service, and a daemon whose provider it is."""
    vendor = Vendor()
    server = await asyncio.start_server(vendor.serve, "127.0.0.1", 0)
    vendor.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    config = CONFIG.format(vendor.url)
    environ = {"ANTHROPIC_API_KEY": "sk-x"}
    async with server:
        yield vendor, await daemons.start(config=config, environ=environ)
