"""Daemons for tests: chosen plugins, a temporary home, a loopback port."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from ..clock import Clock
from ..daemon import Daemon
from ..plugins.discovery import Entry, installed_entries
from ..turns.events import TextDelta
from .scripted import MODEL, SLUG, ScriptedModel

if TYPE_CHECKING:
    from ..context import Context
    from ..ports.records import TurnResult
    from ..turns.turn import Turn

AGENT_TOOLS = (
    "agent_call",
    "agent_list",
    "calculate",
    "file_list",
    "file_read",
    "file_write",
    "kv_get",
    "kv_set",
    "system_time",
    "web_fetch",
)
PLENTY = {
    "AGENTHOST_RATE_LIMIT__UNITS_PER_MINUTE": "1000000000",
    "AGENTHOST_RATE_LIMIT__BURST": "1000000000",
}
"""Tests ask more often than people."""


@dataclass(frozen=True)
class RunningTurn:
    """A turn under way."""

    turn: Turn

    async def seen(self, text: str) -> None:
        """Wait until the words have been said."""
        said = ""
        async for event in self.turn.events():
            said += event.text if isinstance(event, TextDelta) else ""
            if text in said:
                return
        raise AssertionError(f"the turn ended without saying {text!r}")

    async def stop(self) -> None:
        """Stop it and wait until it is stored."""
        assert self.turn.task is not None
        self.turn.cancel("stopped by a test")
        await self.turn.task

    async def result(self) -> TurnResult:
        """Wait for its result."""
        return await self.turn.result()


@dataclass(frozen=True)
class RunningAgent:
    """An agent of a running daemon."""

    host: RunningDaemon
    id: str
    name: str

    async def send(self, text: str, **headers: str) -> httpx.Response:
        """Send a message over blocking REST."""
        return await self.host.http.post(
            f"/api/agents/{self.id}/message",
            json={"message": text},
            headers={key.replace("_", "-"): value for key, value in headers.items()},
        )

    async def ask(self, text: str) -> str:
        """Send a message over blocking REST and return the answer's text."""
        answer = await self.send(text)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["response"])

    async def events(self, text: str) -> list[tuple[str, dict[str, Any]]]:
        """Send a message and collect the server-sent events until the stream ends."""
        found = []
        async with self.host.http.stream(
            "POST", f"/api/agents/{self.id}/message/stream", json={"message": text}
        ) as answer:
            assert answer.status_code == 200, await answer.aread()
            name = ""
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    found.append((name, json.loads(line.removeprefix("data: "))))
        return found

    async def session(self) -> dict[str, Any]:
        """Read the agent's session."""
        answer = await self.host.http.get(f"/api/agents/{self.id}/session")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def context(self) -> Context:
        """What a turn of this agent would hand to its tools."""
        from ..context import OPERATOR, AgentView, Context, Principal, PrincipalKind

        daemon = self.host.daemon
        agent = daemon.agents.get(self.id)
        session, parent = agent.session_id, agent.parent
        view = AgentView(agent.id, agent.name, agent.manifest, session, parent)
        rights = daemon.toolbox.rights_of(agent.id, agent.manifest)
        principal = Principal(PrincipalKind.AGENT, agent.name, rights.grants)
        return Context(OPERATOR).for_agent(view, principal, "turn")

    def start(self, text: str) -> RunningTurn:
        """Start a turn without a surface between."""
        from ..context import OPERATOR, Context
        from ..turns.turn import user_message

        daemon = self.host.daemon
        context = Context(OPERATOR)
        agent = daemon.agents.get(self.id)
        return RunningTurn(daemon.turns.start(context, agent, user_message(text)))


