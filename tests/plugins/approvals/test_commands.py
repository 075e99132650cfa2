"""``agenthost approvals`` against a daemon that runs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable

import agenthost_cli
import pytest
from agenthost import TurnState
from agenthost.testing import Daemons
from agenthost.testing.daemons import RunningDaemon
from agenthost_approvals import register_command

from .stage import TOOLS, Shop, ask, ends, listed, results, waits
from .test_answers import ADDRESS

Run = Callable[..., Awaitable[int]]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
async def asked(daemons: Daemons, shop: Shop) -> tuple[RunningDaemon, dict[str, str]]:
    shop.asks["pay"] = ask("Where\x1b[2J to?", schema=ADDRESS, url="https://a.example")
    daemon = await daemons.start(plugins=shop.plugins)
    daemon.model.calls("pay", amount=5, note="\u202eevil\x07")
    return daemon, await waits(await daemon.agent(tools=TOOLS), "pay")


@pytest.fixture
def run(
    asked: tuple[RunningDaemon, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run a command on the daemon's home, in a thread."""
    home = asked[0].daemon.home
    facts = {"pid": 1, "listen_addr": asked[0].daemon.address}
    (home / "daemon.json").write_text(json.dumps(facts), encoding="utf-8")
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)

    async def one(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["agenthost", "approvals", *arguments])
        return await asyncio.to_thread(agenthost_cli.main)

    return one


def test_register_command_offers_approvals() -> None:
    assert [spec.command.name for spec in register_command()] == ["approvals"]


async def test_list_and_show_tell_what_is_asked_and_obey_nothing_of_it(
    asked: tuple[RunningDaemon, dict[str, str]], run: Run, capsys: Captured
) -> None:
    id_ = asked[1]["approval_id"]
    assert await run("list") == 0
    told = capsys.readouterr().out
    head, row = told.splitlines()
    heads = ["ID", "STATE", "AGENT", "WANTS", "DEADLINE", "QUESTION"]
    assert head.split() == heads
    assert row.split()[:4] == [id_[:8], "pending", "tester", "pay"]
    assert row.endswith("Where\ufffd[2J to?")
    assert await run("show", id_[:6].upper()) == 0
    told = capsys.readouterr().out
    assert not set(told) & {"\x1b", "\u202e", "\x07"}
    for line in (
        f"approval {id_} is pending",
        "agent: tester, on behalf of loopback:loopback",
        '  "amount": 5,',
        "visit first: https://a.example",
        "value street (string, required)",
        "value number (integer)",
    ):
        assert line in told
    assert await run("show", id_, "--json") == 0
    assert json.loads(capsys.readouterr().out)["schema"] == ADDRESS


async def test_a_yes_brings_values_of_the_kinds_asked_for(
    asked: tuple[RunningDaemon, dict[str, str]],
    run: Run,
    capsys: Captured,
    shop: Shop,
) -> None:
    daemon, told = asked
    id_ = told["approval_id"]
    for values, problem in (
        (["street"], "'street' must be written as name=value"),
        (["number=x"], "values.number: must be a whole number"),
        (["number=1.5"], "values.number: must be a whole number"),
        (["street=a", "street=b"], "values.street: is given twice"),
        (["number=1"], "values.street: is required"),
    ):
        given = [word for value in values for word in ("--value", value)]
        assert await run("answer", id_, "yes", *given) == 1
        assert problem in capsys.readouterr().err
    assert await run("answer", id_, "yes", "--reason", "x") == 2
    assert await run("answer", id_, "maybe") == 2
    capsys.readouterr()
    values = ["--value", "street=Main = 1", "--value", "number=3"]
    assert await run("answer", id_[:8], "yes", *values) == 0
    assert "approved" in capsys.readouterr().out
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert shop.answers == [{"street": "Main = 1", "number": 3}]
    assert await run("answer", id_, "no") == 1
    assert "approved already, by loopback" in capsys.readouterr().err
    assert await run("list") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert await run("list", "--all", "--json") == 0
    assert json.loads(capsys.readouterr().out)["total"] == 1


async def test_a_no_is_told_with_its_reason(
    asked: tuple[RunningDaemon, dict[str, str]], run: Run, shop: Shop
) -> None:
    daemon, told = asked
    id_ = told["approval_id"]
    assert await run("answer", id_, "no", "--value", "street=x") == 2
    assert await run("answer", id_, "no", "--reason", "too dear") == 0
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert results(daemon) == ["pay failed: a person said no: too dear"]
    assert shop.runs == []


async def test_an_id_that_names_none_or_several_is_refused(
    asked: tuple[RunningDaemon, dict[str, str]], run: Run, capsys: Captured
) -> None:
    daemon, _ = asked
    daemon.model.calls("pay")
    await waits(await daemon.agent("other", tools=TOOLS), "pay")
    for wanted in ("", "zzzz", "../keys", "?x"):
        assert await run("answer", wanted, "no") == 1
        assert "approval" in capsys.readouterr().err
    assert await run("show", "/" * 40) == 1
    assert {row["state"] for row in await listed(daemon)} == {"pending"}
