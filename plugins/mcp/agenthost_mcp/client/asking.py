"""What a server asks before it answers a call, put to a person as questions are.

Source: https://modelcontextprotocol.io/specification/2026-07-28, input required.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from agenthost import Ask, Asked, InvalidInput, JsonObject, Question, ToolContext

from .sampling import METHOD, sampled
from .settings import McpServer

ROUNDS = 8
"""So often a server may ask before it answers; that is also all that a call may."""
MESSAGE_LENGTH = 2_000
ROOTS = "roots/list"
ELICITATION = "elicitation/create"
MOST_OPTIONS = 50
MOST_SAMPLED = 4
"""So often a server may ask a model at once."""
_RULES = (
    *("type", "title", "description", "default", "enum"),
    *("minLength", "maxLength", "minimum", "maximum"),
)


async def answers(
    server: McpServer, tool: str, context: ToolContext, requests: object
) -> dict[str, Any] | None:
    """Give what a server asks for: its roots, values by a person, words of a model.

    Returns:
        The answers; None where it asks for what is not offered to it.

    Raises:
        Asked: Nobody has answered yet.
        InvalidInput: The server asks wrongly.
        AgentHostError: The model gave no answer, or nobody pays for it.
    """
    asked = requests if isinstance(requests, Mapping) else {}
    methods = {
        str(key): said.get("method") if isinstance(said, Mapping) else None
        for key, said in asked.items()
    }
    roots = {key for key in methods if server.roots and methods[key] == ROOTS}
    models = {key for key in methods if server.sampling and methods[key] == METHOD}
    rest = {key: said for key, said in asked.items() if str(key) not in roots | models}
    told: dict[str, Any] = {key: {"roots": server.told_roots} for key in roots}
    if rest or not methods:
        if not server.elicitation:
            return None
        told |= responses(server.name, tool, context, rest)
    if len(models) > MOST_SAMPLED:
        raise InvalidInput("inputRequests", f"ask a model over {MOST_SAMPLED} times")
    # People first: while they have not answered, the model would be paid in vain.
    for key in sorted(models):
        told[key] = await sampled(context, asked[key])
    return told


def responses(
    server: str, tool: str, context: ToolContext, requests: object
) -> dict[str, Any]:
    """Give what a person answered to all that a server asks at once.

    Where no turn can wait for a person, each question is declined.

    Raises:
        Asked: Nobody has answered yet.
        InvalidInput: The server asks for what is not offered to it, or wrongly.
    """
    if not isinstance(requests, Mapping) or not requests:
        raise InvalidInput("inputRequests", "the server asks for nothing")
    params = {str(key): _params_of(said) for key, said in requests.items()}
    if context.agent is None or context.turn_id is None:
        return {key: {"action": "decline"} for key in params}
    # A later question must not be taken for one that was answered before.
    mark = sha256(json.dumps(params, sort_keys=True).encode()).hexdigest()[:8]
    wanted = {key: _fields(said) for key, said in params.items()}
    names = {
        (key, name): f"{name}_{number}_{mark}"
        for number, key in enumerate(wanted)
        for name in wanted[key]
    }
    said = context.answers
    if f"send_{mark}" not in said:
        raise Asked([Ask(_question(server, tool, params, names, mark))])
    if not said[f"send_{mark}"]:
        return {key: {"action": "decline"} for key in params}
    return {
        key: {"action": "accept", "content": _content(key, fields, names, said)}
        for key, fields in wanted.items()
    }


def _params_of(said: object) -> Mapping[str, Any]:
    match said:
        case {"method": method, "params": {"message": str()} as params}:
            if method == ELICITATION and params.get("mode", "form") == "form":
                return dict(params)
    raise InvalidInput(
        "inputRequests", "the server asks for more than values of a person"
    )


def _fields(params: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    match params.get("requestedSchema"):
        case {"properties": {} as fields} if all(
            isinstance(each, Mapping) for each in fields.values()
        ):
            return dict(fields)
    raise InvalidInput("requestedSchema", "the server asks for no object of values")


def _question(
    server: str,
    tool: str,
    params: Mapping[str, Mapping[str, Any]],
    names: Mapping[tuple[str, str], str],
    mark: str,
) -> Question:
    asked = "\n".join(each["message"][:MESSAGE_LENGTH] for each in params.values())
    text = f"The MCP server {server} asks, before {tool:.100} answers: {asked}"
    send = {"type": "boolean", "title": "Send these values to the server"}
    properties: dict[str, Any] = {f"send_{mark}": send}
    required = [f"send_{mark}"]
    for (key, name), shown in names.items():
        rules = _fields(params[key])[name]
        if rules.get("type") == "array":
            properties |= _boxes(name, shown, rules)
            continue
        properties[shown] = _rules(name, rules)
        if name in params[key]["requestedSchema"].get("required", ()):
            required.append(shown)
    schema = {"type": "object", "properties": properties, "required": required}
    return Question(text[:4_000], schema=schema)


def _rules(name: str, said: Mapping[str, Any]) -> JsonObject:
    """Take what people are asked by of a field; titles of values become a hint."""
    rules = {key: said[key] for key in _RULES if key in said}
    rules.setdefault("title", name)
    if isinstance(titled := said.get("oneOf"), list):
        options = [each for each in titled if isinstance(each, Mapping)]
        rules["enum"] = [each.get("const") for each in options]
        hints = (f"{each.get('const')}: {each.get('title')}" for each in options)
        rules["description"] = "; ".join(hints)[:1_000]
    return rules


def _boxes(name: str, shown: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Make a field of which several values may be chosen: a yes or no for each."""
    title, chosen = said.get("title", name), said.get("default") or ()
    return {
        f"{shown}_{number}": {
            "type": "boolean",
            "title": f"{title}: {label}"[:200],
            "default": value in chosen,
        }
        for number, (value, label) in enumerate(_options(said))
    }


def _options(said: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Give the values of which several may be chosen, each with its title."""
    match said.get("items"):
        case {"enum": [*values]}:
            found = [(value, value) for value in values]
        case {"anyOf": [*titled]} if all(isinstance(each, Mapping) for each in titled):
            found = [(each.get("const"), each.get("title")) for each in titled]
        case _:
            found = []
    if not 0 < len(found) <= MOST_OPTIONS or not all(
        isinstance(value, str) for value, _ in found
    ):
        raise InvalidInput(
            "requestedSchema", f"a list has 1 to {MOST_OPTIONS} values to choose from"
        )
    return [(value, str(label or value)) for value, label in found]


def _content(
    key: str,
    fields: Mapping[str, Mapping[str, Any]],
    names: Mapping[tuple[str, str], str],
    said: JsonObject,
) -> dict[str, Any]:
    """Give the values of one question; what was left empty is its default."""
    content = {}
    for name, rules in fields.items():
        shown = names[key, name]
        value = said.get(shown, rules.get("default"))
        if rules.get("type") == "array":
            default = rules.get("default") or ()
            value = [
                option
                for number, (option, _) in enumerate(_options(rules))
                if said.get(f"{shown}_{number}", option in default)
            ]
        if value is not None:
            content[name] = value
    return content
