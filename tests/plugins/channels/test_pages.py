"""The steps of each channel's page, before its server or simulator.

What the page shows is what is configured; only where the service is, who we are there
and who may speak are those of the stage.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost_channels.bridge.settings import ChannelSection
from agenthost_channels.contract import Adapter, Room
from agenthost_channels.facts import facts
from agenthost_channels.testing import Stage
from agenthost_channels.testing.certifying import opened as on_stage
from agenthost_channels.testing.certifying import place_of
from agenthost_toml.problems import unknown_keys

from tests.faults.talks import environ_of

from .test_offered import DOCS, OURS, adapter_of
from .webhook import program
from .webhook.program import Program, opened

CODE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
KEY = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
VARIABLE = re.compile(r"`([A-Z]+(?:_[A-Z]+)+)`")
COMMAND = re.compile(r"`(python -c .*?)`", re.DOTALL)
UNTRIED = re.compile(r"never\s+(tried\s+)?against", re.IGNORECASE)
GREETING = "This is a test of agenthost."
NOT_THERE = {"mumble": {"channel"}}
"""What a page shows that its server has not."""


def page_of(channel: str) -> str:
    return (DOCS / f"{channel}.md").read_text()


def shown(channel: str, language: str = "toml") -> str:
    """Give the first that a page shows in a language, as it is to be copied."""
    found = CODE.finditer(page_of(channel))
    return next(dedent(each[1] + each[3]) for each in found if each[2] == language)


def section_of(channel: str) -> dict[str, Any]:
    """Read the configuration that a page shows."""
    [(name, section)] = tomllib.loads(shown(channel))["channels"].items()
    assert name == channel
    return dict(section)


def of_stage(stage: Stage) -> dict[str, Any]:
    """Tell where the service is, who we are there, and who may speak."""
    settings = stage.settings().model_dump(mode="json", exclude_defaults=True)
    return {**settings, "allow_from": [stage.person], "allowed_hosts": ["127.0.0.1"]}


async def started(
    daemons: Daemons, channel: str, changed: Mapping[str, Any], environ: Any
) -> RunningDaemon:
    """Do what a page says up to the start: configure, give secrets, have the agent."""
    left_out = NOT_THERE.get(channel, set())
    section = {k: v for k, v in section_of(channel).items() if k not in left_out}
    section |= changed
    lines = [f"{key} = {json.dumps(value)}" for key, value in section.items()]
    config = "\n".join([f"[channels.{channel}]", *lines, ""])
    running = await daemons.start(config=config, environ=dict(environ))
    await running.agent(section["agent"])
    await opened(running, channel)
    return running


async def terminal(running: RunningDaemon, *words: str) -> str:
    """Run ``agenthost`` as somebody at the terminal does."""
    home = running.daemon.home
    there = {"pid": 1, "listen_addr": running.daemon.address}
    (home / "daemon.json").write_text(json.dumps(there))
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("agenthost")),
        *words,
        env={**os.environ, "AGENTHOST_HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, told
    return told.decode()


@pytest.mark.conformance
@pytest.mark.parametrize("channel", [each for each in OURS if each != "webhook"])
async def test_the_steps_of_a_page_lead_to_an_answer(
    daemons: Daemons, channel: str
) -> None:
    place = place_of(channel)
    assert place is not None
    async with on_stage(place) as stage:
        environ = environ_of(stage)
        assert set(environ) <= set(VARIABLE.findall(page_of(channel)))
        running = await started(daemons, channel, of_stage(stage), environ)
        peer = stage.place(Room.DIRECT).peer
        told = await terminal(running, "channel", "test", channel, "--to", peer)
        we, fate = told.splitlines()
        assert we.startswith("we are ")
        assert fate.startswith("delivered")
        running.model.says("good morning")
        await stage.say("hello")
        assert await stage.seen(2) == [GREETING, "good morning"]
        await running.daemon.stop()


@pytest.mark.conformance
async def test_the_steps_of_the_webhooks_page_lead_to_an_answer(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    from standardwebhooks import Webhook

    [command] = COMMAND.findall(page_of("webhook"))
    _, *words = shlex.split(" ".join(command.split()))
    make = partial(subprocess.run, capture_output=True, text=True, check=True)
    secret = make([sys.executable, *words]).stdout.strip()
    monkeypatch.setattr(program, "SECRET", secret)
    request = dedent(shown("webhook", ""))
    head, _, body = request.partition("\n\n")
    first, *headers = head.splitlines()
    method, path = first.split()
    given = dict(line.split(": ", 1) for line in headers)
    now = datetime.fromtimestamp(int(time.time()), UTC)
    body = body.strip()
    signature = Webhook(secret).sign(given["webhook-id"], now, body)
    given |= {"webhook-timestamp": str(int(now.timestamp()))}
    given |= {"webhook-signature": signature}
    async with Program() as desk:
        there = {"url": desk.url, "allowed_hosts": ["127.0.0.1"]}
        environ = {"WEBHOOK_SECRET": secret}
        assert set(environ) <= set(VARIABLE.findall(page_of("webhook")))
        running = await started(daemons, "webhook", there, environ)
        running.model.says("Until six.")
        answer = await running.http.request(method, path, content=body, headers=given)
        assert answer.status_code == 202
        assert await desk.until(1) == ["Until six."]


@pytest.mark.parametrize("channel", OURS)
def test_what_a_page_shows_is_a_configuration(channel: str) -> None:
    kind: type[Adapter] = adapter_of(channel)
    section = ChannelSection.model_validate(section_of(channel))
    own = section.model_extra or {}
    assert not list(unknown_keys(kind.settings, own))
    kind.settings.model_validate(own)
    # A message's fields, on that page, are no keys.
    if channel != "webhook":
        known = {*kind.settings.model_fields, *ChannelSection.model_fields}
        assert set(KEY.findall(page_of(channel))) <= known


@pytest.mark.parametrize("channel", OURS)
def test_a_page_says_what_was_never_tried(channel: str) -> None:
    assert facts(channel).untried == bool(UNTRIED.search(page_of(channel)))
