"""Files go both ways over services, real ones where they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from agenthost.testing import Daemons
from agenthost.testing.simulators.discord import DiscordSimulator
from agenthost.testing.simulators.slack import SlackSimulator
from agenthost.testing.simulators.telegram import TelegramSimulator
from agenthost_channels.testing import Stage
from agenthost_channels.testing.stages.discord import DiscordStage
from agenthost_channels.testing.stages.slack import SlackStage
from agenthost_channels.testing.stages.telegram import TelegramStage
from agenthost_channels.testing.stages.xmpp import prosody

from tests.faults.talks import environ_of, section_of

from .email.test_dovecot import dovecot
from .matrix.synapse import homeserver
from .matrix.test_synapse import staged as in_matrix
from .webhook.program import opened

pytestmark = pytest.mark.conformance
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PLAN = b"%PDF-1.7 a plan"


@asynccontextmanager
async def telegram(_folder: Path) -> AsyncIterator[Stage]:
    async with TelegramSimulator() as api:
        yield TelegramStage(api)


@asynccontextmanager
async def slack(_folder: Path) -> AsyncIterator[Stage]:
    async with SlackSimulator() as simulator:
        yield SlackStage(simulator)


@asynccontextmanager
async def discord(_folder: Path) -> AsyncIterator[Stage]:
    async with DiscordSimulator() as simulator:
        yield DiscordStage(simulator)


@asynccontextmanager
async def email(_folder: Path) -> AsyncIterator[Stage]:
    async with dovecot() as stage:
        yield stage


@asynccontextmanager
async def matrix(folder: Path) -> AsyncIterator[Stage]:
    with homeserver(folder) as port:
        async with in_matrix(port, 1) as stage:
            yield stage


@asynccontextmanager
async def xmpp(folder: Path) -> AsyncIterator[Stage]:
    async with prosody(folder) as stage:
        yield stage


# aiosmtpd says so of a login without TLS, which is right and meant here.
@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
@pytest.mark.parametrize("service", [telegram, slack, discord, email, matrix, xmpp])
async def test_a_file_comes_and_another_goes(
    daemons: Daemons,
    service: Callable[[Path], AbstractAsyncContextManager[Stage]],
    tmp_path: Path,
) -> None:
    async with service(tmp_path) as stage:
        environ = dict(environ_of(stage))
        running = await daemons.start(config=section_of(stage), environ=environ)
        agent = await running.agent("helper")
        await opened(running, stage.facts.id)
        folder = running.daemon.data_dir / "workspaces" / agent.id
        folder.mkdir(parents=True)
        (folder / "plan.pdf").write_bytes(PLAN)
        running.model.says("Here is [the plan](plan.pdf).")
        await stage.attach("photo.png", "image/png", PICTURE)
        [(name, data)] = await stage.files_seen(1)
        assert (name, data) == ("plan.pdf", PLAN)
        asked = running.model.requests[-1].messages[-1].text
        path = asked.rpartition("[file ")[2].partition(":")[0]
        assert (folder / path).read_bytes() == PICTURE
        await running.daemon.stop()
