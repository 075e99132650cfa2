"""A key does not show itself."""

from __future__ import annotations

import pickle

import pytest
from agenthost import Secret


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret("sk-canary")
    assert "canary" not in f"{secret} {secret!r} {[secret]}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
