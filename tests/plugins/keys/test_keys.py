"""Named keys: made, shown once, listed, used, expired and revoked."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from agenthost import OPERATOR, Context
from agenthost.testing import Daemons, ManualClock, Recorded
from agenthost.testing.daemons import RunningDaemon
from agenthost_keys import (
    register_authenticator,
    register_routes,
    register_schema,
    register_service,
)
from agenthost_keys.events import KeyEvent
from agenthost_keys.keyring import keyring_of

from .conftest import MASTER, Made, Make, bearer, made

TOKEN = re.compile(r"ah_[0-9a-f]{32}_[A-Za-z0-9_-]{43}")


def test_register_authenticator_offers_a_keyring_of_its_own_each_time() -> None:
    [one], [other] = register_authenticator(), register_authenticator()
    assert one is not other
    assert one.name == "named_keys"
    assert [service.name for service in register_service()] == ["named_keys"]
    assert list(register_schema().metadata.tables) == ["keys"]
    assert len(list(register_routes())) == 2


async def test_a_new_key_opens_what_its_scope_says(make: Make) -> None:
    ci = await make("ci", "read")
    assert TOKEN.fullmatch(ci.key)
    assert (await ci.get("/api/agents")).status_code == 200
    refused = await ci.post("/api/agents", {"manifest_toml": 'name = "x"'})
    assert refused.status_code == 403
    assert "named_key 'ci' has no right 'route' for 'agents:write'" in refused.text


async def test_the_list_tells_all_but_the_secret(
    locked: RunningDaemon, make: Make, clock: ManualClock
) -> None:
    ada = (await locked.http.post("/api/persons", json={"name": "Ada"})).json()
    made = await make(
        "ci",
        "read",
        "chat",
        expires_at="2026-01-02T00:00:00Z",
        units_per_minute=600,
        person=ada["id"],
    )
    await made.get("/api/agents")
    await locked.daemon.store.write(lambda _: None)
    answer = await locked.http.get("/api/keys")
    assert answer.json() == {
        "keys": [
            {
                "id": made.id,
                "name": "ci",
                "status": "active",
                "scopes": ["read", "chat"],
                "person": ada["id"],
                "units_per_minute": 600,
                "created_at": "2026-01-01T00:00:00.000Z",
                "created_by": "api_key:api_key",
                "expires_at": "2026-01-02T00:00:00.000Z",
                "last_used_at": "2026-01-01T00:00:00.000Z",
                "revoked_at": None,
            }
        ],
        "total": 1,
    }
    assert made.key[36:] not in answer.text


async def test_what_is_kept_is_a_digest(
    locked: RunningDaemon, make: Make, clock: ManualClock
) -> None:
    ci = await make("ci", "read")
    await ci.get("/api/agents")
    await locked.daemon.stop()
    for path in locked.daemon.home.rglob("*"):
        if path.is_file():
            assert ci.key[36:].encode() not in path.read_bytes(), path


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "", "scopes": ["read"]}, "name"),
        ({"name": "a b", "scopes": ["read"]}, "name"),
        ({"name": "ok\n", "scopes": ["read"]}, "name"),
        ({"name": "x" * 65, "scopes": ["read"]}, "name"),
        ({"name": "ümlaut", "scopes": ["read"]}, "name"),
        ({"name": "ok"}, "scopes"),
        ({"name": "ok", "scopes": []}, "scopes"),
        ({"name": "ok", "scopes": ["root"]}, "scopes.0"),
        ({"name": "ok", "scopes": "read"}, "scopes"),
        ({"name": "ok", "scopes": ["read"], "expires_at": "soon"}, "expires_at"),
        ({"name": "ok", "scopes": ["read"], "expires_at": "2030-01-01"}, "expires_at"),
        ({"name": "ok", "scopes": ["read"], "expires_at": 0}, "expires_at"),
        (
            {"name": "ok", "scopes": ["read"], "expires_at": "2026-01-01T00:00:00Z"},
            "expires_at",
        ),
        ({"name": "ok", "scopes": ["read"], "units_per_minute": 0}, "units_per_minute"),
        ({"name": "ok", "scopes": ["read"], "units_per_minute": "9"}, "units_per_mi"),
        ({"name": "ok", "scopes": ["read"], "person": "ada"}, "person"),
        (
            {"name": "ok", "scopes": ["read"], "person": "0" * 32},
            "person: nobody has this id",
        ),
        ({"name": "ok", "scopes": ["read"], "expires": "never"}, "expires"),
    ],
)
async def test_a_key_that_cannot_be_made_names_its_field(
    locked: RunningDaemon, body: dict[str, Any], field: str
) -> None:
    answer = await locked.http.post("/api/keys", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(field)
    assert (await locked.http.get("/api/keys")).json()["total"] == 0


async def test_one_name_is_one_key_however_many_ask_at_once(
    locked: RunningDaemon,
) -> None:
    bodies = [{"name": name, "scopes": ["read"]} for name in ("ci", "CI", "ci", "Ci")]
    answers = await asyncio.gather(
        *(locked.http.post("/api/keys", json=body) for body in bodies)
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]


async def test_a_revoked_key_is_refused_at_once_and_its_name_is_free(
    locked: RunningDaemon, make: Make
) -> None:
    ci = await make("ci", "read")
    assert (await ci.get("/api/agents")).status_code == 200
    answer = await ci.revoke()
    assert (answer.status_code, answer.json()["status"]) == (200, "revoked")
    refused = await ci.get("/api/agents")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert (await ci.revoke()).status_code == 404
    again = await make("ci", "read")
    assert (await again.get("/api/agents")).status_code == 200
    assert (await ci.get("/api/agents")).status_code == 401
    rows = (await locked.http.get("/api/keys")).json()["keys"]
    statuses = {row["id"]: row["status"] for row in rows}
    assert statuses == {ci.id: "revoked", again.id: "active"}


async def test_revocation_outlives_the_daemon(
    daemons: Daemons, locked: RunningDaemon, make: Make
) -> None:
    gone, kept = await make("gone", "read"), await make("kept", "read")
    await gone.revoke()
    await locked.daemon.stop()
    config = f'api_key = "{MASTER}"\n'
    second = await daemons.start(home=locked.daemon.home, config=config)
    for key, status in ((gone, 401), (kept, 200)):
        answer = await second.http.get("/api/agents", headers=key.headers)
        assert answer.status_code == status


async def test_a_key_holds_until_it_expires(make: Make, clock: ManualClock) -> None:
    ci = await make("ci", "read", expires_at="2026-01-01T01:00:00+00:00")
    await clock.advance(3599)
    assert (await ci.get("/api/agents")).status_code == 200
    await clock.advance(1)
    refused = await ci.get("/api/agents")
    assert refused.status_code == 401
    assert "has expired" in refused.text


async def test_what_was_changed_elsewhere_is_seen_within_seconds(
    locked: RunningDaemon, make: Make, clock: ManualClock
) -> None:
    from agenthost_keys.tables import revoke

    ci = await make("ci", "read")
    assert (await ci.get("/api/agents")).status_code == 200
    await locked.daemon.store.write(lambda c: revoke(c, ci.id, clock.time()))
    await clock.advance(5)
    assert (await ci.get("/api/agents")).status_code == 401


async def test_the_use_of_a_key_is_written_rarely(
    locked: RunningDaemon, make: Make, clock: ManualClock
) -> None:
    ci = await make("ci", "read")

    async def last_used() -> str:
        await ci.get("/api/agents")
        await locked.daemon.store.write(lambda _: None)
        rows = (await locked.http.get("/api/keys")).json()["keys"]
        return str(rows[0]["last_used_at"])

    first = await last_used()
    await clock.advance(599)
    assert await last_used() == first
    await clock.advance(1)
    assert await last_used() == "2026-01-01T00:10:00.000Z"


async def test_a_key_may_revoke_itself_and_no_other(make: Make) -> None:
    ci, other = await make("ci", "read"), await make("other", "operate")
    assert (await ci.revoke(by=other.key)).status_code == 403
    assert (await other.revoke(by=ci.key)).status_code == 403
    assert (await ci.revoke(by=ci.key)).status_code == 200
    assert (await ci.get("/api/agents")).status_code == 401


async def test_a_key_makes_none_that_can_more_or_for_longer(make: Make) -> None:
    boss = await make(
        "boss", "admin", expires_at="2026-02-01T00:00:00Z", units_per_minute=900
    )
    for body, status in (
        ({}, 403),
        ({"expires_at": "2026-02-01T00:00:01Z", "units_per_minute": 900}, 403),
        ({"expires_at": "2026-02-01T00:00:00Z"}, 403),
        ({"expires_at": "2026-02-01T00:00:00Z", "units_per_minute": 901}, 403),
        ({"expires_at": "2026-02-01T00:00:00Z", "units_per_minute": 900}, 201),
    ):
        asked = {"name": "child", "scopes": ["admin"], **body}
        answer = await boss.post("/api/keys", asked)
        assert answer.status_code == status, answer.text
    operator = await make("operator", "operate")
    answer = await operator.post("/api/keys", {"name": "x", "scopes": ["read"]})
    assert answer.status_code == 403


async def test_a_key_that_revokes_itself_meanwhile_leaves_no_wider_one(
    locked: RunningDaemon, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    boss = await make("boss", "admin", units_per_minute=900)
    ring = keyring_of(locked.daemon)
    person = locked.daemon.persons.get

    async def meanwhile(person_id: str) -> Any:
        await ring.revoke(locked.daemon, Context(OPERATOR), boss.id)
        return await person(person_id)

    ada = (await locked.http.post("/api/persons", json={"name": "Ada"})).json()
    monkeypatch.setattr(locked.daemon.persons, "get", meanwhile)
    wider = {"name": "wider", "scopes": ["admin"], "person": ada["id"]}
    assert (await boss.post("/api/keys", wider)).status_code == 403
    rows = (await locked.http.get("/api/keys")).json()["keys"]
    assert [row["name"] for row in rows] == ["boss"]


async def test_there_are_a_thousand_keys_at_most(
    locked: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost_keys.tables.MOST", 2)
    bodies = [{"name": f"k{n}", "scopes": ["read"]} for n in range(3)]
    answers = [await locked.http.post("/api/keys", json=body) for body in bodies]
    assert [answer.status_code for answer in answers] == [201, 201, 409]


async def test_keys_revoked_long_ago_are_forgotten(
    locked: RunningDaemon, make: Make, clock: ManualClock
) -> None:
    await (await make("old", "read")).revoke()
    await clock.advance(90 * 86_400 + 1)
    await make("new", "read")
    rows = (await locked.http.get("/api/keys")).json()["keys"]
    assert [row["name"] for row in rows] == ["new"]


async def test_a_failed_revocation_leaves_the_key_as_it_was(
    locked: RunningDaemon, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agenthost import StorageFull

    ci = await make("ci", "read")
    ring = keyring_of(locked.daemon)

    def full(*_: object, **__: object) -> None:
        raise StorageFull("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("agenthost_keys.tables.revoke", full)
        assert (await ci.revoke()).status_code == 507
    assert ring.keys_of("") == []
    await asyncio.sleep(0)
    monkeypatch.setattr(ring, "_looked", float("-inf"))
    assert (await ci.get("/api/agents")).status_code == 200


async def test_who_leaves_while_a_key_is_revoked_leaves_it_revoked(
    locked: RunningDaemon, make: Make
) -> None:
    ci = await make("ci", "read")
    ring, daemon = keyring_of(locked.daemon), locked.daemon
    leaving = asyncio.create_task(ring.revoke(daemon, Context(OPERATOR), ci.id))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert (await ci.get("/api/agents")).status_code == 401
    await ring.stop()
    rows = (await locked.http.get("/api/keys")).json()["keys"]
    assert rows[0]["status"] == "revoked"


async def test_two_daemons_know_each_their_own_keys(daemons: Daemons) -> None:
    config = f'api_key = "{MASTER}"\n'
    one, two = [await daemons.start(config=config) for _ in range(2)]
    one.http.headers.update(bearer(MASTER))
    ci: Made = await made(one, "ci", "read")
    assert (await ci.get("/api/agents")).status_code == 200
    answer = await two.http.get("/api/agents", headers=ci.headers)
    assert answer.status_code == 401


async def test_without_api_key_a_key_counts_where_it_is_shown(
    daemons: Daemons, tmp_path: Any
) -> None:
    home = tmp_path / "open"
    first = await daemons.start(home=home)
    ci = await made(first, "ci", "read")
    assert (await ci.post("/api/ws-ticket")).status_code == 403
    assert (await first.http.post("/api/ws-ticket")).status_code == 200
    dummy = await first.http.get("/api/agents", headers=bearer("sk-dummy"))
    assert dummy.status_code == 200
    wrong = await first.http.get("/api/agents", headers=bearer(ci.key[:-1] + "!"))
    assert wrong.status_code == 401
    await first.daemon.stop()
    second = await daemons.start(home=home)
    detail = (await second.http.get("/api/health/detail")).json()
    assert any("api_key is not set" in line for line in detail["config_warnings"])


async def test_keys_are_made_and_revoked_on_the_record(
    locked: RunningDaemon, make: Make
) -> None:
    book = Recorded(locked.daemon.events, KeyEvent)
    ci = await make("ci", "read")
    book.refuses = (KeyEvent,)
    assert (await ci.revoke()).status_code == 503
    more = {"name": "more", "scopes": ["read"]}
    assert (await locked.http.post("/api/keys", json=more)).status_code == 503
    book.refuses = ()
    assert (await ci.revoke()).status_code == 200
    listed = (await locked.http.get("/api/keys")).json()["keys"]
    assert [(row["name"], row["status"]) for row in listed] == [("ci", "revoked")]
    assert book.kept == book.told
    assert [(each.kind, each.subject) for each in book.kept] == [
        ("key_created", ci.id),
        ("key_revoked", ci.id),
    ]
    assert {each.by for each in book.kept} == {"api_key:api_key"}
