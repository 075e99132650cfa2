"""A start imports what it needs to serve, and the rest soon after."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LATER = (
    *("sqlalchemy", "h2", "wsproto", "quart", "aiohttp"),
    "agenthost_tools.documents.plain",
)
STARTED = """
import asyncio, sys
from pathlib import Path
from agenthost import Daemon

async def start(*unwanted):
    environ = {"AGENTHOST_LISTEN_ADDR": "127.0.0.1:0"}
    daemon = Daemon(Path(sys.argv[1]), environ=environ)
    await daemon.start()
    present = [name for name in unwanted if name in sys.modules]
    if not unwanted:
        async with asyncio.timeout(30):
            while "agenthost_records.journal" not in sys.modules:
                await asyncio.sleep(0.01)
    await daemon.stop()
    assert not present, present

asyncio.run(start(*sys.argv[2:]))
"""
INTRUDER = """
import sys
from agenthost_cli import main

sys.argv = ["agenthost", "version"]
main()
from pydantic import BaseModel, create_model

assert create_model("Model", x=(int, 1))().x == 1
assert "intruder" not in sys.modules
"""


def run(script: str, *arguments: str, path: str = "") -> None:
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", script, *arguments], check=True, env=environ)


def test_the_start_of_a_home_that_was_used_imports_the_rest_later(
    tmp_path: Path,
) -> None:
    home = str(tmp_path / "home")
    run(STARTED, home)
    run(STARTED, home, *LATER)


def test_a_plugin_of_pydantic_that_nobody_enabled_is_not_imported(
    tmp_path: Path,
) -> None:
    info = tmp_path / "intruder-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: intruder\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[pydantic]\nx = intruder:x\n", "utf-8")
    (tmp_path / "intruder.py").write_text("x = None\n", "utf-8")
    run(INTRUDER, path=str(tmp_path))
