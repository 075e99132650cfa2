"""How many tokens a prompt is: at most, and by what its model was seen to count.

No vendor's tokens are smaller than a byte of UTF-8, so bytes are what a prompt comes to
at most. They are four times too many for English, so each model's own counts correct an
estimate by script, once there are enough of them.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from itertools import chain
from operator import mul

from agenthost import (
    ChatRequest,
    File,
    Image,
    Reasoning,
    Text,
    ToolOutput,
    ToolUse,
)
from agenthost_values.value_class import value_class

ENOUGH = 20
KEPT = 100
MOST_KNOWN = 1_024
PER_MESSAGE = 8
PER_TOOL = 16
BEFORE_TOOLS = 640
"""Some vendors put words of their own before an agent's tools."""
BEFORE_FORM = 320
"""And so they, or we, do before the form of an answer."""
DEAREST_IMAGE = 10_000
LIKELY_IMAGE = 1_500
DEAREST_DOCUMENT = 300_000
"""A hundred pages, each as words and as a picture: more is taken by no vendor."""
LIKELY_SHARE = 16
"""Letters of base64 that come to a token of a usual document."""
LIKELY_ANSWER = 500
"""Tokens of an answer, of an agent that has given none."""

WORDS = b"abcdefghijklmnopqrstuvwxyz "
INSIDE = bytes(range(0x80, 0xC0))
TWO, THREE, FOUR = (
    bytes(range(0xC0, 0xE0)),
    bytes(range(0xE0, 0xF0)),
    bytes(range(0xF0, 0x100)),
)
# Tokens of a letter or space, of another sign of ASCII, of a letter of two bytes as in
# Cyrillic, of three as in Chinese, of four as in emoji.
WEIGHTS = (0.25, 0.5, 0.6, 1.1, 2.5)

Key = tuple[str, str, int]


@value_class
class Prompt:
    """A prompt's tokens: at most, by script, and the script most of it is of."""

    most: int
    likely: int
    script: int


def measure(request: ChatRequest) -> Prompt:
    """Measure what a request makes its model read."""
    texts, images, pages = _read(request)
    frame = PER_MESSAGE * (1 + len(request.messages)) + PER_TOOL * len(request.tools)
    frame += BEFORE_TOOLS if request.tools else 0
    frame += BEFORE_FORM if request.response_format is not None else 0
    data = "\n".join(texts).encode(errors="surrogatepass")
    counts = _by_script(data)
    likely = sum(map(mul, WEIGHTS, counts))
    # Signs weigh double: base64 and code are a script of their own.
    sizes = [counts[0], 2 * counts[1], 2 * counts[2], 3 * counts[3], 4 * counts[4]]
    return Prompt(
        len(data) + frame + DEAREST_IMAGE * images + min(pages, DEAREST_DOCUMENT),
        math.ceil(likely) + frame // 2 + LIKELY_IMAGE * images + pages // LIKELY_SHARE,
        sizes.index(max(sizes)),
    )


@dataclass(slots=True)
class _Seen:
    """What a model counted, as shares of the estimate by script and of the bound."""

    shares: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    usual: float = 0.0
    over: float = 1.0


class Counts:
    """What models count, learnt from their answers; kept by model and script."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Key, _Seen] = OrderedDict()

    def most(self, names: tuple[str, str], prompt: Prompt) -> int:
        """Give what a model will count: the bound, until its counts are known.

        From ``ENOUGH`` counts on it is their 95th percentile, where that is less.
        """
        seen = self._seen.get((*names, prompt.script))
        if seen is None:
            return prompt.most
        bound = math.ceil(prompt.most * seen.over)
        if len(seen.shares) < ENOUGH:
            return bound
        return min(bound, math.ceil(prompt.likely * seen.usual))

    def learn(self, names: tuple[str, str], prompt: Prompt, counted: int) -> None:
        """Take note of what a vendor counted."""
        if counted <= 0:
            return
        key = (*names, prompt.script)
        seen = self._seen.setdefault(key, _Seen())
        self._seen.move_to_end(key)
        seen.shares.append(counted / prompt.likely)
        ordered = sorted(seen.shares)
        seen.usual = ordered[math.ceil(0.95 * len(ordered)) - 1]
        seen.over = max(seen.over, counted / prompt.most)
        while len(self._seen) > MOST_KNOWN:
            self._seen.popitem(last=False)


def _by_script(data: bytes) -> tuple[int, ...]:
    """Count letters, other signs of ASCII, and letters of two, three and four bytes."""
    if data.isascii():
        signs = len(data.translate(None, WORDS))
        return len(data) - signs, signs, 0, 0, 0
    left = data.translate(None, WORDS + INSIDE)
    words = len(data.translate(None, INSIDE)) - len(left)
    found = [len(left) - len(left.translate(None, leads)) for leads in (TWO, THREE)]
    found.append(len(left) - len(left.translate(None, FOUR)))
    return words, len(left) - sum(found), *found


def _read(request: ChatRequest) -> tuple[list[str], int, int]:
    """Give the texts of a request, its pictures, and the letters of its documents.

    Those are more than a document's tokens, which are those of its pages.
    """
    texts, images, pages = [request.system, _json(request.response_format)], 0, 0
    for tool in request.tools:
        texts += tool.name, tool.description, _json(tool.parameters)
    # Every call measures all of a conversation: one way through it, not three.
    for part in chain.from_iterable([each.parts for each in request.messages]):
        match part:
            case Text(text):
                texts.append(text)
            case Reasoning(text, opaque):
                texts += text, _json(opaque)
            case ToolUse(id_, name, arguments, opaque):
                texts += id_, name, _json(arguments), _json(opaque)
            case ToolOutput(id_, name, text):
                texts += id_, name, text
                images += len(part.media)
            case Image():
                images += 1
            case File(data=data):
                pages += len(data)
    return texts, images, pages


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str) if value else ""
