"""Agents over REST: what clients send, what they get, what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from agenthost import Cancelled
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.scripted import Pause

UNKNOWN = "11111111-2222-4333-8444-555555555555"
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.manifest("tags")
async def test_an_agent_is_listed_and_shown(daemon: RunningDaemon) -> None:
    agent = await daemon.agent(
        "ada",
        tools=["file_read"],
        extra='description = "reads"\ntags = ["a", "b"]\n',
    )
    (row,) = (await daemon.http.get("/api/agents")).json()
    assert row["id"] == agent.id == str(UUID(agent.id))
    assert (row["name"], row["state"]) == ("ada", "Running")
    assert (row["model_provider"], row["model_name"]) == ("scripted", "scripted-model")
    assert TIMESTAMP.fullmatch(row["created_at"])
    detail = (await daemon.http.get(f"/api/agents/{agent.id}")).json()
    assert detail["capabilities"] == {"tools": ["file_read"], "network": ["*"]}
    assert detail["model"] == {"provider": "scripted", "model": "scripted-model"}
    assert detail["description"] == "reads"
    assert detail["tags"] == ["a", "b"]
    assert detail["session_id"] == str(UUID(detail["session_id"]))


async def test_an_id_may_come_in_any_form(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    answer = await daemon.http.get(f"/api/agents/{agent.id.replace('-', '').upper()}")
    assert answer.json()["id"] == agent.id


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("PUT", "/update", {"description": "x"}),
        ("PUT", "/mode", {"mode": "Stable"}),
        ("PUT", "/model", {"model": "m"}),
        ("POST", "/message", {"message": "x"}),
        ("POST", "/message/stream", {"message": "x"}),
        ("GET", "/session", None),
        ("POST", "/session/reset", None),
        ("POST", "/session/compact", None),
        ("POST", "/stop", None),
        ("DELETE", "", None),
    ],
)
async def test_every_route_refuses_bad_and_unknown_ids(
    daemon: RunningDaemon, method: str, path: str, body: Any
) -> None:
    bad = await daemon.http.request(method, f"/api/agents/nonsense{path}", json=body)
    assert bad.status_code == 400, bad.text
    assert "agent_id" in bad.json()["error"]
    unknown = await daemon.http.request(
        method, f"/api/agents/{UNKNOWN}{path}", json=body
    )
    assert unknown.status_code == 404, unknown.text
    assert UNKNOWN in unknown.json()["error"]


@pytest.mark.parametrize(
    ("manifest", "status", "words"),
    [
        ('name = "x', 400, "line 1, column"),
        ("description = 'no name'", 400, "name"),
        ('name = "a b"', 400, "name"),
        ('name = "x"\n[model]\nprovider = "opnai"', 400, "did you mean 'openai'"),
        ('name = "x"\n[model]\nmax_tokens = "many"', 400, "model.max_tokens"),
        ('name = "x"\nmodule = "python:evil.py"', 400, "module"),
        ('name = "x"\ndescription = "' + "y" * 1_100_000 + '"', 413, "1 MiB"),
    ],
)
async def test_a_bad_manifest_is_named_and_leaves_nothing(
    daemon: RunningDaemon, manifest: str, status: int, words: str
) -> None:
    answer = await daemon.http.post("/api/agents", json={"manifest_toml": manifest})
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]
    assert (await daemon.http.get("/api/agents")).json() == []
    assert (await daemon.http.get("/api/sessions")).json() == {"sessions": []}


async def test_two_agents_cannot_share_a_name(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    answer = await daemon.http.post(
        "/api/agents", json={"manifest_toml": 'name = "ada"'}
    )
    assert answer.status_code == 409
    assert "ada" in answer.json()["error"]
    assert len((await daemon.http.get("/api/sessions")).json()["sessions"]) == 1


async def test_what_has_no_effect_is_told_at_creation(daemon: RunningDaemon) -> None:
    manifest = 'name = "x"\nspeling = 1\n[capabilities]\ntools = ["fly"]\n'
    answer = await daemon.http.post("/api/agents", json={"manifest_toml": manifest})
    warnings = " ".join(answer.json()["warnings"])
    assert "speling" in warnings
    assert "'fly'" in warnings


async def test_a_missing_key_names_its_variable(daemon: RunningDaemon) -> None:
    manifest = 'name = "x"\n[model]\nprovider = "openai"\n'
    answer = await daemon.http.post("/api/agents", json={"manifest_toml": manifest})
    assert answer.status_code == 201
    assert "OPENAI_API_KEY" in " ".join(answer.json()["warnings"])
    agent_id = answer.json()["agent_id"]
    failed = await daemon.http.post(
        f"/api/agents/{agent_id}/message", json={"message": "hi"}
    )
    assert failed.status_code == 500
    assert failed.json()["code"] == "auth"
    assert "OPENAI_API_KEY" in failed.json()["error"]


async def test_an_update_changes_what_is_given_and_survives(daemons: Daemons) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent(extra='description = "old"\ntags = ["t"]\n')
    answer = await daemon.http.put(
        f"/api/agents/{agent.id}/update",
        json={"system_prompt": "Be terse.", "tags": ["u"], "ignored": 1},
    )
    assert answer.json() == {"status": "updated", "agent_id": agent.id}
    await agent.ask("hi")
    assert daemon.model.requests[0].system.startswith("Be terse.")
    await daemon.daemon.stop()
    again = await daemons.start(home=daemon.daemon.home)
    detail = (await again.http.get(f"/api/agents/{agent.id}")).json()
    assert (detail["description"], detail["tags"]) == ("old", ["u"])
    assert detail["system_prompt"] == "Be terse."


async def test_stable_pins_the_model(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    answer = await daemon.http.put(
        f"/api/agents/{agent.id}/mode", json={"mode": "Stable"}
    )
    assert answer.json() == {
        "status": "updated",
        "mode": "Stable",
        "agent_id": agent.id,
    }
    pinned = daemon.daemon.agents.get(agent.id).pinned_model
    assert pinned == ("scripted", "scripted-model")
    wrong = await daemon.http.put(
        f"/api/agents/{agent.id}/mode", json={"mode": "stable"}
    )
    assert wrong.status_code == 400
    assert "mode" in wrong.json()["error"]


async def test_a_model_is_changed_and_shown(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    answer = await daemon.http.put(
        f"/api/agents/{agent.id}/model", json={"model": "other"}
    )
    assert answer.json()["status"] == "updated"
    assert answer.json()["model"] == "other"
    await agent.ask("hi")
    assert daemon.model.requests[-1].model == "other"
    empty = await daemon.http.put(f"/api/agents/{agent.id}/model", json={"model": ""})
    assert empty.status_code == 400


async def test_a_deleted_agent_is_gone_with_all_it_had(daemons: Daemons) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    daemon.model.calls("file_write", path="a.txt", content="x")
    await agent.ask("write")
    await daemon.http.put(f"/api/memory/agents/{agent.id}/kv/k", json={"value": 1})
    answer = await daemon.http.delete(f"/api/agents/{agent.id}")
    assert answer.json() == {"status": "killed", "agent_id": agent.id}
    assert (await daemon.http.get("/api/agents")).json() == []
    assert (await daemon.http.get("/api/sessions")).json() == {"sessions": []}
    assert not list(daemon.daemon.data_dir.rglob("a.txt"))
    await daemon.daemon.stop()
    again = await daemons.start(home=daemon.daemon.home)
    assert (await again.http.get("/api/agents")).json() == []


async def test_a_suspended_agent_takes_no_message_until_resumed_also_after_a_start(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    daemon = await daemons.start(home=home)
    agent = await daemon.agent("ada")
    path = f"/api/agents/{agent.id}"
    daemon.model.says("one", Pause(), "two")
    turn = agent.start("count")
    await turn.seen("one")
    answer = await daemon.http.post(f"{path}/suspend")
    assert answer.json()["state"] == "Suspended"
    with pytest.raises(Cancelled, match="suspended"):
        await turn.result()
    assert (await agent.send("hello")).status_code == 409
    await daemon.daemon.stop()
    daemon = await daemons.start(home=home)
    assert (await daemon.known_agent("ada").send("hello")).status_code == 409
    assert (await daemon.http.get(path)).json()["state"] == "Suspended"
    assert (await daemon.http.post(f"{path}/resume")).json()["state"] == "Running"
    daemon.model.says("back")
    assert await daemon.known_agent("ada").ask("hello") == "back"
    nobody = await daemon.http.post(f"/api/agents/{UNKNOWN}/suspend")
    assert nobody.status_code == 404
