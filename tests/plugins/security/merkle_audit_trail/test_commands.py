"""``agenthost audit`` and ``agenthost security``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenthost import AgentSpawned
from agenthost.testing import Daemons
from agenthost_security.merkle_audit_trail.commands import audit, security
from agenthost_security.merkle_audit_trail.system import trail_of
from click.testing import CliRunner

from .book import tamper


@dataclass(frozen=True)
class Told:
    """A daemon whose answers are known."""

    home: Path
    answers: dict[str, Any]

    def connect(self) -> Told:
        return self

    def get(self, path: str) -> Any:
        return self.answers[path.partition("?")[0]]


VALID = {"status": "valid", "chain_length": 3, "first_entry": "a", "last_entry": "b"}
BROKEN = {"status": "broken", "chain_length": 3, "break_at": 2, "error": "changed"}
ENTRY = {
    "id": 3,
    "timestamp": "2026-01-01T00:00:00.000Z",
    "event_type": "agent_spawned",
    "actor": "operator:ada",
    "agent_id": "a",
    "details": "{}",
}


def run(group: Any, *words: str, told: Told | None = None) -> Any:
    return CliRunner().invoke(group, list(words), obj=told)


def told(tmp_path: Path, **answers: Any) -> Told:
    paths = {f"/api/{name.replace('_', '/')}": what for name, what in answers.items()}
    return Told(tmp_path, paths)


def test_recent_prints_a_line_each(tmp_path: Path) -> None:
    here = told(tmp_path, audit_recent={"entries": [ENTRY], "total": 3})
    shown = run(audit, "recent", "--limit", "1", told=here)
    assert "agent_spawned" in shown.stdout
    assert "3 entries in all" in shown.stderr
    written = run(audit, "recent", "--json", told=here)
    assert json.loads(written.stdout)["total"] == 3


def test_verify_fails_where_the_trail_is_broken(tmp_path: Path) -> None:
    good = run(audit, "verify", told=told(tmp_path, audit_verify=VALID))
    assert (good.exit_code, good.stdout) == (0, "valid: 3 entries\n")
    bad = run(audit, "verify", told=told(tmp_path, audit_verify=BROKEN))
    assert (bad.exit_code, bad.stdout) == (1, "broken at entry 2: changed\n")


async def test_verify_reads_a_folder_without_a_daemon(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    first = Daemons(tmp_path)
    daemon = await first.start(home=home)
    host = daemon.daemon
    for n in range(5):
        keep = host.events.keeping(AgentSpawned("a", float(n), "ada"))
        assert keep is not None
        await host.store.write(keep)
    public = (await trail_of(host).key()).public
    await first.close()
    here = Told(home, {})
    assert run(audit, "key", told=here).stdout.strip() == public
    folder = str(home / "data")
    good = run(audit, "verify", "--offline", folder, "--key", public, told=here)
    assert (good.exit_code, good.stdout) == (0, "valid: 5 entries\n")
    other = run(audit, "verify", "--offline", folder, "--key", "0" * 64, told=here)
    assert other.exit_code == 1
    tamper(home, "UPDATE audit_entries SET details = '' WHERE id = 2")
    bad = run(audit, "verify", "--offline", folder, told=here)
    assert (bad.exit_code, "broken at entry 2" in bad.stdout) == (1, True)


def test_there_is_no_key_before_the_first_start(tmp_path: Path) -> None:
    shown = run(audit, "key", told=Told(tmp_path, {}))
    assert (shown.exit_code, "start the daemon once" in shown.output) == (1, True)


def test_a_folder_without_a_database_is_told(tmp_path: Path) -> None:
    shown = run(audit, "verify", "--offline", str(tmp_path), told=Told(tmp_path, {}))
    assert shown.exit_code == 1


def test_security_shows_each_system_and_why_one_is_off(tmp_path: Path) -> None:
    report = {
        "security_systems": {"loop_guard": "inactive", "ssrf_protection": "active"},
        "total_systems": 2,
        "all_active": False,
        "reasons": {"loop_guard": "no enabled plugin offers it"},
    }
    here = told(tmp_path, security=report, audit_verify=VALID)
    shown = run(security, "status", told=here)
    assert shown.exit_code == 0
    assert "no enabled plugin offers it" in shown.stdout
    assert run(security, "verify", told=here).exit_code == 1
    report |= {"all_active": True, "reasons": {}}
    assert run(security, "verify", told=here).exit_code == 0
    here.answers["/api/audit/verify"] = BROKEN
    assert run(security, "verify", told=here).exit_code == 1
