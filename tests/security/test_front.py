"""Every route and every kind of answer: headers, refusals, and what errors tell."""

from __future__ import annotations

import asyncio
import itertools
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn
from uuid import UUID, uuid4

import httpx
import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost.testing.routes import route_groups
from agenthost_front.dispatch import Dispatcher
from sqlalchemy.exc import OperationalError
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

pytestmark = pytest.mark.security
Figures = Callable[[str], None]

KEY = {"authorization": "Bearer key"}
LOCKED = 'api_key = "key"\n'
TOLD = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "strict-transport-security": "max-age=63072000; includeSubDomains",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
UPGRADE = {
    "connection": "upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
CANARY = "sk-canary-7f3a"
LEAKS = (CANARY, "/home/", "/etc/", "SELECT", "Traceback", 'File "', ".py", "sqlite")


def lacks(answer: httpx.Response) -> list[str]:
    """Name what an answer should have had."""
    headers = answer.headers
    wrong = [name for name, value in TOLD.items() if headers.get(name) != value]
    policy = headers.get("content-security-policy", "")
    if not policy.startswith("default-src 'self'") or "unsafe" in policy:
        wrong.append("content-security-policy")
    if "permissions-policy" not in headers or "server" in headers:
        wrong.append("permissions-policy or server")
    private = answer.request.url.path.startswith(("/api/", "/v1/", "/metrics", "/open"))
    if private and headers.get("cache-control") != "no-store":
        wrong.append("cache-control")
    UUID(headers["x-request-id"])
    if answer.status_code >= 400 and answer.request.method != "HEAD":
        assert isinstance(answer.json()["error"], str | dict), answer.text
    return wrong


def routes_of(daemon: RunningDaemon) -> Iterator[tuple[str, str]]:
    for _, group in route_groups(daemon):
        for route in group.routes:
            yield route.method, filled(route.path)
        for socket in group.sockets:
            yield "GET", filled(socket.path)


def filled(path: str) -> str:
    return re.sub(r"<[^>]*>", lambda _: str(uuid4()), path)


def asked(method: str, path: str) -> Iterator[dict[str, Any]]:
    """Make the requests that a route is asked."""
    there = {"method": method, "url": path, "headers": KEY}
    if path != "/api/shutdown":
        yield there
        yield {**there, "method": "HEAD"}
    yield {**there, "headers": {}}
    yield {**there, "headers": {**KEY, "host": "evil.example"}}
    yield {**there, "headers": {**KEY, "origin": "https://evil.example"}}
    yield {**there, "method": "OPTIONS"}
    yield {**there, "method": "TRACE"}
    yield {**there, "url": f"{path.rstrip('/')}/no/where"}
    yield {**there, "headers": {**KEY, **UPGRADE, "origin": "https://evil.example"}}
    if method in {"POST", "PUT", "PATCH"}:
        yield {**there, "content": b"{"}
        yield {
            **there,
            "content": b"{}",
            "headers": {**KEY, "content-type": "text/plain"},
        }
        yield {**there, "content": bytes(2**20 + 1)}


async def test_every_answer_of_every_route_has_all_headers(
    daemons: Daemons, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = await daemons.start(config=LOCKED)
    spent = await daemons.start(config=LOCKED + "[rate_limit]\nburst = 1\n")
    wrong: list[str] = []
    statuses: dict[int, int] = {}

    async def look(running: RunningDaemon, request: dict[str, Any]) -> None:
        answer = await running.http.request(**request)
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
        wrong.extend(f"{request}: {name}" for name in lacks(answer))

    routes = list(routes_of(daemon))
    for method, path in routes:
        for request in asked(method, path):
            await look(daemon, request)
        await look(spent, {"method": method, "url": path, "headers": KEY})

    def fail(*_: object) -> NoReturn:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(Dispatcher, "_invoke", fail)
    for method, path in routes:
        await look(daemon, {"method": method, "url": path, "headers": KEY})
    total = sum(statuses.values())
    figures(f"{len(routes)} routes, answers: {dict(sorted(statuses.items()))}")
    figures(f"without a header: target 0 of {total}, result {len(wrong)}")
    assert not wrong
    wanted = {200, 400, 401, 403, 404, 405, 413, 426, 429, 500}
    assert not wanted - set(statuses), statuses


async def test_a_stream_has_all_headers(daemons: Daemons) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    daemon.model.says("hello")
    path = f"/api/agents/{agent.id}/message/stream"
    async with daemon.http.stream("POST", path, json={"message": "hi"}) as answer:
        assert answer.status_code == 200
        assert not lacks(answer)
        assert [line async for line in answer.aiter_lines()]


HOSTS = (
    "evil.example",
    "evil.example:4200",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "[::1].evil.example",
    "0x7f.1.evil.example",
)
ORIGINS = (
    "https://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example:4200",
    "file://",
)
KINDS = (
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
)


async def test_pages_of_others_are_kept_out(daemons: Daemons, figures: Figures) -> None:
    """Without a key, as a page on a foreign or rebound origin would try it."""
    daemon = await daemons.start()
    agent = await daemon.agent()
    http, at = daemon.http, f"/api/agents/{agent.id}/message"
    body = {"message": "hi"}
    plain = b'{"message": "hi"}'
    let_in: list[str] = []
    tried = 0

    def note(what: str, refused: bool) -> None:
        nonlocal tried
        tried += 1
        if not refused:
            let_in.append(what)

    for host in HOSTS:
        answer = await http.get("/api/agents", headers={"host": host})
        note(f"host {host}", answer.status_code == 403)
        answer = await http.post(at, json=body, headers={"host": host})
        note(f"POST to host {host}", answer.status_code == 403)
    for origin in ORIGINS:
        answer = await http.post(at, json=body, headers={"origin": origin})
        note(f"POST of {origin}", answer.status_code == 403)
        answer = await http.get("/api/agents", headers={"origin": origin})
        readable = "access-control-allow-origin" in answer.headers
        note(f"read by {origin}", not readable)
        asks = {"origin": origin, "access-control-request-method": "POST"}
        answer = await http.options(at, headers=asks)
        note(f"preflight of {origin}", answer.status_code == 403)
        address = daemon.url.replace("http", "ws") + f"/api/agents/{agent.id}/ws"
        with pytest.raises(InvalidStatus) as refused:
            await connect(address, origin=origin)  # type: ignore[arg-type]  # a NewType of str
        note(f"WebSocket of {origin}", refused.value.response.status_code == 403)
    for kind in KINDS:
        answer = await http.post(at, content=plain, headers={"content-type": kind})
        note(f"form of {kind}", answer.status_code == 400)
    figures(f"let in: target 0 of {tried}, result {len(let_in)}")
    assert tried >= 12
    assert not let_in


def faults() -> Iterator[Exception]:
    yield RuntimeError(f"{CANARY} in /home/ada/.agenthost/config.toml")
    yield FileNotFoundError(2, "No such file", f"/etc/{CANARY}")
    yield OperationalError(f"SELECT {CANARY} FROM vault", {"key": CANARY}, Exception())
    yield sqlite3.IntegrityError(f"UNIQUE constraint failed: {CANARY}")
    yield KeyError(CANARY)
    yield UnicodeDecodeError("utf-8", CANARY.encode(), 0, 1, f"/home/{CANARY}")
    yield ExceptionGroup(CANARY, [ValueError(f"/etc/{CANARY}")])
    yield RecursionError(CANARY)
    yield TimeoutError(CANARY)
    yield AssertionError(f'File "/home/{CANARY}.py", line 1')


async def test_errors_tell_nothing_of_what_is_inside(
    daemons: Daemons, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = await daemons.start(config=LOCKED)
    kinds = itertools.cycle(faults())

    def fail(*_: object) -> NoReturn:
        raise next(kinds)

    monkeypatch.setattr(Dispatcher, "_invoke", fail)
    answers = [
        await daemon.http.request(method, path, headers=KEY)
        for method, path in itertools.islice(itertools.cycle(routes_of(daemon)), 600)
    ]
    failed = [answer for answer in answers if answer.status_code == 500]
    told = [
        word
        for answer in failed
        for word in LEAKS
        if word in answer.text or word in str(answer.headers)
    ]
    figures(f"told of: target 0 of {len(failed)} errors, result {len(told)}")
    assert len(failed) >= 500
    assert not told


async def test_anybody_sees_two_routes_and_four_fields(daemons: Daemons) -> None:
    daemon = await daemons.start(config=LOCKED)
    public = {
        path
        for method, path in routes_of(daemon)
        if (await daemon.http.request(method, path)).status_code != 401
    }
    assert {path.partition("static")[0] for path in public} == {"/", "/api/health"}
    health = (await daemon.http.get("/api/health")).json()
    assert set(health) == {"status", "uptime_seconds", "panic_count", "restart_count"}


async def test_a_database_that_is_lost_is_told_of_within_five_seconds(
    daemons: Daemons, figures: Figures
) -> None:
    daemon = await daemons.start()
    folder = daemon.daemon.data_dir
    aside = folder.with_name("aside")

    async def until(status: str) -> float:
        begun = time.monotonic()
        async with asyncio.timeout(20):
            while (await daemon.http.get("/api/health")).json()["status"] != status:  # noqa: ASYNC110 - it is asked over HTTP
                await asyncio.sleep(0.05)
        return time.monotonic() - begun

    await until("ok")
    shutil.move(folder, aside)
    lost = await until("degraded")
    shutil.move(aside, folder)
    back = await until("ok")
    figures(f"told: target 5 s, result {lost:.1f} s; well again: {back:.1f} s")
    assert lost < 5
    assert back < 5
