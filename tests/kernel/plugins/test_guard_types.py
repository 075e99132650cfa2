"""What a type checker says of guard points; each ignore is an error it must find.

``make check`` runs mypy over this file and refuses an ignore that nothing needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import assert_type

import pytest
from agenthost import (
    ALLOW,
    AgentHostError,
    Guard,
    GuardPoint,
    Guards,
    PathCase,
    SecuritySystem,
    ToolCallCase,
)


@dataclass(frozen=True, slots=True)
class DialCase:
    """A call about to be made."""

    number: str


def none() -> None:
    """Prove nothing."""


DIAL = GuardPoint("dial", DialCase, "the call")
PATH = PathCase(PurePosixPath("a"), write=False)


def test_a_check_gives_back_the_case_of_its_point() -> None:
    guards = Guards([SecuritySystem("s", {}, lambda: None)])
    assert_type(Guard.PATH, GuardPoint[PathCase])
    assert_type(DIAL, GuardPoint[DialCase])
    with pytest.raises(AgentHostError):
        assert_type(guards.check(DIAL, DialCase("112")), DialCase)


def test_the_case_of_another_point_is_no_case_of_this_one() -> None:
    guards = Guards()
    with pytest.raises(AgentHostError):
        guards.check(Guard.URL, PATH)  # type: ignore[misc]  # reason: the misuse
    with pytest.raises(AgentHostError):
        guards.check(DIAL, PATH)  # type: ignore[misc]  # reason: the misuse


def unused(guards: Guards) -> ToolCallCase:
    """Nobody calls it."""
    return guards.check(Guard.PATH, PATH)  # type: ignore[return-value]  # reason: the misuse


def test_a_name_is_no_point() -> None:
    with pytest.raises(AttributeError):
        Guards().check("path", PATH)  # type: ignore[arg-type]  # reason: the misuse


def test_a_system_fills_points_and_names_and_nothing_else() -> None:
    SecuritySystem("s", {Guard.PATH: lambda _: ALLOW, "dial": lambda _: ALLOW}, none)
    SecuritySystem("s", {7: lambda _: ALLOW}, none)  # type: ignore[dict-item]  # reason: the misuse
