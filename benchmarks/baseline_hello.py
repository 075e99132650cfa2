"""The yardsticks: routes of stock Quart, served by an embedded stock Hypercorn."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import quart
from hypercorn.asyncio import serve
from hypercorn.config import Config

app = quart.Quart(__name__)


@app.get("/")
async def hello() -> dict[str, str]:
    """Say hello in JSON."""
    return {"hello": "world"}


@app.post("/echo")
async def echo() -> Any:
    """Give back the JSON that came."""
    return await quart.request.get_json()


async def main() -> None:
    """Serve on a free port, told on standard output."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0)
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.errorlog = None
    print(listener.getsockname()[1], flush=True)
    await serve(app, config, shutdown_trigger=asyncio.Event().wait)


if __name__ == "__main__":
    asyncio.run(main())
