"""Agents as models, in two vendors' words, and embeddings."""

from __future__ import annotations

import base64
import math
from array import array
from typing import Any

import httpx
import pytest
from agenthost.testing.daemons import Daemons, RunningDaemon

KEY = "a-key-of-this-test-0123456"
VERSION = {"anthropic-version": "2023-06-01"}


async def test_agents_are_listed_oldest_first(daemon: RunningDaemon) -> None:
    for name in ("zoe", "ada"):
        await daemon.agent(name)
    listed = (await daemon.http.get("/v1/models")).json()
    assert listed["object"] == "list"
    assert [each["id"] for each in listed["data"]] == ["service:zoe", "service:ada"]
    one = (await daemon.http.get("/v1/models/service:ada")).json()
    assert one == listed["data"][1]
    agent = daemon.daemon.agents.find("ada")
    assert one == {
        "id": "service:ada",
        "object": "model",
        "created": int(agent.created_at),
        "owned_by": "agenthost",
    }


async def test_a_model_is_shown_by_its_listed_id_alone(daemon: RunningDaemon) -> None:
    agent = await daemon.agent("ada")
    for name in (
        "ada",
        agent.id,
        f"service:{agent.id}",
        "service:bob",
        "gpt-4o",
        "a/b",
    ):
        answer = await daemon.http.get(f"/v1/models/{name}")
        assert answer.status_code == 404, name
        assert answer.json()["code"] == "model_not_found"


async def test_anthropics_clients_read_a_list_of_theirs(daemons: Daemons) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    shown = {**VERSION, "x-api-key": KEY}
    empty = (await daemon.http.get("/v1/models", headers=shown)).json()
    assert empty == {"data": [], "has_more": False, "first_id": None, "last_id": None}
    daemon.http.headers["authorization"] = f"Bearer {KEY}"
    await daemon.agent("ada")
    del daemon.http.headers["authorization"]
    listed = (await daemon.http.get("/v1/models", headers=shown)).json()
    (row,) = listed["data"]
    assert (row["type"], row["id"], row["display_name"]) == (
        "model",
        "service:ada",
        "ada",
    )
    assert row["created_at"].endswith("Z")
    assert listed["first_id"] == listed["last_id"] == "service:ada"
    one = await daemon.http.get("/v1/models/service:ada", headers=shown)
    assert one.json() == row


async def test_a_key_in_a_header_of_its_own_is_judged_as_any_other(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    good, bad = {"x-api-key": KEY}, {"x-api-key": "wrong"}
    other = {**good, "authorization": "Bearer wrong"}
    for headers, status in ((good, 200), (bad, 401), (other, 401), ({}, 401)):
        answer = await daemon.http.get("/v1/models", headers=headers)
        assert answer.status_code == status, headers
    native = await daemon.http.get("/api/agents", headers=good)
    assert native.status_code == 401


async def embed(daemon: RunningDaemon, **body: Any) -> httpx.Response:
    asked = {"model": "default", "input": "hello", **body}
    return await daemon.http.post("/v1/embeddings", json=asked)


async def test_texts_become_vectors(daemon: RunningDaemon) -> None:
    answer = (await embed(daemon, input=["hello", "world", "hello"])).json()
    assert (answer["object"], answer["model"].split("/")[0]) == ("list", "offline")
    rows = answer["data"]
    assert [row["index"] for row in rows] == [0, 1, 2]
    assert rows[0]["embedding"] == rows[2]["embedding"] != rows[1]["embedding"]
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] > 0
    named = (await embed(daemon, model=answer["model"])).json()
    assert named["data"][0]["embedding"] == rows[0]["embedding"]


async def test_vectors_may_come_as_base64_and_be_shorter(daemon: RunningDaemon) -> None:
    plain = (await embed(daemon)).json()["data"][0]["embedding"]
    coded = (await embed(daemon, encoding_format="base64")).json()
    numbers = array("f", base64.b64decode(coded["data"][0]["embedding"]))
    assert list(numbers) == pytest.approx(plain, abs=1e-6)
    words = " ".join(map(str, range(100)))
    rows = (await embed(daemon, input=words, dimensions=100)).json()["data"]
    short = rows[0]["embedding"]
    assert len(short) == 100
    assert math.hypot(*short) == pytest.approx(1)
    whole = (await embed(daemon, dimensions=len(plain))).json()
    assert whole["data"][0]["embedding"] == plain


async def test_more_texts_than_one_call_takes_are_embedded(
    daemon: RunningDaemon,
) -> None:
    texts = [f"text {n}" for n in range(1_030)]
    rows = (await embed(daemon, input=texts, dimensions=2)).json()["data"]
    assert [row["index"] for row in rows] == [*range(1_030)]


BAD: tuple[tuple[dict[str, Any], str], ...] = (
    ({"input": ""}, "input.0"),
    ({"input": ["x", ""]}, "input.1"),
    ({"input": []}, "input"),
    ({"input": [[1, 2]]}, "input"),
    ({"input": ["x"] * 2_049}, "input"),
    ({"model": "nobody/has-this"}, "model"),
    ({"encoding_format": "hex"}, "encoding_format"),
    ({"dimensions": 0}, "dimensions"),
    ({"dimensions": 100_000}, "dimensions"),
)


async def test_what_cannot_be_embedded_names_its_field(daemon: RunningDaemon) -> None:
    for body, param in BAD:
        answer = await embed(daemon, **body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["param"].startswith(param)
