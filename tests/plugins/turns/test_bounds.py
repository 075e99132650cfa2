"""What one turn may take: calls, results, words that broke off."""

from __future__ import annotations

import pytest
from agenthost import ProviderFault, Role, ToolOutput
from agenthost.testing.daemons import RunningDaemon
from agenthost_toolbox.pace import MINUTE, Pace
from agenthost_toolbox.results import STEP_BYTES
from agenthost_toolbox.toolbox import CALLS_PER_ANSWER
from agenthost_turns.ends import BROKEN_OFF

PLENTY = "[resources]\nmax_tool_calls_per_minute = 1000\n"


def results(daemon: RunningDaemon) -> list[ToolOutput]:
    last = daemon.model.requests[-1].messages[-1]
    assert last.role is Role.TOOL
    return [part for part in last.parts if isinstance(part, ToolOutput)]


async def test_of_a_thousand_calls_the_first_run(daemon: RunningDaemon) -> None:
    agent = await daemon.agent(extra=PLENTY)
    calls = [("calculate", {"expression": f"1+{n}"}) for n in range(1_000)]
    daemon.model.calls_all(*calls)
    await agent.ask("go")
    outputs = results(daemon)
    assert len(outputs) == 1_000
    assert sum(not output.is_error for output in outputs) == CALLS_PER_ANSWER
    assert "at most 64 calls" in outputs[-1].text


async def test_the_results_of_a_step_are_bounded_together(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent(extra=PLENTY)
    files = daemon.daemon.files.workspace(agent.id)
    names = [f"long{number}.txt" for number in range(20)]
    for name in names:
        files.write(name, ("é" * 90_000).encode())
    daemon.model.calls_all(*[("file_read", {"path": name}) for name in names])
    await agent.ask("go")
    texts = [output.text for output in results(daemon)]
    notes = sum("the rest is left out" in text for text in texts)
    assert notes >= 17
    size = sum(len(text.encode()) for text in texts)
    assert size <= STEP_BYTES + notes * 80


@pytest.mark.manifest("resources.max_tool_calls_per_minute")
async def test_calls_a_minute_are_limited_as_the_manifest_says(
    daemon: RunningDaemon,
) -> None:
    limit = "[resources]\nmax_tool_calls_per_minute = 3\n"
    agent = await daemon.agent(extra=limit)
    daemon.model.calls_all(*[("calculate", {"expression": "1+1"})] * 5)
    await agent.ask("go")
    outputs = results(daemon)
    assert [output.is_error for output in outputs] == [False] * 3 + [True] * 2
    assert "max_tool_calls_per_minute" in outputs[-1].text


def test_a_pace_lets_go_after_a_minute() -> None:
    pace = Pace()
    assert [pace.wait("a", 2, now) for now in (0.0, 10.0)] == [0, 0]
    assert pace.wait("a", 2, 20.0) == MINUTE - 20.0
    assert pace.wait("b", 2, 20.0) == 0
    assert pace.wait("a", 2, MINUTE) == 0
    assert pace.wait("a", 2, MINUTE + 1) > 0
    assert pace.wait("a", 0, MINUTE + 1) == 0


async def test_of_a_long_answer_that_broke_off_a_part_is_kept(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    daemon.model.fails(ProviderFault.SERVER, "x" * (BROKEN_OFF + 5))
    await agent.events("go")
    words = (await agent.session())["messages"][-1]["content"]
    assert words.startswith("x" * BROKEN_OFF + "\n[")
    assert "5 characters left out" in words


async def test_a_tools_time_is_charged_to_its_plugin(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    daemon.model.calls("calculate", expression="1+1")
    await agent.ask("go")
    detail = (await daemon.http.get("/api/health/detail")).json()
    assert detail["plugin_time"]["tool:calculate"]["calls"] >= 1
