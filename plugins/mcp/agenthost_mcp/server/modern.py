"""Revision 2026-07-28: no session, every request says all, headers repeat the body."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from agenthost import Call, Clock, JsonObject

from . import rpc
from .link import LEVELS, Link
from .methods import INSTRUCTIONS, METHODS, Inquiry, Method, implementation
from .rpc import HEADER_MISMATCH, INVALID_PARAMS, MODERN, RpcError

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
CACHED = frozenset(
    {
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list"),
        *("resources/read", "server/discover"),
    }
)
TTL_MS = 5_000
CHANGES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
CAPABILITIES = {**CHANGES, "completions": {}, "logging": {}}
LISTEN = "subscriptions/listen"
STATE_SECONDS = 3_600.0


async def discover(asked: Inquiry) -> dict[str, Any]:
    """Say what this server can do."""
    told = {"supportedVersions": [MODERN], "capabilities": CAPABILITIES}
    who = implementation(asked.call.host)
    return {**told, "serverInfo": who, "instructions": INSTRUCTIONS}


MODERN_METHODS: Mapping[str, Method] = {**METHODS, "server/discover": discover}


class Signer:
    """Signs what a client hands back, so that it is what it was given.

    The secret lasts as long as the process: a round that a restart cuts begins anew.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._secret = secrets.token_bytes(32)

    def signed(self, state: str, bound: str) -> str:
        """Write a state for a client."""
        ends = self._clock.time() + STATE_SECONDS
        written = json.dumps([ends, state]).encode()
        text = base64.urlsafe_b64encode(written).decode()
        return f"{text}.{self._mark(text, bound)}"

    def read(self, signed: Any, bound: str) -> str:
        """Read a state that came back.

        Raises:
            RpcError: It is not what was given, or too old.
        """
        text, _, mark = str(signed).rpartition(".")
        if not hmac.compare_digest(
            mark.encode("utf-8", "surrogatepass"), self._mark(text, bound).encode()
        ):
            raise RpcError(INVALID_PARAMS, "requestState is not what was given")
        ends, state = json.loads(base64.urlsafe_b64decode(text))
        if self._clock.time() > ends:
            raise RpcError(INVALID_PARAMS, "requestState is too old; begin anew")
        return str(state)

    def _mark(self, text: str, bound: str) -> str:
        said = f"{bound}\n{text}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._secret, said, "sha256").hex()


class ModernLink(Link):
    """A client that is asked by ending its request, and asks again with answers."""

    def __init__(
        self, call: Call, signer: Signer, method: str, params: JsonObject
    ) -> None:
        super().__init__()
        meta = _meta(params)
        self.capabilities = meta[f"{rpc.META}clientCapabilities"]
        level, token = meta.get(f"{rpc.META}logLevel"), meta.get("progressToken")
        self.level = level if level in LEVELS else None
        self.token = token if isinstance(token, str | int) else None
        self._signer = signer
        named = str(params.get(NAMED.get(method, ""), ""))
        who = call.principal
        self._bound = json.dumps([who.kind, who.name, method, named])
        self._answers: Mapping[str, Any] = {}
        if "inputResponses" in params:
            self._answers = _answers(params["inputResponses"])
        if "requestState" in params:
            self.state = signer.read(params["requestState"], self._bound)

    async def _asked(
        self, requests: Mapping[str, JsonObject], state: str
    ) -> Mapping[str, JsonObject]:
        if all(name in self._answers for name in requests):
            return {name: self._answers[name] for name in requests}
        self.needed = {"resultType": "input_required", "inputRequests": dict(requests)}
        if state:
            self.needed["requestState"] = self._signer.signed(state, self._bound)
        told = rpc.RpcError(INVALID_PARAMS, "the client is to ask again with answers")
        raise self._fail(told)


