"""Server-sent events: coalesced, kept alive, closed as soon as the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType

from .admission import Admission
from .asgi import Headers, Receive, Send
from .inbox import Inbox

STREAM_HEADERS: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
COMMENT = b": keep-alive\n\n"
HIGH_WATER = 64 * 1024


async def close_frames(frames: AsyncIterator[bytes]) -> None:
    """Close an iterator that can be closed; closing twice does nothing."""
    close = getattr(frames, "aclose", None)
    if close is not None:
        await close()


class DisconnectWatcher:
    """Cancel the task that serves a client when the client leaves.

    A context manager around the work. Who leaves earlier than ``delay`` seconds after
    its beginning is noticed then: who only stops sending still gets a quick answer.
    ``gone`` tells why the work was cancelled. Nobody leaves who is no connection.
    """

    def __init__(self, receive: Receive, delay: float) -> None:
        self.gone = False
        self._inbox = receive if isinstance(receive, Inbox) else None
        self._delay = delay
        self._began = 0.0
        self._served: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> DisconnectWatcher:
        if self._inbox is not None:
            self._served = asyncio.current_task()
            self._began = asyncio.get_running_loop().time()
            self._inbox.on_end = self._left
            if self._inbox.ended:
                self._left()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._inbox is not None:
            self._inbox.on_end = None
        if self._timer is not None:
            self._timer.cancel()
        served = self._served
        # A cancelled task holds its frame, and the frame holds us: no ring is left.
        self._inbox = self._served = None
        if self.gone and served is not None and kind is asyncio.CancelledError:
            return served.uncancel() == 0
        return False

    def _left(self) -> None:
        loop = asyncio.get_running_loop()
        # Never at once: the end of an answer is told as one, in the task it ends.
        self._timer = loop.call_at(self._began + self._delay, self._cancel)

    def _cancel(self) -> None:
        self.gone = True
        if self._served is not None:
            self._served.cancel()


class Streams:
    """The open event streams of one front."""

    def __init__(self, keep_alive: float) -> None:
        self._keep_alive = keep_alive
        self._open: dict[_Stream, Admission | None] = {}

    async def serve(
        self,
        frames: AsyncIterator[bytes],
        send: Send,
        admission: Admission | None = None,
    ) -> None:
        """Send the frames until they end or are to end, then close them.

        Args:
            frames: What to send.
            send: Takes it.
            admission: Whoever may read them, while that holds; None for good.
        """
        if admission is not None and admission.ended:
            await close_frames(frames)
            await send({"type": "http.response.body", "body": b""})
            return
        stream = _Stream(send, self._keep_alive)
        self._open[stream] = admission
        try:
            await stream.run(frames)
        finally:
            del self._open[stream]

    def end_dismissed(self) -> None:
        """End those whose readers have no right to them any more."""
        for stream, admission in tuple(self._open.items()):
            if admission is not None and admission.ended:
                stream.end()

    def end(self) -> None:
        """End all of them in good order; their iterators are closed."""
        for stream in tuple(self._open):
            stream.end()


class _Stream:
    """One reader, in the task of the request, and one writer beside it."""

    def __init__(self, send: Send, keep_alive: float) -> None:
        self._send = send
        self._keep_alive = keep_alive
        self._frames: list[bytes] = []
        self._size = 0
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._finished = False
        self._ending = False
        self._reader: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._spoke = self._loop.time()
        self._timer = self._loop.call_later(keep_alive, self._break_silence)

    def end(self) -> None:
        """Stop reading; what was read is still sent."""
        if self._reader is not None and not self._ending:
            self._ending = True
            self._reader.cancel()

    async def run(self, frames: AsyncIterator[bytes]) -> None:
        self._reader = asyncio.current_task()
        writer = asyncio.create_task(self._write())
        writer.add_done_callback(self._writer_ended)
        try:
            await self._read(frames)
            self._reader = None
            self._finished = True
            self._wake.set()
            await writer
        finally:
            self._timer.cancel()
            writer.cancel()
        await self._send({"type": "http.response.body", "body": b""})

    async def _read(self, frames: AsyncIterator[bytes]) -> None:
        try:
            async for frame in frames:
                self._frames.append(frame)
                self._size += len(frame)
                self._wake.set()
                if self._size >= HIGH_WATER:
                    self._room.clear()
                    await self._room.wait()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            # Our own cancelling ends the stream; anybody else's is theirs to hear of.
            if not self._ending or task is None or task.uncancel() > 0:
                raise
        finally:
            await close_frames(frames)

    async def _write(self) -> None:
        while not (self._finished and not self._frames):
            await self._wake.wait()
            self._wake.clear()
            chunk, self._frames, self._size = b"".join(self._frames), [], 0
            if chunk:
                body = {"type": "http.response.body", "body": chunk, "more_body": True}
                await self._send(body)
                self._spoke = self._loop.time()
            self._room.set()

    def _break_silence(self) -> None:
        silent = self._loop.time() - self._spoke
        if silent >= self._keep_alive and not self._frames:
            self._frames.append(COMMENT)
            self._wake.set()
            silent = 0
        rest = max(self._keep_alive - silent, 0.01)
        self._timer = self._loop.call_later(rest, self._break_silence)

    def _writer_ended(self, writer: asyncio.Task[None]) -> None:
        failed = not writer.cancelled() and writer.exception() is not None
        if failed and self._reader is not None:
            self._reader.cancel()
