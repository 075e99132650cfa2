"""Tables of manifests that plugins read: shared, kept, read once, checked."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from agenthost import Effect, ManifestTable, ToolContext, ToolResult, ToolSpec
from agenthost.errors import InvalidInput, PluginError
from agenthost.manifest_model import Manifest
from agenthost.testing.daemons import Daemons, RunningAgent, RunningDaemon
from agenthost_agents.manifests import parse_manifest
from agenthost_chat.chat import ToolUse
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from tests.kernel.plugins.entries import module


class Depth(BaseModel):
    """How deep an agent may dig."""

    metres: int = Field(3, validation_alias=AliasChoices("metres", "meters"))


class Shovel(BaseModel):
    """What it digs with."""

    model_config = ConfigDict(extra="forbid")

    shovel: str = "steel"


class Mode(BaseModel):
    """Text alone is the mode."""

    mode: str = "slow"

    @model_validator(mode="before")
    @classmethod
    def _shorthand(cls, value: object) -> object:
        return {"mode": value} if isinstance(value, str) else value


class Top(BaseModel):
    """Keys outside every table."""

    gloves: bool = False


class Extra(BaseModel):
    """A key in a table of agenthost's own."""

    dig: tuple[str, ...] = ()


DEPTH = ManifestTable("digging", Depth)
SHOVEL = ManifestTable("digging", Shovel)
MODE = ManifestTable("pace", Mode)
TOP = ManifestTable("", Top)
EXTRA = ManifestTable("capabilities", Extra)
ALL: tuple[ManifestTable[Any], ...] = (DEPTH, SHOVEL, MODE, TOP, EXTRA)


def read(text: str, tables: tuple[ManifestTable[Any], ...] = ALL) -> Manifest:
    return parse_manifest(f'name = "a"\n{text}', tables).manifest


def test_plugins_share_a_table_and_each_sees_its_own_keys() -> None:
    manifest = read('[digging]\nmeters = 7\nshovel = "wood"')
    assert DEPTH.of(manifest).metres == 7
    assert SHOVEL.of(manifest).shovel == "wood"


def test_keys_are_read_at_the_top_and_beside_agenthosts_own() -> None:
    manifest = read('gloves = true\n[capabilities]\ntools = ["t"]\ndig = ["sand"]')
    assert TOP.of(manifest).gloves
    assert EXTRA.of(manifest).dig == ("sand",)
    assert manifest.capabilities.tools == ("t",)


def test_a_model_may_take_text_for_a_table() -> None:
    assert MODE.of(read('pace = "fast"')).mode == "fast"


@pytest.mark.parametrize("text", ["", "[digging]", "[digging]\nother = 1", "more = 1"])
def test_what_is_not_written_has_its_default_which_agents_share(text: str) -> None:
    one, other = read(text), read(text)
    assert DEPTH.of(one).metres == 3
    assert DEPTH.of(one) is DEPTH.of(other)


def test_a_table_is_checked_once() -> None:
    manifest = read("[digging]\nmetres = 4")
    assert DEPTH.of(manifest) is DEPTH.of(manifest)


def test_reading_a_table_does_not_change_the_manifest() -> None:
    manifest = Manifest.from_json('{"name": "a", "digging": {"metres": 4}}')
    same = Manifest.from_json(manifest.model_json())
    assert DEPTH.of(manifest).metres == 4
    assert manifest == same
    assert manifest.model_json() == same.model_json()


def test_a_copy_with_another_table_reads_its_own() -> None:
    manifest = read("[digging]\nmetres = 4")
    assert DEPTH.of(manifest).metres == 4
    changed = manifest.model_copy(update={"digging": {"metres": 5}})
    assert DEPTH.of(changed).metres == 5
    assert DEPTH.of(manifest).metres == 4


def test_a_change_of_another_key_keeps_every_table() -> None:
    manifest = read('[digging]\nmetres = 4\n[pace]\nmode = "fast"\n[model]\nodd = 1')
    model = manifest.model.model_copy(update={"system_prompt": "hello"})
    changed = manifest.model_copy(update={"description": "x", "model": model})
    stored = Manifest.from_json(changed.model_json())
    assert (DEPTH.of(stored).metres, MODE.of(stored).mode) == (4, "fast")
    assert stored.model.model_extra == {"odd": 1}


