"""The engine keeps every promise where other daemons may share its sessions."""

from __future__ import annotations

import pytest
from agenthost import TurnsBackend
from agenthost.testing import TurnsContract
from agenthost_turns import open_engine

pytestmark = pytest.mark.conformance


class TestLinesOfNodes(TurnsContract):
    """Each session has a mailbox, and a line before it."""

    @pytest.fixture
    def backend(self) -> TurnsBackend:
        return TurnsBackend("mailboxes", open_engine)

    @pytest.fixture
    def config(self, database: str) -> str:
        return f'[storage]\nurl = "{database}"\n'
