"""Observers: told when turns, model calls and tool calls begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agenthost_chat.chat import ChatRequest, Completion, Message, ToolOutput, ToolUse

from .ports.events import Events

if TYPE_CHECKING:
    from .authorization import Refused
    from .context import Context
    from .host import Host
    from .plugins.guards import Verdict
    from .ports.models import Answered, Attempt, Target
    from .ports.records import Records, TurnResult
    from .ports.usage import Spent

T = TypeVar("T")
Subject = Message | ChatRequest | ToolUse


@dataclass(slots=True, eq=False)
class Activity:
    """A turn, a model call or a tool call, as its ``subject`` tells.

    ``parent`` is the id of what caused it, None at the root; ``context`` names the
    agent and its caller. What follows ``target`` is known at the end: ``spent`` names
    the model that answered, ``failed`` those that did not, ``answered`` has the moments
    of an answer. Subject, result and an error's message are content: not to be kept
    unless the operator asks for it.
    """

    id: str
    parent: str | None
    host: Host
    context: Context
    subject: Subject
    target: Target | None = None
    seconds: float = 0.0
    spent: Spent | None = None
    answered: Answered | None = None
    failed: Sequence[Attempt] = ()
    result: TurnResult | Completion | ToolOutput | None = None
    error: BaseException | None = None


class Observer:
    """What is told; it runs on the event loop, so it only notes and returns."""

    def started(self, activity: Activity) -> None:
        """Hear that it begins."""

    def ended(self, activity: Activity) -> None:
        """Hear how it ended."""

    def judged(self, point: str, case: Any, verdict: Verdict, system: str) -> None:
        """Hear what the guards of a point said of a case, where there are any.

        Args:
            point: The name of the point.
            case: What they were asked.
            verdict: What came out: the last that was not Allow, else Allow.
            system: Whose verdict it is; empty for Allow, and where a point is closed.
        """

    def refused(self, error: Refused) -> None:
        """Hear that a principal had no right to act on a resource."""


class Observers(Protocol):
    """The observers of a daemon; one that raises is dropped and its plugin failed."""

    def find(self, kind: type[T]) -> T | None:
        """Find the observer of a class; None when there is none or it was dropped."""

    def watch(
        self,
        context: Context,
        subject: Subject,
        target: Target | None = None,
        failed: Sequence[Attempt] = (),
    ) -> AbstractContextManager[Activity | None]:
        """Tell of what the block does; None where nobody observes."""


class Bus(Events, Protocol):
    """What a backend opens: the events, and the observers of turns."""

    @property
    def observers(self) -> Observers:
        """The plugins' observers, told of turns, model calls and tool calls."""

    def told(self, records: Records) -> Records:
        """The same records; what turns and memories write is events, too."""
