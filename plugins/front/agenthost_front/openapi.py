"""``/openapi.json``: written from the mounted routes when first asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenthost import Answer, Call, EventStream, Reply, RouteGroup
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from .answers import to_json
from .dispatch import Bound

_REF = "#/components/schemas/{model}"
_ERRORS = {
    "400": "Something in the request is wrong; the text names the field",
    "401": "The key is missing or wrong",
    "403": "Not allowed, or the host or origin is not served",
    "404": "It does not exist",
    "413": "The body is over its limit",
    "429": "Too many requests, or a quota is used up",
    "500": "Something failed",
    "503": "The daemon is shutting down, or its store cannot be reached",
    "default": "Whatever else went wrong",
}
_TEXT = {"type": "string"}
_ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": _TEXT, "code": _TEXT},
}

Key = tuple[Any, JsonSchemaMode]
Schemas = dict[Any, dict[str, Any]]


def description(bound: Sequence[Bound]) -> RouteGroup:
    """The group that serves the document of ``bound``, made at the first request."""
    group = RouteGroup("openapi")
    made: list[bytes] = []

    @group.get("/openapi.json", scope="system:read")
    async def openapi(_call: Call) -> Answer:
        """Describe this API as OpenAPI 3.1."""
        if not made:
            made.append(to_json(document(bound)))
        return Reply(made[0], headers={"content-type": "application/json"})

    return group


def document(bound: Sequence[Bound]) -> dict[str, Any]:
    """Write the OpenAPI 3.1 document of these routes."""
    from agenthost import __version__

    schemas, components = _schemas(bound)
    paths: dict[str, dict[str, Any]] = {}
    for number, one in enumerate(bound):
        item = paths.setdefault(one.template.openapi, {})
        item[one.route.method.lower()] = _operation(one, number, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "agenthost", "version": __version__},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {**components, "Error": _ERROR_SCHEMA},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def _schemas(bound: Sequence[Bound]) -> tuple[Schemas, dict[str, Any]]:
    inputs: list[tuple[Any, JsonSchemaMode, TypeAdapter[Any]]] = []
    for number, one in enumerate(bound):
        route = one.route
        body = route.body
        if body is not None and issubclass(body, BaseModel):
            adapter = TypeAdapter[Any](body)
            inputs.append(((number, "body"), "validation", adapter))
        if route.answer not in {None, EventStream}:
            adapter = TypeAdapter[Any](route.answer)
            inputs.append(((number, "answer"), "serialization", adapter))
    found, definitions = TypeAdapter.json_schemas(
        inputs, ref_template=_REF, schema_generator=GenerateJsonSchema
    )
    schemas: Schemas = {key: schema for (key, _), schema in found.items()}
    return schemas, definitions.get("$defs", {})


def _operation(bound: Bound, number: int, schemas: Schemas) -> dict[str, Any]:
    route = bound.route
    text = (route.handler.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    operation: dict[str, Any] = {
        "operationId": f"{_name(bound)}_{number}",
        "tags": [bound.group],
        "parameters": [*_path_parameters(bound), *_query_parameters(bound)],
        "responses": _responses(bound, schemas.get((number, "answer"), {})),
    }
    if text:
        operation["summary"] = text
    if route.body is not None:
        operation["requestBody"] = _request_body(schemas.get((number, "body")))
    if route.public:
        operation["security"] = []
    return operation


def _name(bound: Bound) -> str:
    name = getattr(bound.route.handler, "__name__", bound.route.method.lower())
    return f"{bound.group}_{name}"


def _request_body(schema: dict[str, Any] | None) -> dict[str, Any]:
    if schema is None:
        return {"content": {"application/octet-stream": {}}}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _path_parameters(bound: Bound) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": dict(converter.schema)}
        for name, converter in bound.converters
    ]


def _query_parameters(bound: Bound) -> list[dict[str, Any]]:
    model = bound.route.query
    if model is None:
        return []
    schema = model.model_json_schema(ref_template=_REF)
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": one}
        for name, one in schema.get("properties", {}).items()
    ]


def _success(answer: Any, schema: dict[str, Any]) -> dict[str, Any]:
    if answer is None:
        return {"*/*": {}}
    if answer is EventStream:
        return {"text/event-stream": {}}
    return {"application/json": {"schema": schema}}


def _responses(bound: Bound, schema: dict[str, Any]) -> dict[str, Any]:
    error = {"schema": {"$ref": "#/components/schemas/Error"}}
    responses: dict[str, Any] = {
        str(bound.route.status): {
            "description": "Success",
            "content": _success(bound.route.answer, schema),
        }
    }
    for status, meaning in _ERRORS.items():
        responses[status] = {
            "description": meaning,
            "content": {"application/json": error},
        }
    return responses
