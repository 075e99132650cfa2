"""Memory is given back once for each time something was done."""

from __future__ import annotations

import gc

import pytest
from agenthost_cli.memory import Memory


def test_memory_is_given_back_when_something_was_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trims: list[int] = []
    memory = Memory()
    monkeypatch.setattr(memory, "_trim", trims.append)
    gc.disable()
    memory.give_back()
    assert trims == []
    gc.collect(0)
    memory.give_back()
    memory.give_back()
    gc.enable()
    assert trims == [0]
