"""An upstream that refuses what its vendor refuses: the rules are data."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from agenthost.testing.simulators import ProviderSimulator, Reply
from agenthost.testing.simulators.script import Wire

Rule = Mapping[str, Any]
SIGNED = "SIG-"


def rules() -> list[dict[str, Any]]:
    """Read all rules."""
    text = Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["rules"]
    return found


class RefusingSimulator(ProviderSimulator):
    """A simulated service that answers 400 to what breaks one of its rules."""

    def __init__(self, wire: Wire, provider: str) -> None:
        super().__init__(wire)
        self._rules = [rule for rule in rules() if rule["provider"] == provider]

    def reply(self, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Refuse, or answer with the next scene."""
        told = json.loads(body)
        for rule in self._rules:
            if breaks(rule, path, headers, told):
                return self.refuse(400, rule["name"])
        return super().reply(path, headers, body)


def breaks(
    rule: Rule, path: str, headers: Mapping[str, str], body: Mapping[str, Any]
) -> bool:
    """Tell whether all that a rule says holds of a request."""
    model = body.get("model") or _model_in(path)
    return (
        fnmatchcase(path.partition("?")[0], rule.get("path", "*"))
        and any(fnmatchcase(model, pattern) for pattern in rule["models"])
        and all(at(body, place) is not None for place in rule.get("has", ()))
        and all(headers.get(k) == v for k, v in rule.get("headers", {}).items())
        and _equals(rule, body)
        and not any(at(body, k) in v for k, v in rule.get("unless", {}).items())
        and (not rule.get("foreign") or _foreign(body, model))
        and (not rule.get("unsigned_loop") or _unsigned_loop(body))
    )


def at(body: Mapping[str, Any], place: str) -> Any:
    """Find what stands at a path with dots."""
    found: Any = body
    for step in place.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _model_in(path: str) -> str:
    """Read the model out of a path: Bedrock's and Gemini's bodies name none."""
    rest = path.rpartition("/model/")[2] if "/model/" in path else path
    name = unquote(rest.rpartition("/models/")[2].partition(":stream")[0])
    name = name.partition(":generate")[0].partition("/converse")[0]
    return name.removeprefix("global.").removeprefix("us.")


def _equals(rule: Rule, body: Mapping[str, Any]) -> bool:
    wanted = rule.get("equals", {})
    return not wanted or any(at(body, k) in values for k, values in wanted.items())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _foreign(body: Mapping[str, Any], model: str) -> bool:
    signed = (text for text in _texts(body) if text.startswith(SIGNED))
    return any(text != SIGNED + model for text in signed)


def _unsigned_loop(body: Mapping[str, Any]) -> bool:
    said = [m for m in body.get("messages", ()) if m["role"] == "assistant"]
    kinds = [block["type"] for block in said[-1]["content"]] if said else []
    return "tool_use" in kinds and kinds[0] not in {"thinking", "redacted_thinking"}
