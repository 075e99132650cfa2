"""Events in words, as prompts have them: one stable English sentence for each kind.

The sentences are public: people write triggers that look for words of theirs. They are
made of an event's JSON, so that they read the same before it is written down and after.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from agenthost import Event, JsonObject, as_json

LONGEST = 4 * 1024
"""So many bytes of a text, or of the data of a custom event, stand in a sentence."""
LONGEST_JSON = 64 * 1024
"""An event whose JSON is longer has each of its fields cut to ``LONGEST``."""
MOST_PLACES = 16
PLACES = re.compile(r"\{\{event(\.json)?\}\}")

SENTENCES: Mapping[str, str] = {
    "agent_spawned": 'Agent "{name}" ({subject}) was spawned.',
    "agent_updated": 'Agent "{name}" ({subject}) was updated.',
    "agent_suspended": 'Agent "{name}" ({subject}) was suspended.',
    "agent_resumed": 'Agent "{name}" ({subject}) takes messages again.',
    "agent_crashed": 'Agent "{name}" ({subject}) has crashed.',
    "agent_terminated": 'Agent "{name}" ({subject}) was terminated.',
    "message_received": 'Agent "{agent}" received a message from {caller}: {text}',
    "turn_started": 'Agent "{agent}" began the turn {turn_id}.',
    "tool_called": 'Agent {subject} called the tool "{tool}".',
    "memory_changed": 'The memory key "{key}" of {subject} was {operation}.',
    "daemon_started": "The daemon started and serves at {subject}.",
    "daemon_stopping": "The daemon is stopping.",
    "health_changed": "The health of the daemon is {status} now.",
    "plugin_failed": "The plugin {subject} failed: {reason}",
    "tool_denied": (
        'Agent {subject} was denied the tool "{tool}" by a {denied_by}: {reason}'
    ),
    "trigger_created": "The trigger {subject} of agent {agent_id} was created.",
    "trigger_changed": "The trigger {subject} of agent {agent_id} was changed.",
    "trigger_deleted": "The trigger {subject} of agent {agent_id} was deleted.",
}
OF_CALLS: Mapping[str, str] = {
    "approval_requested": (
        'Agent {subject} waits for a person before the tool "{tool}": {question}'
    ),
    "approval_answered": (
        'A person answered agent {subject} about the tool "{tool}": {state}.'
    ),
}
OF_MONEY: Mapping[str, str] = {
    "approval_requested": "Agent {subject} waits for a person: {question}",
    "approval_answered": "A person answered agent {subject}: {state}. {question}",
}
ENDINGS: Mapping[str, str] = {
    "done": 'Agent "{agent}" ended the turn {turn_id} and said: {text}',
    "failed": 'The turn {turn_id} of agent "{agent}" failed: {error}.',
    "cancelled": 'The turn {turn_id} of agent "{agent}" was cancelled.',
    "interrupted": 'The turn {turn_id} of agent "{agent}" was interrupted.',
    "waiting": 'The turn {turn_id} of agent "{agent}" waits for a person.',
}


def told(event: Event) -> JsonObject:
    """Write an event as JSON that can be kept: of bounded length, and of clean text.

    Raises:
        ValueError: It holds something that is no JSON.
        TypeError: Likewise.
    """
    written = as_json(event)
    text = json.dumps(written, ensure_ascii=False, allow_nan=False)
    clean = text.encode("utf-8", "replace").decode()
    if clean != text:
        written = json.loads(clean)
    if len(clean) > LONGEST_JSON:
        written["data"] = {
            name: _short(value) for name, value in written["data"].items()
        }
    return written


def sentence(event: JsonObject) -> str:
    """Say in one sentence what happened, from the event's JSON."""
    kind: Any = event["kind"]
    facts = _facts(event)
    if kind in SENTENCES:
        return SENTENCES[kind].format_map(facts)
    return _SPECIAL.get(kind, _any)(facts)


def filled(template: str, event: JsonObject) -> str:
    """Put an event into a template; what is put in is not looked at again."""

    def put(place: re.Match[str]) -> str:
        return json.dumps(event, ensure_ascii=False) if place[1] else sentence(event)

    return PLACES.sub(put, template)


def _facts(event: JsonObject) -> dict[str, Any]:
    data: Any = event["data"]
    facts = {name: _cut(value) for name, value in data.items()}
    return {"kind": event["kind"], "subject": event["subject"], **facts, "": data}


def _approval(facts: Mapping[str, Any]) -> str:
    said = OF_MONEY if facts.get("purse") else OF_CALLS
    return said[facts["kind"]].format_map(facts)


def _turn_ended(facts: Mapping[str, Any]) -> str:
    return ENDINGS.get(facts["state"], ENDINGS["failed"]).format_map(facts)


def _tool_ended(facts: Mapping[str, Any]) -> str:
    how = "failed" if facts["is_error"] else "succeeded"
    took = f"{facts['seconds'] * 1000:.0f} ms"
    return (
        f'The tool "{facts["tool"]}" of agent {facts["subject"]} {how} after {took}: '
        f"{facts['text']}"
    )


def _budget(facts: Mapping[str, Any]) -> str:
    used, of = (_amount(facts[name], facts["unit"]) for name in ("used", "of"))
    said = f"{facts['subject']} has used {used} of {of} of the limit {facts['limit']}"
    refused = facts["kind"] == "budget_exceeded"
    return f"A model call was refused: {said}." if refused else f"Budget alert: {said}."


def _trigger_fired(facts: Mapping[str, Any]) -> str:
    return (
        f"The trigger {facts['subject']} of agent {facts['agent_id']} fired at the "
        f"event {facts['event_id']}."
    )


def _custom(facts: Mapping[str, Any]) -> str:
    data = _short(facts[""]["data"], always=True)
    return f'The event "{facts["type"]}" was published by {facts["subject"]}: {data}'


def _any(facts: Mapping[str, Any]) -> str:
    data = _short(facts[""], always=True)
    return f'The event "{facts["kind"]}" happened to {facts["subject"]}: {data}'


_SPECIAL: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "turn_ended": _turn_ended,
    "tool_ended": _tool_ended,
    "approval_requested": _approval,
    "approval_answered": _approval,
    "budget_alert": _budget,
    "budget_exceeded": _budget,
    "trigger_fired": _trigger_fired,
    "custom": _custom,
}


def _amount(number: float, unit: str) -> str:
    return f"{number / 1e6:.4f} USD" if unit == "micro_usd" else f"{number} {unit}"


def _short(value: Any, *, always: bool = False) -> Any:
    """Cut what is long: text as it is, anything else as its JSON."""
    if isinstance(value, str):
        return _cut(value)
    text = json.dumps(value, ensure_ascii=False)
    return _cut(text) if always or len(text) > LONGEST else value


def _cut(value: Any) -> Any:
    if not isinstance(value, str) or len(value) * 4 <= LONGEST:
        return value
    data = value.encode("utf-8", "replace")
    return value if len(data) <= LONGEST else data[:LONGEST].decode(errors="ignore")
