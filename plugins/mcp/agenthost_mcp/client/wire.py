"""What stands on the wire: revisions, envelopes, errors and headers. Nothing is sent.

Sources: https://modelcontextprotocol.io/specification/2025-11-25 and 2026-07-28.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agenthost import InvalidInput, JsonObject, Unavailable, __version__

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY)
NO_METHOD, BAD_PARAMS, INTERNAL = -32601, -32602, -32603
NO_REVISION = -32022
CLIENT: JsonObject = {"name": "agenthost", "version": __version__}
FRAME_BYTES = 8 * 1024 * 1024
"""The longest message that is read."""
_META = "io.modelcontextprotocol/"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(r"[\x20-\x7e]*")
_CODED = re.compile(r"=\?base64\?.*\?=")
_CARRIED = ("string", "integer", "boolean")
_DEEPEST = 10_000


class Lost(Unavailable):
    """The connection has ended, or never was."""


class RpcError(Exception):
    """The server's own error, as it says it; ``data`` is what goes with it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class LoginWanted(RpcError):
    """It asks for another token, which only a person can bring."""

    def __init__(self, message: str) -> None:
        super().__init__(0, message)


def request(method: str, params: JsonObject, ident: int) -> dict[str, Any]:
    """Write a request."""
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


def notification(method: str, params: JsonObject) -> dict[str, Any]:
    """Write a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancelled(ident: int) -> dict[str, Any]:
    """Write that nobody waits for a request any more."""
    said = {"requestId": ident, "reason": "nobody waits for it any more"}
    return notification("notifications/cancelled", said)


def modern(
    params: JsonObject, capabilities: JsonObject | None = None
) -> dict[str, Any]:
    """Add the envelope that a request of the modern revision carries."""
    meta = params.get("_meta")
    envelope = {
        f"{_META}protocolVersion": MODERN,
        f"{_META}clientInfo": CLIENT,
        f"{_META}clientCapabilities": dict(capabilities or {}),
    }
    own = meta if isinstance(meta, Mapping) else {}
    return {**params, "_meta": {**own, **envelope}}


def read(text: str | bytes) -> list[dict[str, Any]]:
    """Read a message, or a batch of them.

    Raises:
        Lost: It is none.
    """
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Lost("it says what is no JSON") from error
    messages = said if isinstance(said, list) else [said]
    if not all(isinstance(each, dict) for each in messages):
        raise Lost("it says what is no JSON-RPC")
    return messages


def result_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Take the result out of an answer.

    Raises:
        RpcError: It is an error.
        Lost: It is neither.
    """
    error, result = answer.get("error"), answer.get("result")
    if isinstance(error, Mapping):
        code, message = error.get("code"), error.get("message")
        number = code if isinstance(code, int) else 0
        words = " ".join(str(message).split())[:2_000]
        raise RpcError(number, words, error.get("data"))
    if not isinstance(result, dict):
        raise Lost("it answers with neither a result nor an error")
    return result


def headers(method: str, params: JsonObject) -> dict[str, str]:
    """Give the headers that repeat what a modern request says."""
    told = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    name = params.get(_NAMED.get(method, ""))
    if isinstance(name, str):
        told["Mcp-Name"] = coded(name)
    return told


def coded(value: str) -> str:
    """Write a value so that it survives in a header."""
    plain = _PLAIN.fullmatch(value) and value == value.strip()
    if plain and not _CODED.fullmatch(value):
        return value
    data = base64.b64encode(value.encode("utf-8", "replace")).decode()
    return f"=?base64?{data}?="


def carried(schema: JsonObject) -> dict[tuple[str, ...], str]:
    """Find which arguments of a tool a header repeats: the header's name, by path.

    Raises:
        InvalidInput: An ``x-mcp-header`` stands where none may, or is none.
    """
    found: dict[tuple[str, ...], str] = {}
    seen: set[str] = set()
    for path, position in _positions(schema):
        if "x-mcp-header" not in position:
            continue
        token, kind = position["x-mcp-header"], position.get("type")
        if not path or not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise InvalidInput(
                "x-mcp-header", "it is misplaced, or no name of a header"
            )
        if kind not in _CARRIED or token.lower() in seen:
            raise InvalidInput("x-mcp-header", "it is of a wrong type, or there twice")
        seen.add(token.lower())
        found[path] = token
    return found


def repeated(where: Mapping[tuple[str, ...], str], call: JsonObject) -> dict[str, str]:
    """Give the headers that repeat a call's arguments."""
    told = {}
    for path, token in where.items():
        value: Any = call
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, str | int | float):
            told[f"Mcp-Param-{token}"] = coded(str(value))
    return told


def _positions(
    schema: JsonObject,
) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Every object in a schema, with its path where only properties lead to it."""
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    for _ in range(_DEEPEST):
        if not waiting:
            return
        path, node = waiting.pop()
        if isinstance(node, list):
            waiting += [(None, each) for each in node]
        if not isinstance(node, Mapping):
            continue
        yield path, node
        for key, inner in node.items():
            if key == "properties" and isinstance(inner, Mapping):
                below = [
                    (name, None if path is None else (*path, name)) for name in inner
                ]
                waiting += [(where, inner[name]) for name, where in below]
            elif key not in ("default", "examples", "const", "enum"):
                waiting.append((None, inner))
    raise InvalidInput("inputSchema", "it is too large")
