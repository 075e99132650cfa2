"""Our client before every scenario that a revision requires of one.

``make judges`` installs the suite. What it asks of agents, people and models, which a
client alone has not, test_daemon has it judge before a whole daemon.
"""

from __future__ import annotations

import re

import pytest
from agenthost_mcp.client import connecting

from ..servers import PATIENCE
from .logging_in import log_in
from .speaking import speak
from .suite import NODE, SUITE, Told, judged

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not (NODE.exists() and SUITE.exists()), reason="needs `make judges`"
    ),
]
OF_DAEMONS = {
    "2025-11-25": {
        "elicitation-sep1034-client-defaults",
        "json-schema-2020-12-preservation",
        "sse-retry",
    },
    "2026-07-28": {
        "json-schema-2020-12-preservation",
        "sep-2322-client-request-state",
    },
}
EXTENSIONS = {
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/enterprise-managed-authorization",
    "auth/wif-jwt-bearer",
}
"""What no revision requires and is not built: see docs/mcp-servers.md, logins."""
LEAST = {
    "http-custom-headers": 18,
    "http-invalid-tool-headers": 12,
    "http-standard-headers": 4,
    "initialize": 1,
    "json-schema-ref-no-deref": 1,
    "request-metadata": 5,
    "tools_call": 2,
    "auth/authorization-server-migration": 25,
    "auth/basic-cimd": 11,
    "auth/iss-normalized": 8,
    "auth/iss-not-advertised": 12,
    "auth/iss-supported": 12,
    "auth/iss-supported-missing": 8,
    "auth/iss-unexpected": 8,
    "auth/iss-wrong-issuer": 8,
    "auth/metadata-default": 16,
    "auth/metadata-issuer-mismatch": 3,
    "auth/metadata-var1": 16,
    "auth/metadata-var2": 16,
    "auth/metadata-var3": 16,
    "auth/offline-access-not-supported": 12,
    "auth/offline-access-scope": 13,
    "auth/pre-registration": 11,
    "auth/resource-mismatch": 2,
    "auth/scope-from-scopes-supported": 12,
    "auth/scope-from-www-authenticate": 12,
    "auth/scope-omitted-when-undefined": 12,
    "auth/scope-retry-limit": 15,
    "auth/scope-step-up": 22,
    "auth/token-endpoint-auth-basic": 17,
    "auth/token-endpoint-auth-none": 17,
    "auth/token-endpoint-auth-post": 17,
}
"""Checks that a scenario has at least: it counts each request with a good token, and
how many there are is no fault."""


async def client(told: Told) -> None:
    """Do what a scenario wants, where a client alone can."""
    if told.scenario not in EXTENSIONS.union(*OF_DAEMONS.values()):
        await (log_in if told.scenario.startswith("auth/") else speak)(told)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take no server for an older one that is slow: the suite begins all at once."""
    monkeypatch.setattr(connecting, "GUESS_SECONDS", PATIENCE)
    monkeypatch.setattr(connecting, "SECONDS", PATIENCE)


def rows(said: str) -> dict[str, tuple[int, int]]:
    """How many checks of each scenario have passed, and how many have not."""
    _, _, summary = said.partition("=== SUITE SUMMARY ===")
    summary, _, _ = summary.partition("Total:")
    found = re.findall(r"[✓✗] (\S+): (\d+) passed, (\d+) failed", summary)
    return {name: (int(passed), int(failed)) for name, passed, failed in found}


@pytest.mark.parametrize(
    ("revision", "count"), [("2025-11-25", 16), ("2026-07-28", 31)]
)
async def test_all_that_a_revision_requires_of_a_client(
    revision: str, count: int
) -> None:
    said = await judged(client, "--requirements", revision)
    judgement = rows(said)
    failed = {name for name, (_, failures) in judgement.items() if failures}
    assert failed == EXTENSIONS | OF_DAEMONS[revision], said
    passed = judgement.keys() - failed
    assert len(passed) == count, said
    short = {name for name in passed if judgement[name][0] < LEAST[name]}
    assert short == set(), said
    assert ", 0 warnings" in said, said


async def test_an_issuer_of_the_first_revision_that_had_logins() -> None:
    # Not auth/2025-03-26-oauth-endpoint-fallback: an issuer without metadata does not
    # say that it checks PKCE.
    scenario = "auth/2025-03-26-oauth-metadata-backcompat"
    said = await judged(client, "--scenario", scenario)
    found = re.search(r"Passed: (\d+)/(\d+), 0 failed, 0 warnings", said)
    assert found is not None, said
    assert found[1] == found[2]
    assert int(found[1]) >= 10
