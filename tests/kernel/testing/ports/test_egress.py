"""The contract of the way out holds for a scripted one, and finds who breaks it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import httpx
import pytest
from agenthost import (
    CHECK_HOST,
    CONTEXT,
    FINAL_URL,
    AgentHostError,
    EgressPolicy,
    Guards,
)
from agenthost.testing import EgressContract, OpenEgress, Peer, ScriptedEgress
from agenthost.testing.ports import egress
from agenthost.testing.ports.asking import Asking
from agenthost.testing.ports.peer import LocalPeer

from .finding import finds, names_in, names_of


class TestAScriptedWayOut(EgressContract):
    """It keeps every promise."""

    @pytest.fixture
    async def peer(self) -> Any:
        return Peer()

    @pytest.fixture
    def opened(self, peer: Peer) -> OpenEgress:
        return partial(ScriptedEgress, peer=peer)


class Altered(ScriptedEgress):
    """Each policy's client lets requests and answers be altered on their way."""

    def client(self, policy: EgressPolicy) -> httpx.AsyncClient:
        client = super().client(self.policy(policy))
        client.event_hooks = {"request": [self.before], "response": [self.after]}
        return client

    def policy(self, policy: EgressPolicy) -> EgressPolicy:
        return policy

    async def before(self, request: httpx.Request) -> None: ...

    async def after(self, answer: httpx.Response) -> None: ...


class DropsHeaders(Altered):
    async def before(self, request: httpx.Request) -> None:
        request.headers.pop("x-ask", None)


class ForgetsWhere(Altered):
    async def after(self, answer: httpx.Response) -> None:
        answer.extensions[FINAL_URL] = ""


class OneForAll(Altered):
    def policy(self, policy: EgressPolicy) -> EgressPolicy:
        return EgressPolicy("all")


class AlwaysNew(ScriptedEgress):
    def client(self, policy: EgressPolicy) -> httpx.AsyncClient:
        self._clients.clear()
        return super().client(policy)


class MixesAnswers(Altered):
    last = b""

    async def after(self, answer: httpx.Response) -> None:
        answer.stream = httpx.ByteStream(self.last)
        self.last = str(answer.request.url).encode()


class AsksAfterwards(ScriptedEgress):
    def __init__(self, guards: Guards, peer: Peer) -> None:
        super().__init__(guards, peer)
        hear = peer.hear
        self.guards = Asking().guards

        def heard(asked: Any) -> Any:
            reply = hear(asked)
            self.guards = guards
            self._clients[EgressPolicy("plain")]._transport._connection(  # type: ignore[attr-defined]  # reason: a fake's own
                httpx.Request(asked.method, asked.url)
            )
            return reply

        peer.hear = heard  # type: ignore[method-assign]  # reason: heard first


class AsksNobody(ScriptedEgress):
    def __init__(self, guards: Guards, peer: Peer) -> None:
        super().__init__(Asking().guards, peer)


class TellsNoContext(Altered):
    async def before(self, request: httpx.Request) -> None:
        request.extensions.pop(CONTEXT, None)


class TellsNoHosts(Altered):
    def policy(self, policy: EgressPolicy) -> EgressPolicy:
        return replace(policy, allowed_hosts=frozenset())


class NeverFollows(Altered):
    def policy(self, policy: EgressPolicy) -> EgressPolicy:
        return replace(policy, max_redirects=0)


class FollowsForEver(Altered):
    def policy(self, policy: EgressPolicy) -> EgressPolicy:
        return replace(policy, max_redirects=20)


class ChecksNoHost(Altered):
    async def before(self, request: httpx.Request) -> None:
        request.extensions.pop(CHECK_HOST, None)


class TrustsEverybody(Altered):
    async def after(self, answer: httpx.Response) -> None:
        self.peer.heard[-1] = replace(
            self.peer.heard[-1], headers={"x-key": "sk-canary"}
        )


class TakesAll(Altered):
    def policy(self, policy: EgressPolicy) -> EgressPolicy:
        return replace(policy, max_bytes=None)


class CutsEarly(Altered):
    def policy(self, policy: EgressPolicy) -> EgressPolicy:
        return replace(policy, max_bytes=policy.max_bytes and policy.max_bytes - 1)


class HasTime(Altered):
    def policy(self, policy: EgressPolicy) -> EgressPolicy:
        return replace(policy, timeout=100.0, total_timeout=None)


class TriesAgain(Altered):
    async def after(self, answer: httpx.Response) -> None:
        try:
            await answer.aread()
        except AgentHostError:
            answer.stream = httpx.ByteStream(b"")


class TakesAnyUrl(Altered):
    async def before(self, request: httpx.Request) -> None:
        request.url = httpx.URL(self.peer.url)


