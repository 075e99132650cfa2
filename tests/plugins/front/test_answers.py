"""Handlers, errors and the headers of every answer."""

from __future__ import annotations

import asyncio
import json
import logging
from uuid import UUID, uuid4

import httpx
import pytest

from .conftest import KEY, Running, Start

PREFIXES = ["/api", "/v1"]
REQUIRED = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "strict-transport-security": "max-age=63072000; includeSubDomains",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
JSON = {"content-type": "application/json"}


def check_headers(headers: httpx.Headers, *, private: bool = True) -> None:
    for name, value in REQUIRED.items():
        assert headers.get_list(name) == [value]
    (policy,) = headers.get_list("content-security-policy")
    assert policy.startswith("default-src 'self'")
    assert "unsafe" not in policy
    assert len(headers.get_list("permissions-policy")) == 1
    assert "server" not in headers
    (request_id,) = headers.get_list("x-request-id")
    assert UUID(request_id).version == 4
    if private:
        assert headers.get_list("cache-control") == ["no-store"]


@pytest.mark.parametrize("at", PREFIXES)
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/health", 200),
        ("HEAD", "/health", 200),
        ("POST", "/greet", 201),
        ("DELETE", f"/things/{UUID(int=1)}", 204),
        ("GET", "/things/nonsense", 400),
        ("GET", "/nowhere", 404),
        ("HEAD", "/nowhere", 404),
        ("GET", "/fail/missing", 404),
        ("PUT", "/greet", 405),
        ("GET", "/fail/conflict", 409),
        ("GET", "/fail/quota", 429),
        ("GET", "/fail/bug", 500),
        ("GET", "/fail/cancel", 500),
        ("OPTIONS", "/greet", 200),
        ("GET", "/stream/three", 200),
        ("HEAD", "/stream/three", 200),
    ],
)
async def test_every_answer_carries_the_headers(
    open_front: Running, at: str, method: str, path: str, status: int
) -> None:
    body = b'{"message":"a"}' if path == "/greet" and method == "POST" else None
    headers = JSON if body else {}
    answer = await open_front.client.request(
        method, at + path, content=body, headers=headers
    )
    assert answer.status_code == status
    check_headers(answer.headers)
    if status >= 400 and method != "HEAD":
        assert set(answer.json()) == {"error", "code"}


@pytest.mark.parametrize("path", ["/api/private", "/v1/private", "/api/nowhere", "/x"])
async def test_refusals_of_the_layer_carry_the_headers(
    locked_front: Running, path: str
) -> None:
    answer = await locked_front.client.get(path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["code"] == "unauthenticated"
    check_headers(answer.headers, private=path != "/x")


async def test_a_rate_limited_answer_says_when_to_come_back(
    open_front: Running,
) -> None:
    open_front.limit_everything()
    answer = await open_front.client.get("/api/health")
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "60"
    assert answer.json() == {"error": "slow down", "code": "rate_limited"}
    check_headers(answer.headers)


async def test_the_request_guard_hears_the_cost_of_the_route(
    open_front: Running,
) -> None:
    cases = open_front.record_cases()
    await open_front.client.get("/api/health")
    await open_front.client.post("/v1/greet", json={"message": "a"})
    await open_front.client.get("/api/nowhere")
    assert [c.cost for c in cases] == [1, 30, 5]
    assert {c.client for c in cases} == {"127.0.0.1"}


async def test_the_servers_own_400_carries_the_headers(open_front: Running) -> None:
    reader, writer = await asyncio.open_connection(open_front.host, open_front.port)
    writer.write(b"NONSENSE\r\n\r\n")
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    assert head.startswith("HTTP/1.1 400")
    assert set(json.loads(body)) == {"error", "code"}
    lines = [line.split(": ", 1) for line in head.split("\r\n")[1:] if line]
    check_headers(httpx.Headers([(k, v) for k, v in lines]))


async def test_a_new_request_id_is_made_for_every_request(
    open_front: Running,
) -> None:
    mine = str(uuid4())
    given = {"x-request-id": mine}
    answers = [
        await open_front.client.get("/api/health", headers=given) for _ in range(2)
    ]
    ids = {a.headers["x-request-id"] for a in answers}
    assert len(ids) == 2
    assert mine not in ids
    assert {c.request_id for c in open_front.seen.calls} == ids


@pytest.mark.parametrize("at", PREFIXES)
async def test_an_unexpected_error_shows_nothing_and_is_counted(
    open_front: Running, at: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "agenthost.front"):
        answer = await open_front.client.get(f"{at}/fail/bug")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert open_front.front.panics == 1
    assert answer.headers["x-request-id"] in caplog.text


@pytest.mark.parametrize("at", PREFIXES)
@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "message: field required"),
        (b"{}", "message: field required"),
        (b'{"message":3}', "message: input should be a valid string"),
        (b'{"message":"a","times":"x"}', "times: input should be a valid integer"),
        (b"{", "body: invalid JSON"),
        (b"[1]", "body: must be a JSON object"),
        (b"null", "body: must be a JSON object"),
        (b'"text"', "body: must be a JSON object"),
        (b"\xff\xfe", "body: invalid JSON"),
        (b'{"message":"\\ud800"}', "body: invalid JSON"),
        (b"[" * 10_000, "body: invalid JSON"),
    ],
)
async def test_a_wrong_body_is_named(
    open_front: Running, at: str, body: bytes, error: str
) -> None:
    answer = await open_front.client.post(f"{at}/greet", content=body, headers=JSON)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(error)
    assert answer.json()["code"] == "invalid_input"


