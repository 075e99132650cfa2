"""What is public is on the list, and what opens by configuration is closed else."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest
from agenthost import Answer, Call, Host, RouteGroup
from agenthost_security import health_redaction

DOOR = "/channels/<channel>/<path:rest>"


def host_with(
    path: str, public: bool | Callable[[Host, str], bool], *, ours: bool = True
) -> Host:
    group = RouteGroup("probe")

    @group.post(path, scope="probe:call", public=public)
    async def probe(_call: Call, **_values: str) -> Answer:
        """Do nothing."""
        return {}

    state = SimpleNamespace(key="plugin:probe", first_party=ours)
    plugins = SimpleNamespace(states=lambda: [state])
    registry = SimpleNamespace(offered=lambda _: [("plugin:probe", group)])
    return cast("Host", SimpleNamespace(plugins=plugins, registry=registry))


def only_one(_host: Host, path: str) -> bool:
    return path.startswith("/channels/slack/")


def anything(_host: Host, _path: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("path", "public", "problem"),
    [
        ("/api/secrets", True, "is public"),
        ("/api/secrets", only_one, "is public"),
        (DOOR, True, "is public"),
        (DOOR, anything, "open to any path"),
    ],
)
def test_what_nobody_decided_about_is_found(
    path: str, public: bool | Callable[[Host, str], bool], problem: str
) -> None:
    with pytest.raises(RuntimeError, match=problem):
        health_redaction._prove_routes(host_with(path, public))
    health_redaction._prove_routes(host_with(path, public, ours=False))


def test_a_door_that_is_closed_to_most_is_right() -> None:
    health_redaction._prove_routes(host_with(DOOR, only_one))
