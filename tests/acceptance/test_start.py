"""What a start imports before it serves: whoever asks waits for every module of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LATER = (
    "aiohttp",
    "alembic",
    "click",
    "cryptography",
    "httpx",
    "markdownify",
    "opentelemetry",
    "prometheus_client",
    "quart",
    "re2",
    "selectolax",
    "tomlkit",
    "urlpattern",
    "sqlalchemy.ext.asyncio",
    "sqlalchemy.orm",
    "agenthost_desktop_shell.policy",
    "agenthost_desktop_shell.validation",
    "agenthost_dialects.anthropic_messages",
    "agenthost_dialects.bedrock",
    "agenthost_dialects.gemini",
    "agenthost_dialects.openai_chat",
    "agenthost_orchestration.workflows.reading",
    "agenthost_orchestration.workflows.tables",
)

SERVE = f"""
import asyncio, sys
from pathlib import Path
from agenthost import Daemon

async def serve(home):
    daemon = Daemon(home, environ={{"AGENTHOST_LISTEN_ADDR": "127.0.0.1:0"}})
    await daemon.start()
    # Nothing has been awaited since it listens, so what comes later has not begun.
    print([name for name in {LATER} if name in sys.modules])
    await daemon.stop()

asyncio.run(serve(Path(sys.argv[1])))
"""


@pytest.mark.conformance
def test_a_start_leaves_to_later_what_serving_does_not_need(tmp_path: Path) -> None:
    # The first one makes the tables, which takes alembic.
    _served(tmp_path)
    assert _served(tmp_path) == "[]"


def _served(home: Path) -> str:
    run = subprocess.run(
        [sys.executable, "-c", SERVE, str(home)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return run.stdout.strip()
