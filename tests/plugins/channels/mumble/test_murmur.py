"""The adapter keeps the contract with a real server."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from agenthost import Unavailable
from agenthost_channels.contract import Fate, Outbound
from agenthost_channels.mumble.adapter import Mumble
from agenthost_channels.testing import ChannelContract, FakeLine, Stage, played
from agenthost_channels.testing.care import CareContract
from agenthost_channels.testing.stages.mumble import MurmurStage, server, with_operator
from agenthost_channels.testing.stages.mumble_person import Person
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

pytestmark = pytest.mark.conformance


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return await with_operator(tmp_path_factory.mktemp("murmur"))


@pytest.fixture
async def stage(tmp_path: Path, database: Path) -> AsyncIterator[Stage]:
    async with server(tmp_path, database) as port, Person(port, "Ada") as ada:
        yield MurmurStage(port, ada)


class TestMumbleWithMurmur(ChannelContract):
    """All of it."""


class PasswordStage(MurmurStage):
    """murmurd with a password."""

    def secrets(self) -> Mapping[str, str]:
        return {"password": "hunter2-canary"}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"password": "wrong-canary"}


class TestMumbleWithAPassword:
    """What the contract says of secrets, with a server that wants one."""

    @pytest.fixture
    async def stage(self, tmp_path: Path, database: Path) -> AsyncIterator[Stage]:
        async with server(tmp_path, database, "hunter2-canary") as port:
            yield PasswordStage(port, Person(port, "Ada"))

    test_right = CareContract.test_it_tells_that_it_is_connected
    test_wrong = CareContract.test_wrong_secrets_are_told_and_not_shown


async def test_another_certificate_is_not_spoken_to(stage: MurmurStage) -> None:
    right = stage.settings()
    for changed in ({"fingerprint": "00" * 32}, {"fingerprint": ""}):
        line = FakeLine(right.model_copy(update=changed))
        with pytest.raises(Unavailable, match="certificate"):
            async with asyncio.timeout(20):
                await Mumble(line).run()
        assert line.connections == 0
        await line.aclose()


async def test_a_channel_that_is_not_there_is_named(stage: MurmurStage) -> None:
    line = FakeLine(stage.settings().model_copy(update={"channel": "Work/Tea"}))
    with pytest.raises(Unavailable, match="Work/Tea"):
        async with asyncio.timeout(20):
            await Mumble(line).run()
    await line.aclose()


async def test_a_person_with_a_certificate_is_known_by_it(
    stage: MurmurStage, tmp_path: Path
) -> None:
    file = tmp_path / "bob.pem"
    digest = certified(file)
    bob = Person(stage.port, "Bob", certificate=str(file))
    async with played(stage) as play, bob:
        await bob.say("it is me", "bot")
        (heard,) = await play.line.hear(1)
        sent = await play.adapter.send(Outbound("k", heard.place, "for you alone"))
        assert await bob.seen(1, direct=True) == ["for you alone"]
    assert heard.sender.id == f"cert:{digest}"
    assert sent.fate is Fate.DELIVERED
    assert stage.ada.got == []


async def test_what_is_too_long_is_refused(stage: MurmurStage) -> None:
    async with played(stage) as play:
        sent = await play.adapter.send(play.message("x" * 5001))
    assert (sent.fate, sent.final) == (Fate.NOT_SENT, True)
    assert "refuses" in sent.reason


def certified(file: Path) -> str:
    """Make a certificate of one's own, and give the digest that Mumble knows it by."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Bob")])
    start = datetime.now(UTC) - timedelta(days=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=30))
    )
    certificate = made.sign(key, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    pkcs8 = serialization.PrivateFormat.PKCS8
    file.write_bytes(
        key.private_bytes(pem, pkcs8, plain) + certificate.public_bytes(pem)
    )
    der = certificate.public_bytes(serialization.Encoding.DER)
    return hashlib.sha1(der, usedforsecurity=False).hexdigest()
