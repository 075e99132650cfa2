"""F8: what providers do wrong, through the engine, in three dialects."""

from __future__ import annotations

import pytest
from agenthost.testing.daemons import Daemons
from agenthost.testing.simulators import (
    AnthropicMessagesWire,
    GeminiWire,
    OpenAIChatWire,
    ProviderSimulator,
    Reply,
    Turn,
    Wire,
)

WIRES: dict[str, Wire] = {
    "openai-chat": OpenAIChatWire(),
    "anthropic-messages": AnthropicMessagesWire(),
    "gemini-generateContent": GeminiWire(),
}
HEALTHY = Turn("all is well again")


def silent_faults(wire: Wire) -> dict[str, Reply]:
    """Faults before the first word: a retry can help."""
    stream = {"Content-Type": wire.content_type}
    refused = {"Content-Type": "application/json"}
    return {
        "429": Reply(
            (wire.refusal(429, "slow down"),), 429, {**refused, "Retry-After": "0"}
        ),
        "500": Reply((wire.refusal(500, "oops"),), 500, refused),
        "503": Reply((wire.refusal(503, "busy"),), 503, refused),
        "reset": Reply(headers=stream, drop=True),
        "empty": Reply(headers=stream),
        "malformed": Reply((wire.garbage(),), headers=stream),
        "wrong JSON": Reply((b"data: [1, 2]\n\n",), headers=stream),
        "giant line": Reply((b"data: " + b"x" * 2_000_000,), headers=stream),
        "stalled": Reply(headers=stream, stall=True),
    }


def broken_words(wire: Wire) -> dict[str, Reply]:
    """Faults after the first words: a retry too, since nobody hears them."""
    events = tuple(wire.events(Turn("the first words of an answer")))
    stream = {"Content-Type": wire.content_type}
    begun = events[: len(events) // 2]
    return {
        "cut": Reply(begun, headers=stream, drop=True),
        "half closed": Reply(begun, headers=stream),
        "garbage": Reply((*begun, wire.garbage()), headers=stream),
        "stalled": Reply(begun, headers=stream, stall=True),
    }


FIRST, *OTHERS = WIRES


@pytest.mark.conformance
@pytest.mark.parametrize(
    "dialect",
    [FIRST, *(pytest.param(name, marks=pytest.mark.conformance) for name in OTHERS)],
)
async def test_every_fault_is_a_retry_or_a_typed_error(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    monkeypatch.setattr("agenthost_models.attempts.FIRST_PAUSE", 0.01)
    monkeypatch.setattr("agenthost_models.models.SILENCE", 1.0)
    wire = WIRES[dialect]
    async with ProviderSimulator(wire) as upstream:
        config = (
            f'[providers.sim]\nbase_url = "{upstream.base_url}"\n'
            f'dialect = "{dialect}"\nmodels = ["m"]\n'
        )
        host = await daemons.start(config=config)
        agent = await host.agent(extra='[model]\nprovider = "sim"\nmodel = "m"\n')
        for name, fault in silent_faults(wire).items():
            upstream.play(fault, HEALTHY)
            assert await agent.ask(name) == HEALTHY.text, name
        for name, fault in broken_words(wire).items():
            upstream.play(fault, HEALTHY)
            assert await agent.ask(name) == HEALTHY.text, name
        said = [m["content"] for m in (await agent.session())["messages"]]
        assert said[1::2] == [HEALTHY.text] * 13
