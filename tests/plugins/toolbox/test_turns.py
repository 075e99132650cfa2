"""What tools give goes through a whole turn: to the model, to disk and back."""

from __future__ import annotations

import asyncio
import base64
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    OPERATOR,
    Allow,
    Context,
    Effect,
    File,
    Image,
    Interrupted,
    Replace,
    Text,
    ToolContext,
    ToolEnd,
    ToolOutput,
    ToolProgress,
    ToolResult,
    Turn,
    TurnOptions,
    Verdict,
    user_message,
)
from agenthost.testing.daemons import Daemons, RunningAgent, RunningDaemon

from .making import CITY, tool
from .plugins import guarding, offering

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()
PICTURE = Image("image/png", PNG)
PAGE = File("a.csv", "text/csv", "YSxi")
NOTES = "[image: image/png, 48 bytes]\n[file: a.csv, text/csv, 3 bytes]"
KEY = "3f0c2f6e-9f0e-4f0e-8a58-0d9c3a1f7b12"


async def look(context: ToolContext, arguments: Any) -> ToolResult:
    parts = (PICTURE, Text("a view"), PAGE)
    return ToolResult("seen", parts=parts, structured={"n": 1})


SEEN = f"seen\n{NOTES.splitlines()[0]}\na view\n{NOTES.splitlines()[1]}" + '\n{"n": 1}'
LOOK = tool("look", call=look)
PAY = tool("pay", call=look, effect=Effect.EXTERNAL, idempotent=False)


def begin(agent: RunningAgent, text: str = "go") -> Turn:
    host = agent.host.daemon
    known = host.agents.get(agent.id)
    options = TurnOptions(turn_id=KEY)
    return host.turns.start(Context(OPERATOR), known, user_message(text), options)


def results(daemon: RunningDaemon) -> list[ToolOutput]:
    """What the model was told of its calls last."""
    last = daemon.model.requests[-1].messages[-1]
    return [part for part in last.parts if isinstance(part, ToolOutput)]


EYES = """
[[providers.scripted.models]]
id = "scripted-model"
supports_vision = true
"""


@pytest.mark.parametrize(("config", "media"), [(EYES, (PICTURE, PAGE)), ("", ())])
async def test_a_model_with_eyes_is_shown_pictures_and_any_is_told_of_them(
    daemons: Daemons, config: str, media: tuple[Any, ...]
) -> None:
    daemon = await daemons.start(config=config, plugins=[offering(LOOK)])
    agent = await daemon.agent(tools=["look"])
    daemon.model.calls("look")
    await agent.ask("go")
    (said,) = results(daemon)
    assert said.text == SEEN
    assert said.media == media


async def test_a_session_shows_words_in_place_of_media(daemons: Daemons) -> None:
    daemon = await daemons.start(plugins=[offering(LOOK)])
    agent = await daemon.agent(tools=["look"])
    daemon.model.calls("look")
    await agent.ask("go")
    session = await agent.session()
    (entry,) = session["messages"][1]["tools"]
    assert entry["result"] == SEEN
    assert PNG not in str(session)


async def stored(daemon: RunningDaemon, agent: RunningAgent) -> list[ToolOutput]:
    """What the agent's session holds of results."""
    host = daemon.daemon
    session = await host.sessions.get(host.agents.get(agent.id).session_id)
    entries = await host.sessions.entries(session)
    return [p for e in entries for p in e.message.parts if isinstance(p, ToolOutput)]


async def test_all_of_a_result_is_on_disk(daemons: Daemons) -> None:
    daemon = await daemons.start(plugins=[offering(LOOK)])
    agent = await daemon.agent(tools=["look"])
    daemon.model.calls("look")
    await begin(agent).result()
    (said,) = await stored(daemon, agent)
    assert said.media == (PICTURE, PAGE)
    assert said.structured == {"n": 1}


async def test_a_turn_cut_by_a_crash_goes_on_with_all_of_a_result(
    daemons: Daemons, tmp_path: Path
) -> None:
    reached = asyncio.Event()

    async def hang(context: ToolContext, arguments: Any) -> ToolResult:
        reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    plugins = [offering(PAY, replace(PAY, name="hang", call=hang))]
    first = await daemons.start(home=tmp_path / "first", plugins=plugins)
    agent = await first.agent(tools=["pay", "hang"])
    first.model.calls_all(("pay", {}), ("hang", {}))
    turn = begin(agent)
    await reached.wait()
    # What a crash would leave at this moment; the live daemon writes on elsewhere.
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    await first.daemon.turns.drain(0)
    with pytest.raises(Interrupted):
        await turn.result()
    second = await daemons.start(home=tmp_path / "second", plugins=plugins)
    again = second.known_agent("tester")
    await begin(again).result()
    paid, hung = await stored(second, again)
    assert (paid.text, paid.media, paid.structured) == (
        SEEN,
        (PICTURE, PAGE),
        {"n": 1},
    )
    assert "may or may not" in hung.text


async def test_a_guard_reads_all_that_is_said(daemons: Daemons) -> None:
    read: list[str] = []

    def reader(case: Any) -> Verdict:
        read.append(case.text)
        return Allow()

    daemon = await daemons.start(plugins=[offering(LOOK), guarding(reader)])
    agent = await daemon.agent(tools=["look"])
    daemon.model.calls("look")
    await agent.ask("go")
    assert read == [SEEN]