@pytest.mark.parametrize("at", PREFIXES)
@pytest.mark.parametrize("path", ["/greet", "/touch"])
@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/a"]
)
async def test_a_write_with_a_body_must_be_json(
    open_front: Running, at: str, path: str, kind: str | None
) -> None:
    headers = {"content-type": kind} if kind else {}
    answer = await open_front.client.post(
        at + path, content=b'{"message":"a"}', headers=headers
    )
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("content-type: ")


@pytest.mark.parametrize("at", PREFIXES)
async def test_a_write_without_a_body_needs_no_content_type(
    open_front: Running, at: str
) -> None:
    answer = await open_front.client.post(f"{at}/touch")
    assert answer.json() == {"touched": True}


@pytest.mark.parametrize("at", PREFIXES)
@pytest.mark.parametrize(
    "form",
    [
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "6BA7B810-9DAD-11D1-80B4-00C04FD430C8",
        "6ba7b8109dad11d180b400c04fd430c8",
        "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}",
        "urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    ],
)
async def test_a_uuid_may_come_in_any_form(
    open_front: Running, at: str, form: str
) -> None:
    answer = await open_front.client.get(f"{at}/things/{form}")
    assert answer.json() == {"id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}


@pytest.mark.parametrize("at", PREFIXES)
async def test_a_wrong_uuid_names_the_parameter(open_front: Running, at: str) -> None:
    answer = await open_front.client.get(f"{at}/things/seven")
    assert answer.json()["error"] == "thing_id: 'seven' is not a UUID"


@pytest.mark.parametrize("at", PREFIXES)
async def test_a_path_parameter_keeps_slashes(open_front: Running, at: str) -> None:
    answer = await open_front.client.get(f"{at}/keys/a/b%2Fc%20d")
    assert answer.json() == ["a/b/c d"]


@pytest.mark.parametrize("path", ["//api/private", "///v1/private", "/api//private"])
async def test_slashes_are_not_dropped(open_front: Running, path: str) -> None:
    cases = open_front.record_cases()
    target = open_front.client.base_url.copy_with(raw_path=path.encode())
    answer = await open_front.client.get(target)
    assert answer.status_code == 404
    assert [c.path for c in cases] == [path]


@pytest.mark.parametrize("at", PREFIXES)
async def test_a_query_is_validated_for_who_asks(open_front: Running, at: str) -> None:
    good = await open_front.client.get(f"{at}/private?page=1&page=7")
    assert good.json()["page"] == 7
    wrong = await open_front.client.get(f"{at}/private?page=x")
    assert wrong.json()["error"].startswith("page: input should be a valid integer")


@pytest.mark.parametrize("at", PREFIXES)
async def test_a_wrong_method_is_told_the_right_ones(
    open_front: Running, at: str
) -> None:
    answer = await open_front.client.put(f"{at}/health")
    assert answer.status_code == 405
    assert {"GET", "HEAD"} <= set(answer.headers["allow"].split(", "))
    assert answer.json()["code"] == "method_not_allowed"


@pytest.mark.parametrize("at", PREFIXES)
async def test_head_answers_like_get_without_a_body(
    open_front: Running, at: str
) -> None:
    got = await open_front.client.get(f"{at}/health")
    head = await open_front.client.head(f"{at}/health")
    assert head.content == b""
    assert head.headers["content-length"] == got.headers["content-length"]


async def test_only_the_daemons_key_opens(start: Start) -> None:
    front = await start(api_key=KEY)
    bearer = {"authorization": f"Bearer {KEY}"}
    answer = await front.client.get("/api/private", headers=bearer)
    assert answer.json()["who"] == "api_key"
