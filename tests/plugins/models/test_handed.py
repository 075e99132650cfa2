"""What a prompt with a document is measured at."""

from __future__ import annotations

import pytest
from agenthost import ChatRequest, File, Image, Message, Role, Text
from agenthost_models.estimate import DEAREST_DOCUMENT, measure
from agenthost_models.handed import names_files


def asked(*parts: Text | Image | File) -> ChatRequest:
    return ChatRequest("m", "", (Message(Role.USER, parts),))


@pytest.mark.parametrize(
    ("size", "most"), [(40_000, 40_000), (10_000_000, DEAREST_DOCUMENT)]
)
def test_a_document_counts_by_its_size_up_to_a_hundred_pages(
    size: int, most: int
) -> None:
    plain = measure(asked(Text("look")))
    found = measure(asked(Text("look"), File("a", "application/pdf", "x" * size)))
    assert found.most - plain.most == most
    assert found.likely - plain.likely == size // 16


def test_only_messages_that_name_files_are_looked_at_again() -> None:
    assert names_files(asked(Text("look"), File("a", "text/plain", uri="upload:1")))
    assert not names_files(asked(Text("look"), Image("image/png", "YQ==")))
