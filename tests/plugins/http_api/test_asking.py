"""What a message asks of its answer, in a body and in a frame."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost.testing.daemons import RunningDaemon

from .test_socket import chat

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
GOOD = '{"city": "Évora"}'
ASKED: dict[str, Any] = {
    "response_format": FORM,
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "stop": ["END"],
    "top_p": 0.5,
    "seed": 7,
}
WRONG: list[tuple[str, Any]] = [
    ("response_format", "json"),
    ("response_format", {"type": "nothing"}),
    ("tool_choice", ""),
    ("tool_choice", "x" * 65),
    ("tool_choice", {"name": "calculate"}),
    ("parallel_tool_calls", "perhaps"),
    ("stop", "END"),
    ("stop", ["a"] * 5),
    ("stop", ["a", ""]),
    ("stop", ["x" * 101]),
    ("top_p", 1.5),
    ("top_p", "much"),
    ("seed", -1),
    ("seed", 2**31),
]


def heard(daemon: RunningDaemon) -> dict[str, Any]:
    """What the model was asked last."""
    request = daemon.model.requests[-1]
    return {**{name: getattr(request, name) for name in ASKED}, "stop": [*request.stop]}


async def test_a_message_asks_in_its_body(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    for path in ("message", "message/stream"):
        daemon.model.says(GOOD)
        url = f"/api/agents/{agent.id}/{path}"
        answer = await daemon.http.post(url, json={"message": "where?", **ASKED})
        assert answer.status_code == 200
        assert heard(daemon) == ASKED


async def test_a_frame_asks_as_a_body_does(daemon: RunningDaemon) -> None:
    daemon.model.says(GOOD)
    async with chat(await daemon.agent()) as client:
        await client.send({"type": "message", "content": "where?", **ASKED})
        *_, last = await client.until("response")
    assert last["content"] == GOOD
    assert heard(daemon) == ASKED


async def test_a_fork_with_a_message_asks_as_well(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("hello")
    session = (await agent.session())["session_id"]
    daemon.model.says(GOOD)
    body = {"message": "where?", **ASKED}
    answer = await daemon.http.post(f"/api/sessions/{session}/fork", json=body)
    assert answer.status_code == 201
    assert heard(daemon) == ASKED


async def test_what_is_asked_wrongly_is_refused_by_its_name(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    url = f"/api/agents/{agent.id}/message"
    async with chat(agent) as client:
        for name, value in WRONG:
            asked = {"message": "where?", name: value}
            answer = await daemon.http.post(url, json=asked)
            assert (answer.status_code, name) == (400, name)
            assert answer.json()["error"].startswith(name), (name, value)
            frame = {"type": "message", "content": "where?", name: value}
            await client.send(frame)
            *_, last = await client.until("error")
            assert last["content"].startswith(name), (name, value)
            assert last["code"] == "invalid_input"
    assert daemon.model.requests == []


@pytest.mark.parametrize(
    "raw",
    [
        '{"enum": [NaN]}',
        '{"description": "\\ud800"}',
        '{"not": ' * 5_000 + "{}" + "}" * 5_000,
        '{"title": "' + "x" * 300_000 + '"}',
    ],
    ids=["nan", "surrogate", "depths", "length"],
)
async def test_a_hostile_form_is_refused_and_harms_nobody(
    daemon: RunningDaemon, raw: str
) -> None:
    agent = await daemon.agent()
    url, kind = f"/api/agents/{agent.id}/message", {"content-type": "application/json"}
    body = f'{{"message": "hi", "response_format": {raw}}}'
    answer = await daemon.http.post(url, content=body, headers=kind)
    assert answer.status_code == 400
    async with chat(agent) as client:
        text = '{"type": "message", "content": "hi", "response_format": %s}'
        await client.send_text(text % raw)
        frames = await client.until("error" if "not" not in raw else "response")
        assert frames
    assert await agent.ask("well?") == "You said: well?"


async def test_one_key_is_one_question_asked_one_way(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    daemon.model.says(GOOD)
    url = f"/api/agents/{agent.id}/message"
    headers = {"Idempotency-Key": "k"}
    codes = []
    for seed in (7, 7, 8):
        body = {"message": "where?", "seed": seed, "response_format": FORM}
        answer = await daemon.http.post(url, json=body, headers=headers)
        codes.append(answer.status_code)
    assert codes == [200, 200, 422]
    assert len(daemon.model.requests) == 1
