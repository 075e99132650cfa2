"""JSON-RPC 2.0 as MCP speaks it: messages read within bounds, answers written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from agenthost import AgentHostError, Host, JsonObject
from agenthost_values.value_class import value_class

MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
BATCHING = LEGACY[:2]
"""Later revisions have no batches."""
META = "io.modelcontextprotocol/"

PARSE = -32700
INVALID_REQUEST = -32600
NO_METHOD = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603
HEADER_MISMATCH = -32020
NO_CAPABILITY = -32021
NO_VERSION = -32022

LONGEST_ID = 1_024
LARGEST_ID = 2**63
Id = str | int


class RpcError(Exception):
    """What is answered instead of a result; ``status`` is that of HTTP."""

    def __init__(
        self, code: int, message: str, *, status: int = 400, data: Any = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.status, self.data = code, message, status, data


@value_class
class Message:
    """A request, a notification (no ``id``), or an answer to one of ours (no method).

    ``answer`` is the whole object of an answer.
    """

    method: str = ""
    id: Id | None = None
    params: JsonObject | None = None
    answer: JsonObject | None = None


def read(body: bytes) -> Any:
    """Read JSON.

    Raises:
        RpcError: It is none, or nested beyond measure.
    """
    try:
        return json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RpcError(
            PARSE, "the body is no JSON; send one JSON-RPC object"
        ) from error


def message_of(value: Any) -> Message:
    """Take a JSON value as a message.

    Raises:
        RpcError: It is none; the error's ``data`` is the id, where there is a good one.
    """
    if not isinstance(value, Mapping) or value.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'send an object with "jsonrpc": "2.0"')
    if "method" not in value and ("result" in value or "error" in value):
        return Message(id=_id_of(value.get("id")), answer=value)
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str) or not method:
        raise RpcError(INVALID_REQUEST, "method must be a text")
    number = _id_of(value["id"]) if "id" in value else None
    if not isinstance(params, Mapping):
        raise RpcError(INVALID_PARAMS, "params must be an object")
    return Message(method, number, params)


def id_in(value: Any) -> Id | None:
    """The id of what may be no good message, so that its error can name it."""
    try:
        return _id_of(value.get("id")) if isinstance(value, Mapping) else None
    except RpcError:
        return None


def result_of(number: Id | None, result: JsonObject) -> dict[str, Any]:
    """Write an answer."""
    return {"jsonrpc": "2.0", "id": number, "result": result}


def error_of(number: Id | None, error: RpcError) -> dict[str, Any]:
    """Write an error."""
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        told["data"] = error.data
    return {"jsonrpc": "2.0", "id": number, "error": told}


def notification(method: str, params: JsonObject) -> dict[str, Any]:
    """Write a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def written(_host: Host, error: AgentHostError) -> dict[str, Any]:
    """Write an error that the daemon found before a message was read."""
    code = INTERNAL if error.status >= 500 else INVALID_REQUEST
    data = {"code": error.code, **error.facts}
    return error_of(None, RpcError(code, error.message, data=data))


def _id_of(value: Any) -> Id:
    if isinstance(value, str) and len(value) <= LONGEST_ID:
        return value
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and abs(value) <= LARGEST_ID:
        return int(value)
    raise RpcError(INVALID_REQUEST, "id must be a text or a whole number, and short")


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)
