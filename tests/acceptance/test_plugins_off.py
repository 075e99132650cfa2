"""Every area can be left out: what it served is gone, and nothing opens for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pytest
from agenthost import ConfigError
from agenthost.plugins.discovery import installed_entries
from agenthost.testing.routes import route_groups

if TYPE_CHECKING:
    from agenthost.testing import Daemons, RunningDaemon

KEY = "a-key-of-this-test-0123456789"
LOCKED = f'api_key = "{KEY}"\n'
SHOWN = {"authorization": f"Bearer {KEY}"}
PARAMETER = re.compile(r"<(?:\w+:)?\w+>")
SOME_ID = "4b1d2c3e-0000-4000-8000-00000000beef"
PUBLIC = {("GET", "/"), ("GET", "/api/health"), ("GET", f"/static/{SOME_ID}")}
QUICK = {"orchestration", "keys", "jobs"}
DISPENSABLE = {"approvals", "cluster"}
"""Nobody can be asked, which is an answer; the database is a file, as it is here."""
SETS = "minimal", "api-only"


@cache
def areas() -> tuple[str, ...]:
    entries = installed_entries()
    return tuple(sorted(e.name for e in entries if e.group == "agenthost.plugins"))


@dataclass(frozen=True)
class Served:
    """What a plugin serves of a daemon."""

    routes: frozenset[tuple[str, str]]
    tools: frozenset[str]
    backends: tuple[str, ...]


def served_by(running: RunningDaemon, plugin: str) -> Served:
    named = running.daemon.registry.names_of.get(plugin, ())
    words = [name.split() for name in named]
    routes = {
        (route.method, PARAMETER.sub(SOME_ID, route.path))
        for key, group in route_groups(running)
        if key == plugin
        for route in group.routes
    }
    return Served(
        frozenset(routes),
        frozenset(word[1] for word in words if word[0] == "tool"),
        tuple(word[1] for word in words if word[0] == "backend"),
    )


def routes_of(running: RunningDaemon) -> Iterator[tuple[str, str]]:
    for plugin in running.daemon.registry.names_of:
        yield from served_by(running, plugin).routes


async def nothing_is_open(running: RunningDaemon) -> None:
    """Without a key the page, its files and the health are given, and no more."""
    for method, path in routes_of(running):
        answer = await running.http.request(method, path)
        is_public = (method, path) in PUBLIC
        assert (answer.status_code == 401) is not is_public, f"{method} {path}"


async def is_gone(running: RunningDaemon, served: Served) -> None:
    for method, path in served.routes:
        answer = await running.http.request(method, path, headers=SHOWN)
        assert answer.status_code in {404, 405}, f"{method} {path}: {answer.text}"
        if answer.status_code == 404:
            assert answer.json()["error"] == f"not found: {path}"
    assert not served.tools & running.daemon.toolbox.tools.keys()


def each_area() -> list[object]:
    slow = pytest.mark.conformance
    return [
        pytest.param(area, marks=[] if area in QUICK else [slow]) for area in areas()
    ]


@pytest.mark.parametrize("area", each_area())
async def test_an_area_alone_is_left_out(daemons: Daemons, area: str) -> None:
    plugin = f"plugin:{area}"
    whole = served_by(await daemons.start(config=LOCKED), plugin)
    config = f'{LOCKED}[plugins]\ndisable = ["{plugin}"]\n'
    if whole.backends and area not in DISPENSABLE:
        # What serves a port is left out only where another serves it.
        ports = "|".join(whole.backends)
        with pytest.raises(ConfigError, match=f"no plugin serves the port ({ports})"):
            await daemons.start(config=config)
        return
    running = await daemons.start(config=config)
    await is_gone(running, whole)
    await nothing_is_open(running)


@pytest.mark.parametrize("name", SETS)
async def test_a_set_serves_what_is_in_it_and_nothing_else(
    daemons: Daemons, name: str
) -> None:
    full = await daemons.start(config=LOCKED)
    running = await daemons.start(config=f'{LOCKED}[plugins]\nset = "{name}"\n')
    enabled = {key for key in full.daemon.registry.names_of if key.startswith("plugin")}
    left_out = enabled - running.daemon.registry.names_of.keys()
    for plugin in left_out:
        await is_gone(running, served_by(full, plugin))
    await nothing_is_open(running)
