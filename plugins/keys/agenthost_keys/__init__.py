"""Named keys of the API, each with its scopes, and the people they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from agenthost import (
    Authenticator,
    CommandSpec,
    Host,
    LateRoutes,
    RouteGroup,
    SchemaSpec,
    ServiceSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from sqlalchemy import MetaData


@hookimpl
def register_schema() -> SchemaSpec:
    """Offer the table of keys."""

    def metadata() -> MetaData:
        from .tables import metadata

        return metadata

    return SchemaSpec("keys", metadata)


@hookimpl
def register_authenticator() -> Iterable[Authenticator]:
    """Offer to tell named keys."""
    from .keyring import Keyring

    yield Keyring()


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what reads the keys at the start and lets them expire."""
    from .keyring import keyring_of

    async def start(host: Host) -> None:
        await keyring_of(host).start(host)

    async def stop(host: Host) -> None:
        await keyring_of(host).stop()

    warm_up = partial(import_module, ".tables", __package__)
    yield ServiceSpec("named_keys", start, stop, warm_up)


@hookimpl
def register_routes() -> Iterable[LateRoutes]:
    """Offer ``/api/keys`` and ``/api/persons``."""
    yield LateRoutes("keys.keys", ("/api/keys",), partial(_routes, ".routes"))
    yield LateRoutes("keys.persons", ("/api/persons",), partial(_routes, ".persons"))


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost keys`` and ``agenthost persons``."""
    from .commands import keys
    from .person_commands import persons

    yield CommandSpec(keys)
    yield CommandSpec(persons)


def _routes(module: str) -> RouteGroup:
    routes: RouteGroup = import_module(module, __package__).routes
    return routes
