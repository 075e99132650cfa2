"""A real daemon before one simulated provider, and what a turn left in the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from _pytest.mark import ParameterSet
from agenthost import (
    Context,
    Effect,
    Message,
    Role,
    Row,
    ToolResult,
    ToolSpec,
    hookimpl,
)
from agenthost.context import OPERATOR
from agenthost.errors import AgentHostError
from agenthost.testing import Daemons, ManualClock
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from agenthost.testing.installed import provider_of
from agenthost.testing.samples import WIRES
from agenthost.testing.simulators import (
    Heard,
    ProviderSimulator,
    ReplicateSimulator,
    ReplicateWire,
    Reply,
    Turn,
    Wire,
)
from agenthost.turns.turn import TurnOptions, user_message
from agenthost_records.codec import load_message
from agenthost_records.tables import messages, tool_calls, turns
from pydantic import BaseModel, Field
from sqlalchemy import bindparam, select

TOOL = "post_card"
LONGEST_PAUSE = 60.0
_TURN = select(turns).where(turns.c.id == bindparam("turn"))
_SAID = (
    select(messages)
    .where(messages.c.turn_id == bindparam("turn"))
    .order_by(messages.c.seq)
)
_CALLS = select(tool_calls).where(tool_calls.c.turn_id == bindparam("turn"))


@dataclass(frozen=True)
class Spoken:
    """A provider, and one of its models when not the first."""

    provider: str
    model: str = ""

    @property
    def name(self) -> str:
        """What a test calls it."""
        return f"{self.provider}-{self.model}" if self.model else self.provider

    @property
    def model_id(self) -> str:
        """The model that is asked."""
        return self.model or provider_of(self.provider).facts.models[0].id

    @property
    def dialect(self) -> str:
        """How the model is spoken to."""
        spec = provider_of(self.provider)
        (wire_id,) = (m.upstream_id for m in spec.facts.models if m.id == self.model_id)
        return spec.spoken_to(wire_id).name

    @property
    def wire(self) -> Wire:
        """Its dialect from the other side."""
        return WIRES[self.dialect]

    def simulator(self) -> ProviderSimulator:
        """The service that speaks so."""
        wire = self.wire
        if isinstance(wire, ReplicateWire):
            return ReplicateSimulator(wire)
        return ProviderSimulator(wire)


PROVIDERS = (
    Spoken("anthropic"),
    Spoken("bedrock"),
    Spoken("cerebras"),
    Spoken("cohere"),
    Spoken("deepseek"),
    Spoken("fireworks"),
    Spoken("gemini"),
    Spoken("groq"),
    Spoken("huggingface"),
    Spoken("lmstudio"),
    Spoken("mistral"),
    Spoken("ollama"),
    Spoken("openai"),
    Spoken("openai", "gpt-4o"),
    Spoken("openai", "gpt-5.5-pro"),
    Spoken("openrouter"),
    Spoken("perplexity"),
    Spoken("replicate"),
    Spoken("sambanova"),
    Spoken("together"),
    Spoken("vllm"),
    Spoken("xai"),
)
QUICK = frozenset({"anthropic", "bedrock", "openai"})
"""Providers of the dialects that are least alike: these are among the quick tests."""
DIALECTS = {spoken.dialect: spoken for spoken in reversed(PROVIDERS)}
NO_TOOLS = pytest.mark.xfail(
    strict=True, reason="Replicate's models take a prompt: they know no tools"
)


def everyone(*, tools: bool = False, thorough: bool = False) -> list[ParameterSet]:
    """Make a case of every provider.

    Args:
        tools: The test needs tools, which one provider does not have.
        thorough: Only three dialects are among the quick tests, the others among those
            of conformance, each with its first provider.
    """
    first = DIALECTS.values()
    cases = []
    for spoken in PROVIDERS:
        marks = [NO_TOOLS] if tools and spoken.provider == "replicate" else []
        if thorough and spoken not in first:
            marks.append(pytest.mark.faults)
        elif thorough and spoken.provider not in QUICK:
            marks.append(pytest.mark.conformance)
        cases.append(pytest.param(spoken, id=spoken.name, marks=marks))
    return cases


class HastyClock(ManualClock):
    """Time passes at once where a call waits, and nowhere else."""

    async def sleep(self, seconds: float) -> None:
        """Let the time pass; what waits very long waits for the test."""
        if seconds > LONGEST_PAUSE:
            await super().sleep(seconds)
        await self.advance(seconds)


class Card(BaseModel, extra="forbid"):
    """Arguments of ``post_card``; half of them would be valid too."""

    city: str = Field(default="", description="Where the card goes")
    words: str = Field(default="", description="What stands on it")


class PostOffice:
    """A tool with an effect, which must not happen twice."""

    __name__ = "post_office"

    def __init__(self) -> None:
        self.posted: list[tuple[str, str]] = []

    async def post(self, context: Context, card: Card) -> ToolResult:
        """Post a card."""
        del context
        self.posted.append((card.city, card.words))
        await asyncio.sleep(0)
        return ToolResult(f"posted to {card.city}")

    def plugin(self) -> SimpleNamespace:
        """The plugin that offers the tool."""

        @hookimpl
        def register_tool() -> Iterable[ToolSpec]:
            """Offer the post office."""
            yield ToolSpec(
                TOOL, "Post a picture card.", Card, Effect.EXTERNAL, self.post
            )

        return SimpleNamespace(__name__=self.__name__, register_tool=register_tool)


@dataclass(frozen=True)
class Outcome:
    """What a turn came to: its answer or error, its rows, and what it cost."""

    text: str
    error: AgentHostError | None
    row: Row
    said: Sequence[Row]
    calls: Sequence[Row]
    heard: Sequence[Heard]
    waited: float

    @property
    def state(self) -> str:
        """How the turn's row ended."""
        return str(self.row["state"])

    @property
    def partial(self) -> list[str]:
        """The words of messages that are marked as cut short."""
        return [message_of(row).text for row in self.said if row["partial"]]

    @property
    def whole(self) -> list[Message]:
        """What the model said and the store holds as complete."""
        stored = (message_of(row) for row in self.said if not row["partial"])
        return [message for message in stored if message.role is Role.ASSISTANT]

    def check_failed(self, words: str) -> None:
        """Nothing of these words is stored as a complete answer."""
        assert self.error is not None
        assert self.state == "failed", self.state
        assert not [message for message in self.whole if not message.tool_uses]
        for partial in self.partial:
            assert words.startswith(partial), partial

    def check_done(self, words: str) -> None:
        """These words, and they alone, are stored as the answer."""
        assert self.error is None, self.error
        assert self.text == words
        assert self.state == "done", self.state
        assert not self.partial
        (answer,) = (message for message in self.whole if not message.tool_uses)
        assert answer.text == words


