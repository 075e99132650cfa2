"""``agenthost workflow``: the workflows of the running daemon, and files of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

if TYPE_CHECKING:
    from .documents import Document

SHOWN = ("description", "file", "max_cost_usd", "owner", "created_at", "updated_at")


class Api(Protocol):
    """What the command line hands to commands: it asks the running daemon."""

    def get(self, path: str) -> Any:
        """Ask for JSON."""

    def post(self, path: str, body: object = None) -> Any:
        """Send JSON and read the answer's."""

    def put(self, path: str, body: object = None) -> Any:
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
def workflow() -> None:
    """Chain agents in steps: workflows, and files of them."""


@workflow.command("list")
@as_json_option
@click.pass_obj
def list_workflows(here: Here, *, as_json: bool) -> None:
    """List the workflows, oldest first."""
    rows = here.connect().get("/api/workflows")
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        steps = f"{row['steps']} step{'' if row['steps'] == 1 else 's'}"
        file = f"  {row['file']}" if row["file"] else ""
        click.echo(f"{row['name']:<24} {steps:<9} {row['id']}{file}")


@workflow.command()
@click.argument("wanted", metavar="WORKFLOW")
@as_json_option
@click.pass_obj
def show(here: Here, wanted: str, *, as_json: bool) -> None:
    """Show WORKFLOW (a name or an id) with its steps."""
    found = _detail(here.connect(), wanted)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"{found['name']}  {found['id']}")
    for name in SHOWN:
        if found[name] not in {None, ""}:
            click.echo(f"{name}: {_plain(found[name])}")
    for number, step in enumerate(found["steps"]):
        who = step["agent_name"] or step["agent_id"] or "nobody"
        click.echo(f"{number}. {step['name']}: {step['mode']}, asks {who}")
        click.echo(f"   {_plain(step['prompt'])}")


@workflow.command()
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path, readable=True)
)
@as_json_option
@click.pass_obj
def apply(here: Here, file: Path, *, as_json: bool) -> None:
    """Make the workflow of FILE, or replace the one of its name; tell what changed."""
    document = _document(file)
    answer, told = _applied(here.connect(), document)
    click.echo(json.dumps(answer, indent=2) if as_json else told)
    located = (document.located(each) for each in answer["warnings"])
    for line in dict.fromkeys((*document.warnings, *located)):
        click.echo(f"warning: {_plain(line)}", err=True)


@workflow.command()
@click.argument("wanted", metavar="WORKFLOW")
@as_json_option
@click.pass_obj
def delete(here: Here, wanted: str, *, as_json: bool) -> None:
    """Delete WORKFLOW (a name or an id); its runs go on and stay."""
    api = here.connect()
    answer = api.delete(f"/api/workflows/{_one(api, wanted)['id']}")
    told = f"deleted {wanted}  {answer['workflow_id']}"
    click.echo(json.dumps(answer, indent=2) if as_json else told)


@workflow.command()
@click.argument("wanted", metavar="WORKFLOW")
@click.pass_obj
def export(here: Here, wanted: str) -> None:
    """Print WORKFLOW (a name or an id) as the TOML file that makes it."""
    from .export import as_toml

    click.echo(as_toml(_detail(here.connect(), wanted)), nl=False)


@workflow.command()
@as_json_option
@click.pass_obj
def reload(here: Here, *, as_json: bool) -> None:
    """Make and change what the files in the home's folder workflows say."""
    answer = here.connect().post("/api/workflows/reload")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    for word in ("added", "changed"):
        for name in answer[word]:
            click.echo(f"{word} {name}")
    click.echo(f"{len(answer['unchanged'])} unchanged")
    for line in (*answer["problems"], *answer["warnings"]):
        click.echo(f"warning: {_plain(line)}", err=True)


def _document(file: Path) -> Document:
    """Read a file, or a pipe; what is wrong is told with its line."""
    from .documents import Unfit, read_document
    from .folder import LARGEST

    with file.open("rb") as stream:
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise click.ClickException(f"{file.name} is larger than 1 MiB; make it smaller")
    try:
        return read_document(file.name, data)
    except Unfit as error:
        raise click.ClickException("\n".join(error.lines)) from None


def _applied(api: Api, document: Document) -> tuple[dict[str, Any], str]:
    """Make or replace the workflow; give the answer, and what was done in words."""
    name = document.draft.name
    same = [each for each in _all(api) if each["name"] == name]
    if len(same) > 1:
        raise _several(name, same)
    body = {"name": name, **document.known}
    if not same:
        answer = api.post("/api/workflows", body)
        return answer, f"made {name}  {answer['workflow_id']}"
    path = f"/api/workflows/{same[0]['id']}"
    before = api.get(path)
    answer = api.put(path, body)
    changed = ", ".join(_differences(before, api.get(path))) or "nothing"
    return answer, f"replaced {name}  {same[0]['id']}, changed: {changed}"


def _detail(api: Api, wanted: str) -> Any:
    return api.get(f"/api/workflows/{_one(api, wanted)['id']}")


def _all(api: Api) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get("/api/workflows")
    return found


def _one(api: Api, wanted: str) -> dict[str, Any]:
    """Find the row of a workflow by its id or its name."""
    rows = _all(api)
    for row in rows:
        if row["id"] == wanted.lower():
            return row
    named = [row for row in rows if row["name"] == wanted]
    if not named:
        known = ", ".join(sorted({row["name"] for row in rows})) or "none"
        raise click.ClickException(
            f"no workflow is named {wanted!r}; there are: {known}"
        )
    if len(named) > 1:
        raise _several(wanted, named)
    return named[0]


def _several(name: str, rows: list[dict[str, Any]]) -> click.ClickException:
    ids = ", ".join(row["id"] for row in rows)
    return click.ClickException(
        f"{len(rows)} workflows are named {name!r}: {ids}; delete all but one"
    )


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Name the keys that say something else now."""
    for key in ("name", "description", "max_cost_usd"):
        if before[key] != after[key]:
            yield key
    old, new = before["steps"], after["steps"]
    for number, (was, now) in enumerate(zip(old, new, strict=False)):
        yield from (f"steps[{number}].{key}" for key in now if was[key] != now[key])
    if len(old) != len(new):
        yield f"steps: {len(new)} instead of {len(old)}"


def _plain(text: object) -> str:
    """Text for a terminal, which obeys nothing of it."""
    return "".join(c if c.isprintable() else " " for c in str(text))
