"""What a start spares itself is not imported or made, and works when it is wanted."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest
from agenthost_cli.spared import spare_methods

SCRIPT = """
import sys
from agenthost_cli import main

sys.argv = ["agenthost", "version"]
main()
import httpx

assert "rich" not in sys.modules
assert "pygments" not in sys.modules
assert callable(httpx.main)
"""


@pytest.fixture(autouse=True)
def _late(monkeypatch: pytest.MonkeyPatch) -> None:
    known = vars(dataclasses)
    monkeypatch.setitem(known, "_create_fn", known["_create_fn"])
    spare_methods()


def point(**told: bool) -> Any:
    @dataclass(**told)
    class Point:
        """A class with all that a field can have."""

        x: int
        y: int = 2
        more: list[int] = field(default_factory=list, compare=False)
        last: int = field(default=0, kw_only=True)

    return Point


@pytest.mark.parametrize(
    "told", [{}, {"slots": True}, {"frozen": True}, {"frozen": True, "slots": True}]
)
def test_a_dataclass_whose_methods_come_late_is_like_any_other(
    told: dict[str, bool],
) -> None:
    kind = point(**told)
    one, other = kind(1, last=3), kind(1, 2, [5], last=3)
    assert (one.x, one.y, one.more, one.last) == (1, 2, [], 3)
    assert one == other
    assert replace(one, x=7).x == 7
    assert repr(one).endswith("Point(x=1, y=2, more=[], last=3)")
    with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required"):
        kind()


def test_what_is_frozen_stays_so_and_has_a_hash() -> None:
    one = point(frozen=True)(1)
    with pytest.raises(FrozenInstanceError):
        one.x = 2
    with pytest.raises(FrozenInstanceError):
        del one.x
    assert hash(one) == hash(point(frozen=True)(1))


def test_a_method_is_compiled_at_its_first_call_and_stands_in_its_place() -> None:
    kind = point()
    assert "x" not in kind.__init__.__code__.co_varnames
    kind(1)
    assert kind.__init__.__code__.co_varnames[:2] == ("self", "x")


def test_a_derived_class_leaves_its_base_what_it_is() -> None:
    base = point()

    @dataclass
    class Derived(base):  # type: ignore[valid-type, misc]  # reason: it is made here
        """One field more."""

        z: int = 3

    assert Derived(1).z == 3
    assert base(4).x == 4
    assert Derived(1) != base(1)


def test_it_is_put_in_place_once() -> None:
    before = vars(dataclasses)["_create_fn"]
    spare_methods()
    assert vars(dataclasses)["_create_fn"] is before


def test_the_command_line_of_httpx_is_not_imported() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
