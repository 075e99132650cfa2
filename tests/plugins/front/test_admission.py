"""Allowances and dismissals: bounded, exact, and of one principal alone."""

from __future__ import annotations

import random

import pytest
from agenthost import Grants, Principal, RateLimited, Unauthenticated
from agenthost_front.admission import (
    REMEMBERED,
    Admission,
    Allowances,
    Dismissals,
)


class Hand:
    """A clock moved by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def limited(units: int | None, name: str = "ci") -> Principal:
    return Principal("named_key", name, Grants(), "", units)


def test_without_an_allowance_nothing_is_counted() -> None:
    allowances = Allowances(Hand())
    for _ in range(10_000):
        allowances.charge(limited(None), 100)


def test_a_minutes_worth_can_be_used_at_once_and_comes_back_evenly() -> None:
    hand = Hand()
    allowances = Allowances(hand)
    ci = limited(600)
    for _ in range(120):
        allowances.charge(ci, 5)
    with pytest.raises(RateLimited) as spent:
        allowances.charge(ci, 5)
    assert spent.value.window == (600, 0, 1)
    hand.now += 0.5
    allowances.charge(ci, 5)
    with pytest.raises(RateLimited):
        allowances.charge(ci, 1)


def test_what_is_refused_costs_nothing() -> None:
    hand = Hand()
    allowances = Allowances(hand)
    allowances.charge(limited(60), 60)
    for _ in range(100):
        with pytest.raises(RateLimited):
            allowances.charge(limited(60), 30)
    hand.now += 30
    allowances.charge(limited(60), 30)


def test_a_call_dearer_than_a_minute_takes_a_whole_minute() -> None:
    hand = Hand()
    allowances = Allowances(hand)
    allowances.charge(limited(1), 30)
    with pytest.raises(RateLimited) as spent:
        allowances.charge(limited(1), 30)
    assert spent.value.window == (1, 0, 60)
    hand.now += 60
    allowances.charge(limited(1), 30)


def test_each_principal_has_its_own() -> None:
    allowances = Allowances(Hand())
    allowances.charge(limited(5, "one"), 5)
    allowances.charge(limited(5, "two"), 5)
    allowances.charge(Principal("other", "one", None, "", 5), 5)
    with pytest.raises(RateLimited):
        allowances.charge(limited(5, "one"), 1)


def test_it_is_a_leaking_bucket() -> None:
    """An independent model: a bucket that leaks, and takes what still fits."""
    chance = random.Random(7)
    hand = Hand()
    allowances = Allowances(hand)
    level, before = 0.0, hand.now
    for _ in range(20_000):
        hand.now += chance.random() / 4
        level = max(level - (hand.now - before) * 500 / 60, 0.0)
        before = hand.now
        units = chance.choice([1, 5, 30])
        fits = level + units <= 500 + 1e-6
        try:
            allowances.charge(limited(500), units)
        except RateLimited:
            assert not fits
        else:
            assert fits
            level += units


def test_what_is_remembered_is_bounded() -> None:
    hand = Hand()
    allowances = Allowances(hand, limit=100)
    for number in range(1000):
        allowances.charge(limited(10, f"k{number}"), 1)
    assert len(allowances._paid_off) <= 100
    dismissals = Dismissals()
    for number in range(REMEMBERED + 100):
        dismissals.add(limited(1, f"k{number}"))
    assert len(dismissals._last) == REMEMBERED


def test_an_admission_ends_with_its_principal_alone() -> None:
    dismissals = Dismissals()
    ci, other = limited(1), limited(1, "other")
    early = Admission(dismissals, ci, dismissals.count)
    dismissals.add(other)
    early.check()
    dismissals.add(ci)
    with pytest.raises(Unauthenticated, match="holds no more"):
        early.check()
    Admission(dismissals, ci, dismissals.count).check()
