"""Who acts, and on whose behalf: handed explicitly to everything with an effect."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from agenthost_values.value_class import value_class

from .errors import QuotaExceeded

if TYPE_CHECKING:
    from .events import Caused
    from .manifest_model import Manifest


class PrincipalKind(StrEnum):
    """The kinds of actor that are always there; plugins name others."""

    OPERATOR = "operator"
    API_KEY = "api_key"
    LOOPBACK = "loopback"
    AGENT = "agent"
    PLUGIN = "plugin"
    ANONYMOUS = "anonymous"


@value_class
class Grants:
    """Rights by action: glob patterns of the resources an action may touch.

    ``Grants({"tool": ("file_*",), "memory_read": ("*",)})``; an action that is not
    named is refused.
    """

    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def allow(self, action: str, resource: str) -> bool:
        """Tell whether one of the action's patterns matches the resource."""
        return any(
            fnmatchcase(resource, pattern) for pattern in self.patterns.get(action, ())
        )


@value_class
class Principal:
    """Who acts. ``grants`` None means every right (operator, key, loopback).

    ``kind`` is a :class:`PrincipalKind` or the word of whoever named it; ``person`` is
    the id of the person behind it, "" when none is known; ``allowance`` the units it
    may use in a minute, where it has a limit of its own.
    """

    kind: str
    name: str
    grants: Grants | None = None
    person: str = ""
    allowance: int | None = None


UNTRUSTED = frozenset({"untrusted"})
"""The label of what strangers may have written."""
OPERATOR = Principal(PrincipalKind.OPERATOR, "operator")
LOG_FIELDS: ContextVar[Mapping[str, Any]] = ContextVar("log_fields")
"""The ids that log lines of the work at hand carry; they decide nothing."""


@value_class
class AgentView:
    """The agent a turn runs for: what tools and guards may know of it.

    ``parent`` is the id of the agent that has spawned it, if one has.
    """

    id: str
    name: str
    manifest: Manifest
    session_id: str
    parent: str = ""


@value_class
class Expense:
    """What a person may be asked to let a pool spend beyond its limit; in micro-USD.

    Args:
        purse: The name of what it is spent from, the same after every start; a part of
            it stands behind a ``/``.
        purpose: Who spends it and on what, in words.
        limit: What may be spent without asking.
        more: How much more is asked for at a time.
        deadline_seconds: How long a person has; no answer in time is a no.
    """

    purse: str
    purpose: str
    limit: int
    more: int
    deadline_seconds: float


@dataclass(slots=True)
class Pool:
    """What a tree of calls may spend together, in micro-USD.

    With the limit that it has where none is given it only counts. Where ``asks`` says
    of what, a turn that finds it used up has a person asked.
    """

    limit: int = 2**53
    used: int = 0
    held: int = 0
    asks: Expense | None = None


class PoolSpent(QuotaExceeded):
    """A pool has no room for the call."""

    def __init__(self, message: str, pool: Pool) -> None:
        super().__init__(message)
        self.pool = pool


@value_class
class Context:
    """One chain of causes: the principal, the agent and turn, and who called whom.

    ``chain`` holds the session ids of the calling turns, oldest first; ``pools`` the
    spending limits of all of them. ``caller`` is who started the turn and ``cause`` the
    observed activity it came from. ``log_fields`` go into log lines and traces; none of
    these three decides anything. ``labels`` tell where what it knows came from, such as
    ``untrusted``; they only grow. ``found`` is the ``TurnState`` in which a turn was
    found that brings its open calls again: people may have been asked about them.
    ``depth`` says how many events led here, each by what the one before set off.
    """

    principal: Principal
    agent: AgentView | None = None
    turn_id: str | None = None
    chain: tuple[str, ...] = ()
    caller: Principal | None = None
    cause: str | None = None
    pools: tuple[Pool, ...] = ()
    log_fields: Mapping[str, Any] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()
    found: str = ""
    depth: int = 0

    @property
    def caused(self) -> Caused:
        """What an event says of who caused it, when it was caused from here."""
        source = "" if self.agent is None else self.agent.id
        return {"by": self.owner, "source": source, "depth": self.depth}

    @property
    def owner(self) -> str:
        """Who caused it (``kind:name``): the caller of a turn, else the principal."""
        who = self.caller or self.principal
        return f"{who.kind}:{who.name}"

    def labelled(self, *labels: frozenset[str]) -> Context:
        """The same context with these labels too; itself where it has them all."""
        joined = self.labels.union(*labels)
        return self if joined == self.labels else replace(self, labels=joined)

    def for_agent(self, agent: AgentView, principal: Principal, turn: str) -> Context:
        """The context of a turn of this agent, called from here."""
        return replace(
            self,
            agent=agent,
            principal=principal,
            turn_id=turn,
            chain=(*self.chain, agent.session_id),
            caller=self.principal,
            found="",
        )

    def moved(self, session_id: str) -> Context:
        """The context of the same work in another session of its agent."""
        assert self.agent is not None  # noqa: S101 - work always has an agent
        agent = replace(self.agent, session_id=session_id)
        return replace(self, agent=agent, chain=(*self.chain[:-1], session_id))
