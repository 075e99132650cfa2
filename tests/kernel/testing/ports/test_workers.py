"""The contract of workers holds for the plain ones, and finds who breaks it."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from agenthost import Unavailable, Unreadable
from agenthost.testing import OpenWorkers, PlainWorkers, WorkersContract
from agenthost.testing.ports import workers

from .finding import finds, names_in, names_of

FEW: dict[str, Any] = {"most": 3, "patience": 1.0, "seconds": 2.0}


@pytest.mark.conformance
class TestThePlainWorkers(WorkersContract):
    """They keep every promise."""

    @pytest.fixture
    def opened(self) -> OpenWorkers:
        return partial(PlainWorkers, **FEW)


class Copies(PlainWorkers):
    async def in_thread(self, function: Any, *arguments: Any, **options: Any) -> Any:
        answer = await super().in_thread(function, *arguments, **options)
        return answer and answer[:1]


class Wraps(PlainWorkers):
    async def in_thread(self, function: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return await super().in_thread(function, *arguments, **options)
        except Exception as error:
            raise Unavailable(str(error)) from error


class LosesItsPlace(PlainWorkers):
    async def in_thread(self, function: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return await super().in_thread(function, *arguments, **options)
        except (RuntimeError, KeyboardInterrupt, SystemExit):
            await self._enter(self._threads)
            raise


class WorksOnTheLoop(PlainWorkers):
    async def in_thread(self, function: Any, *arguments: Any, **options: Any) -> Any:
        await self._enter(self._threads)
        self._threads.release()
        if "Event" in repr(function):
            return function(*arguments, **options)
        # A function that waits for the loop would never end here.
        raise TimeoutError("the loop is held up")


class MixesAnswers(PlainWorkers):
    def __init__(self, **limits: Any) -> None:
        super().__init__(**limits)
        self._last: Any = None

    async def in_thread(self, function: Any, *arguments: Any, **options: Any) -> Any:
        self._last = await super().in_thread(function, *arguments, **options)
        await asyncio.sleep(0)
        return self._last

    async def in_process(self, function: str, document: bytes, **options: Any) -> str:
        self._last = await super().in_process(function, document, **options)
        await asyncio.sleep(0.1)
        return str(self._last)


class WaitsForTheThread(PlainWorkers):
    async def in_thread(self, function: Any, *arguments: Any, **options: Any) -> Any:
        call = asyncio.ensure_future(super().in_thread(function, *arguments, **options))
        while not call.done():
            with suppress(asyncio.CancelledError):
                await asyncio.shield(call)
        return call.result()


class NeverSaysNo(PlainWorkers):
    async def _enter(self, room: asyncio.Semaphore) -> None:
        if self._closed:
            raise Unavailable("closed")


class SaysNoInItsOwnWords(PlainWorkers):
    async def _enter(self, room: asyncio.Semaphore) -> None:
        try:
            await super()._enter(room)
        except Unavailable:
            raise RuntimeError("busy") from None


class DropsOptions(PlainWorkers):
    async def in_process(self, function: str, document: bytes, **options: Any) -> str:
        return await super().in_process(function, document)


class CutsDocuments(PlainWorkers):
    async def in_process(self, function: str, document: bytes, **options: Any) -> str:
        return await super().in_process(function, document[:65_536], **options)


class GivesNothingForFailed(PlainWorkers):
    async def in_process(self, function: str, document: bytes, **options: Any) -> str:
        try:
            return await super().in_process(function, document, **options)
        except Unreadable:
            return ""


class HasNoTime(PlainWorkers):
    def __init__(self, **limits: Any) -> None:
        super().__init__(**{**limits, "seconds": 1_000.0})


class LetsProcessesBe(PlainWorkers):
    async def in_process(self, function: str, document: bytes, **options: Any) -> str:
        process = await self._started(function, options)
        self._reading.add(process)
        return await self._text(process, document)


class ReadsHere(PlainWorkers):
    async def in_process(self, function: str, document: bytes, **options: Any) -> str:
        module, _, name = function.partition(":")
        read: Callable[..., str] = getattr(import_module(module), name)
        return read(document, **options)


class HandsOnTheEnvironment(PlainWorkers):
    async def _started(self, function: str, options: dict[str, Any]) -> Process:
        with pytest.MonkeyPatch.context() as patch:
            real = asyncio.create_subprocess_exec

            def start(*words: Any, **facts: Any) -> Any:
                return real(*words, **{**facts, "env": dict(os.environ)})

            patch.setattr(asyncio, "create_subprocess_exec", start)
            return await super()._started(function, options)


class ClosesNothing(HasNoTime):
    async def close(self) -> None:
        pass


class ClosesOnce(PlainWorkers):
    async def close(self) -> None:
        if self._closed:
            raise RuntimeError("it is closed")
        await super().close()


class WaitsAtTheEnd(PlainWorkers):
    async def close(self) -> None:
        await super().close()
        for _ in range(3):
            await self._threads.acquire()
        for _ in range(3):
            self._threads.release()


HERE = TestThePlainWorkers()
BREACHES: tuple[tuple[type[PlainWorkers], Any, tuple[object, ...]], ...] = (
    (Copies, HERE.test_a_call_gives_what_its_function_gives, ()),
    (Wraps, HERE.test_a_call_raises_what_its_function_raises, (ValueError("x"),)),
    (LosesItsPlace, HERE.test_whatever_a_function_raises_ends_the_call, (SystemExit,)),
    (WorksOnTheLoop, HERE.test_a_call_that_blocks_holds_up_nobody, ()),
    (MixesAnswers, HERE.test_many_calls_at_once_are_all_served, ()),
    (
        WaitsForTheThread,
        HERE.test_a_cancelled_caller_stops_waiting_and_its_function_ends,
        (),
    ),
    (NeverSaysNo, HERE.test_who_finds_every_thread_busy_is_told, ()),
    (SaysNoInItsOwnWords, HERE.test_who_finds_every_thread_busy_is_told, ()),
    (SaysNoInItsOwnWords, HERE.test_who_finds_every_process_busy_is_told, ()),
    (DropsOptions, HERE.test_a_document_gives_the_text_that_was_read, ()),
    (CutsDocuments, HERE.test_a_document_may_be_large, ()),
    (MixesAnswers, HERE.test_documents_at_once_are_each_read, ()),
    (
        GivesNothingForFailed,
        HERE.test_a_document_that_cannot_be_read_is_told,
        ("raises",),
    ),
    (ReadsHere, HERE.test_a_document_that_cannot_be_read_is_told, ("exits",)),
    (HasNoTime, HERE.test_a_document_that_takes_for_ever_is_ended, ()),
    (LetsProcessesBe, HERE.test_a_process_ends_with_its_caller, ()),
    (ReadsHere, HERE.test_a_process_sees_nothing_but_the_document, (Path("/tmp"),)),
    (
        HandsOnTheEnvironment,
        HERE.test_a_process_sees_nothing_but_the_document,
        (Path("/tmp"),),
    ),
    (ClosesNothing, HERE.test_work_for_closed_workers_is_refused, ()),
    (ClosesOnce, HERE.test_work_for_closed_workers_is_refused, ()),
    (ClosesNothing, HERE.test_closing_ends_the_processes, ()),
    (WaitsAtTheEnd, HERE.test_closing_waits_but_a_little_for_threads, ()),
    (WorksOnTheLoop, HERE.test_it_leaves_the_loop_free, ()),
    (ReadsHere, HERE.test_it_leaves_the_loop_free, ()),
)


@pytest.mark.conformance
@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test", "more"), BREACHES)
async def test_broken_workers_are_found(
    broken: type[PlainWorkers],
    test: Any,
    more: tuple[object, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "SECONDS", 4.0)
    given = (tmp_path if isinstance(each, Path) else each for each in more)
    await finds(test, partial(broken, **FEW), *given)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(WorkersContract)
