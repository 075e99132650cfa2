"""Every security system keeps every promise of one."""

from __future__ import annotations

import pytest
from agenthost import ALLOW
from agenthost.testing import SecurityContract
from agenthost_security import (
    capability_inheritance_validation,
    path_traversal_prevention,
    ssrf_protection,
)
from agenthost_storage import files


class TestPathTraversalPrevention(SecurityContract):
    system = "path_traversal_prevention"

    def sabotage(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(path_traversal_prevention, "inside_workspace", lambda _: ALLOW)
        patch.setattr(files.LocalWorkspace, "read", lambda *_: b"yes")


class TestSsrfProtection(SecurityContract):
    system = "ssrf_protection"

    def sabotage(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(ssrf_protection, "_is_public", lambda _: True)


class TestCapabilityInheritanceValidation(SecurityContract):
    system = "capability_inheritance_validation"

    def sabotage(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(capability_inheritance_validation, "contains", lambda *_: True)
