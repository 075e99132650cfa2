"""A front with one route group that does everything a plugin might do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, cast

import httpx
import pytest
from agenthost import (
    Authenticator,
    Deny,
    Event,
    Guard,
    Mountable,
    RateLimited,
    RequestCase,
    Secret,
    SecuritySystem,
    SystemClock,
    Verdict,
)
from agenthost.daemon import Daemon
from agenthost.plugins.charges import Charges
from agenthost.plugins.guards import ALLOW, Guards
from agenthost_front.front import QuartFront
from agenthost_front.settings import FrontSettings

from .routes import Seen, everything

KEY = "test-key-0123456789"


@dataclass
class FakePlugins:
    """The plugins, of which some have failed."""

    charges: Charges = field(default_factory=Charges)
    failed: set[str] = field(default_factory=set)

    def healthy(self, key: str) -> bool:
        return key not in self.failed


@dataclass
class FakeRegistry:
    """What the plugins offer."""

    authenticators: list[tuple[str, Authenticator]] = field(default_factory=list)

    def offered(self, kind: object) -> list[tuple[str, Authenticator]]:
        assert kind is Authenticator
        return self.authenticators


class Deaf:
    """Events that nobody listens for."""

    def wants(self, kind: type[Event]) -> bool:
        del kind
        return False


@dataclass
class FakeDaemon:
    """As much of a daemon as the front uses."""

    guards: Guards = field(default_factory=Guards)
    clock: SystemClock = field(default_factory=SystemClock)
    plugins: FakePlugins = field(default_factory=FakePlugins)
    registry: FakeRegistry = field(default_factory=FakeRegistry)
    events: Deaf = field(default_factory=Deaf)
    warnings: list[str] = field(default_factory=list)


@dataclass
class Running:
    """A front that answers on a loopback port."""

    front: QuartFront
    host: str
    port: int
    daemon: FakeDaemon
    seen: Seen
    client: httpx.AsyncClient

    @property
    def ws(self) -> str:
        return f"ws://{self.host}:{self.port}"

    def limit_everything(self) -> None:
        """Let the request guard refuse whatever comes."""

        def refuse(_case: RequestCase) -> Verdict:
            return Deny("slow down", RateLimited)

        system = SecuritySystem("stub", {Guard.REQUEST: refuse}, lambda: None)
        self.daemon.guards.compile([system])

    def record_cases(self) -> list[RequestCase]:
        """Note what the request guard is asked."""
        cases: list[RequestCase] = []

        def note(case: RequestCase) -> Verdict:
            cases.append(case)
            return ALLOW

        system = SecuritySystem("stub", {Guard.REQUEST: note}, lambda: None)
        self.daemon.guards.compile([system])
        return cases


Start = Callable[..., Awaitable[Running]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start a front; it must leave no task behind."""
    before = asyncio.all_tasks()
    async with AsyncExitStack() as stack:

        async def run(*groups: Mountable, **settings: Any) -> Running:
            key = settings.pop("api_key", None)
            daemon, seen = FakeDaemon(), Seen()
            asked = settings.pop("authenticators", ())
            daemon.registry.authenticators += [("plugin:test", a) for a in asked]
            front = QuartFront(
                cast("Daemon", daemon),
                FrontSettings(
                    **{
                        "api_key": Secret(key) if key else None,
                        "grace": 1.0,
                        **settings,
                    }
                ),
            )
            for group in (*everything(seen), *groups):
                front.mount(group)
            host, port = await front.start("127.0.0.1", 0)
            stack.push_async_callback(front.stop)
            client = httpx.AsyncClient(
                base_url=f"http://{host}:{port}", timeout=10, verify=False
            )
            await stack.enter_async_context(client)
            return Running(front, host, port, daemon, seen, client)

        yield run
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    if left:
        # A client that breaks off leaves its own generator to the loop.
        await asyncio.wait(left, timeout=10)
    assert not {task for task in left if not task.done()}


@pytest.fixture
async def open_front(start: Start) -> Running:
    """A front without a key."""
    return await start()


@pytest.fixture
async def locked_front(start: Start) -> Running:
    """A front with a key."""
    return await start(api_key=KEY)


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.005)
