"""The front as a daemon gets it: chosen by port, set up by the configuration."""

from __future__ import annotations

import pytest
from agenthost import OPERATOR, ConfigError
from agenthost.testing import Daemons
from agenthost_front.front import QuartFront

SERVER = """
api_key = "0123456789abcdef"
[server]
allowed_hosts = ["agents.example"]
"""


@pytest.mark.setting("plugins.set")
async def test_the_minimal_set_answers_health(daemons: Daemons) -> None:
    daemon = await daemons.start(config='[plugins]\nset = "minimal"\n')
    answer = await daemon.http.get("/api/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    assert isinstance(daemon.daemon.front, QuartFront)


@pytest.mark.setting("api_key", "server.allowed_hosts")
async def test_the_configuration_reaches_the_front(daemons: Daemons) -> None:
    daemon = await daemons.start(config=SERVER)
    public = {"host": "agents.example"}
    assert (await daemon.http.get("/api/health", headers=public)).status_code == 200
    assert (await daemon.http.get("/api/agents", headers=public)).status_code == 401
    key = {"authorization": "Bearer 0123456789abcdef"}
    assert (await daemon.http.get("/api/agents", headers=key)).status_code == 200
    assert daemon.daemon.front.panics == 0
    assert daemon.daemon.access.ticket(OPERATOR)


@pytest.mark.parametrize("port", ["front", "egress"])
async def test_a_daemon_without_a_backend_names_the_port(
    daemons: Daemons, port: str
) -> None:
    with pytest.raises(ConfigError, match=f"port {port}; enable one"):
        await daemons.start(environ={"AGENTHOST_PLUGINS__DISABLE": f"plugin:{port}"})
