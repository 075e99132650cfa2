"""The bus of one process keeps every promise of its port."""

from __future__ import annotations

import pytest
from agenthost import Events, Host
from agenthost.testing import EventsContract
from agenthost_events import open_bus
from agenthost_events.audit import AUDIT


class TestTheBus(EventsContract):
    """In memory, with a thread for each plugin."""

    @pytest.fixture
    async def opened(self, host: Host) -> Events:
        host.guards.compile((), points=[AUDIT])
        return open_bus(host, ())
