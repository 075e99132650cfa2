"""Vectors without a model: the same everywhere, near for common words."""

from __future__ import annotations

import math

import pytest
from agenthost_providers.catalogue import load_facts
from agenthost_providers.hashed_words import DIMENSIONS, vector


def nearness(one: str, two: str) -> float:
    return sum(map(float.__mul__, vector(one), vector(two)))


def test_common_words_are_near() -> None:
    assert nearness("The red house", "a RED house, the") > 0.7
    assert abs(nearness("the red house", "tax law of 1871")) < 0.3


@pytest.mark.parametrize("text", ["a", "???", "日本語 テスト", "\ud800", "x " * 10_000])
def test_every_text_has_a_vector_of_length_one(text: str) -> None:
    numbers = vector(text)
    assert len(numbers) == DIMENSIONS
    assert math.isclose(math.hypot(*numbers), 1.0, rel_tol=1e-5)


def test_a_text_has_the_same_vector_on_every_machine() -> None:
    assert [*vector("agent")] == [*[0.0] * 6, 1.0, *[0.0] * 249]


def test_the_facts_say_how_many_numbers_there_are() -> None:
    (row,) = load_facts("offline").embeddings
    assert (row.dimensions, row.id) == (DIMENSIONS, "offline-hash")
