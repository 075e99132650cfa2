"""``agenthost session``: conversations of the running daemon."""

from __future__ import annotations

from urllib.parse import urlencode

import click

from .asking import Here, as_json, rows_of, segment, sure

LISTED = ("agent_name", "title", "message_count", "archived", "updated_at", "id")
COMPACTING_SECONDS = 600


@click.group()
def session() -> None:
    """See, clear, shorten and delete conversations."""


@session.command("list")
@click.option("--agent", help="Only this one's: a name or an id.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True)
@as_json
@click.pass_obj
def list_sessions(here: Here, agent: str | None, limit: int, *, as_json: bool) -> None:
    """List conversations, the one spoken in last first."""
    api = here.connect()
    query: dict[str, object] = {"order": "newest", "limit": limit}
    if agent is not None:
        query["agent"] = api.agent_id(agent)
    answer = api.get(f"/api/sessions?{urlencode(query)}")
    if as_json:
        here.json(answer)
        return
    heads = ("agent", "title", "messages", "archived", "updated", "id")
    here.table(heads, rows_of(answer["sessions"], LISTED))


@session.command()
@click.argument("session_id", metavar="SESSION")
@as_json
@click.pass_obj
def show(here: Here, session_id: str, *, as_json: bool) -> None:
    """Show what was said in SESSION (an id)."""
    found = here.connect().get(f"/api/sessions/{segment(session_id)}")
    if as_json:
        here.json(found)
        return
    for message in found["messages"]:
        number = f"#{message['id']} " if "id" in message else ""
        pinned = " (pinned)" if message.get("pinned") else ""
        said = _plain(message["content"])
        click.echo(f"{number}{message['role']}{pinned}: {said}")


def _plain(text: str) -> str:
    # What somebody else wrote commands no terminal.
    return "".join(each for each in text if each.isprintable() or each in "\n\t")


@session.command()
@click.argument("agent")
@sure
@as_json
@click.pass_obj
def reset(here: Here, agent: str, *, as_json: bool) -> None:
    """Clear the conversation of AGENT (a name or an id)."""
    api = here.connect()
    path = f"/api/agents/{api.agent_id(agent)}/session/reset"
    answer = api.post(path, timeout=60)
    here.json(answer) if as_json else click.echo(f"reset {answer['new_session_id']}")


@session.command()
@click.argument("agent")
@as_json
@click.pass_obj
def compact(here: Here, agent: str, *, as_json: bool) -> None:
    """Let a summary stand for the older messages of AGENT (a name or an id)."""
    api = here.connect()
    path = f"/api/agents/{api.agent_id(agent)}/session/compact"
    answer = api.post(path, timeout=COMPACTING_SECONDS)
    here.json(answer) if as_json else click.echo(answer["message"])


@session.command()
@click.argument("agent")
@as_json
@click.pass_obj
def undo(here: Here, agent: str, *, as_json: bool) -> None:
    """Take the latest summary of AGENT (a name or an id) back."""
    api = here.connect()
    path = f"/api/agents/{api.agent_id(agent)}/session/compact/undo"
    answer = api.post(path, timeout=COMPACTING_SECONDS)
    here.json(answer) if as_json else click.echo(answer["message"])


@session.command()
@click.argument("session_id", metavar="SESSION")
@click.argument("message", type=click.IntRange(0))
@click.option("--off", is_flag=True, help="Keep it whole no longer.")
@as_json
@click.pass_obj
def pin(here: Here, session_id: str, message: int, *, off: bool, as_json: bool) -> None:
    """Keep MESSAGE (its number) of SESSION (an id) whole when that is summarised."""
    path = f"/api/sessions/{segment(session_id)}/pins/{message}"
    api = here.connect()
    answer = api.delete(path) if off else api.put(path)
    if as_json:
        here.json(answer)
        return
    click.echo(f"pinned: {' '.join(map(str, answer['pinned'])) or 'nothing'}")


@session.command()
@click.argument("session_id", metavar="SESSION")
@sure
@as_json
@click.pass_obj
def delete(here: Here, session_id: str, *, as_json: bool) -> None:
    """Delete SESSION (an id) with all that was said in it."""
    answer = here.connect().delete(f"/api/sessions/{segment(session_id)}")
    here.json(answer) if as_json else click.echo(f"deleted {session_id}")
