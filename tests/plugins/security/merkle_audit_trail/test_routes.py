"""``/api/audit``: what it shows, what it verifies, what it proves."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from agenthost import AgentSpawned
from agenthost.testing import Daemons, RunningDaemon
from agenthost_security.merkle_audit_trail import routes as api
from pymerkle import (  # type: ignore[import-untyped]  # reason: it has no stubs
    InclusionProof,
    verify_inclusion,
)
from pymerkle.hasher import (  # type: ignore[import-untyped]  # reason: it has no stubs
    MerkleHasher,
)

from .book import entries, verified
from .verifier import sides_of


async def happens(daemon: RunningDaemon, count: int, **more: Any) -> None:
    host = daemon.daemon
    for n in range(count):
        keep = host.events.keeping(AgentSpawned(f"agent{n}", float(n), "ada", **more))
        assert keep is not None
        await host.store.write(keep)


async def test_a_fresh_trail_is_empty_and_valid(daemons: Daemons) -> None:
    daemon = await daemons.start()
    answer = (await daemon.http.get("/api/audit/recent")).json()
    assert answer == {"entries": [], "total": 0, "next_before": None}
    assert await verified(daemon) == {
        "status": "valid",
        "chain_length": 0,
        "first_entry": None,
        "last_entry": None,
        "heads": 0,
    }


async def test_recent_is_newest_first_in_pages(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await happens(daemon, 60)
    answer = (await daemon.http.get("/api/audit/recent")).json()
    assert [e["id"] for e in answer["entries"]] == list(range(60, 10, -1))
    assert (answer["total"], answer["next_before"]) == (60, 11)
    more = await daemon.http.get("/api/audit/recent", params={"before": 11})
    assert [e["id"] for e in more.json()["entries"]] == list(range(10, 0, -1))
    first = more.json()["entries"][-1]
    assert first["prev_hash"] == "0" * 64
    assert {"timestamp", "event_type", "agent_id", "details", "hash"} <= first.keys()


async def test_a_limit_is_clamped_or_refused(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await happens(daemon, 3)
    for limit, count in (("2", 2), ("501", 3), ("9" * 30, 3)):
        answer = await daemon.http.get("/api/audit/recent", params={"limit": limit})
        assert len(answer.json()["entries"]) == count
    for limit in ("0", "-1", "x", "1.5", ""):
        answer = await daemon.http.get("/api/audit/recent", params={"limit": limit})
        assert answer.status_code == 400, limit
        assert "limit" in answer.json()["error"]


async def test_entries_are_filtered(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await happens(daemon, 5, by="operator:ada")
    await happens(daemon, 2, by="operator:bob")
    assert len(await entries(daemon, actor="operator:bob")) == 2
    assert len(await entries(daemon, agent_id="agent1")) == 2
    assert len(await entries(daemon, event_type="agent_spawned")) == 7
    assert await entries(daemon, event_type="nothing") == []
    since = {"since": "1970-01-01T00:00:03Z", "until": "1970-01-01T01:00:03+01:00"}
    assert [e["agent_id"] for e in await entries(daemon, **since)] == ["agent3"]
    for moment in ("yesterday", "0001-01-01T00:00:00+14:00", "2026-01-01T00:00:00"):
        bad = await daemon.http.get("/api/audit/recent", params={"since": moment})
        assert bad.status_code == 400, moment


async def test_a_request_looks_through_a_part_of_the_trail(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "WINDOW", 4)
    daemon = await daemons.start()
    await happens(daemon, 10)
    asked: dict[str, Any] = {"agent_id": "agent2"}
    answer = (await daemon.http.get("/api/audit/recent", params=asked)).json()
    assert (answer["entries"], answer["next_before"]) == ([], 7)
    asked["before"] = 7
    answer = (await daemon.http.get("/api/audit/recent", params=asked)).json()
    assert [e["id"] for e in answer["entries"]] == [3]


async def test_a_valid_trail_tells_its_first_and_last_time(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await happens(daemon, 3)
    answer = await verified(daemon)
    assert answer == {
        "status": "valid",
        "chain_length": 3,
        "first_entry": "1970-01-01T00:00:00.000Z",
        "last_entry": "1970-01-01T00:00:02.000Z",
        "heads": 1,
    }


async def test_a_key_that_only_reads_may_not_see_the_trail(daemons: Daemons) -> None:
    daemon = await daemons.start(environ={"AGENTHOST_API_KEY": "root-key"})
    daemon.http.headers["authorization"] = "Bearer root-key"
    for scope, status in (("read", 403), ("chat", 403), ("operate", 200)):
        named = {"name": scope, "scopes": [scope]}
        key = (await daemon.http.post("/api/keys", json=named)).json()["key"]
        shown = {"authorization": f"Bearer {key}"}
        for path in ("recent", "verify", "heads"):
            answer = await daemon.http.get(f"/api/audit/{path}", headers=shown)
            assert answer.status_code == status, (scope, path)


@pytest.mark.parametrize("count", [1, 7, 300])
async def test_pymerkle_accepts_the_proofs(daemons: Daemons, count: int) -> None:
    daemon = await daemons.start()
    await happens(daemon, count)
    for entry_id in {1, count // 2 + 1, count}:
        answer = await daemon.http.get(f"/api/audit/proof/{entry_id}")
        assert answer.status_code == 200, answer.text
        proof = answer.json()
        base, root = judged(proof)
        assert base.hex() == proof["leaf_hash"]
        verify_inclusion(base, root, as_pymerkle(proof))
        wrong = sha256(b"\x00other").digest()
        with pytest.raises(Exception, match="match"):
            verify_inclusion(wrong, root, as_pymerkle(proof))


def judged(proof: dict[str, Any]) -> tuple[bytes, bytes]:
    """Hash the leaf by pymerkle, which knows nothing of ours."""
    hasher = MerkleHasher("sha256")
    leaf = hasher.hash_buff(bytes.fromhex(proof["canonical"]))
    return leaf, bytes.fromhex(proof["head"]["root"])


def as_pymerkle(proof: dict[str, Any]) -> InclusionProof:
    """Write a path of RFC 6962 as pymerkle has it: with its leaf, and the sides."""
    index, size = proof["leaf_index"], proof["tree_size"]
    path = [bytes.fromhex(proof["leaf_hash"]), *map(bytes.fromhex, proof["path"])]
    sides = sides_of(index, size)
    return InclusionProof("sha256", True, size, index + 1, sides, path)


async def test_a_proof_of_what_is_not_there_is_none(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await happens(daemon, 2)
    for entry_id, status in ((3, 404), (0, 400), (2**70, 400), ("x", 400)):
        answer = await daemon.http.get(f"/api/audit/proof/{entry_id}")
        assert answer.status_code == status, (entry_id, answer.text)


async def test_heads_come_newest_first_with_the_key(daemons: Daemons) -> None:
    daemon = await daemons.start()
    for _ in range(3):
        await happens(daemon, 1)
        await verified(daemon)
    answer = (await daemon.http.get("/api/audit/heads", params={"limit": 2})).json()
    assert [head["size"] for head in answer["heads"]] == [3, 2]
    assert answer["total"] == 3
    assert answer["public_key"] == answer["heads"][0]["key"]


async def test_an_earlier_tree_is_the_beginning_of_the_later(daemons: Daemons) -> None:
    from .test_tree import continues

    daemon = await daemons.start()
    await happens(daemon, 260)
    await verified(daemon)
    old = (await daemon.http.get("/api/audit/heads")).json()["heads"][0]
    await happens(daemon, 45)
    asked = {"first": old["size"]}
    proof = (await daemon.http.get("/api/audit/consistency", params=asked)).json()
    path = list(map(bytes.fromhex, proof["path"]))
    roots = continues(260, 305, path, bytes.fromhex(old["root"]))
    assert roots == (
        bytes.fromhex(old["root"]),
        bytes.fromhex(proof["head"]["root"]),
    )
    beyond = await daemon.http.get("/api/audit/consistency", params={"first": 999})
    assert beyond.status_code == 400
