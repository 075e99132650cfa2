"""A vendor's cache of prompts, and what a request costs with it.

The rules are the vendors' own ("Prompt caching", Claude and Amazon Bedrock): a prompt
is kept up to each of at most four marks; what was kept is found at a mark or in the 20
blocks before it; shorter prompts than the least are not kept; what is not used for its
time is forgotten, and a longer time may not follow a shorter one. Marks themselves are
no part of what is compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

MOST_MARKS = 4
LOOKBACK = 20
LEAST = 1024
SECONDS = {"5m": 300.0, "1h": 3600.0}
READ, WRITTEN = 0.1, {"5m": 1.25, "1h": 2.0}
BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class Block:
    """A piece of a prompt in the order the model reads; ``mark`` is for how long."""

    words: bytes
    mark: str = ""

    @property
    def tokens(self) -> float:
        return len(self.words) / BYTES_PER_TOKEN


@dataclass
class PrefixCache:
    """What one vendor keeps; ``bill`` is in tokens of fresh input."""

    kept: dict[bytes, float] = field(default_factory=dict)
    bill: float = 0.0

    def ask(self, blocks: list[Block], at: float) -> None:
        """Read a prompt at a time."""
        marks = [(n, block.mark) for n, block in enumerate(blocks) if block.mark]
        assert len(marks) <= MOST_MARKS, "a request may have four marks"
        times = [SECONDS[mark] for _, mark in marks]
        assert times == sorted(times, reverse=True), "the longest time comes first"
        sizes, names = _measured(blocks)
        read = max((self._found(names, n, at) for n, _ in marks), default=0)
        paid = sizes[read]
        self.bill += READ * paid
        for number, mark in marks:
            if sizes[number + 1] < LEAST:
                continue
            self.kept[names[number]] = at + SECONDS[mark]
            self.bill += WRITTEN[mark] * max(0.0, sizes[number + 1] - paid)
            paid = max(paid, sizes[number + 1])
        self.bill += sizes[-1] - paid

    def _found(self, names: list[bytes], mark: int, at: float) -> int:
        """Count the blocks that are kept, looking back from a mark."""
        for number in range(mark, max(mark - LOOKBACK, -1), -1):
            if self.kept.get(names[number], 0.0) > at:
                return number + 1
        return 0


def _measured(blocks: list[Block]) -> tuple[list[float], list[bytes]]:
    sizes, names, hashed = [0.0], [], sha256()
    for block in blocks:
        hashed.update(block.words + b"\0")
        names.append(hashed.digest())
        sizes.append(sizes[-1] + block.tokens)
    return sizes, names


def ideal(prompts: list[list[Block]]) -> float:
    """Price what cannot be cheaper: each block is written once, and then read."""
    bill, seen = 0.0, 0.0
    for blocks in prompts:
        size = sum(block.tokens for block in blocks)
        bill += READ * seen + WRITTEN["5m"] * (size - seen)
        seen = size
    return bill


def _marked(place: str, part: Mapping[str, Any]) -> Block:
    bare = dict(part)
    mark = bare.pop("cache_control", None)
    words = json.dumps([place, bare]).encode()
    return Block(words, mark.get("ttl", "5m") if mark else "")


def claude(body: Mapping[str, Any]) -> Iterator[Block]:
    """Read a prompt as Claude's own service does."""
    for part in ("tools", "system"):
        yield from (_marked(part, block) for block in body.get(part, ()))
    for message in body["messages"]:
        yield from (_marked(message["role"], block) for block in message["content"])


def converse(body: Mapping[str, Any]) -> Iterator[Block]:
    """Read a prompt as Bedrock does: a point keeps the block before it."""
    parts = [("tools", body.get("toolConfig", {}).get("tools", ()))]
    parts += [("system", body.get("system", ()))]
    parts += [(message["role"], message["content"]) for message in body["messages"]]
    latest: Block | None = None
    for place, blocks in parts:
        for block in blocks:
            point = block.get("cachePoint")
            if point is not None:
                assert latest is not None, "a point stands behind something"
                latest = Block(latest.words, point.get("ttl", "5m"))
                continue
            if latest is not None:
                yield latest
            latest = _marked(place, block)
    if latest is not None:
        yield latest


def gateway(body: Mapping[str, Any]) -> Iterator[Block]:
    """Read a prompt as a gateway of chat completions hands it to Claude."""
    yield from (_marked("tools", tool) for tool in body.get("tools", ()))
    for message in body["messages"]:
        assert "cache_control" not in message, "a mark stands on a part of a content"
        content = message["content"] or []
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        named = f"{message['role']} {message.get('tool_call_id', '')}"
        yield from (_marked(named, part) for part in content)
        for call in message.get("tool_calls", ()):
            yield _marked("call", call)


Reading = Callable[[Mapping[str, Any]], Iterator[Block]]
