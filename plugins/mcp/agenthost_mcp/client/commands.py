"""``agenthost mcp-server``: the MCP servers, and what waits for approval."""

from __future__ import annotations

import json
from typing import Any, Protocol
from urllib.parse import quote

import click


class Api(Protocol):
    """What the command line hands to commands: it asks the running daemon."""

    def get(self, path: str) -> Any:
        """Ask for JSON."""

    def post(self, path: str, body: object) -> Any:
        """Send JSON and read the answer's."""

    def delete(self, path: str) -> None:
        """Delete what is there."""


class Here(Protocol):
    """What the command line gives to commands."""

    def connect(self) -> Api:
        """Find the running daemon."""


@click.group("mcp-server")
def mcp_server() -> None:
    """See the MCP servers whose tools agents get, and approve changes of them."""


@mcp_server.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print what the API answers.")
@click.pass_obj
def list_servers(here: Here, *, as_json: bool) -> None:
    """List the servers, their state and their tools."""
    answer = here.connect().get("/api/mcp/servers")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    for server in answer["servers"]:
        click.echo("\n".join(_lines(server)))


@mcp_server.command()
@click.argument("name")
@click.argument("url")
@click.option("--sse", is_flag=True, help="It speaks the older HTTP with SSE.")
@click.option("--elicitation", is_flag=True, help="It may have a person asked.")
@click.option("--sampling", is_flag=True, help="It may have the agent's model asked.")
@click.pass_obj
def add(here: Here, /, name: str, url: str, *, sse: bool, **may: bool) -> None:
    """Add the server NAME at the address URL; programs stand in config.toml."""
    kind = "sse" if sse else "http"
    body = {"name": name, "url": url, "type": kind, **may}
    here.connect().post("/api/mcp/servers", body)
    click.echo(f"connecting to {name}; see: agenthost mcp-server list")


@mcp_server.command()
@click.argument("name")
@click.pass_obj
def remove(here: Here, name: str) -> None:
    """Remove the server NAME, if it was added."""
    here.connect().delete(_path(name))
    click.echo(f"removed: {name}")


@mcp_server.command()
@click.argument("name")
@click.pass_obj
def reconnect(here: Here, name: str) -> None:
    """Connect to the server NAME anew."""
    here.connect().post(f"{_path(name)}/reconnect", {})
    click.echo(f"connecting to {name}")


@mcp_server.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def approve(here: Here, name: str, *, yes: bool) -> None:
    """Show what is pending of the server NAME, and agree to it."""
    api = here.connect()
    server = api.get(_path(name))
    if not server["pending"]:
        click.echo(f"nothing of {name} is pending")
        return
    # Escaped, lest what a stranger wrote steers the terminal or hides letters.
    click.echo(json.dumps(server["pending"], indent=2, ensure_ascii=True))
    if not yes:
        click.confirm("Agree to this?", abort=True)
    api.post(f"{_path(name)}/approve", {"digest": server["digest"]})
    click.echo(f"approved: {len(server['pending'])} of {name}")


@mcp_server.command()
@click.argument("name")
@click.pass_obj
def login(here: Here, name: str) -> None:
    """Log the daemon in at the server NAME: print the address to open."""
    started = here.connect().post(f"{_path(name)}/login", {})
    click.echo(f"Open this in a browser on the machine of {started['redirect_uri']}:\n")
    click.echo(started["url"])
    click.echo(f"\nIt is good for ten minutes. Who asks there: {started['issuer']}")


@mcp_server.command()
@click.argument("name")
@click.pass_obj
def logout(here: Here, name: str) -> None:
    """Forget the tokens of the server NAME."""
    here.connect().delete(f"{_path(name)}/login")
    click.echo(f"forgotten: the login at {name}")


def _path(name: str) -> str:
    return f"/api/mcp/servers/{quote(name, safe='')}"


def _lines(server: dict[str, Any]) -> list[str]:
    reason = f": {server['reason']}" if server["reason"] else ""
    lines = [f"{server['name']}  {server['transport']}  {server['state']}{reason}"]
    lines += [f"  {tool['name']}" for tool in server["tools"]]
    for each in server["pending"]:
        flags = f" ({', '.join(each['flags'])})" if each["flags"] else ""
        what = ascii(each["tool"]) if each["tool"] else "how it is reached"
        lines.append(f"  pending: {what} is {each['change']}{flags}")
    if server["pending"]:
        lines.append(f"  see: agenthost mcp-server approve {server['name']}")
    return lines
