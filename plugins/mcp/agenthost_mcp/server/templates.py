"""The templates of agents as resources, and what they tell an agent as prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from agenthost import Host, Manifest, Mountable

from .named import Item, NamedSource


class Template(Protocol):
    """A template; without a manifest its file is damaged."""

    @property
    def name(self) -> str:
        """By which an agent is made of it."""

    @property
    def text(self) -> str:
        """The manifest as it is written."""

    @property
    def manifest(self) -> Manifest | None:
        """What stands in it."""


class Catalogue(Protocol):
    """What lists templates."""

    def listed(self) -> Sequence[Template]:
        """Give every template, by name; it reads files."""


@runtime_checkable
class HasTemplates(Protocol):
    """What knows templates, among the routes that plugins offer."""

    def catalogue(self, home: Path) -> Catalogue:
        """Give what lists the templates of a home."""


class Templates(NamedSource):
    """The templates of this daemon that are not damaged, as when last looked at."""

    name = "templates"
    label = "template"
    about = "A template of agents by its name"
    mime_type = "application/toml"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._catalogues: dict[str, Catalogue] = {}
        self._found: dict[str, Item] = {}

    async def refresh(self) -> None:
        """Look at the files, unless no plugin has templates."""
        host = self._host
        for key, group in host.registry.offered(Mountable):  # type: ignore[type-abstract]  # reason: three unlike classes are mounted
            if isinstance(group, HasTemplates) and host.plugins.healthy(key):
                if key not in self._catalogues:
                    self._catalogues[key] = group.catalogue(host.home)
                listed = await asyncio.to_thread(self._catalogues[key].listed)
                self._found = {each.name: each for each in _items(listed)}

    def items(self) -> Iterable[Item]:
        """Every template."""
        return self._found.values()

    def item(self, name: str) -> Item | None:
        """Find a template."""
        return self._found.get(name)


def _items(listed: Iterable[Template]) -> Iterable[Item]:
    for each in listed:
        if each.manifest is not None:
            about, told = each.manifest.description, each.manifest.model.system_prompt
            yield Item(each.name, about, told, each.text.__str__, each.text)
