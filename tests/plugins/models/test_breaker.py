"""The breaker against a model of a few lines."""

from __future__ import annotations

from agenthost import ProviderError, ProviderFault
from agenthost_models.breaker import Breakers
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

ID = ("p", "k", "m")
OTHER = ("p", "k2", "m")


def fault(kind: ProviderFault, retry_after: float | None = None) -> ProviderError:
    return ProviderError(kind, "p", "x", retry_after=retry_after)


class BreakerMachine(RuleBasedStateMachine):
    """Closed for four failures, open at the fifth, then one probe at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.breakers = Breakers()
        self.now = 0.0
        self.failures = 0
        self.pause = 5.0
        self.open_until = 0.0

    @rule(seconds=st.floats(0, 200))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def a_call_fails(self) -> None:
        self.breakers.begin(ID, self.now)
        self.breakers.failed(ID, fault(ProviderFault.SERVER), self.now)
        self.failures += 1
        if self.failures >= 5:
            self.open_until = self.now + self.pause
            self.pause = min(self.pause * 2, 120.0)

    @rule()
    def a_call_answers(self) -> None:
        self.breakers.begin(ID, self.now)
        self.breakers.succeeded(ID)
        self.failures, self.pause, self.open_until = 0, 5.0, 0.0

    @rule()
    def a_call_is_given_up(self) -> None:
        self.breakers.begin(ID, self.now)
        self.breakers.abandoned(ID, self.now)
        self.open_until = min(self.open_until, self.now)

    @rule()
    def the_request_itself_was_wrong(self) -> None:
        self.breakers.begin(ID, self.now)
        self.breakers.failed(ID, fault(ProviderFault.BAD_REQUEST), self.now)
        self.open_until = min(self.open_until, self.now)

    @invariant()
    def it_is_open_exactly_as_long_as_the_model(self) -> None:
        assert (self.breakers.ready_at(ID) > self.now) == (self.open_until > self.now)

    @invariant()
    def another_key_is_not_concerned(self) -> None:
        assert self.breakers.ready_at(OTHER) == 0


TestBreaker = BreakerMachine.TestCase


def test_one_probe_at_a_time() -> None:
    breakers = Breakers()
    breakers.failed(ID, fault(ProviderFault.AUTH), 0)
    assert breakers.ready_at(ID) == 60
    breakers.begin(ID, 61)
    assert breakers.ready_at(ID) > 61
    breakers.abandoned(ID, 62)
    assert breakers.ready_at(ID) <= 62


def test_an_asked_pause_is_kept_and_capped() -> None:
    breakers = Breakers()
    breakers.failed(ID, fault(ProviderFault.OVERLOADED, 7.5), 100)
    assert breakers.ready_at(ID) == 107.5
    breakers.failed(ID, fault(ProviderFault.RATE_LIMITED, 1e9), 200)
    assert breakers.ready_at(ID) == 3_800


def test_memory_is_bounded() -> None:
    breakers = Breakers(most=10)
    for number in range(50):
        breakers.failed((str(number), "", ""), fault(ProviderFault.AUTH), 0)
    assert len(breakers) == 10
    assert breakers.ready_at(("49", "", "")) == 60


def test_what_is_not_closed_is_counted_by_provider_and_state() -> None:
    breakers = Breakers()
    assert not breakers.states(0.0)
    for target in (ID, OTHER, ("q", "k", "m")):
        breakers.failed(target, fault(ProviderFault.AUTH, retry_after=10.0), 0.0)
    breakers.failed(("closed", "k", "m"), fault(ProviderFault.SERVER), 0.0)
    breakers.succeeded(("q", "k", "m"))
    assert breakers.states(5.0) == {("p", "open"): 2}
    breakers.begin(OTHER, 10.0)
    assert breakers.states(10.0) == {("p", "half_open"): 1, ("p", "open"): 1}
