"""From a request to a handler's call: one way for every route."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl
from uuid import UUID

from agenthost import (
    Call,
    EventStream,
    InvalidInput,
    PluginError,
    Principal,
    Route,
    SocketRoute,
    authorize,
)
from agenthost_values.value_class import value_class
from pydantic import BaseModel, ValidationError

from .access import ANONYMOUS
from .admission import Admission
from .answers import ErrorMap, Plain, encode
from .paths import Template, parse

if TYPE_CHECKING:
    from agenthost import Host

EXCHANGE = "agenthost.exchange"
STARRED = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@value_class
class Converter:
    """How a path parameter is read, and its JSON schema."""

    read: Callable[[str, str], Any]
    schema: Mapping[str, str]


Converters = tuple[tuple[str, Converter], ...]


@dataclass(slots=True)
class Exchange:
    """One request on its way through the layer; ``found`` is its :class:`Endpoint`.

    ``texts`` are the parameters of its path, as they stand there.
    ``admission`` is there when a plugin told who asks.
    """

    request_id: str
    method: str
    path: str
    client: str
    headers: dict[str, str]
    query_string: bytes
    principal: Principal = ANONYMOUS
    body: bytes = b""
    stream: EventStream | None = None
    found: object = None
    texts: Sequence[str] = ()
    admission: Admission | None = None
    query: dict[str, str] = field(default_factory=dict)

    def call(self, host: Host) -> Call:
        """The request as handlers see it."""
        return Call(
            host,
            self.principal,
            self.client,
            self.request_id,
            self.query,
            self.headers,
        )


@value_class
class Endpoint:
    """A route with all that its handler's signature says, found out once.

    ``quart_name`` is Quart's name of a route that a plugin wrote for Quart itself.
    """

    group: str
    route: Route
    template: Template
    converters: Converters
    takes_query: bool
    quart_name: str | None = None


@value_class
class SocketEndpoint:
    """A WebSocket route, likewise."""

    group: str
    route: SocketRoute
    converters: Converters


def bind(group: str, route: Route) -> Endpoint:
    """Find out what a route's handler wants.

    Raises:
        PluginError: The handler and the route do not fit each other.
    """
    where = f"{group}: {route.method} {route.path}"
    template = parse(route.path)
    wanted = _parameters(route.handler)
    known = set(template.names)
    if route.body is not None:
        known.add("body")
    if route.query is not None and "query" in wanted:
        known.add("query")
    if set(wanted) != known:
        raise PluginError(
            f"{where}: the handler takes {sorted(wanted)} beside the call, "
            f"the route offers {sorted(known)}"
        )
    return Endpoint(
        group, route, template, _converters(template, wanted, route), "query" in known
    )


def bind_socket(group: str, route: SocketRoute) -> tuple[Template, SocketEndpoint]:
    """Find out what a socket's handler wants.

    Raises:
        PluginError: The handler and the route do not fit each other.
    """
    template = parse(route.path)
    wanted = _parameters(route.handler)
    if set(wanted) != set(template.names):
        raise PluginError(
            f"{group}: WebSocket {route.path}: the handler takes {sorted(wanted)} "
            f"beside the socket, the route offers {sorted(template.names)}"
        )
    converters = _converters(template, wanted, route)
    return template, SocketEndpoint(group, route, converters)


def _parameters(handler: Callable[..., Any]) -> dict[str, Any]:
    """Give a handler's parameters behind the call, each with its annotation."""
    own = 1 if inspect.ismethod(handler) else 0
    function = handler.__func__ if inspect.ismethod(handler) else handler
    # A plain function tells by itself what takes inspect many times as long.
    if inspect.isfunction(function) and not vars(function):
        code, notes = function.__code__, function.__annotations__
        if not code.co_flags & STARRED:
            end = code.co_argcount + code.co_kwonlyargcount
            names = code.co_varnames[own + 1 : end]
            return {name: notes.get(name, inspect.Parameter.empty) for name in names}
    signature = inspect.signature(handler)
    return {p.name: p.annotation for p in [*signature.parameters.values()][1:]}


def _converters(
    template: Template, wanted: Mapping[str, Any], route: Route | SocketRoute
) -> Converters:
    names = getattr(route.handler, "__globals__", {})
    found = []
    for name in template.names:
        annotation = wanted[name]
        if isinstance(annotation, str):
            annotation = names.get(annotation, annotation)
        found.append((name, _CONVERTERS.get(annotation, _TEXT)))
    return tuple(found)