def test_threads_read_the_same() -> None:
    manifest, found = read("[digging]\nmetres = 4"), []
    threads = [
        threading.Thread(target=lambda: found.append(DEPTH.of(manifest).metres))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [4] * 8


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('[digging]\nmetres = "far"', "digging.metres"),
        ("digging = 3", "digging"),
        ('gloves = "both"', "gloves"),
        ("[capabilities]\ndig = 4", "capabilities.dig"),
        ("[pace]\nmode = 3", "pace.mode"),
    ],
)
def test_a_wrong_value_names_its_key(text: str, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(text)
    assert caught.value.field == field


def test_a_wrong_value_that_was_kept_is_told_of_when_it_is_read() -> None:
    manifest = read('[digging]\nmetres = "far"\nshovel = "wood"', tables=())
    with pytest.raises(InvalidInput, match=r"digging\.metres: must be"):
        DEPTH.of(manifest)
    assert SHOVEL.of(manifest).shovel == "wood"


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "name"), ("tags", "tags"), ("metadata", "metadata"), ("module", "module")],
)
def test_a_key_of_agenthosts_own_is_refused(name: str, said: str) -> None:
    class Name(BaseModel):
        name: str = ""

    with pytest.raises(PluginError, match=rf"manifest {said}: .*agenthost's own"):
        ManifestTable(name, Name)


def test_a_key_without_a_default_is_refused() -> None:
    class Needy(BaseModel):
        metres: int

    with pytest.raises(PluginError, match=r"manifest digging\.metres: it needs a def"):
        ManifestTable("digging", Needy)


def offering(*tables: ManifestTable[Any]) -> Any:
    return module(register_manifest=lambda: tables)


async def test_register_manifest_has_its_table_checked_when_an_agent_is_made(
    daemons: Daemons,
) -> None:
    running = await daemons.start(plugins=[offering(DEPTH)])
    refused = await spawn(running, '[digging]\nmetres = "far"')
    assert refused.status_code == 400
    assert "digging.metres" in refused.json()["error"]
    answer = await spawn(running, "[digging]\nmetre = 4")
    assert answer.json()["warnings"] == [
        "digging.metre: unknown key, ignored; did you mean 'metres'?"
    ]


async def spawn(running: RunningDaemon, text: str) -> Any:
    manifest = f'name = "digger"\n{text}'
    return await running.http.post("/api/agents", json={"manifest_toml": manifest})


async def test_a_table_outlives_the_times_its_plugin_is_off(daemons: Daemons) -> None:
    first = await daemons.start(plugins=[offering(DEPTH)])
    await first.agent("digger", extra="[digging]\nmetres = 9")
    home = first.daemon.home
    await first.daemon.stop()
    without = await daemons.start(home=home)
    agent = without.known_agent("digger")
    url = f"/api/agents/{agent.id}/update"
    changed = await without.http.put(url, json={"description": "digs"})
    assert changed.status_code == 200
    assert await agent.ask("hello")
    await without.daemon.stop()
    again = await daemons.start(home=home, plugins=[offering(DEPTH)])
    manifest = again.daemon.agents.find("digger").manifest
    assert manifest.description == "digs"
    assert DEPTH.of(manifest).metres == 9


async def test_a_wrong_table_that_was_kept_fails_what_needs_it_and_says_why(
    daemons: Daemons,
) -> None:
    first = await daemons.start()
    await first.agent("spender")
    home, id_ = first.daemon.home, first.daemon.agents.find("spender").id
    await first.daemon.stop()
    break_manifest(home, id_)
    again = await daemons.start(home=home)
    answer = await again.known_agent("spender").send("hello")
    assert answer.status_code == 400
    assert "resources.max_cost_per_day_usd" in answer.json()["error"]


def break_manifest(home: Path, agent_id: str) -> None:
    with sqlite3.connect(home / "data" / "agenthost.db") as connection:
        connection.execute(
            "update agents set manifest = json_set(manifest, "
            "'$.resources', json('{\"max_cost_per_day_usd\": \"much\"}'))"
            " where id = ?",
            (agent_id,),
        )
    connection.close()


async def test_a_tool_reads_its_table_through_the_agents_view(
    daemons: Daemons,
) -> None:
    async def dig(context: ToolContext, call: Top) -> ToolResult:
        assert context.agent is not None
        return ToolResult(f"{DEPTH.of(context.agent.manifest).metres} metres")

    spec = ToolSpec("dig", "Dig.", Top, Effect.READ, dig)
    plugin = module(register_manifest=lambda: [DEPTH], register_tool=lambda: [spec])
    running = await daemons.start(plugins=[plugin])
    agent = await running.agent(tools=["dig"], extra="[digging]\nmetres = 12")
    assert "12 metres" in await run_tool(running, agent, "dig")


async def run_tool(running: RunningDaemon, agent: RunningAgent, name: str) -> str:
    async def nothing(_: ToolUse) -> None: ...

    calls = [ToolUse("1", name, {})]
    toolbox = running.daemon.toolbox
    outcomes = [o async for o in toolbox.run(agent.context(), calls, nothing)]
    return outcomes[0].output.text
