"""Servers that have a model asked: by the agent that calls them, and within bounds."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import (
    InvalidInput,
    ModelFacts,
    Payer,
    Target,
    ToolOutput,
    Unavailable,
)
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_mcp.client.sampling import request_of, sampled

from .servers import Fake, start, until
from .test_asking import MCP, waiting

HI = {"role": "user", "content": {"type": "text", "text": "What is the capital?"}}
ASKED: dict[str, Any] = {"messages": [HI], "maxTokens": 100}
DOT = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


async def dreaming(
    daemons: Daemons, folder: Path, agent: str = "", **more: Any
) -> tuple[RunningDaemon, Any, Fake]:
    fake = Fake(folder, "s", "dream", modern=True)
    daemon = await start(daemons, fake, **more)
    made = await daemon.agent(tools=["mcp_*"], extra=f"{MCP}\n{agent}")
    return daemon, made, fake


def outcome(daemon: RunningDaemon) -> ToolOutput:
    (output,) = daemon.model.requests[-1].messages[-1].parts
    assert isinstance(output, ToolOutput)
    return output


@pytest.mark.setting("mcp_servers[].sampling")
async def test_the_agents_model_answers_and_the_agent_pays(
    daemons: Daemons, tmp_path: Path
) -> None:
    secret = '[model]\nsystem_prompt = "canary of the agent"'
    daemon, agent, fake = await dreaming(daemons, tmp_path, secret, sampling=True)
    asked = {
        **ASKED,
        "systemPrompt": "Be brief.",
        "temperature": 0.5,
        "stopSequences": ["\n"],
        "maxTokens": 1_000_000,
        "includeContext": "allServers",
        "modelPreferences": {"hints": [{"name": "other"}]},
    }
    daemon.model.calls("mcp_s_dream", ask={"one": asked})
    daemon.model.says("Paris")
    daemon.model.says("It is Paris.")
    path = f"/api/agents/{agent.id}/message"
    sent = await daemon.http.post(path, json={"message": "canary of the person"})
    assert sent.json()["response"] == "It is Paris."
    request = daemon.model.requests[1]
    assert (request.system, request.tools) == ("Be brief.", ())
    assert [each.text for each in request.messages] == ["What is the capital?"]
    assert (request.max_tokens, request.stop) == (4_096, ("\n",))
    assert request.temperature == 0.5
    assert "canary" not in f"{request.system} {request.messages}"
    told = json.loads(outcome(daemon).text)["one"]
    assert told["content"] == {"type": "text", "text": "Paris"}
    assert (told["role"], told["stopReason"]) == ("assistant", "endTurn")
    rows = await daemon.daemon.store.read("SELECT agent_id, turn_id FROM usage")
    assert len(rows) == 3
    assert len({tuple(row) for row in rows}) == 1
    (first, *_) = [m for m in fake.heard() if m["method"] == "tools/call"]
    meta = first["params"]["_meta"]
    able = meta["io.modelcontextprotocol/clientCapabilities"]
    assert able == {"sampling": {"tools": {}}}


async def test_a_server_that_may_not_is_refused(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, _ = await dreaming(daemons, tmp_path)
    daemon.model.calls("mcp_s_dream", ask={"one": ASKED})
    daemon.model.says("then not")
    path = f"/api/agents/{agent.id}/message"
    sent = await daemon.http.post(path, json={"message": "go"})
    assert sent.json()["response"] == "then not"
    assert outcome(daemon).is_error
    assert len(daemon.model.requests) == 2


async def test_no_more_than_a_few_are_asked_and_the_budget_holds(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, _ = await dreaming(daemons, tmp_path, sampling=True)
    daemon.model.calls("mcp_s_dream", ask={str(n): ASKED for n in range(5)})
    daemon.model.calls("mcp_s_dream", ask={"one": {**ASKED, "maxTokens": 0}})
    daemon.model.says("enough")
    path = f"/api/agents/{agent.id}/message"
    sent = await daemon.http.post(path, json={"message": "go"})
    assert sent.json()["response"] == "enough"
    assert outcome(daemon).is_error
    assert len(daemon.model.requests) == 3
    outputs = [
        part
        for message in daemon.model.requests[-1].messages
        for part in message.parts
        if isinstance(part, ToolOutput)
    ]
    assert "over 4 times" in outputs[0].text
    assert "maxTokens" in outputs[1].text


async def test_a_person_is_asked_before_the_model(
    daemons: Daemons, tmp_path: Path
) -> None:
    both: dict[str, Any] = {"sampling": True, "elicitation": True}
    daemon, agent, _ = await dreaming(daemons, tmp_path, **both)
    daemon.model.calls("mcp_s_dream", ask={"one": ASKED}, who=True)
    path = f"/api/agents/{agent.id}/message"
    sent = await daemon.http.post(path, json={"message": "go"})
    assert sent.status_code == 202, sent.text
    row = await waiting(daemon)
    assert len(daemon.model.requests) == 1
    daemon.model.says("Paris")
    daemon.model.says("done")
    names = {name.split("_")[0]: name for name in row["schema"]["properties"]}
    values = {names["send"]: True, names["name"]: "Ada"}
    await daemon.http.post(
        f"/api/approvals/{row['id']}/approve", json={"values": values}
    )
    await until(lambda: len(daemon.model.requests) == 3)
    told = json.loads(outcome(daemon).text)
    assert told["one"]["content"]["text"] == "Paris"
    assert told["who"] == {"action": "accept", "content": {"name": "Ada"}}


def target(*, vision: bool = False, **more: Any) -> Target:
    row = ModelFacts("m", "p", "m-1", "M", supports_vision=vision, **more)
    return Target(provider=None, model=row)  # type: ignore[arg-type]  # reason: it is not looked at


@pytest.mark.parametrize(
    ("said", "field"),
    [
        (None, "messages"),
        ({**ASKED, "messages": []}, "messages"),
        ({**ASKED, "messages": [HI] * 51}, "messages"),
        ({**ASKED, "messages": [{**HI, "role": "system"}]}, "messages"),
        ({**ASKED, "messages": [{**HI, "role": "assistant"}]}, "messages"),
        (
            {**ASKED, "messages": [{"role": "user", "content": {"type": "audio"}}]},
            "messages",
        ),
        ({**ASKED, "messages": [{"role": "user", "content": DOT}]}, "messages"),
        ({**ASKED, "systemPrompt": "x" * 100_001}, "messages"),
        ({**ASKED, "systemPrompt": 7}, "systemPrompt"),
        ({**ASKED, "maxTokens": 0}, "maxTokens"),
        ({**ASKED, "maxTokens": True}, "maxTokens"),
        ({**ASKED, "temperature": 3}, "temperature"),
        ({**ASKED, "stopSequences": ["x"] * 9}, "stopSequences"),
        ({**ASKED, "stopSequences": "x"}, "stopSequences"),
    ],
)
def test_what_is_asked_wrongly_is_refused_and_named(said: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        request_of(said, target())
    assert raised.value.field == field


async def test_the_turn_pays_or_nobody_is_asked() -> None:
    payers: list[Payer] = []

    class Models:
        async def ask(self, _: Any, __: Any, payer: Payer) -> AsyncGenerator[Any, None]:
            payers.append(payer)
            nothing: tuple[Any, ...] = ()
            for each in nothing:
                yield each

    agents = SimpleNamespace(target_of=lambda _: target(), get=lambda _: None)
    host = SimpleNamespace(agents=agents, models=Models())
    turn: Any = SimpleNamespace(
        host=host, agent=SimpleNamespace(id="a"), turn_id="t", pools=("pool",)
    )
    for missing in ({"agent": None}, {"turn_id": None}):
        nobody: Any = SimpleNamespace(**{**vars(turn), **missing})
        with pytest.raises(Unavailable, match="nobody pays"):
            await sampled(nobody, {"params": ASKED})
    with pytest.raises(Unavailable, match="broke off"):
        await sampled(turn, {"params": ASKED})
    (payer,) = payers
    paid: Any = payer.turn_id, payer.pools, payer.context
    assert paid == ("t", ("pool",), turn)


def test_pictures_are_shown_to_models_that_see() -> None:
    asked = {**ASKED, "messages": [{"role": "user", "content": [HI["content"], DOT]}]}
    request = request_of(asked, target(vision=True))
    assert len(request.messages[0].parts) == 2
    for data in ("no base64!", "AAAA" * 1_800_000):
        damaged = {**DOT, "data": data}
        wrong = {**ASKED, "messages": [{"role": "user", "content": damaged}]}
        with pytest.raises(InvalidInput):
            request_of(wrong, target(vision=True))
    limits = target(max_output=50, sampling=False)
    request = request_of({**ASKED, "temperature": 1}, limits)
    assert (request.max_tokens, request.temperature) == (50, None)