class KeepsCookies(ScriptedEgress):
    def client(self, policy: EgressPolicy) -> httpx.AsyncClient:
        client = super().client(policy)
        client.cookies.jar.set_policy(DefaultCookiePolicy())
        return client


class TrustsTheEnvironment(ScriptedEgress):
    def client(self, policy: EgressPolicy) -> httpx.AsyncClient:
        return httpx.AsyncClient(trust_env=True)


class WaitsForTheEnd(Altered):
    async def after(self, answer: httpx.Response) -> None:
        await answer.aread()


class HoldsOn(Altered):
    def __init__(self, guards: Guards, peer: Peer) -> None:
        super().__init__(guards, peer)
        peer.left.set = lambda: None  # type: ignore[method-assign]  # reason: nobody sees it


class ServesOn(ScriptedEgress):
    async def close(self) -> None:
        pass


class ClosesOnce(ScriptedEgress):
    async def close(self) -> None:
        self.check_open()
        await super().close()


class LoadsOnTheLoop(ScriptedEgress):
    async def warm_up(self) -> None:
        load = time.sleep
        load(0.001)


HERE = TestAScriptedWayOut()
HASTY = (egress.HASTY,)
BREACHES: tuple[tuple[type[ScriptedEgress], Any, tuple[object, ...]], ...] = (
    (DropsHeaders, HERE.test_a_request_arrives_and_its_answer_comes_back, ()),
    (ForgetsWhere, HERE.test_a_request_arrives_and_its_answer_comes_back, ()),
    (OneForAll, HERE.test_a_policy_has_one_client_and_connections_of_its_own, ()),
    (AlwaysNew, HERE.test_a_policy_has_one_client_and_connections_of_its_own, ()),
    (MixesAnswers, HERE.test_requests_at_once_each_get_their_own_answer, ()),
    (AsksAfterwards, HERE.test_a_guard_is_asked_before_anything_leaves, ()),
    (AsksNobody, HERE.test_a_guard_is_asked_before_anything_leaves, ()),
    (
        TellsNoContext,
        HERE.test_a_guard_is_told_for_whom_and_what_the_operator_allows,
        (),
    ),
    (
        TellsNoHosts,
        HERE.test_a_guard_is_told_for_whom_and_what_the_operator_allows,
        (),
    ),
    (AsksNobody, HERE.test_without_its_protection_nothing_leaves, ()),
    (NeverFollows, HERE.test_a_redirect_is_handed_back_unless_the_policy_follows, ()),
    (FollowsForEver, HERE.test_a_redirect_is_handed_back_unless_the_policy_follows, ()),
    (AsksNobody, HERE.test_each_redirect_is_asked_anew, ()),
    (ChecksNoHost, HERE.test_each_redirect_is_asked_anew, ()),
    (TrustsEverybody, HERE.test_a_redirect_takes_no_credentials_along, ()),
    (TakesAll, HERE.test_a_body_over_the_limit_is_cut, ()),
    (CutsEarly, HERE.test_a_body_over_the_limit_is_cut, ()),
    (HasTime, HERE.test_who_does_not_answer_in_time_is_not_waited_for, HASTY),
    (TriesAgain, HERE.test_it_is_told_whether_a_request_has_left, ()),
    (TakesAnyUrl, HERE.test_an_odd_url_is_refused, ("ftp://{}/",)),
    (KeepsCookies, HERE.test_callers_share_no_cookies, ()),
    (WaitsForTheEnd, HERE.test_an_answer_is_given_piece_by_piece, ()),
    (HoldsOn, HERE.test_a_cancelled_request_is_let_go, ()),
    (ServesOn, HERE.test_nothing_leaves_once_it_is_closed, ()),
    (ClosesOnce, HERE.test_nothing_leaves_once_it_is_closed, ()),
    (ServesOn, HERE.test_closing_ends_what_is_under_way, ()),
    (LoadsOnTheLoop, HERE.test_it_leaves_the_loop_free, ()),
)


@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test", "more"), BREACHES)
async def test_a_broken_way_out_is_found(
    broken: type[ScriptedEgress],
    test: Any,
    more: tuple[object, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(egress, "SECONDS", 2.0)
    peer = Peer()
    await finds(test, partial(broken, peer=peer), peer, *more)


async def test_one_that_trusts_the_environment_is_found() -> None:
    async with LocalPeer() as peer:
        opened = partial(TrustsTheEnvironment, peer=peer)
        with pytest.raises(httpx.HTTPError):
            await HERE.test_the_environment_names_no_proxy(opened, peer)


def test_every_test_of_the_contract_can_fail() -> None:
    found = names_in(breach[1] for breach in BREACHES)
    found.add("test_the_environment_names_no_proxy")
    assert found == names_of(EgressContract)
