"""Hostile keys: malformed, huge, forged, many at once; and where no key may show."""

from __future__ import annotations

import asyncio
import io
import logging
from pathlib import Path
from uuid import uuid4

import pytest
import websockets
from agenthost.testing import DaemonProcess, Daemons, ManualClock
from agenthost.testing.daemons import RunningDaemon
from agenthost_keys import keyring
from agenthost_keys.tokens import digest_of, id_in, make_token

from .conftest import MASTER, Make, bearer


def forged(key: str) -> list[str]:
    """Texts that are nearly the key."""
    head, secret = key[:36], key[36:]
    return [
        key[:-1],
        key + "A",
        key + "=",
        key.upper(),
        key[:3] + "0" * 32 + key[35:],
        head + "A" * 43,
        head + secret[::-1],
        head,
        "ah_",
        "ah__",
        key.replace("ah_", "ah-"),
        f"{key}.{key}",
        "ah_" + "." * 500,
        f"{head}{'_' * 43}",
        f"{key} {key}",
        f"{key},{MASTER}",
        f"{head}%00{secret}",
        "ah_" + "\u00e9" * 32 + "_" + "A" * 43,
        "ah_" + "0" * 15_000,
    ]


async def raw(daemon: RunningDaemon, value: bytes) -> int:
    """Send a header as no client would, and read the status."""
    host, _, port = daemon.daemon.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"GET /api/agents HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
        b"authorization: Bearer " + value + b"\r\n\r\n"
    )
    try:
        answer = await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return 0
    finally:
        writer.close()
    return int(answer.split()[1]) if answer else 0


async def test_what_is_nearly_a_key_is_none(locked: RunningDaemon, make: Make) -> None:
    ci = await make("ci", "read")
    for token in forged(ci.key):
        assert await raw(locked, token.encode("latin-1")) == 401, token
    assert await raw(locked, ci.key.encode()) == 200


@pytest.mark.parametrize(
    "value",
    [
        b"ah_" + b"A" * 1_000_000,
        b"ah_\x00",
        b"ah_\r\n x: y",
        b"\xff\xfe",
        "ah_\u20ac".encode(),
    ],
)
async def test_no_header_however_odd_breaks_anything(
    locked: RunningDaemon, value: bytes
) -> None:
    assert await raw(locked, value) in {0, 400, 401, 431}
    assert (await locked.http.get("/api/health")).json()["status"] == "ok"
    detail = (await locked.http.get("/api/health/detail")).json()
    assert detail["panic_count"] == 0


async def test_two_keys_in_one_request_are_refused(
    locked: RunningDaemon, make: Make
) -> None:
    ci = await make("ci", "read")
    headers = [("authorization", f"Bearer {key}") for key in (ci.key, MASTER)]
    del locked.http.headers["authorization"]
    answer = await locked.http.get("/api/agents", headers=headers)
    assert answer.status_code == 400


async def test_a_key_in_the_query_is_never_looked_at(
    locked: RunningDaemon, make: Make
) -> None:
    boss = await make("boss", "admin")
    del locked.http.headers["authorization"]
    for name in ("ticket", "key", "api_key", "access_token", "authorization"):
        answer = await locked.http.get("/api/agents", params={name: boss.key})
        assert answer.status_code == 401
    uri = f"ws://{locked.daemon.address}/api/agents/{uuid4()}/ws?ticket={boss.key}"
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(uri)
    assert refused.value.response.status_code == 401


