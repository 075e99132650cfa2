"""What the suite looks at in HTTP, and how it is with a message out of a pipe.

``agenthost mcp`` posts each to ``/mcp/stdio``. Four scenarios of the suite judge
headers and statuses, which no pipe has: here is what holds instead of each.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from .conftest import META, Speaker, headers_of, modern, request


async def piped(speaker: Speaker, message: Any, **headers: str) -> httpx.Response:
    """Send a message as the command does, with headers that a stranger might add."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await speaker.daemon.http.post("/mcp/stdio", json=message, headers=named)


async def told(speaker: Speaker, message: Any, **headers: str) -> dict[str, Any]:
    """What comes out of the pipe for a message."""
    answer = await piped(speaker, message, **headers)
    assert answer.status_code == 200, answer.text
    (line,) = [each for each in answer.text.splitlines() if each.startswith("data: ")]
    return dict(json.loads(line[6:]))


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example.com"}, {"origin": "http://evil.example.com"}]
)
async def test_no_page_of_a_browser_reaches_the_way_of_the_pipe(
    speaker: Speaker, headers: dict[str, str]
) -> None:
    # dns-rebinding-protection
    answer = await piped(speaker, request("tools/list", {}), **headers)
    assert answer.status_code == 403
    assert "calculate" not in answer.text


async def test_the_message_counts_whatever_headers_say_beside_it(
    speaker: Speaker,
) -> None:
    # http-header-validation: over HTTP each of these is refused, as a proxy may have
    # read the header; nobody reads between the ends of a pipe.
    message = modern("tools/call", name="test_simple_text")
    right = await told(speaker, message)
    assert right["result"]["content"][0]["type"] == "text"
    for name, value in (
        ("mcp_method", "tools/list"),
        ("mcp_name", "test_error_handling"),
        ("mcp_protocol_version", "2025-11-25"),
        ("mcp_session_id", "of-another"),
    ):
        assert await told(speaker, message, **{name: value}) == right
        over_http = {**headers_of(message), name.replace("_", "-"): value}
        answer = await speaker.post(message, **over_http)
        assert answer.is_error or name == "mcp_session_id"


async def test_an_argument_counts_whatever_its_header_says(speaker: Speaker) -> None:
    # http-custom-header-server-validation
    call = modern("tools/call", name="test_header", arguments={"region": "north"})
    right = await told(speaker, call)
    assert right["result"]["content"][0]["text"] == "fine"
    assert await told(speaker, call, mcp_param_region="south") == right
    wrong = {**headers_of(call), "mcp-param-region": "south"}
    assert (await speaker.post(call, **wrong)).json()["error"]["code"] == -32020


async def test_what_http_refuses_by_a_status_a_pipe_refuses_by_the_same_code(
    speaker: Speaker,
) -> None:
    # server-stateless
    asking = "test_input_required_result_request_state"
    unknown = modern("tools/list", _meta={f"{META}protocolVersion": "2099-01-01"})
    unable = modern("tools/list")
    del unable["params"]["_meta"][f"{META}clientCapabilities"]
    for message, code in (
        (unable, -32602),
        (unknown, -32022),
        (modern("tools/call", name=asking), -32021),
        *((modern(name), -32601) for name in ("initialize", "ping", "nope")),
        (modern("logging/setLevel", level="info"), -32601),
        (modern("resources/subscribe", uri="test://watched-resource"), -32601),
    ):
        assert (await told(speaker, message))["error"]["code"] == code, message
        assert (await speaker.post(message, **headers_of(message))).status_code >= 400


async def test_what_lacks_the_envelope_is_an_older_client_s(speaker: Speaker) -> None:
    # server-stateless: over HTTP a header says that it is none.
    listed = await told(speaker, request("tools/list", {}))
    assert "resultType" not in listed["result"]
    newer = await told(speaker, modern("tools/list"))
    assert newer["result"]["resultType"] == "complete"
