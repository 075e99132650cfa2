"""What prompts say of events: a sentence for each kind, filled in one pass."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from agenthost import Custom, Event, TurnEnded
from agenthost_orchestration.triggers.sentences import (
    LONGEST,
    LONGEST_JSON,
    filled,
    sentence,
    told,
)

DOCS = Path(__file__).parents[4] / "docs"


def examples() -> dict[str, Any]:
    """The events of the page of events, by kind."""
    found = re.findall(
        r"```json\n(.*?)\n```", (DOCS / "events.md").read_text("utf-8"), re.S
    )
    return {event["kind"]: event for event in map(json.loads, found)}


def sentences() -> dict[str, str]:
    """The sentences of the page of triggers, by kind."""
    page = (DOCS / "triggers.md").read_text(encoding="utf-8")
    table = page.partition("sentence of its example")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.M))


def custom(**facts: Any) -> Any:
    return told(Custom("shop", 0.0, facts.pop("type", "order"), facts))


def test_the_page_has_the_sentence_of_every_kind() -> None:
    shown = sentences()
    assert shown.keys() == examples().keys()
    for kind, event in examples().items():
        assert sentence(event) == shown[kind]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("failed", 'The turn t of agent "ada" failed: overloaded.'),
        ("cancelled", 'The turn t of agent "ada" was cancelled.'),
        ("interrupted", 'The turn t of agent "ada" was interrupted.'),
        ("waiting", 'The turn t of agent "ada" waits for a person.'),
    ],
)
def test_a_turn_ends_in_other_words_when_it_has_no_answer(
    state: str, said: str
) -> None:
    facts = ("ada", "s", "t", state, "", "overloaded", 0, 0, 0)
    assert sentence(told(TurnEnded("1", 0.0, *facts))) == said


def test_a_kind_that_nobody_has_words_for_has_its_name_and_its_data() -> None:
    class ShelfEmpty(Event):
        """A shelf has run empty."""

        shelf: int

    said = sentence(told(ShelfEmpty("stock", 0.0, 4)))
    assert said == 'The event "shelf_empty" happened to stock: {"shelf": 4}'


def test_all_places_are_filled_in_one_pass() -> None:
    event = custom(word="{{event}} and {{event.json}}")
    prompt = filled("{{event}} | {{event}} | {{event.json}} | {{events}}", event)
    one, two, three, four = prompt.split(" | ")
    assert one == two == sentence(event)
    assert json.loads(three) == event
    assert four == "{{events}}"
    assert "{{event}} and {{event.json}}" in one


def test_braces_in_an_event_are_only_braces() -> None:
    event = custom(type="a{name}{0}{kind.__class__}", more="{subject}")
    assert "a{name}{0}{kind.__class__}" in sentence(event)
    assert "{subject}" in sentence(event)


def test_a_long_event_is_cut_and_stays_json() -> None:
    event = custom(text="é" * LONGEST_JSON, list=[1] * LONGEST_JSON)
    assert len(json.dumps(event, ensure_ascii=False).encode()) < 2 * LONGEST
    assert len(sentence(event).encode()) < LONGEST + 100
    assert json.loads(filled("{{event.json}}", event)) == event


def test_a_sentence_has_the_first_four_kibibytes_of_the_data() -> None:
    event = custom(text="x" * 2 * LONGEST)
    data = sentence(event).partition(": ")[2]
    assert len(data) == LONGEST
    assert data == json.dumps(event["data"]["data"])[:LONGEST]


def test_half_a_character_is_kept_as_a_question_mark() -> None:
    assert custom(text="\ud800")["data"]["data"] == {"text": "?"}


@pytest.mark.parametrize("odd", [float("nan"), {1, 2}, b"bytes"])
def test_what_is_no_json_is_refused(odd: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        custom(odd=odd)
