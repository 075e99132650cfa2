"""The OpenAPI document of a whole daemon."""

from __future__ import annotations

from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.routes import route_groups
from openapi_spec_validator import OpenAPIV31SpecValidator


async def test_the_document_of_a_whole_daemon_is_valid_and_names_every_route(
    daemon: RunningDaemon,
) -> None:
    answer = await daemon.http.get("/openapi.json")
    assert answer.status_code == 200, answer.text
    document = answer.json()
    OpenAPIV31SpecValidator(document).validate()
    for _, group in route_groups(daemon):
        for route in group.routes:
            path = route.path.replace("<path:", "<")
            path = path.replace("<", "{").replace(">", "}")
            assert route.method.lower() in document["paths"][path], path
    stream = document["paths"]["/api/agents/{agent_id}/message/stream"]["post"]
    assert list(stream["responses"]["200"]["content"]) == ["text/event-stream"]
    page = document["paths"]["/static/{path}"]["get"]
    assert list(page["responses"]["200"]["content"]) == ["*/*"]


async def test_a_key_is_marked_as_a_secret(daemon: RunningDaemon) -> None:
    document = (await daemon.http.get("/openapi.json")).json()
    key = document["components"]["schemas"]["SetKey"]["properties"]["api_key"]
    assert {"type": "string", "format": "password", "writeOnly": True} in key["anyOf"]


async def test_an_upload_is_documented_as_a_form(daemon: RunningDaemon) -> None:
    document = (await daemon.http.get("/openapi.json")).json()
    body = document["paths"]["/api/agents/{agent_id}/files"]["post"]["requestBody"]
    schema = body["content"]["multipart/form-data"]["schema"]
    assert schema["required"] == ["file"]
