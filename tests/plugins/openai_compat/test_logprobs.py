"""How likely tokens were: for whoever asks, of agents and of models themselves."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agenthost import ToolUse
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.scripted import Answer

from .responses.asking import ask as respond
from .responses.asking import events_in, made, streamed
from .test_chat import HELLO, PATH, ask, chunks_of
from .test_passthrough import DIRECT, ON

BOTH = pytest.mark.parametrize("model", ["ada", DIRECT])
ONE = {"token": "one", "logprob": -0.5, "bytes": [*b"one"]}
TWO = {"token": "two", "logprob": -1.5, "bytes": [*b"two"]}
TOKENS = [{**ONE, "top_logprobs": [ONE]}, {**TWO, "top_logprobs": [ONE]}]
INCLUDE = {"include": ["message.output_text.logprobs"], "top_logprobs": 1}
ASKED = {"logprobs": True, "top_logprobs": 1}


async def started(daemons: Daemons) -> RunningDaemon:
    daemon = await daemons.start(config=ON)
    await daemon.agent("ada")
    return daemon


@BOTH
async def test_a_completion_tells_them(daemons: Daemons, model: str) -> None:
    daemon = await started(daemons)
    daemon.model.scores(one=-0.5, two=-1.5)
    (choice,) = (await ask(daemon, model=model, **ASKED)).json()["choices"]
    assert choice["logprobs"] == {"content": TOKENS, "refusal": None}
    assert choice["message"]["content"] == "onetwo"
    assert daemon.model.requests[0].logprobs == 1


@BOTH
async def test_who_does_not_ask_is_told_none(daemons: Daemons, model: str) -> None:
    daemon = await started(daemons)
    (choice,) = (await ask(daemon, model=model, logprobs=False)).json()["choices"]
    assert "logprobs" not in choice
    assert daemon.model.requests[0].logprobs is None


@BOTH
async def test_a_model_that_told_none_is_not_made_up(
    daemons: Daemons, model: str
) -> None:
    daemon = await started(daemons)
    (choice,) = (await ask(daemon, model=model, logprobs=True)).json()["choices"]
    assert choice["logprobs"] is None
    assert daemon.model.requests[0].logprobs == 0


async def test_a_models_chunks_tell_those_of_their_own_words(daemons: Daemons) -> None:
    daemon = await started(daemons)
    pause = Pause()
    scored = Answer(("one", pause, "two"), logprobs=tuple(TOKENS))
    daemon.model._answers.append(scored)
    asking = asyncio.create_task(chunks_of(daemon, model=DIRECT, **ASKED))
    await pause.reached.wait()
    pause.go_on()
    chunks = [chunk["choices"][0] for chunk in await asking]
    told = [each.get("logprobs") for each in chunks]
    assert [each["delta"].get("content") for each in chunks] == ["one", "two", None]
    assert told == [
        {"content": TOKENS[:1], "refusal": None},
        {"content": TOKENS[1:], "refusal": None},
        None,
    ]


async def test_an_agents_last_chunk_tells_all(daemons: Daemons) -> None:
    daemon = await started(daemons)
    daemon.model.scores(one=-0.5, two=-1.5)
    chunks = [each["choices"][0] for each in await chunks_of(daemon, **ASKED)]
    told = [each["logprobs"] for each in chunks if "logprobs" in each]
    assert told == [{"content": TOKENS, "refusal": None}]
    assert chunks[-1]["finish_reason"] == "stop"
    assert "logprobs" in chunks[-1]


async def test_an_agents_whole_answer_tells_those_of_its_last_words(
    daemons: Daemons,
) -> None:
    daemon = await started(daemons)
    own = ToolUse("call_1", "calculate", {"expression": "1"})
    before = Answer(("one",), calls=(own,), logprobs=tuple(TOKENS[:1]))
    daemon.model._answers.append(before)
    daemon.model.scores(two=-1.5)
    (choice,) = (await ask(daemon, **ASKED)).json()["choices"]
    assert [each["token"] for each in choice["logprobs"]["content"]] == ["two"]


async def test_an_answer_that_is_told_again_tells_them_too(
    daemons: Daemons, tmp_path: Path
) -> None:
    asked = {"model": "ada", "messages": HELLO, **ASKED}
    key = {"Idempotency-Key": "k"}
    daemon = await daemons.start(home=tmp_path / "home")
    await daemon.agent("ada")
    daemon.model.scores(one=-0.5, two=-1.5)
    first = (await daemon.http.post(PATH, json=asked, headers=key)).json()
    await daemon.daemon.stop()
    daemon = await daemons.start(home=tmp_path / "home")
    again = (await daemon.http.post(PATH, json=asked, headers=key)).json()
    assert again["choices"] == first["choices"]
    assert again["choices"][0]["logprobs"]["content"] == TOKENS
    assert not daemon.model.requests


@BOTH
async def test_a_response_tells_them(daemons: Daemons, model: str) -> None:
    daemon = await started(daemons)
    daemon.model.scores(one=-0.5, two=-1.5)
    response = await made(daemon, model=model, **INCLUDE)
    assert response["output"][0]["content"][0]["logprobs"] == TOKENS
    assert response["top_logprobs"] == 1
    daemon.model.scores(one=-0.5)
    await made(daemon, model=model, include=INCLUDE["include"])
    await made(daemon, model=model)
    asked = [request.logprobs for request in daemon.model.requests]
    assert asked == [1, 0, None]


@BOTH
async def test_a_response_that_is_streamed_tells_them(
    daemons: Daemons, model: str
) -> None:
    daemon = await started(daemons)
    daemon.model.scores(one=-0.5, two=-1.5)
    events = await streamed(daemon, model=model, **INCLUDE)
    told: dict[str, list[Any]] = {}
    for event in events:
        told.setdefault(event["type"], []).append(event)
    deltas = [t for e in told["response.output_text.delta"] for t in e["logprobs"]]
    assert deltas == (TOKENS if model == DIRECT else [])
    (done,) = told["response.output_text.done"]
    (part,) = told["response.content_part.done"]
    (item,) = told["response.output_item.done"]
    assert done["logprobs"] == part["part"]["logprobs"] == TOKENS
    assert item["item"]["content"][0]["logprobs"] == TOKENS


async def test_a_kept_response_keeps_them(daemons: Daemons) -> None:
    daemon = await started(daemons)
    daemon.model.scores(one=-0.5, two=-1.5)
    response = await made(daemon, **INCLUDE)
    read = await daemon.http.get(f"/v1/responses/{response['id']}")
    assert read.json()["output"][0]["content"][0]["logprobs"] == TOKENS
    await made(daemon, "and?", previous_response_id=response["id"])
    assert [m.text for m in daemon.model.requests[-1].messages] == [
        "hello",
        "onetwo",
        "and?",
    ]


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("logprobs", {"logprobs": 1}),
        ("top_logprobs", {"logprobs": True, "top_logprobs": 21}),
        ("top_logprobs", {"logprobs": True, "top_logprobs": -1}),
        ("top_logprobs", {"top_logprobs": 2}),
        ("top_logprobs", {"logprobs": False, "top_logprobs": 0}),
    ],
)
async def test_what_cannot_be_asked_is_refused(
    daemon: RunningDaemon, field: str, body: dict[str, Any]
) -> None:
    await daemon.agent("ada")
    answer = await ask(daemon, **body)
    assert (answer.status_code, answer.json()["param"]) == (400, field)
    assert not daemon.model.requests


@BOTH
async def test_a_model_that_tells_none_is_named(daemons: Daemons, model: str) -> None:
    daemon = await daemons.start(config=ON, environ={"ANTHROPIC_API_KEY": "sk-x"})
    claude = '[model]\nprovider = "anthropic"\nmodel = "claude-haiku-4-5"\n'
    await daemon.agent("ada", extra=claude)
    name = "ada" if model == "ada" else "anthropic/claude-haiku-4-5"
    answer = await ask(daemon, model=name, logprobs=True)
    assert (answer.status_code, answer.json()["param"]) == (400, "logprobs")
    assert "logprobs: the model does not tell" in answer.json()["error"]
    response = await respond(daemon, model=name, stream=True, **INCLUDE)
    assert response.status_code == 400
    assert events_in("") == []
