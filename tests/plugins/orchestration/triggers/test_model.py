"""Whatever happens, and whenever the process dies, each match fires exactly once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agenthost import Custom
from agenthost.testing.ports.memory_store import memory_engine
from hypothesis import given, settings
from hypothesis import strategies as st

from .worlds import AGENTS, World

EVENT = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["order", "ordered", "paid"]),
        "subject": st.sampled_from(["shop", "till"]),
        "source": st.sampled_from(["", *AGENTS]),
        "depth": st.sampled_from([0, 0, 0, 4, 5]),
    }
)
WISH = st.fixed_dictionaries(
    {
        "word": st.sampled_from(["", "order", 'order"', "paid"]),
        "agent_id": st.sampled_from(AGENTS),
        "own_events": st.booleans(),
        "max_fires": st.sampled_from([0, 0, 1, 2]),
        "cooldown_secs": st.sampled_from([0.0, 5.0, 50.0]),
    }
)
ACT = st.one_of(
    st.tuples(st.just("wish"), WISH),
    st.tuples(st.just("crowd"), WISH),
    st.tuples(st.just("cause"), EVENT),
    st.tuples(st.just("cause"), EVENT),
    st.tuples(st.just("cause and die"), EVENT),
    st.tuples(st.just("cause, tell nobody"), EVENT),
    st.tuples(st.just("tell alone"), EVENT),
    st.tuples(st.just("fail"), EVENT),
    st.tuples(st.just("two at once"), EVENT),
    st.tuples(st.just("again"), st.integers(0, 9)),
    st.tuples(st.just("switch"), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 6.0, 60.0, 4000.0, -3.0])),
    st.tuples(st.just("die"), st.none()),
)


async def act(world: World, name: str, facts: Any) -> None:  # noqa: C901, PLR0912 - one case an act
    def event() -> Custom:
        said = dict(facts)
        subject, type_ = said.pop("subject"), said.pop("type")
        return Custom(subject, world.clock.time(), type_, {}, **said)

    match name:
        case "wish":
            await world.wish(**facts)
        case "crowd":
            for _ in range(11):
                await world.wish(**facts)
        case "cause" | "cause and die" | "cause, tell nobody":
            one = event()
            await world.commit(one, world.ask(one), told=name == "cause")
        case "tell alone":
            one = event()
            world.events.append(one)
            world.model.happens(one, world.clock.time())
            world.bus.publish(one)
        case "fail":
            await world.fail(world.ask(event()))
        case "two at once":
            one, two = event(), event()
            keeps = [(one, world.ask(one)), (two, world.ask(two))]
            for each, keep in reversed(keeps):
                await world.commit(each, keep, told=True)
        case "again" if world.events:
            one = world.events[-1 - facts % len(world.events)]
            await world.commit(one, world.ask(one), told=True)
        case "switch":
            await world.switch(facts)
        case "wait":
            await world.clock.advance(facts)
    if name in ("die", "cause and die"):
        await world.crash()
    else:
        await world.settle()


async def play(acts: list[tuple[str, Any]]) -> None:
    engine = memory_engine()
    world = World(engine)
    await world.start()
    for name, facts in acts:
        await act(world, name, facts)
        assert await world.fates() == world.model.fates, name
    assert await world.counts() == sorted(
        (name, wish.fires, wish.enabled) for name, wish in world.model.wishes.items()
    )
    await world.triggers.stop()
    await world.store.close()
    engine.dispose()


@settings(max_examples=10)
@given(st.lists(ACT, min_size=5, max_size=25))
def test_each_match_fires_exactly_once_within_the_limits(
    acts: list[tuple[str, Any]],
) -> None:
    asyncio.run(play(acts))


@pytest.mark.conformance
@settings(max_examples=100)
@given(st.lists(ACT, min_size=5, max_size=60))
def test_each_match_fires_exactly_once_in_long_courses(
    acts: list[tuple[str, Any]],
) -> None:
    asyncio.run(play(acts))
