"""A router over scripted providers, without a daemon around it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from agenthost import AgentView, Answered, Event, Payer, Secret, Slot, Spent, TextChunk
from agenthost.config_model import Config
from agenthost.testing import ManualClock, installed_exchange
from agenthost_agents.manifests import parse_manifest
from agenthost_models.manifest import SPENDING
from agenthost_models.models import RoutedModels
from agenthost_models.settings import (
    Budget,
    EmbeddingDefault,
    FallbackProviders,
    Providers,
    Trying,
)

from .upstream import ASKED, Upstream

T = TypeVar("T")


class Ledger:
    """The usage ledger, in memory."""

    def __init__(self) -> None:
        self.rows: list[Spent] = []
        self.reads = 0

    def book(self, spent: Spent) -> None:
        self.rows.append(spent)

    async def since(self, moment: float, width: float, agent: str = "") -> list[Slot]:
        self.reads += 1
        await asyncio.sleep(0)
        return [
            Slot(
                number=int(row.at / width),
                tokens=row.usage.input_tokens + row.usage.output_tokens,
                cost_micro_usd=row.cost_micro_usd,
            )
            for row in self.rows
            if row.at > moment and agent in {"", row.agent_id}
        ]


class MemoryVault(dict[str, Secret]):
    """Keys, in memory."""

    revision = 0

    def names(self) -> list[str]:
        return [*self]


class Bench:
    """What a router sees of a daemon."""

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        config: Mapping[str, Any] | None = None,
        vault: Mapping[str, str] | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.random = Random(7)
        self.pinned: tuple[str, str] | None = None
        self.ledger = Ledger()
        self.made: list[AgentView] = []
        self.events: list[Event] = []
        self.vault = MemoryVault()
        for name, value in (vault or {}).items():
            self.vault[name] = Secret(value)
        self.environ: dict[str, str] = {}
        self.warnings: list[str] = []
        written = dict(config or {})
        self.settings = {
            EmbeddingDefault: EmbeddingDefault.model_validate(
                written.pop("embeddings", {})
            ),
            Trying: Trying.model_validate(written.pop("attempts", {})),
            Budget: Budget.model_validate(written.pop("budget", {})),
            Providers: Providers.model_validate(written.pop("providers", {})),
            FallbackProviders: FallbackProviders.model_validate(
                written.pop("fallback_providers", ())
            ),
        }
        self.config = Config.model_validate({"data_dir": Path("."), **written})
        self.listens = True
        self.offers: list[object] = [
            spec for u in upstreams for spec in u.plugin.register_provider()
        ]
        self.daemon = SimpleNamespace(
            clock=self.clock,
            config=self.config,
            settings=self.settings.__getitem__,
            vault=self.vault,
            environ=self.environ,
            warnings=self.warnings,
            egress=SimpleNamespace(
                client=lambda _: None, exchange=installed_exchange()
            ),
            usage=self.ledger,
            agents=SimpleNamespace(
                get=lambda _: SimpleNamespace(pinned_model=self.pinned),
                list=lambda: self.made,
                above=self.above,
            ),
            events=SimpleNamespace(
                publish=self.events.append, wants=lambda _: self.listens
            ),
            registry=SimpleNamespace(
                offered=lambda kind: [
                    ("plugin:test", offer)
                    for offer in self.offers
                    if isinstance(offer, kind)
                ]
            ),
        )
        self.restart()

    def above(self, agent_id: str) -> list[AgentView]:
        """Give the agent itself and those above it."""
        (agent,) = (each for each in self.made if each.id == agent_id)
        return [agent, *(self.above(agent.parent) if agent.parent else ())]

    def restart(self) -> None:
        """Forget everything but the ledger."""
        self.models = RoutedModels(
            cast("Any", self.daemon), self.random, cast("Any", None)
        )

    def payer(self, manifest: str = "", name: str = "anna", **more: Any) -> Payer:
        parsed = parse_manifest(f'name = "{name}"\n{manifest}', [SPENDING]).manifest
        return Payer(AgentView(name, name, parsed, "session"), "turn", **more)

    async def ask(
        self, slug: str, payer: Payer | None = None, **asked: Any
    ) -> Answered:
        """Call a provider's first model and book the answer as the engine does."""
        return (await self.hear(slug, payer, **asked))[1]

    async def hear(
        self, slug: str, payer: Payer | None = None, **asked: Any
    ) -> tuple[str, Answered]:
        from dataclasses import replace

        said = ""
        request = replace(ASKED, **asked)
        target = self.models.resolve(slug, None)
        stream = self.models.stream(target, request, payer)
        async with aclosing(stream) as deltas:
            async for delta in deltas:
                if isinstance(delta, TextChunk):
                    said += delta.text
                if isinstance(delta, Answered):
                    if payer is not None:
                        self.ledger.book(delta.spent)
                    return said, delta
        raise AssertionError("no end")

    async def passing(self, work: Awaitable[T]) -> T:
        """Let time pass until the work is done."""
        task = asyncio.ensure_future(work)
        while not task.done():
            for _ in range(20):
                await asyncio.sleep(0)
            if not task.done():
                await self.clock.advance(0.25)
        return task.result()


Benches = Callable[..., Bench]
