"""Public routes that are there only while somebody says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from agenthost import Answer, Call, Host, LateRoutes, PluginError, RouteGroup

from .conftest import KEY, Start

BEARER = {"authorization": f"Bearer {KEY}"}
WRONG = {"authorization": "Bearer nonsense"}


@dataclass
class Doors:
    """A group whose routes are open for the names in ``open``."""

    direct: bool
    open: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def opens(self, host: Host, path: str) -> bool:
        del host
        self.asked.append(path)
        return path.split("/")[2] in self.open

    @property
    def routes(self) -> RouteGroup:
        group = RouteGroup("doors")
        facts: dict[str, Any] = {"public": self.opens, "direct": self.direct}

        @group.post("/doors/<name>/<path:rest>", scope="x:call", body=bytes, **facts)
        async def enter(call: Call, name: str, rest: str, body: bytes) -> Answer:
            """Tell who came in."""
            who = call.principal.kind
            return {"name": name, "rest": rest, "body": body.decode(), "who": who}

        return group


@pytest.fixture(params=[False, True], ids=["quart", "direct"])
def doors(request: pytest.FixtureRequest) -> Doors:
    return Doors(request.param)


async def test_an_open_door_lets_anybody_in(start: Start, doors: Doors) -> None:
    running = await start(doors.routes, api_key=KEY)
    doors.open = {"one"}
    for headers, who in (({}, "anonymous"), (WRONG, "anonymous"), (BEARER, "api_key")):
        answer = await running.client.post(
            "/doors/one/a/b", content=b"hello", headers=headers
        )
        assert answer.status_code == 200, answer.text
        assert answer.json() == {
            "name": "one",
            "rest": "a/b",
            "body": "hello",
            "who": who,
        }


async def test_a_closed_door_is_a_path_like_any_other(
    start: Start, doors: Doors
) -> None:
    running = await start(doors.routes, api_key=KEY)
    doors.open = {"one"}
    cases = running.record_cases()
    for headers, status in (({}, 401), (WRONG, 401), (BEARER, 404)):
        seen = []
        for path in ("/doors/two/a", "/nowhere/two/a"):
            answer = await running.client.post(path, content=b"x", headers=headers)
            seen.append((answer.status_code, answer.text.replace(path, "")))
        assert seen[0] == seen[1]
        assert seen[0][0] == status
    # It costs what anything costs that is not found.
    assert len({case.cost for case in cases if case.method == "POST"}) == 1


async def test_a_door_opens_and_closes_while_the_daemon_runs(
    start: Start, doors: Doors
) -> None:
    running = await start(doors.routes, api_key=KEY)
    statuses = []
    for names in (set[str](), {"one"}, set[str]()):
        doors.open = names
        answer = await running.client.post("/doors/one/a", content=b"")
        statuses.append(answer.status_code)
    assert statuses == [401, 200, 401]
    # Other paths do not ask it.
    doors.asked.clear()
    await running.client.get("/api/health")
    assert doors.asked == []


async def test_a_late_group_has_no_doors(start: Start, doors: Doors) -> None:
    late = LateRoutes("doors", ("/doors",), lambda: doors.routes)
    taken = RouteGroup("taken")

    @taken.get("/doors/here", scope="x:read")
    async def here(_call: Call) -> Answer:
        """Have the group read at once."""
        return {}

    with pytest.raises(PluginError, match="is public"):
        await start(taken, late)
