"""What every backend of the port EGRESS promises, as tests to inherit."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx
import pytest
import pytest_asyncio

from ...context import OPERATOR, Context
from ...errors import (
    Blocked,
    Denied,
    InvalidInput,
    NotSent,
    OutcomeUnknown,
    TooLarge,
    Unavailable,
)
from ...plugins.guards import Guards
from ...plugins.points import Guard, GuardPoint
from ...ports.egress import CHECK_HOST, CONTEXT, FINAL_URL, Egress, EgressPolicy
from ..simulators.script import Reply
from ..steps import check_steps
from .asking import Asking
from .peer import Asked, LocalPeer, Peer

OpenEgress = Callable[[Guards], Egress]
SECONDS = 30.0
"""How long anything may take here."""

PLAIN = EgressPolicy("plain")
HASTY = EgressPolicy("hasty", timeout=0.2)
LIMITED = EgressPolicy("limited", max_bytes=1_000)
FOLLOWING = EgressPolicy("following", max_redirects=2)
PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
STALL = Reply(status=0, stall=True)
ODD = ("ftp://{}/", "file:///etc/passwd", "http://me:secret@{}/", "/relative")


@asynccontextmanager
async def going(
    opened: OpenEgress, guards: Guards | None = None
) -> AsyncIterator[Egress]:
    """Open the way out, and close it, all in time."""
    async with asyncio.timeout(SECONDS):
        egress = opened(Asking().guards if guards is None else guards)
        try:
            yield egress
        finally:
            await egress.close()


def is_case(point: GuardPoint[Any], case: object) -> bool:
    """Tell whether it is a case of the point."""
    return isinstance(case, point.case)


def always(reply: Reply) -> Callable[[Asked], Reply]:
    """Answer everybody so."""
    return lambda _: reply


def to_other(peer: Peer, status: int = 302) -> Callable[[Asked], Reply]:
    """Send whoever comes to ``/start`` on to the peer's other name."""

    def answer(asked: Asked) -> Reply:
        path = asked.url.rpartition("/")[2]
        onward = {"start": "/end", "two": "/start", "three": "/two"}
        if path in onward:
            return Reply([], status, {"location": peer.other + onward[path]})
        return Reply([b"arrived"])

    return answer


