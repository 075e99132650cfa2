"""The list of channels tells what is switched on and what is missing."""

import asyncio

import pytest
from agenthost.testing import Daemons

CONFIG = """
[channels.email]
agent = "helper"
enabled = false
[channels.matrix]
agent = "helper"
enabled = false
[channels.names]
agent = "helper"
[channels.gitter]
agent = "helper"
"""


async def test_channels_are_listed_with_what_they_lack(daemons: Daemons) -> None:
    variables = {"MATRIX_ACCESS_TOKEN": "s3cr3t"}
    daemon = await daemons.start(config=CONFIG, environ=variables)
    answer = await daemon.http.get("/api/channels")
    listed = answer.json()
    rows = {row["name"]: row for row in listed["channels"]}
    assert [*rows] == sorted(rows)
    # Those of the requirement, MQTT, and one that only the configuration names.
    assert listed["total"] == len(rows) == 42
    assert "s3cr3t" not in answer.text
    told = {
        name: tuple(rows[name][key] for key in ("enabled", "has_token", "available"))
        for name in ("matrix", "email", "irc", "gitter", "names", "whatsapp")
    }
    assert told == {
        "matrix": (False, True, True),
        "email": (False, False, True),
        "irc": (False, False, True),
        "gitter": (True, False, False),
        "names": (True, False, False),
        "whatsapp": (False, False, False),
    }
    assert [*rows["matrix"]][:3] == ["name", "enabled", "has_token"]
    assert rows["whatsapp"]["display_name"] == "WhatsApp Cloud API"
    assert not any(row["connected"] for row in rows.values())
    # Channels are begun behind the start.
    async with asyncio.timeout(30):
        while not rows["gitter"]["trouble"]:
            listed = (await daemon.http.get("/api/channels")).json()
            rows = {row["name"]: row for row in listed["channels"]}
    assert rows["gitter"]["trouble"] == "no plugin offers this channel"
    config = (await daemon.http.get("/api/config")).json()
    assert config["channels_configured"] == 2


WRONG = """
[channels.ntfy]
agent = "helper"
topic = ["alerts"]

[channels.mumble]
agent = "helper"
server = 5

[channels.email]
agent = "helper"
address = "Ada <ada@example.org>"
imap_host = "mail.example.org"
smtp_host = "mail.example.org"
"""


async def test_what_is_wrong_with_a_channels_own_keys_is_said(
    daemons: Daemons, caplog: pytest.LogCaptureFixture
) -> None:
    # Where a secret is missing, that is said first.
    daemon = await daemons.start(config=WRONG, environ={"EMAIL_PASSWORD": "s3cr3t"})
    said: dict[str, str] = {}
    async with asyncio.timeout(30):
        while not all(said.get(name) for name in ("ntfy", "mumble", "email")):
            listed = (await daemon.http.get("/api/channels")).json()["channels"]
            said = {row["name"]: row["trouble"] for row in listed}
    assert said["ntfy"] == "channels.ntfy.topics: is missing; add it"
    assert said["mumble"].startswith("channels.mumble.server: must be text in quotes")
    assert said["email"].endswith("one address without a name: agent@example.org")
    assert "Ada" not in said["email"]
    unknown = "channels.ntfy.topic: unknown key, ignored; did you mean 'topics'?"
    assert unknown in caplog.messages