class RunningDaemon:
    """A daemon on a loopback port, with a client and a scripted model."""

    def __init__(self, daemon: Daemon, model: ScriptedModel) -> None:
        self.daemon = daemon
        self.model = model
        self.http = httpx.AsyncClient(
            # Certificates are not read for a plain connection: that takes 20 ms.
            base_url=f"http://{daemon.address}",
            timeout=30,
            trust_env=False,
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    @property
    def url(self) -> str:
        """Its base address."""
        return f"http://{self.daemon.address}"

    async def agent(
        self, name: str = "tester", tools: Sequence[str] = AGENT_TOOLS, extra: str = ""
    ) -> RunningAgent:
        """Create an agent with these tools; ``extra`` is more of its manifest."""
        listed = json.dumps(list(tools))
        manifest = (
            f'name = "{name}"\n{extra}\n[capabilities]\ntools = {listed}\n'
            'network = ["*"]\nmemory_read = ["*"]\nmemory_write = ["self.*"]\n'
            'agent_message = ["*"]\n'
        )
        answer = await self.http.post("/api/agents", json={"manifest_toml": manifest})
        assert answer.status_code == 201, answer.text
        return RunningAgent(self, answer.json()["agent_id"], name)

    def known_agent(self, name: str) -> RunningAgent:
        """An agent that exists already."""
        return RunningAgent(self, self.daemon.agents.find(name).id, name)


class Daemons:
    """Starts daemons and stops them when the test ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = AsyncExitStack()
        self._count = 0

    async def start(
        self,
        *,
        home: Path | None = None,
        config: str = "",
        environ: Mapping[str, str] | None = None,
        plugins: Sequence[object] = (),
        clock: Clock | None = None,
    ) -> RunningDaemon:
        """Start a daemon.

        Args:
            home: Its home, to start on what another daemon left; a new one by default.
            config: Text of its ``config.toml``.
            environ: Its environment variables; none by default.
            plugins: Modules or instances to load besides the installed plugins.
            clock: Its clock; the system's by default.
        """
        self._count += 1
        home = home or self._folder / f"home{self._count}"
        running = running_daemon(
            home, config=config, environ=environ or {}, plugins=plugins, clock=clock
        )
        return await self._stack.enter_async_context(running)

    async def close(self) -> None:
        """Stop all of them."""
        await self._stack.aclose()


@dataclass(frozen=True)
class Distribution:
    """Where plugins that a test made come from."""

    name: str = "agenthost-test"
    version: str = "0"


@dataclass(frozen=True)
class Provided:
    """An entry point that hands over a plugin a test made."""

    plugin: object
    name: str
    group: str = "agenthost.plugins"
    dist: Distribution = Distribution()

    def load(self) -> object:
        """Hand it over."""
        return self.plugin


def provided(plugins: Sequence[object]) -> list[Entry]:
    """Make entry points of plugins; each needs a ``__name__``."""
    names = [getattr(plugin, "__name__", "").rpartition(".")[2] for plugin in plugins]
    return [Provided(p, name) for p, name in zip(plugins, names, strict=True)]


@cache
def _installed() -> tuple[Entry, ...]:
    """Look once: nothing is installed while a process tests."""
    return tuple(installed_entries())


def _furnish(home: Path, config: str) -> None:
    home.mkdir(parents=True, exist_ok=True)
    if config:
        (home / "config.toml").write_text(config, encoding="utf-8")


@asynccontextmanager
async def running_daemon(
    home: Path,
    *,
    config: str,
    environ: Mapping[str, str],
    plugins: Sequence[object],
    clock: Clock | None,
) -> AsyncIterator[RunningDaemon]:
    """Run one daemon on a free loopback port."""
    _furnish(home, config)
    model = ScriptedModel()
    extra = provided([model.plugin(), *plugins])
    settings = {
        "AGENTHOST_PLUGINS__ENABLE": ",".join(f"plugin:{e.name}" for e in extra),
        "AGENTHOST_LISTEN_ADDR": "127.0.0.1:0",
        "AGENTHOST_DEFAULT_MODEL__PROVIDER": SLUG,
        "AGENTHOST_DEFAULT_MODEL__MODEL": MODEL,
        **({} if "[rate_limit]" in config else PLENTY),
        **environ,
    }
    daemon = Daemon(
        home,
        environ=settings,
        clock=clock,
        entry_points=[*_installed(), *extra],
    )
    await daemon.start()
    running = RunningDaemon(daemon, model)
    try:
        yield running
    finally:
        await running.http.aclose()
        await daemon.stop()
