"""``/openapi.json``: written from the mounted routes when first asked for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from agenthost import Answer, Call, EventStream, Reply, Route, RouteGroup
from agenthost_values.value_class import value_class
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from .answers import to_json
from .dispatch import Converters, Endpoint, SocketEndpoint
from .paths import Template

_REF = "#/components/schemas/{model}"
_ERROR = "#/components/schemas/Error"
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
_OF_WRITES = {
    "408": "The body did not come in time",
    "409": "It is not in a state for this, or somebody was faster",
}
_TEXT = {"type": "string"}
_HEADER = {"type": "string", "pattern": "^[ -~]*$"}
_ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": _TEXT, "code": _TEXT},
}
_ID = {"description": "The request, as the log names it", "schema": _TEXT}
_WAIT = {
    "description": "Seconds until it may be tried again",
    "schema": {"type": "integer"},
}
_HEADERS = {"RequestId": _ID, "RetryAfter": _WAIT}
_READS = frozenset({"GET", "HEAD"})

Key = tuple[Any, JsonSchemaMode]
Schemas = dict[Any, dict[str, Any]]


@value_class
class Described:
    """What there is to describe, once ``complete`` was awaited.

    ``open`` says that no key is asked for.
    """

    routes: Sequence[Endpoint]
    sockets: Sequence[tuple[Template, SocketEndpoint]]
    open: bool
    complete: Callable[[], Awaitable[None]]


def description(described: Described) -> RouteGroup:
    """The group that serves the document, made at the first request."""
    group = RouteGroup("openapi")
    made: list[bytes] = []
    making = asyncio.Lock()

    @group.get("/openapi.json", scope="system:read", answer=dict[str, Any])
    async def document(_call: Call) -> Answer:
        """Describe this API as OpenAPI 3.1."""
        async with making:
            if not made:
                await described.complete()
                # It takes half a second, in which the loop has others to serve.
                made.append(await asyncio.to_thread(_whole, described))
        return Reply(made[0], headers={"content-type": "application/json"})

    return group


def _whole(described: Described) -> bytes:
    return to_json(written(described))


def written(described: Described) -> dict[str, Any]:
    """Write the OpenAPI 3.1 document."""
    from agenthost import __version__

    schemas, components = _schemas(described.routes)
    paths: dict[str, dict[str, Any]] = {}
    names: set[str] = set()
    for number, one in enumerate(described.routes):
        operation = _operation(one, number, schemas)
        # Quart code may use one view for several paths; then only the first has a name.
        if operation["operationId"] in names:
            del operation["operationId"]
        else:
            names.add(operation["operationId"])
        paths.setdefault(one.template.openapi, {})[one.route.method.lower()] = operation
    for template, socket in described.sockets:
        paths.setdefault(template.openapi, {})["x-websocket"] = _socket(socket)
    anyone: list[dict[str, Any]] = [{}] if described.open else []
    return {
        "openapi": "3.1.0",
        "info": {"title": "agenthost", "version": __version__},
        "servers": [{"url": "/"}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {**components, "Error": _ERROR_SCHEMA},
            "headers": _HEADERS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, *anyone],
    }


def _schemas(endpoints: Sequence[Endpoint]) -> tuple[Schemas, dict[str, Any]]:
    inputs: list[tuple[Any, JsonSchemaMode, TypeAdapter[Any]]] = []
    for number, one in enumerate(endpoints):
        for name, kind in _kinds(one.route):
            adapter = TypeAdapter[Any](kind)
            mode: JsonSchemaMode = "validation" if name == "body" else "serialization"
            inputs.append(((number, name), mode, adapter))
    found, definitions = TypeAdapter.json_schemas(
        inputs, ref_template=_REF, schema_generator=GenerateJsonSchema
    )
    schemas: Schemas = {key: schema for (key, _), schema in found.items()}
    return schemas, {
        key: _titled(key, schema)
        for key, schema in definitions.get("$defs", {}).items()
    }


def _titled(key: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give models that are called alike titles by the modules that they are of.

    Generators of clients name their classes by titles.
    """
    if "__" not in key:
        return schema
    words = key.replace("_", " ").split()
    return {**schema, "title": "".join(word[:1].upper() + word[1:] for word in words)}


def _kinds(route: Route) -> Iterator[tuple[Any, Any]]:
    """Everything of a route that has a schema, by what it is."""
    body = route.body
    if body is not None and issubclass(body, BaseModel):
        yield "body", body
    if route.answer not in {None, EventStream}:
        yield "answer", route.answer
    if route.events is not None:
        yield "events", route.events
    yield from route.others.items()


