"""The port TOOLS: what runs the tool calls of a step."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from agenthost_chat.chat import Json, JsonObject, ToolDefinition, ToolUse
from agenthost_values.value_class import value_class

from ..context import Context, Grants
from .records import Outcome

if TYPE_CHECKING:
    from ..manifest_model import Manifest
    from ..turns.events import ToolProgress

BeforeEffect = Callable[[ToolUse], Awaitable[None]]


class Tool(Protocol):
    """A tool that is on offer now."""

    @property
    def effect(self) -> str:
        """What it does to the world: read, write or external."""

    @property
    def definition(self) -> ToolDefinition:
        """The tool as a model sees it."""


@value_class
class Rights:
    """An agent's grants, and the tools they let its model see."""

    grants: Grants
    tools: tuple[ToolDefinition, ...]


class Toolbox(Protocol):
    """Runs tool calls: checked, guarded, in time; a failure is a result as well."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools on offer now, by every name that each goes by."""

    def rights_of(self, agent_id: str, manifest: Manifest) -> Rights:
        """What an agent may do now, and the tools its model is shown, by name."""

    def forget(self, agent_id: str) -> None:
        """Forget a deleted agent's rights."""

    async def checker(self, schema: JsonObject) -> Callable[[Json], str]:
        """Read a JSON Schema; what is given says what of a value does not fit it.

        Raises:
            InvalidInput: It is none, or uses what is not taken.
        """

    def repeatable(self, name: str) -> bool:
        """Tell whether calling the tool twice is the same as once."""

    def run(
        self,
        context: Context,
        calls: Sequence[ToolUse],
        before_effect: BeforeEffect,
        progressed: Callable[[ToolProgress], object],
    ) -> AsyncIterator[Outcome]:
        """Run the calls of a step in order; neighbouring reads run together.

        Args:
            context: For which agent, in which turn.
            calls: What the model asks for.
            before_effect: Awaited before a call that changes something, so that the
                journal knows of it first.
            progressed: Told of a call's progress.
        """
