"""Tools whose calls are written down, and guards that a test fills."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace

from agenthost_chat.chat import Json, ToolUse
from pydantic import BaseModel

from ...context import Context
from ...errors import StorageFull
from ...host import ToolContext
from ...plugins.guards import ALLOW, Verdict
from ...plugins.marks import hookimpl
from ...plugins.points import Guard, ToolCallCase, ToolResultCase
from ...plugins.specs import Effect, ToolResult, ToolSpec
from ...ports.records import Outcome
from ...turns.events import ToolProgress
from ..daemons import RunningDaemon
from .stage import PATIENCE, guarding

NAMES = ("keep", "look", "pay", "peek", "put")
LABEL = "of-the-post"


class Sum(BaseModel, extra="forbid"):
    """Arguments of all tools here."""

    amount: int = 0


@dataclass(frozen=True)
class Called:
    """A call as a tool of the workshop gets it."""

    name: str
    amount: int
    context: ToolContext


Work = Callable[[Called], Awaitable[ToolResult]]


class Workshop:
    """Five tools: two read, two change something, one is the same when called twice.

    Attributes:
        full: Whether the journal takes nothing.
        log: What was done, in order.
        told: The progress that was told.
        contexts: What the calls were handed.
        does: What a call does, after it was written down.
        calls: The guard of calls.
        results: The guard of results.
    """

    def __init__(self) -> None:
        self.full = False
        self.log: list[str] = []
        self.told: list[ToolProgress] = []
        self.contexts: list[ToolContext] = []
        self.does: Work = self.answer
        self.calls: Callable[[ToolCallCase], Verdict] = lambda _: ALLOW
        self.results: Callable[[ToolResultCase], Verdict] = lambda _: ALLOW

    @staticmethod
    async def answer(called: Called) -> ToolResult:
        """Tell what was done."""
        return ToolResult(f"{called.name} {called.amount} done")

    def tool(self, name: str, effect: Effect, timeout: float = PATIENCE) -> ToolSpec:
        """Make a tool."""

        async def call(context: ToolContext, sum_: Sum) -> ToolResult:
            self.log.append(f"{name} {sum_.amount}")
            self.contexts.append(context)
            return await self.does(Called(name, sum_.amount, context))

        kept = name == "keep"
        return ToolSpec(
            name,
            f"To {name}.",
            Sum,
            effect,
            call,
            idempotent=kept,
            timeout=timeout,
            aliases=("hold",) if kept else (),
            labels=frozenset({LABEL}) if name == "peek" else frozenset(),
        )

    def plugins(self, timeout: float = PATIENCE) -> tuple[object, ...]:
        """What offers the tools, and what asks the guards."""

        @hookimpl
        def register_tool() -> Iterable[ToolSpec]:
            """Offer the tools."""
            effects = {
                "keep": Effect.WRITE,
                "pay": Effect.EXTERNAL,
                "put": Effect.WRITE,
            }
            for name in reversed(NAMES):
                yield self.tool(name, effects.get(name, Effect.READ), timeout)

        return (
            SimpleNamespace(__name__="workshop", register_tool=register_tool),
            guarding("caution", Guard.TOOL_CALL, self._of_call),
            guarding("reader", Guard.TOOL_RESULT, self._of_result),
        )

    def _of_call(self, case: ToolCallCase) -> Verdict:
        return self.calls(case)

    def _of_result(self, case: ToolResultCase) -> Verdict:
        return self.results(case)

    async def before(self, call: ToolUse) -> None:
        """Write down that an effect is about to begin, unless the store is full."""
        if self.full:
            raise StorageFull("the store takes nothing now")
        self.log.append(f"before {call.name}")

    async def run(
        self, daemon: RunningDaemon, context: Context, *calls: ToolUse
    ) -> list[Outcome]:
        """Run the calls as one step."""
        toolbox = daemon.daemon.toolbox
        running = toolbox.run(context, calls, self.before, self.told.append)
        return [outcome async for outcome in running]


def use(name: str, number: int = 1, **arguments: Json) -> ToolUse:
    """A call of a tool."""
    return ToolUse(f"call_{number}", name, arguments)
