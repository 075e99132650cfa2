"""People over the API, and keys that stand for them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from agenthost import Answer, Call, RouteGroup
from agenthost.testing import Daemons
from agenthost.testing.daemons import RunningDaemon

from .conftest import MASTER, Make, bearer, made

NOBODY = "00000000-0000-4000-8000-000000000000"


async def add(daemon: RunningDaemon, name: str, **more: str) -> dict[str, Any]:
    answer = await daemon.http.post("/api/persons", json={"name": name, **more})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def test_people_are_added_renamed_listed_and_deleted(
    locked: RunningDaemon,
) -> None:
    ada, bob = await add(locked, "Ada"), await add(locked, " bob ", role="guest")
    assert (ada["role"], bob["name"], bob["role"]) == ("member", "bob", "guest")
    path = f"/api/persons/{ada['id']}"
    changed = await locked.http.patch(path, json={"role": "owner"})
    assert changed.json() == {"id": ada["id"], "name": "Ada", "role": "owner"}
    listed = (await locked.http.get("/api/persons")).json()
    assert listed == {"persons": [changed.json(), bob], "total": 2}
    assert (await locked.http.delete(path)).json()["status"] == "deleted"
    assert (await locked.http.delete(path)).status_code == 404
    assert (await locked.http.patch(path, json={})).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "  "},
        {"name": "a\nb"},
        {"name": "a\u0000b"},
        {"name": "a\u202eb"},
        {"name": "x" * 101},
        {"name": 7},
        {"name": "ok", "role": ""},
        {"name": "ok", "rights": "all"},
    ],
)
async def test_a_person_that_cannot_be_is_refused(
    locked: RunningDaemon, body: dict[str, Any]
) -> None:
    assert (await locked.http.post("/api/persons", json=body)).status_code == 400
    assert (await locked.http.get("/api/persons")).json()["total"] == 0


async def test_a_name_is_one_persons(locked: RunningDaemon) -> None:
    await add(locked, "Ada")
    bob = await add(locked, "bob")
    again = await locked.http.post("/api/persons", json={"name": "ADA"})
    assert again.status_code == 409
    path = f"/api/persons/{bob['id']}"
    assert (await locked.http.patch(path, json={"name": "ada"})).status_code == 409


async def test_a_keys_requests_carry_its_person(daemons: Daemons) -> None:
    group, seen = RouteGroup("who"), []

    @group.get("/api/who", scope="who:read")
    async def who(call: Call) -> Answer:
        seen.append((call.principal.name, call.principal.person))
        return {}

    from types import ModuleType

    from agenthost import hookimpl

    plugin = ModuleType("who")
    vars(plugin)["register_routes"] = hookimpl(_named("register_routes", [group]))
    config = f'api_key = "{MASTER}"\n'
    running = await daemons.start(config=config, plugins=[plugin])
    running.http.headers.update(bearer(MASTER))
    ada = await add(running, "Ada")
    for key in (
        await made(running, "hers", "read", person=ada["id"]),
        await made(running, "nobodys", "read"),
    ):
        assert (await key.get("/api/who")).status_code == 200
    await running.http.get("/api/who")
    assert seen == [("hers", ada["id"]), ("nobodys", ""), ("api_key", "")]


def _named(name: str, answer: Any) -> Any:
    def hook() -> Any:
        return answer

    hook.__name__ = name
    return hook


async def test_a_person_goes_after_its_keys(locked: RunningDaemon, make: Make) -> None:
    ada = await add(locked, "Ada")
    ci = await make("ci", "read", person=ada["id"])
    path = f"/api/persons/{ada['id']}"
    refused = await locked.http.delete(path)
    assert refused.status_code == 409
    assert "keys ci stand" in refused.json()["error"]
    await ci.revoke()
    assert (await locked.http.delete(path)).status_code == 200


async def test_links_are_made_moved_listed_and_undone(locked: RunningDaemon) -> None:
    ada, bob = await add(locked, "Ada"), await add(locked, "bob")
    links = {each["name"]: f"/api/persons/{each['id']}/links" for each in (ada, bob)}
    for external in ("42", "a/b c", "@ada:example.org", "%2F", "é"):
        path = f"{links['Ada']}/telegram/{quote(external, safe='')}"
        made = await locked.http.put(path)
        assert made.json() == {"kind": "telegram", "external": external}
        assert (await locked.http.put(path)).status_code == 200
        found = await locked.daemon.persons.find("telegram", external)
        assert found is not None
        assert found.id == ada["id"]
    assert (await locked.http.get(links["Ada"])).json()["total"] == 5
    # It moves to whom it is given, and only they can lose it.
    await locked.http.put(f"{links['bob']}/telegram/42")
    assert (await locked.http.delete(f"{links['Ada']}/telegram/42")).status_code == 404
    listed = (await locked.http.get(links["bob"])).json()
    assert listed == {"links": [{"kind": "telegram", "external": "42"}], "total": 1}
    assert (await locked.http.delete(f"{links['bob']}/telegram/42")).status_code == 200
    assert (await locked.http.get(links["bob"])).json()["total"] == 0
    assert (await locked.http.delete(f"{links['bob']}/telegram/42")).status_code == 404


@pytest.mark.parametrize(
    "link",
    [
        "Telegram/1",
        "a b/1",
        f"{'k' * 65}/1",
        "telegram/a%E2%80%AEb",
        "telegram/" + "x" * 257,
    ],
)
async def test_a_link_that_cannot_be_is_refused(
    locked: RunningDaemon, link: str
) -> None:
    ada = await add(locked, "Ada")
    path = f"/api/persons/{ada['id']}/links"
    assert (await locked.http.put(f"{path}/{link}")).status_code == 400
    assert (await locked.http.get(path)).json()["total"] == 0


async def test_nobody_has_no_links(locked: RunningDaemon) -> None:
    path = f"/api/persons/{NOBODY}"
    assert (await locked.http.get(path)).status_code == 404
    assert (await locked.http.get(f"{path}/links")).status_code == 404
    assert (await locked.http.put(f"{path}/links/telegram/1")).status_code == 404
    assert (await locked.http.get("/api/persons/x")).status_code == 400


async def test_a_deleted_person_leaves_no_link(locked: RunningDaemon) -> None:
    ada = await add(locked, "Ada")
    path = f"/api/persons/{ada['id']}"
    assert (await locked.http.get(path)).json() == ada
    await locked.http.put(f"{path}/links/telegram/1")
    await locked.http.delete(path)
    assert await locked.daemon.persons.find("telegram", "1") is None


@pytest.mark.parametrize("scope", ["read", "chat", "operate"])
async def test_people_are_for_admins(
    locked: RunningDaemon, make: Make, scope: str
) -> None:
    ada = await add(locked, "Ada")
    key = await make("ci", scope)
    path = f"/api/persons/{ada['id']}"
    for each in ("/api/persons", path, f"{path}/links"):
        assert (await key.get(each)).status_code == 403
    for verb in ("PUT", "DELETE"):
        link = f"{path}/links/telegram/1"
        refused = await locked.http.request(verb, link, headers=key.headers)
        assert refused.status_code == 403
