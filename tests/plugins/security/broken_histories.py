"""Conversations of every honest shape, and everything that can become of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, cast

from agenthost import Image, Message, Part, Reasoning, Role, Text, ToolOutput, ToolUse

NAMES = ("file_read", "web_fetch", "kv_get", "agent_call")
WORDS = ("Look it up.", "There are 3.", "Ünïcode ✓", "a\nb", "No.")
ODD_NAMES = ("", "file read!", "ünïcode", "x" * 300, "a.b/c")
ODD_ARGUMENTS = ('{"path": "a', '{"path": "a"}', [1], None, {"n": float("nan")}, "")
ODD_IDS = ("", "x" * 100, "call 1!", "ünïcode", "a/b:c")


def honest(random: Random) -> list[Message]:
    """Make a conversation without fault, each of its texts with a mark of its own."""
    said: list[Message] = []
    for turn in range(random.randint(1, 4)):
        words: tuple[Part, ...] = (Text(f"{random.choice(WORDS)} u{turn}"),)
        if random.random() < 0.1:
            words = (*words, Image("image/png", "iVBORw0="))
        said.append(Message(Role.USER, words))
        for step in range(random.randint(0, 3)):
            said += _step(random, f"{turn}_{step}")
        said.append(Message(Role.ASSISTANT, (Text(f"{random.choice(WORDS)} a{turn}"),)))
    return said


def _step(random: Random, mark: str) -> list[Message]:
    numbers = range(random.randint(1, 3))
    uses = [
        ToolUse(f"call_{mark}_{n}", random.choice(NAMES), {"path": mark, "n": n})
        for n in numbers
    ]
    parts: list[Part] = list(uses)
    if random.random() < 0.4:
        parts.insert(0, Text(f"Let me see {mark}."))
    if random.random() < 0.3:
        parts.insert(0, Reasoning(f"Thinking of {mark}."))
    results = [ToolOutput(use.id, use.name, f"result {use.id}") for use in uses]
    random.shuffle(results)
    return [
        Message(Role.ASSISTANT, tuple(parts)),
        Message(Role.TOOL, tuple(results)),
    ]


def _drop(said: list[Message], random: Random) -> None:
    said.pop(random.randrange(len(said)))


def _double(said: list[Message], random: Random) -> None:
    said.insert(random.randrange(len(said) + 1), random.choice(said))


def _swap(said: list[Message], random: Random) -> None:
    one, other = random.randrange(len(said)), random.randrange(len(said))
    said[one], said[other] = said[other], said[one]


def _cut_head(said: list[Message], random: Random) -> None:
    del said[: random.randint(1, 4)]


def _cut_tail(said: list[Message], random: Random) -> None:
    del said[len(said) - random.randint(1, 4) :]


def _empty(said: list[Message], random: Random) -> None:
    role = random.choice((Role.USER, Role.ASSISTANT, Role.TOOL))
    parts: tuple[Part, ...] = random.choice(((), (Text(""),), (Text(" \n"),)))
    said.insert(random.randrange(len(said) + 1), Message(role, parts))


def _drop_part(said: list[Message], random: Random) -> None:
    at = random.randrange(len(said))
    parts = list(said[at].parts)
    if parts:
        parts.pop(random.randrange(len(parts)))
        said[at] = Message(said[at].role, tuple(parts))


def _move_part(said: list[Message], random: Random) -> None:
    at, to = random.randrange(len(said)), random.randrange(len(said))
    moved = [part for part in said[at].parts if isinstance(part, ToolOutput)][:1]
    rest = tuple(part for part in said[at].parts if part not in moved)
    said[at] = Message(said[at].role, rest)
    said[to] = Message(said[to].role, (*said[to].parts, *moved))


def _change_calls(
    said: list[Message], random: Random, change: Callable[[ToolUse], ToolUse]
) -> None:
    at = random.randrange(len(said))
    parts = tuple(change(p) if isinstance(p, ToolUse) else p for p in said[at].parts)
    said[at] = Message(said[at].role, parts)


def _same_ids(said: list[Message], random: Random) -> None:
    for at, message in enumerate(said):
        said[at] = Message(message.role, tuple(map(_one_id, message.parts)))


def _one_id(part: Part) -> Part:
    if isinstance(part, ToolUse | ToolOutput):
        return replace(part, id=f"call_{part.id[-1:]}")
    return part


def _odd_id(said: list[Message], random: Random) -> None:
    odd = random.choice(ODD_IDS)
    _change_calls(said, random, lambda use: replace(use, id=odd))


def _odd_name(said: list[Message], random: Random) -> None:
    odd = random.choice(ODD_NAMES)
    _change_calls(said, random, lambda use: replace(use, name=odd))


def _odd_arguments(said: list[Message], random: Random) -> None:
    odd = cast("Any", random.choice(ODD_ARGUMENTS))
    _change_calls(said, random, lambda use: replace(use, arguments=odd))


def _interleave(said: list[Message], random: Random) -> None:
    late = Message(Role.USER, (Text(f"Are you there? i{random.randrange(10**9)}"),))
    said.insert(random.randrange(len(said) + 1), late)


CORRUPTIONS: Sequence[Callable[[list[Message], Random], None]] = (
    _drop,
    _double,
    _swap,
    _cut_head,
    _cut_tail,
    _empty,
    _drop_part,
    _move_part,
    _same_ids,
    _odd_id,
    _odd_name,
    _odd_arguments,
    _interleave,
)


def corrupted(random: Random) -> list[Message]:
    """Make a conversation and do one to five bad things to it."""
    said = honest(random)
    for _ in range(random.randint(1, 5)):
        if said:
            random.choice(CORRUPTIONS)(said, random)
    return said
