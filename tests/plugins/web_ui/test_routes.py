"""The routes of the page, asked as the kernel asks them."""

from __future__ import annotations

import agenthost_web_ui
import pytest
from agenthost import OPERATOR, Call, NotFound, Reply, Route, RouteGroup
from agenthost_web_ui.static_files import load_files


@pytest.fixture(scope="module")
def group() -> RouteGroup:
    offered, _ = agenthost_web_ui.register_routes()
    return offered


def route(group: RouteGroup, path: str) -> Route:
    (found,) = (route for route in group.routes if route.path == path)
    return found


def call(**headers: str) -> Call:
    return Call(
        host=None,  # type: ignore[arg-type]  # the page's routes ask nothing of it
        principal=OPERATOR,
        client="127.0.0.1",
        request_id="",
        query={},
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


async def get(group: RouteGroup, path: str, **headers: str) -> Reply:
    answer = await route(group, "/static/<path:path>").handler(call(**headers), path)
    assert isinstance(answer, Reply)
    return answer


def test_the_page_is_public_and_cheap(group: RouteGroup) -> None:
    assert group.name == "web_ui"
    assert [(r.method, r.path) for r in group.routes] == [
        ("GET", "/"),
        ("GET", "/static/<path:path>"),
    ]
    assert {(r.public, r.scope, r.cost) for r in group.routes} == {(True, "ui:read", 1)}


async def test_the_root_answers_the_page(group: RouteGroup) -> None:
    reply = await route(group, "/").handler(call())
    assert isinstance(reply, Reply)
    assert reply.status == 200
    assert reply.body.startswith(b"<!doctype html>")
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"


async def test_a_file_comes_with_a_strong_etag_and_is_revalidated(
    group: RouteGroup,
) -> None:
    reply = await get(group, "js/main.js")
    assert reply.body == load_files()["js/main.js"].body
    assert reply.headers["Cache-Control"] == "no-cache"
    assert reply.headers["ETag"].startswith('"')


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
async def test_a_known_etag_is_answered_without_a_body(
    group: RouteGroup, form: str
) -> None:
    etag = (await get(group, "js/main.js")).headers["ETag"]
    reply = await get(group, "js/main.js", if_none_match=form.format(etag))
    assert (reply.status, reply.body) == (304, b"")
    assert reply.headers["ETag"] == etag
    assert "Content-Type" not in reply.headers


async def test_another_etag_gets_the_file(group: RouteGroup) -> None:
    assert (await get(group, "js/main.js", if_none_match='"old"')).status == 200


@pytest.mark.parametrize(
    "path",
    ["", "nothing.js", "js", "../__init__.py", "js/../index.html", "/etc/passwd"],
)
async def test_only_files_of_the_page_are_found(group: RouteGroup, path: str) -> None:
    with pytest.raises(NotFound):
        await get(group, path)
