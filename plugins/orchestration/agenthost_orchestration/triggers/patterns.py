"""The nine patterns: what a trigger waits for, as people write it and as it is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from agenthost import InvalidInput, Json, JsonObject, did_you_mean
from agenthost_values.value_class import value_class

LONGEST = 256
FORMS: dict[str, str] = {
    "all": "",
    "lifecycle": "",
    "agent_spawned": "name_pattern",
    "agent_terminated": "",
    "system": "",
    "system_keyword": "keyword",
    "memory_update": "",
    "memory_key_pattern": "key_pattern",
    "content_match": "substring",
}
"""Each pattern with the name of its parameter, "" for none."""
BARE = ("all", "lifecycle", "agent_terminated", "system", "memory_update")
CONDITIONS = "all, event:<pattern> or memory:<key>"


@value_class
class Pattern:
    """What a trigger waits for: one of ``FORMS``, and the text of its parameter."""

    name: str
    text: str = ""

    @property
    def form(self) -> JsonObject:
        """The pattern as the API shows it: an object of one key."""
        parameter = FORMS[self.name]
        return {self.name: {parameter: self.text} if parameter else {}}


def pattern_of(said: Json, field: str = "pattern") -> Pattern:
    """Read a pattern: ``"lifecycle"``, ``{"agent_spawned": {"name_pattern": "a*"}}``.

    Args:
        said: What was written.
        field: Where it was written.

    Raises:
        InvalidInput: It is no pattern; the message says what is accepted.
    """
    if isinstance(said, str):
        said = {said: {}}
    if not isinstance(said, dict) or len(said) != 1:
        raise InvalidInput(field, f"must be one of {_accepted()}")
    [(name, inner)] = said.items()
    if name not in FORMS:
        hint = did_you_mean(name[:LONGEST], FORMS)
        raise InvalidInput(field, f"unknown; it is one of {_accepted()}{hint}")
    parameter = FORMS[name]
    wanted = {parameter} if parameter else set()
    if not isinstance(inner, dict) or set(inner) != wanted:
        raise InvalidInput(f"{field}.{name}", f"must be {_shape(name)}")
    if not parameter:
        return Pattern(name)
    return Pattern(name, _text(inner[parameter], f"{field}.{name}.{parameter}"))


def conditions_to_patterns(
    conditions: Sequence[str], field: str = "schedule.proactive.conditions"
) -> list[Pattern]:
    """Read the conditions of a manifest: ``all``, ``event:system``, ``memory:<key>``.

    Raises:
        InvalidInput: One is none; the message names it and says what is accepted.
    """
    return [
        _condition(condition, f"{field}[{number}]")
        for number, condition in enumerate(conditions)
    ]


def _condition(condition: str, field: str) -> Pattern:
    kind, colon, rest = condition.strip().partition(":")
    match kind, rest:
        case "all", "" if not colon:
            return Pattern("all")
        case "event", "agent_spawned":
            return Pattern("agent_spawned", "*")
        case "event", _ if rest in BARE and rest != "all":
            return Pattern(rest)
        case "memory", _ if rest:
            return Pattern("memory_key_pattern", _text(rest, field))
    events = ", ".join(("agent_spawned", *BARE[1:]))
    raise InvalidInput(field, f"must be {CONDITIONS}; patterns are {events}")


def _text(said: Json, field: str) -> str:
    if not isinstance(said, str) or not 0 < len(said) <= LONGEST:
        raise InvalidInput(field, f"must be text of 1 to {LONGEST} characters")
    return said


def _accepted(names: Iterable[str] = FORMS) -> str:
    return ", ".join(f'"{name}"' if name in BARE else _written(name) for name in names)


def _written(name: str) -> str:
    return f'{{"{name}": {_shape(name)}}}'


def _shape(name: str) -> str:
    parameter = FORMS[name]
    return json.dumps({parameter: "<text>"} if parameter else {})