async def test_an_unknown_id_is_compared_like_a_wrong_secret(
    locked: RunningDaemon, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same work and the same words, whichever part of a key is wrong."""
    ci = await make("ci", "read")
    compared: list[tuple[str, str]] = []

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("agenthost_keys.keyring.hmac.compare_digest", compare)
    wrong = (make_token(uuid4()), ci.key[:36] + make_token(uuid4())[36:], "ah_x")
    answers = [await locked.http.get("/api/agents", headers=bearer(t)) for t in wrong]
    assert len({answer.text for answer in answers}) == 1
    ours = [pair for pair in compared if len(pair[0]) == len(pair[1]) == 64]
    assert [one for one, _ in ours] == [digest_of(token) for token in wrong]


def test_the_id_is_read_only_from_what_can_be_a_key() -> None:
    key_id = uuid4()
    token = make_token(key_id)
    assert id_in(token) == str(key_id)
    assert {id_in(each) for each in forged(token)} - {""} <= {
        str(key_id),
        "00000000-0000-0000-0000-000000000000",
    }
    assert len({make_token(key_id) for _ in range(1000)}) == 1000


@pytest.mark.conformance
async def test_a_thousand_wrong_keys_leave_a_few_lines_and_no_state(
    locked: RunningDaemon, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    ci = await make("ci", "read")
    caplog.clear()
    for _ in range(1000):
        wrong = make_token(uuid4())
        answer = await locked.http.get("/api/agents", headers=bearer(wrong))
        assert answer.status_code == 401
    told = [line for line in caplog.messages if "failed logins" in line]
    assert len(told) == 1
    assert (await ci.get("/api/agents")).status_code == 200
    assert len(keyring.keyring_of(locked.daemon)._holders) == 1


async def test_a_key_shows_nowhere_but_in_the_answer_that_made_it(
    locked: RunningDaemon, make: Make
) -> None:
    log, handler = io.StringIO(), logging.StreamHandler(None)
    handler.setStream(log)
    root = logging.getLogger()
    root.addHandler(handler)
    before = root.level
    root.setLevel(logging.DEBUG)
    try:
        boss = await make("boss", "admin")
        secret, digest = boss.key[36:], digest_of(boss.key)
        shown = [
            await boss.get(path)
            for path in (
                "/api/keys",
                "/metrics",
                "/api/config",
                "/api/health/detail",
                "/api/nowhere",
                "/openapi.json",
            )
        ]
        shown.append(await boss.post("/api/keys", {"name": "boss"}))
        shown.append(await boss.post("/api/keys", {"name": boss.key, "scopes": ["x"]}))
        shown.append(await boss.revoke())
        shown.append(await boss.get("/api/keys"))
        # What a client itself sends elsewhere than in the header is its own affair.
        del shown[-3]
        told = "".join(f"{answer.headers}{answer.text}" for answer in shown)
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    ours = "".join(line for line in log.getvalue().splitlines() if "http" not in line)
    for text in (secret, digest):
        assert text not in told
        assert text not in ours


async def test_a_home_has_one_daemon_and_so_one_keyring(
    daemons: Daemons, locked: RunningDaemon
) -> None:
    from agenthost import Conflict

    with pytest.raises(Conflict):
        await daemons.start(home=locked.daemon.home)


async def test_many_make_use_and_revoke_keys_at_once(
    locked: RunningDaemon, make: Make
) -> None:
    async def life(number: int) -> list[int]:
        key = await make(f"k{number}", "read")
        statuses = [(await key.get("/api/agents")).status_code]
        statuses.append((await key.revoke()).status_code)
        statuses.append((await key.get("/api/agents")).status_code)
        return statuses

    lives = await asyncio.gather(*(life(number) for number in range(20)))
    assert lives == [[200, 200, 401]] * 20


async def test_a_key_that_cannot_be_looked_up_now_is_unavailable(
    locked: RunningDaemon,
    make: Make,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agenthost import Unavailable

    ci = await make("ci", "read")

    async def away(*_: object) -> None:
        raise Unavailable("the database cannot be read")

    monkeypatch.setattr(locked.daemon.store, "first", away)
    await clock.advance(5)
    refused = await ci.get("/api/version")
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    assert (await locked.http.get("/api/version")).status_code == 200
    monkeypatch.undo()
    assert (await ci.get("/api/version")).status_code == 200


def test_what_was_answered_outlives_a_kill_and_the_log_has_no_key(
    tmp_path: Path,
) -> None:
    home, environ = tmp_path / "home", {"AGENTHOST_API_KEY": MASTER}
    keys = {}
    with DaemonProcess(home, environ) as first:
        for name in ("gone", "kept"):
            body = {"name": name, "scopes": ["read"]}
            answer = first.http.post("/api/keys", json=body, headers=bearer(MASTER))
            keys[name] = answer.json()
        path = f"/api/keys/{keys['gone']['id']}"
        assert first.http.delete(path, headers=bearer(MASTER)).status_code == 200
        first.kill()
    with DaemonProcess(home, environ) as second:
        for name, status in (("gone", 401), ("kept", 200)):
            headers = bearer(keys[name]["key"])
            answer = second.http.get("/api/agents", headers=headers)
            assert answer.status_code == status
        log = second.log
    assert "failed logins" in log
    for secret in (MASTER, keys["gone"]["key"][36:], keys["kept"]["key"][36:]):
        assert secret not in log
