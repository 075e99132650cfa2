"""The OpenAPI document, judged by a public validator."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from agenthost import Answer, Call, PluginError, RouteGroup
from agenthost_front import openapi
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import create_model

from .conftest import KEY, Running, Start


async def test_the_document_is_valid_and_names_every_route(
    open_front: Running,
) -> None:
    document = (await open_front.client.get("/openapi.json")).json()
    OpenAPIV31SpecValidator(document).validate()
    greet = document["paths"]["/v1/greet"]["post"]
    assert greet["summary"] == "Say it"
    schema = greet["requestBody"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/Greeting"}
    assert {"201", "400", "401", "429", "500"} <= set(greet["responses"])
    thing = document["paths"]["/api/things/{thing_id}"]
    assert set(thing) == {"get", "delete"}
    assert thing["get"]["parameters"][0]["schema"] == {
        "type": "string",
        "format": "uuid",
    }
    assert document["paths"]["/api/health"]["get"]["security"] == []
    assert document["paths"]["/v1/greet"]["post"]["operationId"] == "directly_greet"
    socket = document["paths"]["/api/echo/{thing_id}"]["x-websocket"]
    assert socket["parameters"][0]["schema"]["format"] == "uuid"
    query = document["paths"]["/api/private"]["get"]["parameters"]
    assert [(p["name"], p["in"]) for p in query] == [("page", "query")]


async def test_the_document_is_written_once_and_beside_the_loop(
    open_front: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    by: list[threading.Thread] = []

    def written(described: openapi.Described) -> dict[str, Any]:
        by.append(threading.current_thread())
        return really(described)

    really = openapi.written
    monkeypatch.setattr(openapi, "written", written)
    asked = (open_front.client.get("/openapi.json") for _ in range(3))
    answers = await asyncio.gather(*asked)
    assert len({answer.content for answer in answers}) == 1
    (thread,) = by
    assert thread is not threading.current_thread()


def greetings(name: str, *paths: str) -> RouteGroup:
    group = RouteGroup(name)
    for path in paths:

        @group.get(path, scope="x:read")
        async def hello(call: Call) -> Answer:
            return {}

    return group


async def test_operations_are_named_after_their_tag_and_handler(start: Start) -> None:
    front = await start(greetings("one", "/one"), greetings("two", "/two"))
    document = (await front.client.get("/openapi.json")).json()
    assert document["paths"]["/one"]["get"]["operationId"] == "one_hello"
    assert document["paths"]["/two"]["get"]["operationId"] == "two_hello"


async def test_two_operations_of_one_name_are_refused(start: Start) -> None:
    front = await start(greetings("one", "/one"))
    for again in (greetings("one", "/again"), greetings("new", "/a", "/b")):
        with pytest.raises(PluginError, match="two routes are called"):
            front.front.mount(again)
    assert (await front.client.get("/a")).status_code == 404


async def test_a_key_is_asked_for_only_where_there_is_one(start: Start) -> None:
    keyless, keyed = await start(), await start(api_key=KEY)
    document = (await keyless.client.get("/openapi.json")).json()
    assert document["security"] == [{"key": []}, {}]
    header = {"authorization": f"Bearer {KEY}"}
    document = (await keyed.client.get("/openapi.json", headers=header)).json()
    assert document["security"] == [{"key": []}]


async def test_models_that_are_called_alike_have_titles_of_their_own(
    start: Start,
) -> None:
    group = RouteGroup("alike")
    for place, kind in (("one", int), ("two", str)):
        model = create_model("Thing", __module__=place, size=(kind, ...))

        @group.get(f"/{place}", scope="x:read", answer=model)
        async def hello(call: Call) -> Answer:
            return {}

        hello.__name__ = place
    front = await start(group)
    schemas = (await front.client.get("/openapi.json")).json()["components"]["schemas"]
    titles = [s["title"] for key, s in schemas.items() if key.endswith("Thing")]
    assert sorted(titles) == ["OneThing", "TwoThing"]


async def test_json_stands_before_the_events_of_the_same_answer(start: Start) -> None:
    group = RouteGroup("both")

    @group.post("/both", scope="x:read", answer=dict[str, int], events=dict)
    async def both(call: Call) -> Answer:
        return {}

    document = (await (await start(group)).client.get("/openapi.json")).json()
    content = document["paths"]["/both"]["post"]["responses"]["200"]["content"]
    assert [*content] == ["application/json", "text/event-stream"]
