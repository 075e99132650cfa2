"""The router of the plugin models keeps every promise of its port."""

from __future__ import annotations

import pytest
from agenthost import ModelsBackend
from agenthost.testing import ModelsContract
from agenthost_models import open_models


class TestRouted(ModelsContract):
    """Over the providers of plugins and of the configuration."""

    @pytest.fixture
    def backend(self) -> ModelsBackend:
        return ModelsBackend("default", open_models)
