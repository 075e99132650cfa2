"""Errors as Anthropic's clients read them, and the keys they send."""

from __future__ import annotations

import pytest
from agenthost import ProviderFault
from agenthost.testing.daemons import Daemons, RunningDaemon

from .asking import PATH, ask, asked

KEY = "a-key-of-this-test-0123456"
COUNT = f"{PATH}/count_tokens"
KEYS: tuple[tuple[dict[str, str], int], ...] = (
    ({"x-api-key": KEY}, 200),
    ({"authorization": f"Bearer {KEY}"}, 200),
    ({"authorization": f"bearer {KEY}", "x-api-key": KEY}, 200),
    ({"x-api-key": "wrong"}, 401),
    ({"x-api-key": ""}, 401),
    ({"authorization": f"Bearer {KEY}", "x-api-key": "wrong"}, 401),
    ({"authorization": "Bearer wrong", "x-api-key": KEY}, 401),
    ({"authorization": f"Basic {KEY}", "x-api-key": KEY}, 401),
    ({}, 401),
)


async def test_a_key_may_stand_in_two_headers_if_it_is_one(daemons: Daemons) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    agents = {"authorization": f"Bearer {KEY}"}
    manifest = {"manifest_toml": 'name = "ada"\n'}
    await daemon.http.post("/api/agents", json=manifest, headers=agents)
    for path in (PATH, COUNT, "/v1/models"):
        for headers, status in KEYS:
            method = "GET" if path == "/v1/models" else "POST"
            body = None if method == "GET" else asked()
            answer = await daemon.http.request(method, path, json=body, headers=headers)
            assert answer.status_code == status, (path, headers, answer.text)
    chat = await daemon.http.post(
        "/v1/chat/completions", json=asked(), headers={"x-api-key": KEY}
    )
    assert chat.status_code == 401


@pytest.mark.conformance
async def test_two_keys_in_one_header_are_refused(daemons: Daemons) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    headers = [("x-api-key", KEY), ("x-api-key", "other")]
    answer = await daemon.http.post(PATH, json=asked(), headers=headers)
    assert answer.status_code == 400


@pytest.mark.conformance
async def test_who_may_not_message_is_told_so(daemons: Daemons) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    daemon.http.headers["authorization"] = f"Bearer {KEY}"
    await daemon.agent("ada")
    made = await daemon.http.post("/api/keys", json={"name": "r", "scopes": ["read"]})
    del daemon.http.headers["authorization"]
    shown = {"x-api-key": made.json()["key"]}
    for path in (PATH, COUNT):
        answer = await daemon.http.post(path, json=asked(), headers=shown)
        assert answer.status_code == 403
        assert answer.json()["error"]["type"] == "permission_error"


async def test_an_error_has_anthropics_shape(daemons: Daemons) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    shown = {"x-api-key": KEY}
    for body, headers, status, kind in (
        (asked(), {}, 401, "authentication_error"),
        (asked(), shown, 404, "not_found_error"),
        ({}, shown, 400, "invalid_request_error"),
    ):
        answer = await daemon.http.post(PATH, json=body, headers=headers)
        assert answer.status_code == status
        told = answer.json()
        assert told.pop("request_id") == answer.headers["request-id"]
        assert told["error"].pop("message")
        assert told["error"].pop("details")["error_code"]
        assert told == {"type": "error", "error": {"type": kind}}


@pytest.mark.conformance
async def test_a_thread_is_refused_so_that_clients_send_all(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    answer = await ask(daemon, thread={"type": "create"})
    code = answer.json()["error"]["details"]["error_code"]
    assert (answer.status_code, code) == (400, "thread_unsupported_request")


@pytest.mark.conformance
async def test_a_body_over_the_limit_is_too_large(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    answer = await ask(daemon, system="x" * (20 * 1024 * 1024))
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "request_too_large"
    assert answer.headers["request-id"]


@pytest.mark.conformance
async def test_a_provider_that_has_too_much_to_do_is_529(daemons: Daemons) -> None:
    daemon = await daemons.start(config="[attempts]\nmost_calls = 1\n")
    await daemon.agent("ada")
    for stream in (False, True):
        daemon.model.fails(ProviderFault.OVERLOADED)
        answer = await ask(daemon, stream=stream)
        assert answer.status_code == 529, answer.text
        error = answer.json()["error"]
        assert error["type"] == "overloaded_error"
        assert error["details"] == {"error_code": "overloaded"}


@pytest.mark.conformance
@pytest.mark.parametrize("stream", [False, True])
async def test_a_budget_without_room_is_429(
    daemon: RunningDaemon, *, stream: bool
) -> None:
    limit = "[resources]\nmax_llm_tokens_per_hour = 10\n"
    await daemon.agent("ada", extra=limit)
    await ask(daemon)
    answer = await ask(daemon, stream=stream)
    assert answer.status_code == 429, answer.text
    assert answer.json()["error"]["type"] == "rate_limit_error"
    assert answer.headers["retry-after"]


@pytest.mark.conformance
async def test_a_model_that_is_not_there_is_told_in_their_shape(
    daemon: RunningDaemon,
) -> None:
    url = "/v1/models/service:nobody"
    headers = {"anthropic-version": "2023-06-01"}
    answer = await daemon.http.get(url, headers=headers)
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "not_found_error"
    assert answer.json()["request_id"] == answer.headers["request-id"]
    plain = await daemon.http.get(url)
    assert isinstance(plain.json()["error"], str)
