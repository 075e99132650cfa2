"""The protocol's own suite: every scenario that a revision requires of a server.

``make judges`` installs it in .cache/npm, with a node that is new enough for it. It
calls two tools that it passes also where they are missing, and asks for streams and
answers without looking at them: test_forms looks.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from agenthost.testing.daemons import Daemons

from ...fixture import Plugin

PACKAGES = Path(__file__).parents[5] / ".cache/npm/node_modules"
SUITE = PACKAGES / "@modelcontextprotocol/conformance/dist/index.js"
NODE = PACKAGES / "node/bin/node"
EXTENSIONS = "tasks-"
"""What no revision requires: tasks of servers, an extension that is not built."""
BESIDE = {
    "2025-11-25": {"server-session-lifecycle", "json-schema-2020-12"},
    "2026-07-28": {
        "http-custom-header-server-validation",
        "http-header-validation",
        "json-schema-2020-12",
    },
}
"""What is judged with each, and is not required yet."""

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not (NODE.exists() and SUITE.exists()), reason="needs `make judges`"
    ),
]


async def judged(daemons: Daemons, *arguments: str) -> str:
    daemon = await daemons.start(plugins=[Plugin()])
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(SUITE), "server", "--url", f"{daemon.url}/mcp", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(300):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said.decode()


@pytest.mark.parametrize(
    ("revision", "least"), [("2025-11-25", 32), ("2026-07-28", 40)]
)
async def test_all_that_a_revision_requires(
    daemons: Daemons, revision: str, least: int
) -> None:
    said = await judged(daemons, "--requirements", revision)
    _, _, summary = said.partition("=== SUMMARY ===")
    rows = re.findall(r"([✓✗]) (\S+): (\d+) passed, (\d+) failed", summary)
    failed = [name for _, name, _, failures in rows if int(failures)]
    assert [name for name in failed if not name.startswith(EXTENSIONS)] == [], said
    passed = {name for _, name, passes, _ in rows if int(passes)}
    assert len([n for n in passed if not n.startswith(EXTENSIONS)]) >= least, said
    assert not re.search(r"[1-9]\d* warnings", said)
    assert passed >= BESIDE[revision]
