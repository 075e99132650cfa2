"""A server that says what the test says, line for line."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def answering(
    greeting: bytes, answers: Sequence[bytes]
) -> AsyncIterator[Streams]:
    """Greet, then answer each line with the next; hang up when there is none."""
    tasks: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        writer.write(greeting)
        for answer in answers:
            line = await reader.readline()
            writer.write(answer.replace(b"TAG", line.partition(b" ")[0]))
        await reader.readline()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        server.close()
        await asyncio.wait(tasks)
        await writer.wait_closed()
