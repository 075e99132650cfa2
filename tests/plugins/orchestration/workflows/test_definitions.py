"""Workflows are made, read, replaced and deleted over REST."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agenthost import OPERATOR, Conflict, Context, NotFound, as_json
from agenthost.testing import Daemons, ManualClock, Recorded, RunningDaemon
from agenthost_orchestration.orchestration import orchestration_of
from agenthost_orchestration.workflows.events import (
    WorkflowChanged,
    WorkflowCreated,
    WorkflowDeleted,
    WorkflowEvent,
)
from agenthost_orchestration.workflows.reading import read_workflow
from agenthost_orchestration.workflows.workflows import Workflows

STEP = {"agent_name": "ada"}


async def made(daemon: RunningDaemon, **body: Any) -> str:
    answer = await daemon.http.post("/api/workflows", json={"steps": [STEP], **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["workflow_id"])


async def shown(daemon: RunningDaemon, id_: str) -> dict[str, Any]:
    answer = await daemon.http.get(f"/api/workflows/{id_}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def workflows_of(daemon: RunningDaemon) -> Workflows:
    return orchestration_of(daemon.daemon).workflows


async def test_what_was_made_is_shown_whole_and_listed_with_a_count(
    daemons: Daemons,
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    collect = {"mode": "collect", "prompt": "", "output_var": "all"}
    id_ = await made(
        daemon,
        name="review",
        description="Two eyes",
        max_cost_usd=0.25,
        steps=[{**STEP, "mode": "fan_out"}, collect],
    )
    found = await shown(daemon, id_)
    assert found["steps"][0]["agent_name"] == "ada"
    assert found["steps"][1] == {
        "name": "step",
        "agent_id": None,
        "agent_name": None,
        "prompt": "",
        "mode": "collect",
        "timeout_secs": 120,
        "error_mode": "fail",
        "max_retries": 3,
        "output_var": "all",
        "condition": None,
        "max_iterations": 5,
        "until": None,
        "shared_session": False,
    }
    await clock.advance(1)
    other = await made(daemon, name="review")
    listed = (await daemon.http.get("/api/workflows")).json()
    assert [row["id"] for row in listed] == [id_, other]
    assert listed[0] == {**found, "steps": 2}
    assert listed[0]["created_at"] == "2026-01-01T00:00:00.000Z"
    assert listed[0]["max_cost_usd"] == 0.25
    assert (listed[0]["owner"], listed[0]["file"]) == ("loopback:loopback", None)


async def test_a_workflow_is_there_after_a_restart(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon = await daemons.start(home=tmp_path / "home")
    id_ = await made(daemon, name="kept", max_cost_usd=0.1)
    before = await shown(daemon, id_)
    await daemon.daemon.stop()
    again = await daemons.start(home=tmp_path / "home")
    assert await shown(again, id_) == before


async def test_what_is_wrong_is_400_with_step_and_field(daemon: RunningDaemon) -> None:
    body = {"steps": [STEP, {**STEP, "mode": "lop", "timeout_secs": 0}]}
    answer = await daemon.http.post("/api/workflows", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"] == (
        "steps[1].mode: must be one of sequential, fan_out, collect, conditional, loop"
        "; did you mean 'loop'? (and 1 more)"
    )
    id_ = await made(daemon)
    before = await shown(daemon, id_)
    answer = await daemon.http.put(f"/api/workflows/{id_}", json=body)
    assert (answer.status_code, await shown(daemon, id_)) == (400, before)
    answer = await daemon.http.post("/api/workflows", json={})
    assert answer.json()["error"] == "steps: is missing; add it"
    key = {"steps": [], "k" * 100_000: 1, "name": ""}
    answer = await daemon.http.post("/api/workflows", json=key)
    assert answer.json()["error"].startswith("name: must be 1 to 100")


async def test_doubts_and_absent_agents_are_warnings(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    id_ = str(uuid4())
    steps = [{**STEP, "until": "x"}, {"agent_name": "bob"}, {"agent_id": id_}]
    body = {"steps": steps, "k" * 100_000: 1}
    answer = await daemon.http.post("/api/workflows", json=body)
    warnings = answer.json()["warnings"]
    assert warnings[0] == f"{'k' * 99}…: unknown key, ignored"
    assert warnings[1:] == [
        "steps[0].until: is ignored: it goes with mode loop",
        "steps[1].agent_name: there is no agent bob now",
        f"steps[2].agent_id: there is no agent {id_} now",
    ]


async def test_put_replaces_all_and_delete_removes(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    id_ = await made(daemon, name="old", description="gone", max_cost_usd=1)
    created = (await shown(daemon, id_))["created_at"]
    await clock.advance(60)
    path = f"/api/workflows/{id_}"
    answer = await daemon.http.put(path, json={"name": "new", "steps": []})
    assert answer.json() == {
        "status": "updated",
        "workflow_id": id_,
        "warnings": ["steps: is empty: a run gives back its input"],
    }
    now = await shown(daemon, id_)
    assert (now["name"], now["description"], now["steps"]) == ("new", "", [])
    assert (now["max_cost_usd"], now["created_at"]) == (None, created)
    assert now["updated_at"] > created
    answer = await daemon.http.delete(path)
    assert answer.json() == {"status": "removed", "workflow_id": id_}
    for method in ("GET", "DELETE"):
        assert (await daemon.http.request(method, path)).status_code == 404
    answer = await daemon.http.put(path, json={"steps": []})
    assert answer.status_code == 404
    assert (await daemon.http.get("/api/workflows")).json() == []


async def test_what_is_shown_can_be_put_back_without_a_warning(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    id_ = await made(daemon, max_cost_usd=0.000001)
    before = await shown(daemon, id_)
    answer = await daemon.http.put(f"/api/workflows/{id_}", json=before)
    assert answer.json()["warnings"] == []
    after = await shown(daemon, id_)
    assert {**after, "updated_at": ""} == {**before, "updated_at": ""}


async def test_a_workflow_is_found_by_id_in_any_form_or_by_name(
    daemon: RunningDaemon,
) -> None:
    workflows = workflows_of(daemon)
    first = await made(daemon, name="one")
    second = await made(daemon, name=first)
    assert (await workflows.find("one")).id == first
    assert (await workflows.find(first.upper())).id == first
    assert (await workflows.find(second)).name == first
    for nobody in ("On", "one ", "", "%", str(uuid4())):
        with pytest.raises(NotFound):
            await workflows.find(nobody)
    third = await made(daemon, name="one")
    with pytest.raises(Conflict, match=f"use an id: {first}, {third}"):
        await workflows.find("one")


async def test_each_change_is_told_and_recorded_in_its_commit(
    daemon: RunningDaemon,
) -> None:
    recorded = Recorded(daemon.daemon.events, WorkflowEvent)
    id_ = await made(daemon, name="told")
    await daemon.http.put(f"/api/workflows/{id_}", json={"name": "t", "steps": []})
    await daemon.http.delete(f"/api/workflows/{id_}")
    kinds = [WorkflowCreated, WorkflowChanged, WorkflowDeleted]
    assert [type(event) for event in recorded.told] == kinds
    assert recorded.kept == recorded.told
    told = [as_json(event) for event in recorded.told]
    assert {(each["subject"], each["by"]) for each in told} == {
        (id_, "loopback:loopback")
    }
    assert [each["data"] for each in told] == [
        {"name": "told", "steps": 1, "file": ""},
        {"name": "t", "steps": 0, "file": ""},
        {"name": "t", "steps": 0, "file": ""},
    ]


async def test_what_a_recorder_refuses_does_not_happen(daemon: RunningDaemon) -> None:
    id_ = await made(daemon)
    before, recorded = await shown(daemon, id_), Recorded(daemon.daemon.events)
    recorded.refuses = (WorkflowEvent,)
    path = f"/api/workflows/{id_}"
    for asked in (
        daemon.http.post("/api/workflows", json={"steps": []}),
        daemon.http.put(path, json={"steps": []}),
        daemon.http.delete(path),
    ):
        assert (await asked).status_code == 503
    listed = (await daemon.http.get("/api/workflows")).json()
    assert [row["id"] for row in listed] == [id_]
    assert await shown(daemon, id_) == before
    assert recorded.kept == recorded.told == []


async def test_nothing_is_told_of_what_was_not_written(daemon: RunningDaemon) -> None:
    workflows, id_ = workflows_of(daemon), await made(daemon)
    known = await workflows.get(id_)
    await daemon.http.delete(f"/api/workflows/{id_}")
    recorded = Recorded(daemon.daemon.events, WorkflowEvent)
    context, draft = Context(OPERATOR), read_workflow({"steps": []}).draft
    for late in (
        workflows.replace(context, known, draft),
        workflows.delete(context, known),
    ):
        with pytest.raises(NotFound):
            await late
    assert recorded.kept == recorded.told == []


async def test_of_many_deletes_at_once_one_succeeds(daemon: RunningDaemon) -> None:
    id_ = await made(daemon)
    path = f"/api/workflows/{id_}"
    answers = await asyncio.gather(*(daemon.http.delete(path) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200, *[404] * 7]


async def test_there_is_an_end_to_how_many_there_are(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost_orchestration.workflows.tables.MOST", 2)
    ids = [await made(daemon) for _ in range(2)]
    answer = await daemon.http.post("/api/workflows", json={"steps": []})
    assert answer.status_code == 409
    assert "delete one" in answer.json()["error"]
    await daemon.http.delete(f"/api/workflows/{ids[0]}")
    await made(daemon)


async def test_labels_of_who_makes_and_changes_it_stay(daemon: RunningDaemon) -> None:
    workflows, draft = workflows_of(daemon), read_workflow({"steps": []}).draft
    untrusted = Context(OPERATOR, labels=frozenset({"untrusted"}))
    first = await workflows.add(untrusted, draft)
    second = await workflows.add(Context(OPERATOR), draft)
    await workflows.replace(untrusted, second, draft)
    for each in (first, second):
        kept = await workflows.get(each.id)
        assert kept.labels == {"untrusted"}
    await workflows.replace(Context(OPERATOR), await workflows.get(first.id), draft)
    assert (await workflows.get(first.id)).labels == {"untrusted"}
