"""A response as the events of a stream, numbered in order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agenthost import TextDelta, ToolStart, TurnEvent

from .draft import GOES_ON, Draft, Ending, ended, has_form, message, part

Shown = Mapping[str, Any]


class Frames:
    """Writes events, each with the next number.

    Args:
        after: The last number that the reader has; up to it nothing is written.
    """

    def __init__(self, after: int = -1) -> None:
        self._number = 0
        self._after = after

    def begin(self, response: Shown) -> bytes:
        """Write that a response is there and under way."""
        created = self._of("created", response=response)
        return created + self.in_progress(response)

    def queued(self, response: Shown) -> bytes:
        """Write that a response is there and waits."""
        created = self._of("created", response=response)
        return created + self._of("queued", response=response)

    def in_progress(self, response: Shown) -> bytes:
        """Write that a response is under way."""
        return self._of("in_progress", response=response)

    def last(self, response: Shown) -> bytes:
        """Write how a response has ended, whole; that is news to every reader."""
        status = response["status"]
        self._number = max(self._number, self._after + 1)
        return self._of(status if status in GOES_ON else "failed", response=response)

    def item(self, at: int, item: Shown) -> bytes:
        """Write an item that is there as a whole."""
        if item["type"] == "function_call":
            return self._call(at, item)
        text = item["content"][0]["text"]
        return self.open(at, item) + self.more(at, item, text) + self.close(at, item)

    def open(self, at: int, item: Shown) -> bytes:
        """Write that a message begins."""
        begun = {**item, "status": "in_progress", "content": []}
        return self._of("output_item.added", output_index=at, item=begun) + self._of(
            "content_part.added", **_place(at, item), part=part("")
        )

    def more(
        self, at: int, item: Shown, text: str, logprobs: Sequence[Shown] = ()
    ) -> bytes:
        """Write more of a message's words, and how likely its tokens were."""
        where, told = _place(at, item), list(logprobs)
        return self._of("output_text.delta", **where, delta=text, logprobs=told)

    def close(self, at: int, item: Shown) -> bytes:
        """Write that a message has ended."""
        where, said = _place(at, item), item["content"][0]
        told = {"text": said["text"], "logprobs": said["logprobs"]}
        return b"".join(
            (
                self._of("output_text.done", **where, **told),
                self._of("content_part.done", **where, part=said),
                self._of("output_item.done", output_index=at, item=item),
            )
        )

    def _call(self, at: int, item: Shown) -> bytes:
        begun = {**item, "status": "in_progress", "arguments": ""}
        where = {"item_id": item["id"], "output_index": at}
        name, text = item["name"], item["arguments"]
        kind = "function_call_arguments"
        return b"".join(
            (
                self._of("output_item.added", output_index=at, item=begun),
                self._of(f"{kind}.delta", **where, delta=text),
                self._of(f"{kind}.done", **where, name=name, arguments=text),
                self._of("output_item.done", output_index=at, item=item),
            )
        )

    def _of(self, kind: str, **facts: Any) -> bytes:
        name = f"response.{kind}"
        event = {"type": name, "sequence_number": self._number, **facts}
        self._number += 1
        if event["sequence_number"] <= self._after:
            return b""
        return f"event: {name}\ndata: {json.dumps(event)}\n\n".encode()


def _place(at: int, item: Shown) -> dict[str, Any]:
    return {"item_id": item["id"], "output_index": at, "content_index": 0}


def told_again(response: Shown) -> bytes:
    """Write a response that has ended as if it came now."""
    frames = Frames()
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    begun |= {"completed_at": None, "error": None, "incomplete_details": None}
    told = [frames.begin(begun)]
    told += [frames.item(at, item) for at, item in enumerate(response["output"])]
    return b"".join((*told, frames.last(response)))


class Following:
    """Writes a response while its turn goes on.

    Args:
        draft: The response.
        held: Whether its words wait for its end; those that are to have a form do.
    """

    def __init__(self, draft: Draft, *, held: bool | None = None) -> None:
        self._draft = draft
        self._frames = Frames()
        # What is to have a form comes as a whole, and only the last of it is given.
        self._held = has_form(draft) if held is None else held
        self._index = 0
        self._words: list[str] = []

    def begin(self) -> bytes:
        """Write that it is there."""
        return self._frames.begin(self._draft.shown)

    def one(self, event: TurnEvent) -> bytes:
        """Write what an event of its turn says, but for the last."""
        if isinstance(event, ToolStart):
            return self._close("completed")
        if not isinstance(event, TextDelta) or not event.text or self._held:
            return b""
        return self.say(event.text)

    def say(self, text: str, logprobs: Sequence[Shown] = ()) -> bytes:
        """Write more of what is said, and how likely its tokens were."""
        item = self._item()
        begun = b"" if self._words else self._frames.open(self._index, item)
        self._words.append(text)
        return begun + self._frames.more(self._index, item, text, logprobs)

    def end(self, ending: Ending) -> bytes:
        """Write how it ended, and what of it is not written yet."""
        frames = []
        if self._words:
            same = ending.output[self._index : self._index + 1]
            frames.append(self._close("completed", *same))
        rest = enumerate(ending.output[self._index :], self._index)
        frames += [self._frames.item(at, item) for at, item in rest]
        response = ended(self._draft.shown, ending)
        return b"".join((*frames, self._frames.last(response)))

    def _item(self, text: str = "", status: str = "completed") -> dict[str, Any]:
        return message(self._draft.hex, self._index, text, status)

    def _close(self, status: str, known: Shown | None = None) -> bytes:
        if not self._words:
            return b""
        said = "".join(self._words)
        item = self._item(said, known["status"] if known else status)
        if known and known["type"] == "message":
            notes = known["content"][0]
            item["content"] = [{**notes, "text": said}]
        closed = self._frames.close(self._index, item)
        self._words, self._index = [], self._index + 1
        return closed
