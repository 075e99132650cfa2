"""A value class is a frozen, slotted dataclass, whichever method comes first."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import (
    FrozenInstanceError,
    asdict,
    dataclass,
    field,
    fields,
    is_dataclass,
    replace,
)
from typing import Any, ClassVar

import pytest
from agenthost_values.value_class import value_class

Decorator = Callable[[type], type]
BOTH = pytest.mark.parametrize(
    "made_by", [value_class, dataclass(frozen=True, slots=True)]
)


def point(made_by: Any) -> Any:
    """Make a class with all that fields may have."""

    @made_by
    class Point:
        """A place."""

        unit: ClassVar[str] = "m"
        x: int
        y: int = 0
        tags: list[str] = field(default_factory=list, compare=False)
        secret: str = field(default="", repr=False)
        length: int = field(init=False, default=1)
        name: str = field(default="", kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", self.x + self.y)

        def moved(self) -> int:
            return self.x + 1

    return Point


@value_class
class Word:
    """A value that others of this module derive from, copy and pickle."""

    text: str
    size: int = 1


@BOTH
def test_it_is_made_with_all_that_fields_may_have(made_by: Decorator) -> None:
    made = point(made_by)(1, 2, name="here", secret="s")
    assert (made.x, made.y, made.tags, made.length) == (1, 2, [], 3)
    assert (made.unit, made.name, made.secret, made.moved()) == ("m", "here", "s", 2)
    assert point(made_by)(1).tags is not made.tags


@BOTH
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((), "missing 1 required positional argument: 'x'"),
        ((1, 2, [], "", 5), "takes from 2 to 5 positional arguments"),
    ],
)
def test_what_does_not_fit_is_refused_in_the_same_words(
    made_by: Decorator, values: tuple[object, ...], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        point(made_by)(*values)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        point(made_by)(1, z=2)


def test_each_method_is_that_of_a_dataclass_whichever_comes_first() -> None:
    uses: list[Callable[[Any, Any], object]] = [
        lambda one, other: (one == other, one != other, one == 5),
        lambda one, other: hash(one) == hash(other),
        lambda one, other: (f"{one}".rpartition(".")[2], one is other),
        lambda one, other: [asdict(replace(each, x=7)) for each in (one, other)],
        lambda one, other: [e.name for each in (one, other) for e in fields(each)],
        lambda one, other: copy.copy(one) == one and copy.deepcopy(one) == other,
    ]
    late, plain = point(value_class), point(dataclass(frozen=True, slots=True))
    for first in range(len(uses)):
        late = point(value_class)
        for use in uses[first:] + uses[:first]:
            told = [use(each(1, 2), each(1, 2)) for each in (late, plain)]
            told += [use(each(1, 2), each(2, 2)) for each in (late, plain)]
            assert told[0] == told[1]
            assert told[2] == told[3]


@BOTH
def test_nothing_of_it_can_be_changed(made_by: Decorator) -> None:
    made = point(made_by)(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        made.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del made.x
    with pytest.raises((FrozenInstanceError, TypeError)):
        made.other = 1
    assert not hasattr(made, "__dict__")
    assert made.x == 1


def test_a_method_of_its_own_stays() -> None:
    @value_class
    class Quiet:
        key: str

        def __repr__(self) -> str:
            return "a key"

        def __hash__(self) -> int:
            return 5

    assert (repr(Quiet("k")), hash(Quiet("k"))) == ("a key", 5)
    assert Quiet("k") == Quiet("k")


def test_a_dataclass_may_derive_from_it() -> None:
    @dataclass(frozen=True, slots=True)
    class Loud(Word):
        times: int = 2

    made = Loud("a", times=3)
    assert (made.text, made.size, made.times) == ("a", 1, 3)
    assert made == Loud("a", 1, 3)
    assert made != Word("a")
    with pytest.raises(FrozenInstanceError):
        made.text = "b"  # type: ignore[misc]
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):

        @dataclass
        class Soft(Word):  # type: ignore[misc]
            pass


def test_it_may_derive_from_no_dataclass() -> None:
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):

        @value_class
        class Longer(Word):
            more: int = 0


def test_it_is_copied_pickled_and_matched() -> None:
    made = Word("a", 2)
    assert pickle.loads(pickle.dumps(made)) == made
    assert is_dataclass(made)
    match made:
        case Word(text, size):
            assert (text, size) == ("a", 2)
        case _:
            pytest.fail("it has no order of fields")
    assert {made: 1}[Word("a", 2)] == 1
