from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agenthost import (
    AgentView,
    Clock,
    Files,
    Grants,
    Guards,
    NotFound,
    Principal,
    PrincipalKind,
    SystemClock,
    ToolContext,
)
from agenthost_egress.client import AiohttpEgress
from agenthost_security import path_traversal_prevention, ssrf_protection
from agenthost_storage.files import LocalFiles
from agenthost_tools.web_fetch import WebFetchSection
from agenthost_workers.limits import Limits
from agenthost_workers.local import LocalWorkers

AGENT_ID = "7d0c2f4e-0000-4000-8000-000000000001"
OTHER_ID = "7d0c2f4e-0000-4000-8000-000000000002"


@dataclass
class Memory:
    """Keys and values in a dictionary."""

    values: dict[tuple[str, str], Any] = field(default_factory=dict)

    async def get(self, namespace: str, key: str) -> Any:
        try:
            return self.values[namespace, key]
        except KeyError:
            raise NotFound("key", key) from None

    async def set(self, namespace: str, key: str, value: Any) -> None:
        self.values[namespace, key] = value


class People:
    """Two agents."""

    def __init__(self) -> None:
        self._all = [
            SimpleNamespace(id=AGENT_ID, name="ada", state="Running"),
            SimpleNamespace(id=OTHER_ID, name="bob", state="Running"),
        ]
        self.said: list[tuple[str, str]] = []

    def list(self) -> list[SimpleNamespace]:
        return self._all

    def find(self, reference: str) -> SimpleNamespace:
        for agent in self._all:
            if reference in (agent.id, agent.name):
                return agent
        raise NotFound("agent", reference)

    def model_of(self, agent: SimpleNamespace) -> tuple[str, str]:
        return "offline", f"model-of-{agent.name}"

    async def call_agent(self, _: ToolContext, agent_id: str, message: str) -> str:
        self.said.append((agent_id, message))
        return f"bob heard: {message}"


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

    @property
    def turns(self) -> People:
        return self.agents

    def settings(self, model: type[WebFetchSection]) -> WebFetchSection:
        return {WebFetchSection: self.fetch}[model]


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[FakeDaemon]:
    guards = Guards(
        [path_traversal_prevention.security_system(), ssrf_protection.security_system()]
    )
    # A loaded machine is slow to start a process, which is not what is tested here.
    workers = LocalWorkers(Limits(start=60.0))
    made = FakeDaemon(LocalFiles(tmp_path, guards), AiohttpEgress(guards), workers)
    yield made
    await made.workers.close()
    await made.egress.close()


@pytest.fixture
def context(daemon: FakeDaemon) -> ToolContext:
    every = {
        "network": ("*",),
        "memory_read": ("*",),
        "memory_write": ("*",),
        "agent_message": ("*",),
    }
    agent = AgentView(AGENT_ID, "ada", cast("Any", None), "session")
    principal = Principal(PrincipalKind.AGENT, "ada", Grants(every))
    return ToolContext(principal, agent, host=cast("Any", daemon))


def limited(context: ToolContext, **rights: tuple[str, ...]) -> ToolContext:
    """The same context with these rights only."""
    return replace(
        context, principal=Principal(PrincipalKind.AGENT, "ada", Grants(rights))
    )
