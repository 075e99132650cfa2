"""Documents in messages, as each vendor writes them; others are told their names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agenthost import (
    ChatRequest,
    Endpoint,
    File,
    Message,
    Role,
    Secret,
    Text,
)
from agenthost_dialects.replicate import _words
from agenthost_dialects.spoken import make

DATA = "JVBERi0xLjcK"
PDF = File("b (1).pdf", "application/pdf", DATA)
URL = f"data:application/pdf;base64,{DATA}"
ASKED = Message(Role.USER, (Text("look"), PDF))
SOURCE = {"type": "base64", "media_type": "application/pdf", "data": DATA}
UNREAD = "[file b (1).pdf: application/pdf, not shown]"


def written(dialect: str, *messages: Message) -> Any:
    """Give the body of a request with these messages."""
    spoken: Any = make(dialect, {})
    request = ChatRequest("m", "", messages, max_tokens=10, stream=False)
    where = Endpoint("p", "http://here/v1", Secret("k"))
    return json.loads(spoken.encode(request, where).body)


FORMS: dict[str, tuple[str, Any]] = {
    "anthropic-messages": (
        "messages",
        {"type": "document", "source": SOURCE, "title": "b (1).pdf"},
    ),
    "openai-chat": (
        "messages",
        {"type": "file", "file": {"filename": "b (1).pdf", "file_data": URL}},
    ),
    "openai-responses": (
        "input",
        {"type": "input_file", "filename": "b (1).pdf", "file_data": URL},
    ),
    "gemini-generateContent": (
        "contents",
        {"inlineData": {"mimeType": "application/pdf", "data": DATA}},
    ),
    "cohere-v2": ("messages", {"type": "text", "text": UNREAD}),
}


def _parts(message: dict[str, Any]) -> Any:
    return message.get("content") or message.get("parts")


@pytest.mark.parametrize("dialect", FORMS)
def test_a_document_is_written_as_its_vendor_takes_it(dialect: str) -> None:
    where, form = FORMS[dialect]
    words, document = _parts(written(dialect, ASKED)[where][0])
    assert "look" in json.dumps(words)
    document.pop("cache_control", None)
    assert document == form


def test_bedrock_gets_words_before_a_document_and_a_name_it_takes() -> None:
    alone = Message(Role.USER, (PDF,))
    said, found = written("bedrock-converse", alone)["messages"][0]["content"]
    assert said == {"text": "[file b (1).pdf]"}
    document = found["document"]
    assert (document["format"], document["source"]) == ("pdf", {"bytes": DATA})
    assert document["name"].isalnum()


def test_who_reads_no_documents_is_told_their_names() -> None:
    assert written("ollama", ASKED)["messages"][0]["content"] == f"look\n{UNREAD}"
    assert _words(ASKED) == f"look\n{UNREAD}"


@pytest.mark.parametrize("dialect", [*FORMS, "bedrock-converse", "ollama"])
@pytest.mark.parametrize(
    "file",
    [File("a", "text/csv", "YQ=="), File("a", "application/pdf", uri="upload:1")],
)
def test_any_other_file_is_named_and_never_sent(dialect: str, file: File) -> None:
    body = json.dumps(written(dialect, Message(Role.USER, (Text("look"), file))))
    assert f"[file a: {file.media_type}, not shown]" in body
    assert "YQ==" not in body
    assert "upload:" not in body
