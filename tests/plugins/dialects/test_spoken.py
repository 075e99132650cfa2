"""Dialects are found by name, and made when they are first spoken."""

from __future__ import annotations

import pytest
from agenthost import InvalidInput
from agenthost_dialects.spoken import DIALECTS, late, make


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_is_made_under_its_name(name: str) -> None:
    assert make(name, {}).name == name


def test_a_late_dialect_is_the_one_that_was_asked_for() -> None:
    spoken = late("openai-chat", {"max_tokens": 7})
    assert spoken.name == "openai-chat"
    assert spoken.quirks.base.max_tokens == 7  # type: ignore[union-attr]
    assert not hasattr(spoken, "stream")
    assert hasattr(late("replicate-predictions", {}), "stream")


def test_a_late_dialect_is_made_once() -> None:
    spoken = late("openai-chat", {})
    assert spoken.quirks is spoken.quirks  # type: ignore[union-attr]


def test_a_late_dialect_tells_of_a_wrong_quirk_when_spoken() -> None:
    spoken = late("openai-chat", {"max_token": 7})
    with pytest.raises(InvalidInput, match="did you mean 'max_tokens'"):
        hasattr(spoken, "encode")
