"""What the row of a model says it can do, before what its provider's quirks say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenthost import Endpoint

from .conversation import effort_of

LADDER = ("minimal", "low", "medium", "high", "xhigh", "max")
EFFORTS = ("low", "medium", "high")
# Thinking shares the answer's limit: a model that thinks long must have words left.
ROOM_TO_THINK = 64_000
ROOM = 32_000


@dataclass(frozen=True, slots=True)
class Thinking:
    """How a model is told to think.

    Args:
        kind: How the dialect writes it; ``none`` where there is no way.
        efforts: The words it takes for how much, least first.
        off: How it is told not to: an effort, or a word of the dialect; empty for not
            at all.
    """

    kind: str
    efforts: Sequence[str] = EFFORTS
    off: str = ""

    def effort(self, budget: int) -> str:
        """Choose the model's word for a number of tokens: rather more than less."""
        wanted = LADDER.index(effort_of(budget))
        known = [word for word in self.efforts if word != "none"]
        enough = (word for word in known if word not in LADDER or _rank(word) >= wanted)
        return next(enough, known[-1] if known else effort_of(budget))


def thinking_of(endpoint: Endpoint, usual: Thinking) -> Thinking:
    """Take what the model's row says of thinking, else what is usual."""
    row = endpoint.model
    if row is None or not row.thinking:
        return usual
    return Thinking(row.thinking, row.efforts or EFFORTS, row.thinking_off)


def samples(endpoint: Endpoint, *, usual: bool) -> bool:
    """Tell whether the model takes a temperature."""
    row = endpoint.model
    return usual if row is None or row.sampling is None else row.sampling


def marks_cache(endpoint: Endpoint, *, usual: bool) -> bool:
    """Tell whether the prompt says what the model's cache keeps."""
    row = endpoint.model
    return usual if row is None or not row.caches else "marks" in row.caches


def keeps_an_hour(endpoint: Endpoint) -> bool:
    """Tell whether what is marked is wanted for an hour, not for five minutes."""
    return endpoint.model is not None and "hour" in endpoint.model.caches


def places_to_mark(written: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    """Find where the conversation is marked: its end, and the end it had before.

    A service looks for what it kept at a mark, and 20 blocks before it; a step may add
    more. The request before ended with what was said to the model last but one.
    """
    left = 2
    answered = True
    for index in range(len(written) - 1, -1, -1):
        is_answer = written[index]["role"] == "assistant"
        if answered and not is_answer:
            yield index
            left -= 1
            if not left:
                return
        answered = is_answer


def answer_limit(endpoint: Endpoint, usual: int) -> int:
    """Limit an answer where the service demands a limit and nobody names one.

    The row of a model that is not listed has no limit that anybody knows.
    """
    row = endpoint.model
    if row is None or not row.thinking:
        return usual
    return min(row.max_output, ROOM_TO_THINK if row.supports_thinking else ROOM)


def _rank(word: str) -> int:
    return LADDER.index(word)
