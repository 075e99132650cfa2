"""Tools appear and vanish while the daemon runs, and no turn is torn by it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
from agenthost import Host, ToolContext, ToolOutput, ToolResult, ToolSource
from agenthost.testing import ManualClock, ToolSourceContract
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_toolbox import sources
from agenthost_toolbox.table import Table

from .making import CITY, tool
from .plugins import Source, offering, sourcing


def table(daemon: RunningDaemon) -> Table:
    toolbox: Any = daemon.daemon.toolbox
    return cast("Table", toolbox._table)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that another task brings about."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.005)


async def listed(daemon: RunningDaemon) -> list[str]:
    answer = await daemon.http.get("/api/tools")
    return cast("list[str]", answer.json()["tools"])


async def shown(daemon: RunningDaemon, index: int = -1) -> list[str]:
    return [each.name for each in daemon.model.requests[index].tools]


async def test_what_a_source_offers_is_there_at_the_first_turn(
    daemons: Daemons,
) -> None:
    source = Source("one", tool("b"), tool("a", input=CITY))
    daemon = await daemons.start(plugins=[sourcing(source)])
    assert {"a", "b", "calculate"} <= set(await listed(daemon))
    agent = await daemon.agent(tools=["a", "b"])
    daemon.model.calls("a", city="Porto")
    await agent.ask("go")
    assert await shown(daemon) == ["a", "b"]
    (said,) = daemon.model.requests[-1].messages[-1].parts
    assert isinstance(said, ToolOutput)
    assert said.text == "done"


async def test_a_running_turn_keeps_its_prompt_and_the_next_sees_the_change(
    daemons: Daemons,
) -> None:
    source = Source("one", tool("a"))

    async def change(context: ToolContext, arguments: Any) -> ToolResult:
        source.now_offers(tool("a", description="Another one."), tool("new"))
        await until(lambda: "new" in table(daemon).tools)
        return ToolResult("changed")

    changing = offering(tool("change", call=change))
    daemon = await daemons.start(plugins=[sourcing(source), changing])
    agent = await daemon.agent(tools=["*"])
    daemon.model.calls("change")
    await agent.ask("first")
    before, after = daemon.model.requests
    assert after.tools is before.tools
    assert after.system == before.system
    assert "new" in await listed(daemon)
    await agent.ask("second")
    assert "new" in await shown(daemon)
    told = {each.name: each.description for each in daemon.model.requests[-1].tools}
    assert told["a"] == "Another one."


async def test_a_call_of_a_tool_that_has_gone_is_told_why(daemons: Daemons) -> None:
    source = Source("one", tool("a", "also_a"), tool("b"))
    daemon = await daemons.start(plugins=[sourcing(source)])
    agent = await daemon.agent(tools=["a", "b"])
    source.now_offers(tool("b"))
    await until(lambda: "a" not in table(daemon).tools)
    daemon.model.calls_all(("a", {}), ("also_a", {}), ("never", {}))
    await agent.ask("go")
    texts = [
        getattr(p, "text", "") for p in daemon.model.requests[-1].messages[-1].parts
    ]
    assert texts[0] == "a failed: tool a is gone: a: its server has gone"
    # It was granted under its own name, so nothing is said of the other.
    assert "is gone" not in texts[1]
    assert "there is no tool 'never'" in texts[2]
    assert await shown(daemon) == ["b"]
    source.now_offers(tool("b"), tool("c"))
    await until(lambda: "c" in table(daemon).tools)
    assert table(daemon).gone("a") == "a: its server has gone"
    source.now_offers(tool("a"), tool("b"))
    await until(lambda: "a" in table(daemon).tools)
    daemon.model.calls("a")
    await agent.ask("again")
    (said,) = daemon.model.requests[-1].messages[-1].parts
    assert getattr(said, "text", "") == "done"


async def test_a_tool_that_goes_while_it_is_called_ends_its_call(
    daemons: Daemons,
) -> None:
    async def last(context: ToolContext, arguments: Any) -> ToolResult:
        source.now_offers()
        await until(lambda: "last" not in table(daemon).tools)
        return ToolResult("ended well")

    source = Source("one", tool("last", call=last))
    daemon = await daemons.start(plugins=[sourcing(source)])
    agent = await daemon.agent(tools=["last"])
    daemon.model.calls("last")
    await agent.ask("go")
    (said,) = daemon.model.requests[-1].messages[-1].parts
    assert getattr(said, "text", "") == "ended well"


@pytest.mark.parametrize("problem", [ValueError("broken"), SystemExit(3)])
async def test_a_source_that_raises_keeps_its_tools_and_is_named(
    daemons: Daemons, caplog: pytest.LogCaptureFixture, problem: BaseException
) -> None:
    source = Source("one", tool("a"))
    daemon = await daemons.start(plugins=[sourcing(source)])
    source.fails = problem
    source.now_offers(tool("b"))
    line = "tool source one of plugin:sourcing keeps the tools it had"
    await until(lambda: line in caplog.text)
    assert "a" in await listed(daemon)
    source.fails = None
    source.now_offers(tool("b"))
    await until(lambda: "b" in table(daemon).tools)
    assert "a" not in await listed(daemon)


@pytest.mark.parametrize("offer", ["a tool", None, 7])
async def test_a_source_that_offers_no_tools_keeps_those_it_had(
    daemons: Daemons, caplog: pytest.LogCaptureFixture, offer: Any
) -> None:
    source = Source("one", tool("a"))
    daemon = await daemons.start(plugins=[sourcing(source)])
    source.now_offers(tool("b"), offer)
    await until(lambda: "which is no ToolSpec" in caplog.text)
    assert "a" in await listed(daemon)


async def test_a_source_that_hangs_keeps_its_tools_and_is_asked_no_more(
    daemons: Daemons,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, other = Source("one", tool("a")), Source("two", tool("x"))
    daemon = await daemons.start(plugins=[sourcing(source, other)])
    source.hangs = threading.Event()
    with monkeypatch.context() as hasty:
        hasty.setattr(sources, "ASKED_SECONDS", 0.1)
        source.now_offers(tool("b"))
        await until(lambda: "one of plugin:sourcing is not asked again" in caplog.text)
    source.hangs.set()
    source.changed()
    other.now_offers(tool("y"))
    await until(lambda: "y" in table(daemon).tools)
    assert "a" in await listed(daemon)
    assert source.asked == 2


async def test_a_source_that_is_slow_at_first_holds_up_no_start(
    daemons: Daemons,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "FIRST_SECONDS", 0.05)
    source = Source("one", tool("a"))
    source.hangs = threading.Event()
    daemon = await daemons.start(plugins=[sourcing(source)])
    assert "still waiting for" in caplog.text
    assert "tool source one of plugin:sourcing" in caplog.text
    assert "a" not in await listed(daemon)
    source.hangs.set()
    await until(lambda: "a" in table(daemon).tools)


class Refusing(Source):
    """Does not start."""

    async def start(self, host: Host, changed: Callable[[], object]) -> None:
        raise SystemExit(4)

    async def stop(self) -> None:
        raise ValueError("neither does it stop")


async def test_a_source_that_does_not_start_leaves_the_others(
    daemons: Daemons, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = sourcing(Refusing("one", tool("a")), Source("two", tool("b")))
    daemon = await daemons.start(plugins=[plugin])
    assert "tool source one of plugin:sourcing did not start" in caplog.text
    assert "b" in await listed(daemon)
    await daemon.daemon.stop()
    assert "tool source one of plugin:sourcing did not stop" in caplog.text


async def test_a_name_that_is_taken_leaves_its_tool_out_alone(
    daemons: Daemons, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source("one", tool("calculate"), tool("x", "kv_get"), tool("good"))
    daemon = await daemons.start(plugins=[sourcing(source)])
    assert "good" in await listed(daemon)
    assert "x" not in await listed(daemon)
    line = "tool calculate of tool source one of plugin:sourcing is left out: "
    assert f"{line}tool:calculate has calculate" in caplog.text
    assert "tool:kv has kv_get" in caplog.text
    states = {s.key: s.status.value for s in daemon.daemon.plugins.states()}
    assert states["plugin:sourcing"] == "enabled"


async def test_a_tool_with_a_hostile_schema_is_left_out_alone(
    daemons: Daemons, caplog: pytest.LogCaptureFixture
) -> None:
    deep: Any = {}
    for _ in range(10_000):
        deep = {"properties": {"a": deep}}
    hostile = [
        tool("deep", input={"type": "object", **deep}),
        tool("far", input={"type": "object", "$ref": "http://10.0.0.1/x"}),
        tool("bomb", input={"type": "object", "pattern": "(?=(a+)+)b"}),
        tool("out", output={"type": "nothing"}),
        tool("good"),
    ]
    daemon = await daemons.start(plugins=[sourcing(Source("one", *hostile))])
    names = set(await listed(daemon))
    assert "good" in names
    assert not names & {"deep", "far", "bomb", "out"}
    for name in ("deep", "far", "bomb", "out"):
        assert f"tool {name} of plugin:sourcing is left out: " in caplog.text


async def test_of_two_sources_the_other_takes_over_a_name_that_is_let_go(
    daemons: Daemons,
) -> None:
    first = Source("one", tool("a", description="The first one."))
    second = Source("two", tool("a", description="The second one."))
    daemon = await daemons.start(plugins=[sourcing(first, second)])
    assert table(daemon).tools["a"].spec.description == "The first one."
    first.now_offers()
    await until(lambda: table(daemon).tools["a"].spec.description == "The second one.")
    assert table(daemon).gone("a") is None


async def test_a_source_that_flaps_is_asked_now_and_then(daemons: Daemons) -> None:
    source = Source("one", tool("a"))
    daemon = await daemons.start(plugins=[sourcing(source)])

    def flap() -> None:
        for number in range(10_000):
            source.now_offers(tool(f"t{number}"))

    await asyncio.to_thread(flap)
    await until(lambda: "t9999" in table(daemon).tools)
    assert source.asked < 100


async def test_a_source_is_asked_again_after_a_pause(daemons: Daemons) -> None:
    clock = ManualClock()
    source = Source("one", tool("a"))
    daemon = await daemons.start(plugins=[sourcing(source)], clock=clock)
    source.now_offers(tool("b"))
    await listed(daemon)
    assert source.asked == 1
    await clock.advance(sources.PAUSE)
    await until(lambda: "b" in table(daemon).tools)
    assert source.asked == 2


async def test_so_many_tools_and_no_more(
    daemons: Daemons, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source("one", *(tool(f"t{n}") for n in range(1_001)))
    daemon = await daemons.start(plugins=[sourcing(source)])
    assert "it offers more than 1000 tools" in caplog.text
    assert "t1" not in await listed(daemon)


async def test_sources_end_with_the_daemon_and_may_speak_after_it(
    daemons: Daemons,
) -> None:
    source = Source("one", tool("a"))
    daemon = await daemons.start(plugins=[sourcing(source)])
    asked = source.asked
    await daemon.daemon.stop()
    assert source.stopped
    source.now_offers(tool("b"))
    await asyncio.sleep(0)
    assert source.asked == asked


async def test_agents_see_the_tools_of_patterns_as_they_come(daemons: Daemons) -> None:
    source = Source("one", tool("srv_a"))
    daemon = await daemons.start(plugins=[sourcing(source)])
    agent = await daemon.agent(tools=["srv_*"])
    await agent.ask("one")
    assert await shown(daemon) == ["srv_a"]
    source.now_offers(tool("srv_b"), tool("other"))
    await until(lambda: "srv_b" in table(daemon).tools)
    await agent.ask("two")
    assert await shown(daemon) == ["srv_b"]


class TestAHeldSource(ToolSourceContract):
    """The source of these tests keeps the promises of a source."""

    def source(self) -> ToolSource:
        return Source("one", tool("a"), tool("b"))

    async def change(self, source: ToolSource) -> None:
        assert isinstance(source, Source)
        source.now_offers(tool("b"))


@pytest.mark.parametrize(
    ("break_it", "promise"),
    [
        ({"offers": ()}, "test_it_offers_tools_of_different_names"),
        ({"offers": (tool("a"), tool("a"))}, "test_it_offers_tools_of_different_names"),
        ({"fails": ValueError()}, "test_it_offers_tools_of_different_names"),
        ({"name": ""}, "test_it_offers_tools_of_different_names"),
        ({"reason": "x" * 500}, "test_it_says_when_it_has_changed_and_why"),
        ({"now_offers": lambda *_: None}, "test_it_says_when_it_has_changed_and_why"),
    ],
)
async def test_the_contract_finds_a_source_that_breaks_it(
    break_it: dict[str, Any], promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agenthost.testing import tool_sources

    monkeypatch.setattr(tool_sources, "_SECONDS", 0.2)

    class Broken(TestAHeldSource):
        def source(self) -> ToolSource:
            source = super().source()
            for name, value in break_it.items():
                setattr(source, name, value)
            return source

    with pytest.raises((AssertionError, TimeoutError)):
        await getattr(Broken(), promise)(cast("Host", None))