class EgressContract:
    """The way out keeps every promise of the port.

    A subclass overrides the fixture ``opened``: a function that opens the way out with
    guards. The fixture ``peer`` is a server on this machine.

    Example:
        ::

            class TestTunnel(EgressContract):
                @pytest.fixture
                def opened(self) -> OpenEgress:
                    return open_tunnel
    """

    @pytest_asyncio.fixture
    async def peer(self) -> AsyncIterator[Peer]:
        """Who is asked."""
        async with LocalPeer() as peer:
            yield peer

    @pytest.fixture
    def opened(self) -> OpenEgress:
        """What opens the way out."""
        pytest.fail("override the fixture `opened` with what opens the way out")

    async def test_a_request_arrives_and_its_answer_comes_back(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """With method, path, headers and body as they were given."""
        peer.answer = lambda _: Reply([b"as", b" told"], 418, {"x-answer": "1"})
        async with going(opened) as egress:
            answer = await egress.client(PLAIN).post(
                f"{peer.url}/a%2Fb?c=%20", content=b"\0body", headers={"X-Ask": "2"}
            )
        (heard,) = peer.heard
        assert (heard.method, heard.body) == ("POST", b"\0body")
        assert heard.url == f"{peer.url}/a%2Fb?c=%20"
        assert heard.headers["x-ask"] == "2"
        assert (answer.status_code, answer.content) == (418, b"as told")
        assert answer.headers["x-answer"] == "1"
        assert answer.extensions[FINAL_URL] == f"{peer.url}/a%2Fb?c=%20"

    async def test_a_policy_has_one_client_and_connections_of_its_own(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """Its requests share them; those of another policy never do."""
        async with going(opened) as egress:
            assert egress.client(PLAIN) is egress.client(EgressPolicy("plain"))
            for policy in (PLAIN, PLAIN, EgressPolicy("another")):
                await egress.client(policy).get(peer.url)
        first, again, another = (asked.connection for asked in peer.heard)
        assert first == again
        assert first != another

    async def test_requests_at_once_each_get_their_own_answer(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """However many there are."""
        peer.answer = lambda asked: Reply([asked.url.encode()])
        urls = [f"{peer.url}/{number}" for number in range(50)]
        async with going(opened) as egress:
            client = egress.client(PLAIN)
            answers = await asyncio.gather(*(client.get(url) for url in urls))
        assert [answer.text for answer in answers] == urls

    async def test_a_guard_is_asked_before_anything_leaves(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """At ``url`` of each request, at ``address`` of each connection."""
        host = httpx.URL(peer.url).host
        for point in (Guard.URL, Guard.ADDRESS):
            asking = Asking(partial(is_case, point))
            async with going(opened, asking.guards) as egress:
                with pytest.raises(Blocked, match="refused by a test"):
                    await egress.client(PLAIN).get(peer.url)
            assert peer.heard == []
            assert {case.host for case in asking.at(point)} == {host}

    async def test_a_guard_is_told_for_whom_and_what_the_operator_allows(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """The context of the request, and the policy's ``allowed_hosts``."""
        context = Context(OPERATOR, turn_id="turn")
        policy = EgressPolicy("told", allowed_hosts=frozenset({"a.example"}))
        asking = Asking()
        async with going(opened, asking.guards) as egress:
            client = egress.client(policy)
            await client.get(peer.url, extensions={CONTEXT: context})
            await client.get(peer.url)
        for point, contexts in (
            (Guard.URL, [context, None]),
            (Guard.ADDRESS, [context]),
        ):
            cases = asking.at(point)
            assert [case.context for case in cases] == contexts
            assert {case.allowed_hosts for case in cases} == {policy.allowed_hosts}

    async def test_without_its_protection_nothing_leaves(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """The points are closed while the system that they require is not there."""
        async with going(opened, Guards()) as egress:
            with pytest.raises(Blocked):
                await egress.client(PLAIN).get(peer.url)
        assert peer.heard == []

    async def test_a_redirect_is_handed_back_unless_the_policy_follows(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """And it follows so many, and tells where it came to."""
        peer.answer = to_other(peer)
        async with going(opened) as egress:
            back = await egress.client(PLAIN).get(f"{peer.url}/start")
            assert (back.status_code, back.headers["location"]) == (
                302,
                f"{peer.other}/end",
            )
            client = egress.client(FOLLOWING)
            answer = await client.get(f"{peer.url}/two")
            assert answer.text == "arrived"
            assert answer.extensions[FINAL_URL] == f"{peer.other}/end"
            with pytest.raises(httpx.TooManyRedirects):
                await client.get(f"{peer.url}/three")

    async def test_each_redirect_is_asked_anew(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """The guards and the caller's own check; what they refuse is not asked for."""
        peer.answer = to_other(peer)
        first, other = httpx.URL(peer.url).host, httpx.URL(peer.other).host
        asking = Asking(lambda case: case.host == other)
        async with going(opened, asking.guards) as egress:
            with pytest.raises(Blocked):
                await egress.client(FOLLOWING).get(f"{peer.url}/start")
        assert [case.host for case in asking.at(Guard.URL)] == [first, other]
        seen: list[str] = []

        def check(host: str) -> None:
            seen.append(host)
            if host == other:
                raise Denied("not there")

        async with going(opened) as egress:
            with pytest.raises(Denied, match="not there"):
                await egress.client(FOLLOWING).get(
                    f"{peer.url}/start", extensions={CHECK_HOST: check}
                )
        assert seen == [first, other]
        assert {asked.url for asked in peer.heard} == {f"{peer.url}/start"}

    async def test_a_redirect_takes_no_credentials_along(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """Another host gets neither the key nor any header of the caller's own."""
        peer.answer = to_other(peer)
        mine = {"Authorization": "Bearer sk-canary", "X-Key": "sk-canary"}
        async with going(opened) as egress:
            await egress.client(FOLLOWING).get(f"{peer.url}/start", headers=mine)
        first, last = peer.heard
        assert first.headers["authorization"] == "Bearer sk-canary"
        assert "sk-canary" not in str(last.headers)

    async def test_a_body_over_the_limit_is_cut(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """As it is once decompressed; one of just so many bytes is whole."""
        sizes = {"just": 1_000, "over": 1_001, "bomb": 10_000_000}
        packed = {"content-encoding": "gzip"}

        def answer(asked: Asked) -> Reply:
            path = asked.url.rpartition("/")[2]
            body = b"x" * sizes[path.removeprefix("packed-")]
            if path.startswith("packed-"):
                return Reply([gzip.compress(body)], headers=packed)
            return Reply([body[:500], body[500:]])

        peer.answer = answer
        async with going(opened) as egress:
            client = egress.client(LIMITED)
            for path in ("just", "packed-just"):
                assert (await client.get(f"{peer.url}/{path}")).content == b"x" * 1_000
            for path in ("over", "packed-over", "packed-bomb"):
                with pytest.raises(TooLarge):
                    await client.get(f"{peer.url}/{path}")

    @pytest.mark.parametrize("policy", [HASTY, EgressPolicy("all", total_timeout=0.2)])
    async def test_who_does_not_answer_in_time_is_not_waited_for(
        self, opened: OpenEgress, peer: Peer, policy: EgressPolicy
    ) -> None:
        """Between two pieces, and in all."""
        async with going(opened) as egress:
            for reply in (STALL, Reply([b"a piece"], stall=True)):
                peer.answer = always(reply)
                with pytest.raises(httpx.TimeoutException):
                    await egress.client(policy).get(peer.url)

    async def test_it_is_told_whether_a_request_has_left(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """NotSent where nobody is, OutcomeUnknown where somebody broke off."""
        async with going(opened) as egress:
            client = egress.client(PLAIN)
            with pytest.raises(NotSent):
                await client.get(peer.nowhere)
            for reply in (Reply(status=0, drop=True), Reply([b"half"], drop=True)):
                peer.answer = always(reply)
                with pytest.raises(OutcomeUnknown):
                    await client.post(peer.url, content=b"once")

    @pytest.mark.parametrize("url", ODD)
    async def test_an_odd_url_is_refused(
        self, opened: OpenEgress, peer: Peer, url: str
    ) -> None:
        """What is not plain http(s) goes nowhere; no text of it is repeated."""
        async with going(opened) as egress:
            with pytest.raises(InvalidInput) as refused:
                await egress.client(PLAIN).get(url.format(httpx.URL(peer.url).host))
        assert "secret" not in str(refused.value)
        assert peer.heard == []

    async def test_callers_share_no_cookies(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """What a peer wants to be told again is not kept."""
        peer.answer = lambda _: Reply([b"ok"], headers={"set-cookie": "a=b; Path=/"})
        async with going(opened) as egress:
            for _ in range(2):
                await egress.client(PLAIN).get(peer.url)
        assert all("cookie" not in asked.headers for asked in peer.heard)

    async def test_the_environment_names_no_proxy(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """A variable would lead past the guards."""
        with pytest.MonkeyPatch.context() as patch:
            for name in PROXIES:
                patch.setenv(name, peer.nowhere)
            patch.setenv("NO_PROXY", "")
            async with going(opened) as egress:
                assert (await egress.client(PLAIN).get(peer.url)).text == "ok"

    async def test_an_answer_is_given_piece_by_piece(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """The first is there before the last; who leaves then ends the answer."""
        peer.answer = lambda _: Reply([b"first"], stall=True)
        async with going(opened) as egress:
            async with egress.client(PLAIN).stream("GET", peer.url) as answer:
                async for piece in answer.aiter_bytes():
                    assert piece == b"first"
                    break
                await answer.aclose()
            peer.answer = lambda _: Reply([b"next"])
            assert (await egress.client(PLAIN).get(peer.url)).text == "next"

    async def test_a_cancelled_request_is_let_go(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """The peer sees it leave, and the next one is served."""
        asked = asyncio.Event()

        def answer(_: Asked) -> Reply:
            asked.set()
            return STALL

        peer.answer = answer
        async with going(opened) as egress:
            request = asyncio.ensure_future(egress.client(PLAIN).get(peer.url))
            await asked.wait()
            request.cancel()
            await asyncio.wait({request})
            assert request.cancelled()
            await peer.left.wait()
            peer.answer = lambda _: Reply([b"next"])
            assert (await egress.client(PLAIN).get(peer.url)).text == "next"

    async def test_nothing_leaves_once_it_is_closed(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """Unavailable, also by a client from before; closing twice is fine."""
        async with going(opened) as egress:
            used, unused = egress.client(PLAIN), egress.client(LIMITED)
            await used.get(peer.url)
            for _ in range(2):
                await egress.close()
            with pytest.raises(Unavailable):
                egress.client(PLAIN)
            for client in (used, unused):
                with pytest.raises(Unavailable):
                    await client.get(peer.url)
        assert len(peer.heard) == 1

    async def test_closing_ends_what_is_under_way(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """Who waits for an answer is told."""
        asked = asyncio.Event()

        def answer(_: Asked) -> Reply:
            asked.set()
            return STALL

        peer.answer = answer
        async with going(opened) as egress:
            request = asyncio.ensure_future(egress.client(PLAIN).get(peer.url))
            await asked.wait()
            await egress.close()
            with pytest.raises((OutcomeUnknown, Unavailable)):
                await request
            await peer.left.wait()

    async def test_it_leaves_the_loop_free(
        self, opened: OpenEgress, peer: Peer
    ) -> None:
        """What the first request would wait for is done off the loop."""
        async with going(opened) as egress:
            await check_steps("warming up", egress.warm_up)
            client = egress.client(PLAIN)
            await check_steps("a request", lambda: client.get(peer.url))
