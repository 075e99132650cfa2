"""Which model answers, by how much a request asks for."""

from __future__ import annotations

import pytest
from agenthost import OPERATOR, AgentMode, Context
from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.ports.stage import known
from agenthost_turns.routing import complexity

ROUTES = """
[routing]
simple_model = "scripted/small"
complex_model = "scripted/large"
simple_threshold = 10
complex_threshold = 100
"""


def test_a_request_counts_what_it_holds() -> None:
    assert complexity("a" * 40, 0, 10, "s" * 500) == 10
    assert complexity("", 3, 12, "s" * 600) == 60 + 30 + 10
    assert complexity("```\ndef f", 0, 0, "") == 60 + 2


@pytest.mark.manifest(
    "routing.simple_model",
    "routing.medium_model",
    "routing.complex_model",
    "routing.simple_threshold",
    "routing.complex_threshold",
)
async def test_a_request_is_answered_by_the_model_for_its_size(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent(tools=[], extra=ROUTES)
    for words in ("hi", "a" * 60, "a" * 800):
        await agent.ask(words)
    asked = [request.model for request in daemon.model.requests]
    assert asked == ["small", "scripted-model", "large"]
    pinned = daemon.daemon.agents.set_mode
    await pinned(Context(OPERATOR), known(agent), AgentMode.STABLE)
    await agent.ask("hi")
    assert daemon.model.requests[-1].model == "scripted-model"
