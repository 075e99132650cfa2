"""A start imports what it needs to serve, and the rest soon after."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LATER = (
    *("sqlalchemy", "h2", "wsproto", "quart", "aiohttp", "httpx", "cryptography"),
    *("importlib.metadata", "email.message", "multiprocessing", "logging.config"),
    *("agenthost_tools.documents.plain", "agenthost_openai_compat.chat"),
    *("agenthost_dialects.openai_chat", "agenthost_records.journal"),
)
"""What a start does without."""
NEVER = ("quart", "werkzeug", "flask", "jinja2", "agenthost_openai_compat.chat")
"""What a daemon at rest does without, too: it waits for who asks for it."""
MODULES = {"serving": 805, "resting": 1_010}
"""So many there may be: who needs more imports them where they are needed."""
STARTED = """
import asyncio, sys
from collections import Counter
from pathlib import Path
from agenthost_cli.spared import spare_imports

spare_imports()
from agenthost import Daemon

def over(most):
    packages = Counter(name.partition(".")[0] for name in sys.modules)
    return len(sys.modules) > int(most) and (len(sys.modules), packages.most_common(60))

async def start(serving=9_999, resting=9_999, *unwanted):
    environ = {"AGENTHOST_LISTEN_ADDR": "127.0.0.1:0"}
    daemon = Daemon(Path(sys.argv[1]), environ=environ)
    await daemon.start()
    present = [name for name in unwanted if name in sys.modules]
    many = over(serving)
    async with asyncio.timeout(30):
        while "agenthost_front.frames" not in sys.modules:
            await asyncio.sleep(0.01)
    many = many or over(resting)
    there = [name for name in {never} if name in sys.modules]
    await daemon.stop()
    assert not present, present
    assert not there, there
    assert not many, many

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
    script = STARTED.replace("{never}", repr(NEVER))
    run(script, home)
    run(script, home, *map(str, MODULES.values()), *LATER)


def test_a_plugin_of_pydantic_that_nobody_enabled_is_not_imported(
    tmp_path: Path,
) -> None:
    info = tmp_path / "intruder-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: intruder\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[pydantic]\nx = intruder:x\n", "utf-8")
    (tmp_path / "intruder.py").write_text("x = None\n", "utf-8")
    run(INTRUDER, path=str(tmp_path))
