"""Approvals: people are asked about a call, or money, and a turn waits for it.

A guard's ``Ask`` becomes a row with exactly what was shown. The turn gives its session
and its slot back; once the row is answered, or its deadline has passed, the turn goes
on in its own place, also after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from agenthost import (
    Agent,
    Approvals,
    ApprovalsBackend,
    Backend,
    ChatCommand,
    CommandSpec,
    Host,
    LateRoutes,
    RouteGroup,
    SchemaSpec,
    ServiceSpec,
    ToolContext,
    hookimpl,
)

if TYPE_CHECKING:
    from .desk import Desk


def open_approvals(host: Host) -> Approvals:
    """Serve the approvals of a daemon from its store."""
    from .desk import Desk

    return Desk(host)


@hookimpl
def register_schema() -> SchemaSpec:
    """Offer the table of approvals."""
    from .schema import SCHEMA

    return SCHEMA


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer the approvals of the store."""
    yield ApprovalsBackend("embedded", open_approvals)


@hookimpl
def register_routes() -> Iterable[LateRoutes]:
    """Offer what people answer through."""
    yield LateRoutes("approvals", ("/api/approvals",), _routes)


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost approvals``."""
    from .commands import approvals

    yield CommandSpec(approvals)


@hookimpl
def register_chat_command() -> Iterable[ChatCommand]:
    """Offer ``/approvals``, ``/approve`` and ``/deny``."""
    for name, does, argument in (
        ("approvals", "Show what the agent asks people", ""),
        ("approve", "Say yes to a question", "<id> [name=value ...]"),
        ("deny", "Say no to a question", "<id> [why]"),
    ):
        yield ChatCommand(name, does, partial(_run, name), argument)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what ends overdue questions and goes on with answered turns."""
    warm_up = partial(import_module, ".writes", __package__)
    yield ServiceSpec("approvals", _start, _stop, warm_up)


async def _start(host: Host) -> None:
    if desk := _own(host):
        desk.keeper.start()


async def _stop(host: Host) -> None:
    if desk := _own(host):
        await desk.keeper.stop()


def _own(host: Host) -> Desk | None:
    """Our own desk, unless another backend serves the port."""
    from .desk import Desk

    return host.approvals if isinstance(host.approvals, Desk) else None


def _routes() -> RouteGroup:
    from .routes import routes

    return routes


async def _run(name: str, call: ToolContext, agent: Agent, argument: str) -> str:
    # A start does not wait for what a command imports.
    from .chat import RUNS

    return await RUNS[name](call, agent, argument)
