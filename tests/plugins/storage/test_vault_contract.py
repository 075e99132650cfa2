"""The file vault keeps every promise of its port."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from agenthost.testing import OpenVault, VaultContract
from agenthost_storage import open_vault


class TestTheFileVault(VaultContract):
    """One encrypted file."""

    @pytest.fixture
    def opened(self, tmp_path: Path) -> OpenVault:
        return partial(open_vault, tmp_path, {})
