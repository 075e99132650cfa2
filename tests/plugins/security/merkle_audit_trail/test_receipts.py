"""Receipts: accepted with the public key alone, refused once they are changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from agenthost import Unavailable
from agenthost.testing import Daemons, RunningAgent, RunningDaemon
from agenthost_security.merkle_audit_trail.commands import audit
from agenthost_security.merkle_audit_trail.offline import Refused, check_receipt
from agenthost_security.merkle_audit_trail.signing import SigningKey
from agenthost_security.merkle_audit_trail.system import trail_of
from click.testing import CliRunner

from .book import entries, verified
from .verifier import refused

Change = Callable[[dict[str, Any]], None]


def flipped(text: str) -> str:
    return text[:-1] + ("0" if text[-1] != "0" else "1")


def at(*path: Any, to: Callable[[Any], Any] | Any = flipped) -> Change:
    """Change what stands at a place."""

    def change(receipt: dict[str, Any]) -> None:
        *way, last = path
        inner: Any = receipt
        for step in way:
            inner = inner[step]
        inner[last] = to(inner[last]) if callable(to) else to

    return change


def claim(name: str, value: Any) -> Change:
    """Say something else in the statement, and in the entry too."""

    def change(receipt: dict[str, Any]) -> None:
        receipt["statement"][name] = value
        receipt["entry"]["details"] = json.dumps(
            receipt["statement"], separators=(",", ":")
        )

    return change


def signed_anew(receipt: dict[str, Any]) -> None:
    """Sign everything with a key of one's own."""
    from agenthost_security.merkle_audit_trail import heads

    key = SigningKey(bytes(32))
    told = {k: v for k, v in receipt["head"].items() if k not in {"signature", "key"}}
    receipt["head"] = heads.made(key, told)


MUTATIONS: dict[str, Change] = {
    "another answer": claim("answer", {"sha256": "0" * 64, "characters": 1}),
    "another question": claim("question", {"sha256": "0" * 64, "characters": 1}),
    "another model": claim("model", "gpt-9"),
    "another agent": claim("agent", "eve"),
    "other tools": claim("tools", []),
    "another policy": claim("policy", {}),
    "other times": claim("times", {}),
    "another turn": claim("subject", "t"),
    "the statement alone": at("statement", "model", to="gpt-9"),
    "the time of the entry": at("entry", "timestamp", to="2001-01-01T00:00:00.000Z"),
    "the actor": at("entry", "actor", to="operator:eve"),
    "the hash": at("entry", "hash"),
    "the hash before": at("entry", "prev_hash"),
    "the signature": at("signature"),
    "the place": at("leaf_index", to=lambda n: n - 1),
    "the size": at("tree_size", to=lambda n: n + 1),
    "the path": at("path", 0),
    "a shorter path": at("path", to=lambda path: path[:-1]),
    "the root": at("head", "root"),
    "the signature of the head": at("head", "signature"),
    "the size in the head": at("head", "size", to=lambda n: n + 1),
    "a head of another key": signed_anew,
    "the leaf": at("leaf_hash"),
    "the version": at("version", to=2),
    "no path": lambda receipt: receipt.pop("path"),
    "a text for a number": at("entry", "id", to="one"),
}


async def answered(
    daemon: RunningDaemon, text: str = "what?"
) -> tuple[dict[str, Any], str]:
    """Ask an agent for an answer with a receipt; give it and the key."""
    agent = await daemon.agent()
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("two")
    answer = await agent.send(text, X_Receipt="1")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["response"] == "two"
    heads = (await daemon.http.get("/api/audit/heads")).json()
    return body["receipt"], heads["public_key"]


async def test_an_outsider_accepts_it_and_no_other(daemons: Daemons) -> None:
    daemon = await daemons.start()
    receipt, public = await answered(daemon)
    assert refused(receipt, public) == ""
    check_receipt(receipt, public)
    for name, change in MUTATIONS.items():
        other = copy.deepcopy(receipt)
        change(other)
        assert other != receipt, name
        assert refused(other, public), name
        with pytest.raises(Refused):
            check_receipt(other, public)
    with pytest.raises(Refused):
        check_receipt(receipt, SigningKey(bytes(32)).public)


async def test_it_says_what_was_asked_and_answered_and_how(daemons: Daemons) -> None:
    daemon = await daemons.start()
    receipt, _ = await answered(daemon, "what is 1+1?")
    told = receipt["statement"]
    assert told["question"]["sha256"] == sha256(b"what is 1+1?").hexdigest()
    assert told["answer"]["sha256"] == sha256(b"two").hexdigest()
    assert (told["agent"], told["tools"]) == ("tester", ["calculate"])
    assert told["model"]
    assert {"asked", "answered", "attested"} == told["times"].keys()
    assert "merkle_audit_trail" in told["policy"]["systems"]
    ended = [e for e in await entries(daemon) if e["event_type"] == "turn_ended"]
    assert told["subject"] == ended[0]["details"]["turn_id"]
    assert told["answer"] == ended[0]["details"]["text"]


