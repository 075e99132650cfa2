"""Chat completions: the history, the answer, its stream, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from agenthost import Message, ProviderFault, Role, Text, ToolUse
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.scripted import Answer

PATH = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello"}]


async def ask(daemon: RunningDaemon, **body: Any) -> httpx.Response:
    asked = {"model": "ada", "messages": HELLO, **body}
    return await daemon.http.post(PATH, json=asked)


async def chunks_of(daemon: RunningDaemon, **body: Any) -> list[dict[str, Any]]:
    answer = await ask(daemon, stream=True, **body)
    assert answer.status_code == 200, answer.text
    data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    assert data[-1] == "[DONE]"
    return [json.loads(each) for each in data[:-1]]


async def test_an_answer_is_a_chat_completion(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    answer = (await ask(daemon)).json()
    assert answer.pop("id").startswith("chatcmpl-")
    assert isinstance(answer.pop("created"), int)
    assert answer == {
        "object": "chat.completion",
        "model": "service:ada",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "You said: hello"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


async def test_the_whole_history_is_honoured_and_nothing_is_kept(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent("ada")
    await agent.send("kept")
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    answer = await ask(daemon, messages=messages)
    assert answer.json()["choices"][0]["message"]["content"] == "You said: three"
    said = daemon.model.requests[-1].messages
    assert said == (
        Message(Role.USER, (Text("one"),)),
        Message(Role.ASSISTANT, (Text("two"),)),
        Message(Role.USER, (Text("three"),)),
    )
    assert len((await agent.session())["messages"]) == 2


async def test_what_the_application_says_stands_behind_the_agents_own_prompt(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent("ada")
    await agent.send("native")
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        *HELLO,
        {"role": "assistant", "content": "hi"},
        {"role": "system", "content": "Be loud."},
        {"role": "user", "content": "again"},
    ]
    await ask(daemon, messages=messages)
    native, ours = daemon.model.requests
    assert ours.system == f"{native.system}\n\nBe brief.\n\nBe kind."
    assert ours.messages[2].text.endswith("\nBe loud.")
    assert ours.messages[2].role is Role.USER


async def test_what_is_asked_of_the_answer_reaches_the_model(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    await ask(
        daemon,
        temperature=0.5,
        top_p=0.4,
        max_tokens=5,
        max_completion_tokens=7,
        stop="END",
        seed=-1,
        user="somebody",
        parallel_tool_calls=False,
        logit_bias={"50256": -100},
        metadata={"unknown": "fields"},
        reasoning_effort="minimal",
    )
    request = daemon.model.requests[0]
    assert (request.temperature, request.top_p, request.max_tokens) == (0.5, 0.4, 7)
    assert (request.stop, request.seed) == (("END",), 2**31 - 1)
    assert (request.user, request.parallel_tool_calls) == ("somebody", False)
    assert (request.thinking_budget, request.native) == (1_024, None)
    refused = await ask(daemon, reasoning_effort="much")
    assert refused.status_code == 400
    assert "reasoning_effort: must be one of none, minimal, low" in refused.text


FORMS: tuple[tuple[dict[str, Any], Any], ...] = (
    ({"type": "json_object"}, {"type": "object"}),
    (
        {
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": {"required": ["city"]}},
        },
        {"required": ["city"]},
    ),
    ({"type": "text"}, None),
)


async def test_an_answer_has_the_form_that_is_asked_for(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for form, schema in FORMS:
        daemon.model.says('{"city": 1}')
        answer = await ask(daemon, response_format=form)
        assert answer.json()["choices"][0]["message"]["content"] == '{"city": 1}'
        assert daemon.model.requests[-1].response_format == schema


async def test_a_stream_is_chunks_of_one_answer(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one ", pause, "two\u2028\U0001f600")
    body = {"model": "ada", "messages": HELLO, "stream": True}
    async with daemon.http.stream("POST", PATH, json=body) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = []
        async for line in answer.aiter_lines():
            pause.go_on()
            if line:
                assert line.startswith("data: ")
                lines.append(line[6:])
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    assert {(c["id"], c["object"], c["model"]) for c in chunks} == {
        (chunks[0]["id"], "chat.completion.chunk", "service:ada")
    }
    choices = [chunk["choices"][0] for chunk in chunks]
    assert choices == [
        {
            "index": 0,
            "delta": {"role": "assistant", "content": "one "},
            "finish_reason": None,
        },
        {
            "index": 0,
            "delta": {"content": "two\u2028\U0001f600"},
            "finish_reason": None,
        },
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    assert [chunk.get("usage") for chunk in chunks] == [
        None,
        None,
        {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    ]


async def test_usage_comes_in_a_chunk_of_its_own_where_that_is_asked_for(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    chunks = await chunks_of(daemon, stream_options={"include_usage": True})
    assert [each["usage"] is None for each in chunks] == [True, True, False]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] == 15
    chunks = await chunks_of(daemon, stream_options={"include_usage": False})
    assert not any("usage" in each for each in chunks)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


async def test_the_agents_own_tools_stay_hidden(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for stream in (False, True):
        daemon.model.calls("calculate", expression="6*7")
        daemon.model.says("It is 42.")
        answer = await ask(daemon, stream=stream)
        assert "calculate" not in answer.text
        assert "It is 42." in answer.text
        assert '"tool_calls"' not in answer.text
    assert daemon.model.requests[-1].messages[-1].role is Role.TOOL


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_was_cut_off_finishes_by_length(
    daemon: RunningDaemon, *, stream: bool
) -> None:
    await daemon.agent("ada")
    for words in ("half an", ""):
        daemon.model.is_cut(words)
        body = {"max_tokens": 3}
        if stream:
            chunks = await chunks_of(daemon, **body)
            said = chunks[0]["choices"][0]["delta"]["content"]
            finish, usage = (
                chunks[-1]["choices"][0]["finish_reason"],
                chunks[-1]["usage"],
            )
        else:
            answer = (await ask(daemon, **body)).json()
            said = answer["choices"][0]["message"]["content"]
            finish, usage = answer["choices"][0]["finish_reason"], answer["usage"]
        assert (said, finish, usage["total_tokens"]) == (words, "length", 15)


async def test_what_content_rules_end_finishes_so(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.is_blocked("I can")
    answer = await ask(daemon)
    assert answer.json()["choices"][0]["finish_reason"] == "content_filter"


BAD: tuple[tuple[dict[str, Any], str], ...] = (
    ({"model": 5}, "model"),
    ({"model": None}, "model"),
    ({"messages": []}, "messages"),
    ({"messages": ["hello"]}, "messages.0"),
    ({"messages": [{"role": "wizard", "content": "x"}]}, "messages.0.role"),
    ({"messages": [{"role": ["user"], "content": "x"}]}, "messages.0.role"),
    ({"messages": [{"role": "user"}]}, "messages.0.content"),
    ({"messages": [{"role": "user", "content": " "}]}, "messages.0.content"),
    ({"messages": [{"role": "user", "content": []}]}, "messages.0.content"),
    ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
    ({"messages": [*HELLO, {"role": "assistant", "content": "x"}]}, "messages"),
    (
        {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
        "messages.0.content.0",
    ),
    (
        {"messages": [{"role": "tool", "tool_call_id": "x", "content": "x"}]},
        "messages.0.tool_call_id",
    ),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}]},
        "messages.0.tool_calls.0",
    ),
    ({"n": 2}, "n"),
    ({"functions": []}, "functions"),
    ({"temperature": 3}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"stream": "yes"}, "stream"),
    ({"response_format": {"type": "yaml"}}, "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
)


async def test_a_bad_request_names_its_field(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for body, param in BAD:
        answer = await ask(daemon, **body)
        told = answer.json()
        assert answer.status_code == 400, answer.text
        assert (told["param"], told["type"]) == (param, "invalid_request_error")
        assert told["code"] == "invalid_input"
        assert param.partition(".")[0] in told["error"]
    assert daemon.model.requests == []


async def test_a_failure_before_the_first_word_has_its_status(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    for stream in (False, True):
        daemon.model.fails(ProviderFault.BILLING)
        answer = await ask(daemon, stream=stream)
        assert answer.status_code == 500
        assert answer.json()["code"] == "billing"
        assert answer.json()["type"] == "server_error"


async def test_a_failure_behind_it_ends_the_stream(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.fails(ProviderFault.BILLING, "half")
    answer = await ask(daemon, stream=True)
    last = answer.text.strip().splitlines()[-1]
    assert json.loads(last.removeprefix("data: "))["code"] == "billing"
    assert "[DONE]" not in answer.text


@pytest.mark.setting("openai.error_objects")
async def test_errors_may_be_openais_objects(daemons: Daemons) -> None:
    daemon = await daemons.start(
        config='api_key = "a-key-of-a-test-0123456"\n[openai]\nerror_objects = true\n'
    )
    without = await ask(daemon)
    assert without.status_code == 401
    assert without.json()["error"]["type"] == "authentication_error"
    daemon.http.headers["authorization"] = "Bearer a-key-of-a-test-0123456"
    answer = await ask(daemon)
    assert answer.status_code == 404
    assert answer.json() == {
        "error": {
            "message": "model not found: ada",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }
    }
    await daemon.agent("ada")
    daemon.model.fails(ProviderFault.BILLING, "half")
    streamed = await ask(daemon, stream=True)
    last = json.loads(streamed.text.strip().splitlines()[-1].removeprefix("data: "))
    assert last["error"]["code"] == "billing"
    native = await daemon.http.get("/api/agents/nobody")
    assert isinstance(native.json()["error"], str)


async def test_words_before_and_behind_the_agents_own_tools_stand_apart(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    use = ToolUse("call_1", "calculate", {"expression": "6*7"})
    daemon.model._answers.append(Answer(("Let me see.",), calls=(use,)))
    daemon.model.says("It is 42.")
    chunks = await chunks_of(daemon)
    said = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
    assert "".join(said) == "Let me see.\n\nIt is 42."
