"""What every route group promises, as tests to inherit."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar
from urllib.parse import quote

import httpx
import jsonschema
import pytest_asyncio
from agenthost_chat.chat import Json
from pydantic import BaseModel

from ..context import Grants, Principal
from ..errors import Unauthenticated
from ..host import Authenticator, Host
from ..plugins.marks import hookimpl
from ..ports.access import Credentials
from ..routes import LateRoutes, Mountable, Route, RouteGroup, SocketRoute
from .daemons import Daemons, RunningDaemon

JSON = "application/json"
KEY = "contract-key-0123456789"
SCOPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*:[a-z][a-z0-9_]*")
PARAMETER = re.compile(r"<(?:path:)?(\w+)>")
LONGEST_SUMMARY = 120
LONGEST_ERROR = 2_000
CONFIG = f'api_key = "{KEY}"\n'
UNLIMITED = "\n[rate_limit]\nenabled = false\n"

NO_JSON = (b"{", b"\xff\xfe", b"[" * 100_000, b"\0", b'{"a": 1}}', b"NaN")
NO_OBJECT: tuple[Json, ...] = (None, [], "text", 7, True, [{}])
ODD_VALUES: tuple[Json, ...] = (
    None,
    "",
    "\0",
    "\ud800",
    "../../etc/passwd",
    "' OR 1=1 --",
    "x" * 100_000,
    -1,
    2**70,
    1e308,
    True,
    [],
    {},
    [[[[[[]]]]]],
    {"": {"": None}},
)
ODD_SEGMENTS = (
    ".",
    "..",
    "../..",
    "../../etc/passwd",
    "\0",
    "\n",
    " ",
    "%",
    "*",
    "' OR 1=1 --",
    "{{7*7}}",
    "\u202e\U0001f600",
    "0",
    "-1",
    str(2**70),
    "x" * 10_000,
    "00000000-0000-0000-0000-000000000000",
)
ODD_ENCODED = ("%ff%fe", "%ed%a0%80", "%2e%2e%2f%2e%2e", "..%00", "%25%30%30")
LEAKS = ("Traceback", 'File "', "sqlite3", "SELECT ", "INSERT ")


@dataclass(frozen=True, slots=True)
class Sample:
    """A request that is answered with success.

    Args:
        route: The route as it is declared: ``POST /api/notes/<note_id>``.
        body: The body, as JSON.
        path: The values of the path's parameters.
        query: The parameters of the query.
        content: The body of a route that takes bytes.
    """

    route: str
    body: Json = None
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""


def route_groups(daemon: RunningDaemon) -> Iterator[tuple[str, RouteGroup]]:
    """Give every route group of a daemon, each behind the key of its plugin."""
    for key, group in daemon.daemon.registry.offered(Mountable):  # type: ignore[type-abstract]  # reason: two unlike classes are mounted
        if isinstance(group, LateRoutes):
            yield key, group.load()
        elif isinstance(group, RouteGroup):
            yield key, group


_DOCUMENTS: dict[frozenset[object], Mapping[str, Any]] = {}


async def document_of(daemon: RunningDaemon) -> Mapping[str, Any]:
    """Read the OpenAPI document of a daemon.

    It takes a while to write, and is the same for the same routes: those are asked once
    in a process.
    """
    groups = [group for _, group in route_groups(daemon)]
    routes = frozenset(
        _facts_of(group, each) for group in groups for each in group.routes
    )
    if routes not in _DOCUMENTS:
        _DOCUMENTS[routes] = (await daemon.http.get("/openapi.json")).json()
    return _DOCUMENTS[routes]


def _facts_of(group: RouteGroup, route: Route) -> object:
    """Give what the document says of a route, as far as it tells it from others."""
    handler = getattr(route.handler, "__code__", route.handler)
    models = route.body, route.query, repr(route.answer), route.events
    others = repr((route.others, route.headers, route.takes, route.media))
    told = group.name, route.method, route.path, route.status, route.public
    return (*told, handler, models, others)


def name_of(route: Route) -> str:
    """Name a route as it is declared."""
    return f"{route.method} {route.path}"


def path_of(route: Route, values: Mapping[str, str], *, encoded: bool = False) -> str:
    """Put values, encoded unless they are, in the place of a path's parameters."""
    safe = "%" if encoded else ""

    def put(match: re.Match[str]) -> str:
        value = values.get(match[1], "x").encode("utf-8", "surrogatepass")
        # A client would take a segment of dots alone for a way up.
        return quote(value, safe=safe).replace(".", "%2E")

    return PARAMETER.sub(put, route.path)


