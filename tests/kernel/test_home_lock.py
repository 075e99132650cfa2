"""One daemon per home."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from agenthost import Conflict
from agenthost.home_lock import lock_home

HOLD = """
import sys
from pathlib import Path
from agenthost.home_lock import lock_home
lock = lock_home(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_lock_in_this_process_is_refused(tmp_path: Path) -> None:
    lock = lock_home(tmp_path)
    with pytest.raises(Conflict, match="another agenthost runs on this home"):
        lock_home(tmp_path)
    lock.close()
    lock.close()
    lock_home(tmp_path).close()


def test_another_process_keeps_the_home_until_it_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(Conflict, match=f"process {other.pid}"):
            lock_home(tmp_path)
        other.kill()
        other.wait(10)
    lock_home(tmp_path).close()