def read_values(converters: Converters, texts: Sequence[str]) -> dict[str, Any]:
    """Convert a path's parameters, given in order.

    Raises:
        InvalidInput: One is not what the handler wants.
    """
    return {
        name: converter.read(name, text)
        for (name, converter), text in zip(converters, texts, strict=True)
    }


def _as_text(_name: str, text: str) -> str:
    return text


def _as_uuid(name: str, text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidInput(name, f"{text[:64]!r} is not a UUID") from error


def _as_int(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidInput(name, f"{text[:64]!r} is not a whole number")
    return int(text)


_TEXT = Converter(_as_text, {"type": "string"})
_UUID = Converter(_as_uuid, {"type": "string", "format": "uuid"})
_INT = Converter(_as_int, {"type": "integer"})
_CONVERTERS: dict[Any, Converter] = {
    UUID: _UUID,
    "UUID": _UUID,
    "uuid.UUID": _UUID,
    int: _INT,
    "int": _INT,
}


Refused = Callable[[Exchange, BaseException], object]
"""Told of what was raised instead of an answer: it may be a refusal."""


class Dispatcher:
    """Runs handlers: for the layer's own routes and for Quart's views alike."""

    def __init__(self, host: Host, errors: ErrorMap, refused: Refused) -> None:
        self._host = host
        self._errors = errors
        self._refused = refused

    def offers(self, route: Route, path: str) -> bool:
        """Tell whether a route that is not always there is there now."""
        return not callable(route.public) or route.public(self._host, path)

    async def perform(
        self, endpoint: Endpoint, exchange: Exchange, texts: Sequence[str]
    ) -> Plain | EventStream:
        """Run a handler; an error becomes its answer."""
        try:
            return await self._invoke(endpoint, exchange, texts)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return self._errors.answer(error, exchange.request_id, endpoint.route)
        except Exception as error:  # noqa: BLE001 - the error map decides
            self._refused(exchange, error)
            return self._errors.answer(error, exchange.request_id, endpoint.route)

    async def _invoke(
        self, endpoint: Endpoint, exchange: Exchange, texts: Sequence[str]
    ) -> Plain | EventStream:
        route = endpoint.route
        if exchange.admission is not None:
            exchange.admission.check()
        if not route.public:
            authorize(exchange.principal, "route", route.scope)
        values = read_values(endpoint.converters, texts)
        if route.body is not None:
            values["body"] = _body(route.body, exchange)
        elif exchange.body and exchange.method in WRITES:
            _require_json(exchange.headers)
        if endpoint.takes_query and route.query is not None:
            values["query"] = _query(route.query, exchange.query)
        answer = await route.handler(exchange.call(self._host), **values)
        return encode(answer, route.status)


def read_query(query_string: bytes) -> dict[str, str]:
    """Read a query string; of a parameter given twice the last counts.

    Raises:
        InvalidInput: It has more than a hundred parameters.
    """
    try:
        pairs = parse_qsl(
            query_string.decode("latin-1"), keep_blank_values=True, max_num_fields=100
        )
    except ValueError as error:
        raise InvalidInput("query", "more than 100 parameters") from error
    return dict(pairs)


def _query(model: type[BaseModel], query: Mapping[str, str]) -> BaseModel:
    try:
        return model.model_validate(query)
    except ValidationError as error:
        raise _in_words(error, "query") from error


def _body(model: type[BaseModel] | type[bytes], exchange: Exchange) -> Any:
    if not issubclass(model, BaseModel):
        return exchange.body
    if exchange.body:
        _require_json(exchange.headers)
    try:
        return model.model_validate_json(exchange.body or b"{}")
    except ValidationError as error:
        raise _in_words(error, "body") from error


def _require_json(headers: Mapping[str, str]) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (
        kind.startswith("application/") and kind.endswith("+json")
    ):
        raise InvalidInput("content-type", "a body must be sent as application/json")


def _in_words(error: ValidationError, whole: str) -> InvalidInput:
    first = error.errors(include_url=False, include_context=False, include_input=False)[
        0
    ]
    problem = first["msg"].removeprefix("Value error, ")
    if first["type"] in {"model_type", "model_attributes_type", "dict_type"}:
        problem = "must be a JSON object"
    field = ".".join(str(part) for part in first["loc"]) or whole
    return InvalidInput(field, problem[:1].lower() + problem[1:])
