"""Messages that name files: what the model gets, what stays, what is refused."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest
from agenthost import UNTRUSTED, File, Image, ProviderFault, Text, Upload
from agenthost.testing import Daemons, ScriptedModel
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from agenthost_models import handed

from .pictures import EYES, PDF, PNG, file_id, seer
from .test_socket import chat

NOTES = "naïve notes".encode()


@dataclass(frozen=True)
class Seen:
    """An agent whose model sees, and what it was asked."""

    agent: RunningAgent
    model: ScriptedModel

    async def send(self, words: str, *files: str, **headers: str) -> httpx.Response:
        agent = self.agent
        body = {"message": words, "files": files}
        path = f"/api/agents/{agent.id}/message"
        return await agent.host.http.post(path, json=body, headers=headers)

    async def shown(self) -> list[dict[str, Any]]:
        return list((await self.agent.session())["messages"])

    @property
    def asked(self) -> tuple[Any, ...]:
        """The parts of the last message of the user that the model got."""
        return self.model.requests[-1].messages[-1].parts


@pytest.fixture
async def seen(daemons: Daemons) -> Seen:
    model = ScriptedModel()
    running = await daemons.start(plugins=[seer(model)])
    return Seen(await running.agent(extra=EYES), model)


async def test_each_kind_reaches_the_model_in_its_form(seen: Seen) -> None:
    ids = [
        await file_id(seen.agent, PNG, "a.png"),
        await file_id(seen.agent, PDF, "b.pdf"),
        await file_id(seen.agent, b"\xef\xbb\xbf" + NOTES, "c.txt"),
    ]
    answer = await seen.send("look", *ids)
    assert answer.status_code == 200, answer.text
    words, image, document, text = seen.asked
    assert words == Text("look")
    assert image == Image("image/png", base64.b64encode(PNG).decode())
    data = base64.b64encode(PDF).decode()
    assert document == File("b.pdf", "application/pdf", data)
    assert NOTES.decode() in text.text
    assert "c.txt" in text.text
    assert "\ufeff" not in text.text


async def test_the_history_names_files_and_keeps_no_bytes(seen: Seen) -> None:
    made = await file_id(seen.agent, PNG)
    await seen.send("look", made)
    asked, _ = await seen.shown()
    assert asked["files"] == [{"file_id": made, "name": "a.png", "type": "image/png"}]
    assert asked["content"] == "look"
    sessions = seen.agent.host.daemon.sessions
    session = await sessions.of_agent(seen.agent.id)
    (entry, _) = await sessions.entries(session)
    assert entry.message.parts == (
        Text("look"),
        File("a.png", "image/png", uri=f"upload:{made}"),
    )


async def test_a_file_is_sent_again_with_each_later_message(seen: Seen) -> None:
    await seen.send("look", await file_id(seen.agent, PNG))
    await seen.send("and now?")
    first, *_ = seen.model.requests[-1].messages
    assert isinstance(first.parts[1], Image)


async def test_files_alone_are_a_message(seen: Seen) -> None:
    answer = await seen.send("", await file_id(seen.agent, PNG))
    assert answer.status_code == 200, answer.text
    assert [type(part) for part in seen.asked] == [Image]
    refused = await seen.send("")
    assert refused.status_code == 400


async def test_a_file_named_twice_is_sent_once(seen: Seen) -> None:
    made = await file_id(seen.agent, PNG)
    await seen.send("look", made, made)
    assert [type(part) for part in seen.asked] == [Text, Image]


async def test_the_stream_and_the_socket_take_files_too(seen: Seen) -> None:
    made = await file_id(seen.agent, PNG)
    path = f"/api/agents/{seen.agent.id}/message/stream"
    body = {"message": "look", "files": [made]}
    streamed = await seen.agent.host.http.post(path, json=body)
    assert "event: done" in streamed.text
    assert isinstance(seen.asked[1], Image)
    async with chat(seen.agent) as client, chat(seen.agent) as other:
        await other.send({"type": "follow"})
        await other.send({"type": "ping"})
        await other.until("pong")
        await client.send({"type": "message", "content": "look", "files": [made]})
        await client.until("response")
        (*_, told) = await other.until("turn_started")
    assert isinstance(seen.asked[1], Image)
    assert [each["file_id"] for each in told["files"]] == [made]


async def test_a_bad_list_of_files_is_refused_by_name(seen: Seen) -> None:
    path = f"/api/agents/{seen.agent.id}/message"
    lists: list[Any] = ["x", ["x"], [5], {}, [str(uuid4())] * 11]
    async with chat(seen.agent) as client:
        for files in lists:
            body = {"message": "look", "files": files}
            answer = await seen.agent.host.http.post(path, json=body)
            assert answer.status_code == 400
            assert answer.json()["error"].startswith("files")
            frame = {"type": "message", "content": "look", "files": files}
            await client.send(frame)
            frames = await client.until("error")
            assert frames[-1]["content"].startswith("files")
    assert seen.model.requests == []


async def test_a_file_that_is_not_there_is_not_found(seen: Seen) -> None:
    other = await seen.agent.host.agent("other")
    for made in (str(uuid4()), await file_id(other, PNG)):
        answer = await seen.send("look", made)
        assert answer.status_code == 404
        assert made in answer.json()["error"]
    assert await seen.shown() == []


async def test_what_the_model_cannot_take_is_refused_before_a_turn(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    blind = Seen(agent, daemon.model)
    for data, name, word in (
        (PNG, "a.png", "supports_vision"),
        (PDF, "b.pdf", "supports_documents"),
    ):
        answer = await blind.send("look", await file_id(agent, data, name))
        assert answer.status_code == 400
        for part in ("scripted-model", name, word):
            assert part in answer.json()["error"]
    huge = await file_id(agent, b"x" * 600_000, "huge.txt")
    answer = await blind.send("look", huge)
    assert answer.status_code == 413
    assert "huge.txt" in answer.json()["error"]
    assert await blind.shown() == []
    assert daemon.model.requests == []
    answer = await blind.send("look", await file_id(agent, NOTES, "c.txt"))
    assert answer.status_code == 200
    assert NOTES.decode() in blind.asked[1].text


async def test_a_deleted_file_leaves_a_note_and_no_failed_turn(seen: Seen) -> None:
    made = await file_id(seen.agent, PNG, "gone.png")
    await seen.send("look", made)
    path = f"/api/agents/{seen.agent.id}/files/{made}"
    await seen.agent.host.http.delete(path)
    answer = await seen.send("and now?")
    assert answer.status_code == 200
    first, *_ = seen.model.requests[-1].messages
    assert "gone.png: it has been deleted" in first.text
    assert (await seen.shown())[0]["files"][0]["name"] == "gone.png"


async def test_another_model_gets_what_it_takes(seen: Seen) -> None:
    await seen.send("look", await file_id(seen.agent, PNG))
    host = seen.agent.host
    path = f"/api/agents/{seen.agent.id}/model"
    await host.http.put(path, json={"model": "scripted/scripted-model"})
    assert await seen.agent.ask("and now?")
    first, *_ = host.model.requests[-1].messages
    assert "scripted-model takes no image/png" in first.text


async def test_older_files_make_room_for_newer_ones(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handed, "ROOM", 2 * len(PNG) + 1)
    for word in ("one", "two", "three"):
        await seen.send(word, await file_id(seen.agent, PNG))
    asked = [m for m in seen.model.requests[-1].messages if len(m.parts) > 1]
    first, *others = asked
    assert "no room" in first.text
    assert [(m.text, type(m.parts[1])) for m in others] == [
        ("two", Image),
        ("three", Image),
    ]


async def test_the_key_of_a_request_is_bound_to_its_files(seen: Seen) -> None:
    one, two = [await file_id(seen.agent, PNG) for _ in range(2)]
    key = {"Idempotency-Key": "k"}
    first = await seen.send("look", one, **key)
    again = await seen.send("look", one, **key)
    assert again.json() == first.json()
    assert len(seen.model.requests) == 1
    for others in ((two,), (one, two), ()):
        assert (await seen.send("look", *others, **key)).status_code == 422


async def test_a_repeated_request_outlives_its_file(seen: Seen) -> None:
    made = await file_id(seen.agent, PNG)
    key = {"Idempotency-Key": "k"}
    first = await seen.send("look", made, **key)
    path = f"/api/agents/{seen.agent.id}/files/{made}"
    await seen.agent.host.http.delete(path)
    again = await seen.send("look", made, **key)
    assert (again.status_code, again.json()) == (200, first.json())


async def test_a_turn_that_goes_on_or_is_forked_keeps_its_files(seen: Seen) -> None:
    made = await file_id(seen.agent, PNG)
    seen.model.fails(ProviderFault.BAD_REQUEST)
    assert (await seen.send("look", made)).status_code >= 400
    (asked,) = await seen.shown()
    http = seen.agent.host.http
    path = f"/api/agents/{seen.agent.id}/turns/{asked['turn_id']}/resume"
    assert (await http.post(path)).status_code == 200
    assert isinstance(seen.asked[1], Image)
    session = (await seen.agent.session())["session_id"]
    await http.post(f"/api/sessions/{session}/fork", json={"message": "again"})
    first, *_ = seen.model.requests[-1].messages
    assert isinstance(first.parts[1], Image)
    body = {"at_message": 0, "message": "otherwise", "files": [made]}
    edited = await http.post(f"/api/sessions/{session}/fork", json=body)
    assert edited.status_code == 201, edited.text
    assert isinstance(seen.asked[1], Image)


async def test_somebody_elses_file_cannot_be_named(daemons: Daemons) -> None:
    running = await daemons.start(config='api_key = "master-key-0123456789"\n')
    running.http.headers["authorization"] = "Bearer master-key-0123456789"
    agent = await running.agent()
    made = await file_id(agent, NOTES, "secret.txt")
    body = {"name": "bob", "scopes": ["chat"]}
    key = (await running.http.post("/api/keys", json=body)).json()["key"]
    path = f"/api/agents/{agent.id}/message"
    asked = {"message": "tell me", "files": [made]}
    headers = {"authorization": f"Bearer {key}"}
    answer = await running.http.post(path, json=asked, headers=headers)
    assert answer.status_code == 404
    assert "secret.txt" not in answer.text


async def test_a_tool_loop_and_messages_at_once_read_the_same_file(
    seen: Seen,
) -> None:
    made = await file_id(seen.agent, PNG)
    seen.model.calls("calculate", expression="1+1")
    answers = await asyncio.gather(*(seen.send("look", made) for _ in range(4)))
    assert [each.status_code for each in answers] == [200] * 4
    for request in seen.model.requests:
        asked = [m for m in request.messages if m.text == "look"]
        assert all(isinstance(m.parts[1], Image) for m in asked)


async def test_the_quote_counts_the_files_of_the_history(seen: Seen) -> None:
    path = f"/api/agents/{seen.agent.id}/quote"

    async def quoted() -> int:
        answer = await seen.agent.host.http.post(path, json={"message": "x"})
        return int(answer.json()["next_call"]["input_tokens"])

    before = await quoted()
    await seen.send("look", await file_id(seen.agent, PNG))
    assert await quoted() > before + 10_000


async def test_a_message_carries_the_labels_of_its_files(seen: Seen) -> None:
    daemon = seen.agent.host.daemon
    made, agent_id = str(uuid4()), seen.agent.id
    upload = Upload(
        made, agent_id, "a.txt", "text/plain", 1, 0.0, "channel:x", labels=UNTRUSTED
    )
    await daemon.uploads.add(upload, b"x", (10, 10))
    await seen.send("look", made)
    session = await daemon.sessions.of_agent(agent_id)
    (asked, answered) = await daemon.sessions.entries(session)
    assert asked.labels == answered.labels == UNTRUSTED
