"""A model that is named itself: what answers, who may ask, and who pays."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from agenthost import (
    Activity,
    ChatRequest,
    Delta,
    Deny,
    Image,
    ModelCall,
    ModelFacts,
    Observer,
    ProviderError,
    ProviderFacts,
    ProviderFault,
    ProviderSpec,
    SecuritySystem,
    Spent,
    Text,
    ToolOutput,
    ToolUse,
    Usage,
    hookimpl,
)
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.scripted import MODEL, Answer, ScriptedModel

from .test_chat import HELLO, PATH, ask, chunks_of
from .test_leaving import leave
from .test_tools import CITY, WEATHER, answered, choice_of

ON = "[openai]\npassthrough = true\n"
DIRECT = f"scripted/{MODEL}"
KEY = "a-key-of-this-test-0123456"
NOBODY = "4b1d2c3e-0000-4000-8000-00000000beef"
PIXEL = "data:image/png;base64,iVBORw0KGgo="

BEHIND = Spent(0.0, "", "", "", "", "", Usage(), 0)


async def direct(daemon: RunningDaemon, **body: Any) -> httpx.Response:
    return await ask(daemon, **{"model": DIRECT, **body})


async def usage_rows(daemon: RunningDaemon) -> list[tuple[Any, ...]]:
    """Read who was booked for what; a call that was left is closed by then."""

    def held() -> bool:
        gauges = daemon.daemon.models.gauges()
        return any(n for _, labels, n in gauges if labels.get("kind") == "held")

    async with asyncio.timeout(30):
        while held():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)
    # Rows are written in their order: behind this one all before it are there.
    await daemon.daemon.usage.book(BEHIND)
    with closing(sqlite3.connect(daemon.daemon.data_dir / "agenthost.db")) as found:
        return found.execute(
            "SELECT agent_id, session_id, turn_id, provider, model, principal "
            "FROM usage WHERE provider != '' ORDER BY rowid"
        ).fetchall()


@pytest.mark.setting("openai.passthrough")
async def test_a_named_model_answers_without_an_agent(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    messages = [{"role": "system", "content": "Be brief."}, *HELLO]
    answer = (await direct(daemon, messages=messages)).json()
    (request,) = daemon.model.requests
    assert answer.pop("id").startswith("chatcmpl-")
    assert isinstance(answer.pop("created"), int)
    assert answer == {
        "object": "chat.completion",
        "model": DIRECT,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "You said: hello"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
    assert (request.system, request.tools, request.stream) == ("Be brief.", (), False)
    assert (await daemon.http.get("/v1/models")).json()["data"] == []


async def test_agents_come_before_models(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    agent = await daemon.agent("ada")
    forms = {
        "service:ada": "service:ada",
        agent.id: "service:ada",
        "ada": "service:ada",
        DIRECT: DIRECT,
        f" {DIRECT.upper()} ": DIRECT,
        "scripted/unlisted": "scripted/unlisted",
        "gpt-4o": "service:ada",
        "nobody/gpt-4o": "service:ada",
        "scripted/": "service:ada",
        "/": "service:ada",
    }
    for model, name in forms.items():
        answer = await ask(daemon, model=model)
        assert answer.json()["model"] == name, model
    for model in (f"service:{DIRECT}", NOBODY):
        assert (await ask(daemon, model=model)).status_code == 404


async def test_a_name_is_no_model_unless_the_daemon_is_told_so(
    daemon: RunningDaemon,
) -> None:
    assert (await direct(daemon)).json()["code"] == "model_not_found"
    await daemon.agent("ada")
    assert (await direct(daemon)).json()["model"] == "service:ada"


async def test_an_answer_is_streamed(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    asking = asyncio.create_task(
        chunks_of(daemon, model=DIRECT, stream_options={"include_usage": True})
    )
    await pause.reached.wait()
    pause.go_on()
    first, second, end, usage = await asking
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "one "}
    assert second["choices"][0]["delta"] == {"content": "two"}
    assert end["choices"][0]["finish_reason"] == "stop"
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 15)
    assert {chunk["model"] for chunk in (first, second, end, usage)} == {DIRECT}
    assert daemon.model.requests[0].stream


FUNCTION: Any = WEATHER["function"]
STRICT = {**WEATHER, "function": {**FUNCTION, "strict": True}}
NATIVE = {
    "frequency_penalty": 0.5,
    "presence_penalty": -2.0,
    "repetition_penalty": 1.1,
    "logit_bias": {"1234": -100.0},
    "top_k": 40,
    "min_p": 0.1,
    "reasoning_effort": "high",
    "verbosity": "low",
    "service_tier": "flex",
    "store": False,
    "metadata": {"a": "b"},
}
"""Fields that only OpenAI's wire has."""


