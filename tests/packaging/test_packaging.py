"""What runs the daemon elsewhere: the container's file and the unit of systemd."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "packaging"
UNIT = FOLDER / "agenthost.service"
HARDENED = {
    "NoNewPrivileges": "yes",
    "CapabilityBoundingSet": "",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "RestrictNamespaces": "yes",
    "SystemCallArchitectures": "native",
    "UMask": "0077",
}
WORST = 25
"""Exposure in tenths, as systemd counts it: 0 is closed, 100 is open."""


def instructions() -> list[list[str]]:
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.split() for line in text.splitlines() if line and line[0] != "#"]


def test_the_unit_runs_as_a_user_of_its_own_and_may_little() -> None:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as it documents
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    service = parser["Service"]
    assert service["User"] == "agenthost"
    assert service["ExecStart"].endswith("/agenthost start")
    assert service["Restart"] == "on-failure"
    # An orderly end may take a minute, and agenthost stop waits for longer than that.
    assert int(service["TimeoutStopSec"]) >= 75
    assert HARDENED.items() <= dict(service).items()


@pytest.mark.conformance
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not here")
def test_systemd_takes_the_unit_and_finds_it_closed(tmp_path: Path) -> None:
    unit = tmp_path / "agenthost.service"
    text = UNIT.read_text(encoding="utf-8")
    unit.write_text(text.replace("/opt/agenthost/bin/agenthost", "/bin/true"))
    for check in (["verify"], ["security", "--offline=true", f"--threshold={WORST}"]):
        told = subprocess.run(
            ["systemd-analyze", *check, str(unit)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert told.returncode == 0, told.stdout[-500:] + told.stderr
        assert "Unknown" not in told.stderr


def test_the_container_runs_as_nobody_special_and_tells_its_health() -> None:
    last: dict[str, list[str]] = {line[0]: line[1:] for line in instructions()}
    assert int(last["USER"][0]) > 0
    health = " ".join(last["HEALTHCHECK"])
    assert "/api/health" in health
    assert re.search(r"--timeout=\ds", health)
    assert last["ENTRYPOINT"] == ['["agenthost"]']
    names = [line[0] for line in instructions()]
    # What is installed belongs to root: the daemon cannot change its own code.
    assert names.index("USER") > max(i for i, name in enumerate(names) if name == "RUN")
