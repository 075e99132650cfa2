"""The way out keeps every promise of its port."""

from __future__ import annotations

import pytest
from agenthost.testing import EgressContract, OpenEgress
from agenthost_egress import open_egress


class TestTheWayOut(EgressContract):
    """One session of aiohttp a policy."""

    @pytest.fixture
    def opened(self) -> OpenEgress:
        return open_egress
