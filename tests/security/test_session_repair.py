"""Broken conversations by the hundred thousand, judged by the rules of four vendors."""

from __future__ import annotations

import pytest

from tests.plugins.security.test_session_repair import check

from .figures import told

pytestmark = pytest.mark.security

MANY = 100_000


def test_every_broken_conversation_is_taken_by_every_vendor() -> None:
    for seed in range(MANY):
        check(seed)
    wanted = f"{MANY} x 4"
    told("session_repair: conversations taken after repair", wanted, f"{seed + 1} x 4")
