"""What every backend of the port FRONT promises, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

import httpx
import pytest

from ...context import Principal, PrincipalKind
from ...errors import Conflict
from ...plugins.discovery import Status
from ...routes import Answer, Call, RouteGroup
from ..daemons import Daemons
from .front_stage import (
    AT,
    CANARY,
    KEY,
    LIMIT,
    Stage,
    connection,
    offering,
    raw_socket,
    refusing,
    say,
    told,
)

SECONDS = 30.0
"""How long a test may take."""

DEFAULT_LIMIT = 1 << 20
ADA = Principal(PrincipalKind.API_KEY, "ada")
BOB = Principal(PrincipalKind.API_KEY, "bob")
POST = b"POST /contract/plain HTTP/1.1\r\nHost: localhost\r\n"
MALFORMED = (
    b"\0\1\2\3\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nx: " + b"a" * 200_000 + b"\r\n\r\n",
    POST + b"content-length: -1\r\n\r\n",
    POST + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
)


class FrontContract:
    """The front keeps every promise of the port.

    It is judged from outside: a daemon that is made to use it serves a plugin's routes
    on a free port. A subclass names the front as ``[backends]`` chooses it; where its
    plugin is not installed, the fixture ``plugins`` gives the module.

    Example:
        ::

            class TestSwift(FrontContract):
                front = "swift"

                @pytest.fixture
                def plugins(self) -> Sequence[object]:
                    return [agenthost_swift]
    """

    front: ClassVar[str]

    @pytest.fixture
    def plugins(self) -> Sequence[object]:
        """The modules that offer it, besides the installed plugins."""
        return ()

    @pytest.fixture
    def stage(self, daemons: Daemons, plugins: Sequence[object]) -> Stage:
        """What starts daemons with this front."""
        return Stage(daemons, self.front, plugins)

    async def test_it_serves_the_routes_of_plugins(self, stage: Stage) -> None:
        """With their parameters, queries, bodies and statuses, as JSON."""
        running = await stage.start()
        http = running.http
        answer = await http.get(f"{AT}/hello?a=b%20c")
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == {
            "hello": PrincipalKind.LOOPBACK,
            "query": {"a": "b c"},
        }
        assert (await http.get(f"{AT}/things/7")).json() == {"thing": 7}
        made = await http.post(f"{AT}/twice", json={"number": 21})
        assert (made.status_code, made.json()) == (201, {"twice": 42})
        silent = await http.delete(f"{AT}/hello")
        assert (silent.status_code, silent.content) == (204, b"")
        head = await http.head(f"{AT}/hello")
        assert (head.status_code, head.content) == (200, b"")

    async def test_what_is_not_there_is_told(self, stage: Stage) -> None:
        """404 for a path and 405 for a method, each with its error."""
        http = (await stage.start()).http
        for path in ("/nobody", f"{AT}/hello/below", f"{AT}/", "/%2e%2e/etc/passwd"):
            told(await http.get(path), 404)
        told(await http.put(f"{AT}/hello"), 405)

    async def test_what_is_wrong_with_a_request_is_told(self, stage: Stage) -> None:
        """400 that names the field: a body, a parameter, a content type."""
        http = (await stage.start()).http
        path = f"{AT}/twice"
        assert "number" in told(await http.post(path, json={"number": "many"}), 400)
        assert "number" in told(await http.post(path, json={}), 400)
        assert "thing" in told(await http.get(f"{AT}/things/many"), 400)
        json = {"content-type": "application/json"}
        for content in (b"{", b"[]", b"\xff", b"null"):
            told(await http.post(path, content=content, headers=json), 400)
        plain = {"content-type": "text/plain"}
        told(await http.post(path, content=b'{"number": 1}', headers=plain), 400)

    async def test_a_body_over_its_limit_is_refused(self, stage: Stage) -> None:
        """413, whether its length is told or not; a route may raise the limit."""
        http = (await stage.start()).http

        async def unannounced(size: int) -> AsyncIterator[bytes]:
            for _ in range(size >> 16):
                yield b"x" * (1 << 16)
            yield b"x" * (size & 0xFFFF)

        for path, limit in ((f"{AT}/plain", DEFAULT_LIMIT), (f"{AT}/large", LIMIT)):
            for content in (b"x" * limit, unannounced(limit)):
                answer = await http.post(path, content=content)
                assert answer.json() == {"size": limit}
            for content in (b"x" * (limit + 1), unannounced(limit + 1)):
                told(await http.post(path, content=content), 413)

    async def test_an_error_is_told_and_a_bug_is_not(self, stage: Stage) -> None:
        """Ours has its status; of any other nothing is shown, and it is counted."""
        running = await stage.start()
        before = running.daemon.panics
        assert "there already" in told(await running.http.get(f"{AT}/fails/ours"), 409)
        assert running.daemon.panics == before
        answer = await running.http.get(f"{AT}/fails/bug")
        told(answer, 500)
        assert CANARY not in answer.text
        assert "Traceback" not in answer.text
        assert running.daemon.panics == before + 1

    async def test_nobody_comes_in_without_the_key(self, stage: Stage) -> None:
        """401 before a handler runs; what is public is open."""
        http = (await stage.start(config=f'api_key = "{KEY}"\n')).http
        for headers in ({}, {"authorization": "Bearer wrong"}, {"x-api-key": "wrong"}):
            told(await http.get(f"{AT}/hello", headers=headers), 401)
            told(await http.get(f"{AT}/hello?key={KEY}", headers=headers), 401)
            assert (await http.get(f"{AT}/open", headers=headers)).status_code == 200
        assert stage.played.callers == []
        right = {"authorization": f"Bearer {KEY}"}
        assert (await http.get(f"{AT}/hello", headers=right)).status_code == 200

    async def test_a_ticket_stands_for_the_key_once(self, stage: Stage) -> None:
        """It opens a socket; not again, and not for who has been dismissed since."""
        running = await stage.start(config=f'api_key = "{KEY}"\n')
        access = running.daemon.access
        async with asyncio.timeout(SECONDS):
            ticket, late = access.ticket(ADA), access.ticket(BOB)
            access.dismiss(BOB)
            async with raw_socket(running, f"?ticket={ticket}") as socket:
                await socket.say("one")
                assert await socket.hear() == (1, b"ONE")
            for query in ("", f"?ticket={ticket}", f"?ticket={late}", "?ticket=wrong"):
                async with raw_socket(running, query, 401):
                    pass

    async def test_a_guard_is_asked_before_a_handler_runs(self, stage: Stage) -> None:
        """What it refuses is refused with its words."""
        running = await stage.start(refusing(f"{AT}/hello"))
        assert "by a test" in told(await running.http.get(f"{AT}/hello"), 403)
        assert stage.played.callers == []
        assert (await running.http.get(f"{AT}/open")).status_code == 200

    async def test_a_foreign_host_is_refused(self, stage: Stage) -> None:
        """A page of somebody else reaches no daemon of this machine."""
        http = (await stage.start()).http
        told(await http.get(f"{AT}/hello", headers={"host": "evil.example"}), 403)
        origin = {"origin": "http://evil.example"}
        told(await http.post(f"{AT}/plain", content=b"", headers=origin), 403)
        assert stage.played.callers == []

    async def test_a_group_that_does_not_fit_is_not_served_at_all(
        self, stage: Stage
    ) -> None:
        """None of its routes is, its plugin has failed, and others are served."""
        odd = RouteGroup("odd")

        @odd.get("/odd", scope="odd:read")
        async def fits(_call: Call) -> Answer:
            """Serve what fits."""
            return {}

        @odd.get("/odd/<name>", scope="odd:read")
        async def unfit(_call: Call, another: str) -> Answer:
            """Want what the path does not have."""
            return {"another": another}

        running = await stage.start(offering("odd", odd))
        for path in ("/odd", "/odd/name"):
            told(await running.http.get(path), 404)
        assert (await running.http.get(f"{AT}/things/1")).json() == {"thing": 1}
        states = {state.key: state for state in running.daemon.plugins.states()}
        assert states["plugin:odd"].status is Status.FAILED
        assert states["plugin:contract"].status is Status.ENABLED

    async def test_a_taken_port_stops_the_start_and_is_free_after_the_stop(
        self, stage: Stage
    ) -> None:
        """Conflict names it; the next daemon gets it."""
        running = await stage.start()
        port = int(running.daemon.address.rpartition(":")[2])
        assert port
        with pytest.raises(Conflict, match=str(port)):
            await stage.start(port=port)
        assert (await running.http.get(f"{AT}/open")).status_code == 200
        await running.daemon.stop()
        again = await stage.start(port=port)
        assert again.daemon.address == running.daemon.address
        assert (await again.http.get(f"{AT}/open")).status_code == 200

    async def test_one_that_waits_holds_up_nobody(self, stage: Stage) -> None:
        """Many are served meanwhile, also on connections of their own."""
        running = await stage.start()
        async with asyncio.timeout(SECONDS):
            waiting = asyncio.ensure_future(running.http.get(f"{AT}/waits"))
            await stage.played.begun.wait()
            paths = [f"{AT}/things/{number}" for number in range(50)]
            answers = await asyncio.gather(*map(running.http.get, paths))
            assert [a.json()["thing"] for a in answers] == [*range(50)]
            stage.played.release.set()
            assert (await waiting).json() == {"waited": True}

    async def test_a_stream_is_given_frame_by_frame(self, stage: Stage) -> None:
        """Its first frame is there before the last; it ends when the client leaves."""
        running = await stage.start()
        async with asyncio.timeout(SECONDS):
            async with running.http.stream("GET", f"{AT}/streams") as answer:
                kind = answer.headers["content-type"]
                assert kind.startswith("text/event-stream")
                lines = answer.aiter_lines()
                assert await anext(lines) == "data: first"
                assert not stage.played.ended.is_set()
            await stage.played.ended.wait()

    async def test_a_socket_says_and_hears(self, stage: Stage) -> None:
        """Text by text; its handler hears when the client leaves."""
        running = await stage.start()
        async with asyncio.timeout(SECONDS):
            async with raw_socket(running) as socket:
                for text in ("one", "two"):
                    await socket.say(text)
                    assert await socket.hear() == (1, text.upper().encode())
            await stage.played.ended.wait()

    @pytest.mark.parametrize("said", MALFORMED)
    async def test_bytes_that_are_no_request_end_their_own_connection(
        self, stage: Stage, said: bytes
    ) -> None:
        """With a status of 4xx, if with any; everybody else is served."""
        running = await stage.start()
        async with asyncio.timeout(SECONDS):
            answer = await say(running, said)
        assert answer[:10] in {b"", b"HTTP/1.1 4"}, answer[:80]
        assert (await running.http.get(f"{AT}/open")).status_code == 200
        assert running.daemon.panics == 0

    async def test_a_drain_refuses_new_work_before_the_turns_end(
        self, stage: Stage
    ) -> None:
        """503 while they do; then streams and sockets end in good order."""
        running = await stage.start()
        answers: list[httpx.Response] = []

        async def end_turns() -> None:
            answers.append(await running.http.get(f"{AT}/hello"))
            stage.played.callers.append("turns")

        async with asyncio.timeout(SECONDS), raw_socket(running) as socket:
            stream = asyncio.ensure_future(running.http.get(f"{AT}/streams"))
            await stage.played.begun.wait()
            await running.daemon.front.drain(end_turns)
            assert (await stream).text.startswith("data: first")
            assert stage.played.ended.is_set()
            kind, why = await socket.hear()
        assert (kind, int.from_bytes(why[:2], "big")) == (8, 1001)
        told(answers[0], 503)
        assert stage.played.callers == ["turns"]

    async def test_a_stop_ends_what_still_runs(self, stage: Stage) -> None:
        """In its time; then nothing is open, and nobody is let in."""
        running = await stage.start()
        async with asyncio.timeout(SECONDS), connection(running) as (resting, _):
            waiting = asyncio.ensure_future(running.http.get(f"{AT}/waits"))
            await stage.played.begun.wait()
            await running.daemon.front.stop()
            await stage.played.ended.wait()
            with pytest.raises(httpx.HTTPError):
                (await waiting).raise_for_status()
            assert await resting.read() == b""
            with pytest.raises(httpx.ConnectError):
                await running.http.get(f"{AT}/open")
            await running.daemon.front.stop()
