"""Every security system keeps every promise of one."""

from __future__ import annotations

import pytest
from agenthost import ALLOW
from agenthost.testing import SecurityContract
from agenthost_events.audit import AUDIT
from agenthost_front import answers, headers
from agenthost_security import (
    capability_inheritance_validation,
    path_traversal_prevention,
    session_repair,
    ssrf_protection,
)
from agenthost_security.gcra_rate_limiter import limiter
from agenthost_security.loop_guard import trail
from agenthost_security.merkle_audit_trail import checking
from agenthost_storage import files
from agenthost_values.secret_bytes import SecretBytes


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


class TestLoopGuard(SecurityContract):
    system = "loop_guard"

    def sabotage(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(trail.Trail, "ended", lambda *_: False)


class TestSessionRepair(SecurityContract):
    system = "session_repair"

    def sabotage(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(session_repair, "_paired", lambda _: ({}, {}))


class TestSecretZeroization(SecurityContract):
    system = "secret_zeroization"

    def sabotage(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(SecretBytes, "wipe", lambda _: None)


class TestMerkleAuditTrail(SecurityContract):
    system = "merkle_audit_trail"
    points = (AUDIT,)

    def sabotage(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(checking, "canonical", lambda *facts: facts)
        patch.setattr(checking.Chain, "take", lambda *_: None)


class TestGcraRateLimiter(SecurityContract):
    system = "gcra_rate_limiter"

    def sabotage(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(limiter.Limiter, "_refuse", lambda *_: ALLOW)


class TestSecurityHeaders(SecurityContract):
    system = "security_headers"

    def sabotage(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(headers, "CONSTANT", headers.CONSTANT[1:])


class TestHealthRedaction(SecurityContract):
    system = "health_redaction"

    def sabotage(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(answers, "INTERNAL", "see /etc/passwd")
