"""A record in place of who does what is due."""

from __future__ import annotations

import agenthost_orchestration.orchestration as area
import pytest

from .stage import Record, recorder


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    kept = Record()
    monkeypatch.setattr(area, "Orchestration", recorder(kept))
    return kept
