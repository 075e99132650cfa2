"""Plugins as the API shows them: how they stand, what they offer and can be told."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import Effect, Event, ManifestTable, ToolResult, ToolSpec
from agenthost.testing.daemons import Daemons, RunningDaemon
from pydantic import BaseModel, Field, SecretStr

from tests.kernel.plugins.entries import module

MINE = "plugin:made_on_the_spot"


class Digging(BaseModel):
    """How an agent digs."""

    metres: int = Field(3, ge=1, description="How deep.")
    token: SecretStr = Field(SecretStr("hush"), description="Who pays.")
    odd: Any = Field(default_factory=object)


DIGGING = ManifestTable("digging", Digging)


async def dig(context: object, call: object) -> ToolResult:
    return ToolResult("dug")


TOOL = ToolSpec("dig", "Dig.", Digging, Effect.READ, dig, aliases=("delve",))


def hears(event: Event) -> None: ...


async def row(running: RunningDaemon, key: str = MINE) -> dict[str, Any]:
    answer = await running.http.get("/api/plugins")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["total"] == len(body["plugins"])
    (found,) = (plugin for plugin in body["plugins"] if plugin["key"] == key)
    return dict(found)


async def test_a_plugin_is_shown_with_what_it_offers(daemons: Daemons) -> None:
    plugin = module(
        register_tool=lambda: [TOOL],
        register_manifest=lambda: [DIGGING],
        on_event=hears,
    )
    running = await daemons.start(plugins=[plugin])
    assert await row(running) == {
        "key": MINE,
        "distribution": "agenthost-test",
        "version": "0",
        "status": "enabled",
        "reason": None,
        "first_party": False,
        "offers": {
            "listener": [],
            "tool": ["dig", "delve"],
            "manifest": ["digging.metres", "digging.odd", "digging.token"],
        },
        "manifest_tables": ["digging"],
    }


async def test_first_party_plugins_are_marked(daemon: RunningDaemon) -> None:
    shown = await row(daemon, "plugin:http_api")
    assert shown["first_party"]
    assert "GET /api/plugins" in shown["offers"]["route"]


async def test_one_that_is_off_offers_nothing(daemons: Daemons) -> None:
    running = await daemons.start(config='[plugins]\ndisable = ["web_ui"]\n')
    shown = await row(running, "plugin:web_ui")
    assert (shown["status"], shown["offers"]) == ("disabled", {})


async def test_one_that_failed_says_why_and_offers_nothing(daemons: Daemons) -> None:
    def fails() -> list[ToolSpec]:
        raise RuntimeError("no battery")

    plugin = module(register_tool=fails, register_manifest=lambda: [DIGGING])
    running = await daemons.start(plugins=[plugin])
    shown = await row(running)
    assert shown["status"] == "failed"
    assert "no battery" in shown["reason"]
    assert (shown["offers"], shown["manifest_tables"]) == ({}, [])


async def test_one_that_fails_while_it_runs_offers_no_more(daemons: Daemons) -> None:
    plugin = module(register_tool=lambda: [TOOL], register_manifest=lambda: [DIGGING])
    running = await daemons.start(plugins=[plugin])
    running.daemon.plugins.fail(MINE, "gone")
    shown = await row(running)
    assert (shown["offers"], shown["manifest_tables"]) == ({}, [])
    schema = await running.http.get(f"/api/plugins/{MINE}/schema")
    assert schema.json()["manifest"] == []


async def test_a_schema_marks_secrets_and_shows_no_value(daemons: Daemons) -> None:
    running = await daemons.start(plugins=[module(register_manifest=lambda: [DIGGING])])
    answer = await running.http.get(f"/api/plugins/{MINE}/schema")
    (table,) = answer.json()["manifest"]
    keys = table["schema"]["properties"]
    assert table["name"] == "digging"
    assert keys["metres"]["minimum"] == 1
    assert keys["metres"]["description"] == "How deep."
    assert keys["token"]["writeOnly"]
    assert "hush" not in answer.text


async def test_a_schema_that_cannot_be_told_names_the_plugin(daemons: Daemons) -> None:
    class Broken(BaseModel):
        key: int = 1

        @classmethod
        def __get_pydantic_json_schema__(cls, *_: Any) -> Any:
            raise RuntimeError("no pencil")

    table = ManifestTable("broken", Broken)
    running = await daemons.start(plugins=[module(register_manifest=lambda: [table])])
    answer = await running.http.get(f"/api/plugins/{MINE}/schema")
    assert answer.status_code == 500
    assert f"{MINE} cannot tell its schema" in answer.json()["error"]


async def test_a_type_that_json_schema_has_not_is_left_open(daemons: Daemons) -> None:
    class Opaque(BaseModel, arbitrary_types_allowed=True):
        key: RunningDaemon | None = None

    table = ManifestTable("opaque", Opaque)
    running = await daemons.start(plugins=[module(register_manifest=lambda: [table])])
    answer = await running.http.get(f"/api/plugins/{MINE}/schema")
    assert answer.status_code == 200
    assert "key" in answer.json()["manifest"][0]["schema"]["properties"]


@pytest.mark.parametrize("key", ["plugin:htp_api", "http_api", "..%2f..", "x" * 999])
async def test_a_schema_of_nobody_is_not_found(daemon: RunningDaemon, key: str) -> None:
    answer = await daemon.http.get(f"/api/plugins/{key}/schema")
    assert answer.status_code == 404
    assert answer.json()["error"]


async def test_both_need_the_key(daemons: Daemons) -> None:
    running = await daemons.start(environ={"AGENTHOST_API_KEY": "k"})
    for path in ("/api/plugins", "/api/plugins/plugin:models/schema"):
        assert (await running.http.get(path)).status_code == 401


async def test_what_the_document_says_is_what_comes(daemon: RunningDaemon) -> None:
    document = (await daemon.http.get("/openapi.json")).json()
    assert "get" in document["paths"]["/api/plugins"]
    assert "get" in document["paths"]["/api/plugins/{key}/schema"]
