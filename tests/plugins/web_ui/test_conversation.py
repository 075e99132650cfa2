"""How frames and stored messages become entries: the page's pure functions."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Watched

pytestmark = [pytest.mark.browser, pytest.mark.conformance]
Entries = list[dict[str, Any]]
MODULE = """async ([entries, frames]) => {
  const { applyFrame } = await import("/static/js/conversation.js");
  return frames.reduce(applyFrame, entries);
}"""
MERGE = """async ([before, shown, messages]) => {
  const { fromSession, merge } = await import("/static/js/history.js");
  const known = new Map(before.map((entry) => [entry.id, entry]));
  return merge(fromSession(messages), shown, known);
}"""


def heard(watched: Watched, *frames: dict[str, Any], entries: Entries = []) -> Entries:  # noqa: B006 (never changed)
    """Let the page take in frames of turn ``t``."""
    page = watched.open()
    about = [{"turn_id": "t", **frame} for frame in frames]
    found: Entries = page.evaluate(MODULE, [entries, about])
    return found


def merged(
    watched: Watched, before: Entries, shown: Entries, messages: Entries
) -> Entries:
    """Let the page put a session in the place of what it shows."""
    found: Entries = watched.open().evaluate(MERGE, [before, shown, messages])
    return found


def words(text: str, offset: int) -> dict[str, Any]:
    return {"type": "text_delta", "content": text, "offset": offset}


def test_words_that_were_heard_before_are_left_out(watched: Watched) -> None:
    (answer,) = heard(
        watched, words("one 🦊", 5), words("one 🦊", 5), words("🦊 two", 9)
    )
    assert answer["parts"] == [{"kind": "text", "text": "one 🦊 two"}]
    assert answer["offset"] == 9


def test_a_tool_that_is_told_of_again_stays_one_card(watched: Watched) -> None:
    start = {"type": "tool_start", "id": "c1", "tool": "calculate", "input": {}}
    end = {"type": "tool_end", "id": "c1", "tool": "calculate", "result": "42"}
    (answer,) = heard(watched, start, end, start, end)
    (part,) = answer["parts"]
    assert (part["result"], part["done"]) == ("42", True)


def test_turns_that_overlap_keep_to_their_own_answers(watched: Watched) -> None:
    first, second = heard(
        watched, words("a", 1), words("b", 1) | {"turn_id": "u"}, words("c", 2)
    )
    assert first["parts"] == [{"kind": "text", "text": "ac"}]
    assert second["parts"] == [{"kind": "text", "text": "b"}]


def test_an_answer_that_has_ended_stays_as_it_is(watched: Watched) -> None:
    end = {"type": "error", "content": "stopped", "code": "cancelled"}
    (answer,) = heard(watched, words("a", 1), end, words("b", 2), {"type": "thinking"})
    assert (answer["status"], answer["offset"]) == ("stopped", 1)


def test_a_second_try_begins_with_an_empty_answer(watched: Watched) -> None:
    (first,) = heard(watched, words("half", 4))
    again = [first | {"again": True}]
    (answer,) = heard(watched, {"type": "thinking"}, words("all", 3), entries=again)
    assert answer["parts"] == [{"kind": "text", "text": "all"}]


def test_what_left_the_session_leaves_the_page(watched: Watched) -> None:
    def asked(turn: str) -> dict[str, Any]:
        return {"role": "User", "content": "go", "turn_id": turn}

    both = merged(watched, [], [], [asked("t"), asked("u")])
    assert len(both) == 2
    assert merged(watched, both, both, [asked("t")]) == both[:1]


def test_a_grown_answer_wins_over_the_session_read_meanwhile(watched: Watched) -> None:
    asked = {"role": "User", "content": "go", "turn_id": "t", "status": "running"}
    before = heard(watched, words("a", 1))
    shown = heard(watched, {"type": "response", "content": "a"}, entries=before)
    (_, answer) = merged(watched, before, shown, [asked])
    assert answer["status"] == "complete"


def test_a_turn_that_runs_again_wins_over_its_old_failure(watched: Watched) -> None:
    asked = {"role": "User", "content": "go", "turn_id": "t", "status": "running"}
    failed = heard(watched, {"type": "error", "content": "no"})
    (_, answer) = merged(watched, failed, failed, [asked])
    assert (answer["status"], answer["error"]) == ("running", None)


def test_a_session_without_turns_reads_as_it_always_did(watched: Watched) -> None:
    asked = {"role": "User", "content": "go", "id": 1}
    call = {"id": "c1", "name": "calculate", "input": {}, "result": "42"}
    step = {"role": "Assistant", "content": "let me see", "tools": [call], "id": 2}
    said = {"role": "Assistant", "content": "it is 42", "id": 3}
    once = merged(watched, [], [], [asked, step, said])
    assert [entry["role"] for entry in once] == ["user", "assistant"]
    assert [part["kind"] for part in once[1]["parts"]] == ["text", "tool", "text"]
    assert merged(watched, once, once, [asked, step, said]) == once


def test_thoughts_become_one_part_before_the_words(watched: Watched) -> None:
    so, be = ({"type": "thinking", "content": text} for text in ("so ", "be it"))
    start = {"type": "thinking"}
    end = {"type": "response", "content": "yes", "finish": "length"}
    (answer,) = heard(watched, start, so, be, words("yes", 3), end)
    assert answer["parts"] == [
        {"kind": "thought", "text": "so be it"},
        {"kind": "text", "text": "yes"},
    ]
    assert answer["finish"] == "length"


def test_thoughts_stay_when_the_session_is_read(watched: Watched) -> None:
    thought = {"type": "thinking", "content": "so be it"}
    end = {"type": "response", "content": "yes"}
    shown = heard(watched, thought, words("yes", 3), end)
    common = {"turn_id": "t", "status": "complete"}
    stored = [
        {"role": "User", "content": "go", **common},
        {"role": "Assistant", "content": "yes", "finish": "length", **common},
    ]
    _, answer = merged(watched, shown, shown, stored)
    assert [part["kind"] for part in answer["parts"]] == ["thought", "text"]
    assert answer["finish"] == "length"
