"""Which tools there are at a moment: made anew when a source changes, never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agenthost import Grants, Manifest, ToolDefinition
from agenthost_values.value_class import value_class

from .ready import ReadyTool


@value_class
class Offer:
    """The tools of one owner, and why those are gone that it had."""

    owner: str
    tools: tuple[ReadyTool, ...]
    gone: Mapping[str, str]


class Table:
    """The tools of all owners; whoever is earlier keeps a name that two want.

    Args:
        offers: What each owner has.

    Attributes:
        tools: The tools by every name that each goes by.
        left_out: What is not in it, and why, as lines for the log.
    """

    def __init__(self, offers: Iterable[Offer] = ()) -> None:
        self.tools: dict[str, ReadyTool] = {}
        self.left_out: list[str] = []
        self._gone: dict[str, str] = {}
        owners: dict[str, str] = {}
        for offer in offers:
            self._gone.update(offer.gone)
            for tool in offer.tools:
                taken = next((n for n in tool.spec.names if n in owners), None)
                if taken is None:
                    owners |= dict.fromkeys(tool.spec.names, offer.owner)
                    self.tools |= dict.fromkeys(tool.spec.names, tool)
                    continue
                name, other = tool.spec.name, owners[taken]
                line = f"tool {name} of {offer.owner} is left out: {other} has {taken}"
                self.left_out.append(line)

    def gone(self, name: str) -> str | None:
        """Why a tool that once was there is not; None when it is, or never was."""
        return None if name in self.tools else self._gone.get(name)

    def granted(self, grants: Grants, manifest: Manifest) -> tuple[ToolDefinition, ...]:
        """The tools, by name, that the grants allow under their name or an alias.

        Of these only what is offered to an agent of this manifest.
        """
        return tuple(
            tool.definition
            for name, tool in sorted(self.tools.items())
            if name == tool.spec.name
            and any(grants.allow("tool", each) for each in tool.spec.names)
            and tool.offered_to(manifest)
            and tool.whole
        )
