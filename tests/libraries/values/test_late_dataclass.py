"""A class that is compiled late is what ``dataclass(frozen=True)`` makes of it."""

from __future__ import annotations

from copy import copy
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from pickle import dumps, loads
from typing import Any

import pytest
from agenthost_values.value_class import late_dataclass, value_class


@dataclass(frozen=True)
class Base:
    """What both derive from."""

    subject: str
    depth: int = field(default=0, kw_only=True)


@late_dataclass
class Late(Base):
    """Compiled when one is made."""

    words: str
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plain(Base):
    """Compiled when it is imported."""

    words: str
    marks: tuple[int, ...] = ()


@pytest.mark.parametrize("kind", [Late, Plain])
def test_it_is_made_compared_and_shown_as_any(kind: Any) -> None:
    one = kind("ada", "hello", depth=2)
    assert one == kind(subject="ada", words="hello", marks=(), depth=2)
    assert one != kind("ada", "hello")
    assert hash(one) == hash(copy(one))
    shown = f"{kind.__name__}(subject='ada', depth=2, words='hello', marks=())"
    assert repr(one) == shown
    assert asdict(one)["depth"] == 2
    assert replace(one, depth=3).depth == 3
    assert loads(dumps(one)) == one
    assert [each.name for each in fields(kind)][-1] == "marks"


@pytest.mark.parametrize("kind", [Late, Plain])
@pytest.mark.parametrize("name", ["subject", "words", "other"])
def test_nothing_of_it_changes(kind: Any, name: str) -> None:
    one = kind("ada", "hello")
    with pytest.raises(FrozenInstanceError):
        setattr(one, name, "x")
    with pytest.raises(FrozenInstanceError):
        delattr(one, name)


@pytest.mark.parametrize("kind", [Late, Plain])
def test_what_is_missing_is_named(kind: Any) -> None:
    with pytest.raises(TypeError, match="words"):
        kind("ada")


@value_class
class Slotted:
    """A base that has slots."""

    subject: str


def test_below_a_class_with_slots_it_has_slots() -> None:
    @late_dataclass
    class Below(Slotted):
        words: str = ""

    made = Below("ada", "hello")
    assert (made.subject, made.words) == ("ada", "hello")
    assert made == replace(Below("ada"), words="hello")
    assert not hasattr(made, "__dict__")
    with pytest.raises((FrozenInstanceError, TypeError)):
        made.subject = "eve"  # type: ignore[misc]