class _Scopes(Authenticator):
    """Lets in whoever names the scopes that they want to have."""

    name = "contract"

    async def authenticate(self, host: Host, shown: Credentials) -> Principal:  # noqa: ARG002
        """Read the scopes."""
        kind, _, scopes = shown.token.reveal().partition("=")
        if kind != "scopes":
            raise Unauthenticated("no key of the contract's")
        grants = Grants({"route": tuple(filter(None, scopes.split("+")))})
        return Principal("contract", "somebody", grants)


def keeper() -> ModuleType:
    """A plugin that lets people in by the scopes they name."""
    plugin = ModuleType("keeper")
    offers = [_Scopes()]
    plugin.register_authenticator = hookimpl(lambda: offers)  # type: ignore[attr-defined]  # reason: it is made here
    return plugin


def with_scopes(scopes: Collection[str]) -> dict[str, str]:
    """The headers of somebody who has these scopes."""
    return {"authorization": f"Bearer scopes={'+'.join(sorted(scopes))}"}


class Mounted:
    """A group that is served, and what its daemon says of it."""

    def __init__(
        self, daemon: RunningDaemon, group: RouteGroup, document: Mapping[str, Any]
    ) -> None:
        self.daemon = daemon
        self.group = group
        self.document = document

    def operation(self, route: Route) -> Mapping[str, Any]:
        """What the OpenAPI document says of a route."""
        path = PARAMETER.sub(r"{\1}", route.path)
        entry = self.document["paths"].get(path, {}).get(route.method.lower())
        assert entry, f"{name_of(route)} is not in the OpenAPI document"
        return dict(entry)

    def check(self, route: Route, answer: httpx.Response) -> None:
        """Demand that an answer is as the document says, and no server error."""
        said = answer.text[:300] if not streams(answer) else "..."
        place = f"{name_of(route)} answered {answer.status_code} {said!r}"
        assert answer.status_code < 500, place
        told = self.operation(route)["responses"]
        declared = told.get(str(answer.status_code)) or told.get("default")
        assert declared, f"{place}, which its OpenAPI entry does not know"
        if answer.is_error:
            check_error(answer, place)
        if answer.status_code == 204:
            assert not answer.content, place
            return
        media = answer.headers.get("content-type", "").partition(";")[0]
        content: Mapping[str, Any] = declared["content"]
        assert media in content or "*/*" in content, f"{place} as {media}"
        if media == "application/json":
            self._check_json(place, answer, content.get(media, {}))

    def _check_json(
        self, place: str, answer: httpx.Response, declared: Mapping[str, Any]
    ) -> None:
        said = answer.json()
        schema = {
            "components": self.document["components"],
            **declared.get("schema", {}),
        }
        problems = jsonschema.Draft202012Validator(schema).iter_errors(said)
        for problem in problems:
            raise AssertionError(f"{place}: {problem.json_path} {problem.message}")

    async def ask(self, route: Route, path: str, **request: Any) -> httpx.Response:
        """Send a request with every right; a stream is not waited for."""
        headers = {"authorization": f"Bearer {KEY}", **request.pop("headers", {})}
        stream = self.daemon.http.stream(route.method, path, headers=headers, **request)
        async with stream as answer:
            if not streams(answer):
                await answer.aread()
        return answer


def streams(answer: httpx.Response) -> bool:
    """Tell whether an answer is a stream of events."""
    return "event-stream" in str(answer.headers.get("content-type", ""))


