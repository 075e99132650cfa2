"""``agenthost capability suggest``: the permissions that were needed, and no more."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from . import options
from .findings import CapabilityError, Finding, Json
from .least import Ask, Suggested, Suggestion, suggest
from .options import FILE, opened, unusable, write
from .reading import MAX_TABLE_BYTES, read_bytes
from .terms import LOCAL, PLATFORMS, Caller, Mode, host_platform

FORMS = ("text", "json", "capabilities.json", "capabilities.toml")
SHOWN = 8


@click.command("suggest")
@click.argument("paths", nargs=-1, type=FILE)
@click.option(
    "--recorded",
    required=True,
    type=click.File("rb"),
    help="what GET /api/desktop/decisions answered; - for standard input",
)
@click.option("--format", "form", type=click.Choice(FORMS), default="text")
@options.mode(Mode.LENIENT)
@options.manifests
def suggest_permissions(paths: tuple[Path, ...], **given: Any) -> None:
    """Write the smallest permissions that what was recorded needs.

    PATHS are as for check. The text and json forms also name what nobody asked for, and
    what was asked for in vain; capabilities.json and capabilities.toml are files ready
    for use. Nothing is written to disk.
    """
    project = opened(paths or (Path(),), given["mode"], given["manifests"])
    try:
        content = given["recorded"].read(MAX_TABLE_BYTES + 1)
        recorded = read_bytes(content, given["recorded"].name, MAX_TABLE_BYTES)
        found = suggest(project, read_asks(recorded.value))
    except CapabilityError as error:
        raise unusable(error) from error
    if given["form"] == "text":
        click.echo("\n".join(_lines(found)))
    elif given["form"] == "json":
        write(_report(found))
    else:
        files = [each.written() for each in found.capabilities if each.permissions]
        as_toml = given["form"].endswith("toml")
        text = toml(files) if as_toml else _json({"capabilities": files})
        click.echo(text)
    sys.exit(0)


def read_asks(value: Json) -> list[Ask]:
    """Read what was recorded: an array of decisions, or an object that has it.

    Raises:
        CapabilityError: It is something else.
    """
    rows = value.get("decisions") if isinstance(value, Mapping) else value
    if not isinstance(rows, list):
        problem = "holds no recorded decisions; give it an array of them"
        raise CapabilityError([Finding(problem, file="--recorded")])
    return [_ask(place, row) for place, row in enumerate(rows)]


def _ask(place: int, row: Json) -> Ask:
    usual: dict[str, str | None] = {
        "webview": None,
        "origin": LOCAL,
        "platform": host_platform(),
        "program": "",
    }
    given = {**usual, **row} if isinstance(row, Mapping) else {}
    for key in ("window", "command", "origin", "platform", "program"):
        if not isinstance(given.get(key), str):
            raise _refuse(place, key, "must be text")
    if given["platform"] not in PLATFORMS:
        raise _refuse(place, "platform", f"must be one of {', '.join(PLATFORMS)}")
    if not isinstance(given["webview"], str | None):
        raise _refuse(place, "webview", "must be text or null")
    words: dict[str, Any] = dict(given)
    caller = Caller(words["window"], words["webview"], words["origin"])
    return Ask(caller, words["command"], words["platform"], words["program"])


def _refuse(place: int, key: str, problem: str) -> CapabilityError:
    field = f"decisions[{place}].{key}"
    return CapabilityError([Finding(problem, field=field, file="--recorded")])


def _report(found: Suggestion) -> dict[str, Json]:
    return {
        "capabilities": [each.as_json() for each in found.capabilities],
        "refused": [ask.as_json() for ask in found.refused],
    }


def _lines(found: Suggestion) -> Iterator[str]:
    for each in found.capabilities:
        yield from _of_capability(each)
    for ask in found.refused:
        window, _, origin = ask.caller
        what = f"{ask.command} {ask.program}".rstrip()
        yield f"refused: window {window!r} from {origin} asked for {what}"


def _of_capability(found: Suggested) -> Iterator[str]:
    capability = found.capability
    where = f" ({capability.file})" if capability.file else ""
    yield f"capability {capability.identifier!r}{where}:"
    if not found.judged:
        yield "  stays as it is: it does not count where this was recorded"
        return
    if not found.permissions:
        yield "  nobody asked for anything of it; delete it"
    for permission in found.permissions:
        yield f"  {permission if isinstance(permission, str) else _short(permission)}"
    for name, rest in found.unused.items():
        more = f" and {len(rest) - SHOWN} more" if len(rest) > SHOWN else ""
        yield f"  unused of {name}: {', '.join(rest[:SHOWN])}{more}"


def _short(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json(value: Json) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def toml(capabilities: list[dict[str, Json]]) -> str:
    """Write capabilities as the TOML file that has them."""
    tables = []
    for capability in capabilities:
        fields = dict(capability)
        permissions = fields.pop("permissions")
        lines = [f"{key} = {_toml(value)}" for key, value in fields.items()]
        each = "\n".join(f"  {_toml(item)}," for item in _items(permissions))
        lines.append(f"permissions = [\n{each}\n]")
        tables.append("\n".join(["[[capabilities]]", *lines]))
    return "\n\n".join(tables)


def _toml(value: Json) -> str:
    """Write a value in one line, without what is null, which TOML has not."""
    if isinstance(value, str):
        # The two quote alike, but for this one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        given = {key: inner for key, inner in value.items() if inner is not None}
        pairs = [f"{_toml(key)} = {_toml(inner)}" for key, inner in given.items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, _items(value)))}]"
    return json.dumps(value)


def _items(value: Json) -> list[Json]:
    return (
        [item for item in value if item is not None] if isinstance(value, list) else []
    )