def message_of(row: Row) -> Message:
    """Read a stored message back."""
    return load_message(row["role"], row["parts"], row["digest"])


class Stage:
    """A daemon whose only model stands behind a simulator."""

    def __init__(
        self,
        spoken: Spoken,
        host: RunningDaemon,
        upstream: ProviderSimulator,
        office: PostOffice,
    ) -> None:
        self.spoken = spoken
        self.wire = upstream.wire
        self.upstream = upstream
        self.office = office
        self._host = host
        self._agents = 0

    async def agent(self) -> RunningAgent:
        """Make an agent with the tool and an empty session."""
        self._agents += 1
        spoken = self.spoken
        model = f'provider = "{spoken.provider}"\nmodel = "{spoken.model_id}"'
        return await self._host.agent(
            f"agent{self._agents}", [TOOL], f"[model]\n{model}\n"
        )

    async def turn(
        self, agent: RunningAgent, *scenes: Turn | Reply, turn_id: str | None = None
    ) -> Outcome:
        """Run a turn against these scenes and read what it left."""
        daemon, upstream = self._host.daemon, self.upstream
        upstream.play(*scenes)
        asked, began = len(upstream.heard), daemon.clock.monotonic()
        # Watched: what nobody has heard would be said anew by whoever stands in.
        turn = daemon.turns.watch(
            Context(OPERATOR),
            daemon.agents.get(agent.id),
            user_message("post a card to Lisbon"),
            TurnOptions(turn_id=turn_id),
        ).turn
        text, error = "", None
        try:
            text = (await turn.result()).text
        except AgentHostError as failed:
            error = failed
        upstream.forget()
        assert turn.task is not None
        await turn.task
        store, of_turn = daemon.store, {"turn": turn.id}
        row = await store.first(_TURN, of_turn)
        assert row is not None
        return Outcome(
            text,
            error,
            row,
            await store.read(_SAID, of_turn),
            await store.read(_CALLS, of_turn),
            upstream.heard[asked:],
            round(daemon.clock.monotonic() - began, 6),
        )


@asynccontextmanager
async def staged(daemons: Daemons, spoken: Spoken) -> AsyncIterator[Stage]:
    """Start a daemon whose provider is simulated; the key comes by environment."""
    office = PostOffice()
    facts = provider_of(spoken.provider).facts
    async with spoken.simulator() as upstream:
        host = await daemons.start(
            config=f'[providers.{spoken.provider}]\nbase_url = "{upstream.base_url}"\n'
            "[rate_limit]\nenabled = false\n",
            environ={facts.env_var or "NO_KEY": "sk-fault-0123456789"},
            plugins=[office.plugin()],
            clock=HastyClock(),
        )
        yield Stage(spoken, host, upstream, office)
