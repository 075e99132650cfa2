"""The OpenAPI document, judged by a public validator."""

from __future__ import annotations

from openapi_spec_validator import OpenAPIV31SpecValidator

from .conftest import Running


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
    query = document["paths"]["/api/private"]["get"]["parameters"]
    assert [(p["name"], p["in"]) for p in query] == [("page", "query")]
