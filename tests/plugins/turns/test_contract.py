"""The engine of one process keeps every promise of its port."""

from __future__ import annotations

import pytest
from agenthost import TurnsBackend
from agenthost.testing import TurnsContract
from agenthost_turns import open_engine


class TestMailboxes(TurnsContract):
    """Each session has a mailbox."""

    @pytest.fixture
    def backend(self) -> TurnsBackend:
        return TurnsBackend("mailboxes", open_engine)
