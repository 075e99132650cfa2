"""``agenthost certify channel`` tells which promises are kept, and who judges."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agenthost.testing.simulators.ntfy import NtfySimulator
from agenthost_channels.certify_command import certify
from agenthost_channels.ntfy.adapter import Ntfy
from agenthost_channels.testing import played
from agenthost_channels.testing.certifying import opened, place_of
from agenthost_channels.testing.servers import PLACES, found
from agenthost_channels.testing.stages.ntfy import NtfyStage
from click.testing import CliRunner, Result


class Nameless(Ntfy):
    """An adapter that does not say who we are."""

    async def identity(self) -> str:
        return ""


class NamelessStage(NtfyStage):
    channel = Nameless
    judge = "the test"


@asynccontextmanager
async def nameless() -> AsyncIterator[NamelessStage]:
    async with NtfySimulator() as ntfy:
        yield NamelessStage(ntfy)


@asynccontextmanager
async def serverless() -> AsyncIterator[NamelessStage]:
    found("nosuchserver")
    async with nameless() as stage:
        yield stage


def run(*words: str) -> Result:
    return CliRunner().invoke(certify, ["channel", *words])


@pytest.mark.conformance
def test_an_adapter_that_keeps_all_is_certified() -> None:
    done = run("ntfy", "--json")
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["channel"] == "ntfy"
    assert told["judge"].startswith("a simulator written from ntfy's pages")
    outcomes = {each["name"]: each["outcome"] for each in told["cases"]}
    assert len(outcomes) > 40
    assert outcomes["it says who we are"] == "kept"
    assert outcomes["a group is another place than its people"] == "skipped"
    assert "broken" not in outcomes.values()


@pytest.mark.conformance
def test_what_an_adapter_breaks_is_named() -> None:
    done = run("ntfy", "--stage", f"{__name__}:nameless")
    assert done.exit_code == 1, done.output
    first, second, *others = done.stdout.splitlines()
    assert first == "channel ntfy, judged by the test"
    assert "broken: 1;" in second
    assert others[0] == "  broken: it says who we are"
    assert others[1].startswith("    AssertionError")


@pytest.mark.conformance
@pytest.mark.parametrize(
    "channel",
    [
        "bluesky",
        "discord",
        "email",
        "irc",
        "matrix",
        "mqtt",
        "mumble",
        "nostr",
        "ntfy",
        "slack",
        "telegram",
        "webhook",
        "xmpp",
    ],
)
async def test_a_channel_of_ours_has_a_stage_that_opens(channel: str) -> None:
    place = place_of(channel)
    assert place is not None
    async with opened(place) as stage, played(stage) as play:
        assert stage.facts.id == channel
        assert stage.judge
        assert await play.adapter.identity()


@pytest.mark.conformance
def test_a_server_that_is_not_installed_is_named() -> None:
    done = run("irc", "--stage", f"{__name__}:serverless")
    assert done.exit_code == 1
    assert "does not open: no nosuchserver here: install its package" in done.output


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("channel", "program"),
    [
        ("email", "dovecot"),
        ("matrix", "synapse_homeserver"),
        ("mumble", "murmurd"),
        ("nostr", "nostr-relay"),
    ],
)
def test_a_stage_of_ours_names_the_server_that_it_wants(
    channel: str, program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if shutil.which(program, path=PLACES) or shutil.which(program):
        pytest.skip(f"{program} is installed here")
    # Where nothing was fetched.
    monkeypatch.chdir(tmp_path)
    done = run(channel)
    assert done.exit_code == 1
    assert f"does not open: no {program} here: install its package" in done.output
    assert len(done.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nosuch",), "no plugin has a stage for nosuch"),
        (("ntfy", "--stage", "nosuch"), "nosuch is not module:name"),
    ],
)
def test_what_is_asked_wrongly_is_told(words: tuple[str, ...], says: str) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert says in done.output


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("ntfy", "--stage", "nosuch:opened"), "No module named 'nosuch'"),
        (("ntfy", "--stage", f"{place_of('slack')}"), "is a stage of slack"),
    ],
)
def test_a_stage_that_is_none_is_told(words: tuple[str, ...], says: str) -> None:
    done = run(*words)
    assert done.exit_code in {1, 2}
    assert says in done.output
    assert len(done.output.splitlines()) < 10


def test_without_pytest_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agenthost_channels.certify_command.find_spec", lambda _: None)
    done = run("ntfy")
    assert done.exit_code == 1
    assert "pip install 'agenthost[testing]'" in done.output
