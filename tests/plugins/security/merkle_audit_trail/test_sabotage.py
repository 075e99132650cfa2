"""What was tampered with turns the system off, and what it records stands still."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from agenthost import AgentSpawned, Unavailable
from agenthost.testing import Daemons, RunningDaemon
from agenthost_security.merkle_audit_trail import heads as signed
from agenthost_security.merkle_audit_trail import proof
from agenthost_security.merkle_audit_trail.signing import load_key
from agenthost_security.merkle_audit_trail.system import trail_of

from .book import entries, standing, tamper, verified

EDIT = "UPDATE audit_entries SET actor = 'operator:eve' WHERE id = 3"


async def happens(daemon: RunningDaemon, count: int) -> None:
    host = daemon.daemon
    for n in range(count):
        keep = host.events.keeping(AgentSpawned(f"agent{n}", float(n), "ada"))
        assert keep is not None
        await host.store.write(keep)
    await trail_of(host).sign()


async def refuses(daemon: RunningDaemon) -> bool:
    made = await daemon.http.post("/api/agents", json={"manifest_toml": 'name = "b"'})
    if made.status_code == 201:
        return False
    assert made.status_code == 403
    assert "merkle_audit_trail" in made.json()["error"]
    return True


def of(home: Path, name: str) -> Path:
    return home / name if name == "audit.key" else home / "data" / name


def exchange_key(home: Path) -> None:
    path = of(home, "audit.key")
    path.unlink()
    load_key(path)


def cut_heads(home: Path) -> None:
    path = of(home, "audit.heads")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))


def forge_heads(home: Path) -> None:
    path = of(home, "audit.heads")
    lines = path.read_bytes().splitlines()
    head = json.loads(lines[-1])
    head["root"] = "0" * 64
    lines[-1] = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")


def edit_row(home: Path) -> None:
    tamper(home, EDIT)


def delete_tail(home: Path) -> None:
    tamper(home, "DELETE FROM audit_entries WHERE id > 4")


def delete_heads(home: Path) -> None:
    of(home, "audit.heads").unlink()


def open_key(home: Path) -> None:
    of(home, "audit.key").chmod(0o644)


SABOTAGE = [
    edit_row,
    delete_tail,
    cut_heads,
    forge_heads,
    delete_heads,
    exchange_key,
    open_key,
]


@pytest.mark.parametrize("sabotage", SABOTAGE)
async def test_sabotage_while_it_runs_turns_it_off(
    daemons: Daemons, tmp_path: Path, sabotage: Callable[[Path], None]
) -> None:
    home = tmp_path / "home"
    daemon = await daemons.start(home=home)
    await happens(daemon, 3)
    await happens(daemon, 3)
    assert (await standing(daemon))[0] == "active"
    assert not await refuses(daemon)
    await trail_of(daemon.daemon).sign()
    sabotage(home)
    # A proof counts for five seconds.
    states = await daemon.daemon.registry.prove()
    assert not next(s for s in states if s.name == "merkle_audit_trail").active
    assert await standing(daemon) == ("inactive", False)
    assert await refuses(daemon)


@pytest.mark.conformance
@pytest.mark.parametrize(
    "sabotage", [delete_tail, cut_heads, delete_heads, exchange_key]
)
async def test_sabotage_while_it_is_down_is_found_at_the_start(
    daemons: Daemons, tmp_path: Path, sabotage: Callable[[Path], None]
) -> None:
    home = tmp_path / "home"
    first = Daemons(tmp_path)
    daemon = await first.start(home=home)
    await happens(daemon, 3)
    await happens(daemon, 3)
    await first.close()
    sabotage(home)
    daemon = await daemons.start(home=home)
    # Before anybody asks for a proof.
    assert await refuses(daemon)
    assert await standing(daemon) == ("inactive", False)
    assert (await verified(daemon))["status"] == "broken"


@pytest.mark.conformance
async def test_an_older_copy_of_the_database_is_found(
    daemons: Daemons, tmp_path: Path
) -> None:
    home, copy = tmp_path / "home", tmp_path / "older.db"
    for count in (3, 2):
        run = Daemons(tmp_path)
        await happens(await run.start(home=home), count)
        await run.close()
        if count == 3:
            shutil.copy(of(home, "agenthost.db"), copy)
    shutil.copy(copy, of(home, "agenthost.db"))
    daemon = await daemons.start(home=home)
    assert await standing(daemon) == ("inactive", False)
    answer = await verified(daemon)
    assert (answer["status"], answer["break_at"]) == ("broken", 4)


async def test_an_edit_is_told_with_its_place(daemons: Daemons, tmp_path: Path) -> None:
    home = tmp_path / "home"
    daemon = await daemons.start(home=home)
    await happens(daemon, 8)
    for column in ("event_type", "agent_id", "actor", "details", "timestamp", "hash"):
        kept = sqlite3.connect(of(home, "agenthost.db"))
        [(before,)] = kept.execute(f"SELECT {column} FROM audit_entries WHERE id = 5")
        kept.close()
        tamper(home, f"UPDATE audit_entries SET {column} = 'x' WHERE id = 5")
        answer = await verified(daemon)
        assert (answer["status"], answer["break_at"]) == ("broken", 5), column
        assert answer["chain_length"] == 8
        assert "5" in answer["error"]
        change = f"UPDATE audit_entries SET {column} = ? WHERE id = 5"
        tamper(home, change, values=[before])
    assert (await verified(daemon))["status"] == "valid"


@pytest.mark.conformance
async def test_nothing_is_signed_that_does_not_follow(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    daemon = await daemons.start(home=home)
    await happens(daemon, 3)
    heads = of(home, "audit.heads").read_bytes()
    host = daemon.daemon
    keep = host.events.keeping(AgentSpawned("a", 0.0, "ada"))
    assert keep is not None
    await host.store.write(keep)
    tamper(home, "UPDATE audit_entries SET actor = 'eve' WHERE id = 4")
    with pytest.raises(Exception, match="broken at entry 4"):
        await trail_of(host).sign()
    assert of(home, "audit.heads").read_bytes() == heads
    assert await refuses(daemon)


@pytest.mark.conformance
async def test_a_system_that_fails_its_first_proof_lets_nothing_happen(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "_broken", lambda _: None)
    daemon = await daemons.start()
    assert await refuses(daemon)
    assert await standing(daemon) == ("inactive", False)


async def test_a_trail_that_is_switched_off_is_told_and_stops_nothing(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(
        config='[plugins]\ndisable = ["security:merkle_audit_trail"]\n'
    )
    assert await standing(daemon) == ("inactive", False)
    assert not await refuses(daemon)
    assert (await daemon.http.get("/api/audit/recent")).status_code == 404


@pytest.mark.conformance
async def test_it_goes_on_after_a_start(daemons: Daemons, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for count in (300, 270, 5):
        run = Daemons(tmp_path)
        daemon = await run.start(home=home)
        await happens(daemon, count)
        await run.close()
    daemon = await daemons.start(home=home)
    await happens(daemon, 1)
    answer = await verified(daemon)
    assert (answer["status"], answer["chain_length"]) == ("valid", 576)
    proof = (await daemon.http.get("/api/audit/proof/290")).json()
    assert proof["tree_size"] == 576


@pytest.mark.conformance
async def test_half_a_line_of_a_crash_is_no_damage(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    run = Daemons(tmp_path)
    await happens(await run.start(home=home), 3)
    await run.close()
    with of(home, "audit.heads").open("ab") as file:
        file.write(b'{"version":1,"numb')
    daemon = await daemons.start(home=home)
    await happens(daemon, 3)
    assert (await verified(daemon))["status"] == "valid"
    assert (await standing(daemon))[0] == "active"


@pytest.mark.conformance
async def test_entries_that_a_crash_left_unsigned_are_signed_later(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    run = Daemons(tmp_path)
    daemon = await run.start(home=home)
    host, trail = daemon.daemon, trail_of(daemon.daemon)
    for n in range(5):
        keep = host.events.keeping(AgentSpawned(f"agent{n}", float(n), "ada"))
        assert keep is not None
        await host.store.write(keep)
    assert trail._signer is not None
    trail._signer.cancel()
    trail._signer = None
    trail._host = None  # it ends without a head, as after a kill
    await run.close()
    assert not of(home, "audit.heads").exists()
    daemon = await daemons.start(home=home)
    answer = await verified(daemon)
    assert (answer["status"], answer["chain_length"], answer["heads"]) == (
        "valid",
        5,
        1,
    )


async def test_the_key_and_the_heads_are_nobody_elses(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    daemon = await daemons.start(home=home)
    await happens(daemon, 1)
    for name in ("audit.key", "audit.heads"):
        assert of(home, name).stat().st_mode & 0o777 == 0o600


async def test_nothing_is_written_while_nothing_happens(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    daemon = await daemons.start(home=home)
    await happens(daemon, 2)
    before = of(home, "audit.heads").read_bytes()
    for _ in range(3):
        assert (await verified(daemon))["status"] == "valid"
    assert await entries(daemon)
    assert of(home, "audit.heads").read_bytes() == before


@pytest.mark.conformance
async def test_a_reader_who_leaves_cuts_no_head_off(
    daemons: Daemons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    daemon = await daemons.start(home=home)
    trail = trail_of(daemon.daemon)
    await happens(daemon, 1)
    append, began, left = signed.append, threading.Event(), threading.Event()

    def slow(path: Path, heads: Sequence[signed.Head]) -> None:
        began.set()
        left.wait(20)
        append(path, heads)

    monkeypatch.setattr(signed, "append", slow)
    reader = asyncio.create_task(happens(daemon, 1))
    await asyncio.to_thread(began.wait, 20)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    left.set()
    await happens(daemon, 1)
    assert (await verified(daemon))["status"] == "valid"
    await trail.compare()


@pytest.mark.conformance
async def test_a_full_disk_leaves_no_half_of_a_head(
    daemons: Daemons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    daemon = await daemons.start(home=home)
    await happens(daemon, 2)
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        return write(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(Unavailable, match="heads cannot be written"):
        await happens(daemon, 1)
    monkeypatch.undo()
    await happens(daemon, 1)
    assert (await verified(daemon))["chain_length"] == 4
    assert (await standing(daemon))[0] == "active"
