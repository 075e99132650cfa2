"""What requests are refused for, each by the name of its field."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from agenthost import UNTRUSTED, Image, Text, ToolOutput
from agenthost.testing.daemons import RunningDaemon
from agenthost_openai_compat.responses.items import items_of
from agenthost_openai_compat.responses.reading import ItemReader

from .asking import PATH, WEATHER, ask, made, read

PIXEL = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\npixel").decode()


def said(*parts: Any, role: str = "user") -> list[Any]:
    return [{"role": role, "content": list(parts)}]


CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "x"}
HELLO = {"role": "user", "content": "hello"}
CALLED = [HELLO, CALL]


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("input", {"input": []}),
    ("input.0.type", {"input": [{"type": "web_search_call", "id": "x"}]}),
    ("input.0.type", {"input": [{"type": ["message"]}]}),
    ("input.0.role", {"input": [{"role": "robot", "content": "x"}]}),
    ("input.0.role", {"input": [{"role": {}, "content": "x"}]}),
    ("input.0.content", {"input": [{"role": "user"}]}),
    ("input.0.content", {"input": said()}),
    ("input.0.content", {"input": "  "}),
    ("input.0.content.0", {"input": said({"type": "input_audio"})}),
    ("input.0.content.0", {"input": said("text")}),
    (
        "input.0.content.0.image_url",
        {"input": said({"type": "input_image", "file_id": "f"})},
    ),
    (
        "input.0.content.0.file_data",
        {"input": said({"type": "input_file", "file_url": "http://a.example"})},
    ),
    ("input.0.call_id", {"input": [OUTPUT]}),
    ("input.3.call_id", {"input": [*CALLED, OUTPUT, OUTPUT]}),
    ("input.2.output", {"input": [*CALLED, {**OUTPUT, "output": 3}]}),
    ("input.2.output.0", {"input": [*CALLED, {**OUTPUT, "output": [3]}]}),
    ("input.1.arguments", {"input": [HELLO, {**CALL, "arguments": "{"}]}),
    ("input.1.arguments", {"input": [HELLO, {**CALL, "arguments": {}}]}),
    ("input.2.call_id", {"input": [*CALLED, CALL]}),
    ("input.1.name", {"input": [HELLO, {**CALL, "name": ""}]}),
    ("input", {"input": [{"role": "assistant", "content": "x"}]}),
    ("input", {"input": [{"role": "system", "content": "x"}]}),
    ("conversation", {"conversation": "conv_1"}),
    ("conversation", {"conversation": {"id": "conv_1"}}),
    ("prompt", {"prompt": {"id": "pmpt_1"}}),
    ("max_tool_calls", {"max_tool_calls": 3}),
    ("top_logprobs", {"top_logprobs": 21}),
    ("include.1", {"include": ["message.input_image.image_url", "x"]}),
    ("truncation", {"truncation": "auto"}),
    ("store", {"background": True, "store": False}),
    ("tools.0.type", {"tools": [{"type": "web_search"}]}),
    ("tools.0.type", {"tools": [{}]}),
    ("tools.0.name", {"tools": [{**WEATHER, "name": "a b"}]}),
    ("tools.0.parameters", {"tools": [{**WEATHER, "parameters": 3}]}),
    ("tools", {"tools": [WEATHER, WEATHER]}),
    ("tools", {"tools": [{**WEATHER, "name": "calculate"}]}),
    ("tool_choice", {"tools": [WEATHER], "tool_choice": "never"}),
    (
        "tool_choice",
        {"tools": [WEATHER], "tool_choice": {"type": "function", "name": "x"}},
    ),
    (
        "tool_choice.tools",
        {
            "tools": [WEATHER],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"name": []}],
            },
        },
    ),
    ("text.format.type", {"text": {"format": {"type": "yaml"}}}),
    ("text.format.type", {"text": {"format": 3}}),
    ("text.format.schema", {"text": {"format": {"type": "json_schema"}}}),
    ("metadata", {"metadata": {str(n): "x" for n in range(17)}}),
    ("temperature", {"temperature": 3}),
    ("max_output_tokens", {"max_output_tokens": 0}),
]


async def test_a_refusal_names_its_field(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    told = []
    for _, body in REFUSED:
        asked = {"model": "ada", "input": "x", **body}
        answer = await daemon.http.post(PATH, json=asked)
        told.append((answer.status_code, answer.json().get("param")))
    assert told == [(400, field) for field, _ in REFUSED]
    assert daemon.model.requests == []


@pytest.mark.conformance
async def test_pictures_and_files_reach_the_model(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    notes = "data:text/plain;base64,QQ=="
    items = said(
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
        {"type": "input_file", "filename": "a.txt", "file_data": notes},
    )
    one = await made(daemon, items)
    _, picture, file = daemon.model.requests[0].messages[0].parts
    assert isinstance(picture, Image)
    assert isinstance(file, Text)
    assert "a.txt" in file.text
    # They are there, too, when the conversation goes on.
    await made(daemon, "and?", previous_response_id=one["id"])
    assert daemon.model.requests[1].messages[0].parts[1] == picture


def test_an_output_may_have_a_picture() -> None:
    parts = [
        {"type": "input_text", "text": "here"},
        {"type": "input_image", "image_url": PIXEL},
    ]
    reader = ItemReader({})
    reader.add(items_of([*CALLED, {**OUTPUT, "output": parts}]), {})
    (output,) = reader.asked("").message.parts
    assert isinstance(output, ToolOutput)
    assert output.text == "here\n[image/png]"
    assert len(output.images) == 1


@pytest.mark.conformance
async def test_unknown_ids_are_not_found(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for known in ("resp_" + "0" * 32, "x", "resp_%00"):
        answer = await daemon.http.get(f"{PATH}/{known}")
        assert answer.status_code == 404
        assert answer.json()["code"] == "not_found"
    answer = await ask(daemon, previous_response_id="resp_x")
    assert (answer.status_code, answer.json()["param"]) == (404, "previous_response_id")


@pytest.mark.conformance
async def test_calls_and_outputs_of_one_answer_may_alternate(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    daemon.model.calls_all(
        ("calculate", {"expression": "6*7"}), ("weather", {}), ("weather", {})
    )
    one = await made(daemon, tools=[WEATHER], store=False)
    first, second = one["output"]
    told = [{**OUTPUT, "call_id": each["call_id"]} for each in (first, second)]
    items = [HELLO, first, told[0], second, told[1]]
    await made(daemon, items, tools=[WEATHER])
    last = daemon.model.requests[-1].messages
    assert len(last) == 3
    assert [p.text for p in last[-1].parts if isinstance(p, ToolOutput)] == [
        "42",
        "x",
        "x",
    ]


@pytest.mark.conformance
async def test_items_of_stored_responses_are_named_by_their_ids(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    one = await made(daemon, "one")
    answer_id = one["output"][0]["id"]
    path = f"{PATH}/{one['id']}/input_items"
    asked_id = (await daemon.http.get(path)).json()["data"][0]["id"]
    named = [{"type": "item_reference", "id": each} for each in (asked_id, answer_id)]
    await made(daemon, [*named, {"role": "user", "content": "two"}])
    said = [m.text for m in daemon.model.requests[-1].messages]
    assert said == ["one", "You said: one", "two"]
    unknown = {"type": "item_reference", "id": f"msg_{'0' * 32}_0"}
    answer = await ask(daemon, [unknown])
    assert (answer.status_code, answer.json()["param"]) == (404, "input.0.id")
    beyond = {"type": "item_reference", "id": f"{answer_id}7"}
    answer = await ask(daemon, [beyond])
    assert (answer.status_code, answer.json()["param"]) == (400, "input.0.id")


async def test_what_is_untrusted_stays_so(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    one = await made(daemon)
    store = daemon.daemon.store
    await store.change(
        "UPDATE openai_responses SET labels = :labels RETURNING id",
        {"labels": '["untrusted"]'},
    )
    two = await made(daemon, "again", previous_response_id=one["id"])
    row = await store.first(
        "SELECT labels FROM openai_responses WHERE id = :id", {"id": two["id"]}
    )
    assert row is not None
    assert row["labels"] == '["untrusted"]'
    assert frozenset({"untrusted"}) == UNTRUSTED
    assert (await read(daemon, two)).status_code == 200
