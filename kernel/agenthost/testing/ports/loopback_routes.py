"""What the loopback front serves: routes by path, and how a handler is called."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from ...errors import AgentHostError, InvalidInput, NotFound, PluginError
from ...routes import Answer, Call, EventStream, Reply, Route, RouteGroup, SocketRoute

SOCKET = "WEBSOCKET"
LIMIT = 1 << 20
_PARAMETER = re.compile(r"<(path:)?(\w+)>")
_READERS: Mapping[Any, Callable[[str], Any]] = {"int": int, int: int} | {
    "UUID": UUID,
    UUID: UUID,
}


class MethodNotAllowed(AgentHostError):
    """The path is there, and does not take the method."""

    status = 405
    code = "method_not_allowed"


@dataclass(frozen=True, slots=True)
class Plain:
    """A whole answer."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)


@dataclass(frozen=True, slots=True)
class Place:
    """A route and where it is; ``order`` puts words before parameters."""

    method: str
    path: re.Pattern[str]
    order: tuple[str, ...]
    route: Route | SocketRoute

    @classmethod
    def of(cls, method: str, route: Route | SocketRoute) -> Place:
        """Find out where a route is and what its handler wants.

        Raises:
            PluginError: The two do not fit each other.
        """
        names = [found[2] for found in _PARAMETER.finditer(route.path)]
        body = getattr(route, "body", None)
        wanted = list(inspect.signature(route.handler).parameters)[1:]
        known = {*names, *(["body"] if body is not None else [])}
        if "query" in wanted and getattr(route, "query", None) is not None:
            known.add("query")
        if set(wanted) != known or len(names) != len(set(names)):
            raise PluginError(f"{method} {route.path}: its handler takes {wanted}")
        pieces = _PARAMETER.split(route.path)
        # Three by three: a word, whether a parameter takes all, and its name.
        pattern = re.escape(pieces[0])
        order = [pieces[0]]
        for at in range(1, len(pieces), 3):
            whole, name, word = pieces[at : at + 3]
            pattern += f"(?P<{name}>{'.+' if whole else '[^/]+'})" + re.escape(word)
            order += ["\U0010ffff" * (2 if whole else 1), word]
        return cls(method, re.compile(pattern, re.DOTALL), tuple(order), route)

    def values(self, path: str) -> dict[str, Any]:
        """Read the parameters as the handler wants them.

        Raises:
            InvalidInput: One is not what it wants.
        """
        match = self.path.fullmatch(path)
        found = match.groupdict() if match else {}
        parameters = inspect.signature(self.route.handler).parameters
        values: dict[str, Any] = {}
        for name, text in found.items():
            read = _READERS.get(parameters[name].annotation, str)
            try:
                values[name] = read(text)
            except ValueError as error:
                raise InvalidInput(name, f"{text[:100]!r} is none") from error
        return values


class Places:
    """All routes of a front."""

    def __init__(self) -> None:
        self._all: list[Place] = []

    def add(self, group: RouteGroup) -> None:
        """Take up a group, wholly or not.

        Raises:
            PluginError: A path is taken, or a handler does not fit its route.
        """
        more = [Place.of(route.method, route) for route in group.routes]
        more += [Place.of(SOCKET, route) for route in group.sockets]
        taken = [(each.method, each.order) for each in (*self._all, *more)]
        if len(set(taken)) != len(taken):
            raise PluginError(f"route group {group.name!r}: a path of it is taken")
        self._all = sorted([*self._all, *more], key=lambda each: each.order)

    def find(self, method: str, path: str) -> Place | AgentHostError:
        """Find a route; HEAD is served by GET. Else give what is to be told."""
        wanted = "GET" if method == "HEAD" else method
        there = [each for each in self._all if each.path.fullmatch(path)]
        for place in there:
            if place.method == wanted:
                return place
        if there:
            return MethodNotAllowed(f"{method} is not served here")
        return NotFound("path", path[:200])


async def answer_of(
    place: Place, values: Mapping[str, Any], call: Call, body: bytes
) -> Plain | EventStream:
    """Call a handler, and write what it answers.

    Raises:
        InvalidInput: The body or the query is not what the route wants.
        BaseException: Whatever the handler raises.
    """
    route = place.route
    assert isinstance(route, Route)
    given = dict(values)
    if route.body is not None:
        given["body"] = _body(route.body, call.headers, body)
    if (
        route.query is not None
        and "query" in inspect.signature(route.handler).parameters
    ):
        given["query"] = _checked(route.query.model_validate, dict(call.query), "query")
    answer: Answer = await route.handler(call, **given)
    if isinstance(answer, EventStream):
        return answer
    if not isinstance(answer, Reply):
        return Plain(route.status, _json(answer))
    headers = tuple((name.lower(), value) for name, value in answer.headers.items())
    if isinstance(answer.body, bytes):
        return Plain(answer.status, answer.body, headers)
    if answer.body is None and answer.status in {204, 304}:
        return Plain(answer.status, b"", headers)
    typed = any(name == "content-type" for name, _ in headers)
    headers += () if typed else (("content-type", "application/json"),)
    return Plain(answer.status, _json(answer.body), headers)


def told(error: BaseException) -> Plain:
    """Tell of an error; of what is not ours no word."""
    if not isinstance(error, AgentHostError):
        return Plain(500, _json({"error": "internal error", "code": "internal"}))
    body = _json({"error": error.message, "code": error.code, **error.facts})
    seconds = error.retry_in or (60 if error.status == 429 else None)
    after = () if seconds is None else (("retry-after", str(seconds)),)
    return Plain(error.status, body, (("content-type", "application/json"), *after))


def _json(value: Mapping[str, Any] | Sequence[Any] | BaseModel | None) -> bytes:
    return to_json(value, by_alias=True)


def _body(
    model: type[BaseModel] | type[bytes], headers: Mapping[str, str], body: bytes
) -> Any:
    if not issubclass(model, BaseModel):
        return body
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and not re.fullmatch(r"application/(json|.+\+json)", kind):
        raise InvalidInput("content-type", "a body must be sent as application/json")
    return _checked(model.model_validate_json, body or b"{}", "body")


def _checked(read: Callable[[Any], Any], given: object, whole: str) -> Any:
    try:
        return read(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or whole
        raise InvalidInput(field, first["msg"]) from error
