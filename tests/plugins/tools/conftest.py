from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agenthost import (
    UNTRUSTED,
    AgentView,
    Clock,
    Context,
    Files,
    Grants,
    Guards,
    InvalidInput,
    Manifest,
    NotFound,
    Principal,
    PrincipalKind,
    Reports,
    SystemClock,
    ToolContext,
    TurnResult,
    Usage,
)
from agenthost.plugins.points import KNOWN
from agenthost_egress.client import AiohttpEgress
from agenthost_security import path_traversal_prevention, ssrf_protection
from agenthost_storage.files import LocalFiles
from agenthost_tools.shell.settings import ShellSection
from agenthost_tools.shell.tool import PROCESS
from agenthost_tools.web_fetch import WebFetchSection
from agenthost_tools.web_search.settings import WebSearchSection
from agenthost_workers.limits import Limits
from agenthost_workers.local import LocalWorkers

AGENT_ID = "7d0c2f4e-0000-4000-8000-000000000001"
OTHER_ID = "7d0c2f4e-0000-4000-8000-000000000002"


@dataclass
class Memory:
    """Keys and values in a dictionary."""

    values: dict[tuple[str, str], Any] = field(default_factory=dict)
    labels: dict[str, frozenset[str]] = field(default_factory=dict)

    async def get(self, namespace: str, key: str) -> Any:
        try:
            return self.values[namespace, key], self.labels.get(key, frozenset())
        except KeyError:
            raise NotFound("key", key) from None

    async def search(self, owner: str, agent_id: str, query: str) -> list[Any]:
        row = {"kind": "memory", "text": "blue", "at": 0.0, "labels": ["untrusted"]}
        return [{**row, "key": key} for key in ("color", "shared.color")]

    async def set(self, by: Context, namespace: str, key: str, value: Any) -> None:
        self.values[namespace, key] = value
        self.labels[key] = by.labels


def _manifest(name: str) -> Manifest:
    said = {"name": name, "description": f"{name} sings", "tags": ["Choir"]}
    return Manifest.model_validate(said)


class People:
    """Two agents."""

    def __init__(self) -> None:
        self._all = [
            SimpleNamespace(
                id=id_, name=name, state="Running", manifest=_manifest(name)
            )
            for id_, name in ((AGENT_ID, "ada"), (OTHER_ID, "bob"))
        ]
        self.said: list[tuple[str, str]] = []

    def above(self, agent_id: str) -> list[SimpleNamespace]:
        """Ada has made bob."""
        ada, bob = self._all
        return [ada] if agent_id == ada.id else [bob, ada]

    async def spawn(
        self, _: object, manifest: str
    ) -> tuple[SimpleNamespace, list[str]]:
        if not manifest.endswith('"'):
            raise InvalidInput("manifest_toml", "it is no TOML")
        return SimpleNamespace(id="new", name="eve"), []

    async def delete(self, *_: object) -> None:
        pass

    def list(self) -> list[SimpleNamespace]:
        return self._all

    def find(self, reference: str) -> SimpleNamespace:
        for agent in self._all:
            if reference in (agent.id, agent.name):
                return agent
        raise NotFound("agent", reference)

    def model_of(self, agent: SimpleNamespace) -> tuple[str, str]:
        return "offline", f"model-of-{agent.name}"

    async def call_agent(
        self, _: ToolContext, agent_id: str, message: str
    ) -> TurnResult:
        self.said.append((agent_id, message))
        return TurnResult(f"bob heard: {message}", Usage(), 1, 0, labels=UNTRUSTED)


@dataclass
class FakeDaemon:
    """What tools use of a daemon, over real files and real egress."""

    files: Files
    egress: AiohttpEgress
    workers: LocalWorkers
    kv: Memory = field(default_factory=Memory)
    agents: People = field(default_factory=People)
    clock: Clock = field(default_factory=SystemClock)
    fetch: WebFetchSection = field(
        default_factory=lambda: WebFetchSection(allowed_hosts=("127.0.0.1",))
    )
    search: WebSearchSection = field(default_factory=WebSearchSection)
    shell: ShellSection = field(default_factory=lambda: ShellSection(mode="allowlist"))
    guards: Guards = field(default_factory=Guards)
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def turns(self) -> People:
        return self.agents

    def settings(self, model: type[Any]) -> Any:
        sections = (self.fetch, self.search, self.shell)
        return next(each for each in sections if isinstance(each, model))


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[FakeDaemon]:
    paths = path_traversal_prevention.security_system()
    guards = Guards()
    guards.compile([paths, ssrf_protection.security_system()], (), (*KNOWN, PROCESS))
    # A loaded machine is slow to start a process, which is not what is tested here.
    workers = LocalWorkers(Limits(start=60.0))
    files, egress = LocalFiles(tmp_path, guards), AiohttpEgress(guards)
    made = FakeDaemon(files, egress, workers, guards=guards)
    yield made
    await made.workers.close()
    await made.egress.close()


@pytest.fixture
def context(daemon: FakeDaemon) -> ToolContext:
    every = {
        "network": ("*",),
        "agent_spawn": ("*",),
        "memory_read": ("*",),
        "memory_write": ("*",),
        "agent_message": ("*",),
        "shell": ("*",),
    }
    agent = AgentView(AGENT_ID, "ada", Manifest(name="ada"), "session")
    principal = Principal(PrincipalKind.AGENT, "ada", Grants(every))
    return ToolContext(principal, agent, host=cast("Any", daemon), reports=Reports())


def limited(context: ToolContext, **rights: tuple[str, ...]) -> ToolContext:
    """The same context with these rights only."""
    return replace(
        context, principal=Principal(PrincipalKind.AGENT, "ada", Grants(rights))
    )
