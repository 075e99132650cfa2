"""A rolling session is cut between exchanges, wherever its last messages begin."""

from __future__ import annotations

from agenthost import Entry, Message, Role, Text, ToolOutput, ToolUse
from agenthost_orchestration.background.conversations import cut_at
from hypothesis import given, settings
from hypothesis import strategies as st

Exchange = tuple[int, bool]
"""How many calls were made on the way, in steps of one each; whether it ended."""


def said(exchanges: list[Exchange]) -> list[Entry]:
    entries: list[Entry] = []

    def add(role: Role, turn: int, *parts: Text | ToolUse | ToolOutput) -> None:
        seq = len(entries)
        entries.append(Entry(Message(role, parts), seq, seq, f"t{turn}", 0.0))

    for turn, (calls, ended) in enumerate(exchanges):
        add(Role.USER, turn, Text("do it"))
        for call in range(calls):
            add(Role.ASSISTANT, turn, ToolUse(f"c{turn}.{call}", "pay", {}))
            add(Role.TOOL, turn, ToolOutput(f"c{turn}.{call}", "pay", "paid"))
        if ended:
            add(Role.ASSISTANT, turn, Text("done"))
    return entries


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=8),
    st.integers(0, 30),
    st.sets(st.integers(0, 7), max_size=2),
)
def test_no_call_is_parted_from_its_result(
    exchanges: list[Exchange], keep: int, open_: set[int]
) -> None:
    entries = said(exchanges)
    unfinished = {f"t{turn}" for turn in open_}
    cut = cut_at(entries, keep, unfinished)
    left = entries[cut:]
    calls = {use.id for each in left for use in each.message.tool_uses}
    results = {
        part.id
        for each in left
        for part in each.message.parts
        if isinstance(part, ToolOutput)
    }
    assert calls == results
    if left:
        assert left[0].message.role is Role.USER
    gone = {each.turn_id for each in entries[:cut]}
    assert not gone & {each.turn_id for each in left}
    assert not gone & unfinished
    longest = max([1, *(2 + 2 * number for number, _ in exchanges[-1:])])
    if not unfinished:
        assert len(left) <= max(keep, longest)
        # What fits is kept: one exchange more would be too many.
        before = [i for i, e in enumerate(entries[:cut]) if e.message.role is Role.USER]
        assert not before or len(entries) - before[-1] > keep
