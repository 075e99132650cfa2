"""Let a turn read a conversation that no provider refuses, whatever became of its rows.

A crash, an import or a client's own history may leave results without a call, calls
without a result, ids that stand twice, messages without words, or calls that cannot be
read. What a turn reads is a view: the rows stay as they are, and of what was said
nothing is left out but what is empty or stands there twice. A conversation without
fault is read as it is.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter

from agenthost import (
    ALLOW,
    Guard,
    HistoryCase,
    JsonObject,
    Message,
    Part,
    Reasoning,
    Replace,
    Role,
    SecuritySystem,
    Text,
    ToolOutput,
    ToolUse,
    Verdict,
    hookimpl,
)
from agenthost_chat.history import UNKNOWN

CUT = "its arguments are not a whole JSON object"
NAMELESS = "unknown_tool"
UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME = 64
_Told = tuple[int, ToolOutput]
"""A result, and which of its message's calls it answers."""
_Call = tuple[int, int]
"""The place of a message, and which of its calls it is."""
_Known = dict[str, int]
"""The ids of calls, and from which number on each makes another for one like it."""


class _Calls:
    """The calls of one id in one answer, which have their results in turn."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.numbers: list[int] = []
        self._answered = 0

    def first(self) -> _Call:
        """Give the first, for a result that stands before all."""
        self._answered = max(self._answered, 1)
        return self.place, self.numbers[0]

    def next(self) -> _Call:
        """Give the first without a result, else the last."""
        number = self.numbers[min(self._answered, len(self.numbers) - 1)]
        self._answered += 1
        return self.place, number


def sound(case: HistoryCase) -> Verdict:
    """Give the turn a conversation that may be sent, where it is none."""
    messages = repaired(case.messages)
    return ALLOW if messages is case.messages else Replace(messages)


def repaired(history: tuple[Message, ...]) -> tuple[Message, ...]:
    """Mend a conversation; one without fault comes back as the object it is.

    Each call has one result, in the message right behind it, and an id that no other
    call has. A result whose call is missing gets one, without arguments: it stays what
    a tool has said, and becomes no word of the user's.
    """
    told, orphans = _paired(history)
    fixed: list[Message] = []
    known: _Known = {}
    for place, message in enumerate(history):
        if place in orphans:
            fixed += _called(orphans[place], known)
        if message.role is Role.ASSISTANT:
            fixed += _answered(message, told.get(place, ()), known)
        elif message.role is Role.USER:
            fixed += _kept(message, _worded(message))
    left = tuple(fixed)
    return history if left == history else left


def _paired(
    history: Sequence[Message],
) -> tuple[Mapping[int, Sequence[_Told]], Mapping[int, Sequence[ToolOutput]]]:
    """Find the call of each result: the last before it with its id, else the first.

    Returns:
        The results by the place of the message whose calls they answer; and those that
        answer none, by their own.
    """
    calls: dict[str, list[_Calls]] = {}
    for place, message in enumerate(history):
        if message.role is Role.ASSISTANT:
            for number, use in enumerate(message.tool_uses):
                known = calls.setdefault(use.id, [])
                if not known or known[-1].place != place:
                    known.append(_Calls(place))
                known[-1].numbers.append(number)
    told: dict[int, list[_Told]] = {}
    orphans: dict[int, list[ToolOutput]] = {}
    for place, message in enumerate(history):
        for output in message.parts:
            if not isinstance(output, ToolOutput):
                continue
            if output.id not in calls:
                orphans.setdefault(place, []).append(output)
                continue
            at, number = _call_of(calls[output.id], place)
            told.setdefault(at, []).append((number, output))
    return told, orphans


def _call_of(calls: Sequence[_Calls], place: int) -> _Call:
    """Choose among the calls of one id; of several in one answer each gets its own."""
    before = bisect_left(calls, place, key=attrgetter("place"))
    return calls[before - 1].next() if before else calls[0].first()


def _answered(
    message: Message, told: Sequence[_Told], known: _Known
) -> Sequence[Message]:
    """Give what a model said and, if it made calls, the results of all of them."""
    parts: list[Part] = []
    uses: list[ToolUse] = []
    for part in _worded(message):
        if isinstance(part, ToolUse):
            uses.append(_readable(part, known))
        parts.append(uses[-1] if isinstance(part, ToolUse) else part)
    said = _kept(message, tuple(parts))
    results: dict[int, list[ToolOutput]] = {}
    for number, output in told:
        results.setdefault(number, []).append(output)
    missing = (use for number, use in enumerate(uses) if number not in results)
    outputs = (
        *(_joined(results[number], uses[number]) for number in results),
        *(ToolOutput(use.id, use.name, UNKNOWN, is_error=True) for use in missing),
    )
    return [*said, Message(Role.TOOL, outputs)] if outputs else said


def _called(lost: Sequence[ToolOutput], known: _Known) -> Sequence[Message]:
    """Give results without a call one each."""
    ids = dict.fromkeys(output.id for output in lost)
    numbers = {id_: number for number, id_ in enumerate(ids)}
    told = [(numbers[output.id], output) for output in lost]
    names = {output.id: output.name for output in reversed(lost)}
    uses = tuple(ToolUse(id_, names[id_], {}) for id_ in numbers)
    return _answered(Message(Role.ASSISTANT, uses), told, known)


def _joined(outputs: Sequence[ToolOutput], use: ToolUse) -> ToolOutput:
    """Make one of the results of a call; what only stands in for one goes."""
    real = [each for each in outputs if each.text != UNKNOWN] or outputs[:1]
    first = real[0]
    texts = tuple({each.text: None for each in real})
    if (first.id, first.name, len(texts)) == (use.id, use.name, 1):
        return first
    media = tuple({medium: None for each in real for medium in each.media})
    text = "\n".join(texts)
    return replace(first, id=use.id, name=use.name, text=text, media=media)


def _worded(message: Message) -> tuple[Part, ...]:
    """Leave out what is blank, and what belongs to nobody with this role."""
    foreign = ToolOutput if message.role is Role.ASSISTANT else ToolOutput | ToolUse
    return tuple(
        part
        for part in message.parts
        if not isinstance(part, foreign)
        and not (isinstance(part, Text) and not part.text.strip())
    )


def _kept(message: Message, parts: tuple[Part, ...]) -> Sequence[Message]:
    """Give the message with these parts; none where nothing but thoughts is left."""
    if all(isinstance(part, Reasoning) for part in parts):
        return ()
    return (message if parts == message.parts else Message(message.role, parts),)


def _readable(use: ToolUse, known: _Known) -> ToolUse:
    """Give a call an id of its own, a name that may be sent, and whole arguments."""
    wanted = free = use.id or "call"
    number = known.get(wanted, 2)
    while free in known:
        free = f"{wanted}_{number}"
        number += 1
    known[free], known[wanted] = 2, number
    name = UNSAFE.sub("_", use.name)[:LONGEST_NAME] or NAMELESS
    arguments = _whole(use.arguments)
    if arguments is None:
        use = replace(use, arguments={}, malformed=use.malformed or CUT)
    elif arguments is not use.arguments:
        use = replace(use, arguments=arguments)
    return (
        use if (free, name) == (use.id, use.name) else replace(use, id=free, name=name)
    )


def _whole(arguments: object) -> JsonObject | None:
    """Read arguments; None when they are no JSON object, or broke off in one."""
    try:
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        if isinstance(arguments, Mapping):
            json.dumps(dict(arguments), allow_nan=False)
            return arguments
    except (ValueError, TypeError, RecursionError):
        pass
    return None


def self_test() -> None:
    """Break a conversation, see it mended, and see a whole one left alone.

    Raises:
        RuntimeError: One of them went the other way.
    """
    asked = Message(Role.USER, (Text("Which files are there?"),))
    call = Message(Role.ASSISTANT, (ToolUse("a", "file_list", {}),))
    result = Message(Role.TOOL, (ToolOutput("a", "file_list", "one"),))
    said = Message(Role.ASSISTANT, (Text("One."),))
    whole = (asked, call, result, said)
    if repaired(whole) is not whole:
        raise RuntimeError("a conversation without fault was changed")
    if repaired((asked, call, said, result, result)) != whole:
        raise RuntimeError("a result was not put behind its call")
    for broken in ((call, said), (result, said), (asked, said, result)):
        mended = repaired(broken)
        if repaired(mended) is not mended or not _is_paired(mended):
            raise RuntimeError("a broken conversation was not mended")


def _is_paired(history: Sequence[Message]) -> bool:
    """Tell whether the results of all calls stand right behind them."""
    paired = all(
        {use.id for use in before.tool_uses}
        == {part.id for part in after.parts if isinstance(part, ToolOutput)}
        for before, after in pairwise(history)
        if before.tool_uses or after.role is Role.TOOL
    )
    return paired and not history[-1].tool_uses


@hookimpl
def security_system() -> SecuritySystem:
    """Offer the repair of conversations."""
    return SecuritySystem("session_repair", {Guard.HISTORY: sound}, self_test)
