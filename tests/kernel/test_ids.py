"""The ids of turns, events and sessions."""

from __future__ import annotations

from uuid import RFC_4122, UUID

from agenthost import new_id


def test_an_id_is_a_uuid_as_it_is_written() -> None:
    made = {new_id() for _ in range(2_000)}
    assert len(made) == 2_000
    for each in made:
        known = UUID(each)
        assert (str(known), known.version, known.variant) == (each, 4, RFC_4122)


def test_nearly_all_of_an_id_is_random() -> None:
    places = list(zip(*(new_id() for _ in range(2_000)), strict=True))
    drawn = [place for place in places if set(place) == set("0123456789abcdef")]
    assert len(drawn) == 30
