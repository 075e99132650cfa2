"""The front keeps every promise of its port, and its contract finds who breaks one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from agenthost import FrontBackend, Host, Mountable, PluginError, hookimpl
from agenthost.testing import Daemons, FrontContract
from agenthost.testing.ports import front as contract
from agenthost.testing.ports.front_stage import Stage
from agenthost_front.asgi import Event, Receive, Scope, Send
from agenthost_front.front import QuartFront
from agenthost_front.serve import Server
from agenthost_front.settings import FrontSettings, settings_of

from tests.kernel.testing.ports.finding import finds, names_in, names_of


class TestTheFront(FrontContract):
    """Quart behind the layer, Hypercorn's protocols below."""

    front = "quart"


class Broken(QuartFront):
    """A front that lets answers be altered on their way."""

    def __init__(self, host: Host, settings: FrontSettings) -> None:
        settings = self.settings(settings)
        super().__init__(host, settings)
        self._server = Server(self.serve, settings)

    def settings(self, settings: FrontSettings) -> FrontSettings:
        return replace(settings, grace=0.5)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def altered(event: Event) -> None:
            await send(self.alter(scope, event))

        await self.asgi(scope, receive, altered)

    def alter(self, scope: Scope, event: Event) -> Event:
        return event


def with_status(event: Event, status: int, *instead_of: int) -> Event:
    return {**event, "status": status} if event.get("status") in instead_of else event


class DropsQueries(Broken):
    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().serve({**scope, "query_string": b""}, receive, send)


class FindsAll(Broken):
    def alter(self, scope: Scope, event: Event) -> Event:
        return with_status(event, 200, 404)


class TellsNoError(Broken):
    def alter(self, scope: Scope, event: Event) -> Event:
        body: bytes = event.get("body", b"")
        return {**event, "body": body.replace(b'"error"', b'"fault"')}


class WrongIsUnprocessable(Broken):
    def alter(self, scope: Scope, event: Event) -> Event:
        return with_status(event, 422, 400)


class TakesAnySize(Broken):
    def settings(self, settings: FrontSettings) -> FrontSettings:
        return replace(settings, body_limit=1 << 30)


class CountsNothing(Broken):
    def _count_panic(self) -> None:
        pass


class LetsAnybodyIn(Broken):
    def settings(self, settings: FrontSettings) -> FrontSettings:
        return replace(settings, api_key=None)


class AsksNoGuard(Broken):
    def __init__(self, host: Host, settings: FrontSettings) -> None:
        super().__init__(host, settings)
        self._gate.admit = lambda *_: None  # type: ignore[method-assign]  # reason: it is broken


class TakesTicketsTwice(Broken):
    def __init__(self, host: Host, settings: FrontSettings) -> None:
        super().__init__(host, settings)
        self.tickets.redeem = lambda _: None  # type: ignore[method-assign,assignment]  # reason: it is broken


class KeepsTheDismissed(Broken):
    def __init__(self, host: Host, settings: FrontSettings) -> None:
        super().__init__(host, settings)
        self.tickets.forget = lambda _: None  # type: ignore[method-assign,assignment]  # reason: it is broken


class MountsHalf(Broken):
    def mount(self, group: Mountable) -> None:
        while True:
            try:
                super().mount(group)
            except PluginError:
                group.routes.pop()  # type: ignore[attr-defined]  # reason: a group
            else:
                return


class TakesAnotherPort(Broken):
    async def start(self, host: str, port: int) -> tuple[str, int]:
        return await super().start(host, 0)


class KeepsThePort(Broken):
    async def stop(self) -> None:
        self.left = True


class OneByOne(Broken):
    def __init__(self, host: Host, settings: FrontSettings) -> None:
        super().__init__(host, settings)
        self._one = asyncio.Lock()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._one:
            await super().serve(scope, receive, send)


class SaysAllAtTheEnd(Broken):
    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        said: list[Event] = []

        async def later(event: Event) -> None:
            said.append(event)

        await self.asgi(scope, receive, later)
        for event in said:
            await send(event)


class HearsNobodyLeave(Broken):
    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def deaf() -> Event:
            event = await receive()
            if event["type"].endswith("disconnect"):
                await asyncio.sleep(60)
            return event

        await super().serve(scope, deaf, send)


class LosesLetters(Broken):
    def alter(self, scope: Scope, event: Event) -> Event:
        if event["type"] == "websocket.send":
            return {**event, "text": event["text"][1:]}
        return event


