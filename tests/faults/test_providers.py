"""F8: what providers do wrong, each through its own plugin and a whole turn."""

from __future__ import annotations

import itertools
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest
from agenthost.errors import ProviderError, ProviderFault
from agenthost.testing import Daemons
from agenthost.testing.simulators import Reply, ScriptedCall, Turn, Wire
from agenthost.testing.simulators.bedrock import frame
from agenthost_models.attempts import PATIENCE, ROUNDS

from tests.faults.stage import DIALECTS, TOOL, Spoken, Stage, everyone, staged

MIB = 1 << 20
JSON = {"Content-Type": "application/json"}
WORDS = "the first words of a longer answer"
HEALTHY = Turn("all is well again")
MALFORMED = frozenset({ProviderFault.MALFORMED})
BROKEN = frozenset({ProviderFault.UNREACHABLE})
FAILING = frozenset({ProviderFault.SERVER, ProviderFault.OVERLOADED})


@dataclass(frozen=True)
class Kind:
    """Something that goes wrong, before or after the first words came through."""

    name: str
    reply: Callable[[Wire], Reply]
    faults: frozenset[ProviderFault]
    waits: float = 0.0
    silence: float = 0.0


def refused(status: int, **headers: str) -> Callable[[Wire], Reply]:
    """Answer with an error status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda wire: Reply(
        (wire.refusal(status, "not now"),), status, {**JSON, **named}
    )


def begun(wire: Wire) -> tuple[bytes, ...]:
    """Write the first half of a streamed answer."""
    events = wire.events(Turn(WORDS))
    return tuple(events[: len(events) // 2])


def streamed(wire: Wire, chunks: Iterable[bytes] = (), **ends: bool) -> Reply:
    """Answer with a stream of these bytes."""
    return Reply(chunks, 200, {"Content-Type": wire.content_type}, **ends)


def giant_line(wire: Wire, mib: int = 9) -> Reply:
    """Begin a line, or a frame, that grows and grows."""
    start = b"data: "
    if "eventstream" in wire.content_type:
        lengths = struct.pack(">II", mib * MIB, 0)
        start = lengths + struct.pack(">I", zlib.crc32(lengths))
    return streamed(wire, (start, *[b"x" * MIB] * mib))


BEFORE_WORDS = (
    Kind(
        "429", refused(429, Retry_After="7"), frozenset({ProviderFault.RATE_LIMITED}), 7
    ),
    Kind("500", refused(500), frozenset({ProviderFault.SERVER})),
    Kind(
        "503", refused(503, Retry_After="3"), frozenset({ProviderFault.OVERLOADED}), 3
    ),
    Kind(
        "time-out",
        lambda wire: streamed(wire, stall=True),
        frozenset({ProviderFault.TIMEOUT}),
        silence=0.2,
    ),
    Kind("reset", lambda wire: streamed(wire, reset=True), BROKEN),
    Kind("malformed event", lambda wire: streamed(wire, [wire.garbage()]), MALFORMED),
    Kind("wrong JSON", lambda _: Reply((b'{"a": [1]}',), headers=JSON), MALFORMED),
    Kind("empty body", streamed, MALFORMED),
    Kind("giant line", giant_line, MALFORMED),
)
LATER = Kind(
    "429 for an hour",
    refused(429, Retry_After="3600"),
    frozenset({ProviderFault.RATE_LIMITED}),
)
AFTER_WORDS = (
    Kind("half-closed", lambda wire: streamed(wire, begun(wire)), MALFORMED),
    Kind("cut", lambda wire: streamed(wire, begun(wire), drop=True), BROKEN),
    Kind(
        "error inside the stream",
        lambda wire: streamed(wire, [*begun(wire), wire.failure("out of memory")]),
        FAILING,
    ),
    Kind(
        "malformed event in mid-answer",
        lambda wire: streamed(wire, [*begun(wire), wire.garbage()]),
        MALFORMED,
    ),
    Kind(
        "silence in mid-answer",
        lambda wire: streamed(wire, begun(wire), stall=True),
        frozenset({ProviderFault.TIMEOUT}),
        silence=0.2,
    ),
)


def fault_of(error: Exception | None) -> ProviderFault:
    """Tell the fault of an error, which must be the provider's."""
    assert isinstance(error, ProviderError), error
    return error.fault


def be_patient(monkeypatch: pytest.MonkeyPatch, kind: Kind) -> None:
    """The wire's own timer knows no injected clock: shorten it where it must fire."""
    for limit in ("SILENCE", "SILENCE_OF_THINKERS"):
        monkeypatch.setattr(f"agenthost_models.models.{limit}", kind.silence or 120.0)


@pytest.mark.parametrize("spoken", everyone(thorough=True))
async def test_a_fault_before_the_first_word_is_tried_again_and_then_named(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch, spoken: Spoken
) -> None:
    async with staged(daemons, spoken) as stage:
        for kind in BEFORE_WORDS:
            be_patient(monkeypatch, kind)
            await lasting(stage, kind)
            await passing(stage, kind)
        be_patient(monkeypatch, LATER)
        await hopeless(stage)


