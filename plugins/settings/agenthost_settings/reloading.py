"""Read ``config.toml`` anew while the daemon runs, and say what came of each key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from agenthost import (
    Answer,
    Call,
    ConfigError,
    Conflict,
    Host,
    NotFound,
    RouteGroup,
    load_config,
)
from agenthost_toml.problems import dotted
from agenthost_toml.settings import Settings as Said
from agenthost_toml.source import SettingsError
from pydantic import BaseModel
from typing_extensions import TypedDict

from .checking import CheckedSettings, path_of
from .claims import overlap, shape_with
from .following import compare, leaves

COST = 10

routes = RouteGroup("settings")


class Reloaded(TypedDict):
    """What came of the keys that say something else than what is in force."""

    in_effect: list[str]
    need_restart: list[str]
    warnings: list[str]


@routes.post("/api/config/reload", scope="system:admin", cost=COST, answer=Reloaded)
async def reload_configuration(call: Call) -> Answer:
    """Read the file anew; say which keys took effect, and which need a restart."""
    return await reload(call.host)


async def reload(host: Host) -> Reloaded:
    """Put in force what can be while the daemon runs; a wrong file changes nothing.

    Raises:
        Conflict: A start would refuse what the file says.
        NotFound: Another backend serves the settings.
    """
    settings = host.settings
    if not isinstance(settings, CheckedSettings):
        raise NotFound(
            "configuration file", "[backends] settings names another backend"
        )
    # One after another: the file that was read last is in force.
    async with settings.reloading:
        try:
            said, values = await asyncio.to_thread(_read, host, settings)
        except (ConfigError, SettingsError) as error:
            refused = f"all stays as it is, a start would refuse:\n{error}"
            raise Conflict(refused) from None
        told = _sorted(settings, said)
        settings.replace(said, values)
        await compare(host, said)
    return told


def _read(
    host: Host, settings: CheckedSettings
) -> tuple[Said, Mapping[type[BaseModel], BaseModel]]:
    said = load_config(host.home, host.environ).said
    shape = shape_with(said.keys.shape, settings.claims, settings.idle)
    said = said.reshaped(shape)
    values, wrong = {}, []
    for name, (_, model) in settings.claims.items():
        try:
            values[model] = said.checked(model, path_of(name))
        except SettingsError as error:
            wrong.append(str(error))
    if wrong:
        raise ConfigError("\n".join(wrong))
    return said, {m: value for m, value in values.items() if is_read_at_use(m)}


def is_read_at_use(model: type[BaseModel]) -> bool:
    """Tell whether a section's plugin reads it each time that it needs it."""
    return bool(getattr(model, "read_at_use", False))


def _sorted(settings: CheckedSettings, said: Said) -> Reloaded:
    changed = [*_changed(settings, said)]
    live = [n for n, (_, model) in settings.claims.items() if is_read_at_use(model)]
    effective = [k for k in changed if any(overlap(name, k) for name in live)]
    return {
        "in_effect": effective,
        "need_restart": [key for key in changed if key not in effective],
        "warnings": [*said.warnings],
    }


def _changed(settings: CheckedSettings, said: Said) -> Iterator[str]:
    """Name the keys that say something else than what is in force."""
    live = [n for n, (_, model) in settings.claims.items() if is_read_at_use(model)]
    started, latest, now = map(_by_key, (settings.said, settings.latest, said))
    for key in sorted({*started, *latest, *now}):
        known = latest if any(overlap(name, key) for name in live) else started
        if known.get(key) != now.get(key):
            yield key


def _by_key(said: Said) -> Mapping[str, Any]:
    return {dotted(path): value for path, value in leaves(said.table)}
