"""``agenthost schedule``: what is done at times, over the API."""

from __future__ import annotations

import json
from typing import Any, Protocol
from urllib.parse import quote

import click
from agenthost import InvalidInput, timestamp


class Api(Protocol):
    """What the command line hands to commands: it asks the running daemon."""

    def get(self, path: str) -> Any:
        """Ask for JSON."""

    def post(self, path: str, body: object) -> Any:
        """Send JSON and read the answer's."""

    def put(self, path: str, body: object) -> Any:
        """Have something be so and read the answer's JSON."""

    def delete(self, path: str) -> Any:
        """Have something deleted and read the answer's JSON."""


class Here(Protocol):
    """What the command line gives to commands."""

    def connect(self) -> Api:
        """Find the running daemon."""


as_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print what the API answers."
)


@click.group()
def schedule() -> None:
    """Have agents, workflows and events done at times."""


@schedule.command("list")
@as_json_option
@click.pass_obj
def list_schedules(here: Here, *, as_json: bool) -> None:
    """List all schedules, oldest first."""
    answer = here.connect().get("/api/schedules")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    for row in answer["schedules"]:
        click.echo(_line(row))


@schedule.command()
@click.argument("name")
@click.option(
    "--when", required=True, help='"every 30m", "0 9 * * 1-5", or a moment in ISO 8601.'
)
@click.option("--zone", default="UTC", help="IANA zone of a cron expression.")
@click.option("--agent", help="Who is told, by name or id; with --prompt.")
@click.option("--prompt", help="What the agent is told.")
@click.option("--workflow", help="The workflow to run, by name or id.")
@click.option("--input", "given", help="What the workflow is run with.")
@click.option("--event", help="The type of an event to publish.")
@click.option("--data", help="The event's data, a JSON object.")
@click.option(
    "--session", type=click.Choice(["new", "persistent", "rolling", "own"]), help="new"
)
@click.option("--quiet-hours", help="Such as 22:00-07:00.")
@click.option("--allowance", type=float, help="US dollars it may spend in a day.")
@as_json_option
@click.pass_obj
def create(here: Here, /, name: str, *, as_json: bool, **said: Any) -> None:
    """Make the schedule NAME."""
    what = {
        "agent": said["agent"],
        "prompt": said["prompt"],
        "workflow": said["workflow"],
        "input": said["given"],
        "event": said["event"],
        "data": None if said["data"] is None else _object(said["data"]),
    }
    body: dict[str, Any] = {
        "name": name,
        "when": _when(said["when"], said["zone"]),
        "what": _given(what),
        "session": said["session"],
        "quiet_hours": said["quiet_hours"],
        "allowance_usd": said["allowance"],
    }
    answer = here.connect().post("/api/schedules", _given(body))
    click.echo(json.dumps(answer, indent=2) if as_json else _line(answer))


@schedule.command()
@click.argument("wanted", metavar="SCHEDULE")
@click.pass_obj
def show(here: Here, wanted: str) -> None:
    """Show SCHEDULE (a name or an id) as JSON."""
    api = here.connect()
    click.echo(json.dumps(api.get(_path(api, wanted)), indent=2))


@schedule.command()
@click.argument("wanted", metavar="SCHEDULE")
@click.pass_obj
def delete(here: Here, wanted: str) -> None:
    """Delete SCHEDULE (a name or an id)."""
    api = here.connect()
    click.echo(f"deleted {api.delete(_path(api, wanted))['id']}")


@schedule.command()
@click.argument("wanted", metavar="SCHEDULE")
@click.pass_obj
def pause(here: Here, wanted: str) -> None:
    """Have nothing done at the times of SCHEDULE until it is resumed."""
    api = here.connect()
    click.echo(_line(api.put(_path(api, wanted), {"enabled": False})))


@schedule.command()
@click.argument("wanted", metavar="SCHEDULE")
@click.pass_obj
def resume(here: Here, wanted: str) -> None:
    """Go on with SCHEDULE, from its next time on."""
    api = here.connect()
    click.echo(_line(api.put(_path(api, wanted), {"enabled": True})))


@schedule.command()
@click.argument("wanted", metavar="SCHEDULE")
@click.pass_obj
def run(here: Here, wanted: str) -> None:
    """Have SCHEDULE done now, beside its times."""
    api = here.connect()
    click.echo(api.post(f"{_path(api, wanted)}/run", {})["occasion_id"])


@schedule.command()
@click.argument("wanted", metavar="SCHEDULE")
@as_json_option
@click.pass_obj
def occasions(here: Here, wanted: str, *, as_json: bool) -> None:
    """List what became of the times of SCHEDULE, newest first."""
    api = here.connect()
    answer = api.get(f"{_path(api, wanted)}/occasions")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    for row in answer["occasions"]:
        text = _printable(row["detail"] or row["text"])[:100]
        click.echo(f"{row['at']}  {row['state']:<9} ${row['cost_usd']:.4f}  {text}")


@schedule.command("next")
@click.argument("wanted", metavar="SCHEDULE")
@click.option("--count", default=5, type=click.IntRange(1, 100), show_default=True)
@click.pass_obj
def next_times(here: Here, wanted: str, *, count: int) -> None:
    """Tell when SCHEDULE is due next, as clocks in its zone show it."""
    api = here.connect()
    answer = api.get(f"{_path(api, wanted)}/next?count={count}")
    for moment in answer["local"]:
        click.echo(moment)


def _when(text: str, zone: str) -> dict[str, Any]:
    from .spoken import when_of

    try:
        when = when_of(text, zone)
    except InvalidInput as error:
        raise click.BadParameter(error.message, param_hint="--when") from error
    if when.cron:
        return {"cron": when.cron, "zone": zone}
    if when.every:
        return {"every_secs": when.every, "zone": zone}
    return {"at": timestamp(when.at or 0.0), "zone": zone}


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"no JSON: {error}", param_hint="--data") from error


def _given(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}


def _path(api: Api, wanted: str) -> str:
    """Find a schedule by its id, or by the name that it alone has."""
    rows = api.get("/api/schedules")["schedules"]
    ids = [row["id"] for row in rows if wanted in {row["id"], row["name"]}]
    if len(ids) != 1:
        several = f"{len(ids)} schedules are" if ids else "no schedule is"
        raise click.ClickException(
            f"{several} named {wanted!r}; see: agenthost schedule list --json"
        )
    return f"/api/schedules/{quote(ids[0], safe='')}"


def _line(row: dict[str, Any]) -> str:
    when = row["when"]
    said = when.get("cron") or when.get("at") or f"every {when['every_secs']} s"
    state = row["next_at"] or "over"
    if not row["enabled"]:
        state = f"paused: {row['paused'] or 'by a person'}"
    name = _printable(row["name"])
    return f"{row['id'][:8]}  {name:<24} {said:<20} {_printable(state)}"


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "\ufffd" for each in text)
