"""Tell when the configuration is another than at the last start."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from agenthost import AgentHostError, Host, telling
from agenthost_toml.parse import KeyPath
from agenthost_toml.problems import dotted, unknown_keys
from agenthost_toml.settings import Settings as Said

from .checking import CheckedSettings, secret_paths

SET = "set"
"""All that is kept of what may be a secret."""
AFTER = 1.0
"""The first answers need not wait for it."""
_SAID = "SELECT said FROM configurations WHERE node = :node"

_log = logging.getLogger(__name__)


class Following:
    """Compares soon after a start, or else before its end: none goes by untold."""

    def __init__(self) -> None:
        self._soon: asyncio.Task[None] | None = None
        self._told = False

    async def start(self, host: Host) -> None:
        """Compare soon."""
        self._soon = asyncio.create_task(self._compare_soon(host))

    async def stop(self, host: Host) -> None:
        """Compare, if that has not been done."""
        if self._soon is not None:
            self._soon.cancel()
            await asyncio.gather(self._soon, return_exceptions=True)
        if not self._told:
            await self._compare(host)

    async def _compare_soon(self, host: Host) -> None:
        await asyncio.sleep(AFTER)
        await self._compare(host)

    async def _compare(self, host: Host) -> None:
        self._told = True
        try:
            if isinstance(host.settings, CheckedSettings):
                await compare(host, host.settings.latest)
        except AgentHostError as error:
            # The next start compares with what stands there still.
            _log.warning("the configuration is not compared: %s", error.message)


async def compare(host: Host, said: Said) -> None:
    """Keep what is said, and tell which keys say something else than before.

    Raises:
        AgentHostError: It cannot be recorded.
    """
    node = host.config.node
    row = await host.store.first(_SAID, {"node": node})
    now = digests(said)
    before = json.loads(row["said"]) if row else None
    if before == now:
        return
    from .events import ConfigurationChanged
    from .tables import keep_said

    keeping = partial(keep_said, node=node, said=now)
    if before is None:
        await host.store.write(partial(keeping, also=None))
        return
    changed = sorted(k for k in {*before, *now} if before.get(k) != now.get(k))
    told = node, host.clock.time(), changed
    with telling(host.events, ConfigurationChanged, *told) as keep:
        await host.store.write(partial(keeping, also=keep))


def digests(said: Said) -> dict[str, str]:
    """Give of each key that is said a digest of its value, and of no secret."""
    shape = said.keys.shape
    # Of what is said alone: to look through every section takes long.
    told = {name: shape[name] for name in said.table if name in shape}
    hidden = {*secret_paths(told)}
    hidden |= {each.path for each in unknown_keys(shape, said.table)}
    return {
        dotted(path): SET if _below(path, hidden) else _digest(value)
        for path, value in leaves(said.table)
    }


def leaves(value: Any, at: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Give all that is said, each value with its place."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, (*at, name))
    else:
        yield at, value


def _below(path: KeyPath, places: set[KeyPath]) -> bool:
    return any(path[:end] in places for end in range(1, len(path) + 1))


def _digest(value: object) -> str:
    return sha256(json.dumps(value, default=str).encode()).hexdigest()
