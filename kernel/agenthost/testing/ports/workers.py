"""What every backend of the port WORKERS promises, as tests to inherit."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ...errors import NotFound, Unavailable, Unreadable
from ...ports.workers import Workers
from ..steps import check_steps
from . import documents

T = TypeVar("T")
OpenWorkers = Callable[[], Workers]
SECONDS = 60.0
"""How long anything may take here, on a machine that is busy besides."""

CROWD = 64
MANY = 500
VARIABLE = "AGENTHOST_CONTRACT"
UNREADABLE: Mapping[str, bytes] = {
    "raises": b"a document may do that",
    "exits": b"0",
    "dies": b"",
    "takes_memory": b"",
    "nobody_wrote_this": b"",
}


def reader(name: str) -> str:
    """Name a function of the contract's documents, as ``in_process`` takes it."""
    return f"{documents.__name__}:{name}"


@asynccontextmanager
async def running(opened: OpenWorkers) -> AsyncIterator[Workers]:
    """Open the workers, and close them, all in time."""
    async with asyncio.timeout(SECONDS):
        workers = opened()
        try:
            yield workers
        finally:
            await workers.close()


class Held:
    """A process of the contract's, which holds a connection while it is there."""

    def __init__(self) -> None:
        self.here = asyncio.Event()
        self.gone = asyncio.Event()
        self._open: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[bytes]:
        """Wait for it; gives the document that tells it where."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            try:
                yield b"%d" % server.sockets[0].getsockname()[1]
            finally:
                for writer in self._open:
                    writer.close()
                await asyncio.sleep(0)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._open.append(writer)
        self.here.set()
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        self.gone.set()


class WorkersContract:
    """The workers keep every promise of the port.

    A subclass overrides the fixture ``opened``: a function that opens workers. Give
    them little patience and little time for a document, since the contract waits for
    the end of both, and less than 64 threads and processes.

    Example:
        ::

            class TestRemote(WorkersContract):
                @pytest.fixture
                def opened(self) -> OpenWorkers:
                    return partial(RemoteWorkers, patience=0.5, seconds=2.0)
    """

    @pytest.fixture
    def opened(self) -> OpenWorkers:
        """What opens the workers."""
        pytest.fail("override the fixture `opened` with what opens the workers")

    async def test_a_call_gives_what_its_function_gives(
        self, opened: OpenWorkers
    ) -> None:
        """With the arguments and options as they were given."""
        given: list[object] = []

        def work(*arguments: object, **options: object) -> tuple[object, ...]:
            return given, arguments, options

        async with running(opened) as workers:
            found = await workers.in_thread(work, 1, given, end="x")
            assert found == (given, (1, given), {"end": "x"})
            assert found[0] is given

    @pytest.mark.parametrize("error", [ValueError("x"), NotFound("file", "x")])
    async def test_a_call_raises_what_its_function_raises(
        self, opened: OpenWorkers, error: Exception
    ) -> None:
        """The error itself, not another in its place."""

        def work() -> None:
            raise error

        async with running(opened) as workers:
            with pytest.raises(type(error)) as raised:
                await workers.in_thread(work)
            assert raised.value is error
            assert await workers.in_thread(lambda: "next") == "next"

    @pytest.mark.parametrize("error", [StopIteration, SystemExit, KeyboardInterrupt])
    async def test_whatever_a_function_raises_ends_the_call(
        self, opened: OpenWorkers, error: type[BaseException]
    ) -> None:
        """Also what no future can carry; the next call is served."""

        def work() -> None:
            raise error

        async with running(opened) as workers:
            for _ in range(CROWD):
                with pytest.raises((error, RuntimeError)):
                    await workers.in_thread(work)
            assert await workers.in_thread(lambda: "next") == "next"

    async def test_a_call_that_blocks_holds_up_nobody(
        self, opened: OpenWorkers
    ) -> None:
        """It is in another thread; the loop and other calls go on."""
        meet = threading.Barrier(2)
        loop = asyncio.get_running_loop()

        def work() -> int:
            meet.wait(SECONDS)
            # Only a loop that is free answers.
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(SECONDS)
            return threading.get_ident()

        async with running(opened) as workers:
            calls = (workers.in_thread(work) for _ in range(2))
            threads = await asyncio.gather(*calls)
        assert len({*threads, threading.get_ident()}) == 3

    async def test_many_calls_at_once_are_all_served(self, opened: OpenWorkers) -> None:
        """Each caller gets what its own function gave."""
        async with running(opened) as workers:
            found = await asyncio.gather(
                *(served(partial(workers.in_thread, abs, n)) for n in range(MANY))
            )
            assert found == [*range(MANY)]

    async def test_a_cancelled_caller_stops_waiting_and_its_function_ends(
        self, opened: OpenWorkers
    ) -> None:
        """The place of its thread is taken until then, and free after."""
        begun, release, ended = (threading.Event() for _ in range(3))

        def work() -> None:
            begun.set()
            release.wait(SECONDS)
            ended.set()

        async with running(opened) as workers:
            call = asyncio.ensure_future(workers.in_thread(work))
            await asyncio.to_thread(begun.wait, SECONDS)
            call.cancel()
            await asyncio.wait({call}, timeout=SECONDS / 2)
            assert call.cancelled()
            assert not ended.is_set()
            release.set()
            assert await asyncio.to_thread(ended.wait, SECONDS)
            assert await workers.in_thread(lambda: "next") == "next"

    async def test_who_finds_every_thread_busy_is_told(
        self, opened: OpenWorkers
    ) -> None:
        """Unavailable, after some patience; those that had a thread end well."""
        release = threading.Event()

        def work() -> str:
            release.wait(SECONDS)
            return "done"

        async with running(opened) as workers:
            calls = {
                asyncio.ensure_future(workers.in_thread(work)) for _ in range(CROWD)
            }
            told, _ = await asyncio.wait(
                calls, timeout=SECONDS / 2, return_when=asyncio.FIRST_COMPLETED
            )
            release.set()
            await asyncio.wait(calls)
            served = [call for call in calls if call.exception() is None]
            refused = [call.exception() for call in calls if call not in served]
            assert told, "nobody was told"
            assert served
            assert {call.result() for call in served} == {"done"}
            assert refused
            assert all(isinstance(error, Unavailable) for error in refused)
            assert await workers.in_thread(lambda: "next") == "next"

    async def test_a_document_gives_the_text_that_was_read(
        self, opened: OpenWorkers
    ) -> None:
        """Of any letters, with the options as they were given."""
        async with running(opened) as workers:
            for text in ("", "plain", "две\nстроки\r\n", "\U0001f600\0"):
                read = await workers.in_process(
                    reader("shouted"), text.encode(), mark="ж!"
                )
                assert read == text.upper() + "ж!"

    async def test_a_document_may_be_large(self, opened: OpenWorkers) -> None:
        """And options may be any JSON."""
        options: dict[str, Any] = {"a": [1, None, {"b": "ж"}], "c": 0.5, "d": True}
        async with running(opened) as workers:
            for size in (0, 8 << 20):
                said = await workers.in_process(
                    reader("measured"), b"x" * size, **options
                )
                assert json.loads(said) == [size, options]

    async def test_documents_at_once_are_each_read(self, opened: OpenWorkers) -> None:
        """Nobody gets the text of another's document."""
        texts = [f"document {number}" for number in range(4)]
        async with running(opened) as workers:
            reads = [
                partial(workers.in_process, reader("shouted"), text.encode())
                for text in texts
            ]
            for _ in range(2):
                found = await asyncio.gather(*map(served, reads))
                assert found == [text.upper() for text in texts]

    @pytest.mark.parametrize("name", UNREADABLE)
    async def test_a_document_that_cannot_be_read_is_told(
        self, opened: OpenWorkers, name: str
    ) -> None:
        """Whatever became of its process, the next document is read."""
        async with running(opened) as workers:
            with pytest.raises(Unreadable) as told:
                await workers.in_process(reader(name), UNREADABLE[name])
            assert "Traceback" not in told.value.message
            assert await workers.in_process(reader("shouted"), b"next") == "NEXT"

    async def test_a_document_that_takes_for_ever_is_ended(
        self, opened: OpenWorkers
    ) -> None:
        """Its process is gone, and the next document is read."""
        held = Held()
        async with held.listening() as place, running(opened) as workers:
            with pytest.raises(Unreadable):
                await workers.in_process(reader("computes"), place)
            assert held.here.is_set()
            await held.gone.wait()
            assert await workers.in_process(reader("shouted"), b"next") == "NEXT"

    async def test_a_process_ends_with_its_caller(self, opened: OpenWorkers) -> None:
        """It is killed when the caller is cancelled."""
        held = Held()
        async with held.listening() as place, running(opened) as workers:
            call = asyncio.ensure_future(workers.in_process(reader("sleeps"), place))
            await _first(held.here, call)
            call.cancel()
            await asyncio.wait({call})
            assert call.cancelled()
            await held.gone.wait()
            assert await workers.in_process(reader("shouted"), b"next") == "NEXT"

    async def test_who_finds_every_process_busy_is_told(
        self, opened: OpenWorkers
    ) -> None:
        """Unavailable, after some patience, while others read."""
        held = Held()
        async with held.listening() as place, running(opened) as workers:
            calls = [
                asyncio.ensure_future(workers.in_process(reader("sleeps"), place))
                for _ in range(CROWD)
            ]
            ended = await asyncio.gather(*calls, return_exceptions=True)
        assert any(isinstance(error, Unavailable) for error in ended)
        assert all(isinstance(error, Unavailable | Unreadable) for error in ended)

    async def test_a_process_sees_nothing_but_the_document(
        self, opened: OpenWorkers, tmp_path: Path
    ) -> None:
        """No environment, no open file, nothing that was changed in memory."""
        path = tmp_path / "open here"
        with pytest.MonkeyPatch.context() as patch, path.open("w") as file:
            os.set_inheritable(file.fileno(), True)  # noqa: FBT003 - os takes it so
            patch.setenv(VARIABLE, "sk-canary")
            patch.setattr(documents, "mark", "sk-canary")
            async with running(opened) as workers:
                said = await workers.in_process(reader("surroundings"), b"")
        seen = json.loads(said)
        assert "sk-canary" not in said
        assert VARIABLE not in seen["environ"]
        assert not [place for place in seen["open"] if place == str(path)]
        assert seen["pid"] != os.getpid()

    async def test_work_for_closed_workers_is_refused(
        self, opened: OpenWorkers
    ) -> None:
        """Unavailable; closing twice is fine, and so is closing what never worked."""
        async with running(opened) as workers:
            assert await workers.in_thread(lambda: 1) == 1
            for _ in range(2):
                await workers.close()
            with pytest.raises(Unavailable):
                await workers.in_thread(lambda: 1)
            with pytest.raises(Unavailable):
                await workers.in_process(reader("shouted"), b"late")
        async with running(opened):
            pass

    async def test_closing_ends_the_processes(self, opened: OpenWorkers) -> None:
        """Who waits for one is told, in an error of ours."""
        held = Held()
        async with held.listening() as place, running(opened) as workers:
            call = asyncio.ensure_future(workers.in_process(reader("sleeps"), place))
            await _first(held.here, call)
            await workers.close()
            await held.gone.wait()
            with pytest.raises((Unreadable, Unavailable)):
                await call

    async def test_closing_waits_but_a_little_for_threads(
        self, opened: OpenWorkers
    ) -> None:
        """One that is stuck does not keep the daemon from ending."""
        begun, release = threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            release.wait(SECONDS)

        try:
            async with running(opened) as workers:
                call = asyncio.ensure_future(workers.in_thread(work))
                await asyncio.to_thread(begun.wait, SECONDS)
                async with asyncio.timeout(SECONDS / 2):
                    await workers.close()
                call.cancel()
                await asyncio.wait({call}, timeout=SECONDS / 4)
        finally:
            release.set()

    async def test_it_leaves_the_loop_free(self, opened: OpenWorkers) -> None:
        """Neither a call nor a document is worked on where it was asked for."""

        def call() -> Coroutine[Any, Any, object]:
            return workers.in_thread(threading.Event().wait, 0.001)

        def read() -> Coroutine[Any, Any, object]:
            return workers.in_process(reader("waits"), b"")

        async with running(opened) as workers:
            await check_steps("a call in a thread", call)
            await check_steps("a document in a process", read)


async def _first(event: asyncio.Event, call: asyncio.Future[Any]) -> None:
    """Wait for the event, and fail should the call end before it."""
    waiting = asyncio.ensure_future(event.wait())
    await asyncio.wait({waiting, call}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    assert event.is_set(), f"it ended at once: {call}"


async def served(ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Ask again as long as all are busy."""
    while True:
        with suppress(Unavailable):
            return await ask()