async def test_without_the_header_there_is_none(daemons: Daemons) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    daemon.model.says("one")
    assert "receipt" not in (await agent.send("hi")).json()
    daemon.model.says("two")
    assert "receipt" not in (await agent.send("hi", X_Receipt="0")).json()


async def test_chat_completions_give_them_too(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    daemon.model.says("hello")
    body = {
        "model": "service:tester",
        "messages": [{"role": "user", "content": "hi"}],
    }
    answer = await daemon.http.post(
        "/v1/chat/completions", json=body, headers={"X-Receipt": "1"}
    )
    assert answer.status_code == 200, answer.text
    receipt = answer.json()["receipt"]
    public = (await daemon.http.get("/api/audit/heads")).json()["public_key"]
    assert refused(receipt, public) == ""
    assert receipt["statement"]["answer"]["sha256"] == sha256(b"hello").hexdigest()


async def streamed(agent: RunningAgent, **headers: str) -> list[tuple[str, Any]]:
    answer = await agent.host.http.post(
        f"/api/agents/{agent.id}/message/stream",
        json={"message": "hi"},
        headers=headers,
    )
    assert answer.status_code == 200, answer.text
    blocks = [block.splitlines() for block in answer.text.split("\n\n") if block]
    named = [dict(line.split(": ", 1) for line in block) for block in blocks]
    return [(each["event"], json.loads(each["data"])) for each in named]


async def test_a_stream_tells_the_receipt_before_its_end(daemons: Daemons) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    daemon.model.says("one")
    *_, (name, receipt), (last, _) = await streamed(agent, **{"X-Receipt": "1"})
    assert (name, last) == ("receipt", "done")
    public = (await daemon.http.get("/api/audit/heads")).json()["public_key"]
    assert refused(receipt, public) == ""
    assert receipt["statement"]["answer"]["sha256"] == sha256(b"one").hexdigest()
    daemon.model.says("two")
    assert "receipt" not in dict(await streamed(agent))


async def test_a_stream_whose_receipt_cannot_be_given_still_ends(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    daemon.model.says("one")
    trail = trail_of(daemon.daemon)
    append = trail._append

    def but_receipts(connection: Any, facts: Any) -> None:
        if facts[1] == "receipt_issued":
            raise Unavailable("the book is full")
        append(connection, facts)

    trail._append = but_receipts  # type: ignore[method-assign]  # reason: the fault
    told = await streamed(agent, **{"X-Receipt": "1"})
    assert [name for name, _ in told][-2:] == ["receipt", "done"]
    assert dict(told)["receipt"]["code"] == "unavailable"


async def test_a_stream_of_chunks_has_no_place_for_it(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    body = {
        "model": "service:tester",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
    }
    answer = await daemon.http.post(
        "/v1/chat/completions", json=body, headers={"X-Receipt": "1"}
    )
    assert answer.status_code == 400
    assert "X-Receipt" in answer.json()["error"]
    assert daemon.model.requests == []


async def test_receipts_at_once_are_all_good(daemons: Daemons) -> None:
    import asyncio

    daemon = await daemons.start()
    agents = [await daemon.agent(f"a{n}") for n in range(8)]
    for _ in agents:
        daemon.model.says("same")
    answers = await asyncio.gather(*(a.send("hi", X_Receipt="1") for a in agents))
    receipts = [answer.json()["receipt"] for answer in answers]
    public = (await daemon.http.get("/api/audit/heads")).json()["public_key"]
    assert [refused(each, public) for each in receipts] == [""] * 8
    assert len({each["entry"]["id"] for each in receipts}) == 8
    named = {each["statement"]["agent"] for each in receipts}
    assert named == {agent.name for agent in agents}
    assert (await verified(daemon))["status"] == "valid"


async def test_no_receipt_is_promised_without_the_trail(daemons: Daemons) -> None:
    daemon = await daemons.start(
        config='[plugins]\ndisable = ["security:merkle_audit_trail"]\n'
    )
    agent = await daemon.agent()
    answer = await agent.send("hi", X_Receipt="1")
    assert answer.status_code == 503
    assert "X-Receipt" in answer.json()["error"]
    assert daemon.model.requests == []


async def test_the_command_line_checks_it_offline(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon = await daemons.start()
    receipt, public = await answered(daemon)
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps({"response": "two", "receipt": receipt}))
    run = CliRunner().invoke
    good = run(audit, ["verify-receipt", str(file), "--key", public])
    assert good.exit_code == 0, good.output
    assert json.loads(good.stdout)["agent"] == "tester"
    unsaid = run(audit, ["verify-receipt", str(file)])
    assert (unsaid.exit_code, public in unsaid.stderr) == (0, True)
    other = run(audit, ["verify-receipt", str(file), "--key", "0" * 64])
    assert other.exit_code == 1
    for text in ("", "[]", "{}", "null", '{"head": {"key": 1}}'):
        file.write_text(text)
        assert run(audit, ["verify-receipt", str(file)]).exit_code == 1, text