class DiesOfNonsense(Broken):
    async def start(self, host: str, port: int) -> tuple[str, int]:
        self._way = await super().start("127.0.0.1", 0)
        self._through = await asyncio.start_server(self._pass_on, host, port)
        address = self._through.sockets[0].getsockname()
        return address[0], address[1]

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = await reader.read(65_536)
        writer.write(b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n" if head else b"")
        writer.close()

    async def stop(self) -> None:
        self._through.close()
        await super().stop()


class EndsTurnsFirst(Broken):
    async def drain(
        self, end_turns: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        if end_turns is not None:
            await end_turns()
        await super().drain(None)


class KeepsStreams(Broken):
    async def drain(
        self, end_turns: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._gate.draining = True
        if end_turns is not None:
            await end_turns()


class LeavesHandlers(Broken):
    async def stop(self) -> None:
        await self._server.stop()


class StopsOnce(Broken):
    stopped = False

    async def stop(self) -> None:
        if self.stopped:
            raise RuntimeError("it was stopped")
        self.stopped = True
        await super().stop()


HERE = TestTheFront()
MALFORMED = (contract.MALFORMED[0],)
BREACHES: tuple[tuple[type[Broken], Any, tuple[object, ...]], ...] = (
    (DropsQueries, HERE.test_it_serves_the_routes_of_plugins, ()),
    (FindsAll, HERE.test_what_is_not_there_is_told, ()),
    (TellsNoError, HERE.test_what_is_not_there_is_told, ()),
    (WrongIsUnprocessable, HERE.test_what_is_wrong_with_a_request_is_told, ()),
    (TakesAnySize, HERE.test_a_body_over_its_limit_is_refused, ()),
    (CountsNothing, HERE.test_an_error_is_told_and_a_bug_is_not, ()),
    (LetsAnybodyIn, HERE.test_nobody_comes_in_without_the_key, ()),
    (TakesTicketsTwice, HERE.test_a_ticket_stands_for_the_key_once, ()),
    (KeepsTheDismissed, HERE.test_a_ticket_stands_for_the_key_once, ()),
    (AsksNoGuard, HERE.test_a_guard_is_asked_before_a_handler_runs, ()),
    (AsksNoGuard, HERE.test_a_foreign_host_is_refused, ()),
    (MountsHalf, HERE.test_a_group_that_does_not_fit_is_not_served_at_all, ()),
    (
        TakesAnotherPort,
        HERE.test_a_taken_port_stops_the_start_and_is_free_after_the_stop,
        (),
    ),
    (
        KeepsThePort,
        HERE.test_a_taken_port_stops_the_start_and_is_free_after_the_stop,
        (),
    ),
    (OneByOne, HERE.test_one_that_waits_holds_up_nobody, ()),
    (SaysAllAtTheEnd, HERE.test_a_stream_is_given_frame_by_frame, ()),
    (HearsNobodyLeave, HERE.test_a_stream_is_given_frame_by_frame, ()),
    (LosesLetters, HERE.test_a_socket_says_and_hears, ()),
    (
        DiesOfNonsense,
        HERE.test_bytes_that_are_no_request_end_their_own_connection,
        MALFORMED,
    ),
    (EndsTurnsFirst, HERE.test_a_drain_refuses_new_work_before_the_turns_end, ()),
    (KeepsStreams, HERE.test_a_drain_refuses_new_work_before_the_turns_end, ()),
    (LeavesHandlers, HERE.test_a_stop_ends_what_still_runs, ()),
    (KeepsThePort, HERE.test_a_stop_ends_what_still_runs, ()),
    (StopsOnce, HERE.test_a_stop_ends_what_still_runs, ()),
)


def offering(broken: type[Broken], made: list[Broken]) -> ModuleType:
    """A plugin that offers the broken front; each that is opened is noted."""
    plugin = ModuleType("broken")

    def opened(host: Host) -> Broken:
        made.append(broken(host, settings_of(host)))
        return made[-1]

    plugin.register_backend = hookimpl(lambda: [FrontBackend("broken", opened)])  # type: ignore[attr-defined]  # reason: it is made here
    return plugin


@pytest.fixture
async def made(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Broken]]:
    """The fronts that were opened; what they leave open is closed."""
    monkeypatch.setattr(contract, "SECONDS", 3.0)
    opened: list[Broken] = []
    yield opened
    for front in opened:
        await QuartFront.stop(front)


@pytest.mark.conformance
@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test", "more"), BREACHES)
async def test_a_broken_front_is_found(
    broken: type[Broken],
    test: Any,
    more: tuple[object, ...],
    made: list[Broken],
    daemons: Daemons,
) -> None:
    stage = Stage(daemons, "broken", [offering(broken, made)])
    await finds(test, stage, *more)
    assert made


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(FrontContract)