async def test_what_is_asked_goes_on_as_it_is(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    looked = {"url": PIXEL, "detail": "low"}
    picture = {"type": "image_url", "image_url": looked}
    content = [{"type": "text", "text": "see"}, picture]
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    asked = {
        "messages": [{"role": "user", "content": content}],
        "temperature": 0.5,
        "top_p": 0.25,
        "max_tokens": 9,
        "stop": "x",
        "seed": 7,
        "user": "u",
        "prompt_cache_key": "c",
        "parallel_tool_calls": False,
        "tools": [STRICT],
        "tool_choice": "none",
        "response_format": form,
        **NATIVE,
        "logprobs": True,
        "top_logprobs": 3,
        "n": 1,
    }
    # A form is the model's to keep: who asks a model itself reads what it says.
    assert choice_of(await direct(daemon, **asked))["finish_reason"] == "stop"
    (request,) = daemon.model.requests
    assert request.messages[0].parts == (
        Text("see"),
        Image("image/png", "iVBORw0KGgo=", "low"),
    )
    assert (request.temperature, request.top_p, request.max_tokens) == (0.5, 0.25, 9)
    assert (request.stop, request.seed, request.user) == (("x",), 7, "u")
    assert (request.cache_key, request.parallel_tool_calls) == ("c", False)
    (tool,) = request.tools
    assert (tool.name, tool.strict, request.tool_choice) == ("weather", True, "none")
    assert request.logprobs == 3
    assert request.response_format == schema
    assert request.native == {"openai-chat": NATIVE}
    assert request.thinking_budget == 32_768


@pytest.mark.parametrize("path", ["chat/completions", "messages", "responses"])
async def test_a_service_that_costs_more_is_refused_by_its_name(
    daemons: Daemons, path: str
) -> None:
    daemon = await daemons.start(config=ON)
    asked = {"model": DIRECT, "messages": HELLO, "max_tokens": 9, "input": "hello"}
    for tier in ("priority", "scale"):
        body = {**asked, "service_tier": tier}
        answer = await daemon.http.post(f"/v1/{path}", json=body)
        assert answer.status_code == 400
        assert "service_tier" in answer.text
    assert daemon.model.requests == []


async def test_agents_are_not_held_to_what_their_models_may_not_know(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    await ask(daemon, tools=[STRICT], metadata={"a": "b"}, store=True)
    tool = {"type": "function", **FUNCTION, "strict": True}
    asked = {"model": "ada", "input": "hi", "tools": [tool]}
    await daemon.http.post("/v1/responses", json=asked)
    for request in daemon.model.requests:
        assert request.native is None
        assert [t.strict for t in request.tools if t.name == "weather"] == [None]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("frequency_penalty", 2.1),
        ("presence_penalty", "much"),
        ("repetition_penalty", -1),
        ("logit_bias", {"x": 1}),
        ("logit_bias", {"1": 101}),
        ("top_k", 1.5),
        ("min_p", 2),
        ("reasoning_effort", "sk-1234"),
        ("verbosity", 3),
        ("service_tier", "sk-1234"),
        ("store", "no"),
        ("metadata", {"a": 1}),
        ("metadata", {"a": "x" * 513}),
        ("metadata", {str(n): "x" for n in range(17)}),
    ],
)
async def test_what_nobody_looks_at_is_numbers_and_single_words(
    daemons: Daemons, field: str, value: object
) -> None:
    daemon = await daemons.start(config=ON)
    answer = await direct(daemon, **{field: value})
    assert answer.status_code == 400
    assert field in answer.text
    assert not daemon.model.requests


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_are_the_clients_under_the_models_own_ids(
    daemons: Daemons, *, stream: bool
) -> None:
    daemon = await daemons.start(config=ON)
    daemon.model.calls("weather", **CITY)
    if stream:
        chunks = await chunks_of(daemon, model=DIRECT, tools=[WEATHER])
        (call,) = chunks[1]["choices"][0]["delta"]["tool_calls"]
        assert call.pop("index") == 0
        assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    else:
        choice = choice_of(await direct(daemon, tools=[WEATHER]))
        (call,) = choice["message"]["tool_calls"]
    assert (call["id"], call["function"]["name"]) == ("call_1", "weather")
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    await direct(daemon, tools=[WEATHER], messages=answered(said))
    _, use, result = daemon.model.requests[1].messages
    assert use.parts == (ToolUse("call_1", "weather", CITY),)
    assert result.parts == (ToolOutput("call_1", "weather", "sunny"),)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_nobody_can_read_is_no_answer(
    daemons: Daemons, *, stream: bool
) -> None:
    daemon = await daemons.start(config=ON)
    use = ToolUse("call_1", "weather", {}, malformed="no JSON")
    daemon.model._answers.append(Answer(calls=(use,)))
    answer = await direct(daemon, tools=[WEATHER], stream=stream)
    assert (answer.status_code, answer.json()["code"]) == (500, "malformed_answer")
    assert len(await usage_rows(daemon)) == 1


