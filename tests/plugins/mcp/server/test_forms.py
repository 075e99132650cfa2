"""The three forms of ``/mcp``, told apart and answered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agenthost.testing.daemons import RunningDaemon

from .conftest import BOTH, META, Speaker, headers_of, modern, request


async def test_a_bare_request_is_answered_as_it_stands(daemon: RunningDaemon) -> None:
    speaker = Speaker(daemon, {})
    listed = await speaker.bare("tools/list")
    assert (listed["jsonrpc"], listed["id"]) == ("2.0", 1)
    tools = listed["result"]["tools"]
    assert [tool["name"] for tool in tools] == sorted(t["name"] for t in tools)
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)
    assert {"calculate", "file_list"} <= {tool["name"] for tool in tools}
    assert "file_write" not in {tool["name"] for tool in tools}
    listed = (await speaker.bare("resources/templates/list"))["result"]
    templates = [each["uriTemplate"] for each in listed["resourceTemplates"]]
    assert templates == ["agent://{name}", "template://{name}"]
    assert (await speaker.bare("ping"))["result"] == {}
    assert (await speaker.bare("initialise"))["error"]["code"] == -32601
    assert (await speaker.bare("tools/call", name="nope"))["error"]["code"] == -32602
    arguments = {"expression": "6*7"}
    called = await speaker.bare("tools/call", name="calculate", arguments=arguments)
    assert called["result"]["content"] == [{"type": "text", "text": "42"}]
    assert called["result"]["isError"] is False
    noted = await speaker.post({"jsonrpc": "2.0", "method": "notifications/x"})
    assert (noted.status_code, noted.content) == (202, b"")


async def test_malformed_messages_are_told_so(daemon: RunningDaemon) -> None:
    speaker = Speaker(daemon, {})
    deep = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 100_000
    good = request("ping", {})
    for body, code in (
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700),
        (deep, -32700),
        (b"9" * 5_000, -32700),
        (b"[]", -32600),
        (b"3", -32600),
        ({**good, "jsonrpc": "1.0"}, -32600),
        ({**good, "method": 3}, -32600),
        ({**good, "id": None}, -32600),
        ({**good, "id": True}, -32600),
        ({**good, "id": 1.5}, -32600),
        ({**good, "id": "x" * 5_000}, -32600),
        ({**good, "id": 2**80}, -32600),
        ({**good, "params": [1]}, -32602),
    ):
        answer = await speaker.post(body)
        assert answer.status_code == 400, body
        assert answer.json()["error"]["code"] == code, answer.text
    huge = await speaker.post(b" " * (10 * 1024 * 1024))
    assert huge.status_code == 413
    assert isinstance(huge.json()["error"]["message"], str)


async def test_a_session_is_begun_used_and_ended(speaker: Speaker) -> None:
    session = await speaker.begin()
    done = await session.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert done.status_code == 202
    for method in ("ping", "logging/setLevel", "resources/subscribe"):
        params = {"level": "error", "uri": "test://watched-resource"}
        assert (await session.ask(method, **params))["result"] == {}
    assert (await session.ask("logging/setLevel", level="x"))["error"]["code"] == -32602
    assert (await session.ask("server/discover"))["error"]["code"] == -32601
    simple = await session.ask("tools/call", name="test_simple_text")
    words = "This is a simple text response for testing."
    assert simple["result"]["content"] == [{"type": "text", "text": words}]
    wrong = await session.ask("tools/call", name="test_error_handling")
    assert wrong["result"]["isError"] is True
    assert "intentionally returns an error" in wrong["result"]["content"][0]["text"]
    batch = await session.post([request("ping", {})])
    assert (batch.status_code, batch.json()["error"]["code"]) == (400, -32600)
    http, headers = speaker.daemon.http, session.headers
    assert (await http.delete("/mcp", headers=headers)).status_code == 204
    gone = await session.post(request("ping", {}))
    assert gone.status_code == 404
    without = await speaker.post(request("ping", {}), mcp_protocol_version="2025-06-18")
    assert without.status_code == 400
    for answer in (await http.get("/mcp"), await http.delete("/mcp")):
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.conformance
async def test_versions_are_agreed_on_and_old_ones_have_batches(
    speaker: Speaker,
) -> None:
    for asked, agreed in (("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")):
        params = {"protocolVersion": asked, "capabilities": {}}
        answer = (await speaker.post(request("initialize", params))).json()
        assert answer["result"]["protocolVersion"] == agreed
    session = await speaker.begin("2025-03-26")
    batch = [request("ping", {}, 1), request("nope", {}, 2)]
    answers = (await session.post(batch)).json()
    assert answers[0] == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (answers[1]["id"], answers[1]["error"]["code"]) == (2, -32601)
    assert (await session.post([])).status_code == 400
    assert (await session.post([request("ping", {}, n) for n in range(40)])).is_error


async def test_the_modern_form_is_strict(speaker: Speaker) -> None:
    found = (await speaker.modern("server/discover")).json()["result"]
    assert found["supportedVersions"] == ["2026-07-28"]
    assert (found["resultType"], found["cacheScope"]) == ("complete", "private")
    assert found["_meta"][f"{META}serverInfo"]["name"] == "agenthost"
    good = modern("tools/call", name="test_simple_text")
    right = headers_of(good)
    assert (await speaker.post(good, **right)).status_code == 200
    unknown = modern("tools/call", _meta={f"{META}protocolVersion": "2099-01-01"})
    without = request("tools/list", {})
    told: list[tuple[Any, dict[str, str], int, int]] = [
        (good, {}, 400, -32020),
        (good, {**right, "mcp-method": "TOOLS/CALL"}, 400, -32020),
        (good, {**right, "mcp-name": "another"}, 400, -32020),
        (good, {**right, "mcp-name": "=?base64?!?="}, 400, -32020),
        (good, {**right, "mcp-protocol-version": "2025-11-25"}, 400, -32020),
        (unknown, {"mcp-protocol-version": "2099-01-01"}, 400, -32022),
        (without, {"mcp-protocol-version": "2026-07-28"}, 400, -32602),
        (without, {"mcp-method": "tools/list"}, 400, -32602),
    ]
    for method in ("initialize", "ping", "nope"):
        message = modern(method)
        told.append((message, headers_of(message), 404, -32601))
    for message, headers, status, code in told:
        answer = await speaker.post(message, **headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert answer.json()["id"] == 1


async def test_a_tool_asks_its_client_in_either_age(speaker: Speaker) -> None:
    name = "test_input_required_result_request_state"
    asked = (await speaker.modern("tools/call", name=name)).json()
    assert asked["error"]["code"] == -32021
    assert asked["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}
    able: dict[str, Any] = {"elicitation": {}}
    first = (await speaker.modern("tools/call", able, name=name)).json()["result"]
    assert first["resultType"] == "input_required"
    yes = {"confirm": {"action": "accept", "content": {"ok": True}}}
    more = {"name": name, "inputResponses": yes, "requestState": first["requestState"]}
    done = (await speaker.modern("tools/call", able, **more)).json()["result"]
    assert done["content"][0]["text"] == "state-ok"
    for state in (first["requestState"] + "0", "", 3, "." * 9):
        more["requestState"] = state
        answer = await speaker.modern("tools/call", able, **more)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)
    # Missing answers are asked for anew.
    again = {"name": name, "inputResponses": {"other": {}}}
    repeated = (await speaker.modern("tools/call", able, **again)).json()["result"]
    assert repeated["resultType"] == "input_required"
    assert repeated["inputRequests"] == first["inputRequests"]
    assert first["inputRequests"]["confirm"]["method"] == "elicitation/create"
    # A session is asked in the middle of its call.
    session = await speaker.begin(elicitation={})
    http, headers = speaker.daemon.http, session.headers
    call = request("tools/call", {"name": "test_input_required_result_elicitation"})
    stream = http.stream("POST", "/mcp", json=call, headers=headers)
    said: list[Any] = []
    async with stream as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                said.append(json.loads(line[6:]))
            if len(said) == 1 and line.startswith("data: "):
                given = {"action": "accept", "content": {"name": "Ada"}}
                back = {"jsonrpc": "2.0", "id": said[0]["id"], "result": given}
                assert (await session.post(back)).status_code == 202
    assert said[0]["method"] == "elicitation/create"
    assert said[1]["result"]["content"][0]["text"] == "Hello, Ada!"
    bare = await speaker.bare("tools/call", name="test_streaming_elicitation")
    assert bare["error"]["code"] in {-32600, -32021}


@pytest.mark.conformance
async def test_what_is_told_before_an_answer_makes_it_a_stream(
    speaker: Speaker,
) -> None:
    able: dict[str, Any] = {}
    params = {"name": "test_tool_with_progress", "_meta": {"progressToken": "p"}}
    message = modern("tools/call", able, **params)
    headers = {**headers_of(message), "accept": BOTH}
    answer = await speaker.post(message, **headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.count("notifications/progress") == 3
    assert '"resultType": "complete"' in answer.text
    # Without a token, and for who takes no stream, nothing is told.
    silent = await speaker.modern("tools/call", name="test_tool_with_logging")
    assert silent.headers["content-type"] == "application/json"


async def test_each_of_several_streams_has_its_own_answer(speaker: Speaker) -> None:
    session = await speaker.begin()

    async def told(number: int) -> list[Any]:
        meta = {"progressToken": f"p{number}"}
        params = {"name": "test_tool_with_progress", "_meta": meta}
        answer = await session.post(request("tools/call", params, number))
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.text.splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

    streams = await asyncio.gather(*(told(number) for number in range(3)))
    for number, (*before, last) in enumerate(streams):
        tokens = [each["params"]["progressToken"] for each in before]
        assert tokens == [f"p{number}"] * 3
        assert last["id"] == number
        assert last["result"]["content"] == [{"type": "text", "text": "done"}]


@pytest.mark.conformance
async def test_a_silent_answer_becomes_a_stream_for_who_takes_one(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost_mcp.server.answering.PATIENCE", 0.01)
    session = await speaker.begin()
    call = request("tools/call", {"name": "test_tool_with_progress"})
    for accept, kind in ((BOTH, "text/event-stream"), ("application/json",) * 2):
        answer = await session.post(call, accept=accept)
        assert answer.headers["content-type"].startswith(kind)
        assert '"done"' in answer.text
