"""The routes of ``/mcp`` keep every promise of routes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest
from agenthost.testing import RoutesContract, RunningDaemon, Sample

from .conftest import request

LIST = json.dumps(request("tools/list", {})).encode()


@pytest.mark.conformance
class TestTheRoutesOfMcp(RoutesContract):
    """``/mcp``."""

    plugin = "plugin:mcp"
    group = "mcp.server"
    untried: ClassVar[Mapping[str, str]] = {
        "GET /mcp": "it needs the header of a session",
        "DELETE /mcp": "it needs the header of a session",
    }

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """A list over HTTP, and over a pipe."""
        del daemon
        routes = ("POST /mcp", "POST /mcp/stdio")
        return [Sample(route, content=LIST) for route in routes]
