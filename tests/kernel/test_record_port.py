"""What the port RECORDS says of itself."""

from __future__ import annotations

from agenthost import namespace_of


def test_keys_of_the_shared_namespace_begin_with_its_name() -> None:
    assert namespace_of("agent", "shared.plan") == "shared"
    assert namespace_of("agent", "shared") == "agent"
    assert namespace_of("agent", "plan") == "agent"
