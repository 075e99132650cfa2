"""How a plugin offers MCP resources and prompts: a tool source that has them.

``register_tool_source`` takes it, and with it the tools that it may have::

    class Notes(McpSource):
        name = "notes"

        def resources(self) -> Iterable[Resource]:
            yield Resource("notes://today", "today", "What was noted today.")

        async def read(self, visit: Visit, uri: str) -> Sequence[Contents] | None:
            return [Contents(uri, text=today())] if uri == "notes://today" else None

    @hookimpl
    def register_tool_source() -> Iterable[ToolSource]:
        yield Notes()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agenthost import Host, JsonObject, Medium, Principal, Text, ToolSource
from agenthost_values.value_class import value_class

from .link import Link


@value_class
class Visit:
    """A request for a resource or a prompt: the daemon, who asks, and its client."""

    host: Host
    principal: Principal
    link: Link


@value_class
class Resource:
    """Something to read; with ``{}`` in its ``uri`` it is a template of many."""

    uri: str
    name: str
    description: str = ""
    mime_type: str = "text/plain"


@value_class
class Contents:
    """What a resource says: words, or base64 in ``blob``."""

    uri: str
    mime_type: str = "text/plain"
    text: str | None = None
    blob: str = ""


@value_class
class PromptArgument:
    """What a prompt is filled in with."""

    name: str
    description: str = ""
    required: bool = False


@value_class
class Prompt:
    """A conversation's beginning."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


@value_class
class PromptMessage:
    """A message of a prompt; ``role`` is ``user`` or ``assistant``."""

    role: str
    part: Text | Medium


class McpSource(ToolSource):
    """Resources and prompts, beside the tools of a source.

    What lists them is called on the event loop, several times a second while a client
    listens: it only looks at what ``refresh`` has found out. What reads them has 30 s.
    ``None`` means: not mine.
    """

    async def refresh(self) -> None:
        """Find out what can be listed now; awaited each time before it is."""

    def resources(self, visit: Visit) -> Iterable[Resource]:  # noqa: ARG002
        """The resources on offer to who asks, templates too."""
        return ()

    def prompts(self, visit: Visit) -> Iterable[Prompt]:  # noqa: ARG002
        """The prompts on offer to who asks."""
        return ()

    def revision(self, uri: str) -> str:  # noqa: ARG002
        """What changes whenever a resource does; it is told to who has subscribed."""
        return ""

    async def read(self, visit: Visit, uri: str) -> Sequence[Contents] | None:  # noqa: ARG002
        """Read a resource."""
        return None

    async def prompt(
        self,
        visit: Visit,  # noqa: ARG002
        name: str,  # noqa: ARG002
        arguments: Mapping[str, str],  # noqa: ARG002
    ) -> Sequence[PromptMessage] | None:
        """Fill in a prompt; what it requires is there."""
        return None

    async def complete(
        self,
        visit: Visit,  # noqa: ARG002
        reference: JsonObject,  # noqa: ARG002
        argument: str,  # noqa: ARG002
        begun: str,  # noqa: ARG002
    ) -> Sequence[str] | None:
        """Name values that an argument may have, of those that begin so."""
        return None
