"""What a person has agreed to of each server, by its digest; all else is held back."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from agenthost import JsonObject
from agenthost_values.value_class import value_class

from .settings import McpServer

LAUNCH = ""
"""What stands for how the server is reached, in the place of a tool's name."""
_SAID = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_HIDDEN = ("Cf", "Co", "Cs")
NAME_LENGTH = 64


@value_class
class Pin:
    """What was agreed to: of a tool, or of how a server is reached.

    Args:
        server: The server's name.
        tool: The tool as the server calls it, ``LAUNCH`` for the server itself.
        digest: Of all that was shown.
        name: As agents call it; it is the tool's for ever.
        definition: What was shown.
    """

    server: str
    tool: str
    digest: str
    name: str
    definition: JsonObject


@value_class
class Pending:
    """What waits for a person: ``new``, ``changed``, ``flagged``, or the ``launch``."""

    tool: str
    change: str
    digest: str
    definition: JsonObject
    before: JsonObject | None
    flags: tuple[str, ...]


def digest_of(said: JsonObject) -> str:
    """Give the digest of a JSON value, however its keys are ordered."""
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def launch_of(server: McpServer) -> dict[str, Any]:
    """Give what is pinned of how a server is reached; no value of a variable is."""
    transport = server.transport
    return {
        "type": transport.type,
        "command": transport.command,
        "args": list(transport.args),
        "url": transport.url or "",
        "env": sorted(server.env),
    }


def definition_of(tool: JsonObject) -> dict[str, Any]:
    """Give what is pinned of a tool: all that a model could be shown of it."""
    return {key: tool[key] for key in _SAID if tool.get(key) is not None}


def flags_of(definition: JsonObject) -> tuple[str, ...]:
    """Name what in a definition reads as an instruction, or cannot be read at all."""
    text = json.dumps(definition, ensure_ascii=False)
    found = [name for name, pattern in _patterns() if pattern.search(text)]
    if any(unicodedata.category(letter) in _HIDDEN for letter in text):
        found.append("hidden characters")
    return tuple(found)


def pending_of(
    pins: Mapping[str, Pin], launch: JsonObject, tools: Iterable[JsonObject]
) -> list[Pending]:
    """Compare what a server is and offers now with what was agreed to.

    What is met first is agreed to as it is - the operator has named the server -
    unless it reads as an instruction: so it is pending, and ``change`` is ``first``.

    Args:
        pins: The server's, by tool.
        launch: How it is reached.
        tools: What it offers.
    """
    waits = []
    known = any(tool != LAUNCH for tool in pins)
    for tool, said in ((LAUNCH, launch), *((str(t["name"]), t) for t in tools)):
        digest, pin = digest_of(said), pins.get(tool)
        if pin is not None and pin.digest == digest:
            continue
        flags = () if tool == LAUNCH else flags_of(said)
        if tool == LAUNCH:
            change = "first" if pin is None else "launch"
        elif pin is not None:
            change = "changed"
        else:
            change = "flagged" if flags else "new" if known else "first"
        before = None if pin is None else pin.definition
        waits.append(Pending(tool, change, digest, said, before, flags))
    return waits


def digest_of_all(pending: Iterable[Pending]) -> str:
    """Give the digest of what waits together, which an approval names."""
    return digest_of({each.tool: each.digest for each in pending})


def name_for(server: str, tool: str, taken: Iterable[str]) -> str:
    """Make a name for agents that no other tool has, ever: ``mcp_<server>_<tool>``."""
    plain = "_".join(("mcp", _clean(server), _clean(tool)))
    if len(plain) <= NAME_LENGTH and plain not in set(taken):
        return plain
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "replace")).hexdigest()
    return f"{plain[: NAME_LENGTH - 13]}_{mark[:12]}"


def _clean(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", text.lower())[:200] or "_"


def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    lines = files(__package__).joinpath("instructions.txt").read_text("utf-8")
    rows = (line.split("\t", 1) for line in lines.splitlines() if line[:1] not in "#")
    return [(name, re.compile(pattern, re.IGNORECASE)) for name, pattern in rows]
