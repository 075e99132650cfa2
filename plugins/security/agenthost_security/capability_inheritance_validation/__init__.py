"""Refuse an agent that asks for more than whoever spawns it may do itself."""

from __future__ import annotations

from agenthost import (
    ALLOW,
    Denied,
    Deny,
    Grants,
    Guard,
    Principal,
    PrincipalKind,
    SecuritySystem,
    SpawnCase,
    Verdict,
    hookimpl,
)

from .globs import contains

SHOWN = 100
"""So many characters of a name are told."""


def within_parent(case: SpawnCase) -> Verdict:
    """Deny a right that the spawner's own rights do not hold completely.

    A principal whose grants are None has every right and may hand on any.
    """
    grants = case.principal.grants
    if grants is None:
        return ALLOW
    for action, patterns in case.grants.items():
        held = grants.patterns.get(action, ())
        for pattern in patterns:
            if not any(contains(own, pattern) for own in held):
                return Deny(_told(case, action, pattern), Denied)
    return ALLOW


def _told(case: SpawnCase, *right: str) -> str:
    action, pattern, name, own = (
        text[:SHOWN].encode("utf-8", "replace").decode()
        for text in (*right, case.name, case.principal.name)
    )
    return (
        f"{name} asks for {action} {pattern!r}, which {case.principal.kind} {own!r}"
        " does not hold"
    )


def self_test() -> None:
    """See an escalation refused and an inheritance allowed.

    Raises:
        RuntimeError: One of them went the other way.
    """
    parent = Principal(PrincipalKind.AGENT, "parent", Grants({"tool": ("file_*",)}))
    for pattern, fits in (("file_read", True), ("*", False), ("f*", False)):
        verdict = within_parent(SpawnCase(parent, "child", {"tool": (pattern,)}))
        if (verdict == ALLOW) is not fits:
            raise RuntimeError(f"{pattern} was judged wrongly")
    if within_parent(SpawnCase(parent, "child", {"network": ("a",)})) == ALLOW:
        raise RuntimeError("a right that the parent lacks was handed on")


@hookimpl
def security_system() -> SecuritySystem:
    """Offer validation of inherited capabilities."""
    return SecuritySystem(
        "capability_inheritance_validation", {Guard.SPAWN: within_parent}, self_test
    )
