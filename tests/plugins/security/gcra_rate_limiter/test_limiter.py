"""Who may how much: the arithmetic, the clients, the costs, the memory."""

from __future__ import annotations

import pytest
from agenthost import ALLOW, Deny, RateLimited, RequestCase, Verdict
from agenthost_security.gcra_rate_limiter.addresses import client_of
from agenthost_security.gcra_rate_limiter.costs import compiled, cost_of
from agenthost_security.gcra_rate_limiter.debts import ROWS, WAYS, Debts
from agenthost_security.gcra_rate_limiter.limiter import Limiter

from .exact import compare


class Hand:
    """A clock moved by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def asked(limiter: Limiter, cost: int = 1, client: str = "192.0.2.1") -> Verdict:
    return limiter(RequestCase("GET", "/", client, cost))


def window(verdict: Verdict) -> tuple[int, ...]:
    assert isinstance(verdict, Deny)
    error = verdict.error(verdict.reason)
    assert isinstance(error, RateLimited)
    return error.window


@pytest.mark.parametrize(("units", "burst"), [(500, 500), (7, 100), (6000, 50)])
def test_it_judges_as_exact_arithmetic_does(units: int, burst: int) -> None:
    assert not list(compare(5_000, units, burst, seed=units))


def test_a_refusal_tells_limit_rest_and_wait() -> None:
    hand = Hand()
    limiter = Limiter(hand, units=60, burst=100)
    assert asked(limiter, 90) == ALLOW
    assert window(asked(limiter, 30)) == (100, 10, 20)
    hand.now += 19.5
    assert window(asked(limiter, 30)) == (100, 29, 1)
    hand.now += 0.5
    assert asked(limiter, 30) == ALLOW


def test_what_is_refused_costs_nothing() -> None:
    limiter = Limiter(Hand())
    assert asked(limiter, 499) == ALLOW
    assert all(isinstance(asked(limiter, 30), Deny) for _ in range(100))
    assert asked(limiter, 1) == ALLOW


def test_what_costs_more_than_all_takes_all() -> None:
    limiter = Limiter(Hand(), burst=20)
    assert asked(limiter, 30) == ALLOW
    assert isinstance(asked(limiter, 1), Deny)


def test_what_is_given_back_can_be_spent_again() -> None:
    limiter = Limiter(Hand())
    for _ in range(100):
        assert asked(limiter, 500) == ALLOW
        assert asked(limiter, -500) == ALLOW


def test_nobody_saves_up_more_than_a_burst() -> None:
    limiter = Limiter(Hand())
    assert asked(limiter, -10_000) == ALLOW
    assert asked(limiter, 500) == ALLOW
    assert isinstance(asked(limiter, 1), Deny)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::1%eth1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("127.0.0.1", "::1", False),
        ("::1", "0.0.0.1", False),
        ("", "no address", True),
        ("\ud800", "\0", True),
    ],
)
def test_a_client_is_an_address_or_a_network(one: str, other: str, same: bool) -> None:
    assert (client_of(one) == client_of(other)) is same


def test_the_first_cost_that_fits_counts() -> None:
    costs = compiled({"POST /api/agents/*": 7, "POST /api/**": 2, "GET /": 0})
    told = [
        cost_of(costs, method, path, 5)
        for method, path in (
            ("POST", "/api/agents/1"),
            ("POST", "/api/agents/1/message"),
            ("POST", "/api/"),
            ("GET", "/"),
            ("GET", "/api/agents/1"),
        )
    ]
    assert told == [7, 2, 2, 0, 5]


@pytest.mark.parametrize("asked", ["", "/api", "post /api", "POST api", "GET /a b"])
def test_a_cost_needs_method_and_path(asked: str) -> None:
    with pytest.raises(ValueError, match="must be a method and a path"):
        compiled({asked: 1})


def test_whoever_owes_least_gives_way_in_a_full_row() -> None:
    debts = Debts()
    row: list[int] = []
    wanted = debts.place(1) // (2 * WAYS)
    key = 1
    while len(row) < WAYS + 1:
        if hash(key.to_bytes(8)) % ROWS == wanted:
            row.append(key)
        key += 1
    for owed, each in enumerate(row[:WAYS], start=10):
        debts.due[debts.place(each)] = owed
    assert debts.due[debts.place(row[WAYS])] == 0
    assert [debts.due[debts.place(each)] for each in row[1:WAYS]] == list(
        range(11, 10 + WAYS)
    )
