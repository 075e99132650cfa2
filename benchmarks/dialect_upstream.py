"""One scripted service for all eight dialects, without latency.

Below ``/<dialect>/stream`` everything is answered with a streamed answer, below
``/<dialect>/whole`` with one in one piece. ``python -m benchmarks.dialect_upstream
EVENTS`` prints its port and serves until killed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

from agenthost.testing.samples import WIRES
from agenthost.testing.simulators import Turn
from agenthost.testing.simulators.replicate import HEAD, finished

from .upstream import Upstream, in_chunks, in_one_piece, reply

REPLICATE = "replicate-predictions"
Answers = tuple[tuple[bytes, bytes], ...]
"""The beginning of a path, and what is answered there; the first that fits counts."""


def script(port: int, events: int) -> Iterator[tuple[str, bytes]]:
    """Write the answers of every dialect: as many words as events."""
    turn = Turn("word " * events)
    yield from predictions(port, turn)
    for dialect, wire in WIRES.items():
        streamed = in_chunks(wire.events(turn), wire.content_type)
        yield f"/{dialect}/stream/", streamed
        yield f"/{dialect}/whole/", in_one_piece(200, wire.whole(turn))


def predictions(port: int, turn: Turn) -> Iterator[tuple[str, bytes]]:
    """Write Replicate's other addresses: a streamed prediction takes three calls."""
    base = f"/{REPLICATE}/stream/"
    here = f"http://127.0.0.1:{port}{base}predictions/p1"
    urls = {"get": here, "cancel": f"{here}/cancel", "stream": f"{here}/stream"}
    wire = WIRES[REPLICATE]
    yield (
        f"{base}predictions/p1/stream",
        in_chunks(wire.events(turn), wire.content_type),
    )
    yield f"{base}predictions/p1", reply(200, finished(turn))
    begun = {**HEAD, "status": "processing", "output": None, "urls": urls}
    yield f"{base}models/", reply(200, begun)


class DialectUpstream(Upstream):
    """One connection."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(0)
        self._answers = answers

    def _answer(self, head: bytes, body: bytes) -> bytes:
        del body
        path = head.split(b" ", 2)[1]
        found = (answer for start, answer in self._answers if path.startswith(start))
        return next(found, self._unknown)


async def serve(events: int) -> None:
    """Serve on a free port, told on standard output."""
    loop = asyncio.get_running_loop()
    answers: list[tuple[bytes, bytes]] = []
    server = await loop.create_server(
        lambda: DialectUpstream(tuple(answers)), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    answers += [(path.encode(), answer) for path, answer in script(port, events)]
    print(port, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
