"""The contract of security systems finds what is wrong with one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import pytest
from agenthost import (
    ALLOW,
    Deny,
    Guard,
    GuardPoint,
    PathCase,
    Replace,
    SecuritySystem,
    Verdict,
)
from agenthost.plugins.points import KNOWN
from agenthost.testing import SecurityContract
from agenthost.testing.security import HOSTILE, hostile_cases


class Contract(SecurityContract):
    system = "made"


def made(guard: Callable[..., Any], name: str = "made") -> SecuritySystem:
    return SecuritySystem(name, {Guard.TOOL_CALL: guard}, lambda: None)


def allow(_: object) -> Verdict:
    return ALLOW


async def late(_: object) -> Verdict:
    return ALLOW


def breaks_on_nul(case: Any) -> Verdict:
    if "\0" in case.tool:
        raise ValueError("embedded null byte")
    return ALLOW


def slow(_: object) -> Verdict:
    end = time.thread_time() + 0.06
    while time.thread_time() < end:
        pass
    return ALLOW


def waits(_: object) -> Verdict:
    time.sleep(0.001)
    return ALLOW


@pytest.mark.parametrize(
    "guard",
    [
        breaks_on_nul,
        lambda _: None,
        lambda _: Replace("where nothing is replaced"),
        lambda case: Deny(f"{case.tool} is not for you"),
        lambda _: Deny("\ud800"),
    ],
)
def test_a_guard_that_a_hostile_case_breaks_is_found(
    guard: Callable[..., Any],
) -> None:
    with pytest.raises((pytest.fail.Exception, AssertionError, UnicodeEncodeError)):
        Contract().test_hostile_cases_get_a_verdict(made(guard))
    Contract().test_hostile_cases_get_a_verdict(made(allow))


@pytest.mark.parametrize("guard", [slow, waits])
async def test_a_guard_that_holds_the_loop_is_found(guard: Callable[..., Any]) -> None:
    class One(Contract):
        def cases(self, point: GuardPoint[Any]) -> Iterator[Any]:
            yield next(hostile_cases(point))

    with pytest.raises(AssertionError, match="made at tool_call"):
        await One().test_it_leaves_the_loop_free(made(guard))
    await One().test_it_leaves_the_loop_free(made(allow))


def test_an_async_guard_is_found() -> None:
    with pytest.raises(AssertionError):
        Contract().test_its_guards_are_plain_functions(made(late))


def test_a_point_that_nobody_has_is_found() -> None:
    system = SecuritySystem("made", {"tool_cal": allow}, lambda: None)
    with pytest.raises(AssertionError):
        Contract().test_its_points_exist(system)


def test_a_name_that_is_not_plain_is_found() -> None:
    with pytest.raises(AssertionError):
        Contract().test_its_name_is_plain(made(allow, "No Shouting"))


def test_a_self_test_that_cannot_fail_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Sabotaged(Contract):
        def sabotage(self, patch: pytest.MonkeyPatch) -> None:
            patch.setenv("SABOTAGED", "1")

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        Sabotaged().test_its_self_test_can_fail(made(allow), monkeypatch)
    with pytest.raises(pytest.fail.Exception, match="how to break it"):
        Contract().test_its_self_test_can_fail(made(allow), monkeypatch)


def test_a_self_test_that_fails_is_found() -> None:
    def broken() -> None:
        raise RuntimeError("does not hold")

    with pytest.raises(RuntimeError):
        Contract().test_its_self_test_passes(SecuritySystem("made", {}, broken))


@pytest.mark.parametrize("point", KNOWN, ids=str)
def test_there_are_hostile_cases_of_every_point(point: GuardPoint[Any]) -> None:
    cases = list(hostile_cases(point))
    assert len(cases) == len(HOSTILE)
    assert all(isinstance(case, point.case) for case in cases)


def test_the_cases_of_a_point_are_hostile_in_every_text() -> None:
    paths = [case.path for case in hostile_cases(Guard.PATH)]
    assert PurePosixPath("../" * 10_000 + "etc/passwd") in paths
    assert {case.write for case in hostile_cases(Guard.PATH)} == {True, False}
    assert all(isinstance(case, PathCase) for case in hostile_cases(Guard.PATH))


@dataclass(frozen=True, slots=True)
class PayCase:
    """Money about to be sent."""

    amount: Decimal


def test_a_case_of_a_type_of_its_own_needs_cases_of_its_own() -> None:
    point = GuardPoint("pay", PayCase, "the payment")
    with pytest.raises(TypeError, match="give cases of your own"):
        next(hostile_cases(point))

    class Paid(Contract):
        points = (point,)

        def cases(self, point: GuardPoint[Any]) -> Iterator[Any]:
            yield PayCase(Decimal("NaN"))

    def cheap(case: PayCase) -> Verdict:
        return Deny("too dear") if case.amount > 1 else ALLOW

    system = SecuritySystem("made", {"pay": cheap}, lambda: None)
    Paid().test_its_points_exist(system)
    with pytest.raises(pytest.fail.Exception, match="InvalidOperation"):
        Paid().test_hostile_cases_get_a_verdict(system)
