"""The native surface keeps its own OpenAPI document, judged by schemathesis.

``pip install 'agenthost[judges]'`` brings it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest
from agenthost.testing.daemons import Daemons

PROGRAM = shutil.which("schemathesis") or shutil.which(
    "schemathesis", path=str(Path(sys.executable).parent)
)
CHECKS = (
    "not_a_server_error",
    "response_schema_conformance",
    "status_code_conformance",
    "content_type_conformance",
)
CONFIG = """
[parameters]
"path.agent_id" = "{agent}"
"path.model_id" = "gpt-4o"
"path.name" = "groq"

# The agent is to outlive the run, with a model that can be reached.
[[operations]]
include-name = "DELETE /api/agents/{{agent_id}}"
parameters = {{ "path.agent_id" = "00000000-0000-0000-0000-000000000000" }}

[[operations]]
include-name = "PUT /api/agents/{{agent_id}}/model"
parameters = {{ "path.agent_id" = "00000000-0000-0000-0000-000000000000" }}
"""
# One ends the daemon, one answers 502 for a provider that is not reached, and one 500
# for a run whose step fails, as agents' messages do: here most steps name nobody.
LEFT_OUT = (
    "/api/shutdown",
    "/api/providers/{name}/test",
    "/api/workflows/{workflow_id}/run",
)

# Another each time would find, some day, what no change has broken.
DRAWN = ("30",) if "AGENTHOST_RANDOM" in os.environ else ("12", "--seed", "1")

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(PROGRAM is None, reason="needs agenthost[judges]"),
]


async def test_every_route_answers_as_its_document_says(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon = await daemons.start(config="[rate_limit]\nenabled = false\n")
    agent = await daemon.agent()
    settings = tmp_path / "schemathesis.toml"
    settings.write_text(CONFIG.format(agent=agent.id))
    process = await asyncio.create_subprocess_exec(
        str(PROGRAM), "--config-file", str(settings),
        "run", f"{daemon.url}/openapi.json", "--phases", "coverage,fuzzing",
        "--max-examples", *DRAWN, "--checks", ",".join(CHECKS), "--no-color",
        *(word for path in LEFT_OUT for word in ("--exclude-path", path)),
        cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(540):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said.decode()
    assert daemon.daemon.front.panics == 0
