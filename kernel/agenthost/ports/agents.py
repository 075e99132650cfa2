"""The port AGENTS: who exists, and the one way to come into being, change and end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ..agent import Agent, AgentMode

if TYPE_CHECKING:
    from ..context import Context
    from ..manifest_model import Manifest
    from .models import Choice, Target


class Agents(Protocol):
    """The agents of one daemon; ``exist`` is set from the first agent on.

    ``restarts`` counts those that were started again after a crash.
    """

    exist: asyncio.Event
    restarts: int

    async def load(self) -> None:
        """Read all agents, oldest first."""

    def list(self) -> list[Agent]:
        """All agents, oldest first."""

    def __len__(self) -> int: ...

    def get(self, agent_id: str) -> Agent:
        """Find by id, or raise NotFound."""

    def above(self, agent_id: str) -> Sequence[Agent]:
        """The agent itself, who has spawned it, who has spawned that one, and so on."""

    def find(self, reference: str) -> Agent:
        """Find by id in any form, or by exact name; NotFound when there is none."""

    async def spawn(
        self, context: Context, manifest_toml: str
    ) -> tuple[Agent, Sequence[str]]:
        """Bring an agent into being: its row and its session, or nothing at all.

        One that an agent makes in a turn is a child of that agent.

        Returns:
            The agent, and warnings about what in the manifest has no effect.

        Raises:
            InvalidInput: The manifest is malformed, or its provider is unknown.
            Conflict: The name is taken, or the agent has as many children as it may.
            Denied: A guard refuses it, or it asks for more than its creator has.
        """

    async def change(
        self, context: Context, agent: Agent, changes: Mapping[str, object]
    ) -> Agent:
        """Keep an agent with these keys of its manifest changed; the rest stays.

        A mapping changes these keys of a table, and the rest of the table stays. What
        counts is the agent as it is now, not as whoever asks has seen it.

        Raises:
            Denied: A guard refuses it.
        """

    async def set_model(
        self, context: Context, agent: Agent, provider: str | None, model: str
    ) -> Choice:
        """Give the agent another model, as its provider or another names it.

        Raises:
            InvalidInput: The provider is unknown.
        """

    async def set_mode(self, context: Context, agent: Agent, mode: AgentMode) -> Agent:
        """Pin the model the agent has now (STABLE), or let go of it (NORMAL)."""

    async def suspend(self, context: Context, agent: Agent, reason: str) -> Agent:
        """Stop the agent's turns and refuse its messages until it is resumed.

        Raises:
            Conflict: It is being deleted.
        """

    async def resume(self, context: Context, agent: Agent) -> Agent:
        """Let a suspended or crashed agent take messages; its crashes are forgotten.

        Raises:
            Conflict: It is being deleted.
        """

    def crash(self, agent_id: str, reason: str) -> None:
        """Take note that an agent's own work has broken; returns at once.

        It takes no messages until it is started again, later each time, by itself. One
        that crashes again and again is suspended.
        """

    async def new_session(self, agent: Agent, into: str, *, keep: bool) -> Agent:
        """Give the agent another session, an empty one unless it is named.

        The old one is deleted, or archived when it is to be kept.

        Raises:
            NotFound: It has another session by now, or has been deleted.
        """

    async def delete(self, context: Context, agent: Agent) -> None:
        """Stop the agent's turns; remove it, its sessions, its memory, its workspace.

        Its children go first. Its usage stays; that of a child becomes its parent's.
        """

    def grants_of(
        self, manifest: Manifest, tools: Iterable[str] | None = None
    ) -> Mapping[str, tuple[str, ...]]:
        """The rights that a manifest asks for, by action, as ``Grants`` takes them.

        Args:
            manifest: What the agent's author wrote.
            tools: The names of the registered tools. With a blocklist they are needed
                to act: patterns are resolved over them, less what is blocked. Without
                them the answer is the most that the agent could ever get, which is
                what comparing its rights with those of its maker needs.
        """

    def target_of(self, agent: Agent) -> Target:
        """The model an agent uses now: pinned, its manifest's, or the default."""

    def model_of(self, agent: Agent) -> tuple[str, str]:
        """The provider's slug and model id an agent uses now.

        A provider that has gone is shown as the manifest names it.
        """
