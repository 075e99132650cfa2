"""Ollama's own dialect, without a network."""

from __future__ import annotations

from dataclasses import replace

from agenthost import ChatRequest
from agenthost_dialects.ollama import Ollama
from agenthost_providers.catalogue import load_facts

from .exchange import HERE, body_of, there

DIALECT = Ollama.from_quirks(load_facts("ollama").quirks)


def test_a_model_is_loaded_with_the_window_of_its_row(
    conversation: ChatRequest,
) -> None:
    where = there("ollama", "llama3.2")
    assert where.model is not None
    for window in (8192, 32_768, 131_072):
        row = replace(where.model, context_window=window)
        body = body_of(DIALECT, conversation, replace(where, model=row))
        assert body["options"]["num_ctx"] == window


def test_without_a_row_a_window_is_asked_for_all_the_same(
    conversation: ChatRequest,
) -> None:
    assert body_of(DIALECT, conversation, HERE)["options"]["num_ctx"] == 32_768