def check(call: Call, message: rpc.Message) -> None:
    """Hold a request against its headers.

    Raises:
        RpcError: It lacks what it must say, or a header says something else.
    """
    params = message.params or {}
    meta = _meta(params)
    version = meta[f"{rpc.META}protocolVersion"]
    _same("MCP-Protocol-Version", call.headers.get("mcp-protocol-version"), version)
    if version != MODERN:
        data = {"supported": [MODERN], "requested": version}
        told = f"the version {version[:64]!r} is not spoken here"
        raise RpcError(rpc.NO_VERSION, told, data=data)
    _same("Mcp-Method", call.headers.get("mcp-method"), message.method)
    if message.method in NAMED:
        name = params.get(NAMED[message.method])
        if isinstance(name, str):
            _same("Mcp-Name", _decoded(call.headers.get("mcp-name")), name)


def check_parameters(
    call: Call, schema: JsonObject, arguments: Mapping[str, Any]
) -> None:
    """Hold a tool's arguments against the headers that its schema asks for.

    Raises:
        RpcError: One says something else, or is not there.
    """
    for name, header in _marked(schema):
        value = arguments.get(name)
        shown = call.headers.get(f"mcp-param-{header.lower()}")
        if value is None and shown is None:
            continue
        written = value if isinstance(value, str) else json.dumps(value)
        _same(f"Mcp-Param-{header}", _decoded(shown), written)


def headers_for(message: rpc.Message, schema: JsonObject) -> dict[str, str]:
    """Write the headers that a request would have, for one that came without any."""
    params = message.params or {}
    headers = {"mcp-method": message.method}
    meta: Any = params.get("_meta")
    if isinstance(meta, Mapping):
        headers["mcp-protocol-version"] = str(meta.get(f"{rpc.META}protocolVersion"))
    named = params.get(NAMED.get(message.method, ""))
    if isinstance(named, str):
        headers["mcp-name"] = _encoded(named)
    arguments: Any = params.get("arguments")
    if not isinstance(arguments, Mapping):
        return headers
    for name, header in _marked(schema):
        if (value := arguments.get(name)) is not None:
            written = value if isinstance(value, str) else json.dumps(value)
            headers[f"mcp-param-{header.lower()}"] = _encoded(written)
    return headers


def completed(asked: Inquiry, method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Write a result as the revision has it."""
    told = {"resultType": "complete", **result}
    if method in CACHED:
        told |= {"ttlMs": TTL_MS, "cacheScope": "private"}
    meta = {f"{rpc.META}serverInfo": implementation(asked.call.host)}
    return {**told, "_meta": meta}


def _meta(params: JsonObject) -> Mapping[str, Any]:
    meta = params.get("_meta")
    if not isinstance(meta, Mapping):
        raise RpcError(INVALID_PARAMS, "params._meta is missing")
    for name, kind in (("protocolVersion", str), ("clientCapabilities", Mapping)):
        if not isinstance(meta.get(f"{rpc.META}{name}"), kind):
            raise RpcError(INVALID_PARAMS, f"_meta lacks {rpc.META}{name}")
    return meta


def _answers(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise RpcError(INVALID_PARAMS, "inputResponses must be an object")
    for name, answer in given.items():
        if not isinstance(answer, Mapping):
            raise RpcError(
                INVALID_PARAMS, f"inputResponses.{name[:64]} must be an object"
            )
    return given


def _same(header: str, shown: str | None, said: str) -> None:
    if shown is None or shown.strip(" \t") != said:
        told = f"the header {header} does not say what the body says"
        raise RpcError(HEADER_MISMATCH, told)


def _decoded(shown: str | None) -> str | None:
    """A header's value; what is no ASCII is written ``=?base64?...?=``."""
    if shown is None:
        return None
    text = shown.strip(" \t")
    if not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    try:
        data = base64.b64decode(text[9:-2], validate=True)
        return data.decode("utf-8", "surrogatepass")
    except ValueError as error:
        raise RpcError(HEADER_MISMATCH, "a header's base64 is broken") from error


def _encoded(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return f"=?base64?{base64.b64encode(data).decode()}?="


def _marked(schema: JsonObject) -> Iterator[tuple[str, str]]:
    properties = schema.get("properties")
    for name, each in properties.items() if isinstance(properties, Mapping) else ():
        header = each.get("x-mcp-header") if isinstance(each, Mapping) else None
        if isinstance(header, str):
            yield name, header
