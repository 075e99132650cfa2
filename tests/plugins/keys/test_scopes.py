"""Who may do what: every route there is, asked with a key of every scope."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_args

import pytest
import websockets
from agenthost import Grants, Route, RouteGroup, SocketRoute, hookimpl
from agenthost.testing import Daemons
from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.routes import route_groups
from agenthost_keys.scopes import ROUTES, Scope, grants_of, may_hand_out

from .conftest import MASTER, bearer, made

SCOPES: tuple[Scope, ...] = get_args(Scope)
PAGE = Path(__file__).parents[3] / "docs" / "access.md"
# What only looks something up, though its question comes in a body.
READ_BY_POST = re.compile(r"/api/desktop/capabilities/(validate|resolve|decide.*)")
PARAMETER = re.compile(r"<(?:path:)?[^>]*>")
NOBODY = "00000000-0000-4000-8000-000000000000"


class Asked(NamedTuple):
    """A daemon and a key of each scope."""

    daemon: RunningDaemon
    keys: dict[Scope, str]


@pytest.fixture
async def asked(daemons: Daemons) -> Asked:
    running = await daemons.start(config=f'api_key = "{MASTER}"\n')
    running.http.headers.update(bearer(MASTER))
    keys = {scope: (await made(running, scope, scope)).key for scope in SCOPES}
    del running.http.headers["authorization"]
    return Asked(running, keys)


def groups_of(daemon: RunningDaemon) -> list[RouteGroup]:
    return [group for _, group in route_groups(daemon)]


def routes_of(daemon: RunningDaemon) -> list[Route]:
    return [route for group in groups_of(daemon) for route in group.routes]


def sockets_of(daemon: RunningDaemon) -> list[SocketRoute]:
    return [socket for group in groups_of(daemon) for socket in group.sockets]


def allowed(scope: Scope, right: str) -> bool:
    grants = grants_of([scope])
    return grants is None or grants.allow("route", right)


async def test_every_route_of_the_document_asks_for_its_scope(asked: Asked) -> None:
    """What a scope may read is read; what it may change, other tests change."""
    daemon, keys = asked
    document = (await daemon.http.get("/openapi.json", headers=bearer(MASTER))).json()
    shown = {
        (method.upper(), path)
        for path, item in document["paths"].items()
        for method in item
    }
    seen = set()
    for route in routes_of(daemon):
        place = re.sub(r"<(?:path:)?([^>]*)>", r"{\1}", route.path)
        assert (route.method, place) in shown
        seen.add((route.method, place))
        if route.public:
            continue
        path = PARAMETER.sub(NOBODY, route.path)
        for scope, key in keys.items():
            if allowed(scope, route.scope) and route.method != "GET":
                continue
            answer = await daemon.http.request(route.method, path, headers=bearer(key))
            expected = not allowed(scope, route.scope)
            assert (answer.status_code == 403) is expected, (route, scope, answer.text)
            assert answer.status_code != 401
    sockets = {place for place in shown if place[0] == "X-WEBSOCKET"}
    assert len(sockets) == len(sockets_of(daemon))
    assert shown - seen == {("GET", "/openapi.json"), *sockets}


async def test_every_socket_asks_for_its_scope(asked: Asked) -> None:
    daemon, keys = asked
    for socket in sockets_of(daemon):
        path = PARAMETER.sub(NOBODY, socket.path)
        for scope, key in keys.items():
            status = 101
            try:
                uri = f"ws://{daemon.daemon.address}{path}"
                async with websockets.connect(uri, additional_headers=bearer(key)):
                    pass
            except websockets.InvalidStatus as refused:
                status = refused.response.status_code
            assert (status == 403) is not allowed(scope, socket.scope)
            assert status != 401


async def test_reading_changes_nothing(daemon: RunningDaemon) -> None:
    for route in routes_of(daemon):
        if allowed("read", route.scope) and route.scope != "keys:own":
            assert route.method == "GET" or READ_BY_POST.fullmatch(route.path), route


def rights_of(daemon: RunningDaemon) -> list[str]:
    routes = [route.scope for route in routes_of(daemon) if not route.public]
    return sorted({*routes, *(s.scope for s in sockets_of(daemon)), "system:read"})


def row_of(right: str) -> str:
    marks = [" yes " if allowed(scope, right) else "     " for scope in SCOPES]
    return f"| `{right}` |" + "|".join(marks) + "|"


async def test_the_page_has_a_row_for_every_right(daemon: RunningDaemon) -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in page if re.match(r"\| `[a-z_]+:", line)]
    assert rows == [row_of(right) for right in rights_of(daemon)], (
        "decide in agenthost_keys/scopes.py who gets the right, then mend the table"
    )


def test_a_right_nobody_has_thought_of_is_the_admins() -> None:
    assert [allowed(scope, "vault:write") for scope in SCOPES] == [
        False,
        False,
        False,
        True,
    ]


def test_each_scope_has_what_those_before_it_have() -> None:
    for less, more in pairwise(SCOPES[:-1]):
        assert set(ROUTES[less]) < set(ROUTES[more])


def test_scopes_add_up() -> None:
    both = grants_of(["chat", "read"])
    assert both == grants_of(["chat"])
    assert grants_of(["read", "admin"]) is None


@pytest.mark.parametrize("scope", SCOPES)
def test_nobody_hands_out_more_than_they_have(scope: Scope) -> None:
    for number, other in enumerate(SCOPES):
        fits = number <= SCOPES.index(scope)
        assert may_hand_out(grants_of([scope]), [other]) is fits
    assert not may_hand_out(Grants({"route": ("keys:admin",)}), [scope])
    assert not may_hand_out(Grants({"route": ("?:read", "*:write")}), [scope])


async def test_who_operates_makes_agents_of_every_kind(asked: Asked) -> None:
    manifest = (
        'name = "all"\n[capabilities]\ntools = ["*"]\nnetwork = ["*"]\n'
        'memory_read = ["*"]\nmemory_write = ["*"]\nagent_message = ["*"]\n'
        "agent_spawn = true\n"
    )
    answer = await asked.daemon.http.post(
        "/api/agents",
        json={"manifest_toml": manifest},
        headers=bearer(asked.keys["operate"]),
    )
    assert answer.status_code == 201, answer.text


async def test_who_chats_cannot_change_the_agents_model(asked: Asked) -> None:
    daemon, keys = asked
    daemon.http.headers.update(bearer(MASTER))
    agent = await daemon.agent("ada")
    uri = f"ws://{daemon.daemon.address}/api/agents/{agent.id}/ws"
    async with websockets.connect(
        uri, additional_headers=bearer(keys["chat"])
    ) as socket:
        await socket.recv()
        await socket.send("/model offline")
        answer = str(await socket.recv())
    assert '"denied"' in answer
    assert "agents:write" in answer


async def test_a_quart_route_is_read_by_readers_and_written_by_admins(
    daemons: Daemons,
) -> None:
    plugin = ModuleType("quartish")

    @hookimpl
    def register_routes(app: Any) -> list[Any]:
        async def told() -> str:
            return "told"

        app.add_url_rule("/quartish", view_func=told, methods=["GET", "POST"])
        return []

    vars(plugin)["register_routes"] = register_routes
    running = await daemons.start(config=f'api_key = "{MASTER}"\n', plugins=[plugin])
    running.http.headers.update(bearer(MASTER))
    for scope, status in (("read", 403), ("operate", 403), ("admin", 200)):
        key = await made(running, scope, scope)
        assert (await key.get("/quartish")).status_code == 200
        assert (await key.post("/quartish", {})).status_code == status
        assert (await key.get("/nowhere")).status_code == 404