async def test_what_a_guard_takes_away_is_nowhere(daemons: Daemons) -> None:
    def reader(case: Any) -> Verdict:
        return Replace(case.text.replace('{"n": 1}', "[gone]"))

    daemon = await daemons.start(plugins=[offering(LOOK), guarding(reader)])
    agent = await daemon.agent(tools=["look"])
    daemon.model.calls("look")
    events = await agent.events("go")
    (told,) = [data for name, data in events if name == "tool_result"]
    assert "structured" not in told
    (entry,) = await stored(daemon, agent)
    assert (entry.media, entry.structured) == ((), None)
    assert "[gone]" in entry.text


async def test_a_json_schema_is_a_tools_input(daemons: Daemons) -> None:
    given: list[Any] = []

    async def weather(context: ToolContext, arguments: Any) -> ToolResult:
        given.append(arguments)
        return ToolResult("sunny")

    spec = tool("weather", input=CITY, call=weather)
    daemon = await daemons.start(plugins=[offering(spec)])
    agent = await daemon.agent(tools=["weather"])
    daemon.model.calls("weather", city=1, town="x")
    daemon.model.calls("weather", city="Lisbon")
    await agent.ask("go")
    (wrong,) = daemon.model.requests[1].messages[-1].parts
    assert isinstance(wrong, ToolOutput)
    assert wrong.text.startswith("weather failed: wrong arguments: city: 1 is not of")
    assert "there is no 'town'" in wrong.text
    assert given == [{"city": "Lisbon"}]
    shown = daemon.model.requests[0].tools
    assert [definition.parameters for definition in shown] == [CITY]


async def test_a_result_that_breaks_its_schema_is_told_as_an_error(
    daemons: Daemons,
) -> None:
    output = {"type": "object", "required": ["rows"]}
    daemon = await daemons.start(plugins=[offering(replace(LOOK, output=output))])
    agent = await daemon.agent(tools=["look"])
    daemon.model.calls("look")
    await agent.ask("go")
    (said,) = results(daemon)
    assert said.is_error
    assert said.text == (
        "look failed: it ran, but its result does not fit its schema: "
        "the whole: 'rows' is a required property"
    )
    assert said.structured is None


async def test_a_tool_without_a_schema_is_left_out_and_the_daemon_says_so(
    daemons: Daemons,
) -> None:
    bad = tool("bad", input={"type": "object", "properties": {"a": {"type": "x"}}})
    daemon = await daemons.start(plugins=[offering(bad, LOOK)])
    listed = (await daemon.http.get("/api/tools")).json()["tools"]
    assert "look" in listed
    assert "bad" not in listed
    warned = (await daemon.http.get("/api/health/detail")).json()["config_warnings"]
    (line,) = [line for line in warned if "bad" in line]
    assert line.startswith("tool bad of plugin:offering is left out: schema: ")


async def test_a_plugin_whose_schemas_take_for_ever_loses_its_tools_alone(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agenthost_toolbox import toolbox

    class Slow(dict[str, Any]):
        def values(self) -> Any:
            free.wait(30)
            return super().values()

    import threading

    free = threading.Event()
    monkeypatch.setattr(toolbox, "SCHEMA_SECONDS", 1.0)
    slow = offering(tool("slow", input=Slow(type="object")), name="slow")
    daemon = await daemons.start(plugins=[slow, offering(LOOK)])
    free.set()
    listed = (await daemon.http.get("/api/tools")).json()["tools"]
    assert "look" in listed
    assert "slow" not in listed


async def test_progress_reaches_who_watches_between_start_and_end(
    daemons: Daemons,
) -> None:
    async def walk(context: ToolContext, arguments: Any) -> ToolResult:
        context.progress(1, 4, "one")
        context.progress(2, 4, "passed over: it comes too soon")
        context.progress(4, 4, "all\nof it")
        context.progress(4, 4, "again")
        return ToolResult("walked")

    daemon = await daemons.start(plugins=[offering(tool("walk", call=walk))])
    agent = await daemon.agent(tools=["walk"])
    daemon.model.calls("walk")
    events = await agent.events("go")
    assert [name for name, _ in events] == [
        "tool_use",
        "tool_progress",
        "tool_progress",
        "tool_result",
        "chunk",
        "done",
    ]
    frame = {"tool": "walk", "id": "call_1"}
    assert events[1][1] == {**frame, "done": 1, "total": 4, "text": "one"}
    assert events[2][1] == {**frame, "done": 4, "total": 4, "text": "all of it"}


async def test_nothing_is_told_of_a_call_that_has_ended(daemons: Daemons) -> None:
    kept: list[ToolContext] = []

    async def leak(context: ToolContext, arguments: Any) -> ToolResult:
        kept.append(context)
        return ToolResult("left")

    daemon = await daemons.start(plugins=[offering(tool("leak", call=leak))])
    agent = await daemon.agent(tools=["leak"])
    daemon.model.calls("leak")
    known = daemon.daemon.agents.get(agent.id)
    watcher = daemon.daemon.turns.watch(Context(OPERATOR), known, user_message("go"))
    async for event in watcher.events():
        if isinstance(event, ToolEnd):
            kept[0].progress(1)
            kept[0].log("error", "late")
        assert not isinstance(event, ToolProgress)


async def test_structured_results_stand_in_the_frames(daemons: Daemons) -> None:
    daemon = await daemons.start(plugins=[offering(LOOK)])
    agent = await daemon.agent(tools=["look"])
    daemon.model.calls("look")
    events = await agent.events("go")
    (told,) = [data for name, data in events if name == "tool_result"]
    assert told["structured"] == {"n": 1}
    assert told["result"] == SEEN
    assert PNG not in str(events)
