"""The nine patterns: how they are written, and which events each of them sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    AgentSpawned,
    AgentTerminated,
    AgentUpdated,
    BudgetExceeded,
    Custom,
    DaemonStarted,
    Event,
    HealthChanged,
    InvalidInput,
    LifecycleEvent,
    MemoryChanged,
    MessageReceived,
    QuotaEvent,
    SystemEvent,
    ToolEnded,
)
from agenthost_orchestration.background.errands import Creator
from agenthost_orchestration.background.events import OccasionEnded
from agenthost_orchestration.triggers.events import TriggerFired
from agenthost_orchestration.triggers.matching import Matching, Told
from agenthost_orchestration.triggers.patterns import (
    FORMS,
    Pattern,
    conditions_to_patterns,
    pattern_of,
)
from agenthost_orchestration.triggers.trigger import Trigger

EVENTS: dict[str, Event] = {
    "ada": AgentSpawned("1", 0.0, "Ada"),
    "bob": AgentSpawned("2", 0.0, "bob"),
    "changed": AgentUpdated("1", 0.0, "Ada"),
    "gone": AgentTerminated("1", 0.0, "Ada"),
    "up": DaemonStarted("127.0.0.1:4200", 0.0),
    "ill": HealthChanged("daemon", 0.0, "degraded"),
    "dear": BudgetExceeded("daemon", 0.0, "budget.max_daily_usd", "micro_usd", 9, 10),
    "colour": MemoryChanged("1", 0.0, "colour.sky", "set"),
    "shape": MemoryChanged("1", 0.0, "Colour.shape", "deleted"),
    "said": MessageReceived("1", 0.0, "Ada", "s", "t", "bob", "The SKY is degraded"),
    "tool": ToolEnded("1", 0.0, "look", "t", is_error=False, seconds=0.2, text="blue"),
    "order": Custom("shop", 0.0, "order", {"sky": "blue"}),
}
SEEN: dict[str, tuple[Any, str]] = {
    "everything": ("all", " ".join(EVENTS)),
    "lives": ("lifecycle", "ada bob changed gone"),
    "births": ({"agent_spawned": {"name_pattern": "*"}}, "ada bob"),
    "births by glob": ({"agent_spawned": {"name_pattern": "A?a*"}}, "ada"),
    "births by the whole name": ({"agent_spawned": {"name_pattern": "b"}}, ""),
    "ends": ({"agent_terminated": {}}, "gone"),
    "the daemon": ("system", "up ill dear"),
    "words of the daemon": ({"system_keyword": {"keyword": "DeGraded"}}, "ill"),
    "kinds by word": ({"system_keyword": {"keyword": "budget_"}}, "dear"),
    "memory": ({"memory_update": {}}, "colour shape"),
    "keys": ({"memory_key_pattern": {"key_pattern": "colour.*"}}, "colour"),
    "words": ({"content_match": {"substring": "sky"}}, "colour said order"),
    "words of tools": ({"content_match": {"substring": "look"}}, "tool"),
}
WRONG: dict[str, tuple[Any, str]] = {
    "nothing": (None, "pattern: must be one of"),
    "a number": (7, "pattern: must be one of"),
    "two at once": ({"all": {}, "system": {}}, "pattern: must be one of"),
    "none": ({}, "pattern: must be one of"),
    "unknown": ("lifecycles", "did you mean 'lifecycle'"),
    "unknown object": ({"agent_born": {}}, "pattern: unknown"),
    "no parameter": ("content_match", 'must be {"substring": "<text>"}'),
    "another parameter": ({"all": {"name": "x"}}, "pattern.all: must be {}"),
    "no object": ({"all": None}, "pattern.all: must be {}"),
    "misspelt": ({"system_keyword": {"key": "x"}}, 'must be {"keyword": "<text>"}'),
    "empty": ({"content_match": {"substring": ""}}, "content_match.substring: must be"),
    "long": ({"content_match": {"substring": "x" * 257}}, "1 to 256 characters"),
    "no text": ({"agent_spawned": {"name_pattern": 4}}, "name_pattern: must be text"),
}


def trigger(pattern: Any, **facts: Any) -> Trigger:
    return replace(
        Trigger("t", "agent", pattern_of(pattern), "{{event}}", Creator("k", "n"), 0.0),
        **facts,
    )


def seen(pattern: Any) -> list[str]:
    matching = Matching([trigger(pattern)])
    return [
        name
        for name, event in EVENTS.items()
        if isinstance(event, tuple(matching.kinds)) and matching.waiting(Told(event))
    ]


@pytest.mark.parametrize("name", SEEN)
def test_a_pattern_sees_its_events_and_no_others(name: str) -> None:
    pattern, wanted = SEEN[name]
    assert seen(pattern) == wanted.split()


def test_every_pattern_is_among_those() -> None:
    assert {pattern_of(each).name for each, _ in SEEN.values()} == set(FORMS)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_pattern_is_refused_with_what_is_accepted(name: str) -> None:
    said, told = WRONG[name]
    with pytest.raises(InvalidInput) as refused:
        pattern_of(said)
    assert told in refused.value.message


def test_a_pattern_is_shown_as_an_object() -> None:
    assert pattern_of("lifecycle").form == {"lifecycle": {}}
    spawned = {"agent_spawned": {"name_pattern": "a*"}}
    assert pattern_of(spawned).form == spawned


def test_only_the_kinds_that_are_waited_for_are_named() -> None:
    assert Matching([trigger("memory_update")]).kinds == {MemoryChanged}
    both = [trigger("lifecycle"), trigger("system")]
    assert Matching(both).kinds == {LifecycleEvent, SystemEvent, QuotaEvent}
    assert Matching([trigger("all", enabled=False)]).kinds == frozenset()


def test_what_an_agent_caused_counts_only_where_it_says_so() -> None:
    own = Custom("agent", 0.0, "order", {}, source="agent")
    others = replace(own, source="another")
    quiet, keen = trigger("all"), trigger("all", own_events=True)
    assert Matching([quiet, keen]).waiting(Told(own)) == [keen]
    assert Matching([quiet, keen]).waiting(Told(others)) == [quiet, keen]


def test_no_trigger_sees_that_one_fired_nor_what_became_of_it() -> None:
    matching = Matching([trigger("all", own_events=True)])
    fired = TriggerFired("t", 0.0, "agent", "event")
    ended = OccasionEnded("t", 0.0, "o", "trigger", "done", "", "", "", 0)
    assert matching.waiting(Told(fired)) == matching.waiting(Told(ended)) == []


def test_no_trigger_sees_the_message_by_which_an_agent_is_told_of_an_event() -> None:
    matching = Matching([trigger("all")])
    said = EVENTS["said"]
    assert matching.waiting(Told(said))
    assert matching.waiting(Told(replace(said, depth=1))) == []


def test_the_conditions_of_a_manifest_are_patterns() -> None:
    said = ["all", "event:agent_spawned", " event:system", "memory:plan.*"]
    assert conditions_to_patterns(said) == [
        Pattern("all"),
        Pattern("agent_spawned", "*"),
        Pattern("system"),
        Pattern("memory_key_pattern", "plan.*"),
    ]


@pytest.mark.parametrize(
    "said", ["", "event:", "event:all", "event:system_keyword", "memory:", "all:", "x"]
)
def test_another_condition_is_refused_by_its_place(said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        conditions_to_patterns(["all", said])
    assert refused.value.field == "schedule.proactive.conditions[1]"
    assert "event:<pattern>" in refused.value.message