def check_error(answer: httpx.Response, place: str) -> None:
    """Demand that an error is told in words, and shows nothing else."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    assert kind == "application/json", f"{place}: an error is JSON"
    error = answer.json().get("error")
    if isinstance(error, dict):
        # The shape of a vendor whose clients are to read it.
        error = error.get("message")
    assert isinstance(error, str), f"{place}: an error has its text at `error`"
    assert 0 < len(error) <= LONGEST_ERROR, f"{place}: {len(error)} characters"
    shown = [leak for leak in LEAKS if leak in answer.text]
    assert not shown, f"{place}: it shows {shown[0]!r}"


class RoutesContract:
    """A route group keeps every promise of one.

    A subclass names the group and its plugin: the module, or the key of one that is
    installed and enabled. Every route has a sample, or a reason in ``untried`` not to
    be called at all. Override :meth:`samples` where one needs something to be there.

    Example:
        ::

            class TestNotes(RoutesContract):
                plugin = agenthost_notes
                group = "notes"
                requests = (Sample("POST /api/notes", {"text": "milk"}),)
    """

    plugin: ClassVar[ModuleType | str]
    group: ClassVar[str]
    config: ClassVar[str] = ""
    """Tables of ``config.toml`` that the plugin needs."""
    public: ClassVar[Collection[str]] = ()
    """The routes that anybody may use, as ``GET /api/notes``."""
    requests: ClassVar[Sequence[Sample]] = ()
    """Requests that are answered with success, at least one a route, in their order."""
    untried: ClassVar[Mapping[str, str]] = {}
    """Routes that must not be called in a test, each with its reason."""

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """Give the requests, where they need what is made in the daemon first.

        Its client shows the key.
        """
        del daemon
        return self.requests

    def besides(self) -> Sequence[object]:
        """Give modules that the samples need, besides the installed plugins."""
        return ()

    @pytest_asyncio.fixture
    async def mounted(self, daemons: Daemons) -> Mounted:
        """The group in a running daemon."""
        return await self.mount(daemons)

    async def mount(self, daemons: Daemons) -> Mounted:
        """Serve the group in a daemon that asks for a key."""
        daemon = await daemons.start(
            config=CONFIG + self.config + UNLIMITED,
            plugins=[keeper(), *self._modules(), *self.besides()],
        )
        daemon.http.headers["authorization"] = f"Bearer {KEY}"
        document = await document_of(daemon)
        found = [group for _, group in route_groups(daemon) if group.name == self.group]
        assert len(found) == 1, f"{self.group} is offered {len(found)} times"
        return Mounted(daemon, found[0], document)

    def test_its_routes_say_what_they_are(self, mounted: Mounted) -> None:
        """A name, a scope such as ``notes:read``, a cost, and a line of words each."""
        group = mounted.group
        both: list[Route | SocketRoute] = [*group.routes, *group.sockets]
        assert both
        for route in both:
            assert SCOPE.fullmatch(route.scope), f"{route.path}: scope {route.scope!r}"
            assert route.cost >= 1, f"{route.path}: cost {route.cost}"
            summary = (route.handler.__doc__ or "").strip().partition("\n")[0]
            assert 0 < len(summary) <= LONGEST_SUMMARY, f"{route.path}: {summary!r}"

    def test_its_routes_are_in_the_openapi_document(self, mounted: Mounted) -> None:
        """Under the group's tag, with their summary, parameters and bodies."""
        for route in mounted.group.routes:
            entry = mounted.operation(route)
            assert entry["tags"] == [self.group]
            assert entry["summary"], name_of(route)
            named = {p["name"] for p in entry["parameters"] if p["in"] == "path"}
            assert named == {*PARAMETER.findall(route.path)}
            assert ("requestBody" in entry) == (route.body is not None)
            declared = entry["responses"].get(str(route.status), {}).get("content", {})
            if route.media == "application/json" and route.status != 204:
                known = (
                    declared.get("application/json") or "text/event-stream" in declared
                )
                assert known, f"{name_of(route)} does not say what it answers"

    async def test_nobody_comes_in_without_a_key(self, mounted: Mounted) -> None:
        """401 for no key and for a wrong one; what is public is named here."""
        found = {name_of(route) for route in mounted.group.routes if route.public}
        assert found == {*self.public}, "`public` names the routes that anybody may use"
        for route in self._closed(mounted):
            for shown in ("", "Bearer wrong"):
                answer = await mounted.daemon.http.request(
                    route.method, path_of(route, {}), headers={"authorization": shown}
                )
                assert answer.status_code == 401, f"{name_of(route)} for {shown!r}"
                check_error(answer, name_of(route))

    async def test_a_scope_that_is_too_small_is_refused(self, mounted: Mounted) -> None:
        """403 for somebody who has the scopes of all other routes of the group."""
        for route in self._closed(mounted):
            others = {each.scope for each in mounted.group.routes} - {route.scope}
            answer = await mounted.daemon.http.request(
                route.method,
                path_of(route, {}),
                headers=with_scopes({*others, "contract:none"}),
            )
            assert answer.status_code == 403, f"{name_of(route)} with {others}"
            check_error(answer, name_of(route))

    async def test_its_answers_are_as_declared(self, mounted: Mounted) -> None:
        """Every sample is answered with success, as the OpenAPI document says."""
        tried: set[str] = set()
        by_name = {name_of(route): route for route in mounted.group.routes}
        for sample in await self.samples(mounted.daemon):
            assert sample.route in by_name, f"{self.group} has no {sample.route}"
            route = by_name[sample.route]
            answer = await self._send(mounted, route, sample)
            assert answer.is_success, f"{sample.route}: {answer.text[:300]}"
            mounted.check(route, answer)
            tried.add(sample.route)
        left = {*by_name} - tried - {*self.untried}
        assert not left, f"no sample of {sorted(left)}"

    async def test_wrong_bodies_are_told(self, mounted: Mounted) -> None:
        """4xx for what is no JSON or no object, never 5xx for any value of a field."""
        samples = await self._by_route(mounted)
        for route in self._tried(mounted):
            model = route.body
            if model is None or not issubclass(model, BaseModel):
                continue
            path = path_of(route, samples[name_of(route)].path)
            for content in self._unreadable():
                answer = await mounted.ask(
                    route, path, content=content, headers={"content-type": JSON}
                )
                mounted.check(route, answer)
                assert answer.is_client_error, f"{name_of(route)} took {content[:40]!r}"
            for body in odd_bodies(model, samples[name_of(route)].body):
                answer = await mounted.ask(
                    route,
                    path,
                    content=json.dumps(body).encode(),
                    headers={"content-type": JSON},
                )
                mounted.check(route, answer)

    async def test_hostile_paths_and_queries_are_told(self, mounted: Mounted) -> None:
        """No segment makes a route fail, and no value of a query."""
        samples = await self._by_route(mounted)
        for route in self._tried(mounted):
            sample = samples[name_of(route)]
            for path in hostile_paths(route, sample.path):
                answer = await mounted.ask(route, path, json=sample.body)
                mounted.check(route, answer)
            for name in route.query.model_fields if route.query else ():
                for value in ("", "\0", "-1", "x" * 5_000, "' OR 1=1 --", str(2**70)):
                    path = path_of(route, sample.path)
                    query = {**sample.query, name: value}
                    answer = await mounted.ask(
                        route, path, json=sample.body, params=query
                    )
                    mounted.check(route, answer)

    async def test_it_is_gone_with_its_plugin(self, daemons: Daemons) -> None:
        """Switched off, its routes are 404 and in no document."""
        switched = {"AGENTHOST_PLUGINS__ENABLE": "plugin:scripted"}
        if isinstance(self.plugin, str):
            switched = {"AGENTHOST_PLUGINS__DISABLE": self.plugin}
        without = await daemons.start(
            config=self.config + UNLIMITED, plugins=self._modules(), environ=switched
        )
        offered = without.daemon.registry.offered(Mountable)  # type: ignore[type-abstract]  # reason: as above
        assert self.group not in {group.name for _, group in offered}
        document = await document_of(without)
        operations = [
            operation
            for entries in document["paths"].values()
            for operation in entries.values()
        ]
        assert not [o for o in operations if self.group in o.get("tags", ())]

    def _modules(self) -> Sequence[ModuleType]:
        return () if isinstance(self.plugin, str) else (self.plugin,)

    def _closed(self, mounted: Mounted) -> Iterator[Route]:
        """The routes that not everybody may use."""
        return (route for route in mounted.group.routes if not route.public)

    def _tried(self, mounted: Mounted) -> Iterator[Route]:
        return (r for r in mounted.group.routes if name_of(r) not in self.untried)

    async def _by_route(self, mounted: Mounted) -> Mapping[str, Sample]:
        """A sample of each route; one that has none is asked plainly."""
        plain = {name_of(r): Sample(name_of(r)) for r in mounted.group.routes}
        samples = await self.samples(mounted.daemon)
        return {**plain, **{sample.route: sample for sample in samples}}

    async def _send(
        self, mounted: Mounted, route: Route, sample: Sample
    ) -> httpx.Response:
        body: dict[str, Any] = {"content": sample.content} if sample.content else {}
        if sample.body is not None:
            body = {"json": sample.body}
        path = path_of(route, sample.path)
        return await mounted.ask(route, path, params=sample.query, **body)

    def _unreadable(self) -> Iterator[bytes]:
        yield from NO_JSON
        for value in NO_OBJECT:
            yield json.dumps(value).encode()


def odd_bodies(model: type[BaseModel], good: Json) -> Iterator[Mapping[str, Json]]:
    """Bodies of which one field is odd, or missing."""
    whole: dict[str, Json] = dict(good) if isinstance(good, Mapping) else {}
    yield {}
    yield {"an_unknown_field": 1}
    for name, about in model.model_fields.items():
        field_name = about.alias or name
        yield {key: value for key, value in whole.items() if key != field_name}
        for value in ODD_VALUES:
            yield {**whole, field_name: value}


def hostile_paths(route: Route, values: Mapping[str, str]) -> Iterator[str]:
    """Paths of which one parameter is hostile."""
    for name in PARAMETER.findall(route.path):
        for segment in ODD_SEGMENTS:
            yield path_of(route, {**values, name: segment})
        for segment in ODD_ENCODED:
            kept = {key: quote(value, safe="") for key, value in values.items()}
            yield path_of(route, {**kept, name: segment}, encoded=True)
