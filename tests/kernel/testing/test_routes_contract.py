"""The contract of route groups holds for a sound one, and finds what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from agenthost import Answer, Call, NotFound, Reply, RouteGroup, hookimpl
from agenthost.testing import Daemons, RoutesContract, Sample
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.kernel.testing.ports.finding import finds, names_in, names_of

Change = Callable[[RouteGroup], None]


class Note(BaseModel):
    text: str


class Noted(TypedDict):
    id: int
    text: str


def sound() -> RouteGroup:
    """A group in which nothing is wrong."""
    group = RouteGroup("made")

    @group.post(
        "/api/made", scope="made:write", body=Note, answer=Noted, status=201, cost=5
    )
    async def add(_call: Call, body: Note) -> Answer:
        """Keep a note."""
        return {"id": 1, "text": body.text}

    @group.get("/api/made/<name>", scope="made:read", answer=Noted)
    async def show(_call: Call, name: str) -> Answer:
        """Show a note."""
        if name != "milk":
            raise NotFound("note", name[:64])
        return {"id": 1, "text": name}

    return group


def offering(group: RouteGroup) -> ModuleType:
    plugin = ModuleType("made")
    plugin.register_routes = hookimpl(lambda: [group])  # type: ignore[attr-defined]  # reason: it is made here
    return plugin


class Contract(RoutesContract):
    group = "made"
    requests = (
        Sample("POST /api/made", {"text": "milk"}),
        Sample("GET /api/made/<name>", path={"name": "milk"}),
    )


@pytest.mark.conformance
class TestASoundGroup(Contract):
    """It keeps every promise."""

    plugin = offering(sound())


def unnamed(group: RouteGroup) -> None:
    @group.get("/api/made", scope="made:read", answer=Noted)
    async def silent(_call: Call) -> Answer:
        return {"id": 1, "text": ""}


def unscoped(group: RouteGroup) -> None:
    @group.get("/api/made", scope="everything", answer=Noted)
    async def wide(_call: Call) -> Answer:
        """Ask for no scope of its own."""
        return {"id": 1, "text": ""}


def undeclared(group: RouteGroup) -> None:
    @group.get("/api/made", scope="made:read", media="text/plain")
    async def plain(_call: Call) -> Answer:
        """Answer JSON where text is declared."""
        return {"id": 1}


def other_status(group: RouteGroup) -> None:
    @group.get("/api/made", scope="made:read", answer=Noted)
    async def accepted(_call: Call) -> Answer:
        """Answer with a status that is not declared."""
        return Reply({"id": 1, "text": ""}, status=202)


def untagged(group: RouteGroup) -> None:
    group.get("/api/made/<name>/more", scope="made:read")(_named)


async def _named(call: Call, name: str) -> Answer:
    return {"name": name, "who": call.client}


def public(group: RouteGroup) -> None:
    @group.get("/api/made", scope="made:read", answer=Noted, public=True)
    async def open_to_all(_call: Call) -> Answer:
        """Let anybody in."""
        return {"id": 1, "text": ""}


def every_scope(group: RouteGroup) -> None:
    @group.get("/api/made", scope="contract:none", answer=Noted)
    async def any_scope(_call: Call) -> Answer:
        """Take a scope that others have for something else."""
        return {"id": 1, "text": ""}


def other_shape(group: RouteGroup) -> None:
    @group.get("/api/made", scope="made:read", answer=Noted)
    async def odd(_call: Call) -> Answer:
        """Answer another thing than is declared."""
        return {"id": "one"}


def bodies_by_hand(group: RouteGroup) -> None:
    class Loose(BaseModel):
        text: Any = ""

    @group.put("/api/made", scope="made:write", body=Loose, answer=Noted)
    async def careless(_call: Call, body: Loose) -> Answer:
        """Believe what comes."""
        return {"id": 1, "text": body.text.strip()}


def own_errors(group: RouteGroup) -> None:
    @group.put("/api/made/<name>", scope="made:write", answer=Noted)
    async def blunt(_call: Call, name: str) -> Answer:
        """Tell errors in its own way."""
        if name != "milk":
            return Reply({"message": "no"}, status=400)
        return {"id": 1, "text": name}


def files_by_name(group: RouteGroup) -> None:
    @group.put("/api/made/<name>", scope="made:write", answer=Noted)
    async def trusting(_call: Call, name: str) -> Answer:
        """Fail at what is no number."""
        return {"id": int(name) if name != "milk" else 1, "text": name}


def loose_query(group: RouteGroup) -> None:
    class Page(BaseModel):
        page: str = "1"

    @group.get("/api/made", scope="made:read", answer=Noted, query=Page)
    async def paged(_call: Call, query: Page) -> Answer:
        """Believe what is asked for."""
        return {"id": int(query.page), "text": ""}


HERE = TestASoundGroup()
NAMED = {"name": "milk"}
BREACHES: tuple[tuple[Change, Any, Sample | None], ...] = (
    (unnamed, HERE.test_its_routes_say_what_they_are, None),
    (unscoped, HERE.test_its_routes_say_what_they_are, None),
    (untagged, HERE.test_its_routes_are_in_the_openapi_document, None),
    (public, HERE.test_nobody_comes_in_without_a_key, None),
    (every_scope, HERE.test_a_scope_that_is_too_small_is_refused, None),
    (other_shape, HERE.test_its_answers_are_as_declared, Sample("GET /api/made")),
    (other_shape, HERE.test_its_answers_are_as_declared, None),
    (undeclared, HERE.test_its_answers_are_as_declared, Sample("GET /api/made")),
    (other_status, HERE.test_its_answers_are_as_declared, Sample("GET /api/made")),
    (bodies_by_hand, HERE.test_wrong_bodies_are_told, None),
    (
        own_errors,
        HERE.test_hostile_paths_and_queries_are_told,
        Sample("PUT /api/made/<name>", path=NAMED),
    ),
    (files_by_name, HERE.test_hostile_paths_and_queries_are_told, None),
    (loose_query, HERE.test_hostile_paths_and_queries_are_told, None),
)


@pytest.mark.conformance
@pytest.mark.breaches
@pytest.mark.parametrize(("change", "test", "sample"), BREACHES)
async def test_a_broken_group_is_found(
    change: Change,
    test: Any,
    sample: Sample | None,
    daemons: Daemons,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = sound()
    change(group)
    requests = (*HERE.requests, sample) if sample else HERE.requests
    monkeypatch.setattr(TestASoundGroup, "requests", requests)
    monkeypatch.setattr(TestASoundGroup, "plugin", offering(group))
    await finds(test, await HERE.mount(daemons))


async def test_a_group_that_stays_is_found(daemons: Daemons) -> None:
    class Stays(Contract):
        plugin = "plugin:keys"
        group = "approvals"

    await finds(Stays().test_it_is_gone_with_its_plugin, daemons)


async def test_a_group_that_nobody_offers_is_found(daemons: Daemons) -> None:
    class Lost(Contract):
        plugin = offering(sound())
        group = "nobody"

    await finds(Lost().mount, daemons)


def test_every_test_of_the_contract_can_fail() -> None:
    found = names_in(breach[1] for breach in BREACHES)
    found.add("test_it_is_gone_with_its_plugin")
    assert found == names_of(RoutesContract)
