"""A revision is agreed on, and tools are asked for: by a scripted connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agenthost_mcp.client.connecting import agree, listed
from agenthost_mcp.client.wire import Lost, RpcError


class Scripted:
    """A server that answers by a function, which may raise.

    Attributes:
        asked: The methods it was asked by, each with its parameters.
    """

    def __init__(self, answer: Callable[[str, Any], Any], *, modern: bool) -> None:
        self.modern = modern
        self.asked: list[tuple[str, Any]] = []
        self.version = ""
        self._answer = answer

    async def ask(self, method: str, params: Any, *_: Any) -> Any:
        self.asked.append((method, params))
        return self._answer(method, params)

    async def tell(self, method: str, params: Any) -> None:
        self.asked.append((method, params))

    def agreed(self, version: str) -> None:
        self.version = version


def scripted(answer: Callable[[str, Any], Any], *, modern: bool = True) -> Any:
    return Scripted(answer, modern=modern)


def paged(tools: int, pages: float) -> Any:
    """A server with so many tools on each of so many pages."""

    def answer(_: str, params: Any) -> Any:
        at = int(params.get("cursor", 0)) + 1
        found = [{"name": f"t{at}.{n}"} for n in range(tools)]
        more = {"nextCursor": str(at)} if at < pages else {}
        return {"tools": found, **more}

    return scripted(answer)


async def test_all_pages_are_read() -> None:
    assert len(await listed(paged(250, 2))) == 500
    assert len(await listed(paged(1, 100))) == 100


@pytest.mark.parametrize(
    ("tools", "pages", "reason"),
    [
        (501, 1, "more than 500 tools"),
        (300, 2, "more than 500 tools"),
        (1, float("inf"), "more than 100 pages"),
        (0, float("inf"), "more than 100 pages"),
    ],
)
async def test_a_list_without_end_ends_the_connection(
    tools: int, pages: float, reason: str
) -> None:
    with pytest.raises(Lost, match=reason):
        await listed(paged(tools, pages))


def refusing(code: int, data: object, most: int) -> Callable[[str, Any], Any]:
    """Refuse to be discovered so many times, and shake no hands."""
    left = [most]

    def answer(method: str, _: Any) -> Any:
        if method != "server/discover":
            raise RpcError(-32601, "no such method")
        left[0] -= 1
        if left[0] >= 0:
            raise RpcError(code, "not so", data)
        return {"supportedVersions": ["2026-07-28"]}

    return answer


async def test_who_refuses_what_it_supports_is_asked_once_more() -> None:
    server = scripted(refusing(-32022, {"supported": ["2026-07-28"]}, 1))
    assert await agree(server, {}) == server.version == "2026-07-28"
    assert [method for method, _ in server.asked] == ["server/discover"] * 2


@pytest.mark.parametrize(
    ("code", "data", "most"),
    [
        (-32022, {"supported": ["2099-01-01"]}, 1),
        (-32022, {"supported": "2026-07-28"}, 1),
        (-32022, None, 1),
        (-32601, {"supported": ["2026-07-28"]}, 1),
        (-32022, {"supported": ["2026-07-28"]}, 2),
    ],
)
async def test_who_refuses_the_modern_revision_is_taken_for_an_older_one(
    code: int, data: object, most: int
) -> None:
    server = scripted(refusing(code, data, most))
    with pytest.raises(RpcError, match="no such method"):
        await agree(server, {})
    assert server.asked[-1][0] == "initialize"
    assert server.modern is False


async def test_a_revision_that_nobody_knows_is_not_spoken() -> None:
    server = scripted(lambda *_: {"protocolVersion": "2030-01-01"}, modern=False)
    with pytest.raises(RpcError):
        await agree(server, {})
    assert server.version == ""


async def test_only_who_has_roots_says_that_there_may_be_news_of_them() -> None:
    for able, told in (
        ({}, {}),
        ({"sampling": {}}, {"sampling": {}}),
        ({"roots": {}}, {"roots": {"listChanged": True}}),
    ):
        server = scripted(lambda *_: {"protocolVersion": "2025-06-18"}, modern=False)
        assert await agree(server, able) == "2025-06-18"
        assert server.asked[0][1]["capabilities"] == told
        assert server.asked[1][0] == "notifications/initialized"
