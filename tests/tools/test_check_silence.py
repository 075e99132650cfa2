"""What wants to leave is counted, however quietly it is refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.check_silence import refused

ROOT = Path(__file__).parents[2]
UP = 'ip link set lo up && exec "$@"'
CUT = ["unshare", "--map-root-user", "--net", "sh", "-c", UP, "sh", sys.executable]
QUIETLY = """
import socket, sys
sys.path.insert(0, sys.argv[1])
from tools.check_silence import main
assert main() == 0
for family, address in {way}:
    client = socket.socket(family, socket.{kind})
    client.connect_ex((address, 53))
    client.close()
sys.exit(main())
"""
WAYS = ((2, "192.0.2.1"), (10, "2001:db8::1"))


def may_cut() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*CUT, "-c", ""], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.skipif(not may_cut(), reason="no network of its own can be made here")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_whoever_tries_to_leave_is_counted(way: tuple[int, str], kind: str) -> None:
    script = QUIETLY.format(way=[way], kind=kind)
    done = subprocess.run(
        [*CUT, "-c", script, str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[0] == "0 attempts to reach somebody outside"


def test_both_versions_of_ip_count(tmp_path: Path) -> None:
    (tmp_path / "snmp").write_text("Ip: InReceives OutNoRoutes\nIp: 5 2\nTcp: a\n")
    assert refused(tmp_path) == 2
    (tmp_path / "snmp6").write_text("Ip6InReceives 9\nIp6OutNoRoutes 3\n")
    assert refused(tmp_path) == 5
