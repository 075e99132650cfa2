"""What an adapter promises that its vendor calls: verified first, read afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import ClassVar

import pytest
from agenthost import InvalidInput, NotFound, Unauthenticated
from pydantic import BaseModel

from ..contract import Adapter, Knock
from .line import FakeLine

NOW = 1_800_000_000
HOSTILE = (b"", b"{", b"[" * 200_000, b"\xff\xfe", b"null", b"[]", b'"text"', b"NaN")


class StandingClock:
    """A clock that stands where a test puts it."""

    def __init__(self, seconds: float = NOW) -> None:
        self.seconds = seconds

    def now(self) -> datetime:
        """Tell the time."""
        return datetime.fromtimestamp(self.seconds, UTC)


class Caller:
    """The vendor, as far as it calls.

    Attributes:
        channel: The adapter's class.
        signing: The headers without which a request is nobody's.
        timed: Whether the vendor signs when it calls.
        whole: Whether the vendor signs the body.
    """

    channel: ClassVar[type[Adapter]]
    signing: ClassVar[frozenset[str]]
    timed: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    def settings(self) -> BaseModel:
        """Give settings with which the vendor calls."""
        raise NotImplementedError

    def secrets(self) -> Mapping[str, str]:
        """Give the secrets; those that sign among them."""
        raise NotImplementedError

    def others(self) -> Mapping[str, str]:
        """Give secrets of somebody else."""
        raise NotImplementedError

    def body(self, text: str) -> bytes:
        """Write what the vendor sends when somebody says this."""
        raise NotImplementedError

    def knock(self, body: bytes) -> Knock:
        """Sign a body as the vendor does at ``NOW``."""
        raise NotImplementedError

    async def ready(self, adapter: Adapter) -> None:
        """Let an adapter know who we are, where it has to before it can read."""


class CalledContract:
    """An adapter that is called believes its vendor alone.

    A subclass gives the fixture ``caller``.

    Example:
        ::

            class TestPagerIsCalled(CalledContract):
                @pytest.fixture
                def caller(self) -> Caller:
                    return PagerCaller()
    """

    async def _made(
        self, caller: Caller, at: float = NOW, secrets: Mapping[str, str] | None = None
    ) -> Adapter:
        given = caller.secrets() if secrets is None else secrets
        clock = StandingClock(at)
        line = FakeLine(caller.settings(), given, clock)  # type: ignore[arg-type]  # reason: an adapter asks it for the time alone
        adapter = caller.channel(line)
        await caller.ready(adapter)
        return adapter

    async def test_it_says_that_it_is_called(self, caller: Caller) -> None:
        """By which its public path is there."""
        adapter = await self._made(caller)
        assert adapter.called
        assert adapter.takes

    async def test_what_is_right_is_heard(self, caller: Caller) -> None:
        """With an id that is the same each time it comes."""
        adapter = await self._made(caller)
        knock = caller.knock(caller.body("hello"))
        first, second = await adapter.open(knock), await adapter.open(knock)
        assert [each.text for each in first.messages] == ["hello"]
        assert 200 <= first.status < 300
        assert first == second
        assert first.messages[0].message_id

    async def test_without_its_signature_it_is_nobodys(self, caller: Caller) -> None:
        """Each header of it is needed, empty ones and odd ones are none."""
        adapter = await self._made(caller)
        knock = caller.knock(caller.body("hello"))
        assert caller.signing <= set(knock.headers)
        for name in caller.signing:
            rest = {key: v for key, v in knock.headers.items() if key != name}
            for odd in ({}, {name: ""}, {name: "\udc80\xff"}, {name: "9" * 9_000}):
                with pytest.raises(Unauthenticated):
                    await adapter.open(replace(knock, headers=rest | odd))

    async def test_what_others_have_signed_is_refused(self, caller: Caller) -> None:
        """And so is everything while the secret is not set."""
        knock = caller.knock(caller.body("hello"))
        for secrets in (caller.others(), {}):
            adapter = await self._made(caller, secrets=secrets)
            with pytest.raises(Unauthenticated) as told:
                await adapter.open(knock)
            # What the operator has forgotten is not told to whoever calls.
            for variable in caller.channel.secrets.values():
                assert variable not in str(told.value)

    async def test_a_changed_body_is_refused(self, caller: Caller) -> None:
        """By a byte, at its end, or wholly."""
        if not caller.whole:
            pytest.skip("the vendor does not sign bodies")
        adapter = await self._made(caller)
        knock = caller.knock(caller.body("hello"))
        for body in (knock.body + b" ", knock.body[:-1], b"", caller.body("evil")):
            with pytest.raises(Unauthenticated):
                await adapter.open(replace(knock, body=body))

    async def test_another_time_is_refused(self, caller: Caller) -> None:
        """An hour early or late, by our clock."""
        if not caller.timed:
            pytest.skip("the vendor does not sign its time")
        knock = caller.knock(caller.body("hello"))
        for at in (NOW - 3600, NOW + 3600, 0):
            adapter = await self._made(caller, at)
            with pytest.raises(Unauthenticated):
                await adapter.open(knock)

    async def test_nothing_is_read_before_it_is_verified(self, caller: Caller) -> None:
        """Bytes that make no sense are as wrong as any while nobody has signed them."""
        adapter = await self._made(caller)
        for body in HOSTILE:
            bare = replace(caller.knock(body), headers={})
            with pytest.raises(Unauthenticated):
                await adapter.open(bare)

    async def test_what_is_signed_and_senseless_is_told(self, caller: Caller) -> None:
        """By its field, and nothing is heard; nothing breaks."""
        adapter = await self._made(caller)
        for body in HOSTILE:
            with pytest.raises(InvalidInput):
                await adapter.open(caller.knock(body))

    async def test_who_only_looks_gets_nothing(self, caller: Caller) -> None:
        """A GET without what the operator has told the vendor."""
        adapter = await self._made(caller)
        bare = Knock("GET", "/x", {"hub.challenge": "1", "challenge": "1"}, {}, b"")
        with pytest.raises((NotFound, Unauthenticated)):
            await adapter.greet(bare)

    async def test_no_refusal_shows_a_secret(self, caller: Caller) -> None:
        """It is told to whoever has called."""
        adapter = await self._made(caller)
        with pytest.raises(Unauthenticated) as told:
            await adapter.open(replace(caller.knock(b"{}"), headers={}))
        for value in caller.secrets().values():
            assert value not in str(told.value)
