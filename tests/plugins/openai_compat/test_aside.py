"""Large requests are read aside, and small ones where they are."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from typing import Any

import pytest
from agenthost import Image, InvalidInput
from agenthost.testing.daemons import RunningDaemon
from agenthost_openai_compat.media import PIECE, check_base64
from agenthost_openai_compat.messages.reading import Reader as Theirs
from agenthost_openai_compat.reading import Reader
from agenthost_openai_compat.responses.making import MANY
from agenthost_openai_compat.responses.reading import ItemReader

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n".ljust(600 * 1024, b"x")).decode()
PICTURES: dict[str, dict[str, Any]] = {
    CHAT: {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{PNG}"},
    },
    MESSAGES: {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
    },
}


@pytest.mark.parametrize(
    "path",
    [CHAT, pytest.param(MESSAGES, marks=pytest.mark.conformance)],
)
async def test_large_requests_alone_are_read_in_a_thread(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    await daemon.agent("ada")
    kind: Any = Theirs if path == MESSAGES else Reader
    threads: list[str] = []
    read: Callable[..., Any] = kind.read

    def noted(self: Any, *given: Any) -> Any:
        threads.append(threading.current_thread().name)
        return read(self, *given)

    monkeypatch.setattr(kind, "read", noted)
    for content in ("hello", [PICTURES[path]]):
        messages = [{"role": "user", "content": content}]
        body = {"model": "ada", "max_tokens": 9, "messages": messages}
        answer = await daemon.http.post(path, json=body)
        assert answer.status_code == 200, answer.text
    assert threads[0] == threading.main_thread().name
    assert threads[1] != threads[0]
    assert daemon.model.requests[1].messages[0].parts == (Image("image/png", PNG),)


def test_base64_is_looked_through_to_its_end() -> None:
    fine = "A" * (3 * PIECE)
    for data in (fine, f"{fine}AAA=", f"{fine}AA=="):
        check_base64(data, "x")
    for data in ("", f"{fine}A", f"{fine}A===", f"{fine}?AAA", f"=AAA{fine}"):
        with pytest.raises(InvalidInput):
            check_base64(data, "x")
    with pytest.raises(InvalidInput):
        check_base64("A" * (PIECE - 1) + "=" + fine, "x")


async def test_an_input_of_many_parts_alone_is_read_in_a_thread(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    await daemon.agent("ada")
    threads: list[str] = []
    asked: Callable[..., Any] = ItemReader.asked

    def noted(self: Any, *given: Any) -> Any:
        threads.append(threading.current_thread().name)
        return asked(self, *given)

    monkeypatch.setattr(ItemReader, "asked", noted)
    known = None
    for count in (1, MANY + 1, 1):
        part = {"type": "input_text", "text": "x"}
        said = [{"role": "user", "content": [part] * count}]
        body = {"model": "ada", "input": said, "previous_response_id": known}
        answer = await daemon.http.post("/v1/responses", json=body)
        assert answer.status_code == 200, answer.text
        known = answer.json()["id"]
    here = threading.main_thread().name
    # The third goes on behind the second, all of which is read again.
    assert [each == here for each in threads] == [True, False, False]
