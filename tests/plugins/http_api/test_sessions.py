"""Sessions over REST, the WebSocket and chat commands."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from agenthost import Call, Denied, Grants, Principal, PrincipalKind, ProviderFault
from agenthost.testing import Daemons, Pause, RunningAgent, RunningDaemon
from agenthost_http_api.session_shapes import ForkSession
from agenthost_http_api.sessions import fork_session

from tests.faults.waiting import soon

from .test_socket import chat


async def opened(agent: RunningAgent, **body: Any) -> dict[str, Any]:
    path = f"/api/agents/{agent.id}/sessions"
    answer = await agent.host.http.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def listed(daemon: RunningDaemon, **query: Any) -> list[dict[str, Any]]:
    answer = await daemon.http.get("/api/sessions", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["sessions"])


async def tell(agent: RunningAgent, text: str, session_id: str) -> httpx.Response:
    return await agent.host.http.post(
        f"/api/agents/{agent.id}/message",
        json={"message": text, "session_id": session_id},
    )


async def contents(daemon: RunningDaemon, session_id: str) -> list[str]:
    answer = await daemon.http.get(f"/api/sessions/{session_id}")
    assert answer.status_code == 200, answer.text
    return [message["content"] for message in answer.json()["messages"]]


async def test_a_list_keeps_its_fields_and_has_more(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("What is new?")
    (row,) = await listed(daemon)
    own = daemon.daemon.agents.get(agent.id).session_id
    assert row.pop("created_at").endswith("Z")
    assert row.pop("updated_at").endswith("Z")
    assert row == {
        "id": own,
        "agent_id": agent.id,
        "agent_name": "tester",
        "message_count": 2,
        "title": "What is new?",
        "archived": False,
        "current": True,
    }


async def test_one_may_speak_beside_the_agents_own_session(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    await agent.ask("own")
    beside = await opened(agent, key="channel:telegram:1")
    assert (await opened(agent, key="channel:telegram:1"))["id"] == beside["id"]
    answer = await tell(agent, "beside", beside["id"])
    assert answer.json()["response"] == "You said: beside"
    assert [m.text for m in daemon.model.requests[-1].messages] == ["beside"]
    assert await contents(daemon, beside["id"]) == ["beside", "You said: beside"]
    assert (await agent.session())["messages"][0]["content"] == "own"


async def test_a_key_asks_once_in_a_named_session_also_when_it_rests(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    beside = await opened(agent)
    path, headers = f"/api/agents/{agent.id}/message", {"Idempotency-Key": "k"}
    body = {"message": "once", "session_id": beside["id"]}
    first = await daemon.http.post(path, json=body, headers=headers)
    await daemon.http.patch(f"/api/sessions/{beside['id']}", json={"archived": True})
    again = await daemon.http.post(path, json=body, headers=headers)
    assert (again.status_code, again.json()) == (200, first.json())
    other = await daemon.http.post(path, json={"message": "once"}, headers=headers)
    assert other.status_code == 422
    assert len(daemon.model.requests) == 1


@pytest.mark.parametrize("way", ["message", "message/stream"])
async def test_a_session_of_another_agent_is_404(
    daemon: RunningDaemon, way: str
) -> None:
    a, b = await daemon.agent("a"), await daemon.agent("b")
    await b.ask("my secret is 42")
    theirs = daemon.daemon.agents.get(b.id).session_id
    body = {"message": "what is it?", "session_id": theirs}
    answer = await daemon.http.post(f"/api/agents/{a.id}/{way}", json=body)
    assert answer.status_code == 404
    assert answer.json()["error"] == f"session not found: {theirs}"
    body["session_id"] = str(uuid4())
    answer = await daemon.http.post(f"/api/agents/{a.id}/{way}", json=body)
    assert answer.status_code == 404
    body["session_id"] = "no id"
    answer = await daemon.http.post(f"/api/agents/{a.id}/{way}", json=body)
    assert answer.status_code == 400
    assert "session_id" in answer.json()["error"]
    assert len(daemon.model.requests) == 1


async def test_a_session_of_another_agent_is_not_there_on_the_socket(
    daemon: RunningDaemon,
) -> None:
    a, b = await daemon.agent("a"), await daemon.agent("b")
    theirs = daemon.daemon.agents.get(b.id).session_id
    beside = await opened(a)
    async with chat(a) as client:
        frame = {"type": "message", "content": "hello", "session_id": theirs}
        await client.send(frame)
        assert (await client.until("error"))[-1]["code"] == "not_found"
        for wrong in ("no id", 7, ["x"]):
            await client.send({**frame, "session_id": wrong})
            error = (await client.until("error"))[-1]
            assert error["content"].startswith("session_id: ")
        await client.send({**frame, "session_id": beside["id"]})
        assert (await client.until("response"))[-1]["content"] == "You said: hello"
    assert (await b.session())["messages"] == []
    assert await contents(daemon, beside["id"]) == ["hello", "You said: hello"]


async def test_new_keeps_what_was_said_and_a_search_finds_it(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    await agent.ask("the quick brown fox")
    async with chat(agent) as client:
        await client.say("/new")
        (answer,) = await client.until("response")
        assert "archive" in answer["content"]
        await client.say("/new")
        await client.until("response")
    assert (await agent.session())["messages"] == []
    (old,) = await listed(daemon, archived=True)
    assert await contents(daemon, old["id"]) == [
        "the quick brown fox",
        "You said: the quick brown fox",
    ]
    assert [row["id"] for row in await listed(daemon, q="Quick FOX")] == [old["id"]]
    # What was empty was not kept.
    assert len(await listed(daemon)) == 2


async def test_a_reset_clears(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("the quick brown fox")
    assert len(await listed(daemon, q="fox")) == 1
    await daemon.http.post(f"/api/agents/{agent.id}/session/reset")
    assert await listed(daemon, q="fox") == []
    assert [row["message_count"] for row in await listed(daemon)] == [0]


async def test_an_archived_session_refuses_and_goes_on_when_it_is_activated(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    await agent.ask("first")
    async with chat(agent) as client:
        await client.say("/new")
        await client.until("response")
    (old,) = await listed(daemon, archived=True)
    answer = await tell(agent, "more", old["id"])
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "activate" in answer.json()["error"]
    await agent.ask("second")
    path = f"/api/sessions/{old['id']}/activate"
    for _ in range(2):
        answer = await daemon.http.post(path)
        assert answer.status_code == 200, answer.text
        assert answer.json() == {
            "status": "activated",
            "agent_id": agent.id,
            "session_id": old["id"],
        }
    await agent.ask("third")
    heard = [m.text for m in daemon.model.requests[-1].messages]
    assert heard == ["first", "You said: first", "third"]
    rows = {row["title"]: row for row in await listed(daemon)}
    assert (rows["first"]["current"], rows["first"]["archived"]) == (True, False)
    assert (rows["second"]["current"], rows["second"]["archived"]) == (False, True)


async def test_what_runs_is_stopped_when_another_session_is_activated(
    daemon: RunningDaemon,
) -> None:
    agent, pause = await daemon.agent(), Pause()
    daemon.model.says("half", pause)
    beside = await opened(agent)
    running = asyncio.create_task(agent.send("runs"))
    await pause.reached.wait()
    waiting = asyncio.create_task(agent.send("waits"))
    await soon(lambda: daemon.daemon.turns.running == 2, "no message waits")
    answer = await daemon.http.post(f"/api/sessions/{beside['id']}/activate")
    assert answer.status_code == 200
    for each in await asyncio.gather(running, waiting):
        assert (each.status_code, each.json()["code"]) == (409, "cancelled")
    assert (await agent.session())["session_id"] == beside["id"]
    (old,) = await listed(daemon, archived=True)
    assert (await contents(daemon, old["id"]))[0] == "runs"


async def test_many_changes_of_the_session_at_once_lose_no_agent(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    await agent.ask("first")
    others = [await opened(agent) for _ in range(4)]
    for other in others:
        await tell(agent, "not empty", other["id"])
    paths = [f"/api/sessions/{each['id']}/activate" for each in others]
    paths += [f"/api/sessions/{(await agent.session())['session_id']}/activate"]
    answers = await asyncio.gather(*(daemon.http.post(path) for path in paths * 3))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert len(await listed(daemon)) == 5
    now = (await agent.session())["session_id"]
    current = [row["id"] for row in await listed(daemon) if row["current"]]
    assert current == [now]
    await agent.ask("still there")


async def test_an_ephemeral_session_is_not_activated(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    made = await opened(agent, ephemeral=True)
    assert [row["current"] for row in await listed(daemon)] == [True]
    answer = await daemon.http.post(f"/api/sessions/{made['id']}/activate")
    assert answer.status_code == 404
    await agent.ask("still there")


async def test_a_session_is_renamed_and_put_away(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    beside = await opened(agent)
    path = f"/api/sessions/{beside['id']}"
    answer = await daemon.http.patch(path, json={"title": " My  plans ", "archived": 1})
    assert (answer.status_code, answer.json()["title"]) == (200, "My plans")
    assert answer.json()["archived"] is True
    answer = await daemon.http.patch(path, json={"archived": False})
    assert answer.json()["archived"] is False
    assert (await daemon.http.patch(path, json={"title": " "})).status_code == 400
    long = await daemon.http.patch(path, json={"title": "x" * 201})
    assert long.status_code == 400
    unknown = await daemon.http.patch(f"/api/sessions/{uuid4()}", json={"title": "x"})
    assert unknown.status_code == 404
    own = daemon.daemon.agents.get(agent.id).session_id
    answer = await daemon.http.patch(f"/api/sessions/{own}", json={"archived": True})
    assert answer.status_code == 409
    assert "activate another" in answer.json()["error"]


async def test_an_edited_message_begins_a_branch(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("one")
    await agent.ask("two")
    session = await agent.session()
    at = session["messages"][2]["id"]
    path = f"/api/sessions/{session['session_id']}/fork"
    answer = await daemon.http.post(path, json={"at_message": at, "message": "2"})
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["answer"]["response"] == "You said: 2"
    assert (made["parent_id"], made["at_message"]) == (session["session_id"], at)
    assert (made["current"], made["message_count"]) == (False, 4)
    heard = [m.text for m in daemon.model.requests[-1].messages]
    assert heard == ["one", "You said: one", "2"]
    assert (await agent.session())["messages"] == session["messages"]
    whole = await daemon.http.post(path, json={})
    assert len(await contents(daemon, whole.json()["id"])) == 4


async def test_a_fork_whose_turn_fails_is_there_and_named(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    await agent.ask("one")
    session_id = (await agent.session())["session_id"]
    daemon.model.fails(ProviderFault.BILLING, "half")
    path = f"/api/sessions/{session_id}/fork"
    answer = await daemon.http.post(path, json={"at_message": 0, "message": "uno"})
    assert answer.status_code == 500
    fork = answer.json()["session_id"]
    # Nobody has heard the half of an answer.
    assert await contents(daemon, fork) == ["uno"]
    bad = await daemon.http.post(path, json={"at_message": 0, "message": " "})
    assert bad.status_code == 400
    none = await daemon.http.post(path, json={"at_message": 99})
    assert none.status_code == 404
    assert len(await listed(daemon)) == 2


async def test_an_export_holds_everything_that_is_shown(daemon: RunningDaemon) -> None:
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("It is ``` 42.")
    agent = await daemon.agent()
    await agent.ask("6*7?")
    daemon.model.fails(ProviderFault.SERVER, "half")
    await agent.events("and?")
    session = await agent.session()
    path = f"/api/sessions/{session['session_id']}/export"
    answer = await daemon.http.get(path)
    assert answer.headers["content-type"] == "application/json"
    name = f'attachment; filename="session-{session["session_id"]}.json"'
    assert answer.headers["content-disposition"] == name
    written = json.loads(answer.content)
    assert written["messages"] == session["messages"]
    assert (written["title"], written["agent_name"]) == ("6*7?", "tester")
    answer = await daemon.http.get(path, params={"format": "markdown"})
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.text.startswith("# 6*7?\n")
    for words in ("## User", "## Assistant", "calculate", "42.", "> ", "tokens, "):
        assert words in answer.text
    assert (await daemon.http.get(path, params={"format": "pdf"})).status_code == 400


async def test_an_export_has_what_was_summarised_in_full(
    daemons: Daemons,
) -> None:
    config = "[compaction]\nthreshold_messages = 4\nkeep_recent = 2\n"
    daemon = await daemons.start(config=config)
    agent = await daemon.agent()
    for text in ("one", "two", "three"):
        await agent.ask(text)
    answer = await daemon.http.post(f"/api/agents/{agent.id}/session/compact")
    assert answer.json()["status"] == "compacted", answer.text
    session_id = (await agent.session())["session_id"]
    exported = await daemon.http.get(f"/api/sessions/{session_id}/export")
    said = [message["content"] for message in exported.json()["messages"]]
    assert said[0] == "one"
    assert len(said) == 6


async def test_a_session_is_deleted_with_what_runs_in_it(
    daemon: RunningDaemon,
) -> None:
    agent, pause = await daemon.agent(), Pause()
    daemon.model.says("half", pause)
    beside = await opened(agent)
    running = asyncio.create_task(tell(agent, "runs", beside["id"]))
    await pause.reached.wait()
    answer = await daemon.http.delete(f"/api/sessions/{beside['id']}")
    assert answer.json() == {"status": "deleted", "session_id": beside["id"]}
    assert (await running).status_code == 409
    gone = await daemon.http.get(f"/api/sessions/{beside['id']}")
    assert gone.status_code == 404
    assert [row["current"] for row in await listed(daemon)] == [True]


async def test_sessions_go_with_their_agent(daemon: RunningDaemon) -> None:
    agent, other = await daemon.agent("a"), await daemon.agent("b")
    beside = await opened(agent, key="k")
    await tell(agent, "hello", beside["id"])
    await daemon.http.delete(f"/api/agents/{agent.id}")
    assert {row["agent_id"] for row in await listed(daemon)} == {other.id}
    gone = await daemon.http.get(f"/api/sessions/{beside['id']}")
    assert gone.status_code == 404


async def test_a_list_is_paged_and_filtered(daemon: RunningDaemon) -> None:
    a, b = await daemon.agent("a"), await daemon.agent("b")
    made = [(await opened(a, key=f"k{number}"))["id"] for number in range(3)]
    mine = await listed(daemon, agent=a.id)
    assert [row["id"] for row in mine][1:] == made
    page = await listed(daemon, agent=a.id, limit=2)
    rest = await listed(daemon, agent=a.id, limit=2, after=page[-1]["id"])
    assert page + rest == mine
    assert [row["id"] for row in await listed(daemon, order="newest", limit=1)] == [
        made[-1]
    ]
    assert len(await listed(daemon, agent=b.id)) == 1
    for query in ("limit=0", "limit=1001", "agent=x", "q=" + "x" * 201, "order=up"):
        answer = await daemon.http.get(f"/api/sessions?{query}")
        assert answer.status_code == 400, query


async def test_the_right_to_sessions_alone_starts_no_turn(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    grants = Grants({"route": ("sessions:*",)})
    guest = Principal(PrincipalKind.API_KEY, "guest", grants)
    call = Call(daemon.daemon, guest, "127.0.0.1", "id", {}, {})
    own = UUID(daemon.daemon.agents.get(agent.id).session_id)
    with pytest.raises(Denied, match="agents:message"):
        await fork_session(call, own, ForkSession(message="hello"))
    assert await fork_session(call, own, ForkSession())
    assert daemon.model.requests == []


async def test_the_document_has_them_all(daemon: RunningDaemon) -> None:
    document = (await daemon.http.get("/openapi.json")).json()
    for path, method in (
        ("/api/agents/{agent_id}/sessions", "post"),
        ("/api/sessions/{session_id}", "get"),
        ("/api/sessions/{session_id}", "patch"),
        ("/api/sessions/{session_id}/activate", "post"),
        ("/api/sessions/{session_id}/fork", "post"),
        ("/api/sessions/{session_id}/export", "get"),
    ):
        assert method in document["paths"][path]
