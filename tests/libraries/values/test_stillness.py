"""Who stands still is found by one's own clock alone."""

from __future__ import annotations

from agenthost_values.stillness import Stillness


def looks(still: Stillness, *values: float, begin: float = 0.0) -> list[list[float]]:
    """Look once a second at a number."""
    return [
        [value for _, value in still.look(begin + second, {"a": value})]
        for second, value in enumerate(values)
    ]


def test_what_moves_on_never_stands_still() -> None:
    assert looks(Stillness(3, 2), *range(20)) == [[]] * 20


def test_what_does_not_move_stands_still_after_so_many_seconds() -> None:
    assert looks(Stillness(3, 2), 1, 5, 5, 5, 5, 5, 6) == [[]] * 4 + [[5], [5], []]


def test_numbers_may_go_back() -> None:
    assert looks(Stillness(3, 2), 5, 4, 3, 2, 1, 0) == [[]] * 6


def test_each_name_is_timed_for_itself() -> None:
    still = Stillness(2, 2)
    for second in range(3):
        found = still.look(second, {"a": 1, "b": second})
    assert found == [("a", 1)]
    assert still.look(3, {"b": 2}) == []
    assert still.look(4, {"a": 1, "b": 2}) == [("b", 2)]


def test_who_did_not_look_for_long_knows_nothing() -> None:
    still = Stillness(3, 2)
    looks(still, 1, 1, 1)
    assert still.look(60, {"a": 1}) == []
    assert looks(still, 1, 1, 1, begin=61) == [[], [], [1]]


def test_what_was_forgotten_is_timed_anew() -> None:
    still = Stillness(3, 2)
    looks(still, 1, 1, 1)
    still.forget()
    assert looks(still, 1, 1, 1, 1, begin=3) == [[], [], [], [1]]
