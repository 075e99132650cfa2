"""Groups that are read when one of their paths is first asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from agenthost import Answer, Call, LateRoutes, PluginError, RouteGroup, Socket
from quart import Blueprint
from websockets.asyncio.client import connect

from .conftest import Start


class Counted:
    """A late group below ``/late`` that knows how often it was read."""

    def __init__(self, path: str = "/late/<name>", *, public: bool = False) -> None:
        self.reads = 0
        self._path = path
        self._public = public

    @property
    def routes(self) -> LateRoutes:
        return LateRoutes("late", ("/late",), self._load)

    def _load(self) -> RouteGroup:
        self.reads += 1
        group = RouteGroup("late")

        @group.get(self._path, scope="x:read", public=self._public, direct=True)
        async def one(_call: Call, name: str) -> Answer:
            """Tell the name."""
            return {"name": name}

        @group.socket("/late/<name>/ws", scope="x:read")
        async def talk(socket: Socket, name: str) -> None:
            await socket.accept()
            await socket.send(name)

        return group


def taking(path: str, name: str = "other") -> RouteGroup:
    group = RouteGroup(name)

    @group.get(path, scope="x:read", direct=True)
    async def mine(_call: Call, what: str) -> Answer:
        """Take a place."""
        return {"mine": what}

    return group


async def test_a_start_and_other_requests_do_not_read_it(start: Start) -> None:
    late = Counted()
    begins_alike = LateRoutes("late", ("/v1/heal",), late.routes.load)
    running = await start(begins_alike)
    assert (await running.client.get("/v1/health")).status_code == 200
    assert late.reads == 0


async def test_the_first_requests_read_it_once(start: Start) -> None:
    late = Counted()
    running = await start(late.routes)
    asked = [running.client.get(f"/late/{name}") for name in "abcd"]
    answers = await asyncio.gather(*asked)
    assert [answer.json()["name"] for answer in answers] == [*"abcd"]
    assert late.reads == 1


async def test_a_request_reads_no_group_that_it_is_not_for(start: Start) -> None:
    late, other = Counted(), Counted("/more/<name>")
    more = LateRoutes("more", ("/more",), other.routes.load)
    running = await start(late.routes, more)
    assert (await running.client.get("/late/ada")).status_code == 200
    assert (late.reads, other.reads) == (1, 0)


async def test_warming_up_reads_none(start: Start) -> None:
    late = Counted()
    running = await start(late.routes)
    await running.front.warm_up()
    assert late.reads == 0


async def test_a_first_socket_reads_it(start: Start) -> None:
    running = await start(Counted().routes)
    async with connect(f"{running.ws}/late/ada/ws") as socket:
        assert await socket.recv() == "ada"


@pytest.mark.parametrize("ask", ["document", "quart"])
async def test_whoever_needs_all_routes_reads_it(start: Start, ask: str) -> None:
    late = Counted()
    running = await start(late.routes)
    if ask == "document":
        document = (await running.client.get("/openapi.json")).json()
        assert "/late/{name}" in document["paths"]
    else:
        await running.client.get("/nobody")
    assert late.reads == 1
    assert (await running.client.get("/late/ada")).json() == {"name": "ada"}


async def test_who_comes_later_finds_its_places_taken(start: Start) -> None:
    late = Counted()
    with pytest.raises(PluginError, match="is taken by route group 'late'"):
        await start(late.routes, taking("/late/<what>"))
    assert late.reads == 1


@pytest.mark.parametrize(
    "later",
    [
        lambda: taking("/late/<what>/more"),
        lambda: taking("/<what>", name="late"),
        lambda: Blueprint("foreign", __name__),
    ],
    ids=["below its path", "of its name", "a Blueprint"],
)
async def test_it_is_read_before_whoever_may_meet_it(
    start: Start, later: Callable[[], RouteGroup | Blueprint]
) -> None:
    late = Counted()
    running = await start(late.routes, later())
    assert late.reads == 1
    assert (await running.client.get("/late/ada")).json() == {"name": "ada"}


async def test_a_place_that_is_taken_is_told_at_once(start: Start) -> None:
    with pytest.raises(PluginError, match="is taken by route group 'other'"):
        await start(taking("/late/<what>"), Counted().routes)


@pytest.mark.parametrize(
    ("late", "wrong"),
    [
        (Counted("/elsewhere/<name>").routes, "is public, or not below /late"),
        (Counted(public=True).routes, "is public, or not below /late"),
        (LateRoutes("a", ("/late",), lambda: RouteGroup("b")), "'a' give group 'b'"),
    ],
    ids=["elsewhere", "public", "another name"],
)
async def test_one_that_breaks_its_word_is_not_served(
    start: Start, late: LateRoutes, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    running = await start(late)
    for path in ("/late/ada", "/elsewhere/ada"):
        assert (await running.client.get(path)).status_code == 404
    assert f"the routes of {late.name} are not served" in caplog.text
    assert wrong in caplog.text


async def test_one_that_cannot_be_read_leaves_the_others(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> RouteGroup:
        raise ImportError("no such module")

    running = await start(LateRoutes("broken", ("/broken",), broken), Counted().routes)
    assert (await running.client.get("/broken/x")).status_code == 404
    assert (await running.client.get("/late/ada")).status_code == 200
    assert "the routes of broken are not served" in caplog.text


async def test_a_wide_route_hides_nothing_that_is_read_late(start: Start) -> None:
    late = Counted()
    running = await start(taking("/<path:what>"), late.routes)
    assert (await running.client.get("/other/way")).json() == {"mine": "other/way"}
    assert late.reads == 0
    assert (await running.client.get("/late/ada")).json() == {"name": "ada"}
    assert (await running.client.get("/late/a/b")).json() == {"mine": "late/a/b"}
