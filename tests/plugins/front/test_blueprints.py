"""Quart code of plugins: Blueprints are served as they are, behind the same rules."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from agenthost import (
    Answer,
    Call,
    Grants,
    PluginError,
    Principal,
    PrincipalKind,
    RouteGroup,
)
from quart import Blueprint, Response, abort, request, url_for

from .conftest import KEY, Running, Start

READER = Principal(PrincipalKind.API_KEY, "reader", Grants({"route": ("*:read",)}))


def notes() -> Blueprint:
    """A plugin's Blueprint with what Blueprints have."""
    made = Blueprint("notes", __name__, url_prefix="/notes")

    @made.get("/<int:number>")
    async def one(number: int) -> dict[str, int]:
        return {"number": number}

    @made.post("/")
    async def add() -> tuple[dict[str, object], int]:
        return {"got": await request.get_json()}, 201

    @made.get("/stream")
    async def stream() -> Response:
        async def words() -> AsyncIterator[bytes]:
            for word in (b"one ", b"two"):
                yield word

        return Response(words(), content_type="text/plain")

    @made.get("/files/<path:name>")
    async def file(name: str) -> dict[str, str]:
        return {"name": name, "url": url_for("notes.file", name=name, rule="a b")}

    _add_faults(made)
    return made


def _add_faults(made: Blueprint) -> None:
    @made.get("/teapot")
    async def teapot() -> Response:
        abort(418)

    @made.get("/broken")
    async def broken() -> str:
        raise RuntimeError("the secret of the house")

    @made.before_request
    async def look() -> None:
        if request.args.get("stop"):
            abort(409)


@pytest.fixture
async def front(start: Start) -> Running:
    return await start(notes())


async def test_a_blueprint_is_served_as_it_is(front: Running) -> None:
    assert (await front.client.get("/notes/7")).json() == {"number": 7}
    added = await front.client.post("/notes/", json={"a": 1})
    assert (added.status_code, added.json()) == (201, {"got": {"a": 1}})
    assert (await front.client.get("/notes/stream")).text == "one two"
    file = (await front.client.get("/notes/files/a/b.txt")).json()
    assert file == {"name": "a/b.txt", "url": "/notes/files/a/b.txt?rule=a+b"}
    assert (await front.client.head("/notes/7")).status_code == 200


async def test_what_it_refuses_has_our_error_body(front: Running) -> None:
    for path, status in (
        ("/notes/x", 404),
        ("/notes/7?stop=1", 409),
        ("/notes/teapot", 418),
    ):
        answer = await front.client.get(path)
        assert answer.status_code == status
        assert isinstance(answer.json()["error"], str)
    wrong = await front.client.delete("/notes/7")
    assert wrong.status_code == 405
    assert "GET" in wrong.headers["allow"]


async def test_its_fault_is_counted_and_tells_nothing(front: Running) -> None:
    answer = await front.client.get("/notes/broken")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert front.front.panics == 1


async def test_it_needs_the_key(start: Start) -> None:
    front = await start(notes(), api_key=KEY)
    assert (await front.client.get("/notes/7")).status_code == 401
    with_key = {"authorization": f"Bearer {KEY}"}
    assert (await front.client.get("/notes/7", headers=with_key)).status_code == 200


async def test_who_may_only_read_does_not_write(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = await start(notes())
    gate = front.front._gate
    monkeypatch.setattr(gate.access, "identify", lambda *_: READER, raising=False)
    assert (await front.client.get("/notes/7")).status_code == 200
    refused = await front.client.post("/notes/", json={})
    assert refused.status_code == 403


async def test_it_has_headers_cost_and_limits(front: Running) -> None:
    cases = front.record_cases()
    answer = await front.client.get("/notes/7")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"]
    assert [(case.path, case.cost) for case in cases] == [("/notes/7", 5)]
    large = await front.client.post("/notes/", content=b"x" * (1024 * 1024 + 1))
    assert large.status_code == 413


async def test_it_stands_in_the_document(front: Running) -> None:
    document = (await front.client.get("/openapi.json")).json()
    operation = document["paths"]["/notes/{number}"]["get"]
    assert (operation["operationId"], operation["tags"]) == ("notes_one", ["notes"])


async def test_a_path_that_is_taken_is_refused(start: Start) -> None:
    front = await start(notes())
    again = Blueprint("again", __name__)

    @again.get("/notes/<other>")
    async def other(other: str) -> str:
        return other

    with pytest.raises(PluginError, match=r"GET /notes/\{other\}.*taken.*'notes'"):
        front.front.mount(again)
    group = RouteGroup("late")

    @group.get("/notes/<number>", scope="late:read")
    async def late(_call: Call, number: str) -> Answer:
        return {"late": number}

    with pytest.raises(PluginError, match="taken by route group 'notes'"):
        front.front.mount(group)
    assert (await front.client.get("/notes/7")).json() == {"number": 7}


async def test_our_own_route_is_never_served_by_a_blueprint(start: Start) -> None:
    # The tree finds the group's route; Quart's map alone would find the Blueprint's.
    group = RouteGroup("wide")

    @group.get("/wide/<path:rest>", scope="wide:read")
    async def wide(_call: Call, rest: str) -> Answer:
        return {"wide": rest}

    narrow = Blueprint("narrow", __name__)

    @narrow.get("/wide/<int:number>")
    async def one(number: int) -> dict[str, int]:
        return {"narrow": number}

    front = await start(group, narrow)
    answer = await front.client.get("/wide/7")
    assert answer.json() == {"wide": "7"}


async def test_a_websocket_of_a_blueprint_is_refused(start: Start) -> None:
    front = await start()
    talk = Blueprint("talk", __name__)

    @talk.websocket("/talk")
    async def chat() -> None:
        """Never called."""

    with pytest.raises(PluginError, match=r"WebSocket /talk .*RouteGroup\.socket"):
        front.front.mount(talk)


async def test_something_else_is_refused(start: Start) -> None:
    front = await start()

    class Named:
        name = "nothing"

    with pytest.raises(PluginError, match="offers Named"):
        front.front.mount(Named())


async def test_what_a_plugin_adds_to_the_app_needs_a_scope_as_well(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = await start()

    @front.front.app.post("/added")
    async def added() -> str:
        return "added"

    assert (await front.client.post("/added")).text == "added"
    monkeypatch.setattr(
        front.front._gate.access, "identify", lambda *_: READER, raising=False
    )
    assert (await front.client.post("/added")).status_code == 403
