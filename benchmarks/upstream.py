"""A small, fast, scripted OpenAI-chat upstream, without latency unless it is given.

``python -m benchmarks.upstream [CHUNKS [SECONDS]]`` prints its port and serves until
killed; each answer takes so many seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable

USAGE = {"prompt_tokens": 10, "completion_tokens": 50, "total_tokens": 60}


def frame(delta: dict[str, str], finish: str | None = None) -> bytes:
    """Write one server-sent event of a streamed answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    event: dict[str, object] = {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "bench-model",
        "choices": [choice],
    }
    if finish is not None:
        event["usage"] = USAGE
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def streamed(chunks: int) -> bytes:
    """Write a whole streamed answer, one HTTP chunk an event."""
    frames = [frame({"role": "assistant", "content": "word "})]
    frames += [frame({"content": "word "})] * (chunks - 1)
    frames += [frame({}, "stop"), b"data: [DONE]\n\n"]
    return in_chunks(frames, "text/event-stream")


def in_chunks(frames: Iterable[bytes], media_type: str) -> bytes:
    """Write an answer of one HTTP chunk a frame."""
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n"
    ) % media_type.encode()
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in frames)
    return head + body + b"0\r\n\r\n"


def whole(chunks: int) -> bytes:
    """Write the same answer in one piece."""
    message = {"role": "assistant", "content": "word " * chunks}
    answer = {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 0,
        "model": "bench-model",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": USAGE,
    }
    return reply(200, answer)


def reply(status: int, answer: object) -> bytes:
    """Write a JSON answer."""
    return in_one_piece(status, json.dumps(answer).encode())


def in_one_piece(status: int, body: bytes) -> bytes:
    """Write an answer whose body is JSON already."""
    return (
        b"HTTP/1.1 %d -\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        % (status, len(body))
    ) + body


class Upstream(asyncio.Protocol):
    """One connection: answers each request so long after its body is whole."""

    def __init__(self, chunks: int, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._streamed = streamed(chunks)
        self._whole = whole(chunks)
        self._unknown = reply(404, {"error": {"message": "no such path"}})
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (request := self._next_request()) is not None:
            assert self._transport is not None
            answer = self._answer(*request)
            if self._seconds:
                loop = asyncio.get_running_loop()
                loop.call_later(self._seconds, self._transport.write, answer)
            else:
                self._transport.write(answer)

    def _next_request(self) -> tuple[bytes, bytes] | None:
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        length = body_length(head) if end else 0
        if not end or len(rest) < length:
            return None
        self._buffer = rest[length:]
        return head, rest[:length]

    def _answer(self, head: bytes, body: bytes) -> bytes:
        if not head.startswith(b"POST /v1/chat/completions "):
            return self._unknown
        return self._streamed if json.loads(body).get("stream") else self._whole


def body_length(head: bytes) -> int:
    """Read Content-Length of a request head; 0 without one."""
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.partition(b"\r\n")[0]) if found else 0


async def serve(chunks: int, seconds: float) -> None:
    """Serve on a free port, told on standard output."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upstream(chunks, seconds), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    chunks, seconds = [*sys.argv[1:], *("50", "0")[len(sys.argv) - 1 :]][:2]
    asyncio.run(serve(int(chunks), float(seconds)))
