"""The methods that every form of ``/mcp`` has, as functions of one inquiry."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from agenthost import Call, Host, JsonObject
from agenthost_values.value_class import value_class

from .link import Link
from .rpc import INVALID_PARAMS, RpcError
from .source import Prompt, Resource, Visit
from .stock import Stock
from .tools import Tools

if TYPE_CHECKING:
    from .modern import Signer
    from .sessions import Sessions

PAGE = 250
TITLE = "agenthost"
INSTRUCTIONS = (
    "Tools of an agenthost daemon. Files and memory are a workspace of your own; its "
    "agents are listed as resources."
)


@value_class
class Server:
    """What one daemon keeps for ``/mcp``."""

    tools: Tools
    stock: Stock
    sessions: Sessions
    signer: Signer


@value_class
class Inquiry:
    """One request: who asks what of which server, in which revision's words."""

    call: Call
    server: Server
    link: Link
    params: JsonObject
    version: str

    @property
    def visit(self) -> Visit:
        """The request as sources see it."""
        return Visit(self.call.host, self.call.principal, self.link)

    def text(self, name: str) -> str:
        """A parameter that must be a text.

        Raises:
            RpcError: It is none.
        """
        value = self.params.get(name)
        if not isinstance(value, str):
            raise RpcError(INVALID_PARAMS, f"{name} must be a text")
        return value

    def table(self, name: str) -> JsonObject:
        """A parameter that is an object, or is not there.

        Raises:
            RpcError: It is something else.
        """
        value = self.params.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise RpcError(INVALID_PARAMS, f"{name} must be an object")
        return value


Method = Callable[[Inquiry], Awaitable[dict[str, Any]]]


async def ping(_: Inquiry) -> dict[str, Any]:
    """Say nothing, promptly."""
    return {}


async def list_tools(asked: Inquiry) -> dict[str, Any]:
    """List the tools that may be called, by name."""
    shown = asked.server.tools.shown(asked.call.host)
    rows = shown.listed(asked.call.principal, asked.version)
    return _page(asked, "tools", "name", rows)


async def call_tool(asked: Inquiry) -> dict[str, Any]:
    """Call a tool."""
    tools = asked.server.tools
    return await tools.call(asked.call, asked.link, asked.params, asked.version)


async def list_resources(asked: Inquiry) -> dict[str, Any]:
    """List what can be read as it stands."""
    await asked.server.stock.refresh()
    found = asked.server.stock.resources(asked.visit)
    rows = [_resource(each, "uri") for uri, each in found.items() if "{" not in uri]
    return _page(asked, "resources", "uri", rows)


async def list_templates(asked: Inquiry) -> dict[str, Any]:
    """List what can be read once it is filled in."""
    await asked.server.stock.refresh()
    found = asked.server.stock.resources(asked.visit)
    key = "uriTemplate"
    rows = [_resource(each, key) for uri, each in found.items() if "{" in uri]
    return _page(asked, "resourceTemplates", key, rows)


async def read_resource(asked: Inquiry) -> dict[str, Any]:
    """Read a resource."""
    return await asked.server.stock.read(asked.visit, asked.text("uri"))


async def list_prompts(asked: Inquiry) -> dict[str, Any]:
    """List the prompts."""
    await asked.server.stock.refresh()
    found = asked.server.stock.prompts(asked.visit)
    return _page(asked, "prompts", "name", [*map(_prompt, found.values())])


async def get_prompt(asked: Inquiry) -> dict[str, Any]:
    """Fill in a prompt."""
    name, arguments = asked.text("name"), asked.table("arguments")
    return await asked.server.stock.prompt(asked.visit, name, arguments)


async def complete(asked: Inquiry) -> dict[str, Any]:
    """Name values that an argument may have."""
    argument = asked.table("argument")
    name, begun = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(begun, str):
        raise RpcError(INVALID_PARAMS, "argument must have a name and a value")
    ref = asked.table("ref")
    return await asked.server.stock.complete(asked.visit, ref, name, begun)


METHODS: Mapping[str, Method] = {
    "tools/list": list_tools,
    "tools/call": call_tool,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "completion/complete": complete,
}


def implementation(host: Host) -> dict[str, str]:
    """Who serves."""
    return {"name": "agenthost", "title": TITLE, "version": host.version}


def _page(
    asked: Inquiry, field: str, key: str, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    """Cut a list that is in order of ``key``; a page begins behind the cursor."""
    cursor = asked.params.get("cursor")
    if cursor is not None:
        behind = _read_cursor(cursor)
        rows = [row for row in rows if row[key] > behind]
    page = rows[:PAGE]
    if len(rows) <= PAGE:
        return {field: page}
    last = base64.urlsafe_b64encode(page[-1][key].encode()).decode()
    return {field: page, "nextCursor": last}


def _read_cursor(cursor: Any) -> str:
    try:
        return base64.b64decode(cursor, b"-_", validate=True).decode()
    except (ValueError, TypeError) as error:
        told = "cursor is none that this server has given"
        raise RpcError(INVALID_PARAMS, told) from error


def _resource(each: Resource, key: str) -> dict[str, Any]:
    told = {key: each.uri, "name": each.name, "description": each.description}
    return {**told, "mimeType": each.mime_type}


def _prompt(each: Prompt) -> dict[str, Any]:
    arguments = [
        {"name": a.name, "description": a.description, "required": a.required}
        for a in each.arguments
    ]
    told = {"name": each.name, "description": each.description}
    return {**told, "arguments": arguments}