async def test_it_takes_a_right_of_its_own(daemons: Daemons) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n{ON}')
    daemon.http.headers["authorization"] = f"Bearer {KEY}"
    codes = {}
    for scope in ("chat", "operate"):
        made = await daemon.http.post(
            "/api/keys", json={"name": scope, "scopes": [scope]}
        )
        shown = {"authorization": f"Bearer {made.json()['key']}"}
        asked = {"model": DIRECT, "messages": HELLO}
        told = await daemon.http.post(PATH, json=asked, headers=shown)
        texts = {"model": "offline/words", "input": "x"}
        named = await daemon.http.post("/v1/embeddings", json=texts, headers=shown)
        usual = {**texts, "model": "default"}
        free = await daemon.http.post("/v1/embeddings", json=usual, headers=shown)
        codes[scope] = [each.status_code for each in (told, named, free)]
    assert codes == {"chat": [403, 403, 200], "operate": [200, 200, 200]}
    booked = {(row[3], row[5]) for row in await usage_rows(daemon)}
    assert {who.partition(":")[0] for _, who in booked} == {"named_key"}
    assert {slug for slug, _ in booked} == {"scripted", "offline"}


async def test_every_call_is_booked_on_who_asks(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    whole = (await direct(daemon)).json()
    streamed = await chunks_of(daemon, model=DIRECT)
    await daemon.http.post("/v1/embeddings", json={"model": "default", "input": "x"})
    rows = await usage_rows(daemon)
    ids = [each["id"].removeprefix("chatcmpl-") for each in (whole, streamed[0])]
    assert [row[2] for row in rows[:2]] == ids
    assert [row[3] for row in rows] == ["scripted", "scripted", "offline"]
    assert {(row[0], row[1]) for row in rows} == {("", "")}
    assert {row[5] for row in rows} == {"loopback:loopback"}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_budget_without_room_refuses_before_the_model_is_asked(
    daemons: Daemons, *, stream: bool
) -> None:
    budget = "[budget]\nmax_hourly_usd = 0.00004\n"
    daemon = await daemons.start(config=ON + budget)
    asked = {"max_tokens": 5, "stream": stream}
    assert (await direct(daemon, **asked)).status_code == 200
    refused = await direct(daemon, **asked)
    assert (refused.status_code, refused.json()["code"]) == (429, "quota_exceeded")
    assert len(daemon.model.requests) == 1
    assert daemon.model.requests[0].max_tokens == 5


@pytest.mark.parametrize("stream", [False, True])
async def test_who_leaves_cancels_the_call_and_pays_for_what_was_said(
    daemons: Daemons, *, stream: bool
) -> None:
    daemon = await daemons.start(config=ON + "[budget]\nmax_hourly_usd = 1.0\n")
    await leave(daemon, stream=stream, model=DIRECT)
    rows = await usage_rows(daemon)
    assert [row[3] for row in rows] == ["scripted"]


class Limited(ScriptedModel):
    """Asks to be left alone."""

    async def stream(self, call: ModelCall) -> AsyncGenerator[Delta, None]:
        raise ProviderError(
            ProviderFault.RATE_LIMITED, "limited", "", retry_after=3_000
        )
        async for delta in super().stream(call):
            yield delta


def limited() -> SimpleNamespace:
    """Offer the provider ``limited``."""
    row = ModelFacts("small", "limited", "small", "Small")
    facts = ProviderFacts("limited", "Limited", "", key_required=False, models=(row,))

    @hookimpl
    def register_provider() -> list[ProviderSpec]:
        return [ProviderSpec(facts, Limited())]

    return SimpleNamespace(__name__="limited", register_provider=register_provider)


@pytest.mark.conformance
async def test_the_vendors_wait_is_told(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON, plugins=[limited()])
    answer = await direct(daemon, model="limited/small", stream=True)
    assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
    assert 2_990 < int(answer.headers["retry-after"]) <= 3_000


async def test_the_daemons_fallbacks_stand_in_and_are_named(daemons: Daemons) -> None:
    spare = f'[[fallback_providers]]\nprovider = "scripted"\nmodel = "{MODEL}"\n'
    daemon = await daemons.start(config=spare + ON, plugins=[limited()])
    answer = await direct(daemon, model="limited/small")
    assert answer.json()["model"] == DIRECT
    assert [row[3] for row in await usage_rows(daemon)] == ["scripted"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_has_the_status_that_it_has_of_an_agent(
    daemons: Daemons, *, stream: bool
) -> None:
    daemon = await daemons.start(config=ON)
    daemon.model.fails(ProviderFault.AUTH)
    answer = await direct(daemon, stream=stream)
    assert (answer.status_code, answer.json()["code"]) == (500, "auth")


async def test_a_stream_that_breaks_off_has_no_end(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    pause = Pause()
    broken = Answer(("one ", pause), fault=ProviderFault.SERVER)
    daemon.model._answers.append(broken)
    asking = asyncio.create_task(direct(daemon, stream=True))
    await pause.reached.wait()
    pause.go_on()
    first, last = (await asking).text.strip().split("\n\n")
    assert "one " in first
    assert '"code": "server_error"' in last


class Watching(Observer):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Activity] = []

    def ended(self, activity: Activity) -> None:
        """Note it."""
        self.told.append(activity)


async def test_observers_are_told_and_guards_of_egress_asked(daemons: Daemons) -> None:
    watching, asked = Watching(), []

    def refuse(case: Any) -> Deny:
        asked.append(case.context)
        return Deny("not from here")

    def security_system() -> SecuritySystem:
        return SecuritySystem("strict", {"url": refuse}, lambda: None)

    plugin = SimpleNamespace(
        __name__="watching",
        register_observer=hookimpl(lambda: [watching]),
        security_system=hookimpl(security_system),
    )
    remote = (
        '[providers.near]\ndialect = "openai-chat"\n'
        'base_url = "http://127.0.0.1:9/v1"\n'
    )
    daemon = await daemons.start(config=ON + remote, plugins=[plugin])
    await direct(daemon)
    assert (await direct(daemon, model="near/m")).status_code == 403
    assert [context.owner for context in asked] == ["loopback:loopback"]
    good, bad = watching.told
    assert isinstance(good.subject, ChatRequest)
    assert good.context.owner == "loopback:loopback"
    assert (good.parent, good.context.agent) == (None, None)
    assert good.spent is not None
    assert good.answered is not None
    assert bad.error is not None