async def lasting(stage: Stage, kind: Kind) -> None:
    """A fault that stays ends the turn within the deadline, with its name."""
    scenes = [kind.reply(stage.wire) for _ in range(ROUNDS)]
    seen = await stage.turn(await stage.agent(), *scenes)
    assert fault_of(seen.error) in kind.faults, kind.name
    assert len(seen.heard) == ROUNDS, kind.name
    assert kind.waits * (ROUNDS - 1) <= seen.waited <= PATIENCE, kind.name
    assert not seen.partial, kind.name
    seen.check_failed("")


async def hopeless(stage: Stage) -> None:
    """A wait beyond the deadline is neither cut short nor sat out."""
    seen = await stage.turn(await stage.agent(), LATER.reply(stage.wire), HEALTHY)
    assert fault_of(seen.error) in LATER.faults
    assert len(seen.heard) == 1
    assert seen.waited <= PATIENCE
    seen.check_failed("")


async def passing(stage: Stage, kind: Kind) -> None:
    """A fault that passes is not seen in the answer."""
    seen = await stage.turn(await stage.agent(), kind.reply(stage.wire), HEALTHY)
    assert len(seen.heard) == 2, kind.name
    assert kind.waits <= seen.waited <= PATIENCE, kind.name
    seen.check_done(HEALTHY.text)


@pytest.mark.parametrize("spoken", everyone(thorough=True))
async def test_a_fault_after_the_first_words_is_named_and_they_are_marked_partial(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch, spoken: Spoken
) -> None:
    async with staged(daemons, spoken) as stage:
        for kind in AFTER_WORDS:
            be_patient(monkeypatch, kind)
            agent = await stage.agent()
            seen = await stage.turn(agent, kind.reply(stage.wire), HEALTHY)
            assert fault_of(seen.error) in kind.faults, kind.name
            assert len(seen.heard) == 1, kind.name
            (words,) = seen.partial
            assert 0 < len(words) < len(WORDS), kind.name
            seen.check_failed(WORDS)
            again = await stage.turn(agent, HEALTHY)
            again.check_done(HEALTHY.text)


@pytest.mark.parametrize("spoken", everyone(thorough=True))
async def test_an_answer_that_drips_is_the_same_answer(
    daemons: Daemons, spoken: Spoken
) -> None:
    async with staged(daemons, spoken) as stage:
        whole = b"".join(stage.wire.events(Turn(WORDS)))
        drops = (whole[at : at + 1] for at in range(len(whole)))
        seen = await stage.turn(await stage.agent(), streamed(stage.wire, drops))
        seen.check_done(WORDS)
        assert (len(seen.heard), seen.waited) == (1, 0)


@pytest.mark.parametrize("spoken", everyone(tools=True, thorough=True))
async def test_calls_of_equal_ids_are_each_made_once(
    daemons: Daemons, spoken: Spoken
) -> None:
    calls = tuple(
        ScriptedCall(TOOL, f'{{"city": "{city}", "words": "hello"}}', "call_1")
        for city in ("Lisbon", "Porto")
    )
    async with staged(daemons, spoken) as stage:
        agent = await stage.agent()
        for _ in range(2):
            stage.office.posted.clear()
            seen = await stage.turn(agent, Turn(calls=calls), HEALTHY)
            seen.check_done(HEALTHY.text)
            assert stage.office.posted == [("Lisbon", "hello"), ("Porto", "hello")]
            assert [row["state"] for row in seen.calls] == ["committed"] * 2
            texts = [text for _, text in seen.heard[1].results]
            assert texts[-2:] == ["posted to Lisbon", "posted to Porto"]


HEARTBEATS = {
    "ollama": b"\n",
    "bedrock-converse": frame({":event-type": "ping", ":message-type": "event"}, b"{}"),
}


@pytest.mark.faults
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_drip_that_never_ends_is_a_time_out(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    monkeypatch.setattr("agenthost_models.means.LONGEST_CALL", 0.1)
    beat = HEARTBEATS.get(dialect, b": ping\n\n")
    async with staged(daemons, DIALECTS[dialect]) as stage:
        drips = [streamed(stage.wire, itertools.repeat(beat)) for _ in range(ROUNDS)]
        seen = await stage.turn(await stage.agent(), *drips)
        assert fault_of(seen.error) is ProviderFault.TIMEOUT
        seen.check_failed("")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_giant_line_takes_no_more_memory_than_the_limit_allows(
    daemons: Daemons, dialect: str
) -> None:
    async with staged(daemons, DIALECTS[dialect]) as stage:
        agent = await stage.agent()
        await stage.turn(agent, HEALTHY)
        tracemalloc.start()
        try:
            seen = await stage.turn(agent, giant_line(stage.wire, 128), HEALTHY)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        seen.check_done(HEALTHY.text)
        assert len(seen.heard) == 2
        assert peak < 32 * MIB
