"""Approvals: people are asked before a tool call, and a turn waits for their answer.

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
    Approvals,
    ApprovalsBackend,
    Backend,
    ChatCommand,
    CommandSpec,
    Host,
    RouteGroup,
    SchemaSpec,
    ServiceSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from sqlalchemy import MetaData

    from .desk import Desk


def open_approvals(host: Host) -> Approvals:
    """Serve the approvals of a daemon from its store."""
    from .desk import Desk

    return Desk(host)


@hookimpl
def register_schema() -> SchemaSpec:
    """Offer the table of approvals."""
    return SchemaSpec("approvals", _metadata)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer the approvals of the store."""
    yield ApprovalsBackend("embedded", open_approvals)


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer what people answer through."""
    from .routes import routes

    yield routes


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost approvals``."""
    from .commands import approvals

    yield CommandSpec(approvals)


@hookimpl
def register_chat_command() -> Iterable[ChatCommand]:
    """Offer ``/approvals``, ``/approve`` and ``/deny``."""
    from .chat import chat_commands

    yield from chat_commands()


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what ends overdue questions and goes on with answered turns."""
    warm_up = partial(import_module, ".writes", __package__)
    yield ServiceSpec("approvals", _start, _stop, warm_up)


def _metadata() -> MetaData:
    from .tables import metadata

    return metadata


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