def operation_id(endpoint: Endpoint) -> str:
    """Name an operation: its group and its handler; an endpoint of Quart's as it is."""
    if endpoint.quart_name is not None:
        return endpoint.quart_name.replace(".", "_")
    name = getattr(endpoint.route.handler, "__name__", endpoint.route.method.lower())
    return f"{endpoint.group}_{name}".replace(".", "_")


def _operation(endpoint: Endpoint, number: int, schemas: Schemas) -> dict[str, Any]:
    route = endpoint.route
    told = inspect.getdoc(route.handler) or ""
    summary, _, more = told.partition("\n")
    operation: dict[str, Any] = {
        "operationId": operation_id(endpoint),
        "tags": [endpoint.group],
        "parameters": [
            *_path_parameters(endpoint),
            *_query_parameters(endpoint),
            *_header_parameters(route),
        ],
        "responses": _responses(endpoint, number, schemas),
    }
    if summary:
        operation["summary"] = summary.strip().rstrip(".")
    if more.strip():
        operation["description"] = more.strip()
    if route.body is not None:
        operation["requestBody"] = _request_body(route, schemas.get((number, "body")))
    if route.public:
        operation["security"] = []
    return operation


def _socket(socket: SocketEndpoint) -> dict[str, Any]:
    told = inspect.getdoc(socket.route.handler) or ""
    return {
        "summary": told.partition("\n")[0].rstrip("."),
        "parameters": _parameters(socket.converters),
    }


def _request_body(route: Route, schema: dict[str, Any] | None) -> dict[str, Any]:
    body = route.body
    if schema is None or body is None or not issubclass(body, BaseModel):
        return {"content": dict(route.takes or {"application/octet-stream": {}})}
    needed = any(field.is_required() for field in body.model_fields.values())
    return {"required": needed, "content": {"application/json": {"schema": schema}}}


def _parameters(converters: Converters) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": dict(converter.schema)}
        for name, converter in converters
    ]


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    if endpoint.quart_name is None:
        return _parameters(endpoint.converters)
    return [
        {"name": name, "in": "path", "required": True, "schema": _TEXT}
        for name in endpoint.template.names
    ]


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    model = endpoint.route.query
    if model is None:
        return []
    schema = model.model_json_schema(ref_template=_REF)
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": one}
        for name, one in schema.get("properties", {}).items()
    ]


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "description": meaning, "schema": _HEADER}
        for name, meaning in route.headers.items()
    ]


def _success(route: Route, number: int, schemas: Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if route.answer is None:
        return {route.media: {}}
    if route.answer is not EventStream:
        # It comes first, since generators of clients take the first that they know.
        content[route.media] = {"schema": schemas.get((number, "answer"), {})}
    if route.answer is EventStream or route.events is not None:
        # OpenAPI 3.1 has no word for the events of a stream: the schema is that of each
        # one, and what its data say stands beside it.
        events = schemas.get((number, "events"))
        told = {} if events is None else {"x-events": events}
        content["text/event-stream"] = {"schema": _event(route), **told}
    return content


def _event(route: Route) -> dict[str, Any]:
    data = {"type": "string", "contentMediaType": "application/json"}
    names = list(getattr(route.events, "__annotations__", ()))
    event = {"type": "string", "enum": names} if names else _TEXT
    return {
        "type": "object",
        "required": ["data"],
        "properties": {"event": event, "data": data, "id": _TEXT},
    }


def _responses(endpoint: Endpoint, number: int, schemas: Schemas) -> dict[str, Any]:
    route = endpoint.route
    request_id = {"x-request-id": {"$ref": "#/components/headers/RequestId"}}
    wait = {"retry-after": {"$ref": "#/components/headers/RetryAfter"}}
    responses: dict[str, Any] = {
        str(route.status): {
            "description": "Success",
            "headers": request_id,
            "content": _success(route, number, schemas),
        }
    }
    errors = dict(_ERRORS)
    if route.method not in _READS:
        errors |= _OF_WRITES
    for status, meaning in sorted(errors.items()):
        responses[status] = {
            "description": meaning,
            "headers": request_id | wait if status in {"429", "503"} else request_id,
            "content": {"application/json": {"schema": {"$ref": _ERROR}}},
        }
    for code, body in route.others.items():
        told: dict[str, Any] = {"description": "No body", "headers": request_id}
        if body is not None:
            content = {"application/json": {"schema": schemas[number, code]}}
            told |= {"description": "See its body", "content": content}
        responses[str(code)] = told
    return responses
