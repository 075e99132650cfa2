"""Write a new plugin from the template that comes with agenthost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from .errors import CommandError

KINDS = ("tool", "provider", "channel", "dialect", "security", "routes")
# In a wheel the template stands beside this module; a checkout has it at its top.
PLACES = ("template", "../../../plugin_template")
_SLUG = re.compile(r"[a-z][a-z0-9_]{0,39}")


def write_plugin(kind: str, name: str, into: Path | None, author: str) -> Path:
    """Render the template.

    Args:
        kind: One of :data:`KINDS`.
        name: Its name for people; the slug is made of it.
        into: The folder to make; one named after the plugin by default.
        author: Who writes it.

    Returns:
        The folder.

    Raises:
        click.UsageError: The name makes no slug, the author is no text that can be
            written, or the folder is not empty.
        CommandError: The folder cannot be written.
    """
    said = answers(kind, name, author)
    folder = into or Path(said["module"].replace("_", "-"))
    try:
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise click.BadParameter(
                f"{folder} is there already and not empty", param_hint="--into"
            )
        for path, text in list(_rendered(said)):
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{folder} cannot be written: {error.strerror}") from error
    return folder


def answers(kind: str, name: str, author: str) -> Mapping[str, str]:
    """Answer the questions of ``copier.yml``, those that it derives included.

    Raises:
        click.UsageError: The name makes no slug, or the author is no plain text.
    """
    slug = re.sub("[ -]", "_", name.lower())
    if not _SLUG.fullmatch(slug):
        raise click.BadParameter(
            "up to 40 letters, digits, spaces, - and _, a letter first, as in "
            "'Roll Dice'",
            param_hint="NAME",
        )
    if not author.isprintable():
        raise click.BadParameter("must be plain text", param_hint="--author")
    own = kind in ("tool", "provider", "channel", "security")
    group = kind if kind == "security" else f"{kind}s" if own else "plugins"
    return {
        "kind": kind,
        "name": name,
        "slug": slug,
        "author": author,
        "module": f"agenthost_{kind}_{slug}",
        "group": group,
        "key": f"{kind if own else 'plugin'}:{slug}",
    }


def _rendered(said: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each file's path and text."""
    import jinja2

    here = Path(__file__).parent
    root = next((here / place for place in PLACES if (here / place).is_dir()), None)
    if root is None:
        raise CommandError("the template is missing; install agenthost again")
    loader = jinja2.FileSystemLoader(root)
    made: Any = jinja2.Environment(  # nosec B701 # noqa: S701 - it writes source text, no HTML
        loader=loader, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    made.filters["to_json"] = json.dumps
    for source in sorted((root / "template").rglob("*")):
        if source.is_file():
            path = source.relative_to(root / "template").as_posix()
            text = source.read_text(encoding="utf-8")
            if path.endswith(".jinja"):
                text = made.from_string(text).render(said)
            target = made.from_string(path.removesuffix(".jinja")).render(said)
            yield target, text
