"""``agenthost agent``: agents of the running daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .asking import Here, as_json, rows_of, sure

LISTED = ("name", "state", "model_provider", "model_name", "created_at", "id")
MAKING_SECONDS = 60


@click.group()
def agent() -> None:
    """See, make and end agents."""


@agent.command("list")
@as_json
@click.pass_obj
def list_agents(here: Here, *, as_json: bool) -> None:
    """List the agents."""
    answer = here.connect().get("/api/agents")
    if as_json:
        here.json(answer)
        return
    here.table(("name", "state", "provider", "model", "created", "id"), _rows(answer))


def _rows(answer: list[dict[str, Any]]) -> list[list[Any]]:
    return rows_of(answer, LISTED)


@agent.command()
@click.argument("agent")
@as_json
@click.pass_obj
def show(here: Here, agent: str, *, as_json: bool) -> None:
    """Show AGENT (a name or an id)."""
    api = here.connect()
    found = api.get(f"/api/agents/{api.agent_id(agent)}")
    if as_json:
        here.json(found)
        return
    model, grants = found["model"], found["capabilities"]
    facts = [
        *rows_of([{"field": key, "is": found.get(key)} for key in _SHOWN], _PAIR),
        ["model", f"{model['provider']}/{model['model']}"],
        ["tools", ", ".join(grants["tools"]) or "none"],
        ["network", ", ".join(grants["network"]) or "none"],
        ["tags", ", ".join(found["tags"]) or "none"],
    ]
    here.table(_PAIR, facts)


_PAIR = ("field", "is")
_SHOWN = ("name", "id", "state", "mode", "description", "session_id", "created_at")


@agent.command()
@click.argument("manifest", required=False)
@click.option("--template", help="The template it is made of, instead of MANIFEST.")
@click.option(
    "--name",
    help="Its name beside --template; alone, a minimal agent on the default model.",
)
@as_json
@click.pass_obj
def new(
    here: Here,
    manifest: str | None,
    template: str | None,
    name: str | None,
    *,
    as_json: bool,
) -> None:
    """Make an agent from MANIFEST, a TOML file; - reads standard input."""
    if template is not None and manifest is None:
        wanted = {"template": template} | ({} if name is None else {"name": name})
    elif template is not None:
        raise click.UsageError("give either MANIFEST or --template")
    else:
        wanted = {"manifest_toml": _manifest(here, manifest, name)}
    made = here.connect().post("/api/agents", wanted, timeout=MAKING_SECONDS)
    for warning in made.get("warnings", ()):
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        here.json(made)
    else:
        click.echo(f"made {made['name']}  {made['agent_id']}")


def _manifest(here: Here, manifest: str | None, name: str | None) -> str:
    """Read the manifest, or write that of a name.

    Raises:
        UsageError: Neither is given, or both are, or it cannot be read.
    """
    if (manifest is None) == (name is None):
        raise click.UsageError("give either MANIFEST, --template or --name")
    if name is not None:
        import json

        # A string of JSON is one of TOML too.
        return f"name = {json.dumps(name, ensure_ascii=False)}\n"
    if manifest == "-":
        return here.text("-")
    try:
        return Path(str(manifest)).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{manifest} cannot be read: {error}") from error


@agent.command()
@click.argument("agent")
@sure
@as_json
@click.pass_obj
def kill(here: Here, agent: str, *, as_json: bool) -> None:
    """End AGENT (a name or an id) for good, with its sessions and its memory."""
    api = here.connect()
    answer = api.delete(f"/api/agents/{api.agent_id(agent)}")
    here.json(answer) if as_json else click.echo(f"killed {agent}")


@agent.command()
@click.argument("agent")
@as_json
@click.pass_obj
def stop(here: Here, agent: str, *, as_json: bool) -> None:
    """Stop what AGENT (a name or an id) is doing now."""
    api = here.connect()
    answer = api.post(f"/api/agents/{api.agent_id(agent)}/stop", timeout=60)
    here.json(answer) if as_json else click.echo(answer["message"])
