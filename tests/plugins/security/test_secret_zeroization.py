"""The process that holds secrets is read by nobody and leaves no core."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agenthost import Host
from agenthost_security import secret_zeroization
from agenthost_security.secret_zeroization import SecretsSection, start

PROOF = """
import ctypes, resource
from agenthost_security.secret_zeroization import seal
assert seal()
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), *resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has this way to do it")
def test_a_sealed_process_is_not_dumpable_and_leaves_no_core() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROOF], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", "0", "0"]


@pytest.mark.setting("secret_zeroization.debuggable")
@pytest.mark.parametrize("debuggable", [True, False])
async def test_a_daemon_seals_itself_unless_it_is_to_be_debugged(
    debuggable: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seals: list[bool] = []
    monkeypatch.setattr(secret_zeroization, "seal", lambda: seals.append(True))
    host = host_with(SecretsSection(debuggable=debuggable))
    await start(host)
    assert bool(seals) is not debuggable
    # What the stand-in gives is no success, and the operator is told so.
    assert (secret_zeroization.UNSEALED in host.warnings) is not debuggable


async def test_where_nothing_can_be_locked_the_operator_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unlocked = SimpleNamespace(locked=False)
    monkeypatch.setattr(secret_zeroization, "SecretBytes", lambda _: unlocked)
    monkeypatch.setattr(secret_zeroization, "seal", lambda: True)
    host = host_with(SecretsSection())
    await start(host)
    assert host.warnings == [secret_zeroization.UNLOCKED]


def host_with(section: SecretsSection) -> Host:
    nobody = SimpleNamespace(offered=lambda _: ())
    told: Any = SimpleNamespace(
        settings=lambda _: section, warnings=[], registry=nobody
    )
    return cast("Host", told)
