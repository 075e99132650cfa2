"""``agenthost memory``: the values that agents keep by keys."""

from __future__ import annotations

import json
from typing import Any

import click

from .asking import Api, Here, as_json, segment, sure


@click.group()
def memory() -> None:
    """See and change what agents remember."""


@memory.command("list")
@click.argument("agent")
@as_json
@click.pass_obj
def list_values(here: Here, agent: str, *, as_json: bool) -> None:
    """List what AGENT (a name or an id) keeps."""
    api = here.connect()
    answer = api.get(_path(api, agent))
    if as_json:
        here.json(answer)
        return
    rows = [(pair["key"], _shown(pair["value"])) for pair in answer["kv_pairs"]]
    here.table(("key", "value"), rows)


@memory.command()
@click.argument("agent")
@click.argument("key")
@as_json
@click.pass_obj
def get(here: Here, agent: str, key: str, *, as_json: bool) -> None:
    """Print the value that AGENT keeps under KEY; a text as it is."""
    api = here.connect()
    pair = api.get(_path(api, agent, key))
    here.json(pair) if as_json else click.echo(_shown(pair["value"]))


@memory.command("set")
@click.argument("agent")
@click.argument("key")
@click.argument("value")
@as_json
@click.pass_obj
def set_value(here: Here, agent: str, key: str, value: str, *, as_json: bool) -> None:
    """Keep VALUE under KEY: JSON, or a text as it is; - reads standard input."""
    api = here.connect()
    answer = api.put(_path(api, agent, key), {"value": _read(here.text(value))})
    here.json(answer) if as_json else click.echo(f"stored {key}")


@memory.command()
@click.argument("agent")
@click.argument("key")
@sure
@as_json
@click.pass_obj
def delete(here: Here, agent: str, key: str, *, as_json: bool) -> None:
    """Forget what AGENT keeps under KEY."""
    api = here.connect()
    answer = api.delete(_path(api, agent, key))
    here.json(answer) if as_json else click.echo(f"deleted {key}")


def _path(api: Api, agent: str, key: str | None = None) -> str:
    path = f"/api/memory/agents/{api.agent_id(agent)}/kv"
    return path if key is None else f"{path}/{segment(key)}"


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
