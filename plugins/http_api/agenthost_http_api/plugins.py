"""Plugins: what is installed, how it stands, what it offers and can be told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import Any

from agenthost import (
    Answer,
    Call,
    ConfigSection,
    Host,
    LateRoutes,
    ManifestTable,
    Mountable,
    NotFound,
    PluginError,
    RouteGroup,
    Unavailable,
    describe,
    did_you_mean,
)
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from .plugin_shapes import Described, PluginDetail, PluginList, PluginSchema

_PARAMETER = re.compile(r"<[^>]*>")

routes = RouteGroup("http_api.plugins")

NAMELESS = {
    "on_event": "listener",
    "register_observer": "observer",
    "register_command": "command",
}
"""Kinds of what is offered without a name, by hook."""
SCHEMA_SECONDS = 10.0

Models = list[tuple[str, type[BaseModel]]]


@routes.get("/api/plugins", scope="system:read", cost=2, answer=PluginList)
async def list_plugins(call: Call) -> Answer:
    """List every installed plugin: how it stands and what it offers, by name."""
    rows = _rows(call.host)
    return {"plugins": rows, "total": len(rows)}


@routes.get("/api/plugins/<key>/schema", scope="system:read", answer=PluginSchema)
async def plugin_schema(call: Call, key: str) -> Answer:
    """Show the keys of a plugin's configuration and of its tables in manifests.

    Each comes as a JSON Schema; secrets are marked ``writeOnly``, and what they are
    set to is never shown. A plugin that is off has none.
    """
    host = call.host
    known = [state.key for state in host.plugins.states()]
    if key not in known:
        raise NotFound("plugin", key + did_you_mean(key, known))
    try:
        # Models of a plugin may bring code of its own for their schema.
        async with asyncio.timeout(SCHEMA_SECONDS):
            config = await asyncio.to_thread(_described, _sections(host, key))
            manifest = await asyncio.to_thread(_described, _tables(host, key))
    except TimeoutError:
        raise Unavailable(f"{key} took too long to tell its schema") from None
    except Exception as error:
        raise PluginError(f"{key} cannot tell its schema: {describe(error)}") from error
    return {"key": key, "config": config, "manifest": manifest}


def _rows(host: Host) -> list[PluginDetail]:
    nameless = _nameless(host)
    return [
        {
            "key": state.key,
            "distribution": state.distribution,
            "version": state.version,
            "status": state.status.value,
            "reason": state.reason,
            "first_party": state.first_party,
            "offers": _offers(host, state.key, nameless),
            "config_sections": [name for name, _ in _sections(host, state.key)],
            "manifest_tables": [name for name, _ in _tables(host, state.key)],
        }
        for state in host.plugins.states()
    ]


def _nameless(host: Host) -> list[tuple[str, str]]:
    return [
        (key, kind)
        for hook, kind in NAMELESS.items()
        for key, _ in host.plugins.implementations(hook)
    ]


def _offers(
    host: Host, key: str, nameless: Iterable[tuple[str, str]]
) -> dict[str, list[str]]:
    if not host.plugins.healthy(key):
        return {}
    offers: dict[str, list[str]] = {
        kind: [] for owner, kind in nameless if owner == key
    }
    for name in (*host.registry.names_of.get(key, ()), *_late_routes(host, key)):
        kind, _, rest = name.partition(" ")
        offers.setdefault(kind, []).append(rest)
    return offers


def _late_routes(host: Host, key: str) -> Iterator[str]:
    """The routes that were not known yet when names were given."""
    for owner, late in host.registry.offered(Mountable):  # type: ignore[type-abstract]  # reason: three unlike classes are mounted
        if owner == key and isinstance(late, LateRoutes):
            group = late.load()
            names = [f"route {one.method} {one.path}" for one in group.routes]
            names += [f"socket {one.path}" for one in group.sockets]
            yield from (_PARAMETER.sub("<>", name) for name in names)


def _sections(host: Host, key: str) -> Models:
    """The plugin's sections of the configuration."""
    if not host.plugins.healthy(key):
        return []
    offered = host.registry.offered(ConfigSection)
    return [(section.name, section.model) for owner, section in offered if owner == key]


def _tables(host: Host, key: str) -> Models:
    """The plugin's tables of manifests."""
    if not host.plugins.healthy(key):
        return []
    offered = host.registry.offered(ManifestTable)
    return [(table.name, table.model) for owner, table in offered if owner == key]


class _Forgiving(GenerateJsonSchema):
    """Leaves a type open that JSON Schema cannot tell."""

    def handle_invalid_for_json_schema(
        self,
        schema: object,  # noqa: ARG002 - as pydantic calls it
        error_info: str,  # noqa: ARG002
    ) -> dict[str, Any]:
        return {}


def _described(models: Models) -> list[Described]:
    return [
        {"name": name, "schema": model.model_json_schema(schema_generator=_Forgiving)}
        for name, model in models
    ]
