"""Whatever clients do to conversations, in any order, the laws of them hold.

The laws, as :mod:`tests.faults.conversations` checks them after every step: an accepted
message is stored once and in order; every answer is the answer of its question and
stands behind it; every turn ends; a living agent is never 404; no session is left
without its agent, no row left running.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from .asking import Way
from .conversations import Hall
from .oracle import Manner
from .parties import Ask, Party
from .worlds import Inside, Outside

PLACES = st.sampled_from((0, 0, 1))
PICKS = st.integers(0, 7)
WAYS = st.sampled_from(Way)
KEYED_WAYS = st.sampled_from((Way.BLOCKING, Way.SSE))
MANNERS = st.sampled_from(Manner)


class Clients(RuleBasedStateMachine):
    """What clients do; ``world`` says where the daemon lives."""

    world: type[Inside | Outside] = Inside

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.hall = Hall(self.world)

    @initialize()
    def open(self) -> None:
        self.loop.run(self.hall.open())

    def teardown(self) -> None:
        try:
            self.loop.run(self.hall.close())
        finally:
            self.loop.close()

    @rule(place=PLACES, way=WAYS, manner=MANNERS)
    def ask(self, place: int, way: Way, manner: Manner) -> None:
        self.loop.run(self.hall.ask(self.party(place), way, manner))

    @rule(place=PLACES, way=KEYED_WAYS, manner=MANNERS)
    def ask_with_key(self, place: int, way: Way, manner: Manner) -> None:
        party = self.party(place)
        self.loop.run(self.hall.ask(party, way, manner, keyed=True))

    @precondition(lambda self: self.fronts())
    @rule(pick=PICKS)
    def release(self, pick: int) -> None:
        fronts = self.fronts()
        self.loop.run(self.hall.release(fronts[pick % len(fronts)]))

    @precondition(lambda self: self.live())
    @rule(pick=PICKS)
    def leave(self, pick: int) -> None:
        live = self.live()
        self.loop.run(self.hall.leave(live[pick % len(live)]))

    @precondition(lambda self: self.keyed())
    @rule(pick=PICKS, way=KEYED_WAYS, manner=MANNERS)
    def again(self, pick: int, way: Way, manner: Manner) -> None:
        keyed = self.keyed()
        self.loop.run(self.hall.again(keyed[pick % len(keyed)], way, manner))

    @precondition(lambda self: self.taken())
    @rule(pick=PICKS)
    def mismatch(self, pick: int) -> None:
        taken = self.taken()
        self.loop.run(self.hall.mismatch(taken[pick % len(taken)]))

    @precondition(lambda self: self.fronts())
    @rule(pick=PICKS)
    def stop(self, pick: int) -> None:
        fronts = self.fronts()
        self.loop.run(self.hall.stop(fronts[pick % len(fronts)]))

    @rule(place=PLACES, end=st.sampled_from(("reset", "storm", "delete")))
    def clear(self, place: int, end: str) -> None:
        self.loop.run(getattr(self.hall, end)(self.party(place)))

    @rule(place=PLACES)
    def compact(self, place: int) -> None:
        self.loop.run(self.hall.compact(self.party(place)))

    @rule()
    def end_and_start(self) -> None:
        self.loop.run(self.hall.end_and_start())

    def party(self, place: int) -> Party:
        return self.hall.parties[place]

    def fronts(self) -> list[Party]:
        """Agents whose model stands still."""
        return [party for party in self.hall.parties if party.front]

    def live(self) -> list[Ask]:
        """Questions that somebody waits for."""
        return [a for a in self.hall.asks if any(t.pending for t in a.attempts)]

    def keyed(self) -> list[Ask]:
        """Questions that may be asked again, first those without an answer."""
        asks = [ask for ask in self.hall.asks if ask.key]
        return sorted(asks, key=lambda ask: ask.answered)

    def taken(self) -> list[Ask]:
        """Questions whose key is known to be stored, of agents at rest."""
        return [
            ask
            for ask in self.keyed()
            if ask in ask.party.history and not ask.party.live
        ]


class KilledClients(Clients):
    """The same, and the daemon ends by kill -9."""

    world = Outside


def hold(machine: type[Clients], examples: int, steps: int, *, same: bool) -> None:
    """Try so many courses of events; ``same`` tries the same ones every time."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=same,
            database=None,
            deadline=None,
            phases=(Phase.generate,) if same else (Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            print_blob=not same,
        ),
    )


@pytest.mark.conformance
@pytest.mark.parametrize("part", [1, 2, 3])
def test_the_laws_of_conversations_hold(part: int) -> None:
    # In parts, each with courses of its own, so that they can run beside one another.
    machine = seed(part)(type(f"Clients{part}", (Clients,), {}))
    hold(machine, 6, 12, same=True)


@pytest.mark.conformance
def test_the_laws_of_conversations_hold_under_kills() -> None:
    hold(KilledClients, 3, 10, same=True)


@pytest.mark.faults
def test_the_laws_of_conversations_hold_for_long() -> None:
    hold(Clients, 450, 30, same=False)


@pytest.mark.faults
def test_the_laws_of_conversations_hold_under_many_kills() -> None:
    hold(KilledClients, 50, 30, same=False)
