"""Things with a name and a prompt, as resources and prompts: agents and templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from agenthost import Host, JsonObject, Text
from agenthost_values.value_class import value_class

from .admitting import may_read
from .source import (
    Contents,
    McpSource,
    Prompt,
    PromptArgument,
    PromptMessage,
    Resource,
    Visit,
)


@value_class
class Item:
    """One of them: what it is about, what it tells a model, and how it is shown."""

    name: str
    about: str
    prompt: str
    shown: Callable[[], str]
    revision: str


class NamedSource(McpSource):
    """What is listed by name, for whoever may read agents over the API.

    ``label`` says what they are: they are found as ``<label>://<name>``, and as the
    prompt ``<label>.<name>``.
    """

    label: ClassVar[str]
    about: ClassVar[str]
    mime_type: ClassVar[str]

    def __init__(self, host: Host) -> None:
        self._host = host

    def items(self) -> Iterable[Item]:
        """Everything there is, by name."""
        raise NotImplementedError

    def item(self, name: str) -> Item | None:
        """Find one by its name."""
        raise NotImplementedError

    def resources(self, visit: Visit) -> Iterable[Resource]:
        """Each of them, and the template of their names."""
        if not may_read(visit.principal):
            return
        yield Resource(self._address("{name}"), self.label, self.about, self.mime_type)
        for each in self.items():
            uri = self._address(each.name)
            yield Resource(uri, each.name, each.about, self.mime_type)

    def prompts(self, visit: Visit) -> Iterable[Prompt]:
        """What each tells a model that tells it something."""
        if not may_read(visit.principal):
            return
        task = PromptArgument("task", f"What is to be done in the {self.label}'s way")
        for each in self.items():
            if each.prompt:
                yield Prompt(f"{self.label}.{each.name}", each.about, (task,))

    def revision(self, uri: str) -> str:
        """What changes whenever it does."""
        found = self._named(self._address(""), uri)
        return "" if found is None else found.revision

    async def read(self, visit: Visit, uri: str) -> Sequence[Contents] | None:
        """Show one."""
        await self.refresh()
        found = self._named(self._address(""), uri)
        if found is None or not may_read(visit.principal):
            return None
        return [Contents(uri, self.mime_type, found.shown())]

    async def prompt(
        self, visit: Visit, name: str, arguments: Mapping[str, str]
    ) -> Sequence[PromptMessage] | None:
        """Give what it tells a model, and the task behind it."""
        found = self._named(f"{self.label}.", name)
        if found is None or not found.prompt or not may_read(visit.principal):
            return None
        words = [found.prompt, arguments.get("task", "")]
        return [PromptMessage("user", Text("\n\n".join(filter(None, words))))]

    async def complete(
        self, visit: Visit, reference: JsonObject, argument: str, begun: str
    ) -> Sequence[str] | None:
        """Say which names begin so."""
        mine = reference.get("uri") == self._address("{name}") and argument == "name"
        if not mine or not may_read(visit.principal):
            return None
        return sorted(each.name for each in self.items() if each.name.startswith(begun))

    def _address(self, name: str) -> str:
        return f"{self.label}://{name}"

    def _named(self, prefix: str, name: str) -> Item | None:
        if not name.startswith(prefix):
            return None
        return self.item(name.removeprefix(prefix))
